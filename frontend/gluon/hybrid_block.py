"""Hybrid blocks, which compute with arrays and with symbols: hybridised, they are traced once and run as compiled
plans."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from mxc import autograd, ndarray, symbol
from mxc.compiler.error import ArgumentError
from mxc.compiler.passes.infer_storage import is_dense
from mxc.context import Context
from mxc.gluon import nested
from mxc.gluon.block import Block
from mxc.gluon.parameter import DeferredInitializationError, Parameter
from mxc.ndarray import NDArray
from mxc.ndarray.ndarray import wrapped
from mxc.runtime.cached_op import CachedOp
from mxc.runtime.segments import SegmentedOp
from mxc.symbol import Symbol

__all__ = ["HybridBlock"]

Hook = Callable[[str, str, NDArray], None]


class HybridBlock(Block):
    """A block that says what it computes once, for arrays and for symbols: in `hybrid_forward(F, x, ..., name=...)`,
    where F is mx.nd or mx.sym, and each parameter comes under the name of its attribute.

    After `hybridize()` the block, with all below it, is one graph, which is compiled for each set of shapes, dtypes and
    modes that it meets. Hooks of the blocks below, and Python's control flow, are then followed once, while tracing.
    """

    def __init__(self, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self._active = False
        self._cached: _Cached | None = None
        self._op_hooks: list[tuple[Hook, bool]] = []

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, (HybridBlock, Parameter)) and "_cached" in self.__dict__:
            self._clear_cached_op()

    def register_child(self, block: Block, name: str | None = None) -> None:
        """As a block's. Raises ValueError for a block that is not hybrid: it has no graph."""
        if not isinstance(block, HybridBlock):
            raise ValueError(f"{type(block).__name__} {block.name} is no HybridBlock, so it cannot be a part of the "
                             f"HybridBlock {self.name}; a Sequential takes both, a HybridSequential does not")
        super().register_child(block, name)
        if "_cached" in self.__dict__:
            self._clear_cached_op()

    def _clear_cached_op(self) -> None:
        self._cached = None

    # MXNet's signature
    def hybridize(self, active: bool = True, backend: str | None = None, clear: bool = True, static_alloc: bool = False,
                  static_shape: bool = False, inline_limit: int = 2, forward_bulk_size: int | None = None,
                  backward_bulk_size: int | None = None, **kwargs: Any) -> None:
        """Compile the block when it runs; active=False: run it operator by operator again.

        clear: trace it anew. The rest has no effect: memory is always planned, for each set of shapes; MXNet's backends
        are not there, as mxc compiles all.
        """
        self._active = active
        if clear:
            self._clear_cached_op()
        if (active and self._forward_hooks) or self._forward_pre_hooks:
            warnings.warn(f"{self.name} has hooks: those of blocks inside of a hybridised one run while it is traced "
                          "only", stacklevel=2)
        super().hybridize(active, backend=backend, clear=clear, static_alloc=static_alloc, static_shape=static_shape,
                          inline_limit=inline_limit, forward_bulk_size=forward_bulk_size,
                          backward_bulk_size=backward_bulk_size, **kwargs)

    # MXNet's signature
    def optimize_for(self, x: NDArray, *args: Any, backend: str | None = None, clear: bool = False,
                     static_alloc: bool = False, static_shape: bool = False, inline_limit: int = 2,
                     forward_bulk_size: int | None = None, backward_bulk_size: int | None = None,
                     **kwargs: Any) -> None:
        """Hybridise the block and compile it for inputs like these."""
        self.hybridize(True, backend, clear, static_alloc, static_shape, inline_limit, forward_bulk_size,
                       backward_bulk_size, **kwargs)
        self(x, *args)

    def cast(self, dtype: Any) -> None:
        """As a block's."""
        self._clear_cached_op()
        super().cast(dtype)

    def register_op_hook(self, callback: Hook, monitor_all: bool = False) -> None:
        """See Block. While there is one, a hybridised block runs operator by operator."""
        self._op_hooks.append((callback, monitor_all))

    # -- tracing

    def _traced(self, arrays: Sequence[Any], form: nested.Form) -> _Cached:
        """The graph for arguments of that structure, which `nested.flatten` has made flat; made at the first call."""
        if self._cached is None:
            count = sum(a is not None for a in arrays)
            names = ["data"] if count == 1 else [f"data{i}" for i in range(count)]
            rest = iter(names)
            inputs = [None if a is None else symbol.var(next(rest)) for a in arrays]
            params = {name: param.var() for name, param in self._reg_params.items()}
            with self.name_scope():
                outputs = self._symbolic(nested.regroup(inputs, form), params)
            made, out_form = nested.flatten([outputs], "output")
            self._cached = _Cached(names, symbol.Group(made), form, out_form)
        elif self._cached.form != form:
            raise ValueError(f"{self.name} was traced for arguments of the structure {self._cached.form}, and is "
                             f"called with {form}: hybridize(clear=True) has it traced anew")
        return self._cached

    def _symbolic(self, inputs: Sequence[Any], params: dict[str, Symbol]) -> Any:
        return self.hybrid_forward(symbol, *inputs, **params)

    def _build(self, cached: _Cached) -> None:
        """The op of a traced graph."""
        params = {param.name: param for param in self.collect_params().values()}
        params.update((param.name, param) for param in self._own_parameters())
        read = set(cached.symbol.list_inputs())
        for i, name in enumerate(cached.inputs):
            if name not in read:
                warnings.warn(f"input {i} of {self.name} ({name}) is used by no operator", stacklevel=5)
        unknown = sorted(read - {*cached.inputs} - {*params})
        if unknown:
            raise _UnknownParameter(f"the graph of {self.name} reads {unknown[0]}, which is none of its parameters: is "
                                    "it made outside of the block, or in no name_scope()?")
        for name in sorted({*params} - read):
            warnings.warn(f"parameter {name} of {self.name} is used by no operator", stacklevel=5)
        cached.params = [params[name] for name in cached.symbol.list_inputs() if name in params]
        names = [param.name for param in cached.params]
        graph, called, name = cached.symbol.graph, [*cached.inputs, *names], self.name or type(self).__name__
        cached.op, cached.segmented = CachedOp(graph, called, names, name), SegmentedOp(graph, called, name)
        cached.is_dense = is_dense(graph)
        cached.has_dense_gradients = all(p._grad_stype == "default" for p in cached.params)

    def _own_parameters(self) -> list[Parameter]:
        return [*self._reg_params.values()]

    def _call_cached(self, args: Sequence[Any], arrays: Sequence[Any], form: nested.Form, ctx: Context) -> Any:
        """The outputs of the compiled graph. arrays, form: the arguments, as `nested.flatten` has made them flat."""
        cached = self._traced(arrays, form)
        if cached.op is None:
            self._build(cached)
        assert cached.op is not None and cached.segmented is not None
        given = [a._array for a in (*arrays, *_arrays_of(cached.params, self, args, ctx)) if a is not None]
        if self._op_hooks:
            made = cached.op.node_by_node(given, autograd.is_training(), partial(_tell, self._op_hooks))
        elif (cached.is_dense and (cached.has_dense_gradients or not autograd.is_recording())
                and all([a is None or a.stype == "default" for a in arrays])):  # noqa: C419  a list takes half the time
            made = cached.op(given)
        else:
            made = cached.segmented(given)
        return nested.regroup([wrapped(array) for array in made], cached.out_form)[0]

    # -- shapes

    def infer_shape(self, *args: Any) -> None:
        """Tell the parameters below their shapes, of those of the arguments."""
        self._infer("infer_shape", "shape", args)

    def infer_type(self, *args: Any) -> None:
        """Tell the parameters below their dtypes, of those of the arguments."""
        self._infer("infer_type", "dtype", args)

    def _infer(self, function: str, attribute: str, args: Sequence[Any]) -> None:
        flat, form = nested.flatten(args, "input")
        cached = self._traced(flat, form)
        arrays = [a for a in flat if a is not None]
        given = {name: getattr(array, attribute) for name, array in zip(cached.inputs, arrays, strict=True)}
        known, _, states = getattr(cached.symbol, function)(**given)
        found = dict(zip(cached.symbol.list_arguments(), known or (), strict=True))
        found.update(zip(cached.symbol.list_auxiliary_states(), states or (), strict=True))
        for param in self.collect_params().values():
            if param.name in found:
                setattr(param, attribute, found[param.name])

    def _finish_deferred(self, args: Sequence[Any]) -> None:
        """Initialize what waited for its shape."""
        try:
            self.infer_shape(*args)
        except Exception as error:
            raise ValueError(f"the parameters of {self.name} are to be initialized now, and their shapes do not follow "
                             f"from those of its inputs: {error}") from error
        for param in self.collect_params().values():
            param._finish_deferred_init()

    # -- computing

    def forward(self, x: Any, *args: Any) -> Any:
        """The outputs of `hybrid_forward` on arrays or on symbols, or of the compiled graph.

        Raises ValueError for arguments among which is neither an array nor a symbol.
        """
        kind, ctx = _kind_of((x, *args), self.name)
        if kind is NDArray:
            with ctx:
                if self._active:
                    return self._call_cached((x, *args), *nested.flatten((x, *args), "input"), ctx)
                data = _arrays_of(self._reg_params.values(), self, (x, *args), ctx)
                return self.hybrid_forward(ndarray, x, *args, **dict(zip(self._reg_params, data, strict=True)))
        params = {name: param.var() for name, param in self._reg_params.items()}
        with self.name_scope():
            return self.hybrid_forward(symbol, x, *args, **params)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """What the block computes; a subclass says it. F: mx.nd or mx.sym. kwargs: the block's parameters."""
        raise NotImplementedError

    # -- files

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        """Write the graph to PATH-symbol.json and the parameters to PATH-EPOCH.params (four digits), which Module,
        `SymbolBlock.imports`, MXNet and `mxc compile` read.

        Raises RuntimeError before the hybridised block has run.
        """
        if self._cached is None or self._cached.op is None:
            raise ArgumentError(f"{self.name} has no graph yet: call hybridize(), and run it once on arrays")
        self._cached.symbol.save(f"{path}-symbol.json", remove_amp_cast=remove_amp_cast)
        states = {*self._cached.symbol.list_auxiliary_states()}
        arrays = {("aux:" if p.name in states else "arg:") + p.name: p._reduce() for p in self._cached.params}
        ndarray.save(f"{path}-{epoch:04d}.params", arrays)

    @property
    def _cached_graph(self) -> Any:
        """The inputs' variables and the outputs, as MXNet's programs read them; () before it was traced."""
        return () if self._cached is None else ([symbol.var(n) for n in self._cached.inputs], self._cached.symbol)


