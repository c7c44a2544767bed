"""What a routine declares, how it is found, and what a kernel of it means."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel.ir import FLOATS, RoutineKernel, computing_dtype
from mxc.compiler.ops.dtypes import widened, write

DTYPES = (*FLOATS, "bool", "uint8", "int8", "int32", "int64", "uint32", "uint64")


@dataclass(frozen=True)
class Spec:
    """A routine: `function(first, last, inputs..., outputs..., scratch..., integers..., *, constants...)`.

    A call of it does the units first <= u < last, which are independent of each other. inputs, outputs: names of flat
    arrays. scratch: (name, dtype, count) of arrays that are private to the running thread and hold anything at first.
    integers: names of run-time integers. constants: names of what is baked into the code; a constant that is a dtype
    is a function that converts to it. units, and the counts of scratch, are Python expressions over integers and
    constants; a scratch dtype may be the name of a constant. over: pairs of an output and an input that may be one
    array where their sizes are equal: what the routine writes to a place then depends on what it has read there.
    """

    name: str
    function: Callable[..., None]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scratch: tuple[tuple[str, str, str], ...]
    integers: tuple[str, ...]
    constants: tuple[str, ...]
    units: str
    over: tuple[tuple[str, str], ...]

    def may_overwrite(self, output: int, given: int) -> bool:
        """Whether the output and the input at these positions among all arrays may be one array."""
        names = (*self.inputs, *self.outputs)
        return (names[output], names[given]) in self.over


Function = Callable[..., None]
_declared: dict[str, Spec] = {}  # of the modules that are imported, by name


def routine(inputs: Sequence[str], outputs: Sequence[str], units: str,
            scratch: Mapping[str, tuple[str, str]] | None = None,
            over: Mapping[str, str] | None = None) -> Callable[[Function], Function]:
    """Declares the decorated function to be a routine; see Spec. Raises MXNetError when its parameters do not begin
    with the arrays named here, and when there is another routine of its name."""

    def declare(function: Function) -> Function:
        parameters = inspect.signature(function).parameters
        arrays = ("first", "last", *inputs, *outputs, *(scratch or {}))
        names = [n for n, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
        if tuple(names[:len(arrays)]) != arrays:
            raise MXNetError(f"routine {function.__name__}: expected its parameters to begin {', '.join(arrays)}, got "
                             f"{', '.join(names)}")
        made = Spec(
            function.__name__, function, tuple(inputs), tuple(outputs),
            tuple((name, *kind) for name, kind in (scratch or {}).items()), tuple(names[len(arrays):]),
            tuple(n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY), units, tuple((over or {}).items()))
        if made.name in _declared:
            raise MXNetError(f"the routine {made.name} is in {_declared[made.name].function.__module__} and in "
                             f"{function.__module__}")
        _declared[made.name] = made
        return function

    return declare


def specs() -> Mapping[str, Spec]:
    """Every routine by name: those of all operators."""
    from mxc.compiler.ops import rules

    for family in rules.families():
        rules.file_of(family, "kernel")
    return _declared


def find(name: str) -> Spec:
    """The routine of that name. Raises MXNetError when no operator's family declares it."""
    found = _declared.get(name) or specs().get(name)
    if found is None:
        raise MXNetError(f"there is no routine {name!r}; there are {', '.join(sorted(specs()))}")
    return found


def numbers(kernel: RoutineKernel) -> dict[str, object]:
    """Integers and constants of a kernel by name."""
    return dict(zip(find(kernel.routine).integers, kernel.extents, strict=True)) | dict(kernel.constants)


def evaluate(text: str, names: Mapping[str, object]) -> int:
    """The value of an expression of a declaration, over integers and constants."""
    value = eval(text, {"__builtins__": {}, "min_": min, "max_": max}, dict(names))  # our own source's text
    assert isinstance(value, int)
    return value


def units(kernel: RoutineKernel) -> int:
    """How many units of work the kernel has."""
    return evaluate(find(kernel.routine).units, numbers(kernel))


def scratch(kernel: RoutineKernel) -> list[tuple[str, str, int]]:
    """(name, dtype, count) of each scratch array; float16 and bfloat16 are kept as float32."""
    names = numbers(kernel)
    found = []
    for name, dtype, count in find(kernel.routine).scratch:
        found.append((name, computing_dtype(str(names.get(dtype, dtype))), evaluate(count, names)))
    return found


def run(kernel: RoutineKernel, arrays: Sequence[np.ndarray]) -> None:
    """Runs `kernel` on flat NumPy arrays in place: what its compiled code has to do."""
    spec, wide = find(kernel.routine), []
    for array in arrays:  # float16 and bfloat16 are computed as float32
        wide.append(array.astype(np.float32) if array.dtype == np.float16 else widened(array))
    spare = [np.zeros(count, dtype) for _, dtype, count in scratch(kernel)]
    constants: dict[str, object] = {}
    for name, value in kernel.constants:
        constants[name] = np.dtype(computing_dtype(str(value))).type if value in DTYPES else value
    with np.errstate(over="ignore"):  # integers wrap
        spec.function(0, units(kernel), *wide, *spare, *kernel.extents, **constants)
    for array, computed in zip(arrays, wide, strict=True):
        if computed is not array:
            write(array, computed)
