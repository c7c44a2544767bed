"""What MXNet's tests download: files of a URL that is given, and data sets, which must be there: mxc says which file
belongs where."""
from __future__ import annotations

import bz2
import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from mxc.compiler.error import FileAccessError, ModelFileError, UnsupportedError
from mxc.runtime import downloads
from mxc.runtime.whole_file import replacing
from mxc.test_utils.surroundings import MNIST_FOLDER, MNIST_NAMES

_CIFAR = ("train.rec", "test.rec", "train.lst", "test.lst")


def download(url: str, fname: str | None = None, dirname: str | None = None, overwrite: bool = False,
             retries: int = 5) -> str:
    """Download a file, unless it is there, and give its path: `fname`, or the URL's last part, in the folder `dirname`,
    which is made. overwrite, retries, and what is raised: as of `mx.gluon.utils.download`."""
    path = Path(dirname or "") / (url.rsplit("/", 1)[-1] if fname is None else fname)
    if overwrite or not path.exists():
        downloads.download(url, path, retries=retries)
    return str(path)


def download_model(model_name: str, dst_dir: str = "./", meta_info: Any = None) -> NoReturn:
    """Raises UnsupportedError: mxc downloads no models."""
    raise UnsupportedError(f"download_model: mxc downloads no models; put the files of {model_name} into {dst_dir} and "
                           "load them with mx.sym.load and mx.nd.load")


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Unpack the zip file `data_origin_name` of the folder `data_dir`; where it is not there it is downloaded first.

    Raises ModelFileError for a file that is none, and as `download`.
    """
    path = download(url, data_origin_name, data_dir)
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(data_dir)
    except zipfile.BadZipFile as error:
        raise ModelFileError(path, f"is no zip file: {error}") from None


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Unpack the bz2 file `data_origin_name` of the folder `data_dir` to `data_name` there, unless that is there; where
    the packed file is not there it is downloaded first. Raises as `get_zip_data`."""
    target = Path(data_dir) / data_name
    if not target.exists():
        _unpack(Path(download(url, data_origin_name, data_dir)), target, bz2.open)


def get_mnist_pkl() -> None:
    """See that data/mnist.pkl.gz is there. Raises FileAccessError when it is not."""
    _require(Path(MNIST_FOLDER) / "mnist.pkl.gz")


def get_mnist_ubyte() -> None:
    """See that MNIST's four idx files are in the folder `data`, unpacked; those that end in .gz are unpacked.

    Raises FileAccessError naming the first that is not there.
    """
    for name in MNIST_NAMES.values():
        path = Path(MNIST_FOLDER) / name
        packed = path.with_name(f"{name}.gz")
        if packed.exists() and not path.exists():
            _unpack(packed, path, gzip.open)
        _require(path)


def get_cifar10() -> None:
    """See that CIFAR-10's files of records are in data/cifar. Raises FileAccessError naming the first that is not."""
    for name in _CIFAR:
        _require(Path("data/cifar") / name)


def _unpack(packed: Path, target: Path, opened: Callable[[Path], Any]) -> None:
    try:
        with opened(packed) as file:
            content = file.read()
    except (OSError, EOFError) as error:
        raise ModelFileError(str(packed), f"cannot be unpacked: {error}") from None
    with replacing(target) as unpacked:
        unpacked.write(content)


def _require(path: Path) -> None:
    if not path.exists():
        raise FileAccessError(str(path), "read", FileNotFoundError(
            f"there is no such file; put {path.name} into the folder {path.parent.absolute()}: mxc downloads no data "
            "sets"))
