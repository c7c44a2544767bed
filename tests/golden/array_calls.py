"""Calls of the array interface, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `array_calls.py` writes what MXNet 1.9.1 answers to array_calls.json; tests/test_array_calls.py
compares mxc's.
"""
import copy
import importlib
import json
import operator
import pickle
import re
import sys
import warnings
from pathlib import Path

import numpy as np

DTYPES = ("float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool")
OPERATORS = ("add", "sub", "mul", "truediv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge")
INPLACE = ("iadd", "isub", "imul", "itruediv", "imod")
FUNCTIONS = ("add", "subtract", "multiply", "divide", "true_divide", "modulo", "power", "maximum", "minimum", "equal",
             "not_equal", "greater", "greater_equal", "lesser", "lesser_equal", "logical_and", "logical_or",
             "logical_xor")
NAMES = {np.dtype(d).type: d for d in DTYPES}


def _x(mx, dtype="float32"):
    return mx.nd.array([[1, 2, 3], [4, 5, 6]], dtype=dtype)


def _cube(mx, dtype="float32"):
    return mx.nd.array(np.arange(24).reshape(2, 3, 4) - 10, dtype=dtype)


def _pair(mx, left, right):
    return mx.nd.array([1, 0, 3], dtype=left), mx.nd.array([1, 2, 1], dtype=right)


def _mask_gradient(mx):
    data = _x(mx)
    data.attach_grad()
    with mx.autograd.record():
        taken = mx.nd.contrib.boolean_mask(data, mx.nd.array([0, 1])) * 2
    taken.backward()
    return data.grad


def _read_only(values):
    values.flags.writeable = False
    return values


def _shared(mx, make, **kwargs):
    """What from_numpy makes of a NumPy array, and whether that can be written to then."""
    values = make()
    return mx.nd.from_numpy(values, **kwargs), values.flags.writeable


def _written(mx, share):
    """What a NumPy array has when an array on its memory was written to."""
    values = np.array([1.0, 2.0, 3.0])
    shared = share(values)
    shared[:] = 5
    shared += 1
    shared.wait_to_read()
    return values.tolist(), values.flags.writeable


def _text(*values):
    """Arguments as text, the same for every version of NumPy."""
    return " ".join(re.sub(r"np\.\w+\((\w+)\)", r"\1", str(value)) for value in values)


def _binary(name, left, right):
    return lambda mx: getattr(operator, name)(*_pair(mx, left, right))


def _scalar(name, dtype, scalar, reverse=False):
    def call(mx):
        array = mx.nd.array([1, 2, 3], dtype=dtype)
        return getattr(operator, name)(*((scalar, array) if reverse else (array, scalar)))

    return call


def _method(name, /, *args, make=_cube, dtype="float32", **kwargs):
    return lambda mx: getattr(make(mx, dtype), name)(*args, **kwargs)


def _function(name, /, *args, **kwargs):
    return lambda mx: operator.attrgetter(name)(mx.nd)(*args, **kwargs)


def _with(call, /, **inputs):
    """A call of arrays: `call(mx, **arrays)` of nested lists."""
    return lambda mx: call(mx, **{k: mx.nd.array(v) for k, v in inputs.items()})


def _after(change):
    """The array after a change of it in place."""
    def call(mx):
        array = _x(mx)
        change(mx, array)
        return array

    return call


def _scoped(mx):
    with mx.Context("cpu", 1):
        return mx.nd.zeros((1,)).context, mx.cpu(2) == mx.nd.ones(1, ctx=mx.cpu(2)).ctx, mx.current_context()


def _out(call, shape=(2, 3), dtype="float32"):
    def run(mx):
        out = mx.nd.zeros(shape, dtype=dtype)
        result = call(mx, _x(mx), out)
        return result is out, out

    return run


