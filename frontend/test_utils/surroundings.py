"""What surrounds a test: environment variables, standard error, repetition, devices, and the MNIST files."""
from __future__ import annotations

import contextlib
import functools
import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mxc.cli.programs import im2rec
from mxc.compiler.error import FileAccessError
from mxc.context import num_gpus
from mxc.ndarray import waitall
from mxc.util import getenv, setenv

MNIST_FOLDER = "data"
MNIST_NAMES = {"train_data": "train-images-idx3-ubyte", "train_label": "train-labels-idx1-ubyte",
               "test_data": "t10k-images-idx3-ubyte", "test_label": "t10k-labels-idx1-ubyte"}


def list_gpus() -> range:
    """The numbers of the GPUs that arrays can be put on."""
    return range(num_gpus())


def has_tvm_ops() -> bool:
    """Whether operators are compiled by TVM: never."""
    return False


def is_op_runnable() -> bool:
    """Whether operators run on what tests run on: always, on the CPU."""
    return True


def is_cd_run() -> bool:
    """Whether the environment variable CD_JOB says that this is a test of a release."""
    return getenv("CD_JOB") == "1"


def is_aarch64_run() -> bool:
    """Whether this machine is an ARM of 64 bits."""
    return platform.machine() == "aarch64"


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """A scope with other environment variables: environment(name, value), or environment({name: value, ...}).

    A value of None unsets the variable. Afterwards all are as they were.
    """
    if len(args) == 1 and isinstance(args[0], dict):
        values = args[0]
    elif len(args) == 2 and isinstance(args[0], str):
        values = {args[0]: args[1]}
    else:
        raise TypeError("environment takes a name and a value, or a dict of values by name")
    before = {name: getenv(name) for name in values}
    waitall()  # work in flight sees the variables as they were
    try:
        for name, value in values.items():
            setenv(name, value)
        yield
    finally:
        waitall()
        for name, value in before.items():
            setenv(name, value)


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """A scope in which nothing that is written to the process's standard error shows, by Python or not."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def retry(n: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for tests of random numbers: they may fail with AssertionError n - 1 times of n."""
    if n < 1:
        raise AssertionError(f"a test runs at least once, not {n} times")

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def repeated(*args: Any, **kwargs: Any) -> Any:
            for _ in range(n - 1):
                try:
                    return test(*args, **kwargs)
                except AssertionError:
                    waitall()
            return test(*args, **kwargs)

        return repeated

    return decorate


def get_mnist() -> dict[str, np.ndarray]:
    """The MNIST digits from idx files in the folder `data` of the working directory, which may be gzipped.

    train_data and test_data: float32 from 0 to 1, of shape (images, 1, 28, 28); train_label and test_label: uint8.
    They are not downloaded: raises FileAccessError that says which file belongs where, ModelFileError for other
    content.
    """
    from mxc.io import mnist

    found = {}
    for key, name in MNIST_NAMES.items():
        values = mnist.read(str(_mnist_file(name)), 3 if key.endswith("data") else 1)
        found[key] = (values[:, None] / np.float32(255)).astype(np.float32) if values.ndim == 3 else values
    return found


def _mnist_file(name: str) -> Path:
    """The path of a file, or of one packed by gzip. Raises FileAccessError, which says where it belongs."""
    path = Path(MNIST_FOLDER) / name
    packed = path.with_name(f"{name}.gz")
    for each in (path, packed):
        if each.exists():
            return each
    raise FileAccessError(str(path), "read", FileNotFoundError(
        f"No such file; put {name} or {packed.name} into the folder {path.parent.absolute()}: mxc downloads no data "
        "sets"))


def get_im2rec_path(home_env: str = "MXNET_HOME") -> str:
    """The path of a program that is run as `python im2rec.py PREFIX ROOT ...`: tools/im2rec.py below the folder that
    the environment variable `home_env` names, where it is there, else mxc's own."""
    given = Path(getenv(home_env) or ".") / "tools" / "im2rec.py"
    return str(given) if getenv(home_env) and given.is_file() else im2rec.__file__
