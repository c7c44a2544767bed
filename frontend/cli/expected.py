"""Files of expected outputs: a model's inputs and what it made of them, under mxc or anywhere else.

A file is NumPy's .npz with an array `in/NAME` for each input and `out/NAME` for each output; without `out/`, as
`mxc run --output` writes it, the names are those of outputs. A number in place of an output's name is its place among
the model's outputs, from 0 on.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mxc.cli.output_files import write_arrays
from mxc.compiler.error import ModelFileError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

IN, OUT = "in/", "out/"  # before names of inputs and of outputs


class Expected(NamedTuple):
    """inputs, outputs: values by name. path: of the file."""

    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    path: str

    def of(self, outputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The expected values of what a model made, in order. Raises ModelFileError when one is not in the file, or has
        another shape there."""
        there = dict(self.outputs)
        if {*there} == {str(place) for place in range(len(outputs))}:
            there = {name: there[str(place)] for place, name in enumerate(outputs)}
        for name, value in outputs.items():
            if name not in there:
                raise ModelFileError(self.path, f"it has no output {name!r}{nearest(name, there)}; it has "
                                     f"{', '.join(there) or 'none'}\nname each as the model does, out/{name}, or all "
                                     "by their places, out/0 and so on")
            if there[name].shape != value.shape:
                raise ModelFileError(self.path, f"its output {name!r} has the shape {there[name].shape}, and the "
                                     f"model's has {value.shape}\ngive the inputs that it was made of, with --input")
        return [there[name] for name in outputs]


def read(path: str) -> Expected:
    """The arrays of a file. Raises ModelFileError for what is no archive of arrays of numbers; pickles are refused."""
    import numpy as np

    from mxc.compiler.ops.dtypes import is_number
    from mxc.runtime import npz_file

    arrays = npz_file.read(path)
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or not is_number(array.dtype):
            raise ModelFileError(path, f"{name} is no array of numbers")
    inputs = {name.removeprefix(IN): array for name, array in arrays.items() if name.startswith(IN)}
    outputs = {name.removeprefix(OUT): array for name, array in arrays.items() if not name.startswith(IN)}
    return Expected(inputs, outputs, path)


def write(path: str, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]) -> None:
    """Write such a file. Raises FileAccessError when the file system does not allow it."""
    write_arrays(path, {f"{IN}{name}": array for name, array in inputs.items()} |
                 {f"{OUT}{name}": array for name, array in outputs.items()})
