"""Short programs that train with arrays that are kept in parts, written once for MXNet and mxc: gradients, updates of
optimizers, stores, symbols, blocks, iterators.

With MXNet's Python, `sparse_training.py` writes what MXNet 1.9.1 answers to sparse_training.json, a line for each
program; tests/test_sparse_training.py compares mxc's.
"""
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from golden.sparse_arrays import CSR, DENSE, ROWS, _kept, answer_of

D = np.array([[1, 0, 2], [0, 0, 0], [3, 0, 0]], "float32")
W = np.arange(6, dtype="float32").reshape(3, 2) / 8
TABLE = np.arange(8, dtype="float32").reshape(4, 2) / 8


def _shown(array):
    """How an array is kept, and its elements; of rows also which are stored."""
    rows = array.indices.asnumpy().tolist() if array.stype == ROWS else None
    return [array.stype, rows, array.asnumpy().tolist()]


def answer(mx, case):
    return answer_of(mx, CASES[case], _shown)


# ---- gradients

def _gradient(function, stype, asked=None, times=1):
    def call(mx):
        x = _kept(mx, D, stype)
        x.attach_grad(stype=asked)
        for _ in range(times):
            with mx.autograd.record():
                y = function(mx, x)
            y.backward()
        return [y.stype, x.grad]

    return call


_FUNCTIONS = {
    "x * 2": lambda mx, x: x * 2, "sin": lambda mx, x: mx.nd.sin(x), "square": lambda mx, x: mx.nd.square(x),
    "x + x": lambda mx, x: x + x, "x - 3 x": lambda mx, x: x - x * 3, "x * x": lambda mx, x: x * x,
    "x / 2": lambda mx, x: x / 2, "abs": lambda mx, x: mx.nd.abs(x), "relu": lambda mx, x: mx.nd.relu(x),
    "norm": lambda mx, x: mx.nd.norm(x), "dense": lambda mx, x: x.tostype("default") * 2,
}


def _dot(asked, request="write", times=1):
    def call(mx):
        data, weight = _kept(mx, D, CSR), mx.nd.array(W)
        weight.attach_grad(stype=asked, grad_req=request)
        for _ in range(times):
            with mx.autograd.record():
                out = mx.nd.dot(data, weight)
                loss = (out * out).sum()
            loss.backward()
        return [out.stype, weight.grad]

    return call


def _embedding(asked, indices):
    def call(mx):
        weight = mx.nd.array(TABLE)
        weight.attach_grad(stype=asked)
        with mx.autograd.record():
            out = mx.nd.Embedding(mx.nd.array(indices), weight, input_dim=4, output_dim=2, sparse_grad=True)
            loss = (out * out).sum()
        loss.backward()
        return [out, weight.grad]

    return call


def _several(function, *stypes):
    """The gradients of a function of several arrays."""
    def call(mx):
        arrays = [_kept(mx, D[::-1].copy() if i % 2 else D, stype) for i, stype in enumerate(stypes)]
        for array in arrays:
            array.attach_grad()
        with mx.autograd.record():
            y = function(mx, *arrays)
        y.backward()
        return [y.stype, *(array.grad for array in arrays)]

    return call


CASES = {f"gradient of {name} of {stype}": _gradient(function, stype) for name, function in _FUNCTIONS.items()
         for stype in (ROWS, CSR)}
CASES |= {f"gradient of dot as {asked}, {request}": _dot(asked, request) for asked in (None, ROWS, DENSE)
          for request in ("write", "add") if (asked, request) != (ROWS, "add")}
CASES |= {
    "gradient of dot, many times": _dot(ROWS, times=6), "gradient of an embedding": _embedding(ROWS, [1, 3, 1]),
    "gradient of an embedding of all": _embedding(ROWS, [[0, 1], [2, 3]]),
    "gradient of an embedding of one": _embedding(ROWS, [2]),
    "gradient of retain": _gradient(lambda mx, x: mx.nd.sparse.retain(x, mx.nd.array([0, 1])), ROWS),
    "gradient of cast_storage": _gradient(lambda mx, x: mx.nd.cast_storage(x, stype="csr") * 3, DENSE),
    "gradient of square_sum": _gradient(
        lambda mx, x: mx.nd._internal._square_sum(x, axis=1, keepdims=True), ROWS),
    "gradients of add_n": _several(lambda mx, a, b: mx.nd.add_n(a, b, a), ROWS, ROWS),
    "gradients of a product": _several(lambda mx, a, b: mx.nd.elemwise_mul(a, b), ROWS, DENSE),
    "gradients of dot of both": _several(lambda mx, a, b: mx.nd.dot(a, b), CSR, DENSE),
    "gradients of a sum of rows and a dense array": _several(lambda mx, a, b: mx.nd.elemwise_add(a, b), ROWS, DENSE),
}


