"""Short programs with arrays that are kept in parts, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `sparse_arrays.py` writes what MXNet 1.9.1 answers to sparse_arrays.json, a line for each program;
tests/test_sparse_arrays.py compares mxc's.
"""
import itertools
import json
import operator
import pickle
from pathlib import Path

import numpy as np

A = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [3, 0, 0, 0.25]], "float32")
B = np.array([[0, 4, -2, 0], [0, 7, 0, 0.5], [0, 0, 0, 0]], "float32")
DENSE, ROWS, CSR = "default", "row_sparse", "csr"
KEPT = ROWS, CSR


def _kept(mx, values, stype):
    array = mx.nd.array(values, dtype=values.dtype)
    return array if stype == DENSE else array.tostype(stype)


def _array(array):
    """How an array is kept, what its elements are, and its class."""
    return [array.stype, type(array).__name__, str(np.dtype(array.dtype)), list(array.shape), array.asnumpy().tolist()]


def _parts(array):
    """The same with the parts."""
    indptr = array.indptr.asnumpy().tolist() if array.stype == CSR else None
    return [*_array(array), array.data.asnumpy().tolist(), array.indices.asnumpy().tolist(), indptr]


def _said(mx, found, shown=_array):
    """An answer as JSON has it."""
    if isinstance(found, mx.nd.NDArray):
        return shown(found)
    if isinstance(found, (list, tuple)):
        return [_said(mx, one, shown) for one in found]
    if isinstance(found, np.ndarray):
        return found.tolist()
    return found if found is None or isinstance(found, (bool, int, float, str)) else str(found)


def answer_of(mx, call, shown):
    """What a program answers, or as {"error": names} the class of what it raises and that class's bases."""
    try:
        return _said(mx, call(mx), shown)
    except Exception as error:
        names = [c.__name__ for c in type(error).__mro__]
        return {"error": names[:names.index("Exception") + 1]}


def answer(mx, case):
    return answer_of(mx, *CASES[case])


# ---- creation

_MAKE = {
    "csr of parts": lambda s: s.csr_matrix(([1., 2, 3], [2, 0, 1], [0, 1, 1, 3]), shape=(3, 4)),
    "csr of parts, shape found": lambda s: s.csr_matrix(([1., 2, 3], [2, 0, 1], [0, 1, 1, 3])),
    "csr of parts, dtype": lambda s: s.csr_matrix(([1, 2], [0, 1], [0, 1, 2]), shape=(2, 2), dtype="int32"),
    "csr of parts, NumPy": lambda s: s.csr_matrix((np.array([1, 2.]), np.array([0, 1]), np.array([0, 1, 2]))),
    "csr of parts, NumPy of integers": lambda s: s.csr_matrix((np.array([1, 2]), [0, 1], [0, 1, 2])),
    "csr of coordinates": lambda s: s.csr_matrix(([1., 2], ([0, 1], [1, 0])), shape=(2, 2)),
    "csr of nothing": lambda s: s.csr_matrix((2, 3)),
    "csr of nothing, dtype": lambda s: s.csr_matrix((2, 3), dtype="float64"),
    "csr of a list": lambda s: s.csr_matrix([[1, 0], [0, 2]]),
    "csr of NumPy": lambda s: s.csr_matrix(A.astype("float64")),
    "csr of a wrong shape": lambda s: s.csr_matrix(A, shape=(2, 4)),
    "csr of one axis": lambda s: s.csr_matrix([1, 2]),
    "csr of two parts": lambda s: s.csr_matrix(([1., 2], [0, 1])),
    "csr of three axes": lambda s: s.zeros("csr", (1, 2, 3)),
    "rows of parts": lambda s: s.row_sparse_array(([[1, 2], [3, 4.]], [1, 4]), shape=(6, 2)),
    "rows of parts, shape found": lambda s: s.row_sparse_array(([[1, 2], [3, 4.]], [1, 4])),
    "rows of parts, dtype": lambda s: s.row_sparse_array(([[1], [3]], [0, 2]), shape=(3, 1), dtype="int32"),
    "rows of three axes": lambda s: s.row_sparse_array((np.ones((1, 2, 3)), [1]), shape=(4, 2, 3)),
    "rows of nothing": lambda s: s.row_sparse_array((4, 2)), "rows of a list": lambda s: s.row_sparse_array([[1], [0]]),
    "rows of NumPy": lambda s: s.row_sparse_array(A), "zeros csr": lambda s: s.zeros("csr", (2, 3)),
    "zeros rows": lambda s: s.zeros("row_sparse", (2, 3), dtype="float16"),
    "zeros dense": lambda s: s.zeros("default", (2, 3)), "zeros of no kind": lambda s: s.zeros("coo", (2, 3)),
    "empty csr": lambda s: s.empty("csr", (2, 3)), "empty rows": lambda s: s.empty("row_sparse", (2, 3)),
    "array of NumPy": lambda s: s.array(A),
    "dense zeros, stype": None,
}


