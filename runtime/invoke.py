"""Eager evaluation: one operator on arrays, through the same table as graphs."""
from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NoReturn

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Node
from mxc.compiler.ops import table
from mxc.compiler.ops.infer import infer_node, input_names
from mxc.compiler.ops.sparse_form import makes_parts
from mxc.compiler.ops.storage import DEFAULT
from mxc.runtime import bulk, engine, specializations, tape
from mxc.runtime.array import Array, InPartsError, semantics
from mxc.runtime.context import GPU, Context
from mxc.runtime.eager import Specialization, quiet


# long: every call of an operator passes here, and a function more costs as much as a small kernel
def invoke(name: str, inputs: Sequence[Array], params: Mapping[str, object], out: Sequence[Array] | None = None,
           context: Context | None = None, is_train: bool | None = None) -> list[Array]:
    """The visible outputs of operator `name` on `inputs` (auxiliary states last), or `out`, filled with them.

    params: Python values or strings; the count of a variable number of inputs is filled in. context: where the results
    go when there is no input; else they are where the first input is, as in MXNet. is_train: None for this thread's
    mode. Raises MXNetError when the inputs do not fit the operator, or the results `out`.
    """
    state = tape.state
    train = state.training if is_train is None else is_train
    given, signs = (), ()  # type: tuple[tuple[str, object], ...], tuple[str, ...]
    if params:  # 0.0 and -0.0 are equal, but not the same parameter
        given = tuple(params.items())
        signs = tuple([k for k, v in given if v.__class__ is float and v == 0 and math.copysign(1, v) < 0])
    key: list[Hashable] = [name, train, given, signs]
    free, memory = out is None and engine.observer is None and bool(inputs), []
    try:
        for array in inputs:
            if array.__class__ is not Array and array.stype == DEFAULT:
                return _on_gpu(name, given, inputs, out, context, train)
            memory.append(array.memory)
            key += (array.memory.shape, array.dtype)
            free = free and array.variable.busy is None
        facts = tuple(key)
        try:
            special = specializations.remembered.get(facts)
            if special is None:
                special = specializations.remember(facts, _resolve(name, given, inputs, train))
        except TypeError:  # a parameter that cannot be hashed, as a list
            made = _resolve(name, given, inputs, train)
            special = specializations.special_of(made.node, tuple(made.in_shapes), tuple(made.in_dtypes), train)
    except InPartsError:  # arrays, or results, that are kept in parts
        from mxc.runtime import sparse_invoke  # only now: most programs have none

        try:
            node = _known_node(name, given, signs, len(inputs))
        except TypeError:
            node = _node(name, given, len(inputs))
        return sparse_invoke.invoke(node.op, node.params, inputs, out, train)  # type: ignore[arg-type]
    if special.in_scope and not semantics.np_shape:
        _refuse_empty(special.node, special.in_shapes, special.shapes)
    if special.can_gather and out is None and not state.recording and (special.is_long or not free) and (
            not semantics.np_shape):
        gathered = bulk.add(special, inputs)
        if gathered is not None:
            return gathered
    steady = special.steady.find(inputs) if special.steady is not None and not state.recording else None
    if steady is not None:
        code, prepared = steady
        if free and code.small:
            result = Array.empty(special.shapes[0], special.dtypes[0], inputs[0].context.computing)
            code.run([a.address for a in inputs], [result.address], result.context, (0, 0), prepared.address)
            return [result]
    if free and special.short is not None:  # nothing to wait for, and a new array: past the engine
        try:
            value = quiet.enter(special.short, *memory)
        except Exception:  # the thread is in the context already, or it is an error, which the engine is to note
            return specializations.run(special, inputs, None, context)[:special.visible]
        where = inputs[0].context
        result = Array(value, where if where.device_typeid <= GPU else where.computing, engine.Variable(),
                       special.dtypes[0])
        if state.recording:
            tape.record(special.op, special.params, inputs, [result], train, special)
        return [result]
    if out is not None:
        _check_results(name, out, special.shapes[:special.visible])
        if any(result.stype != DEFAULT for result in out):
            from mxc.runtime import sparse_invoke

            return sparse_invoke.invoke(special.op, special.params, inputs, out, train, context=context)
    return specializations.run(special, inputs, out, context, steady=steady)[:special.visible]


def _node(name: str, params: tuple[tuple[str, object], ...], count: int) -> Node:
    """The operator with these parameters on so many arrays. Raises MXNetError where it takes another number."""
    op, given = table.get(name), dict(params)
    if op.variadic:
        given = {op.variadic: count, **given}
    node = Node(op, "", None, op.make_params(given))
    expected = input_names(node)
    if count != len(expected):
        raise MXNetError(f"operator {name} takes {len(expected)} arrays ({', '.join(expected) or 'none'}), "
                         f"got {count}")
    return node


def _on_gpu(name: str, params: tuple[tuple[str, object], ...], inputs: Sequence[Array], out: Sequence[Array] | None,
            context: Context | None, is_train: bool) -> list[Array]:
    """What `invoke` does where some input is on a GPU. Raises MXNetError where others are not there."""
    first = inputs[0].context
    for i, array in enumerate(inputs):
        if array.context.gpu_number != first.gpu_number:
            raise MXNetError(f"operator {name} takes arrays of one device: the first is on {first}, number {i + 1} on "
                             f"{array.context}; copy one of them, as .as_in_context({array.context}) does")
    special = _resolve(name, params, inputs, is_train)
    if special.in_scope and not semantics.np_shape:
        _refuse_empty(special.node, special.in_shapes, special.shapes)
    if out is not None:
        _check_results(name, out, special.shapes[:special.visible])
    return specializations.run(specializations.shared(special), inputs, out, context)[:special.visible]


@functools.lru_cache(maxsize=1024)
def _known_node(name: str, params: tuple[tuple[str, object], ...], signs: tuple[str, ...], count: int) -> Node:
    """As `_node`. signs: the parameters that are -0.0, which is equal to 0.0."""
    return _node(name, params, count)


def _resolve(name: str, params: tuple[tuple[str, object], ...], inputs: Sequence[Array],
             is_train: bool) -> Specialization:
    """The specialization of the operator on these inputs. Raises InPartsError where it makes an array that is kept in
    parts."""
    node = _node(name, params, len(inputs))
    shapes, dtypes = tuple(a.shape for a in inputs), tuple(a.dtype for a in inputs)
    assert node.op is not None
    if makes_parts(node.op, node.params, len(inputs)):
        raise InPartsError(f"operator {name} makes an array that is kept in parts")
    if not semantics.np_shape and any(0 in shape for shape in shapes):  # other errors would be about the scope's shapes
        _refuse_empty(node, shapes, ())
    return specializations.made(node, shapes, dtypes, is_train)


def _refuse_empty(node: Node, shapes: Sequence[tuple[int, ...]], made: Sequence[tuple[int, ...]]) -> NoReturn:
    """Raise MXNetError for the first input that is without elements, or what is made without elements or axes."""
    what, shape = next(((n, s) for n, s in zip(input_names(node), shapes, strict=True) if 0 in s),
                       ("the result", made[0] if made else ()))
    assert node.op is not None
    raise MXNetError(f"operator {node.op.name}: {what} has the shape {shape}; operators take arrays with elements, "
                     "others in the scope mx.np_shape() only")


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