ARITHMETIC = {
    **{f"{d} {name} {d}": _binary(name, d, d) for name in OPERATORS for d in DTYPES
       if not (name in ("truediv", "mod") and "int" in d) and not (name == "pow" and d in ("bool",))},
    **{f"{left} {name} {right}": _binary(name, left, right) for name in ("add", "mul", "lt")
       for left, right in (("float32", "float64"), ("float16", "float32"), ("int32", "float32"), ("float32", "int32"),
                           ("int32", "int64"), ("int64", "float64"), ("int8", "uint8"), ("bool", "float32"),
                           ("bool", "int32"))},
    **{f"{d} {name} {scalar!r}": _scalar(name, d, scalar) for name in OPERATORS for d in DTYPES for scalar in (2, 1.5)
       if not (name == "mod" and d in ("bool", "uint8", "int8"))},
    **{f"{scalar!r} {name} {d}": _scalar(name, d, scalar, True) for name in OPERATORS for d in DTYPES
       for scalar in (2, 1.5) if not (name == "mod" and d in ("bool", "uint8", "int8"))},
    **{f"float32 {name} {type(s).__name__.rstrip('_')} {s}": _scalar(name, "float32", s)
       for name in ("add", "mul", "gt") 
       for s in (np.float32(2.5), np.float64(2.5), np.int64(2), np.int8(2), np.bool_(True), np.float16(2.5))},
    **{f"int32 add {type(s).__name__} {s}": _scalar("add", "int32", s)
       for s in (np.float32(2.5), np.int64(2), True, -3)},
    **{f"{what} {name} x": _scalar(name, "float32", value, True) for name in ("add", "mul")
       for what, value in (("np.float32", np.float32(2.5)), ("np.int64", np.int64(2)))},
    **{f"{type(value).__name__} of {name}": _scalar(name, "float32", value) for name in ("add", "eq", "lt")
       for value in (None, "a", [1, 2, 3], (1, 2, 3), 1j, np.ones(3))},
    **{f"{name} {value}": _after(lambda mx, x, name=name, value=value: getattr(operator, name)(x, value))
       for name in INPLACE for value in (2, 0.5)},
    **{f"{name} row": _after(lambda mx, x, name=name: getattr(operator, name)(x, mx.nd.array([[1, 2, 3]])))
       for name in INPLACE},
    "iadd larger": _after(lambda mx, x: operator.iadd(x, mx.nd.ones((2, 2, 3)))),
    "iadd int": _after(lambda mx, x: operator.iadd(x, mx.nd.ones((2, 3), dtype="int32"))),
    "ipow": _after(lambda mx, x: operator.ipow(x, 2)),
    "ifloordiv": _after(lambda mx, x: operator.ifloordiv(x, 2)),
    "x // 2": lambda mx: _x(mx) // 2, "x @ x.T": lambda mx: _x(mx) @ _x(mx).T, "x & x": lambda mx: _x(mx) & _x(mx),
    "~x": lambda mx: ~_x(mx), "-x": lambda mx: -_x(mx), "-int8": lambda mx: -_x(mx, "int8"), "+x": lambda mx: +_x(mx),
    "-uint8": lambda mx: -_x(mx, "uint8"),
    "abs": lambda mx: abs(_cube(mx)), "abs int": lambda mx: abs(_cube(mx, "int32")),
    "broadcast": lambda mx: mx.nd.ones((2, 1, 3)) + mx.nd.ones((4, 1)),
    "broadcast 1": lambda mx: mx.nd.ones((2, 3)) + mx.nd.ones((1,)),
    "broadcast 2": lambda mx: mx.nd.ones((3,)) * mx.nd.ones((2, 3)),
    "broadcast wrong": lambda mx: mx.nd.ones((2, 3)) + mx.nd.ones((2, 2)),
    "divide by zero": lambda mx: mx.nd.array([1, -1, 0]) / 0, "mod zero": lambda mx: mx.nd.array([1, -1, 0]) % 0,
    "integers truncate": lambda mx: mx.nd.array([7, -7], dtype="int32") / 2,
    "mod of signs": lambda mx: mx.nd.array([7, -7], dtype="float32") % mx.nd.array([3, 3], dtype="float32"),
    "mod of negatives": lambda mx: mx.nd.array([7, -7], dtype="float32") % -3,
    "nan compares": lambda mx: (mx.nd.array([np.nan, 1]) == np.nan, mx.nd.array([np.nan, 1]) != np.nan),
    "inf": lambda mx: mx.nd.array([1, 2]) * float("inf"),
    **{f"{name}(x, 2)": lambda mx, name=name: getattr(mx.nd, name)(_x(mx), 2) for name in FUNCTIONS},
    **{f"{name}(2, x)": lambda mx, name=name: getattr(mx.nd, name)(2, _x(mx)) for name in FUNCTIONS},
    **{f"{name}(5, 2)": lambda mx, name=name: getattr(mx.nd, name)(5, 2) for name in FUNCTIONS},
    **{f"{name}(x, row)": lambda mx, name=name: getattr(mx.nd, name)(_x(mx), mx.nd.array([[0, 2, 9]]))
       for name in FUNCTIONS},
    "add('a', x)": lambda mx: mx.nd.add("a", _x(mx)), "add('a', 'b')": lambda mx: mx.nd.add("a", "b"),
    **{f"__{name}__": lambda mx, name=name: getattr(_x(mx), f"__{name}__")(2)
       for name in ("div", "rdiv", "idiv", "radd", "rsub", "rmul", "rtruediv", "rmod", "rpow")},
}

REDUCTIONS = {
    **{f"{name} {axis} keep={keep}": _method(name, axis=axis, keepdims=keep)
       for name in ("sum", "mean", "max", "min", "prod", "nansum", "nanprod")
       for axis, keep in ((-1, False), ((-1, 0), True), ((), False), (None, False), ((0, 1, 2), True))},
    **{f"{name} exclude {axis}": _method(name, axis=axis, exclude=True) for name in ("sum", "max", "mean")
       for axis in (1, (0, -1), ())},
    **{f"{name} {axis}": _method(name, axis=axis) for name in ("argmax", "argmin") for axis in (None, 0, -1)},
    **{f"norm {ord} {axis}": _method("norm", ord=ord, axis=axis) for ord in (1, 2)
       for axis in (None, 0, (0, -1))},
    **{f"{name} {d}": _method(name, axis=1, dtype=d) for name in ("sum", "mean", "max", "prod", "argmax", "norm")
       for d in (DTYPES[:2] if name == "norm" else DTYPES[:-1])},  # MXNet's norm of others is rough
    "sum of bool": lambda mx: mx.nd.array([1, 0, 1], dtype="bool").sum(),
    "sum out of range": _method("sum", axis=3), "sum twice": _method("sum", axis=(0, 0)),
    "mean of one axis": lambda mx: mx.nd.mean(_cube(mx), 0), "sum positional": lambda mx: mx.nd.sum(_cube(mx), 0, True),
    "sum of NumPy axis": _method("sum", axis=np.int64(1)),
    "sum of NumPy axes": _method("sum", axis=(np.int64(0), np.int32(1))),
    "moments": lambda mx: mx.nd.moments(_x(mx), axes=(0,)),
    "sum of nan": lambda mx: mx.nd.array([1, np.nan]).sum(), "nansum": lambda mx: mx.nd.array([1, np.nan]).nansum(),
    "max of nan": lambda mx: mx.nd.array([1, np.nan, 2]).max(),
}

