"""A case as every peer reads it: the symbol's JSON with shapes, values by name, and the graph as a Python function.

Needs NumPy alone: peers run it in environments that have neither mxc nor MXNet.
"""
from __future__ import annotations

import ast
import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

LEARNING_RATE = 1e-4
Shape = tuple[int, ...]


class Unsupported(Exception):
    """What a peer has no way to run; the text says what."""


def reshape(x: Any, shape: Shape, **_: Any) -> Any:
    """MXNet's Reshape of an array of any library with such a method; 0 and -1 alone of its special numbers."""
    if any(n < -1 for n in shape):
        raise Unsupported(f"Reshape to {shape}")
    return x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(shape)])


def batch_dot(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, **_: Any) -> Any:
    """MXNet's batch_dot of arrays of any library with `mT` and `@`."""
    return (a.mT if transpose_a else a) @ (b.mT if transpose_b else b)


@dataclass
class Node:
    """An operator with its attributes as Python values and its inputs as (node, output) indices; "null": a variable."""

    op: str
    name: str
    attrs: dict[str, Any]
    inputs: list[tuple[int, int]]


@dataclass
class Case:
    """One computation. `mode`: "forward"; "backward", with head gradients of `values`; "step", which also updates."""

    name: str
    mode: str
    graph: dict[str, Any]
    shapes: dict[str, Shape]  # of the arguments, in the graph's order
    aux: dict[str, Shape]
    inputs: list[str]  # arguments that are data, not parameters
    wrt: list[str]  # arguments whose gradients are computed
    heads: list[Shape]  # shapes of the outputs
    compare: list[int] | None = None  # outputs compared between peers; None: all
    ordered: bool = True  # False: outputs are compared sorted

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def load(path: str | Path) -> Case:
        made = json.loads(Path(path).read_text())
        for key in ("shapes", "aux"):
            made[key] = {name: tuple(shape) for name, shape in made[key].items()}
        made["heads"] = [tuple(shape) for shape in made["heads"]]
        return Case(**made)

    @cached_property
    def nodes(self) -> list[Node]:
        return [Node(n["op"], n["name"], {k: value(v) for k, v in n.get("attrs", {}).items()},
                     [(i[0], i[1]) for i in n["inputs"]]) for n in self.graph["nodes"]]

    @property
    def outputs(self) -> list[tuple[int, int]]:
        return [(head[0], head[1]) for head in self.graph["heads"]]

    def arrays(self) -> dict[str, np.ndarray]:
        """Every argument's and auxiliary state's values."""
        return {name: values(name, shape) for name, shape in {**self.shapes, **self.aux}.items()}

    def head_gradients(self) -> list[np.ndarray]:
        return [values(f"head{i}", shape) for i, shape in enumerate(self.heads)]

    def only(self, *modes: str) -> None:
        if self.mode not in modes:
            raise Unsupported(f"no {self.mode} here, only {', '.join(modes)}")


def value(text: str) -> Any:
    """An attribute's text as a Python value, where it is one."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def values(name: str, shape: Iterable[int]) -> np.ndarray:
    """Float32 values for the array of that name: the same in every process, of a size that keeps activations tame."""
    shape = tuple(shape)
    draw = np.random.default_rng(zlib.crc32(name.encode())).random(shape, dtype=np.float32)
    if name.endswith("label"):
        return np.floor(draw * 10)
    if name.endswith(("_var", "gamma")):
        return draw * np.float32(0.4) + np.float32(0.8)
    draw = draw * 2 - 1
    if name.endswith("weight") and len(shape) > 1:
        return draw * np.float32((4 / max(1, int(np.prod(shape[1:])))) ** 0.5)
    if name.endswith(("_mean", "beta", "bias", "parameters")):
        return draw * np.float32(0.1)
    return draw


def missing(nodes: Iterable[Node], known: Iterable[str]) -> list[str]:
    """Operators among the nodes that are not in `known`."""
    return sorted({n.op for n in nodes} - {"null"} - set(known))


def pair(attrs: dict[str, Any], key: str, rank: int, default: int) -> Shape:
    """A window's attribute (`kernel`, `stride`, `pad`, `dilate`) with its default filled in."""
    return tuple(attrs.get(key) or ()) or (default,) * rank


def pooling(attrs: dict[str, Any], spatial: Shape) -> tuple[Shape, Shape, list[tuple[int, int]]]:
    """(kernel, stride, padding before and behind each axis) of a Pooling over `spatial`.

    The convention "full" rounds the number of windows up: it takes more padding behind.
    """
    if attrs.get("global_pool"):
        return spatial, (1,) * len(spatial), [(0, 0)] * len(spatial)
    rank = len(spatial)
    kernel, stride, pad = attrs["kernel"], pair(attrs, "stride", rank, 1), pair(attrs, "pad", rank, 0)
    padding = []
    for size, k, s, p in zip(spatial, kernel, stride, pad, strict=True):
        left = (size + 2 * p - k) % s
        padding.append((p, p + (s - left if left and attrs.get("pooling_convention") == "full" else 0)))
    return kernel, stride, padding


def function(case: Case, ops: dict[str, Callable], variables: dict[str, str], signature: str,
             others: dict[str, Any] | None = None) -> Callable:
    """The graph as a Python function of `signature`, which returns the list of outputs.

    `ops` maps an operator's name to a function of its inputs and, as keywords, attributes; `variables` maps a variable
    to the expression that reads it. The function is source text with every constant in it, so that a tracing compiler
    sees nothing but calls on arrays. Raises Unsupported, with the operators, where `ops` lacks some.
    """
    if lacking := missing(case.nodes, ops):
        raise Unsupported(f"no {', '.join(lacking)}")
    lines = [f"def run({signature}):"]
    counts = _output_counts(case)
    for i, node in enumerate(case.nodes):
        if node.op == "null":
            lines.append(f"    v{i} = {variables[node.name]}")
            continue
        arguments = [_reference(counts, *source) for source in node.inputs]
        arguments += [f"{k}={v!r}" for k, v in node.attrs.items() if not k.startswith("__")]
        lines.append(f"    v{i} = {node.op}({', '.join(arguments)})")
    heads = ", ".join(_reference(counts, *source) for source in case.outputs)
    lines.append(f"    return [{heads}]")
    scope = {**ops, **(others or {})}
    exec(compile("\n".join(lines), f"<{case.name}>", "exec"), scope)
    return scope["run"]


def _output_counts(case: Case) -> dict[int, int]:
    """How many outputs of each node are read; operators with one give the array, others a tuple."""
    counts = dict.fromkeys(range(len(case.nodes)), 1)
    for node in case.nodes:
        for source, output in node.inputs:
            counts[source] = max(counts[source], output + 1)
    for source, output in case.outputs:
        counts[source] = max(counts[source], output + 1)
    return counts


def _reference(counts: dict[int, int], node: int, output: int) -> str:
    return f"v{node}" if counts[node] == 1 else f"v{node}[{output}]"
