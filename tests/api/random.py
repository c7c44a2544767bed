"""Random numbers of arrays."""
SECTIONS = ("mxnet.random", "mxnet.ndarray.random")

EXCEPTIONS: dict[str, str] = {}
