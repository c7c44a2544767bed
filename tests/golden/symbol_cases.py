"""Constructions of symbols, written once for MXNet and mxc: each takes the library and gives a Symbol.

`make_symbols.py` writes what MXNet 1.9.1 makes of them; tests/test_symbol.py compares mxc's.
"""
import copy


def _operators(mx):
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    return mx.sym.Group([
        x + y, x - y, x * y, x / y, x % y, x ** y, x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, x / 2, 2 / x, x % 2, 2 % x,
        x ** 2, 2 ** x, -x, abs(x), x == y, x != y, x > y, x >= y, x < y, x <= y, x == 1, x != 1, x > 1, x >= 1, x < 1,
        x <= 1, x > 1, x + 1.5, x + 1e-8, x * 1e20, mx.sym.pow(x, y), mx.sym.pow(x, 2), mx.sym.pow(2, x),
        mx.sym.maximum(x, y), mx.sym.maximum(x, 2), mx.sym.maximum(2, x), mx.sym.minimum(x, y), mx.sym.minimum(x, 2),
        mx.sym.hypot(x, y), mx.sym.hypot(x, 3), mx.sym.hypot(3, x)])


def _constants(mx):
    sym = mx.sym
    return sym.Group([sym.zeros((2, 3)), sym.zeros(3, dtype="float16"), sym.zeros((0, 3), name="q"), sym.ones((2,)),
                      sym.ones((2,), dtype="int32"), sym.full((2, 3), 4.5), sym.full(2, 4, dtype="int8"), sym.arange(5),
                      sym.arange(1, 5, 2, 3, name="ar", dtype="int64"), sym.arange(0)])


def _variables(mx):
    sym = mx.sym
    return sym.Group([
        sym.Variable("a", shape=(2, 0), lr_mult=2, wd_mult=0.5, dtype="float16", init='["one", {}]', stype="row_sparse",
                     __foo__="1"),
        sym.Variable("b", shape=3, dtype="int64"), sym.var("c", attr={"lr_mult": "3", "x": "y"}),
        sym.Variable("d", shape=[2, 3], __lr_mult__=3), sym.Variable("e", shape=(), lr_mult=0, wd_mult=0),
        sym.Variable("f", dtype="uint8"), sym.Variable("g", dtype="bool"),
        sym.Variable('quoted "\\\n\t name \u00e9/')])


def _scopes(mx):
    sym = mx.sym
    with mx.AttrScope(ctx_group="one", __lr_mult__="3"):
        a = sym.Variable("a")
        b = sym.Variable("b", attr={"lr_mult": "1"})
        with mx.AttrScope(ctx_group="two", mirror_stage="1"):
            c = sym.FullyConnected(a, num_hidden=3, name="fc")
            with mx.AttrScope(__note__="inner"):
                d = sym.BatchNorm(c, name="bn")
        e = d * b
    return e + 1


def _prefixes(mx):
    sym = mx.sym
    x = sym.Variable("x")
    with mx.name.Prefix("pre_"):
        y = sym.relu(sym.FullyConnected(sym.relu(x, name="given"), num_hidden=2))
        with mx.name.Prefix("in_"):
            y = sym.relu(sym.relu(y))
        y = sym.relu(y) + sym.Variable("v")
    with mx.name.NameManager():
        y = sym.relu(y)
    return sym.relu(y)


def _layers(mx):
    sym = mx.sym
    x = sym.Variable("data")
    x = sym.Convolution(x, kernel=(3, 3), num_filter=8, stride=[1, 1], pad=(1, 1), no_bias=True)
    x = sym.BatchNorm(x, fix_gamma=False, eps=2e-5, momentum=0.9)
    x = sym.Activation(x, act_type="relu")
    x = sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="avg")
    x = sym.Convolution(x, kernel=(1, 1), num_filter=4, cudnn_tune=None, layout=None)
    x = sym.LeakyReLU(x, act_type="prelu")
    x = sym.Dropout(sym.Flatten(x), p=0.3)
    x = sym.FullyConnected(x, num_hidden=10, name="fc1")
    return sym.SoftmaxOutput(x, name="softmax")


def _outputs(mx):
    sym = mx.sym
    x = sym.Variable("x")
    return sym.Group([sym.BatchNorm(x, output_mean_var=True, name="bn"), sym.split(x, num_outputs=3, axis=1),
                      sym.SliceChannel(x, num_outputs=2, name="sc")[1], sym.SliceChannel(x, num_outputs=1),
                      sym.Dropout(x), sym.max(x, axis=1)])