CREATION = {
    **{f"array of {what}": lambda mx, value=value: mx.nd.array(value) for what, value in {
        "int": [1, 2], "float": [1.5], "nested": [[1], [2]], "bool": [True, False], "np.int32": np.int32([1, 2]),
        "np.float64": np.float64([1.5]), "np.float16": np.float16([1.5]), "np.bool": np.array([True]),
        "number": 5, "np scalar": np.float64(3), "empty": [], "tuple": (1, 2), "empty rows": np.zeros((0, 3)),
        "zero dims": np.array(5.0), "ragged": [[1], [1, 2]], "None": None, "text": "text", "range": range(3),
        "complex": np.array([1j]), "uint16": np.array([1], "uint16"), "uint32": np.array([1], "uint32")}.items()},
    "array of array": lambda mx: mx.nd.array(_x(mx, "int32")),
    "array of arrays": lambda mx: mx.nd.array([_x(mx), _x(mx)]),
    **{f"array dtype {d}": lambda mx, d=d: mx.nd.array([1.7, 0, 3], dtype=d)
       for d in (*DTYPES, np.float16, np.dtype("int8"), float, int, bool, "complex64", "uint16", "nothing")},
    **{_text(name, shape): _function(name, shape) for name in ("zeros", "ones")
       for shape in (3, (3,), (2, 3), (0, 3), (), (np.int64(2), 4), [2, 1], (-1, 2), (2.0, 3), np.int64(4))},
    **{f"{name} dtype {d}": _function(name, (2,), dtype=d) for name in ("zeros", "ones", "empty")
       for d in ("int8", None, np.float64)
       if name != "empty"},
    "full": _function("full", (2,), 3.5), "full int": _function("full", (2,), 3.5, dtype="int32"),
    "full ctx": lambda mx: mx.nd.full((2,), 1, ctx=mx.cpu(1)).context, "full int shape": _function("full", 2, 7),
    "empty": lambda mx: mx.nd.empty((2, 3), dtype="int8").shape, "empty int": lambda mx: mx.nd.empty(3).shape,
    **{_text("arange", args, kwargs): _function("arange", *args, **kwargs) for args, kwargs in (
        ((3,), {}), ((2, 7), {}), ((2, 7, 2), {}), ((5, 0, -1), {}), ((0, 1, 0.3), {}), ((3,), {"repeat": 2}),
        ((3,), {"dtype": "int32"}), ((2.5,), {}), ((0, 3), {"dtype": "float64"}), ((3, 3), {}), ((3, 1), {}),
        ((0, 5, 0), {}), ((np.int64(4),), {}), ((1, None), {}), ((0,), {}))},
    **{_text("linspace", args, kwargs): _function("linspace", *args, **kwargs) for args, kwargs in (
        ((0, 1, 5), {}), ((0, 1, 5), {"endpoint": False}), ((3, 1, 3), {"dtype": "int32"}), ((1, 2, 1), {}),
        ((0, 1, 0), {}), ((0, 1, -2), {}))},
    **{_text("eye", args, kwargs): _function("eye", *args, **kwargs) for args, kwargs in (
        ((2,), {}), ((2, 3), {}), ((2, 3, 1), {}), ((3, 2, -1), {}), ((2,), {"dtype": "int32"}))},
    **{f"{name} {d}": lambda mx, name=name, d=d: getattr(mx.nd, name)(_x(mx, d))
       for name in ("zeros_like", "ones_like") for d in ("float32", "int8", "float16")},
    "full_like": lambda mx: mx.nd.full_like(_x(mx), 3), "arange_like": lambda mx: mx.nd.contrib.arange_like(_x(mx)),
    "concatenate": lambda mx: mx.nd.concatenate([_x(mx), _x(mx)]),
    "concatenate axis": lambda mx: mx.nd.concatenate([_x(mx), _x(mx)], axis=1),
    "concatenate dtypes": lambda mx: mx.nd.concatenate([_x(mx, "int32"), _x(mx, "int32")]),
    "concatenate mixed": lambda mx: mx.nd.concatenate([_x(mx, "int32"), _x(mx)]),
    "concatenate one": lambda mx: (lambda x: mx.nd.concatenate([x], always_copy=False) is x)(_x(mx)),
    "concatenate none": lambda mx: mx.nd.concatenate([]),
    "concatenate wrong": lambda mx: mx.nd.concatenate([_x(mx), mx.nd.ones((2, 2))]),
    **{f"moveaxis {s} {d}": lambda mx, s=s, d=d: mx.nd.moveaxis(_cube(mx), s, d)
       for s, d in ((0, 2), (-1, 0), ((0, 1), (1, 0)), ([0, 2], [1, 0]), (3, 0), ((0, 1), 0), ((0, 0), (0, 1)))},
    "histogram": _with(lambda mx, a: mx.nd.histogram(a, bins=3, range=(0, 3)), a=[0, 1, 1, 2.5, 7]),
    "histogram auto": _with(lambda mx, a: mx.nd.histogram(a, bins=4), a=[0, 1, 1, 2.5, 7]),
    "histogram default": _with(lambda mx, a: mx.nd.histogram(a), a=[0, 1, 1, 2.5, 7]),
    "histogram bins": _with(lambda mx, a, bins: mx.nd.histogram(a, bins=bins), a=[0, 1, 1, 2.5, 7], bins=[0, 1, 3]),
    "histogram wrong": _with(lambda mx, a: mx.nd.histogram(a, bins="x"), a=[0]),
    "onehot_encode": _with(lambda mx, i, o: (mx.nd.onehot_encode(i, o), o), i=[1, 0], o=[[5, 5, 5], [5, 5, 5]]),
    "fill_element_0index": _with(lambda mx, x, v, i: mx.nd.fill_element_0index(x, v, i), x=[[1, 2, 3], [4, 5, 6]],
                                 v=[8, 9], i=[2, 0]),
    "_scatter_set_nd": _with(lambda mx, x, v, i: (mx.nd._internal._scatter_set_nd(lhs=x, rhs=v, indices=i, shape=(2, 3),
                                                                                out=x), x),
                             x=[[1, 2, 3], [4, 5, 6]], v=[8, 9], i=[[1, 0], [2, 0]]),
    **{f"split_v2 {a} {k}": lambda mx, a=a, k=k: mx.nd.split_v2(_cube(mx), a, **k) for a, k in (
        (2, {}), ((1,), {"axis": 1}), ((1, 2), {"axis": -1}), (2, {"squeeze_axis": True}), (0, {}), ([1], {}),
        (3, {"axis": 2}))},
    "from_numpy": lambda mx: mx.nd.from_numpy(np.arange(3, dtype="int32")),
    "from_numpy copy": lambda mx: mx.nd.from_numpy(np.arange(4).reshape(2, 2).T, zero_copy=False),
    **{f"from_numpy {d}": lambda mx, d=d: mx.nd.from_numpy(np.array([1, 0, 1]).astype(d))
       for d in (*DTYPES[:5], *DTYPES[6:], "uint16", "int16", "complex64", ">f4", "S3", "U2", "O", "datetime64[s]")},
    **{f"from_numpy {name} zero_copy={z}": lambda mx, m=m, z=z: _shared(mx, m, zero_copy=z) for z in (True, False)
       for name, m in {
           "whole": lambda: np.arange(6.).reshape(2, 3), "fortran": lambda: np.asfortranarray(np.ones((2, 3))),
           "row": lambda: np.asfortranarray(np.ones((1, 3))), "rows": lambda: np.arange(6).reshape(2, 3)[1:],
           "steps": lambda: np.arange(6)[::2], "backwards": lambda: np.arange(6)[::-1],
           "matrix": lambda: np.matrix([[1., 2]]), "read-only": lambda: _read_only(np.ones(2)),
           "broadcast": lambda: np.broadcast_to(np.float32(1), (2, 2))}.items()},
    "from_numpy default": lambda mx: _shared(mx, lambda: np.ones(2)),
    "from_numpy base": lambda mx: (lambda a: (mx.nd.from_numpy(a[1:]), a.flags.writeable)[1])(np.ones(3)),
    "from_numpy again": lambda mx: _written(mx, lambda a: [mx.nd.from_numpy(a), mx.nd.from_numpy(a)][1]),
    "from_numpy part again": lambda mx: _written(mx, lambda a: [mx.nd.from_numpy(a), mx.nd.from_numpy(a[1:])][1]),
    "from_numpy writes": lambda mx: _written(mx, lambda a: mx.nd.from_numpy(a)),
    "from_numpy writes read-only": lambda mx: _written(mx, lambda a: mx.nd.from_numpy(_read_only(a))),
    "from_numpy after": lambda mx: (lambda a: (mx.nd.from_numpy(a), a.__setitem__(0, 1)))(np.ones(2)),
    "from_numpy class": lambda mx: mx.nd.from_numpy(np.ones(2), True, mx.nd.NDArray),
    "from_numpy strided": lambda mx: mx.nd.from_numpy(np.arange(4).reshape(2, 2).T),
}

