"""Networks as tables and pictures: `mx.viz.print_summary(net, shape=...)`, `mx.viz.plot_network(net)`."""
from mxc.runtime.elsewhere import elsewhere
from mxc.visualization.network import plot_network
from mxc.visualization.table import print_summary

__getattr__, _names = elsewhere(__name__, {"": "copy json re warnings", "mxc.symbol": "Symbol"})
__all__ = ["plot_network", "print_summary", *_names]