def _many_inputs(mx):
    sym = mx.sym
    x, y = sym.Variable("x"), sym.Variable("y")
    return sym.Group([sym.Concat(x, y), sym.concat(x, y, dim=0), sym.concat(*[x, y], name="cc", num_args=3),
                      sym.concat(arg0=x, arg1=y), sym.concat(num_args=2, name="c"), sym.add_n(x, y, x),
                      sym.ElementWiseSum(x, y)])


def _arguments(mx):
    sym = mx.sym
    x, y = sym.Variable("x"), sym.Variable("y")
    return sym.Group([
        sym.FullyConnected(x, y, num_hidden=3), sym.FullyConnected(data=x, weight=y, num_hidden=3),
        sym.FullyConnected(bias=y, num_hidden=3, name="z"), sym.FullyConnected(num_hidden=3, name="w"),
        sym.FullyConnected(x, y, y, 3), sym.FullyConnected(x, num_hidden=3, attr={"__foo__": "bar", "lr_mult": "2"}),
        sym.FullyConnected(x, num_hidden=3, __wd_mult__=2), sym.Activation(x, "relu"), sym.BatchNorm(x, moving_mean=y),
        sym.relu(x, name=""), sym.clip(x, 0, 6), sym.SoftmaxOutput(x), sym.softmax(x, axis=-1, name="s"),
        sym.dot(x, y, transpose_b=True), sym.where(x, y, y), sym.Deconvolution(x, kernel=(2, 2), num_filter=3),
        sym.LinearRegressionOutput(x)])


def _shaping(mx):
    sym = mx.sym
    x = sym.Variable("x")
    return sym.Group([
        sym.reshape(x, (2, 3)), sym.reshape(x, shape=[2, 3]), sym.Reshape(x, shape=(0, -1), name="rr"),
        x.reshape(shape=(2, -1), reverse=True), sym.transpose(x), x.transpose((1, 0)),
        sym.sum(x, axis=1, keepdims=True), sym.sum(x, axis=(1, 2)), sym.sum_axis(x, axis=1), x.mean(axis=1),
        x.astype("float16"), sym.Cast(x, dtype="int32"), sym.cast(x, dtype="int32"),
        sym.slice_axis(x, axis=0, begin=1, end=None), sym.expand_dims(x, axis=1), x.flatten(), x.norm(), x.square(),
        x.slice_axis(axis=1, begin=0, end=2), x.expand_dims(0), x.clip(0, 6), x.softmax(), x.round(), x.split(2)])


def _aliases(mx):
    sym, internal = mx.sym, mx.sym._internal
    x, y = sym.Variable("x"), sym.Variable("y")
    return sym.Group([internal._plus(x, y), internal._Plus(x, y), internal._PlusScalar(x, scalar=3),
                      sym.elemwise_add(x, y), sym.broadcast_plus(x, y), sym.broadcast_add(x, y), sym.identity(x),
                      internal._copy(x), sym.stop_gradient(x), sym.BlockGrad(x), sym.make_loss(x), sym.MakeLoss(x)])


def _net(mx):
    return mx.sym.FullyConnected(mx.sym.relu(mx.sym.Variable("data"), name="r"), num_hidden=3, name="f")


def _composed(mx):
    sym = mx.sym
    other = sym.tanh(sym.Variable("in"), name="t")
    net = _net(mx)
    twice = net(data=net(data=other), name="second")
    a = sym.Variable("a")
    shared = sym.relu(a, name="p") + sym.tanh(a, name="q")
    return sym.Group([net, net(data=other), net(name="renamed"), net(f_weight=sym.Variable("w"), data=other), twice,
                      shared(a=other), net.get_internals()(data=other)[1]])


def _children(mx):
    net = mx.sym.BatchNorm(_net(mx), name="b")
    return mx.sym.Group([net.get_children(), mx.sym.Group([_net(mx), mx.sym.Variable("v")]).get_children(),
                         net.get_internals()["f_output"], net])


def _internals(mx):
    sym = mx.sym
    x = sym.Variable("x")
    return sym.Group([sym.split(sym.BatchNorm(sym.Dropout(x, name="d"), name="b"), num_outputs=2, name="s"),
                      sym.max(x, name="m")]).get_internals()


def _copied(mx):
    net = _net(mx)
    one, two = copy.copy(net), copy.deepcopy(net)
    one._set_attr(__one__="1", lr_mult="3")
    two._set_attr(__two__="2")
    return mx.sym.Group([net, one, two])


