"""Networks as tables and pictures: `mx.viz.print_summary(net, shape=...)`, `mx.viz.plot_network(net)`.

Begin with `table.py` (the summary) and `network.py` (Graphviz); `graph.py` and `memory.py` draw SVG without other
programs, for `mxc inspect`. Programs import the names below.
"""
from mxc.runtime.elsewhere import elsewhere
from mxc.visualization.network import plot_network
from mxc.visualization.table import print_summary

__getattr__, _names = elsewhere(__name__, {"": "copy json re warnings", "mxc.symbol": "Symbol"})
__all__ = ["plot_network", "print_summary", *_names]
