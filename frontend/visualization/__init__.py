"""Networks as tables and pictures: `mx.viz.print_summary(net, shape=...)`, `mx.viz.plot_network(net)`."""
from mxc.visualization.network import plot_network
from mxc.visualization.table import print_summary

__all__ = ["plot_network", "print_summary"]