def _make(mx, call):
    return mx.nd.zeros((2, 3), stype="csr") if call is None else call(mx.nd.sparse)


def _dtype_of(name):
    return lambda mx: mx.nd.sparse.csr_matrix(mx.nd.array([[1, 0]], dtype=name))


# ---- methods

_METHODS = {
    "copy": lambda mx, x: x.copy(), "astype": lambda mx, x: x.astype("int32"),
    "astype itself": lambda mx, x: x.astype("float32", copy=False) is x,
    "tostype csr": lambda mx, x: x.tostype("csr"), "tostype row_sparse": lambda mx, x: x.tostype("row_sparse"),
    "tostype default": lambda mx, x: x.tostype("default"), "as_in_context": lambda mx, x: x.as_in_context(mx.cpu(1)),
    "tostype of no kind": lambda mx, x: x.tostype("coo"), "pickle": lambda mx, x: pickle.loads(pickle.dumps(x)),
    "repr": lambda mx, x: repr(x), "ndim": lambda mx, x: x.ndim, "len": lambda mx, x: len(x),
    "context": lambda mx, x: str(x.as_in_context(mx.cpu(1)).context), "detach": lambda mx, x: x.detach(),
    "copyto dense": lambda mx, x: x.copyto(mx.nd.zeros((3, 4))),
    "copyto itself kept": lambda mx, x: x.copyto(mx.nd.sparse.zeros(x.stype, (3, 4))),
    "copyto another shape": lambda mx, x: x.copyto(mx.nd.sparse.zeros(x.stype, (2, 4))),
    "copyto another dtype": lambda mx, x: x.copyto(mx.nd.sparse.zeros(x.stype, (3, 4), dtype="float64")),
    "copyto a device": lambda mx, x: x.copyto(mx.cpu(1)), "copyto a number": lambda mx, x: x.copyto(3),
    "dense copyto": lambda mx, x: mx.nd.ones((3, 4)).copyto(x), "reshape": lambda mx, x: x.reshape((4, 3)),
    "check_format": lambda mx, x: x.check_format(), "abs": lambda mx, x: abs(x), "negative": lambda mx, x: -x,
    "zeros_like": lambda mx, x: x.zeros_like(), "sum": lambda mx, x: x.sum(), "norm": lambda mx, x: x.norm(),
    "square": lambda mx, x: x.square(), "bool": lambda mx, x: bool(x), "asscalar": lambda mx, x: x.asscalar(),
    "data": lambda mx, x: x.data, "indices": lambda mx, x: x.indices,
    "array": lambda mx, x: mx.nd.array(x), "sparse array": lambda mx, x: mx.nd.sparse.array(x),
    "csr_matrix": lambda mx, x: mx.nd.sparse.csr_matrix(x),
    "row_sparse_array": lambda mx, x: mx.nd.sparse.row_sparse_array(x),
    "transpose": lambda mx, x: x.T,
    "slice": lambda mx, x: x.slice((0, 1), (2, 4)), "expand_dims": lambda mx, x: x.expand_dims(0),
}
_KEYS = {"0": 0, "-1": -1, "3": 3, ":": slice(None), "0:2": slice(0, 2), "1:3": slice(1, 3), "::2": slice(0, 3, 2),
         "2:1": slice(2, 1), "-2:": slice(-2, None), "5:6": slice(5, 6), "0, 1": (0, 1),
         ":, 0:2": (slice(None), slice(0, 2)), "a list": [0, 1], "0:2, 0:2:2": (slice(0, 2), slice(0, 2, 2))}
