"""What measures training and what it begins with: metrics, initializers, callbacks, monitors."""
SECTIONS = ("mxnet.metric", "mxnet.initializer", "mxnet.callback", "mxnet.monitor")

EXCEPTIONS: dict[str, str] = {}
