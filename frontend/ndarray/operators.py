"""`mx.nd.NAME` for every operator of the table, and the same as methods of NDArray."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxc.compiler.ops import table
from mxc.ndarray.ndarray import NDArray
from mxc.operator_docs import describe
from mxc.runtime import invoke
from mxc.runtime.context import Context

Result = NDArray | list[NDArray]

# Operators that are methods of NDArray: `x.NAME(...)` is `nd.NAME(x, ...)`.
METHODS = (
    "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax", "argmax_channel", "argmin",
    "argsort", "broadcast_axes", "broadcast_like", "broadcast_to", "cbrt", "ceil", "clip", "cos", "cosh", "degrees",
    "depth_to_space", "diag", "exp", "expm1", "fix", "flip", "floor", "log", "log10", "log1p", "log2", "log_softmax",
    "max", "mean", "min", "nanprod", "nansum", "norm", "one_hot", "ones_like", "pad", "pick", "prod", "radians",
    "rcbrt", "reciprocal", "relu", "repeat", "reshape_like", "rint", "round", "rsqrt", "shape_array", "sigmoid",
    "sign", "sin", "sinh", "size_array", "slice", "slice_axis", "slice_like", "softmax", "softmin", "sort",
    "space_to_depth", "split", "split_v2", "sqrt", "square", "sum", "swapaxes", "take", "tan", "tanh", "tile", "topk",
    "transpose", "trunc", "zeros_like",
)


def call(op_name: str, *args: Any, out: NDArray | list[NDArray] | None = None, ctx: Context | str | None = None,
         name: str | None = None, **kwargs: Any) -> Result:
    """Apply an operator to arrays: its first output, or the list of them when it shows several.

    args: the input arrays (or, of an operator with a variable number, also one list of them), then parameters in the
    operator's order. kwargs: inputs and parameters by name. out: where results are written. ctx: the device of results
    when there is no input. name: only symbols have one; accepted and not used.
    Raises TypeError for arguments that do not fit the operator's signature, MXNetError for values that do not.
    """
    op = table.get(op_name)
    slots = [s.name for s in op.inputs if not s.variadic] + list(op.aux)
    variadic = any(s.variadic for s in op.inputs)
    if variadic and args and isinstance(args[0], (list, tuple)):
        args = (*args[0], *args[1:])
    given = {k: kwargs.pop(k) for k in slots if k in kwargs}
    positional = [a for a in args if isinstance(a, NDArray)]
    free = [p for p in op.params if p not in kwargs and p != op.variadic]
    rest = [a for a in args if not isinstance(a, NDArray) and a is not None]
    if rest and not positional and not given and slots:
        raise TypeError(f"{op_name}: input {slots[0]} needs to be an NDArray, not {type(rest[0])}")
    if len(rest) > len(free):
        raise TypeError(f"{op_name}: {len(rest)} positional parameters given; it has {', '.join(free) or 'none'} left")
    params = {**{k: v for k, v in kwargs.items() if v is not None}, **dict(zip(free, rest, strict=False))}
    for key, value in given.items():
        if not isinstance(value, NDArray):
            raise TypeError(f"{op_name}: input {key} needs to be an NDArray, not {type(value)}")
    if variadic:
        inputs = positional
    else:
        open_slots = [s for s in slots if s not in given]
        if len(positional) > len(open_slots):
            raise TypeError(f"{op_name}: {len(positional)} arrays given; it takes {', '.join(slots) or 'none'}")
        given.update(zip(open_slots, positional, strict=False))
        inputs = [given[s] for s in slots if s in given]
    outs = None if out is None else list(out) if isinstance(out, (list, tuple)) else [out]
    context = _context_of(ctx)
    results = invoke.invoke(op_name, [a._array for a in inputs], params,
                            None if outs is None else [o._array for o in outs], context)
    made = [NDArray(r) for r in results] if outs is None else outs
    return made[0] if len(made) == 1 else made


def _context_of(ctx: Context | str | None) -> Context | None:
    """A device given as `mx.cpu(1)` or as "cpu(1)"."""
    if not isinstance(ctx, str):
        return ctx
    kind, _, number = ctx.rstrip(")").partition("(")
    return Context(kind, int(number or 0))


def function(op_name: str) -> Callable[..., Result]:
    """The function `mx.nd.NAME` of an operator. Raises UnsupportedError when there is none of that name."""
    op = table.get(op_name)

    def apply(*args: Any, **kwargs: Any) -> Result:
        return call(op_name, *args, **kwargs)

    apply.__name__ = apply.__qualname__ = op_name
    apply.__doc__ = describe(op, op_name, "NDArray")
    return apply


def _method(op_name: str) -> Callable[..., Result]:
    def apply(self: NDArray, *args: Any, **kwargs: Any) -> Result:
        return call(op_name, self, *args, **kwargs)

    apply.__name__, apply.__qualname__ = op_name, f"NDArray.{op_name}"
    apply.__doc__ = f"`mx.nd.{op_name}` of this array."
    return apply


for _name in METHODS:
    setattr(NDArray, _name, _method(_name))