_VALUES = {"dense": lambda mx: mx.nd.ones((3, 4)), "csr": lambda mx: _kept(mx, B, CSR),
           "rows": lambda mx: _kept(mx, B, ROWS), "numpy": lambda mx: B, "1": lambda mx: 1, "0": lambda mx: 0,
           "short": lambda mx: mx.nd.ones((2, 4)), "text": lambda mx: "a"}


def _set(key, value):
    def call(mx, x):
        x[key] = value(mx)
        return x

    return call


_METHODS |= {f"[{name}]": lambda mx, x, key=key: x[key] for name, key in _KEYS.items()}
_METHODS |= {f"[:] = {name}": _set(slice(None), value) for name, value in _VALUES.items()}
_METHODS |= {"[0] = 1": _set(0, lambda mx: 1), "[0:2] = dense": _set(slice(0, 2), lambda mx: mx.nd.ones((2, 4)))}


def _method(call, stype):
    return lambda mx: call(mx, _kept(mx, A, stype))


# ---- operators

_UNARY = [
    "abs", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "degrees", "expm1", "fix", "floor", "log1p",
    "negative", "radians", "relu", "rint", "round", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan",
    "tanh", "trunc", "exp", "cos", "zeros_like", "make_loss", "BlockGrad", "ones_like"]
_BINARY = [
    "elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "broadcast_add", "broadcast_sub",
    "broadcast_mul", "broadcast_div", "broadcast_maximum"]
_OF_ALL = {
    "sum": {}, "sum 0": {"axis": 0}, "sum 1": {"axis": 1}, "sum 1 kept": {"axis": 1, "keepdims": True},
    "mean 1": {"axis": 1}, "mean 0": {"axis": 0}, "norm": {}, "norm 1": {"ord": 1}, "norm rows": {"axis": 1},
    "clip": {"a_min": 0.5, "a_max": 2}, "clip zero": {"a_min": -1, "a_max": 2},
    "slice": {"begin": (0, 1), "end": (2, 4)},
    "slice rows": {"begin": (1,), "end": (3,)}, "slice step": {"begin": (0,), "end": (3,), "step": (2,)},
    "cast_storage csr": {"stype": "csr"}, "cast_storage row_sparse": {"stype": "row_sparse"},
    "cast_storage default": {"stype": "default"}, "Cast": {"dtype": "float16"}, "max": {}, "transpose": {},
}
_SCALAR = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
           "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<=": operator.le}


def _of_one(name, stype, more):
    return lambda mx: getattr(mx.nd, name)(_kept(mx, A, stype), **more)


def _of_two(name, stypes):
    return lambda mx: getattr(mx.nd, name)(_kept(mx, A, stypes[0]), _kept(mx, B, stypes[1]))


def _python(sign, stype, other):
    return lambda mx: sign(_kept(mx, A, stype), other(mx) if callable(other) else other)


def _reverse(sign, stype, other):
    return lambda mx: sign(other, _kept(mx, A, stype))


def _in_place(name, stype, other):
    def call(mx):
        x = _kept(mx, A, stype)
        return getattr(operator, name)(x, other(mx) if callable(other) else other)

    return call


def _product(stypes, transposed, more):
    def call(mx):
        left = A.T.copy() if transposed[0] else A
        right = B.copy() if transposed[1] else B.T.copy()
        return mx.nd.dot(_kept(mx, left, stypes[0]), _kept(mx, right, stypes[1]), transpose_a=transposed[0],
                         transpose_b=transposed[1], **more)

    return call


def _where(stypes):
    return lambda mx: mx.nd.where(*(_kept(mx, values, stype) for values, stype in zip((A, B, A), stypes, strict=True)))


def _embedding(stype, sparse_grad):
    return lambda mx: mx.nd.Embedding(mx.nd.array([[0, 2], [1, 2]]), _kept(mx, A, stype), input_dim=3, output_dim=4,
                                      sparse_grad=sparse_grad)


