"""Write ndarray_dict.params and ndarray_list.params, files of arrays by MXNet 1.9.1's `nd.save`: with MXNet's Python.

The first has an array of each dtype and four sparse ones, by name; the second two arrays without names. MXNet may write
how many rows of a sparse array are stored before it has computed them: none, although there are two. Readers must stand
that, so it is made to happen to `rsp`, which waits for a slow product.
"""
from pathlib import Path

import mxnet as mx
import numpy as np

HERE = Path(__file__).parent
SLOW = 4000  # rows of a square matrix; some seconds of work
ONES = {"f16": "float16", "f64": "float64", "i8": "int8", "u8": "uint8", "i32": "int32"}


def main():
    arrays = {short: mx.nd.ones((2,), dtype=dtype) for short, dtype in ONES.items()}
    arrays["i64"] = mx.nd.array(np.array([2**40, -1]), dtype="int64")
    arrays["b"] = mx.nd.array([1, 0, 1], dtype="bool")
    arrays["f32"] = mx.nd.array([[1.5, -2.25], [np.inf, np.nan]])
    arrays["csr"] = mx.nd.array([[0, 0, 1.5], [0, 0, 0], [2, 0, -3]]).tostype("csr")
    slow = mx.nd.dot(mx.nd.zeros((SLOW, SLOW)), mx.nd.zeros((SLOW, SLOW)))[0, 0]
    arrays["rsp"] = (mx.nd.array([[0, 0], [1, 2], [0, 0], [3, 4]]) + slow).tostype("row_sparse")
    arrays["rsp0"] = mx.nd.sparse.zeros("row_sparse", (3, 2))
    arrays["csr0"] = mx.nd.sparse.zeros("csr", (3, 2))
    mx.nd.save(str(HERE / "ndarray_dict.params"), arrays)
    mx.nd.save(str(HERE / "ndarray_list.params"), [mx.nd.array(np.arange(6).reshape(2, 3)),
                                                   mx.nd.array([7], dtype="int32")])


if __name__ == "__main__":
    main()