class _Cached:
    """A traced graph. inputs: names of the arguments. form, out_form: how arguments and outputs are grouped. op,
    params: the graph as an operator of the arguments, then of these parameters; made when it first runs. segmented: the
    same for arrays that are kept in parts. is_dense: whether there are none where the arguments are dense.
    has_dense_gradients: whether no parameter's gradient is kept in parts."""

    def __init__(self, inputs: list[str], made: Symbol, form: Any, out_form: Any):
        self.inputs, self.symbol, self.form, self.out_form = inputs, made, form, out_form
        self.op: CachedOp | None = None
        self.segmented: SegmentedOp | None = None
        self.is_dense = self.has_dense_gradients = True
        self.params: list[Parameter] = []

    def __getstate__(self) -> dict[str, Any]:
        """A copy of the block compiles for itself, and reads its own parameters."""
        return {**self.__dict__, "op": None, "segmented": None, "params": []}


def _arrays_of(params: Iterable[Parameter], block: HybridBlock, args: Sequence[Any], ctx: Context) -> list[NDArray]:
    """The arrays of parameters on a device. Those of the block that wait for their shapes are initialized now."""
    try:
        return [param.data(ctx) for param in params]
    except DeferredInitializationError:
        block._finish_deferred(args)
        return [param.data(ctx) for param in params]