def _retained(rows):
    return lambda mx: mx.nd.sparse.retain(_kept(mx, A, ROWS), mx.nd.array(rows))


CASES = {f"make {name}": (lambda mx, call=call: _make(mx, call), _parts if "dense" not in name else _array)
         for name, call in _MAKE.items()}
CASES["make zeros dense"] = CASES["make zeros dense"][0], _array
CASES["make zeros of no kind"] = CASES["make zeros of no kind"][0], _array
CASES["make dense zeros, stype"] = CASES["make dense zeros, stype"][0], _parts
CASES |= {f"make csr of {name}": (_dtype_of(name), _parts) for name in (
    "float16", "float64", "int32", "int64", "int8", "uint8")}
CASES |= {f"{stype} {name}": (_method(call, stype), _array) for stype in KEPT for name, call in _METHODS.items()}
CASES |= {f"{name}({stype})": (_of_one(name, stype, {}), _array) for name in _UNARY for stype in KEPT}
CASES |= {f"{name}({stype})": (_of_one(name.split()[0], stype, more), _array)
          for name, more in _OF_ALL.items() for stype in (KEPT if "cast" not in name else (DENSE, *KEPT))}
CASES |= {f"{name}({', '.join(stypes)})": (_of_two(name, stypes), _array) for name in _BINARY
          for stypes in itertools.product((DENSE, *KEPT), repeat=2) if stypes != (DENSE, DENSE)}
CASES |= {f"{stype} {sign} {other}": (_python(call, stype, other), _array) for stype in KEPT
          for sign, call in _SCALAR.items() for other in (2, 0.5, 0) if not (sign == "/" and not other)}
CASES |= {f"{other} {sign} {stype}": (_reverse(call, stype, other), _array) for stype in KEPT
          for sign, call in _SCALAR.items() for other in (2,) if sign not in ("/", "**")}
CASES |= {f"{stype} {sign} {name}": (_python(_SCALAR[sign], stype, other), _array) for stype in KEPT
          for sign in ("+", "-", "*", "==", ">") for name, other in _VALUES.items() if name in ("dense", "csr", "rows")}
CASES |= {f"{stype} {sign} {name}": (_in_place(sign, stype, _VALUES.get(name, name)), _array) for stype in KEPT
          for sign in ("iadd", "isub", "imul") for name in (2, "dense", "csr", "rows")}
CASES |= {f"dot({', '.join(stypes)}, {', '.join(map(str, transposed))}{more})": (_product(stypes, transposed, more),
                                                                                   _array)
          for stypes in itertools.product((DENSE, *KEPT), repeat=2) if stypes != (DENSE, DENSE)
          for transposed in itertools.product((False, True), repeat=2)
          for more in ({}, {"forward_stype": "row_sparse"}, {"forward_stype": "csr"}, {"forward_stype": "default"})}
CASES |= {f"where({', '.join(stypes)})": (_where(stypes), _array) for stypes in (
    (CSR, DENSE, DENSE), (CSR, CSR, CSR), (DENSE, CSR, CSR), (ROWS, DENSE, DENSE), (ROWS, ROWS, ROWS))}
CASES |= {f"Embedding({stype}, {sparse})": (_embedding(stype, sparse), _array) for stype in KEPT
          for sparse in (False, True)}
