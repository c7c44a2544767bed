"""Binding a symbol to arrays: what programs pass in many forms, brought to dictionaries by name and checked."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError, OutOfMemoryError, nearest
from mxc.compiler.graph.placement import GROUP
from mxc.compiler.ops.storage import DEFAULT, STORAGES
from mxc.context import Context, current_context
from mxc.ndarray import NDArray
from mxc.ndarray.ndarray import wrapped
from mxc.runtime.array import dtype_name
from mxc.runtime.executor import BoundArrays
from mxc.runtime.sparse_array import zeros
from mxc.symbol.inference import whole_shape
from mxc.util import is_np_shape

if TYPE_CHECKING:
    from mxc.compiler.graph.graph import Graph
    from mxc.symbol.symbol import Symbol

_MODES = ("write", "add", "null")
_EMBEDDINGS = ("Embedding", "_contrib_SparseEmbedding")  # whose gradients may be row_sparse


def bind(symbol: Symbol, ctx: Any, args: Any, args_grad: Any, grad_req: Any, aux_states: Any, group2ctx: Any,
         shared_exec: Any) -> Any:
    """An executor over given arrays; see Symbol.bind."""
    ctx, groups = _context("ctx", ctx), _groups(group2ctx)
    names, aux_names = _names(symbol)
    arrays = _by_name("args", args, names, "arguments")
    if args_grad is None:
        grads: dict[str, NDArray] = {}
    elif isinstance(args_grad, Mapping):
        grads = {name: _array(args_grad[name]) for name in names if args_grad.get(name) is not None}
    else:
        grads = _by_name("args_grad", args_grad, names, "arguments", missing_allowed=True)
    aux = _by_name("aux_states", [] if aux_states is None else aux_states, aux_names, "auxiliary states")
    try:
        modes = _modes(grad_req, names)
    except MXNetError as error:
        raise ArgumentError(str(error)) from None
    for kind, given in () if groups else (("argument", arrays), ("gradient of", grads)):
        for name, array in given.items():
            if array.context != ctx:
                raise MXNetError(f"{kind} {name!r} is on {array.context}, but the executor is bound on {ctx}: copy it "
                                 "there with as_in_context, or give group2ctx if parts of the symbol run elsewhere")
    return _executor(symbol, ctx, BoundArrays(arrays, grads, modes, aux), shared_exec, groups)


# many parameters: those of Symbol.simple_bind, which is MXNet's
def simple_bind(symbol: Symbol, ctx: Any, grad_req: Any, type_dict: Mapping[str, Any] | None,
                shapes: Mapping[str, Any], stype_dict: Mapping[str, str] | None = None, group2ctx: Any = None,
                shared_arg_names: Sequence[str] | None = None, shared_exec: Any = None,
                shared_buffer: dict[str, Any] | None = None) -> Any:
    """An executor over new arrays; see Symbol.simple_bind."""
    from mxc.compiler.passes.infer import with_facts
    from mxc.compiler.passes.infer_dtype import infer_dtype
    from mxc.compiler.passes.infer_shape import infer_shape

    ctx, groups = _context("ctx", ctx), _groups(group2ctx)
    names, aux_names = _names(symbol)
    inputs = {*names, *aux_names}
    for what, given in (("type_dict", type_dict), ("stype_dict", stype_dict)):
        if given is not None and not isinstance(given, Mapping):
            raise ArgumentTypeError(f"simple_bind: {what} must be a dict by argument name, got {type(given)}")
    graph = symbol.graph
    stypes = _stypes(graph, stype_dict or {})
    known = {name: whole_shape(name, shape) for name, shape in shapes.items() if name in inputs}
    types = {name: dtype_name(dtype) for name, dtype in (type_dict or {}).items() if name in inputs}
    modes = _modes(grad_req, names, simple=True)
    try:
        found_shapes, found_types = infer_shape(graph, known, numpy=is_np_shape()), infer_dtype(graph, types)
    except MXNetError as error:
        ignored = [f"\n  {name!r} is no argument of this symbol and was ignored{nearest(name, inputs)}"
                   for name in shapes if name not in inputs]
        raise MXNetError(f"simple_bind error: {error}{''.join(ignored)}") from None
    typed = with_facts(graph, found_shapes, found_types, is_np_shape())
    facts = {node.name: (found_shapes[graph.ids[node]][0], found_types[graph.ids[node]][0]) for node in graph.variables}
    places = {node.name: groups.get(node.attrs.get(GROUP, ""), ctx) for node in graph.variables}
    sharing = set(shared_arg_names or ()) if shared_exec is not None else set()

    def array(name: str, source: Mapping[str, Any] | None, buffer_name: str, stype: str) -> NDArray:
        """A shared array if there is one of this shape, dtype and storage type, else a new one of zeros. As in MXNet,
        an array of the executor must also be on the device where the new one would be; an array of the buffer may be
        anywhere, and the buffer holds no states."""
        shape, dtype = facts[name]
        assert shape is not None  # Inference has refused shapes that stay unknown.
        for place, key in ((source, name), (shared_buffer, buffer_name)):
            old = place.get(key) if place else None
            if (old is not None and (old.shape, old.stype) == (shape, stype) and dtype_name(old.dtype) == dtype
                    and (place is shared_buffer or old.context == places[name])):
                return old
        try:
            made = wrapped(zeros(stype, shape, dtype, places[name]))
        except OutOfMemoryError as error:
            raise OutOfMemoryError(f"{buffer_name or name}, {dtype} {'x'.join(map(str, shape))}: {error}") from None
        if shared_buffer is not None and buffer_name:
            shared_buffer[buffer_name] = made
        return made

    slopes = _gradient_stypes(typed, stypes, modes)
    args = {name: array(name, shared_exec.arg_dict if name in sharing else None, name, stypes.get(name, DEFAULT))
            for name in names}
    grads = {name: array(name, shared_exec.grad_dict if name in sharing else None, f"grad of {name}",
                         slopes.get(name, DEFAULT)) for name in names if modes[name] != "null"}
    aux = {name: array(name, None if shared_exec is None else shared_exec.aux_dict, "", DEFAULT) for name in aux_names}
    return _executor(symbol, ctx, BoundArrays(args, grads, modes, aux), shared_exec, groups, typed)


def _stypes(graph: Graph, given: Mapping[str, str]) -> dict[str, str]:
    """The storage types of the variables that are not dense: those given, else those of the variables' attributes."""
    found: dict[str, str] = {}
    for node in graph.variables:
        number = node.attrs.get("__storage_type__", "0")
        own = STORAGES[int(number)] if number in ("0", "1", "2") else DEFAULT
        stype = given.get(node.name, own)
        if stype not in STORAGES:
            raise MXNetError(f"simple_bind: the storage type of {node.name!r} is {stype!r}; expected one of "
                             f"{', '.join(STORAGES)}")
        if stype != DEFAULT:
            found[node.name] = stype
    return found