CASTING = {
    **{f"{source} to {target}": lambda mx, s=source, t=target: mx.nd.array([0, 1, 2, 100], dtype=s).astype(t)
       for source in DTYPES for target in DTYPES},
    **{f"fractions to {target}": lambda mx, t=target: mx.nd.array([-1.7, -0.5, 0.5, 1.7, 99.9]).astype(t)
       for target in DTYPES if target != "uint8"},
    "wraps": lambda mx: mx.nd.array([300, -300, 70000], dtype="int32").astype("int8"),
    "wraps unsigned": lambda mx: mx.nd.array([300, -1], dtype="int32").astype("uint8"),
    "half overflow": lambda mx: mx.nd.array([70000, 1e-8]).astype("float16"),
    "astype None": lambda mx: _x(mx, "int8").astype(None),
    "astype same": lambda mx: (lambda x: x.astype("float32", copy=False) is x)(_x(mx)),
    "astype same copy": lambda mx: (lambda x: x.astype("float32") is x)(_x(mx)),
    "astype wrong": lambda mx: _x(mx).astype("nothing"), "astype np": lambda mx: _x(mx).astype(np.int32),
    "astype python": lambda mx: _x(mx).astype(float), "astype int": lambda mx: _x(mx).astype(int),
    "cast": lambda mx: mx.nd.cast(_x(mx), dtype="int8"), "Cast": lambda mx: mx.nd.Cast(_x(mx), dtype=np.float16),
}