CASES |= {f"retain {rows}": (_retained(rows), _array) for rows in ([0, 1], [2, 0], [0, 0], [1])}
CASES |= {
    "concat csr": (lambda mx: mx.nd.concat(_kept(mx, A, CSR), _kept(mx, B, CSR), dim=0), _parts),
    "concat csr columns": (lambda mx: mx.nd.concat(_kept(mx, A, CSR), _kept(mx, B, CSR), dim=1), _array),
    "concat rows": (lambda mx: mx.nd.concat(_kept(mx, A, ROWS), _kept(mx, B, ROWS), dim=0), _array),
    "take csr": (lambda mx: mx.nd.take(_kept(mx, A, CSR), mx.nd.array([2, 0, 7, -1])), _array),
    "take rows": (lambda mx: mx.nd.take(_kept(mx, A, ROWS), mx.nd.array([2, 0])), _array),
    "add_n rows": (lambda mx: mx.nd.add_n(*(_kept(mx, v, ROWS) for v in (A, B, A))), _array),
    "add_n csr": (lambda mx: mx.nd.add_n(*(_kept(mx, v, CSR) for v in (A, B))), _array),
    "add_n mixed": (lambda mx: mx.nd.add_n(_kept(mx, A, ROWS), mx.nd.array(B)), _array),
    "square_sum": (lambda mx: mx.nd._internal._square_sum(_kept(mx, A, ROWS), axis=1), _array),
    "square_sum kept": (lambda mx: mx.nd._internal._square_sum(_kept(mx, A, ROWS), axis=1, keepdims=True), _array),
    "square_sum 0": (lambda mx: mx.nd._internal._square_sum(_kept(mx, A, ROWS), axis=0), _array),
    "getnnz": (lambda mx: mx.nd.contrib.getnnz(_kept(mx, A, CSR)), _array),
    "getnnz rows": (lambda mx: mx.nd.contrib.getnnz(_kept(mx, A, CSR), axis=1), _array),
    "edge_id": (lambda mx: mx.nd.contrib.edge_id(_kept(mx, A, CSR), *map(mx.nd.array, ([0, 0, 2, 1], [2, 1, 0, 3]))),
                _array),
    "scatter_elemwise_div": (lambda mx: mx.nd._internal._scatter_elemwise_div(
        _kept(mx, A, ROWS), mx.nd.ones((3, 4)) * 4), _array),
    "scatter_plus_scalar": (lambda mx: mx.nd._internal._scatter_plus_scalar(_kept(mx, A, ROWS), scalar=2), _array),
    "scatter_minus_scalar": (lambda mx: mx.nd._internal._scatter_minus_scalar(_kept(mx, A, CSR), scalar=2), _array),
    "FullyConnected": (lambda mx: mx.nd.FullyConnected(mx.nd.array(B), _kept(mx, A, ROWS), num_hidden=3, no_bias=True),
                       _array),
    "dot vector": (lambda mx: mx.nd.dot(_kept(mx, A, CSR), mx.nd.array([[1], [2], [3], [4]])), _array),
    "sparse add": (lambda mx: mx.nd.sparse.add(_kept(mx, A, CSR), _kept(mx, B, CSR)), _array),
    "sparse subtract": (lambda mx: mx.nd.sparse.subtract(_kept(mx, A, ROWS), _kept(mx, B, ROWS)), _array),
    "sparse multiply": (lambda mx: mx.nd.sparse.multiply(_kept(mx, A, ROWS), 2), _array),
    "sparse divide": (lambda mx: mx.nd.sparse.divide(_kept(mx, A, CSR), 2), _array),
    "unordered": (lambda mx: mx.nd.sparse.csr_matrix(([1., 2, 3], [2, 0, 1], [0, 2, 2, 3]), shape=(3, 4)) * 2, _array),
    "unordered dot": (lambda mx: mx.nd.dot(mx.nd.sparse.csr_matrix(([1., 2, 3], [2, 0, 1], [0, 2, 2, 3]), shape=(3, 4)),
                                           mx.nd.array(B.T)), _array),
    "out": (lambda mx: mx.nd.elemwise_add(_kept(mx, A, CSR), _kept(mx, B, CSR), out=mx.nd.sparse.zeros("csr", (3, 4))),
            _array),
    "dense out": (lambda mx: mx.nd.elemwise_add(_kept(mx, A, CSR), _kept(mx, B, CSR), out=mx.nd.zeros((3, 4))), _array),
    "sparse out": (lambda mx: mx.nd.cos(mx.nd.array(A), out=mx.nd.sparse.zeros("row_sparse", (3, 4))), _array),
}

if __name__ == "__main__":
    import mxnet

    lines = [f"{json.dumps(case)}: {json.dumps(answer(mxnet, case))}" for case in CASES]
    Path(__file__).with_name("sparse_arrays.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(lines)} programs")