def _gradient_stypes(typed: Graph, stypes: Mapping[str, str], modes: Mapping[str, str]) -> dict[str, str]:
    """The storage types of gradients, as the operators that make them give them."""
    from mxc.compiler.graph.names import head_position
    from mxc.compiler.passes.gradient import differentiate
    from mxc.compiler.passes.infer_storage import infer_storage

    of_embeddings = any(node.op is not None and node.op.name in _EMBEDDINGS for node in typed.nodes)
    if all(mode == "null" for mode in modes.values()) or not (stypes or of_embeddings):
        return {}
    joint, forward = differentiate(typed, modes, True), infer_storage(typed, stypes)
    known, heads = {node.name for node in typed.variables}, dict[str, str]()
    for node in joint.variables:
        if node.name not in known:
            entry = typed.outputs[head_position(node.name)]
            heads[node.name] = forward[typed.ids[entry.node]][entry.index]
    found = infer_storage(joint, {**stypes, **heads})
    return {sink.name: found[joint.ids[entry.node]][entry.index]
            for sink, entry in zip(joint.sinks, joint.outputs, strict=True) if sink.kind == "grad"}


def evaluate(symbol: Symbol, ctx: Any, arrays: Mapping[str, NDArray]) -> list[NDArray]:
    """The outputs for the given arrays; see Symbol.eval."""
    aux = {name: arrays[name] for name in symbol.list_auxiliary_states() if name in arrays}
    return bind(symbol, ctx or current_context(), dict(arrays), None, "null", aux, None, None).forward()


def _executor(symbol: Symbol, ctx: Context, arrays: BoundArrays[NDArray], shared_exec: Any, groups: dict[str, Context],
              typed: Graph | None = None) -> Any:
    from mxc.executor import Executor

    if not is_np_shape():
        for name, array in {**arrays.args, **arrays.aux}.items():
            if not array.shape or 0 in array.shape:
                raise MXNetError(f"argument {name!r} has the shape {array.shape}; executors take arrays with axes and "
                                 "elements, others in the scope mx.np_shape() only")
    return Executor(symbol, ctx, arrays, shared_exec, groups, typed)


