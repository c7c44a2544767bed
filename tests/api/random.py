"""Random numbers of arrays."""
SECTIONS = ("mxnet.random", "mxnet.ndarray.random")

EXCEPTIONS = {"mxnet.random.check_call": "a helper of MXNet's calls into its C library, which mxc does not have"}