EMPTY = {
    "array empty": lambda mx: mx.nd.array([]).shape, "len empty": lambda mx: len(mx.nd.array([])),
    "bool empty": lambda mx: bool(mx.nd.array([])), "repr empty": lambda mx: repr(mx.nd.array([])),
    "empty + 1": lambda mx: mx.nd.array([]) + 1, "empty sum": lambda mx: mx.nd.array([]).sum(),
    "empty asnumpy": lambda mx: mx.nd.array([]).asnumpy().shape,
    "empty asscalar": lambda mx: mx.nd.array([]).asscalar(),
    "sum all": lambda mx: mx.nd.array([1, 2]).sum(), "element": lambda mx: mx.nd.array([1, 2])[0].shape,
    "iterated": lambda mx: [v.shape for v in mx.nd.array([1, 2])],
}

TEXT = {
    **{f"repr {what}": lambda mx, v=v, d=d: repr(mx.nd.array(v, dtype=d)) for what, v, d in (
        ("row", [1, 2.5], "float32"), ("int", [1, 2], "int32"), ("one", [1], "float32"), ("bool", [1, 0], "bool"),
        ("matrix", [[1, 2], [3, 4]], "float64"), ("small", [1e-8, 1], "float32"), ("large", [1e10, 1], "float32"),
        ("special", [np.nan, np.inf, -np.inf], "float32"), ("half", [0.1], "float16"), ("number", 3, "float32"),
        ("long", list(range(2000)), "float32"), ("cube", [[[1, 2]], [[3, 4]]], "uint8"))},
    "str": lambda mx: str(_x(mx)), "format": lambda mx: f"{mx.nd.array([1])}",
    "repr ctx": lambda mx: repr(mx.nd.ones((1,), ctx=mx.cpu(3))),
    "format spec": lambda mx: f"{mx.nd.array([1]):.2f}", "percent": lambda mx: "%f" % mx.nd.array([1]),  # noqa: UP031
    "contexts": lambda mx: [str(c) for c in (mx.cpu(), mx.gpu(1), mx.cpu_pinned(2), mx.Context("cpu_shared"))],
}

