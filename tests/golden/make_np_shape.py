"""Shapes under NumPy's shape semantics, as MXNet 1.9.1 has them: the table, and the script that asks.

With MXNet's Python:  make_np_shape.py        writes np_shape.json
Each case is text for both libraries; its names are those of `arrays`.
"""
from pathlib import Path

import numpy as np

ANSWERS = Path(__file__).with_name("np_shape.json")


def arrays(mx):
    """The names that cases use: a vector, a matrix, an element, an array of none."""
    nd = mx.nd
    return {"nd": nd, "np": np, "v": nd.array([1, 2, 3]), "m": nd.array([[1, 2, 3], [4, 5, 6]]), "s": nd.ones(()),
            "e": nd.zeros((0, 3)), "i": nd.array([1, 2], dtype="int32")}


TEXT = """
v[0] ;  v[-1] ;  v[np.int64(1)] ;  v[True] ;  v[False] ;  m[True] ;  m[True,1] ;  m[1,False] ;  m[True,]
m[0] ;  m[0,1] ;  m[(1,-1)] ;  m[1,] ;  m[0][1]
v[0,...] ;  m[0,1,...] ;  v[0,None] ;  v[None,0] ;  m[0,None,1] ;  v[None] ;  v[...] ;  v[0:1] ;  v[2:2] ;  m[0:0]
v[[0]] ;  m[[0]] ;  v[nd.array([1])] ;  i[1] ;  s[()] ;  s[:] ;  e[:] ;  e[0:0] ;  v[3] ;  m[0,1,0] ;  s[0]
list(v) ;  list(m) ;  v[0] + v[1] ;  v[0] * m ;  nd.exp(v[0] - 1) ;  nd.stack(v[0], v[1]) ;  nd.take(v, v[0])
v[0].shape ;  v[0].size ;  v[0].asscalar() ;  len(v) ;  v[0].copy() ;  v[0].astype('int32') ;  v[1].expand_dims(0)
nd.sum(v) ;  v.sum() ;  nd.sum(m, axis=(0, 1)) ;  nd.sum(m, keepdims=True) ;  nd.mean(v) ;  nd.max(v) ;  nd.prod(m)
nd.argmax(v, axis=0) ;  nd.argmax(m) ;  nd.dot(v, v) ;  nd.sum(s) ;  nd.ones((1,)).squeeze()
nd.split(v, 3, axis=0, squeeze_axis=True) ;  v[0].reshape(()) ;  v[0:1].reshape(()) ;  nd.ones((1, 1)).reshape(())
m.reshape(()) ;  v.reshape((-1,)) ;  m.reshape((0, -1)) ;  s.reshape((1,)) ;  s.reshape((-1,)) ;  s.reshape((1, 1))
e.reshape((0, 5)) ;  e.reshape((-1,)) ;  e.reshape((3, 0)) ;  nd.zeros((0, 3)) ;  nd.full((), 3) ;  nd.array(3)
"""
CASES = [case.strip() for line in TEXT.splitlines() for case in line.split(" ; ") if case.strip()]


def facts(value):
    """Shape, dtype and values of arrays; others as they are."""
    if isinstance(value, (list, tuple)):
        return [facts(v) for v in value]
    return [list(value.shape), np.dtype(value.dtype).name, value.asnumpy().tolist()] if hasattr(value, "asnumpy") \
        else float(value)


def answer(mx, case):
    """What the case gives, or that it is refused."""
    with mx.util.np_shape(True):
        names = arrays(mx)
        try:
            return facts(eval(case, names))
        except Exception:
            return "refused"


if __name__ == "__main__":
    from answers import run  # beside this script

    made = run(__file__, ANSWERS, CASES, answer)
    print(f"{len(made)} cases")
