"""Running routines over compressed rows (compiler/kernel/compressed.py) on parts, in the middle of other work."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CodeType

import numpy as np

from mxc.compiler.kernel import compressed  # noqa: F401 (it declares the routines)
from mxc.compiler.kernel.routines import spec
from mxc.runtime import runner
from mxc.runtime.step_table import StepTable

Constants = tuple[tuple[str, object], ...]


class _Routine:
    """A routine for arrays of given dtypes. address: of its code."""

    def __init__(self, name: str, dtypes: tuple[np.dtype, ...], integers: Sequence[int], constants: Constants):
        from mxc.compiler.api import compile_routine  # only now: small arrays of a program may need no compiler

        declared = spec.find(name)
        self.address = compile_routine(name, [dtype.name for dtype in dtypes], integers, dict(constants),
                                       len(declared.inputs))
        self._units: CodeType = compile(declared.units, name, "eval")
        self._names, self._constants = declared.integers, {"__builtins__": {}, **dict(constants)}

    def table(self, arrays: Sequence[np.ndarray], integers: Sequence[int]) -> StepTable | None:
        """The table of one step that runs it; None where there is nothing to do."""
        units = eval(self._units, self._constants, dict(zip(self._names, integers, strict=True)))  # our own text
        addresses = [array.__array_interface__["data"][0] for array in arrays]
        return StepTable([(self.address, [*addresses, *integers], units)]) if units else None


@functools.lru_cache(maxsize=1024)
def _routine(name: str, dtypes: tuple[np.dtype, ...], constants: Constants, count: int) -> _Routine:
    return _Routine(name, dtypes, (1,) * count, constants)


def run(name: str, arrays: Sequence[np.ndarray], integers: Sequence[int], **constants: object) -> None:
    """Run a routine on arrays: what it reads, then what it writes, which is C-contiguous."""
    flat = [np.ascontiguousarray(array) for array in arrays]
    dtypes = tuple([array.dtype for array in flat])
    table = _routine(name, dtypes, tuple(constants.items()), len(integers)).table(flat, integers)
    if table is not None:
        runner.run(table)


Run = Callable[..., None]
