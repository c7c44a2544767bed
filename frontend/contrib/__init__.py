"""Parts beside the others whose interface may change: `mx.contrib`. There is `amp`, as far as packages ask for it.

Begin with `amp/amp.py`. Programs import it by its name, `from mxc.contrib import amp`; mxc itself does not.
"""
__all__: list[str] = []