def _shared_statistics(mx):
    sym = mx.sym
    mean, var = sym.Variable("mean"), sym.Variable("var")
    x = sym.BatchNorm(sym.Variable("x"), moving_mean=mean, moving_var=var, name="b0")
    return sym.BatchNorm(x, moving_mean=mean, moving_var=var, name="b1") + 1


CASES = {
    "operators": _operators, "constants": _constants, "variables": _variables, "scopes": _scopes, "prefixes": _prefixes,
    "layers": _layers, "outputs": _outputs, "many_inputs": _many_inputs, "arguments": _arguments, "shaping": _shaping,
    "aliases": _aliases, "composed": _composed, "children": _children,
    "internals": _internals, "copied": _copied, "shared_statistics": _shared_statistics,
    "variable": lambda mx: mx.sym.Variable("alone"), "net": _net,
    "group": lambda mx: mx.sym.Group([mx.sym.Variable(f"v{i}") for i in range(12)]),
}


def _old(nodes, heads, version=None, arg_nodes=None):
    document = {"nodes": nodes, "arg_nodes": [i for i, n in enumerate(nodes) if n["op"] == "null"], "heads": heads}
    if version is not None:
        document["attrs"] = {"mxnet_version": ["int", version]}
    return document


def _fc(key, attrs, version, weight=None, **more):
    nodes = [{"op": "null", "name": "d", "inputs": []}, {"op": "null", "name": "f_weight", "inputs": [],
                                                       "attr": weight or {}},
             {"op": "null", "name": "f_bias", "inputs": []},
             {"op": "FullyConnected", "name": "f", key: {"num_hidden": "3", **attrs},
              "inputs": [[0, 0], [1, 0], [2, 0]],
              "backward_source_id": -1, **more}]
    return _old(nodes, [[3, 0]], version)


def _batch_norm(key, attrs, version):
    nodes = [{"op": "null", "name": name, "inputs": []} for name in ("d", "g", "b")]
    nodes.append({"op": "BatchNorm", "name": "bn", key: attrs, "inputs": [[0, 0], [1, 0], [2, 0]]})
    return _old(nodes, [[3, 0]], version)


def _statistics(version):
    """Moving statistics and a slope that are listed, without `__init__`."""
    nodes = [{"op": "null", "name": name, "inputs": []} for name in ("d", "g", "b", "m", "v", "s")]
    nodes[4]["attrs"] = {"__init__": "kept"}
    nodes += [{"op": "BatchNorm", "name": "bn", "inputs": [[i, 0] for i in range(5)]},
              {"op": "LeakyReLU", "name": "p", "attrs": {"act_type": "prelu"}, "inputs": [[6, 0], [5, 0]]}]
    return _old(nodes, [[7, 0]], version)


# Old files, as parsed JSON; MXNet's JSON after loading them says what they mean.
OLD_FILES = {
    **{f"{key} {version}": _fc(key, {"lr_mult": "2", "weight_lr_mult": "1.5", "ctx_group": "g"}, version,
                               {"__wd_mult__": "9"})
       for key in ("attrs", "attr", "param") for version in (None, 800, 900, 904, 905, 10000, 10900)},
    "param and attr": _fc("param", {}, None, attr={"lr_mult": "2", "num_hidden": "5", "bias_wd_mult": "4"}),
    "weight wins": _fc("attrs", {"weight_lr_mult": "1.5"}, 800, {"lr_mult": "9"}),
    "plain wins": _fc("attrs", {"__lr_mult__": "7", "lr_mult": "8"}, 800),
    "user attribute": _fc("attrs", {"__foo__": "7"}, 10901),
    "no statistics": _batch_norm("attrs", {}, None),
    "no statistics, attributes": _batch_norm("param", {"eps": "0.1", "__lr_mult__": "3", "wd_mult": "4"}, 800),
    **{f"statistics {version}": _statistics(version) for version in (None, 900, 902, 903, 904)},
    "aliases": _old([{"op": "null", "name": "d", "inputs": []},
                     {"op": "concat", "name": "a", "attrs": {"num_args": "1"}, "inputs": [[0, 0]]},
                     {"op": "_Plus", "name": "b", "inputs": [[1, 0], [1, 0]]}], [[2, 0]]),
    "unused": _old([{"op": "null", "name": name, "inputs": []} for name in ("unused", "d", "w")]
                   + [{"op": "relu", "name": "a", "inputs": [[1, 0]]}], [[3, 0]]),
}
