"""What the real MXNet computes, case by case: the table of cases and the answers stored beside it.

A case is one operator with its parameters, applied to inputs of given shapes and dtypes. `make_golden.py` asks the
real MXNet and writes the answers to `<group>.npz`; `load()` gives them back. An answer holds the inputs, the outputs,
and for a training case also the head gradients, the gradients of the inputs and the auxiliary states after backward; a
case that MXNet refuses holds its message instead, and must be refused here too.
"""
from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Input:
    """One input: uniform in [low, high), rounded down where `integer`; `grad`: its gradient is asked for.
    `dominant`: to the diagonals of its square matrices their size is added, so that they are far from singular."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -1.0
    high: float = 1.0
    integer: bool = False
    grad: bool = True
    dominant: bool = False


@dataclass(frozen=True)
class Case:
    """One operator applied to inputs. `train`: training forward and backward; else inference forward alone."""

    name: str
    op: str
    attrs: dict[str, str]
    inputs: tuple[Input, ...]
    train: bool = True
    list_input: bool = False


@dataclass
class Answer:
    """What MXNet said to `case`. `error` is None unless it refused; `grads` and `aux` are by input name."""

    case: Case
    inputs: dict[str, np.ndarray]
    outputs: list[np.ndarray] = field(default_factory=list)
    heads: list[np.ndarray] = field(default_factory=list)
    grads: dict[str, np.ndarray] = field(default_factory=dict)
    aux: dict[str, np.ndarray] = field(default_factory=dict)
    error: str | None = None


def case(op: str, label: str, shapes: Mapping[str, tuple[int, ...]], attrs: Mapping[str, object] | None = None,
         dtype: str = "float32", dtypes: Mapping[str, str] | None = None, span: tuple[float, float] = (-1, 1),
         spans: Mapping[str, tuple[float, float]] | None = None, integer: Iterable[str] = (),
         no_grad: Iterable[str] = (),
         train: bool = True, list_input: bool = False) -> Case:
    """A case in few words: `dtype` and `span` hold for all inputs but those named in `dtypes` and `spans`."""
    made = []
    for name, shape in shapes.items():
        kind = (dtypes or {}).get(name, dtype)
        low, high = (spans or {}).get(name, span)
        made.append(Input(name, tuple(shape), kind, low, high, name in integer, name not in no_grad))
    strings = {k: str(v) for k, v in (attrs or {}).items()}
    return Case(f"{op}-{label}-{dtype}", op, strings, tuple(made), train, list_input)


def modules(function: str) -> dict[str, ModuleType]:
    """The modules of this folder that define a function of that name without parameters, by name."""
    paths = [p for p in sorted(HERE.glob("*.py")) if f"\ndef {function}() -> " in p.read_text()]
    return {path.stem: importlib.import_module(f"golden.{path.stem}") for path in paths}


def tables() -> dict[str, list[Case]]:
    """All cases by group: a group is a module of this folder with a function `cases`, and names the file of answers."""
    groups = {name: module.cases() for name, module in modules("cases").items()}
    names = [c.name for group in groups.values() for c in group]
    repeated = {n for n in names if names.count(n) > 1} if len(set(names)) < len(names) else set()
    assert not repeated, f"case names used twice: {sorted(repeated)}"
    return groups


def store(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as one block of bytes and an index: hundreds of small arrays stay small."""
    index, parts, offset = {}, [], 0
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        index[name] = [str(array.dtype), list(array.shape), offset]
        parts.append(raw)
        offset += len(raw)
    block = np.frombuffer(b"".join(parts), np.uint8)
    np.savez_compressed(path, index=np.frombuffer(json.dumps(index).encode(), np.uint8), block=block)


def fetch(path: Path) -> dict[str, np.ndarray]:
    """The arrays that `store` wrote."""
    with np.load(path) as file:
        index, block = json.loads(file["index"].tobytes()), file["block"].tobytes()
    return {name: np.frombuffer(block, dtype, int(np.prod(shape)), offset).reshape(shape).copy()
            for name, (dtype, shape, offset) in index.items()}


def load(group: str | None = None) -> list[Answer]:
    """The answers to all cases, or to those of one group, in the table's order."""
    answers = []
    for name, cases in tables().items():
        if group not in (None, name):
            continue
        arrays = fetch(HERE / f"{name}.npz")
        of_case: dict[str, dict[str, np.ndarray]] = {}
        for key, array in arrays.items():
            owner, rest = key.split("/", 1)
            of_case.setdefault(owner, {})[rest] = array
        answers += [_answer(c, of_case[c.name]) for c in cases]
    return answers


def _answer(owner: Case, arrays: Mapping[str, np.ndarray]) -> Answer:
    answer = Answer(owner, {})
    for key, array in arrays.items():
        kind, _, name = key.partition("/")
        if kind == "error":
            answer.error = array.tobytes().decode()
        elif kind in ("out", "head"):
            (answer.outputs if kind == "out" else answer.heads).append(array)
        else:
            {"in": answer.inputs, "grad": answer.grads, "aux": answer.aux}[kind][name] = array
    return answer