def _tell(hooks: Sequence[tuple[Hook, bool]], node: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Call hooks with the arrays of an operator."""
    taken, made = node.op.watched_names(node.params)
    for hook, monitor_all in hooks:
        for name, array in zip(taken, inputs, strict=True) if monitor_all else ():
            hook(f"{node.name}_{name}", node.op.name, NDArray(array))
        for name, array in zip(made[:node.op.num_visible(node.params)], outputs, strict=False):
            if name:
                hook(f"{node.name}_{name}", node.op.name, NDArray(array))


def _kind_of(args: Sequence[Any], name: str) -> tuple[type, Any]:
    """Whether arguments are arrays or symbols, and the device of the first array.

    Raises ValueError for neither, and for both.
    """
    kind: type | None = None
    ctx = None
    for value in nested.leaves(args):
        if isinstance(value, NDArray):
            found: type = NDArray
            ctx = ctx or value.context
        elif isinstance(value, Symbol):
            found = Symbol
        else:
            continue
        if kind is not None and found is not kind:
            raise ValueError(f"{name} is called with arrays and symbols; expected arguments of one kind")
        kind = found
    if kind is not None:
        return kind, ctx
    raise ValueError(f"{name} is called without an array and without a symbol, with "
                     f"{', '.join(type(a).__name__ for a in args) or 'nothing'}")


class _UnknownParameter(ArgumentError, KeyError):
    """MXNet raises RuntimeError or KeyError, as to where it is noticed."""

    __str__ = ArgumentError.__str__
