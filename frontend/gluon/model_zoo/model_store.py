"""Where the weights of trained networks are: in a folder of this machine. mxc downloads none."""
from __future__ import annotations

import os
from pathlib import Path

from mxc.compiler.error import ModelFileError

__all__ = ["get_model_file", "purge"]

# SHA-1 digests of the weights of networks, which packages for MXNet add: of these networks no other weights are taken.
_model_sha1: dict[str, str] = {}
ROOT = os.path.join("~", ".mxnet", "models")  # MXNet's own, so weights that it downloaded are found


def get_model_file(name: str, root: str = ROOT) -> str:
    """The path of the weights of a network: NAME.params in the folder, or NAME-8_DIGITS.params as MXNet names them. The
    digits begin the file's SHA-1 digest.

    Raises ModelFileError when there are none: it says where to put them.
    """
    folder = Path(root).expanduser()
    plain = folder / f"{name}.params"
    digits = _model_sha1.get(name, "????????")[:8]
    found = [plain] if plain.exists() else sorted(folder.glob(f"{name}-{digits}.params"))
    if not found:
        raise ModelFileError(str(plain), f"there are no weights of {name}, and mxc downloads none: put the file there, "
                             "by this name or the one it has in MXNet's model store, or give another folder as root")
    return str(found[-1])


def purge(root: str = ROOT) -> None:
    """Remove all weights of a folder."""
    for path in Path(root).expanduser().glob("*.params"):
        path.unlink()
