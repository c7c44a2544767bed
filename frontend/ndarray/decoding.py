"""Arrays of encoded images: MXNet's operators `_cvimdecode` and `_cvimread`. What they give has a shape that only the
image tells, so they are functions of arrays alone, not operators of graphs."""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, MXNetError
from mxc.compiler.system import opencv
from mxc.ndarray.creation import array
from mxc.ndarray.ndarray import NDArray
from mxc.runtime import remote_files


def _cvimdecode(buf: NDArray, flag: int = 1, to_rgb: bool = True, out: NDArray | None = None,
                name: str | None = None) -> NDArray:
    """The pixels of an encoded image, uint8 (height, width, channels).

    buf: its bytes, an array of uint8. flag: 1 for colours, 0 for grey. to_rgb: whether colours are in the order red,
    green, blue, else blue, green, red. Raises MXNetError for bytes that are no image, and without OpenCV.
    """
    if np.dtype(buf.dtype) != np.uint8:
        raise MXNetError(f"_cvimdecode: expected the bytes of an image, an array of uint8, got {np.dtype(buf.dtype)}")
    return decoded(buf.asnumpy(), flag, to_rgb, out)


def _cvimread(filename: str, flag: int = 1, to_rgb: bool = True, out: NDArray | None = None,
              name: str | None = None) -> NDArray:
    """The pixels of an image file, as `_cvimdecode` gives them. filename: a URL too. Raises FileAccessError, which is
    an MXNetError, for a file that cannot be read, and as `_cvimdecode`."""
    path = os.fspath(filename)
    content = remote_files.content(path)
    try:
        return decoded(content, flag, to_rgb, out)
    except MXNetError as error:
        raise MXNetError(f"{path}: {error}") from None


def decoded(content: bytes | np.ndarray, flag: int, to_rgb: bool, out: NDArray | None = None) -> NDArray:
    """The pixels of an encoded image, in `out` where it is given."""
    if flag not in (0, 1):
        raise ArgumentError(f"decoding an image: flag is 1 for colours or 0 for grey, got {flag!r}")
    pixels = opencv.decoded(content, int(flag), bool(to_rgb), as_stored=True)
    pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    if out is None:
        return array(pixels, dtype=np.uint8)
    if out.shape != pixels.shape:
        raise MXNetError(f"decoding an image: it has the shape {pixels.shape}, out has {out.shape}; expected the same")
    out[:] = array(pixels, dtype=np.uint8)
    return out


FUNCTIONS: dict[str, Any] = {"_cvimdecode": _cvimdecode, "_cvimread": _cvimread}
