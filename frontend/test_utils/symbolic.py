"""Checks of symbols: outputs and gradients against given values, finite differences, and other devices and dtypes."""
from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError
from mxc.compiler.ops.dtypes import dtype_name
from mxc.context import Context
from mxc.ndarray import NDArray, array, waitall
from mxc.test_utils.tolerance import Tolerance, assert_almost_equal, default_numeric_eps, get_tols
from mxc.test_utils.values import default_context

Values = Mapping[str, Any] | Sequence[Any]
FLOATS = ("float16", "float32", "float64")


def by_name(what: str, values: Values, names: Sequence[str], ctx: Context, dtype: Any = None) -> dict[str, NDArray]:
    """Arrays on `ctx` by name, from a dict or a list in the order of `names`. NumPy arrays are cast to `dtype` (None or
    "asnumpy": they keep theirs). Raises ArgumentError, a ValueError, when the names or the number do not fit."""
    if isinstance(values, Mapping):
        if set(values) != set(names):
            raise ArgumentError(f"Symbol {what} and keys of the given values do not match: the symbol has "
                                f"{list(names)}, given are {list(values)}")
        given = {name: values[name] for name in names}
    else:
        if len(values) != len(names):
            raise ArgumentError(f"the symbol has {len(names)} {what} ({', '.join(names)}), given are {len(values)}")
        given = dict(zip(names, values, strict=True))
    return {name: _on(v, ctx, dtype) for name, v in given.items()}


def _on(value: Any, ctx: Context, dtype: Any) -> NDArray:
    if isinstance(value, NDArray):
        return value.as_in_context(ctx)
    return array(value, ctx, np.asarray(value).dtype if dtype is None or is_kept(dtype) else dtype)


def is_kept(dtype: Any) -> bool:
    """Whether `dtype` is "asnumpy": NumPy arrays keep their dtypes."""
    return isinstance(dtype, str) and dtype == "asnumpy"


