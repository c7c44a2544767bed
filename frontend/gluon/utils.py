"""Batches in parts for several devices, gradients' norms, and downloads."""
from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Sequence
from typing import Any

from mxc import ndarray
from mxc.compiler.error import AssertedError
from mxc.compiler.system import env
from mxc.context import Context
from mxc.ndarray import NDArray
from mxc.runtime import downloads
from mxc.runtime.elsewhere import elsewhere

__getattr__, _ = elsewhere(__name__, {}, {
    "": "collections hashlib np=numpy sys uuid weakref", "mxc.gluon.hooks": "HookHandle",
    "mxc.gluon.parameter": "shape_is_known", "mxc.util": "is_np_array is_np_shape"})
__all__ = ["check_sha1", "clip_global_norm", "download", "replace_file", "split_and_load", "split_data"]


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """An array in `num_slice` parts along an axis. even_split=False: the first parts have one more where it does not
    divide. Raises ValueError where it does not, with even_split."""
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise ValueError(f"an array of the shape {data.shape} has no {num_slice} equal parts along axis {batch_axis}; "
                         f"take a batch size that {num_slice} divides, or even_split=False")
    each, more = divmod(size, num_slice)
    ends = [i * each + min(i, more) for i in range(num_slice + 1)]
    if batch_axis == 0:
        return [data[start:end] for start, end in itertools.pairwise(ends)]
    return [ndarray.slice_axis(data, axis=batch_axis, begin=start, end=end) for start, end in itertools.pairwise(ends)]


def split_and_load(data: Any, ctx_list: Sequence[Context], batch_axis: int = 0,
                   even_split: bool = True) -> list[NDArray]:
    """The parts of an array, or of what makes one, one on each device."""
    array = data if isinstance(data, NDArray) else ndarray.array(data, ctx=ctx_list[0])
    if len(ctx_list) == 1:
        return [array.as_in_context(ctx_list[0])]
    parts = split_data(array, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(device) for part, device in zip(parts, ctx_list, strict=True)]


def clip_global_norm(arrays: Sequence[NDArray], max_norm: float, check_isfinite: bool = True) -> Any:
    """Scale arrays in place, all by one factor, so that the norm of all their elements is `max_norm` at most. Gives the
    norm before: a number, or without check_isfinite an array of one, for which nothing waits.

    Warns of a norm that is no number. Raises AssertionError without arrays.
    """
    if not arrays:
        raise AssertedError("clip_global_norm takes arrays, got none")
    squares = ndarray.add_n(*[_sum_of_squares(array).astype("float32").as_in_context(arrays[0].context)
                              for array in arrays])
    total = ndarray.sqrt(squares)
    if check_isfinite:
        found = float(total.asscalar())
        if not math.isfinite(found):
            warnings.warn("the norm of the gradients is no finite number: what clipping makes of them is undefined",
                          stacklevel=2)
    factor = ndarray.minimum(max_norm / (total + 1e-8), 1.0)
    for array in arrays:
        if array.stype == "default":
            array *= factor.as_in_context(array.context).astype(array.dtype)
        else:
            array *= float(factor.asscalar())  # by a number, what is kept in parts stays so
    return found if check_isfinite else total


def _sum_of_squares(array: NDArray) -> NDArray:
    return ndarray.sum(ndarray.square(array)) if array.stype == "default" else ndarray.square(ndarray.norm(array))


def check_sha1(filename: str | os.PathLike[str], sha1_hash: str) -> bool:
    """Whether a file has the SHA-1 digest that begins so."""
    return downloads.has_sha1(filename, sha1_hash)


def replace_file(src: str | os.PathLike[str], dst: str | os.PathLike[str]) -> None:
    """Rename a file to `dst`, whatever is there. Raises OSError."""
    os.replace(src, dst)


def download(url: str, path: str | os.PathLike[str] | None = None, overwrite: bool = False,
             sha1_hash: str | None = None, retries: int = 5, verify_ssl: bool = True) -> str:
    """Download a file, unless it is there, and give its path.

    path: of the file, or a folder; default is the URL's last part. overwrite: also when it is there. sha1_hash: a file
    with another digest is not the one. retries, verify_ssl: further tries, and whether the server's certificate is
    checked. The file appears when it is whole, under its name and PATH.part until then: a further try, and with
    sha1_hash a later call, goes on where one has stopped.
    Raises ModelFileError when it cannot be had, FileAccessError when it cannot be written, both MXNetErrors.
    """
    name = url.rsplit("/", 1)[-1]
    target = name if path is None else os.path.join(path, name) if os.path.isdir(path) else os.fspath(path)
    if overwrite or not os.path.exists(target) or (sha1_hash and not check_sha1(target, sha1_hash)):
        downloads.download(url, target, sha1_hash, retries, verify_ssl)
    return target


def _get_repo_url() -> str:
    """The server of MXNet's weights and data sets, or what the environment variable MXNET_GLUON_REPO says, with a slash
    at the end. Packages for MXNet make the addresses of their files of it."""
    url = env.text("MXNET_GLUON_REPO", "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/")
    return url if url.endswith("/") else f"{url}/"


def _get_repo_file_url(namespace: str, filename: str) -> str:
    """The address of a file on that server."""
    return f"{_get_repo_url()}{namespace}/{filename}"