def _context(what: str, value: Any) -> Context:
    if not isinstance(value, Context):
        raise ArgumentTypeError(f"Context type error: {what} must be a Context such as mx.cpu(), got {type(value)}")
    return value.home


def _groups(group2ctx: Any) -> dict[str, Context]:
    """The context of each group of nodes. Raises ArgumentTypeError for anything but a dict of str to Context."""
    if group2ctx is None:
        return {}
    if not isinstance(group2ctx, Mapping) or not all(isinstance(name, str) for name in group2ctx):
        raise ArgumentTypeError(f"group2ctx must be a dict of str to Context, got {group2ctx!r}")
    return {name: _context(f"group2ctx[{name!r}]", where) for name, where in group2ctx.items()}


def _names(symbol: Symbol) -> tuple[list[str], list[str]]:
    """Names of the arguments and of the auxiliary states, each there once: arrays are given by name."""
    variables, states = symbol._inputs()
    names = [node.name for node in variables if node not in states]
    aux = [node.name for node in variables if node in states]
    for what, listed in (("arguments", names), ("auxiliary states", aux)):
        if len({*listed}) < len(listed):
            twice = [name for name, count in Counter(listed).items() if count > 1]
            raise MXNetError(f"two {what} are both named {twice[0]!r}; use one variable in both places, or rename one")
    both = [name for name in names if name in aux]
    if both:
        raise MXNetError(f"an argument and an auxiliary state are both named {both[0]!r}; rename one of the variables")
    return names, aux


def _array(value: Any) -> NDArray:
    if not isinstance(value, NDArray):
        raise ArgumentTypeError(f"Only accept list of NDArrays or dict of str to NDArray, got {type(value)}")
    return value


def _by_name(what: str, values: Any, names: list[str], of: str, missing_allowed: bool = False) -> dict[str, NDArray]:
    """Arrays by name, from a list in the order of `names` or a dictionary, whose other names are ignored."""
    if isinstance(values, Mapping):
        missing = [name for name in names if name not in values]
        if missing:
            labels = [name for name in missing if name.endswith("label")]
            raise ArgumentError(f"key `{missing[0]}` is missing in `{what}`{nearest(missing[0], values)}"
                             + (f" (missing in all: {', '.join(missing)})" if len(missing) > 1 else "")
                             + (f"; {labels[0]!r} looks like a label: for inference give any values" if labels else ""))
        return {name: _array(values[name]) for name in names}
    if not isinstance(values, (list, tuple)):
        raise ArgumentTypeError(f"Only accept list of NDArrays or dict of str to NDArray, got {type(values)} as {what}")
    if len(values) != len(names):
        raise ArgumentError(f"Length of {what} does not match the number of {of}: {len(values)} for {len(names)} "
                         f"({', '.join(names)})")
    return {name: _array(value) for name, value in zip(names, values, strict=True)
            if not (missing_allowed and value is None)}


def _modes(grad_req: Any, names: list[str], simple: bool = False) -> dict[str, str]:
    """"write", "add" or "null" for every argument, from one for all, a list or a dictionary (others: null)."""
    if grad_req is None:
        grad_req = "null"
    if simple and isinstance(grad_req, (list, dict)) and not grad_req:
        raise MXNetError(f"grad_req in simple_bind cannot be an empty {type(grad_req).__name__}")
    if isinstance(grad_req, str):
        modes = dict.fromkeys(names, grad_req)
    elif isinstance(grad_req, Mapping):
        modes = {name: grad_req.get(name, "null") for name in names}
    elif isinstance(grad_req, (list, tuple)):
        if len(grad_req) != len(names):
            raise MXNetError(f"the length of the grad_req list does not match the number of arguments: expected "
                             f"{len(names)} ({', '.join(names)}), got {len(grad_req)}")
        modes = dict(zip(names, grad_req, strict=True))
    else:
        raise MXNetError(f"grad_req must be a string, a list or a dictionary, got {type(grad_req)}")
    for name, mode in modes.items():
        if mode not in _MODES:
            raise MXNetError(f"grad_req must be in {_MODES}; for argument {name!r} it is {mode!r}")
    return modes