def simple_forward(sym: Any, ctx: Context | None = None, is_train: bool = False, **inputs: Any) -> Any:
    """The outputs of a symbol for inputs by name, as NumPy arrays: a list, or the only one."""
    ctx = ctx or default_context()
    executor = sym.bind(ctx, args={name: array(value, ctx) for name, value in inputs.items()})
    outputs = [out.asnumpy() for out in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def numeric_grad(executor: Any, location: Mapping[str, Any], aux_states: Mapping[str, Any] | None = None,
                 eps: float = 1e-4, use_forward_train: bool = True, dtype: Any = np.float32) -> dict[str, np.ndarray]:
    """The gradients of the sum of an executor's outputs by central differences of width `eps`, for the float
    arguments in `location`. The executor keeps the values of `location`."""
    return _differences(executor, location, aux_states, eps, use_forward_train, dtype, [1.0] * len(executor.outputs))


def _differences(executor: Any, location: Mapping[str, Any], aux_states: Mapping[str, Any] | None, eps: float,
                 is_train: bool, dtype: Any, heads: Sequence[Any]) -> dict[str, np.ndarray]:
    """`numeric_grad` of the sum of outputs weighted by `heads`."""
    values = {name: v.asnumpy() if isinstance(v, NDArray) else np.asarray(v) for name, v in location.items()}
    for name, value in values.items():
        executor.arg_dict[name][:] = value

    def total() -> float:
        for name, state in (aux_states or {}).items():
            executor.aux_dict[name][:] = state
        outputs = executor.forward(is_train=is_train)
        return sum(float(np.sum(o.asnumpy().astype(np.float64) * h)) for o, h in zip(outputs, heads, strict=True))

    found = {}
    for name, value in values.items():
        if value.dtype.kind != "f":
            continue
        moved, grad, target = value.copy(), np.zeros(value.shape, dtype), executor.arg_dict[name]
        for place in np.ndindex(value.shape):
            sums = []
            for step in (eps / 2, -eps / 2):
                moved[place] = value[place] + step
                target[:] = moved
                sums.append(total())
            grad[place] = (sums[0] - sums[1]) / eps
            moved[place] = value[place]
        target[:] = value
        found[name] = grad
    return found


# MXNet's signature
def check_numeric_gradient(sym: Any, location: Values, aux_states: Values | None = None,
                           numeric_eps: float | None = None, rtol: Tolerance = None, atol: Tolerance = None,
                           grad_nodes: Sequence[str] | Mapping[str, str] | None = None, use_forward_train: bool = True,
                           ctx: Context | None = None, grad_stype_dict: Mapping[str, str] | None = None,
                           dtype: Any = np.float32) -> None:
    """Raise AssertionError when a symbol's gradients are not those of finite differences.

    location: the arguments' values, a list or by name. aux_states: the same of auxiliary states. numeric_eps: the width
    of the differences (default by dtype). grad_nodes: the arguments to check, or their grad_req by name (default:
    "write" for all). use_forward_train: the mode of the forward runs that are compared. grad_stype_dict: how the
    gradients are kept, by name. dtype: the float dtype that everything is computed in.
    What is differentiated is the sum of the outputs times random numbers from 0.1 to 1.1.
    """
    if is_kept(dtype) or dtype_name(dtype) not in FLOATS:
        raise AssertionError(f"gradients need a float dtype, not {dtype}")
    stypes = grad_stype_dict or {}
    ctx = ctx or default_context()
    names = sym.list_arguments()
    args = by_name("arguments", location, names, ctx, dtype)
    aux = by_name("auxiliary states", aux_states or (), sym.list_auxiliary_states(), ctx, dtype)
    if grad_nodes is None:
        grad_req: dict[str, str] = dict.fromkeys(names, "write")
    elif isinstance(grad_nodes, Mapping):
        grad_req = dict(grad_nodes)
    elif isinstance(grad_nodes, (list, tuple)):
        grad_req = dict.fromkeys(grad_nodes, "write")
    else:
        raise ArgumentError(f"grad_nodes must be names, or a dict of names to grad_req, not {type(grad_nodes)}")
    before = _drawn_like(args, grad_req)
    executor = sym.bind(ctx, args={n: a.copy() for n, a in args.items()},
                        args_grad={n: _kept(v, ctx, stypes.get(n)) for n, v in before.items()},
                        grad_req=grad_req, aux_states={n: a.copy() for n, a in aux.items()})
    outputs = executor.forward(is_train=True)
    heads = [(np.random.random(o.shape) + 0.1).astype(o.dtype) for o in outputs]
    executor.backward([array(h, ctx, h.dtype) for h in heads])
    gradients = {name: executor.grad_dict[name].asnumpy() for name in grad_req}
    eps = default_numeric_eps()[np.dtype(dtype)] if numeric_eps is None else numeric_eps
    watched = sym.bind(ctx, args={n: a.copy() for n, a in args.items()}, grad_req="null",
                       aux_states={n: a.copy() for n, a in aux.items()})
    wanted = {n: args[n] for n, mode in grad_req.items() if mode != "null"}
    numeric = _differences(watched, wanted, aux, eps, use_forward_train, dtype, heads)
    for name, mode in grad_req.items():
        labels = (f"NUMERICAL_{name}", f"BACKWARD_{name}")
        if mode == "null":
            assert_almost_equal(before[name], gradients[name], rtol, atol, labels)
        elif name in numeric:
            base = before[name] if mode == "add" else 0
            assert_almost_equal(numeric[name], gradients[name] - base, rtol, atol, labels)


def _kept(values: np.ndarray, ctx: Context, stype: str | None) -> NDArray:
    """An array in a storage type."""
    made = array(values, ctx, values.dtype)
    return made if stype is None else made.tostype(stype)


def _drawn_like(args: Mapping[str, NDArray], names: Iterable[str]) -> dict[str, np.ndarray]:
    """Random values of the shapes and dtypes of arguments: what gradient arrays hold before."""
    return {name: np.random.standard_normal(args[name].shape).astype(args[name].dtype) for name in names}


# MXNet's signature
def check_symbolic_forward(sym: Any, location: Values, expected: Values, rtol: Tolerance = None,
                           atol: Tolerance = None, aux_states: Values | None = None, ctx: Context | None = None,
                           equal_nan: bool = False, dtype: Any = np.float32) -> list[NDArray]:
    """Raise AssertionError unless a symbol's outputs for arguments at `location` are as expected.

    location, aux_states: lists or by name; NumPy arrays are cast to `dtype`, a float one, unless that is "asnumpy".
    expected: a list, of which as many are compared as there are outputs, or by output name. Returns the outputs.
    """
    if not is_kept(dtype) and dtype_name(dtype) not in FLOATS:
        raise AssertionError(f"dtype must be a float dtype or 'asnumpy', not {dtype_name(dtype)}")
    ctx = ctx or default_context()
    executor = sym.bind(ctx, args=by_name("arguments", location, sym.list_arguments(), ctx, dtype), grad_req="null",
                        aux_states=by_name("auxiliary states", aux_states or (), sym.list_auxiliary_states(), ctx,
                                           dtype))
    executor.forward(is_train=False)
    for name, wanted, got in _matched(sym, expected, executor.outputs):
        assert_almost_equal(wanted, got, rtol, atol, (f"EXPECTED_{name}", f"FORWARD_{name}"), equal_nan)
    return executor.outputs


# MXNet's signature
def check_symbolic_backward(sym: Any, location: Values, out_grads: Values | None, expected: Values,
                            rtol: Tolerance = None, atol: Tolerance = None, aux_states: Values | None = None,
                            grad_req: str | Sequence[str] | Mapping[str, str] = "write", ctx: Context | None = None,
                            grad_stypes: Mapping[str, str] | None = None, equal_nan: bool = False,
                            dtype: Any = np.float32) -> dict[str, NDArray]:
    """Raise AssertionError unless a symbol's gradients are as expected.

    location, aux_states: lists or by name; NumPy arrays are cast to `dtype`, unless that is "asnumpy". out_grads: the
    outputs' gradients, a list or by output name. expected: the gradients of arguments, a list (as many are compared as
    there are arguments) or by name. grad_req: with "add" the expected is
    added to random values that were there, with "null" these must stay. grad_stypes: how the gradients are kept, by
    name. Returns the gradients by name, of what is expected.
    """
    stypes = grad_stypes or {}
    ctx, names = ctx or default_context(), sym.list_arguments()
    args = by_name("arguments", location, names, ctx, dtype)
    wanted = dict(expected) if isinstance(expected, Mapping) else dict(zip(names, expected, strict=False))
    if isinstance(grad_req, str):
        modes = dict.fromkeys(names, grad_req)
    else:
        modes = dict(grad_req) if isinstance(grad_req, Mapping) else dict(zip(names, grad_req, strict=True))
    before = _drawn_like(args, wanted)
    executor = sym.bind(ctx, args=args, args_grad={n: _kept(v, ctx, stypes.get(n)) for n, v in before.items()},
                        grad_req=modes, aux_states=by_name("auxiliary states", aux_states or (),
                                                           sym.list_auxiliary_states(), ctx, dtype))
    executor.forward(is_train=True)
    heads: Any = None
    if out_grads is not None:  # outputs may share a name
        given = [out_grads[name] for name in sym.list_outputs()] if isinstance(out_grads, Mapping) else out_grads
        heads = [_on(value, ctx, dtype) for value in given]
    executor.backward(heads)
    for name, value in wanted.items():
        labels, got = (f"EXPECTED_{name}", f"BACKWARD_{name}"), executor.grad_dict[name].asnumpy()
        value = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
        mode = modes.get(name, "null")
        if mode == "add":
            got = got - before[name]
        assert_almost_equal(before[name] if mode == "null" else value, got, rtol, atol, labels, equal_nan)
    return {name: grad for name, grad in executor.grad_dict.items() if grad is not None}


def _matched(sym: Any, expected: Values, outputs: Sequence[NDArray]) -> list[tuple[str, Any, np.ndarray]]:
    """(name, expected, value) of each output that something is expected of."""
    names = sym.list_outputs()
    values = [o.asnumpy() for o in outputs]
    given = [expected[name] for name in names] if isinstance(expected, Mapping) else expected
    return list(zip(names, given, values, strict=False))


# MXNet's signature
def check_consistency(sym: Any, ctx_list: Sequence[Mapping[str, Any]], scale: float = 1.0,
                      grad_req: str | Mapping[str, str] = "write", arg_params: Mapping[str, Any] | None = None,
                      aux_params: Mapping[str, Any] | None = None, rtol: Tolerance = None, atol: Tolerance = None,
                      raise_on_err: bool = True, ground_truth: Mapping[str, Any] | None = None,
                      equal_nan: bool = False, use_uniform: bool = False,
                      rand_type: Any = np.float64) -> dict[str, NDArray]:
    """Raise AssertionError unless a symbol gives the same on several devices or in several dtypes.

    sym: a symbol, or one for each of `ctx_list`, which are arguments of simple_bind: ctx, type_dict, shapes. Arguments
    and auxiliary states are random (normal times `scale`, or uniform within it) unless arg_params and aux_params give
    them; rand_type: their dtype before they are cast. The executor of the widest dtype is the truth, unless
    `ground_truth` gives values by output name and, for gradients, argument name. Outputs in inference and training and
    all gradients are compared; raise_on_err=False prints what differs. Returns the true values by name.
    """
    if len(ctx_list) < 2:
        raise AssertionError("there is nothing to compare: ctx_list has fewer than two entries")
    symbols = list(sym) if isinstance(sym, (list, tuple)) else [sym] * len(ctx_list)
    names = symbols[0].list_outputs()
    if len(set(names)) < len(names):
        raise ArgumentError(f"outputs are told by name, but some share one: {', '.join(names)}")
    executors = [s.simple_bind(grad_req=grad_req, **entry) for s, entry in zip(symbols, ctx_list, strict=True)]
    _fill(executors, scale, arg_params or {}, aux_params or {}, use_uniform, rand_type)
    widest = int(np.argmax([np.dtype(e.outputs[0].dtype).itemsize for e in executors]))
    wants = grad_req != "null"
    truth: dict[str, NDArray] = {}
    for is_train in (False, True) if wants else (False,):
        results = []
        for executor in executors:
            found = dict(zip(names, (o.copy() for o in executor.forward(is_train=is_train)), strict=True))
            if is_train:
                heads = [array(truth[name].asnumpy(), o.context, o.dtype)
                         for name, o in zip(names, executor.outputs, strict=True)]
                executor.backward(heads)
                found |= {n: g.copy() for n, g in executor.grad_dict.items() if g is not None}
            results.append(found)
        truth = {**results[widest], **(ground_truth or {})}
        for position, found in enumerate(results):
            if position != widest or ground_truth:
                _agree(found, truth, rtol, atol, equal_nan, raise_on_err, f"{ctx_list[position]}, training {is_train}")
    return truth


def _fill(executors: Sequence[Any], scale: float, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any],
          use_uniform: bool, rand_type: Any) -> None:
    """Give all executors the same values, cast to each one's dtypes; gradients start as 0."""
    args = dict(arg_params)
    for name, target in executors[0].arg_dict.items():
        if name not in args:
            draw = (np.random.uniform(-scale, scale, target.shape) if use_uniform else
                    np.random.normal(scale=scale, size=target.shape))
            args[name] = draw.astype(rand_type)
    for executor in executors:
        for name, target in executor.arg_dict.items():
            target[:] = args[name]
        for name, target in executor.aux_dict.items():
            target[:] = aux_params.get(name, 0)
        for target in executor.grad_dict.values():
            if target is not None:
                target[:] = 0