METHODS = {
    **{_text(name, args, kwargs): _method(name, *args, **kwargs) for name, args, kwargs in (
        ("reshape", ((6, 4),), {}), ("reshape", (6, 4), {}), ("reshape", (), {"shape": (4, -1)}),
        ("reshape", (-1,), {}),
        ("reshape", ((0, -1),), {}), ("reshape", ((-3, 0),), {}), ("reshape", ((-1, 0),), {"reverse": True}),
        ("reshape", ((5, 5),), {}), ("reshape", ((5, -1),), {}), ("reshape", (), {}), ("reshape", ((),), {}),
        ("reshape", ((2, -4, -1, 3, 4),), {}), ("reshape", ([6, 4],), {}), ("reshape", ((6, 4),), {"shape": (4, 6)}),
        ("reshape", ((6, 4),), {"other": 1}), ("reshape", (np.int64(24),), {}), ("reshape", ((np.int64(8), 3),), {}),
        ("reshape", ((2, 2),), {}),
        ("expand_dims", (0,), {}), ("expand_dims", (-1,), {}), ("expand_dims", (5,), {}),
        ("expand_dims", (-1,), {"inplace": True}), ("expand_dims", (-4,), {"inplace": True}),
        ("flatten", (), {}), ("flatten", (), {"inplace": True}),
        ("squeeze", (), {}), ("squeeze", (0,), {}), ("squeeze", (), {"inplace": True}),
        ("swapaxes", (0, 2), {}), ("transpose", (), {}), ("transpose", ((1, 0, 2),), {}),
        ("transpose", (), {"axes": (2, 0, 1)}), ("transpose", (1, 0, 2), {}),
        ("flip", (1,), {}), ("flip", ((0, 1),), {}),
        ("tile", ((2, 1),), {}), ("repeat", (2,), {"axis": 0}), ("pad", (), {"mode": "constant", "pad_width":
                                                                                (0, 0, 0, 0, 1, 1)}),
        ("slice", ((0, 1), (1, 3)), {}), ("slice", (), {"begin": (None, 1), "end": (None, 2)}),
        ("slice", ((1,), (None,)), {}), ("slice_axis", (1, 0, 2), {}), ("slice_axis", (-1, -2, None), {}),
        ("take", (), {"indices": None}), ("clip", (-2, 3), {}), ("clip", (), {"a_min": 0, "a_max": 1}),
        ("split", (2,), {"axis": 0}), ("split", (3,), {"axis": 1, "squeeze_axis": True}), ("split", (5,), {}),
        ("split_v2", (2,), {}), ("split_v2", ((1,),), {"axis": 1}), ("diag", (), {}), ("topk", (), {"k": 2}),
        ("sort", (), {}), ("argsort", (), {"axis": 0}), ("argmax_channel", (), {}), ("relu", (), {}),
        ("sign", (), {}), ("square", (), {}), ("abs", (), {}), ("round", (), {}), ("zeros_like", (), {}),
        ("ones_like", (), {}), ("shape_array", (), {}), ("size_array", (), {}), ("norm", (), {}),
        ("broadcast_to", ((2, 3, 4),), {}), ("broadcast_axes", (), {"axis": 0, "size": 2}),
        ("tostype", ("default",), {}), ("copy", (), {}), ("as_nd_ndarray", (), {}), ("asnumpy", (), {}))},
    "diag k": lambda mx: _x(mx).diag(1), "diag named": lambda mx: _x(mx).diag(k=-1),
    "broadcast_to row": lambda mx: mx.nd.array([[1, 2]]).broadcast_to((3, 2)),
    "broadcast_to rank": lambda mx: mx.nd.array([1, 2]).broadcast_to((3, 2)),
    "broadcast_to zero": lambda mx: mx.nd.array([[1, 2]]).broadcast_to((3, 0)),
    "broadcast_to wrong": lambda mx: mx.nd.array([[1, 2]]).broadcast_to((3, 3)),
    "broadcast_like": lambda mx: mx.nd.array([[1, 2]]).broadcast_like(mx.nd.ones((3, 2))),
    "one_hot": lambda mx: mx.nd.array([0, 2]).one_hot(3), "pick": lambda mx: _x(mx).pick(mx.nd.array([0, 2])),
    "take": lambda mx: _x(mx).take(mx.nd.array([1, 0])), "slice_like": lambda mx: _x(mx).slice_like(mx.nd.ones((1, 2))),
    "reshape_like": lambda mx: _x(mx).reshape_like(mx.nd.ones((3, 2))),
    "squeeze all": lambda mx: mx.nd.ones((1, 1)).squeeze(),
    "squeeze two": lambda mx: mx.nd.ones((1, 2, 1)).squeeze((0, 2)),
    "squeeze all inplace": lambda mx: mx.nd.ones((1, 1)).squeeze(inplace=True),
    "squeeze axis inplace": lambda mx: mx.nd.ones((1, 2, 1)).squeeze((0, -1), inplace=True),
    "flatten row": lambda mx: mx.nd.ones((3,)).flatten(), "T": lambda mx: _x(mx).T, "T row": lambda mx: mx.nd.ones(3).T,
    "T cube": lambda mx: _cube(mx).T, "len": lambda mx: len(_x(mx)), "size": lambda mx: (_x(mx).size, _x(mx).ndim),
    "stype": lambda mx: _x(mx).stype, "dtype": lambda mx: _x(mx).dtype is np.float32,
    "asscalar": lambda mx: mx.nd.array([2.5]).asscalar(),
    "asscalar int": lambda mx: mx.nd.array([2], dtype="int32").asscalar(),
    "asscalar many": lambda mx: _x(mx).asscalar(), "asscalar nested": lambda mx: mx.nd.array([[2]]).asscalar(),
    "bool many": lambda mx: bool(_x(mx)), "bool one": lambda mx: bool(mx.nd.array([0.5])),
    "bool zero": lambda mx: bool(mx.nd.array([0])), "__nonzero__": lambda mx: mx.nd.array([1]).__nonzero__(),
    "float": lambda mx: float(mx.nd.array([2.5])), "int": lambda mx: int(mx.nd.array([2.5])),
    "index": lambda mx: [10, 20, 30][mx.nd.array([2], dtype="int32")],
    "index float": lambda mx: [10, 20, 30][mx.nd.array([2])],
    "float many": lambda mx: float(_x(mx)), "hash": lambda mx: isinstance(hash(_x(mx)), int),
    "in": lambda mx: 3 in mx.nd.array([1, 2, 3]), "list": lambda mx: [float(v.asscalar()) for v in mx.nd.array([1, 2])],
    "tolist": lambda mx: _x(mx).tolist(), "item": lambda mx: mx.nd.array([1]).item(),
    "slice_assign": lambda mx: mx.nd.zeros((2, 3)).slice_assign(mx.nd.ones((1, 2)), (0, 1), (1, 3), (1, 1)),
    "slice_assign_scalar": lambda mx: mx.nd.zeros((2, 3)).slice_assign_scalar(7, (0, 1), (1, 3), (1, 1)),
    "slice_assign None": lambda mx: mx.nd.zeros((2, 3)).slice_assign_scalar(7, (None, 1), (None, None), (None, None)),
    "copyto": lambda mx: _x(mx).copyto(mx.nd.zeros((2, 3), dtype="int32")),
    "copyto ctx": lambda mx: _x(mx).copyto(mx.cpu(1)).context, "copyto wrong": lambda mx: _x(mx).copyto(3),
    "copyto shape": lambda mx: _x(mx).copyto(mx.nd.zeros((3, 2))),
    "copyto size": lambda mx: _x(mx).copyto(mx.nd.zeros((3, 3))),
    "as_in_context": lambda mx: (lambda x: (x.as_in_context(mx.cpu(0)) is x, x.as_in_context(mx.cpu(1)).ctx))(_x(mx)),
    "as_in_context text": lambda mx: _x(mx).as_in_context("cpu"),
    "detach": lambda mx: _x(mx).detach(), "scoped": _scoped,
    "pickle": lambda mx: pickle.loads(pickle.dumps(_x(mx, "int8"))),
    "pickle ctx": lambda mx: pickle.loads(pickle.dumps(mx.nd.ones((1,), ctx=mx.cpu(1)))).context,
    "copy module": lambda mx: (copy.copy(_x(mx)), copy.deepcopy(_x(mx))),
    "mixed contexts": lambda mx: mx.nd.ones((1,)) + mx.nd.ones((1,), ctx=mx.cpu(1)),
    "wait": lambda mx: (_x(mx).wait_to_read(), mx.nd.waitall()),
    "setattr": lambda mx: setattr(_x(mx), "shape", (3, 2)), "own attribute": lambda mx: setattr(_x(mx), "mine", 1),
}

