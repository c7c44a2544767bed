"""Inference of one node: its operator's shape and dtype rules, what they find joined with what is known.

Shapes may be partial: None is an unknown rank, 0 an unknown dimension. A dtype that is not known is None. Facts flow
both ways: a rule may complete inputs from outputs.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import merge_dtypes
from mxc.compiler.ops.extent import FACTORS, STAND_INS, check_extent, zero_stands_as
from mxc.compiler.ops.rules import HOMES
from mxc.compiler.ops.shapes import merge as merge_shape

if TYPE_CHECKING:  # the graph is above this layer; a node is only read here
    from mxc.compiler.graph.graph import Node

Shape = tuple[int, ...]
T = TypeVar("T")


def is_complete(shape: Shape | None) -> bool:
    """True when rank and every dimension of `shape` are known."""
    return shape is not None and 0 not in shape


def merge_dtype(known: str | None, found: str | None) -> str | None:
    """What two statements about one array's dtype say together. Raises MXNetError when they differ."""
    return merge_dtypes([known, found])


def infer_shapes(node: Node, ins: Sequence[Shape | None], outs: Sequence[Shape | None],
                 ) -> tuple[list[Shape | None], list[Shape | None]]:
    """Everything the node's operator can say about its inputs' (auxiliary states included) and outputs' shapes.

    Raises MXNetError naming operator, node, every input with its shape, what was expected and what came.
    """
    found = _infer(node, "shape", merge_shape, ins, outs)
    for i, shape in enumerate([*found[0], *found[1]]):
        if shape is not None:
            try:
                check_extent(shape)
            except MXNetError as error:
                raise MXNetError(_message(node, f"{_names(node)[i]}: {error}", ins)) from None
    return found


def infer_dtypes(node: Node, ins: Sequence[str | None], outs: Sequence[str | None],
                 ) -> tuple[list[str | None], list[str | None]]:
    """Everything the node's operator can say about its inputs' and outputs' dtypes; errors as in `infer_shapes`."""
    return _infer(node, "dtype", merge_dtype, ins, outs)


def infer_node(node: Node, in_shapes: Sequence[Shape], in_dtypes: Sequence[str]) -> tuple[list[Shape], list[str]]:
    """Shapes and dtypes of all outputs of a node whose inputs are known completely.

    A 0 is an extent here, in inputs and in parameters. Raises MXNetError when they do not fit the operator, or do not
    determine its outputs.
    """
    if any(0 in shape for shape in in_shapes):
        return _infer_empty(node, in_shapes, in_dtypes)
    with zero_stands_as(STAND_INS[0]):
        found = _infer_known(node, in_shapes, in_dtypes)
    if any(dim >= STAND_INS[0] for shape in found[0] for dim in shape):  # A parameter has a 0.
        return _infer_empty(node, in_shapes, in_dtypes)
    return found


def _infer_known(node: Node, in_shapes: Sequence[Shape], in_dtypes: Sequence[str]) -> tuple[list[Shape], list[str]]:
    unknown = [None] * node.num_outputs
    shapes = infer_shapes(node, in_shapes, unknown)[1]
    types = infer_dtypes(node, in_dtypes, unknown)[1]
    for what, facts, known in (("shape", shapes, in_shapes), ("dtype", types, in_dtypes)):
        for i, fact in enumerate(facts):
            if fact is None or (isinstance(fact, tuple) and 0 in fact):
                raise MXNetError(_message(node, f"the {what} of output {i} does not follow from the inputs; "
                                                f"found {fact}", known))
    return [s for s in shapes if s is not None], [t for t in types if t is not None]


def of_stand_ins(first: Shape, last: Shape) -> Shape | None:
    """The true shape behind two that were inferred, one with each stand-in. None where an extent depends on an extent
    of 0 in another way than by a product or a sum, like that of a window."""
    made = []
    for one, other in zip(first, last, strict=True):
        if one % FACTORS[0] == other % FACTORS[1] == 0:
            made.append(0)
            continue
        slope, rest = divmod(one - other, STAND_INS[0] - STAND_INS[1])
        made.append(one - slope * STAND_INS[0])
        if rest or made[-1] < min(one, 0):
            return None
    return tuple(made)


def _infer_empty(node: Node, in_shapes: Sequence[Shape], in_dtypes: Sequence[str]) -> tuple[list[Shape], list[str]]:
    refusal = MXNetError(_message(node, "it does not take these arrays, of which some have no elements", in_shapes))
    found = []
    for stand_in in STAND_INS:
        try:
            with zero_stands_as(stand_in):
                found.append(_infer_known(node, [tuple(d or stand_in for d in shape) for shape in in_shapes],
                                          in_dtypes))
        except MXNetError as error:  # The text of the error may name stand-ins.
            raise refusal if any(0 in shape for shape in in_shapes) else error from None
    (first, types), (last, _) = found
    shapes = [of_stand_ins(*pair) for pair in zip(first, last, strict=True)]
    if None in shapes:
        raise refusal
    return [shape for shape in shapes if shape is not None], types


def _infer(node: Node, role: str, merge: Callable[[T | None, T | None], T | None],
           ins: Sequence[T | None], outs: Sequence[T | None]) -> tuple[list[T | None], list[T | None]]:
    """Run the operator's rule and merge what it returns into what was known."""
    assert node.op is not None
    rule = node.op.rule(role)
    if rule is None:
        raise MXNetError(f"operator {node.op.name} has no {role} rule; write `{role}: NAME` in its entry of ops.yaml, "
                         f"the name of a function of its family's {HOMES[role].file}.py or of basic's, such as "
                         f"`{role}: same_{role}`")
    try:
        found_ins, found_outs = rule(node.params, list(ins), list(outs))
    except MXNetError as error:
        raise MXNetError(_message(node, str(error), ins)) from None
    return (_merge_all(node, merge, ins, found_ins, 0, ins),
            _merge_all(node, merge, outs, found_outs, len(ins), ins))


def _merge_all(node: Node, merge: Callable[[T | None, T | None], T | None], known: Sequence[T | None],
               found: Iterable[T | None], first: int, ins: Sequence[object]) -> list[T | None]:
    """What is known of the inputs (or outputs), merged with what the rule found. first: the position in `_names` of the
    first of them."""
    merged: list[T | None] = []
    for old, new in zip(known, found, strict=True):
        if old is None or old == new:
            merged.append(new)
            continue
        try:
            merged.append(merge(old, new))
        except MXNetError as error:
            raise MXNetError(_message(node, f"{_names(node)[first + len(merged)]}: {error}", ins)) from None
    return merged


def _names(node: Node) -> list[str]:
    """The operator's names of the node's inputs and outputs."""
    assert node.op is not None
    return [*input_names(node), *node.op.output_names(node.params)]


def input_names(node: Node) -> list[str]:
    """The operator's names of the node's inputs and auxiliary states."""
    assert node.op is not None
    return [*node.op.all_names(node.params)]


def _message(node: Node, reason: str, ins: Sequence[object]) -> str:
    """`Operator 'node': reason`, then one line per input: its name at the operator, what feeds it, what is known.

    A node that has no name, as that of a call on arrays, is left out: `Operator: reason`.
    """
    assert node.op is not None
    lines = [f"{node.op.name}{f' {node.name!r}' if node.name else ''}: {reason}"]
    for i, (name, fact) in enumerate(zip(input_names(node), ins, strict=False)):
        source = f" ({node.inputs[i].node.name})" if i < len(node.inputs) else ""
        lines.append(f"  input {name}{source} = {'unknown' if fact is None else fact}")
    return "\n".join(lines)
