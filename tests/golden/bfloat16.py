"""Programs with arrays of bfloat16, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `bfloat16.py` writes what MXNet 1.9.1 answers to bfloat16.json, a line for each program;
tests/test_bfloat16.py compares mxc's. MXNet knows the dtype as NumPy's dtype of one field. What it computes by
itself it cuts to bfloat16, what oneDNN does it rounds, so all numbers here begin as ones that bfloat16 holds.
"""
import os
import tempfile
from pathlib import Path

import numpy as np

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
EDGES = [1 + 2**-8, 1 + 2**-8 + 2**-20, 1 + 3 * 2**-8, 1 + 2**-7 + 2**-8, -1 - 2**-8 - 2**-12, 3.3895314e38, 3.4e38,
         np.inf, -np.inf, -0.0, 0.1, -1e-30, 65504.0]


def numbers(shape, seed=0):
    return (np.random.RandomState(seed).randint(-32, 33, shape) / 16).astype("float32")


def small(mx, shape=(2, 3), seed=0):
    return mx.nd.array(numbers(shape, seed)).astype(BFLOAT16)


def _saved(mx):
    """The bytes of a file, and what is read from it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.params")
        mx.nd.save(path, {"x": small(mx)})
        return [Path(path).read_bytes().hex(), mx.nd.load(path)["x"]]


def _assigned(mx, key, value):
    x = small(mx)
    x[key] = value(mx)
    return x


def _inplace(mx):
    x = small(mx)
    x += 1
    x *= small(mx, seed=1)
    return x


def _bound(mx, make, **shapes):
    """The output of a symbol whose arguments are of bfloat16."""
    args = {name: small(mx, shape, i) for i, (name, shape) in enumerate(shapes.items())}
    return make(mx.sym).bind(mx.cpu(), args).forward()[0]


def _cast_inside(mx):
    """A symbol that casts to bfloat16 and back: the dtypes that are inferred, and the outputs."""
    data, weight = mx.sym.Variable("data"), mx.sym.Variable("weight")
    inner = mx.sym.FullyConnected(mx.sym.amp_cast(data, dtype=BFLOAT16), mx.sym.amp_cast(weight, dtype=BFLOAT16),
                                  no_bias=True, num_hidden=4)
    symbol = mx.sym.Group([inner, mx.sym.amp_cast(inner, dtype="float32")])
    args = {"data": mx.nd.array(numbers((3, 20))), "weight": mx.nd.array(numbers((4, 20), 1))}
    types = symbol.infer_type(data="float32", weight="float32")[1]
    return [[str(t) for t in types], *symbol.bind(mx.cpu(), args).forward()]


def _layer(name, *shapes, **attrs):
    return lambda mx: getattr(mx.nd, name)(*[small(mx, shape, i) for i, shape in enumerate(shapes)], **attrs)


def _norm(mx):
    data = small(mx, (2, 3, 4, 4))
    vectors = [mx.nd.array(numbers((3,), i) + (2 if i in (1, 4) else 0)) for i in range(1, 5)]
    return mx.nd.BatchNorm(data, *vectors, fix_gamma=False)


CALLS = {
    "dtype": lambda mx: [str(small(mx).dtype), small(mx).dtype == BFLOAT16, small(mx).shape],
    "NaN": lambda mx: bool(np.isnan(mx.nd.array([np.nan]).astype(BFLOAT16).astype("float32").asnumpy()[0])),
    **{f"from {dtype}": lambda mx, dtype=dtype: mx.nd.array([3, 100, 2, 0], dtype=dtype).astype(BFLOAT16)
       for dtype in ("float64", "float16", "int32", "int64", "int8", "uint8")},
    **{f"to {dtype}": lambda mx, dtype=dtype: mx.nd.array([3.75, -1.25, 300, 0]).astype(BFLOAT16).astype(dtype)
       for dtype in ("float32", "float64", "float16", "int32", "int64")},
    "amp_cast": lambda mx: mx.nd.amp_cast(mx.nd.array(EDGES), dtype=BFLOAT16),
    "amp_cast back": lambda mx: mx.nd.amp_cast(small(mx), dtype="float32"),
    "cast": lambda mx: mx.nd.cast(mx.nd.array(numbers((2, 3))), dtype=BFLOAT16),
    **{f"amp_multicast {narrow}": lambda mx, narrow=narrow: mx.nd.amp_multicast(
        mx.nd.array(numbers((2, 3))), small(mx), num_outputs=2, cast_narrow=narrow) for narrow in (False, True)},
    "saved": _saved, "zeros": lambda mx: mx.nd.zeros((2, 2), dtype=BFLOAT16),
    "ones": lambda mx: mx.nd.ones((2, 2), dtype=BFLOAT16), "ones_like": lambda mx: mx.nd.ones_like(small(mx)),
    "full": lambda mx: mx.nd.full((2, 2), 1.3, dtype=BFLOAT16), "copy": lambda mx: small(mx).copy(),
    "of an array": lambda mx: mx.nd.array(small(mx)), "element": lambda mx: small(mx)[0, 1],
    "row": lambda mx: small(mx)[1], "column": lambda mx: small(mx)[:, 1],
    "reshape": lambda mx: small(mx).reshape((3, 2)),
    "assigned number": lambda mx: _assigned(mx, slice(None), lambda mx: 1.5),
    "assigned row": lambda mx: _assigned(mx, 0, lambda mx: 2), "in place": _inplace,
    "assigned array": lambda mx: _assigned(mx, slice(None), lambda mx: mx.nd.array(numbers((2, 3), 5))),
    **{name: lambda mx, name=name: getattr(mx.nd, name)(small(mx), small(mx, seed=1))
       for name in ("elemwise_add", "elemwise_mul", "broadcast_sub", "broadcast_maximum")},
    "number": lambda mx: small(mx) * 0.1 + 3, "comparison": lambda mx: small(mx) > small(mx, seed=1),
    **{name: lambda mx, name=name: getattr(mx.nd, name)(small(mx)) for name in ("relu", "abs", "square", "sigmoid")},
    "concat": lambda mx: mx.nd.concat(small(mx), small(mx, seed=1), dim=0),
    "sum": lambda mx: small(mx, (4, 9)).sum(axis=1),
    "FullyConnected": _layer("FullyConnected", (4, 30), (7, 30), (7,), num_hidden=7),
    "Convolution": _layer("Convolution", (2, 4, 7, 7), (5, 4, 3, 3), (5,), kernel=(3, 3), pad=(1, 1), num_filter=5),
    "Pooling": _layer("Pooling", (2, 3, 6, 6), kernel=(2, 2), stride=(2, 2), pool_type="max"),
    "Activation": _layer("Activation", (3, 5), act_type="relu"), "softmax": _layer("softmax", (4, 9)),
    "BatchNorm": _norm, "flatten": _layer("Flatten", (2, 3, 4)),
    "bound": lambda mx: _bound(mx, lambda sym: sym.FullyConnected(
        sym.Activation(sym.Variable("data"), act_type="relu"), sym.Variable("weight"), no_bias=True, num_hidden=4),
        data=(3, 20), weight=(4, 20)),
    "cast inside": _cast_inside, "mixed": lambda mx: small(mx) + mx.nd.ones((2, 3)),
    "LayerNorm mixed": lambda mx: mx.nd.LayerNorm(small(mx), mx.nd.ones(3), mx.nd.zeros(3)),
    "asscalar of many": lambda mx: small(mx).asscalar(),
}


def described(mx, value):
    """Arrays by dtype, shape and numbers, those of bfloat16 by their bits; other values as they are."""
    if isinstance(value, mx.nd.NDArray):
        array = value.asnumpy()
        if array.dtype == BFLOAT16:
            return ["bfloat16", list(array.shape), array["bfloat16"].ravel().tolist()]
        return [array.dtype.name, list(array.shape), array.ravel().tolist()]
    return [described(mx, each) for each in value] if isinstance(value, (list, tuple)) else value


def answer(mx, case):
    """What MXNet, or mxc, says of a program, described; or the class of the error."""
    try:
        return described(mx, CALLS[case](mx))
    except Exception as error:
        return {"error": type(error).__name__}


CASES = list(CALLS)

if __name__ == "__main__":
    import answers

    answers.run(__file__, Path(__file__).with_suffix(".json"), CASES, answer)