CALLS = {
    **{f"clip {low} {high}": lambda mx, low=low, high=high: mx.nd.clip(
        mx.nd.array([-3, 0, 1, 2, 5, np.nan, np.inf]), low, high)
        for low, high in ((2, -1), (np.nan, 1), (0, np.nan), (np.nan, np.nan), (-np.inf, np.inf), (0, 1))},
    "clip int 2 -1": lambda mx: mx.nd.array([-3, 0, 5], dtype="int32").clip(2, -1),
    "positional": lambda mx: mx.nd.clip(_x(mx), 2, 4), "by name": lambda mx: mx.nd.clip(data=_x(mx), a_min=2, a_max=4),
    "out": _out(lambda mx, x, out: mx.nd.exp(x * 0, out=out)), "out method": _out(lambda mx, x, out: x.square(out=out)),
    "out positional": _out(lambda mx, x, out: mx.nd.square(x, out)),
    "out shape": _out(lambda mx, x, out: mx.nd.square(x, out=out), (3, 2)),
    "out dtype": _out(lambda mx, x, out: mx.nd.square(x, out=out), (2, 3), "int32"),
    "out scalar": _out(lambda mx, x, out: mx.nd.sum(x, out=out), (1,)),
    "out in place": lambda mx: (lambda x: mx.nd.square(x, out=x))(_x(mx)),
    "out list": lambda mx: (lambda a, b: (mx.nd.split(_x(mx).T, 3, axis=0, out=[a, b, b]), a))(
        mx.nd.zeros((1, 2)), mx.nd.zeros((1, 2))),
    "out of full": _out(lambda mx, x, out: mx.nd.full((2, 3), 4, out=out)),
    "name": lambda mx: mx.nd.square(_x(mx), name="n"), "unknown": lambda mx: mx.nd.square(_x(mx), nothing=1),
    "number for data": lambda mx: mx.nd.square(3), "numpy for data": lambda mx: mx.nd.square(np.ones(3)),
    "list for data": lambda mx: mx.nd.square([1, 2]), "none for data": lambda mx: mx.nd.square(None),
    "no data": lambda mx: mx.nd.square(), "two data": lambda mx: mx.nd.square(_x(mx), data=_x(mx)),
    "too many": lambda mx: mx.nd.square(_x(mx), None, None, 1, 2),
    "concat": lambda mx: mx.nd.concat(_x(mx), _x(mx), dim=0), "concat list": lambda mx: mx.nd.concat([_x(mx)], dim=0),
    "Concat star": lambda mx: mx.nd.Concat(*[_x(mx), _x(mx)], dim=1), "stack": lambda mx: mx.nd.stack(_x(mx), _x(mx)),
    "add_n": lambda mx: mx.nd.add_n(_x(mx), _x(mx)), "concat number": lambda mx: mx.nd.concat(_x(mx), 3),
    "dot": lambda mx: mx.nd.dot(_x(mx), _x(mx), transpose_b=True), "dot wrong": lambda mx: mx.nd.dot(_x(mx), _x(mx)),
    "where": lambda mx: mx.nd.where(_x(mx) > 2, _x(mx), -_x(mx)),
    "None parameter": lambda mx: mx.nd.sum(_x(mx), axis=None),
    "string parameter": lambda mx: mx.nd.sum(_x(mx), axis="1"),
    "bool parameter": lambda mx: mx.nd.sum(_x(mx), keepdims=1),
    "list parameter": lambda mx: mx.nd.sum(_x(mx), axis=[0]), "shape list": lambda mx: mx.nd.reshape(_x(mx), [3, 2]),
    "array parameter": lambda mx: mx.nd.reshape(_x(mx), np.array([3, 2])),
    "float for int": lambda mx: mx.nd.sum(_x(mx), axis=1.0), "NumPy numbers": lambda mx: mx.nd.clip(
        _x(mx), np.float32(2), np.int64(4)), "wrong value": lambda mx: mx.nd.sum(_x(mx), axis="a"),
    "dtype type": lambda mx: mx.nd.one_hot(mx.nd.array([1]), 3, dtype=np.int32),
    "FullyConnected": lambda mx: mx.nd.FullyConnected(_x(mx), mx.nd.ones((2, 3)), mx.nd.ones(2), num_hidden=2),
    "FullyConnected no bias": lambda mx: mx.nd.FullyConnected(_x(mx), mx.nd.ones((2, 3)), num_hidden=2, no_bias=True),
    "FullyConnected None":
        lambda mx: mx.nd.FullyConnected(_x(mx), mx.nd.ones((2, 3)), None, num_hidden=2, no_bias=True),
    "missing input": lambda mx: mx.nd.FullyConnected(_x(mx), num_hidden=2),
    "BatchNorm": lambda mx: mx.nd.BatchNorm(_x(mx), *[mx.nd.ones(3)] * 4, fix_gamma=False),
    "two outputs": lambda mx: mx.nd.topk(_x(mx), k=1, ret_typ="both"),
    "linalg": lambda mx: mx.nd.linalg.gemm2(_x(mx), _x(mx), transpose_b=True),
    "contrib": lambda mx: mx.nd.contrib.box_iou(mx.nd.array([[0, 0, 2, 2]]), mx.nd.array([[1, 1, 3, 3]])),
    "internal": lambda mx: mx.nd._internal._plus_scalar(_x(mx), scalar=1), "no such": lambda mx: mx.nd.nothing,
    "op": lambda mx: mx.nd.op.square(_x(mx)), "underscore": lambda mx: mx.nd._plus_scalar(_x(mx), scalar=1),
    "isnan": lambda mx: mx.nd.contrib.isnan(mx.nd.array([np.nan, 1])),
    "isinf": lambda mx: mx.nd.contrib.isinf(mx.nd.array([np.inf, -np.inf, np.nan, 1])),
    "isfinite": lambda mx: mx.nd.contrib.isfinite(mx.nd.array([np.inf, np.nan, 1])),
    **{f"boolean_mask {mask}": lambda mx, mask=mask: mx.nd.contrib.boolean_mask(_x(mx), mx.nd.array(mask))
       for mask in ([0, 1], [0.5, -1], [0, 0], [np.nan, 0], [1, 0, 1], [[1], [0]])},
    "boolean_mask dtypes": lambda mx: mx.nd.contrib.boolean_mask(_x(mx, "int32"), mx.nd.array([1, 0], dtype="int8")),
    "boolean_mask of numbers": lambda mx: mx.nd.contrib.boolean_mask(mx.nd.array([1, 2, 3]), mx.nd.array([1, 0, 1])),
    "boolean_mask out": lambda mx: mx.nd.contrib.boolean_mask(_x(mx), mx.nd.array([0, 1]), out=mx.nd.zeros((1, 3))),
    "boolean_mask axis": lambda mx: mx.nd.contrib.boolean_mask(_x(mx), mx.nd.array([1, 0, 1]), axis=1),
    "boolean_mask gradient": _mask_gradient,
    "allclose": lambda mx: [mx.nd.contrib.allclose(mx.nd.array([a]), mx.nd.array([b]), equal_nan=equal)
                            for a in (1, np.nan, np.inf) for b in (1, np.nan, np.inf, -np.inf) for equal in (0, 1)],
    "foreach": lambda mx: mx.nd.contrib.foreach(lambda x, s: (x + s, x + s), _x(mx), mx.nd.zeros(3)),
    "foreach of lists": lambda mx: mx.nd.contrib.foreach(
        lambda x, s: ([x[0] * 2, x[1]], [s[0] + x[1]]), [_x(mx), mx.nd.array([1, 2])], [mx.nd.zeros(1)]),
    "foreach of numbers": lambda mx: mx.nd.contrib.foreach(lambda x, s: (x, s), 3, mx.nd.zeros(3)),
    **{f"while_loop {limit}": lambda mx, limit=limit: mx.nd.contrib.while_loop(
        lambda i, s: i < 3, lambda i, s: ([s * 2], [i + 1, s + i]), [mx.nd.array([0]), mx.nd.array([1])], limit)
        for limit in (2, 3, None)},
    "while_loop padded": lambda mx: mx.nd.contrib.while_loop(
        lambda i: i < 3, lambda i: (i * 2, i + 1), mx.nd.array([0]), 5)[0].shape,
    "while_loop of none": lambda mx: mx.nd.contrib.while_loop(lambda i: i < 0, lambda i: (i, i), [mx.nd.array([0])], 5),
    "while_loop one": lambda mx: mx.nd.contrib.while_loop(lambda i: i < 1, lambda i: (i, i + 1), mx.nd.array([0]), 1),
    "cond": lambda mx: [mx.nd.contrib.cond(mx.nd.array([v]), lambda: _x(mx), lambda: -_x(mx)) for v in (0, 2)],
    "cond of many": lambda mx: mx.nd.contrib.cond(_x(mx), lambda: _x(mx), lambda: _x(mx)),
    "waitall": lambda mx: mx.nd.waitall(), "num_gpus": lambda mx: mx.context.num_gpus(),
    "no context": lambda mx: mx.Context("nothing"), "context int": lambda mx: mx.Context(1),
}