# ---- optimizers

def _updates(name, stype, rows, width, more):
    def call(mx):
        rng = np.random.RandomState(1)
        optimizer = mx.optimizer.create(name, rescale_grad=0.5, **more)
        updater = mx.optimizer.get_updater(optimizer)
        weight = _kept(mx, rng.randn(rows, width).astype("float32"), stype)
        for _ in range(3):
            chosen = np.sort(rng.choice(rows, rows // 2, replace=False))
            grad = mx.nd.sparse.row_sparse_array((rng.randn(len(chosen), width).astype("float32"), chosen),
                                                 shape=(rows, width))
            updater(0, grad, weight)
        states = updater.states[0]
        states = list(states) if isinstance(states, (list, tuple)) else [states]
        return [[one.stype, one.asnumpy().ravel()[::max(1, rows // 6)].tolist()]
                for one in (weight, *states) if one is not None]

    return call


_OPTIMIZERS = {
    "sgd": {}, "sgd decays": {"wd": 0.1}, "sgd clips": {"momentum": 0.9, "wd": 0.1, "clip_gradient": 0.5},
    "sgd at once": {"momentum": 0.9, "wd": 0.1, "lazy_update": False}, "sgd plain at once": {"lazy_update": False},
    "adam": {"wd": 0.1}, "adam clips": {"clip_gradient": 0.3}, "adam at once": {"lazy_update": False, "wd": 0.1},
    "ftrl": {"wd": 0.1}, "ftrl plain": {}, "adagrad": {}, "groupadagrad": {}, "rmsprop": {}, "nag": {"momentum": 0.9},
}
CASES |= {f"{name}, {stype}, {rows} rows": _updates(name.split()[0], stype, rows, 3, {"learning_rate": 0.125, **more})
          for name, more in _OPTIMIZERS.items() for stype in (DENSE, ROWS) for rows in (6, 400)}


# ---- stores

def _rows_of(mx, rows, value):
    return mx.nd.sparse.row_sparse_array((np.full((len(rows), 2), value, "float32"), rows), shape=(4, 2))


def _pulled(store, mx, key, rows):
    out = mx.nd.sparse.zeros("row_sparse", (4, 2))
    store.row_sparse_pull(key, out=out, row_ids=mx.nd.array(rows))
    return out


def _store(kind):
    def call(mx):
        store = mx.kv.create(kind)
        store.init("a", _kept(mx, np.ones((4, 2), "float32"), ROWS))
        found = [_pulled(store, mx, "a", [1, 3]), _pulled(store, mx, "a", [3, 1, 3])]
        store.push("a", _rows_of(mx, [0, 2], 3))
        found.append(_pulled(store, mx, "a", [0, 1, 2, 3]))
        store.push("a", [_rows_of(mx, [0, 2], 3), _rows_of(mx, [2, 3], 4)])
        found.append(_pulled(store, mx, "a", [0, 1, 2, 3]))
        outs = [mx.nd.sparse.zeros("row_sparse", (4, 2)) for _ in range(2)]
        store.row_sparse_pull("a", out=outs, row_ids=[mx.nd.array([0]), mx.nd.array([2])])
        for ignored in (True, False):
            found += [_rows_of(mx, [1], 9), mx.nd.zeros((4, 2))]
            for out in found[-2:]:
                store.pull("a", out=out, ignore_sparse=ignored)
        return found + outs

    return call


def _updating(kind):
    def call(mx):
        store = mx.kv.create(kind)
        store.init(3, _kept(mx, np.ones((4, 2), "float32"), ROWS))
        store.set_optimizer(mx.optimizer.create("sgd", learning_rate=1.0, wd=0))
        store.push(3, [_rows_of(mx, [1], 0.5), _rows_of(mx, [1, 2], 0.25)])
        return _pulled(store, mx, 3, [0, 1, 2, 3])

    return call


CASES |= {f"store {kind}": _store(kind) for kind in ("local", "device")}
CASES |= {f"store {kind} updates": _updating(kind) for kind in ("local", "device")}


# ---- symbols

def _kinds(executor):
    return [[None if array is None else array.stype for array in arrays]
            for arrays in (executor.arg_arrays, executor.grad_arrays, executor.outputs)]


def _bound(make, **shapes):
    return lambda mx: _kinds(make(mx.sym).simple_bind(ctx=mx.cpu(), **shapes))


def _linear(data, weight):
    return lambda sym: sym.SoftmaxOutput(sym.broadcast_add(
        sym.sparse.dot(sym.var("x", stype=data), sym.var("w", stype=weight)), sym.var("b")), sym.var("label"))


def _embedded(weight, sparse):
    return lambda sym: sym.sum(sym.Embedding(sym.var("x"), sym.var("w", stype=weight), input_dim=5, output_dim=2,
                                             sparse_grad=sparse))


def _squares(mx):
    out = mx.sym.sparse.dot(mx.sym.var("x", stype=CSR), mx.sym.var("w", stype=ROWS))
    return mx.sym.MakeLoss(mx.sym.sum(out * out))


def _runs(mx):
    args = {"x": _kept(mx, D, CSR), "w": _kept(mx, W, ROWS)}
    executor = _squares(mx).bind(mx.cpu(), args, {"w": mx.nd.sparse.zeros(ROWS, (3, 2))}, {"x": "null", "w": "write"})
    found = [executor.forward(is_train=True)[0]]
    executor.backward()
    return [*found, executor.grad_dict["w"]]


def _runs_simply(mx):
    executor = _squares(mx).simple_bind(ctx=mx.cpu(), x=(3, 3), w=(3, 2))
    executor.arg_dict["w"][:] = mx.nd.array(W)
    found = [executor.forward(is_train=True, x=_kept(mx, D, CSR))[0]]
    executor.backward()
    return [*found, executor.grad_dict["w"], executor.grad_dict["x"]]


CASES |= {f"bind dot of {data}, {weight}": _bound(_linear(data, weight), x=(4, 6), w=(6, 3), b=(3,), label=(4,))
          for data in (CSR, DENSE) for weight in (ROWS, DENSE)}
CASES |= {f"bind an embedding of {weight}, {sparse}": _bound(_embedded(weight, sparse), x=(4,))
          for weight in (ROWS, DENSE) for sparse in (False, True)}
CASES |= {
    "bind with stype_dict": lambda mx: _kinds((mx.sym.var("x") * 2).simple_bind(
        ctx=mx.cpu(), x=(4, 3), stype_dict={"x": "csr"})),
    "bind with no kind": lambda mx: _kinds((mx.sym.var("x") * 2).simple_bind(
        ctx=mx.cpu(), x=(4, 3), stype_dict={"x": "coo"})),
    "runs": _runs, "runs simply": _runs_simply, "stype of a variable": lambda mx: mx.sym.var("x", stype=CSR).tojson(
        ).count("__storage_type__"), "attribute": lambda mx: mx.sym.var("x", stype=ROWS).attr("__storage_type__"),
}


# ---- blocks

def _parameter(mx):
    nd, rows = mx.nd, mx.nd.array([0, 1, 2, 3])
    parameter = mx.gluon.Parameter("w", shape=(4, 2), stype=ROWS, grad_stype=ROWS)
    parameter.initialize(init=mx.init.Constant(0.5))
    trainer = mx.gluon.Trainer([parameter], "sgd", {"learning_rate": 1.0})
    found = [parameter.row_sparse_data(nd.array([1, 3]))]
    for ids in ([1, 3, 1], [0]):
        with mx.autograd.record():
            weight = parameter.row_sparse_data(nd.array(ids))
            y = nd.Embedding(nd.array(ids), weight, input_dim=4, output_dim=2, sparse_grad=True)
            loss = (y * y).sum()
        loss.backward()
        found.append(parameter.grad())
        trainer.step(1)
        found.append(parameter.row_sparse_data(rows))
    parameter.set_data(_kept(mx, np.ones((4, 2), "float32"), ROWS))
    parameter.zero_grad()
    return [*found, parameter.row_sparse_data(rows), parameter.grad()]


def _blocks(optimizer, options, hybrid):
    def call(mx):
        nn = mx.gluon.nn
        net = nn.HybridSequential()
        with net.name_scope():
            net.add(nn.Embedding(5, 3, sparse_grad=True), nn.Dense(2, flatten=False))
        net.initialize(mx.init.Constant(0.125))
        if hybrid:
            net.hybridize()
        trainer, losses = mx.gluon.Trainer(net.collect_params(), optimizer, options), []
        for ids in ([1, 2], [2, 2], [0, 4], [1, 1], [3, 4]):
            with mx.autograd.record():
                loss = (net(mx.nd.array(ids)) ** 2).sum()
            loss.backward()
            trainer.step(2)
            losses.append(float(loss.asscalar()))
        return [losses, net[0].weight.grad(), net[0].weight.data(), net[1].weight.data()]

    return call


def _sparse_embedding(mx):
    block = mx.gluon.contrib.nn.SparseEmbedding(5, 3)
    block.initialize(mx.init.Constant(0.25))
    trainer = mx.gluon.Trainer(block.collect_params(), "adam", {"learning_rate": 0.125})
    found = [block(mx.nd.array([1, 2]))]
    with mx.autograd.record():
        loss = (block(mx.nd.array([1, 2, 1])) ** 2).sum()
    loss.backward()
    trainer.step(1)
    found.append(block(mx.nd.array([0, 1, 2, 3, 4])))
    with tempfile.TemporaryDirectory() as folder:
        block.save_parameters(f"{folder}/x.params")
        (stored,) = mx.nd.load(f"{folder}/x.params").values()
        block.load_parameters(f"{folder}/x.params")
    return [*found, stored, block(mx.nd.array([1]))]


def _devices(mx):
    devices = [mx.cpu(0), mx.cpu(1)]
    net = mx.gluon.nn.Embedding(4, 2, sparse_grad=True)
    net.initialize(mx.init.Constant(0.125), ctx=devices)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    with mx.autograd.record():
        losses = [(net(mx.nd.array(ids, ctx=device)) ** 2).sum()
                  for ids, device in (([1, 1], devices[0]), ([2, 1], devices[1]))]
    mx.autograd.backward(losses)
    trainer.step(1)
    return [*net.weight.list_data(), *net.weight.list_grad()]


def _refused(call):
    def raises(mx):
        parameter = mx.gluon.Parameter("w", shape=(4, 2), stype=ROWS)
        parameter.initialize(init=mx.init.One())
        return call(mx, parameter)

    return raises


CASES |= {f"blocks, {name}, {hybrid}": _blocks(name, options, hybrid) for name, options in (
    ("sgd", {"learning_rate": 0.5, "momentum": 0.5, "wd": 0.125}), ("adam", {"learning_rate": 0.125}),
    ("adagrad", {"learning_rate": 0.125})) for hybrid in (False, True)}
CASES |= {
    "parameter": _parameter, "SparseEmbedding": _sparse_embedding, "devices": _devices,
    "data of rows": _refused(lambda mx, p: p.data()), "list_data of rows": _refused(lambda mx, p: p.list_data()),
    "rows without a trainer": _refused(lambda mx, p: p.row_sparse_data(mx.nd.array([1]))),
    "a parameter of csr": lambda mx: mx.gluon.Parameter("w", shape=(4, 2), stype="csr"),
    "a gradient of no kind": lambda mx: mx.gluon.Parameter("w", shape=(4, 2), grad_stype="x"),
}


# ---- iterators

LINES = "1.0 0:0.5 2:1.5\n-2.0\n-3.0 0:0.5 1:2.5 2:1.5\n4 2:-1.5\n5 0:1 2:3\n"


def _libsvm(label="", **more):
    def call(mx):
        with tempfile.TemporaryDirectory() as folder:
            files = {"data_libsvm": LINES, "label_libsvm": label}
            for name, content in files.items():
                Path(folder, name).write_text(content)
            named = {name: str(Path(folder, name)) for name, content in files.items() if content}
            batches = mx.io.LibSVMIter(data_shape=(3,), batch_size=2, **named, **more)
            return [[*map(_csr, batch.data), *map(_csr, batch.label), batch.pad] for batch in batches]

    return call


def _csr(array):
    parts = [array.indices.asnumpy().tolist(), array.indptr.asnumpy().tolist()] if array.stype == CSR else None
    return [array.stype, array.asnumpy().tolist(), parts]


CASES |= {"LibSVMIter": _libsvm(),
          "LibSVMIter, sparse labels": _libsvm("9 1:1\n9 0:1\n9 0:3 1:4\n9 \n9 1:2\n", label_shape=(2,))}

if __name__ == "__main__":
    import mxnet

    lines = [f"{json.dumps(case)}: {json.dumps(answer(mxnet, case))}" for case in CASES]
    Path(__file__).with_name("sparse_training.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(lines)} programs")
