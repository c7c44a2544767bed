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
from mxc.runtime import engine, random
from mxc.runtime.array import Array
from mxc.runtime.context import Context, current_context


def invoke(name: str, inputs: Sequence[Array], params: Mapping[str, object], out: Sequence[Array] | None = None,
           context: Context | None = None, is_train: bool = False) -> list[Array]:
    """The visible outputs of operator `name` on `inputs` (auxiliary states last), or `out`, filled with them.

    params: Python values or strings; the count of a variable number of inputs is filled in. context: where the results
    go when there is no input. Raises MXNetError when the inputs do not fit the operator, or the results `out`.
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
    if out is None:
        where = inputs[0].context if inputs else context or current_context()
        results = [Array.empty(s, d, where) for s, d in zip(shapes[:visible], dtypes, strict=False)]
    else:
        results = list(out)
        _check_results(name, results, shapes[:visible])

    def compute() -> None:
        rng = None if op.rule("reference") is None else random.generator()  # expressions draw no numbers
        try:
            values = op.reference(node.params, [a.data for a in inputs], dtypes, is_train, rng)
        except MemoryError as error:
            raise OutOfMemoryError(f"operator {name}: out of memory: {error}") from None
        for result, value in zip(results, values, strict=False):
            with np.errstate(all="ignore"):
                np.copyto(result.data, value, casting="unsafe")

    engine.push(compute, [a.variable for a in inputs], [a.variable for a in results], name)
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