FAMILIES = {"arithmetic": ARITHMETIC, "reductions": REDUCTIONS, "creation": CREATION, "casting": CASTING,
            "empty": EMPTY, "text": TEXT, "methods": METHODS, "calls": CALLS}


def described(mx, value):
    """A value as JSON: arrays by dtype, shape and elements, everything else by what it is."""
    if isinstance(value, (mx.nd.NDArray, np.ndarray)):
        kind = "np" if isinstance(value, np.ndarray) else "nd"
        elements = np.asarray(value.asnumpy() if kind == "nd" else value)
        return [kind, str(elements.dtype), list(elements.shape), elements.reshape(-1).tolist()]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(described(mx, v) for v in value)]
    if isinstance(value, np.generic):
        return [type(value).__name__, value.item()]
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return [type(value).__name__, str(value)]


def answer(mx, call):
    """What a call gives, described; or the classes of the error it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return described(mx, call(mx))
    except Exception as error:
        return {"error": [c.__name__ for c in type(error).__mro__ if c is not object], "text": str(error)[:160]}


def main():
    mx = importlib.import_module("mxnet")
    made = {family: {name: answer(mx, call) for name, call in calls.items()} for family, calls in FAMILIES.items()}
    text = json.dumps(made, sort_keys=True, separators=(",", ":")).replace('],"', '],\n"').replace('},"', '},\n"')
    Path(__file__).with_suffix(".json").write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
