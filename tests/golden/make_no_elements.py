"""Executors and recorded programs over arrays without elements, as MXNet 1.9.1 has them: the table, and who asks.

With MXNet's Python:  make_no_elements.py        writes no_elements.json
Each case is text for both libraries, run with NumPy's shape semantics and without.
"""
import tempfile
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

    def made(self, symbol, **shapes):
        """Outputs of a symbol bound by shapes, whose arguments hold 0."""
        return facts(symbol.simple_bind(self.mx.cpu(), grad_req="null", **shapes).forward())

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

    def load(self, shape):
        """A sum of b and of a variable c whose attribute in the file gives that shape."""
        text = (self.sym.Variable("c", shape=(7, 7)) + self.b).tojson()
        return self.sym.load_json(text.replace('"(7, 7)"', f'"{shape}"'))

    def saved(self, arrays):
        """The bytes of a file, and what it holds."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/saved.params"
            self.nd.save(path, arrays)
            found = self.nd.load(path)
            return [Path(path).read_bytes().hex(), sorted(found) if isinstance(found, dict) else facts(found)]

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
saved(nd.zeros((0, 3))) ;  saved(nd.zeros(())) ;  saved(nd.array([])) ;  saved(nd.ones((2, 3))[0:0])
saved(nd.ones((2,))) ;  saved([nd.array([]), nd.ones((1,))]) ;  saved({"a": nd.array([1])[0:0], "b": nd.ones((1, 2))})
saved([])
made(sym.zeros((0, 3))) ;  made(sym.ones(())) ;  made(sym.full((3, 0, 0), 2)) ;  made(sym.zeros((-1, 3)))
made(sym.eye(3))
made(sym.zeros((-1, 3)) + a, a=(2, 3)) ;  made(sym.ones((0, 3)) + a, a=(2, 3)) ;  made(sym.ones((0, 3)) + a, a=(0, 3))
made(sym.full((-1, -1), 2) + a, a=(0, 3)) ;  made(sym.zeros(()) + a, a=(2, 3)) ;  made(sym.ones(()) * a, a=())
made(sym.random.uniform(shape=(0, 3))) ;  made(sym.random.normal(shape=(-1, 3)) * 0 + a, a=(2, 3))
made(sym.zeros((-2, 3)))
made(sym.random.uniform(shape=()) * 0) ;  made(sym.concat(a, sym.zeros((-1, 3)), dim=0), a=(2, 3))
made(sym.broadcast_add(sym.ones(()), a), a=(2, 3)) ;  made(sym.concat(a, sym.zeros((0, 3)), dim=0), a=(2, 3))
shapes(sym.zeros((0, 3))) ;  shapes(sym.zeros((-1, 3))) ;  shapes(sym.ones((-1, 3)) + a) ;  shapes(sym.ones((0, 3)) + a)
shapes(sym.ones(())) ;  shapes(sym.zeros((-1, 0)) + a, a=(2, 0)) ;  shapes(sym.zeros((-1, 3)) + a, a=(2, 3))
shapes(sym.random.uniform(shape=(-1, 3)) + a, a=(2, 3)) ;  shapes(sym.random.normal(shape=(0, 0, 4)))
shapes(load("(0, 3)")) ;  shapes(load("(0, 3)"), b=(5, 3)) ;  shapes(load("(3, 0)"), b=(5, 3))
shapes(load("(0, 3)"), c=(5, 3))
shapes(load("(-1, 3)"), b=(5, 3)) ;  shapes(load("[0, 3]"), b=(5, 3)) ;  shapes(load("()"), b=(5, 3))
shapes(load("(0, 3, 0)"))
shapes(load("(0,)"), b=(5, 3)) ;  shapes(load("(0, 0)"), b=(5, 3)) ;  shapes(load("None"), b=(5, 3))
shapes(load("(0L, 3L)"), b=(5, 3))
shapes(load("(-2, 3)")) ;  shapes(load("(3, 0)"), c=(0, 4)) ;  shapes(load("(5, 3)"), c=(-1, 4))
shapes(load("(5, 3)"), c=(-2, 3))
shapes(load("(5, 3)"), c=(5, 4)) ;  shapes(load("(0, 3)"), c=(0, 0)) ;  shapes(load("(5, 3)"), c=(0, 2, 2))
shapes(load("abc"), c=(0, 3))
made(load("(0, 3)"), b=(5, 3)) ;  made(load("(3, 0)"), b=(5, 3)) ;  made(load("(-1, 3)"), b=(5, 3))
made(load("(0, 3)"), b=(0, 3))
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
