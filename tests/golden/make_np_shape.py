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
e + 1 ;  e * e ;  e == e ;  1 - e ;  nd.exp(e) ;  nd.sum(e) ;  nd.sum(e, axis=0) ;  nd.sum(e, axis=1)
nd.prod(e, axis=0) ;  nd.argmax(e, axis=1) ;  nd.max(e, axis=0) ;  nd.concat(e, m, dim=0) ;  nd.concat(e, e, dim=1)
nd.stack(e, e) ;  nd.transpose(e) ;  nd.expand_dims(e, 0) ;  nd.dot(e, nd.ones((3, 4))) ;  nd.softmax(e)
nd.softmax(nd.zeros((2, 0))) ;  nd.FullyConnected(e, m, v[:2], num_hidden=2)
nd.broadcast_add(nd.zeros((0, 1)), nd.ones((1, 3))) ;  nd.sort(e) ;  nd.take(m, nd.zeros((0,)))
nd.Embedding(nd.zeros((0,)), m, input_dim=2, output_dim=3) ;  nd.one_hot(nd.zeros((0,)), 3) ;  nd.where(e, e, e)
e.astype('int32') ;  nd.zeros_like(e) ;  nd.clip(e, 0, 1) ;  nd.flip(e, axis=0) ;  nd.topk(e, k=1)
nd.LayerNorm(e, v, v) ;  nd.batch_dot(nd.zeros((0, 2, 3)), nd.zeros((0, 3, 2))) ;  nd.gather_nd(m, nd.zeros((2, 0)))
nd.Convolution(nd.zeros((0, 1, 4, 4)), nd.ones((2, 1, 3, 3)), v[:2], kernel=(3, 3), num_filter=2)
nd.Pooling(nd.zeros((0, 1, 4, 4)), kernel=(2, 2), pool_type='max') ;  nd.split(nd.zeros((0, 4)), 2, axis=1)
nd.BatchNorm(nd.zeros((0, 3, 2)), v, v, v, v) ;  nd.split(nd.zeros((0, 4)), 2, axis=0) ;  nd.reshape(e, shape=(3, 0))
nd.arange(0, 0) ;  nd.slice_axis(m, axis=0, begin=1, end=1) ;  nd.relu(e) ;  nd.Activation(e, act_type='tanh')
e.copy()
nd.random.uniform(shape=(0, 3)).shape ;  nd.random.normal(shape=()).shape ;  nd.random.randint(0, 5, shape=(3, 0)).shape
nd.random.poisson(shape=(0, 3, 0, 4)).shape ;  nd.random.gamma(shape=0).shape ;  nd.random.uniform(shape=(-1, 3)).shape
nd.random.multinomial(v / 6, shape=(0, 3)).shape
nd.eye(0)
nd.random.uniform(v, v, shape=(3, 0)) ;  nd.sample_uniform(v, v, shape=()).shape ;  nd.eye(0, 3) ;  nd.linspace(1, 2, 0)
nd.one_hot(v, 0) ;  nd.one_hot(e, 0) ;  nd.one_hot(v, -1) ;  nd.zeros((-1, 3)) ;  nd.zeros((0, 3, 0, 4)).shape
nd.eye(3, 0)
nd.concat(nd.zeros((0, 2)), nd.zeros((0, 3)), dim=0) ;  nd.concat(nd.zeros((0, 2)), nd.zeros((0, 3)), dim=1)
nd.concat(nd.zeros((0, 3)), e, m, dim=0) ;  nd.concat(s, s, dim=0) ;  nd.stack(s, s) ;  nd.stack(e, e, axis=1)
nd.stack(e)
nd.stack(e, e, axis=-1) ;  nd.concatenate([e, m]) ;  nd.concatenate([e, e], axis=1) ;  nd.concatenate([e, v])
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