def _agree(found: Mapping[str, NDArray], truth: Mapping[str, Any], rtol: Tolerance, atol: Tolerance, equal_nan: bool,
           raise_on_err: bool, where: str) -> None:
    for name, value in found.items():
        try:
            relative, absolute = get_tols(value, truth[name], rtol, atol)
            assert_almost_equal(value, truth[name], relative, absolute, (name, f"truth of {name}"), equal_nan)
        except AssertionError as error:
            if raise_on_err:
                raise AssertionError(f"{where}: {error}") from None
            print(f"{where}: {error}")


def check_speed(sym: Any, location: Mapping[str, Any] | None = None, ctx: Context | None = None, N: int = 20,
                grad_req: str | Mapping[str, str] | None = None, typ: str = "whole", **kwargs: Any) -> float:
    """Seconds of one run, the mean of `N` after a first one.

    location: arguments by name; None: normal ones, of the shapes in `kwargs`. grad_req: default "write". typ: "whole"
    is forward and backward, "forward" an inference. Raises ArgumentError, a ValueError, for another `typ`.
    """
    if typ not in ("whole", "forward"):
        raise ArgumentError(f'typ can only be "whole" or "forward", not {typ!r}')
    ctx = ctx or default_context()
    shapes = {k: np.shape(v) for k, v in location.items()} if location is not None else kwargs
    executor = sym.simple_bind(ctx, grad_req="write" if grad_req is None else grad_req, **shapes)
    for name, target in executor.arg_dict.items():
        given = None if location is None else location.get(name)
        target[:] = np.random.standard_normal(target.shape) if given is None else given

    def once() -> None:
        outputs = executor.forward(is_train=typ == "whole")
        if typ == "whole":
            executor.backward(outputs)

    once()
    waitall()
    start = time.perf_counter()
    for _ in range(N):
        once()
    waitall()
    return (time.perf_counter() - start) / N


def same_symbol_structure(sym1: Any, sym2: Any) -> bool:
    """Whether two graphs have the same operators with the same connections; names and parameters may differ."""
    first, second = ([(node["op"], node["inputs"]) for node in json.loads(s.tojson())["nodes"]] for s in (sym1, sym2))
    return first == second
