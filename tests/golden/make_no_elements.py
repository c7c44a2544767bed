"""Executors and recorded programs over arrays without elements, as MXNet 1.9.1 has them: the table, and who asks.

With MXNet's Python:  make_no_elements.py        writes no_elements.json
Each case is text for both libraries, run with NumPy's shape semantics and without.
"""
from pathlib import Path

import numpy as np

ANSWERS = Path(__file__).with_name("no_elements.json")


class Names:
    """What cases are written with."""

    def __init__(self, mx):
        self.mx, self.nd, self.sym = mx, mx.nd, mx.sym
        self.a, self.b = mx.sym.Variable("a"), mx.sym.Variable("b")

    def run(self, symbol, head=None, train=True, req="write", **shapes):
        """Outputs, gradients and states of a bound symbol whose arguments hold 1, 2, ..., the gradients 1."""
        bound = symbol.simple_bind(self.mx.cpu(), grad_req=req, **shapes)
        for i, array in enumerate(bound.arg_arrays):
            if array.size:
                array[:] = i + 1
        for array in bound.grad_arrays:
            if array is not None and array.size:
                array[:] = 1
        outputs = facts(bound.forward(is_train=train))
        given = None if head is None else self.nd.array(head) if np.size(head) else self.nd.zeros(np.shape(head))
        bound.backward(given)
        return [outputs, facts(bound.grad_arrays), facts(bound.aux_arrays)]

    def bind(self, symbol, **arrays):
        """Outputs of a symbol bound to arrays."""
        return facts(symbol.bind(self.mx.cpu(), arrays).forward())

    def grad(self, function, *arrays, req="write", again=False):
        """A recorded function's value, and the arrays' gradients; those of its gradient with `again`."""
        for array in arrays:
            array.attach_grad(req)
        with self.mx.autograd.record():
            value = function(*arrays)
            head = self.mx.autograd.grad(value, list(arrays), create_graph=True)[0] if again else value
        head.backward()
        return [facts(value), facts([array.grad for array in arrays])]

    def shapes(self, symbol, **known):
        """What is inferred, and what in part."""
        return [symbol.infer_shape(**known), symbol.infer_shape_partial(**known)]


TEXT = """
run(a * 2 + 1, np.zeros((0, 3)), a=(0, 3)) ;  run(a * 2 + 1, np.zeros((0, 3)), a=(0, 3), req="add")
run(sym.sum(a, axis=0), [1, 2, 3], a=(0, 3)) ;  run(sym.sum(a), [1], a=(0, 3))
run(sym.softmax(a), np.zeros((0, 3)), a=(0, 3)) ;  run(sym.concat(a, b, dim=0), np.ones((2, 3)), a=(0, 3), b=(2, 3))
run(sym.BatchNorm(a, name="n"), np.zeros((0, 2, 5)), a=(0, 2, 5))
run(sym.concat(a, b, dim=0) * 2, np.ones((2, 3)), a=(0, 3), b=(2, 3), req="add")
run(sym.transpose(a), np.zeros((3, 0)), a=(0, 3))
run(sym.MakeLoss(sym.concat(a, b, dim=0)), a=(0, 3), b=(2, 3)) ;  run(sym.Dropout(a), np.zeros((0, 3)), a=(0, 3))
run(a * a + b, np.ones(()), a=(), b=()) ;  run(a + 1, np.ones((2, 3)), a=(2, 3)) ;  run(sym.sqrt(a), [[1]], a=(-1, 3))
bind(a * 2 + 1, a=nd.array([1, 2, 3])[1:1]) ;  bind(a + b, a=nd.array([1])[0:0], b=nd.array([1])[0:0])
bind(a * a, a=nd.ones((3,))) ;  facts((a * 2).eval(ctx=mx.cpu(), a=nd.array([1, 2, 3])[1:1]))
grad(lambda x: x * 2, nd.array([1, 2, 3])[1:1]) ;  grad(lambda x: (x * 2).sum(), nd.zeros((0, 3)))
grad(lambda x, w: nd.concat(x, w, dim=0).sum(), nd.zeros((0, 3)), nd.ones((2, 3)))
grad(lambda w: w[0:0].sum(), nd.ones((2, 3)))
grad(lambda x: nd.softmax(x), nd.zeros((0, 3)), req="add") ;  grad(lambda x: nd.exp(x), nd.zeros((0, 3)), again=True)
grad(lambda w: w.reshape((3, 2)).sum(), nd.ones((2, 3)))
grad(lambda w, x: w * 3 + nd.sum(x), nd.ones((1,)), nd.zeros((0, 3)))
grad(lambda x: nd.transpose(x), nd.zeros((0, 3))) ;  shapes(a + 1, a=(0, 3))
shapes(sym.FullyConnected(a, num_hidden=2, name="f"), a=(0, 3)) ;  shapes(a + b, a=(0, 3), b=(2, 3))
shapes(sym.FullyConnected(a, num_hidden=2, name="f"), a=(-1, 3)) ;  shapes(a + b, a=(-1, 3), b=(2, 3))
shapes(a + b, a=()) ;  shapes(a + b, a=(0, 3)) ;  shapes(sym.Variable("c", shape=(0, 3)) + b)
shapes(sym.concat(a, b, dim=0), a=(0, 3), b=(2, 3))
shapes(sym.reshape(a, shape=(-1, 3)), a=(0, 3)) ;  shapes(a + b)
"""
CASES = [case.strip() for line in TEXT.splitlines() for case in line.split(" ; ") if case.strip()]


def facts(value):
    """Shape, dtype and values of arrays."""
    if isinstance(value, (list, tuple)):
        return [facts(v) for v in value]
    return None if value is None else [list(value.shape), np.dtype(value.dtype).name, value.asnumpy().tolist()]


def answer(mx, case):
    """What the case gives with NumPy's shape semantics, and without; or that it is refused."""
    found = []
    for active in (True, False):
        with mx.util.np_shape(active):
            names = Names(mx)
            calls = {name: getattr(names, name) for name in dir(names) if not name.startswith("_")}
            try:
                found.append(eval(case, {**calls, "np": np, "facts": facts}))
            except Exception:
                found.append("refused")
    return found


if __name__ == "__main__":
    from answers import run  # beside this script

    made = run(__file__, ANSWERS, CASES, answer)
    print(f"{len(made)} cases")
