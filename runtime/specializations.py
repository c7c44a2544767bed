"""The remembered specializations of operators, and their work: what `invoke` and graphs that run node by node share."""
from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

from mxc.compiler.graph.graph import Node
from mxc.compiler.ops.infer import infer_node
from mxc.runtime import device_operator, engine, random, tape
from mxc.runtime.array import Array
from mxc.runtime.context import GPU, Context, current_context
from mxc.runtime.eager import Specialization
from mxc.runtime.eager_code import Code
from mxc.runtime.storage import MemoryBlock

SPECIALS_KEPT = 4096
remembered: dict[Hashable, Specialization] = {}


def remember(facts: Hashable, special: Specialization) -> Specialization:
    """The specialization, remembered under these facts."""
    if len(remembered) >= SPECIALS_KEPT:
        remembered.clear()
    remembered[facts] = special
    return special


def forget(name: str) -> None:
    """Forget the specializations of an operator: another may have had its name."""
    for facts in [facts for facts in list(remembered) if isinstance(facts, tuple) and facts[0] == name]:
        remembered.pop(facts, None)


def made(node: Node, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], is_train: bool) -> Specialization:
    """A new specialization of a node's operator. Raises MXNetError when the inputs do not fit it."""
    return Specialization(node, shapes, dtypes, *infer_node(node, shapes, dtypes), is_train)


def shared(special: Specialization) -> Specialization:
    """The remembered specialization that is equal to this one: what was compiled for a GPU is kept with it."""
    return special_of(special.node, tuple(special.in_shapes), tuple(special.in_dtypes), special.is_train)


def special_of(node: Node, shapes: tuple[tuple[int, ...], ...], dtypes: tuple[str, ...],
               is_train: bool) -> Specialization:
    """The remembered specialization of a node's operator on inputs of these shapes and dtypes."""
    facts = (node.op, node.params, shapes, dtypes, is_train)
    special = remembered.get(facts)
    if special is None:  # made of a node without inputs, so that what is remembered keeps no graph alive
        special = remember(facts, made(Node(node.op, "", None, node.params), shapes, dtypes, is_train))
    return special


def run(special: Specialization, inputs: Sequence[Array], out: Sequence[Array] | None, context: Context | None,
        hidden: bool = False, steady: tuple[Code, MemoryBlock] | None = None) -> list[Array]:
    """Push the work of a specialization, and record it while the thread records. The visible outputs; with `hidden`, or
    when it is recorded, all of them. steady: what `special.steady` found, if anything."""
    recording, shapes, dtypes = tape.state.recording, special.shapes, special.dtypes
    if recording and out is not None:
        tape.check_writes(special.op.name, out, inputs)
    results, count = list(out or ()), len(shapes) if recording or hidden else special.visible
    where = inputs[0].context.computing if inputs else out[0].context if out else (context or current_context()).home
    results += [Array.empty(s, d, where) for s, d in zip(shapes[len(results):count], dtypes[len(results):count],
                                                         strict=True)]
    on_gpu = where.device_typeid == GPU
    code, prepared = steady or (None if on_gpu else special.code(), None)
    draw = random.take(where) if special.draws else (0, 0)  # now: in the program's order
    work = partial(device_operator.compute, special, inputs, results, draw) if on_gpu else (
        lambda: special.compute(inputs, results, code, draw, prepared))
    engine.push(work, [a.variable for a in inputs], [a.variable for a in results], special.op.name,
                special.small and not on_gpu, code is not None and code.brief)
    if recording:
        tape.record(special.op, special.params, inputs, results, special.is_train, special)
    return results
