"""Eager evaluation: one operator on arrays, through the same table as graphs."""
from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from mxc.compiler.error import MXNetError, OutOfMemoryError
from mxc.compiler.graph.graph import Node
from mxc.compiler.ops import table
from mxc.compiler.ops.infer import infer_node
from mxc.runtime import engine, random, tape
from mxc.runtime.array import Array
from mxc.runtime.context import Context, current_context


def invoke(name: str, inputs: Sequence[Array], params: Mapping[str, object], out: Sequence[Array] | None = None,
           context: Context | None = None, is_train: bool | None = None) -> list[Array]:
    """The visible outputs of operator `name` on `inputs` (auxiliary states last), or `out`, filled with them.

    params: Python values or strings; the count of a variable number of inputs is filled in. context: where the results
    go when there is no input. is_train: None for this thread's mode. Raises MXNetError when the inputs do not fit the
    operator, or the results `out`.
    """
    # 0.0 and -0.0 are equal, but not the same parameter
    signs = tuple(k for k, v in params.items() if isinstance(v, float) and v == 0 and math.copysign(1, v) < 0)
    facts = (name, tuple(params.items()), tuple(a.shape for a in inputs), tuple(a.dtype for a in inputs), signs)
    try:
        node, shapes, dtypes = _resolve(*facts)
    except TypeError:  # a parameter that cannot be hashed, as a list
        node, shapes, dtypes = _resolve.__wrapped__(*facts)
    op = node.op
    assert op is not None
    visible = op.num_visible(node.params)
    if out is not None:
        _check_results(name, out, shapes[:visible])
    return _run(node, shapes, dtypes, inputs, out, context, is_train)[:visible]


def apply(node: Node, inputs: Sequence[Array], is_train: bool | None = None) -> list[Array]:
    """All outputs, hidden ones too, of a graph's node on the values of its inputs; names of operators play no part."""
    return _run(node, *infer_node(node, [a.shape for a in inputs], [a.dtype for a in inputs]), inputs, None, None,
                is_train, hidden=True)


def _run(node: Node, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], inputs: Sequence[Array],
         out: Sequence[Array] | None, context: Context | None, is_train: bool | None,
         hidden: bool = False) -> list[Array]:
    """Push the work of a node, and record it; its visible outputs at least, all with `hidden` or if recorded."""
    op, state = node.op, tape.state
    assert op is not None
    recording, train = state.recording, state.training if is_train is None else is_train
    if recording and out is not None:
        tape.check_writes(op.name, out, inputs)
    results, count = list(out or ()), len(shapes) if recording or hidden else op.num_visible(node.params)
    where = inputs[0].context if inputs else context or current_context()
    results += [Array.empty(s, d, where) for s, d in zip(shapes[len(results):count], dtypes[len(results):count],
                                                         strict=True)]

    def compute() -> None:
        rng = None if op.rule("reference") is None else random.generator()  # expressions draw no numbers
        try:
            values = op.reference(node.params, [a.data for a in inputs], dtypes, train, rng)
        except MemoryError as error:
            raise OutOfMemoryError(f"operator {op.name}: out of memory: {error}") from None
        for result, value in zip(results, values, strict=False):
            with np.errstate(all="ignore"):
                np.copyto(result.data, value, casting="unsafe")

    engine.push(compute, [a.variable for a in inputs], [a.variable for a in results], op.name)
    if recording:
        tape.record(op, node.params, inputs, results, train)
    return results


@functools.lru_cache(maxsize=4096)
def _resolve(name: str, params: tuple[tuple[str, object], ...], shapes: tuple[tuple[int, ...], ...],
             dtypes: tuple[str, ...], signs: tuple[str, ...]) -> tuple[Node, list[tuple[int, ...]], list[str]]:
    """A node of the operator, and the shapes and dtypes of its outputs. signs: names of parameters that are -0.0."""
    op = table.get(name)
    given = dict(params)
    if op.variadic:
        given = {op.variadic: len(shapes), **given}
    node = Node(op, "", None, op.make_params(given))
    expected = [*op.input_names(node.params), *op.aux_names(node.params)]
    if len(shapes) != len(expected):
        raise MXNetError(f"operator {name} takes {len(expected)} arrays ({', '.join(expected) or 'none'}), "
                         f"got {len(shapes)}")
    for what, shape in zip(expected, shapes, strict=True):
        if 0 in shape:
            raise MXNetError(f"operator {name}: {what} has the shape {shape}; operators take arrays with elements")
    return node, *infer_node(node, shapes, dtypes)


def _check_results(name: str, results: Sequence[Array], shapes: Sequence[tuple[int, ...]]) -> None:
    if len(results) != len(shapes):
        raise MXNetError(f"operator {name} gives {len(shapes)} outputs, out has {len(results)}")
    for i, (result, shape) in enumerate(zip(results, shapes, strict=True)):
        if result.shape != shape:
            raise MXNetError(f"operator {name}: output {i} has the shape {shape}, out has {result.shape}; "
                             "they must be the same")


def reshaped(shape: tuple[int, ...], wanted: tuple[int, ...], reverse: bool = False) -> tuple[int, ...]:
    """What the operator Reshape makes of `shape` with the codes in `wanted`. Raises MXNetError when they do not fit."""
    op = table.get("Reshape")
    node = Node(op, "", None, op.make_params({"shape": wanted, "reverse": reverse}))
    return infer_node(node, [shape], ["float32"])[0][0]
