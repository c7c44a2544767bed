"""Devices and groups of nodes, written once for MXNet and mxc: where arrays are, and what programs compute there.

With MXNet's Python, `contexts.py` writes what MXNet 1.9.1 answers to contexts.json; tests/test_context_groups.py
compares mxc's.
"""
import importlib
import json
import random
import sys
from pathlib import Path

GRAPHS = 150  # random graphs whose outputs' devices are recorded


def at(array):
    """The device of an array as text."""
    return None if array is None else str(array.context)


def places(executor, names):
    """The devices of an executor's arrays."""
    return {"arguments": {n: at(a) for n, a in executor.arg_dict.items()},
            "gradients": {n: at(a) for n, a in zip(names, executor.grad_arrays or [], strict=False) if a is not None},
            "states": {n: at(a) for n, a in executor.aux_dict.items()}, "outputs": [at(a) for a in executor.outputs]}


def groups(mx):
    return {"one": mx.cpu(1), "two": mx.cpu(2)}


def two(mx):
    """A layer in each of two groups."""
    with mx.AttrScope(ctx_group="one"):
        hidden = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="fc1")
    with mx.AttrScope(ctx_group="two"):
        return mx.sym.BatchNorm(mx.sym.FullyConnected(hidden, num_hidden=2, name="fc2"), name="bn")


def bound(mx, symbol, ctx, shapes, grad_req="write", **kwargs):
    return places(symbol.simple_bind(ctx, grad_req=grad_req, **shapes, **kwargs), symbol.list_arguments())


def simple(mx, ctx=0, **kwargs):
    """Where simple_bind puts the arrays of `two`."""
    return bound(mx, two(mx), mx.cpu(ctx), {"x": (4, 5)}, **{"group2ctx": groups(mx), **kwargs})


def reloaded(mx):
    return bound(mx, mx.sym.load_json(two(mx).tojson()), mx.cpu(), {"x": (4, 5)}, group2ctx=groups(mx))


def between(mx):
    """Nodes without a group before, between and behind such with one."""
    x = mx.sym.Variable("x")
    with mx.AttrScope(ctx_group="one"):
        first = mx.sym.exp(mx.sym.sin(x, attr={"ctx_group": "two"}))
    second = mx.sym.exp(first)
    with mx.AttrScope(ctx_group="two"):
        third = mx.sym.exp(second)
    return bound(mx, mx.sym.Group([first, second, third, x]), mx.cpu(4), {"x": (2,)}, "null", group2ctx=groups(mx))


def old_attribute(mx, key, version):
    """A file whose nodes have the attribute without underscores, as old ones have."""
    nodes = [{"op": "null", "name": "x", key: {"ctx_group": "one"}, "inputs": []},
             {"op": "exp", "name": "e", key: {"ctx_group": "two"}, "inputs": [[0, 0, 0]]}]
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]], **version})
    return bound(mx, mx.sym.load_json(text), mx.cpu(), {"x": (2,)}, "null", group2ctx=groups(mx))


def attributes(mx, make):
    symbol = make()
    return [symbol.list_attr(), symbol.attr("ctx_group"), symbol.attr("__ctx_group__"), symbol.attr_dict(),
            [node.get("attrs") for node in json.loads(symbol.tojson())["nodes"]]]


def set_later(mx, key):
    symbol = mx.sym.exp(mx.sym.Variable("x"), name="e")
    symbol._set_attr(**{key: "one"})
    return bound(mx, symbol, mx.cpu(), {"x": (2,)}, "null", group2ctx=groups(mx))


def composed(mx):
    with mx.AttrScope(ctx_group="one"):
        outer = mx.sym.exp(mx.sym.Variable("p"), name="e")
    with mx.AttrScope(ctx_group="two"):
        inner = mx.sym.sin(mx.sym.Variable("q"), name="s")
    return bound(mx, outer(p=inner), mx.cpu(), {"q": (2,)}, group2ctx=groups(mx))


def given(mx, ctx=0, args=(0, 0), grads=None, state=None, group2ctx=None):
    """What bind makes of arrays on devices of these numbers, and what runs compute."""
    names = ("x", "y")
    with mx.AttrScope(ctx_group="one"):
        symbol = mx.sym.Variable("x") * mx.sym.Variable("y")
    if state is not None:
        symbol = mx.sym.BatchNorm(symbol, name="bn", fix_gamma=False)
        names = symbol.list_arguments()
    ones = {n: mx.nd.ones((2, 2) if n in "xy" else (2,), device(mx, where)) * (i + 2)
            for i, (n, where) in enumerate(zip(names, args, strict=False))}
    moved = {n: mx.nd.empty(a.shape, device(mx, where)) for (n, a), where in zip(ones.items(), args, strict=False)}
    for name, array in moved.items():
        array[:] = ones[name]
    slopes = None if grads is None else [mx.nd.ones((2, 2), mx.cpu(i)) for i in grads]
    states = None if state is None else [mx.nd.ones((2,), mx.cpu(state)) for _ in range(2)]
    executor = symbol.bind(device(mx, ctx), moved, args_grad=slopes, aux_states=states, group2ctx=group2ctx)
    executor.forward(is_train=True)
    if slopes:
        executor.backward([mx.nd.ones((2, 2), mx.cpu(9))])
    return [places(executor, names), executor.outputs[0].asnumpy().tolist(),
            [g.asnumpy().tolist() for g in slopes or ()]]


def device(mx, where):
    return mx.cpu(where) if isinstance(where, int) else mx.Context(*where)


def shared(mx):
    """A variable that both groups use: its gradient is the sum of theirs."""
    with mx.AttrScope(ctx_group="one"):
        v = mx.sym.Variable("v")
        first = v * v
    with mx.AttrScope(ctx_group="two"):
        second = mx.sym.sin(first) + mx.sym.Variable("w")
        symbol = mx.sym.broadcast_mul(second, mx.sym.sin(first))
    with mx.AttrScope(ctx_group="one"):
        symbol = symbol + v
    executor = symbol.simple_bind(mx.cpu(), v=(2,), w=(2,), group2ctx=groups(mx))
    executor.arg_dict["v"][:] = mx.nd.array([0.5, 2.0])
    executor.arg_dict["w"][:] = mx.nd.array([1.0, -3.0], ctx=mx.cpu(5))
    out = executor.forward(is_train=True)[0]
    executor.backward(mx.nd.array([1.0, 10.0], ctx=mx.cpu(7)))
    return [places(executor, symbol.list_arguments()), out.asnumpy().round(4).tolist(),
            [g.asnumpy().round(4).tolist() for g in executor.grad_arrays]]


def trained(mx):
    """Numbers of the two layers on their devices; then other parameters, and other shapes."""
    symbol = two(mx)
    executor = symbol.simple_bind(mx.cpu(), x=(4, 5), group2ctx=groups(mx))
    for i, array in enumerate(executor.arg_arrays):
        array[:] = mx.nd.arange(array.size, ctx=mx.cpu(3)).reshape(array.shape) % 7 * 0.1 - 0.05 * i
    executor.copy_params_from({"fc1_bias": mx.nd.array([1.0, 2.0, 3.0], ctx=mx.cpu(6))},
                              {"bn_moving_mean": mx.nd.array([0.5, 0.25])})
    outs = executor.forward(is_train=True, x=mx.nd.arange(20, ctx=mx.cpu(8)).reshape((4, 5)) % 3)[0].asnumpy()
    executor.backward(mx.nd.arange(8).reshape((4, 2)))
    found = [outs.round(3).tolist(), [g.asnumpy().round(3).tolist() for g in executor.grad_arrays]]
    names = symbol.list_arguments()
    sizes = [places(executor.reshape(x=(2, 5)), names),
             places(executor.reshape(x=(8, 5), allow_up_sizing=True), names)]
    return [*found, places(executor, names), *sizes]


def sharing(mx, **kwargs):
    """Arrays that a second executor takes from a first, whose groups are elsewhere."""
    other = {"one": mx.cpu(2), "two": mx.cpu(1)}
    first = two(mx).simple_bind(mx.cpu(), x=(4, 5), group2ctx=other)
    return simple(mx, shared_exec=first, shared_arg_names=["fc1_weight"], **kwargs)


def buffered(mx):
    """Arrays of a buffer are taken wherever they are."""
    buffer = {}
    first = simple(mx, shared_buffer=buffer)
    return [first, {n: at(a) for n, a in sorted(buffer.items())},
            simple(mx, 3, shared_buffer=buffer, group2ctx=None)]


def no_inputs(mx):
    with mx.AttrScope(ctx_group="two"):
        drawn = mx.sym.random.uniform(shape=(2,))
    symbols = [drawn, drawn + mx.sym.zeros((2,)), mx.sym.zeros((2,)), mx.sym.zeros((2,), ctx="cpu(9)")]
    return [places(s.bind(mx.cpu(), {}, group2ctx=groups(mx)), []) for s in symbols]


def state_apart(mx):
    with mx.AttrScope(ctx_group="one"):
        x = mx.sym.exp(mx.sym.Variable("x"))
    return bound(mx, mx.sym.BatchNorm(x, name="bn"), mx.cpu(), {"x": (2, 3)}, "null", group2ctx=groups(mx))


def wrong(mx, group2ctx):
    return bound(mx, two(mx), mx.cpu(), {"x": (4, 5)}, group2ctx=group2ctx)


CALLS = {
    "simple": simple, "no groups": lambda mx: simple(mx, 5, group2ctx=None), "reloaded": reloaded,
    "empty groups": lambda mx: simple(mx, 5, group2ctx={}), "between": between, "composed": composed,
    "negative": lambda mx: simple(mx, -3, group2ctx={"one": mx.cpu(-1), "two": mx.cpu(2)}),
    "pinned group": lambda mx: simple(mx, group2ctx={"one": mx.cpu_pinned(1), "two": mx.cpu(2)}),
    "pinned executor": lambda mx: bound(mx, two(mx), mx.cpu_pinned(1), {"x": (4, 5)}),
    "missing": lambda mx: wrong(mx, {"one": mx.cpu(1)}), "other": lambda mx: wrong(mx, {"three": mx.cpu(1)}),
    "text": lambda mx: wrong(mx, {"one": "cpu(1)", "two": mx.cpu(2)}), "list": lambda mx: wrong(mx, [mx.cpu(1)]),
    "number": lambda mx: wrong(mx, {1: mx.cpu(1)}),
    "old file": lambda mx: old_attribute(mx, "attr", {}),
    "new file": lambda mx: old_attribute(mx, "attrs", {"attrs": {"mxnet_version": ["int", 10901]}}),
    "scope": lambda mx: attributes(mx, lambda: two(mx)),
    "variable": lambda mx: attributes(mx, lambda: mx.sym.Variable("x", attr={"ctx_group": "one"})),
    "variable underscores": lambda mx: attributes(mx, lambda: mx.sym.Variable("x", __ctx_group__="one")),
    "variable keyword": lambda mx: attributes(mx, lambda: mx.sym.Variable("x", ctx_group="one")),
    "operator": lambda mx: attributes(mx, lambda: mx.sym.exp(mx.sym.Variable("x"), name="e",
                                                             attr={"__ctx_group__": "one"})),
    "operator keyword": lambda mx: attributes(mx, lambda: mx.sym.exp(mx.sym.Variable("x"), name="e", ctx_group="a")),
    "set later": lambda mx: set_later(mx, "ctx_group"), "set later _": lambda mx: set_later(mx, "__ctx_group__"),
    **{f"bind {args} {grads}": lambda mx, args=args, grads=grads: given(mx, 0, args, grads, group2ctx=groups(mx))
       for args, grads in (((0, 0), None), ((1, 1), (1, 1)), ((2, 1), None), ((2, 5), (1, 1)), ((5, 5), (1, 1)))},
    **{f"bind {ctx} {args} {grads}": lambda mx, ctx=ctx, args=args, grads=grads: given(mx, ctx, args, grads)
       for ctx, args, grads in ((0, (0, 0), (0, 0)), (0, (0, 1), None), (0, (1, 1), None), (1, (1, 1), (1, 1)),
                                (1, (0, 0), None), (0, (0, 0), (0, 1)), (0, (0, ("cpu_pinned",)), None),
                                (("cpu_pinned", 1), (("cpu_pinned", 1), ("cpu_pinned", 1)), None),
                                (("cpu_pinned", 0), (0, 0), None), (0, (("cpu_shared", 0), 0), None),
                                (-2, (0, 0), None), (0, (-1, -5), None))},
    "states elsewhere": lambda mx: given(mx, 0, (0, 0, 0, 0), None, 3),
    "states elsewhere, groups": lambda mx: given(mx, 0, (0, 0, 0, 0), None, 3, groups(mx)),
    "states elsewhere, one group": lambda mx: given(mx, 0, (2, 0, 3, 3), None, 1, groups(mx)),
    "states without a group": state_apart,
    "shared": shared, "trained": trained, "sharing": sharing, "buffered": buffered, "no inputs": no_inputs,
}


def copies(mx):
    x, y = mx.nd.ones((2,)), mx.nd.zeros((2,), mx.cpu(1))
    return [x.copyto(y) is y, y.asnumpy().tolist(), x.copyto(mx.cpu(0)) is x, at(x.copyto(mx.cpu(3))),
            x.as_in_context(mx.cpu(0)) is x, at(y.as_in_context(mx.cpu(0))), at(mx.nd.array(y)),
            at(mx.nd.array(y, ctx=mx.cpu(2))), at(y[0:1]), at(y.reshape((2, 1))), at(y.copy()), at(y.astype("int32"))]


def kept(mx, kind):
    """Memory for transfers: what stays in it, and what the CPU computes from it."""
    context = mx.Context(kind, 2)
    x, y = mx.nd.ones((2, 3), context), mx.nd.ones((2, 3), mx.cpu(1))
    stays = [x, x.copy(), x.astype("float16"), x[0], x[0:1], x.reshape((3, 2)), x.detach(), x.__iadd__(y),
             x.__iadd__(1), mx.nd.arange(3, ctx=context), mx.nd.full((2,), 3, ctx=context),
             mx.nd.array([1], ctx=context), mx.nd.elemwise_add(y, y, out=x),
             mx.nd.random.uniform(shape=(2,), ctx=context)]
    leaves = [x + 1, x + y, y + x, -x, x.sum(), x.T, x.zeros_like(), mx.nd.concat(x, y, dim=0), x[:, 1], x == x,
              x.expand_dims(0), mx.nd.random.uniform(x, x), mx.nd.sgd_update(x, y, lr=0.1), mx.nd.array(x),
              *mx.nd.split(x, num_outputs=3, axis=1)]
    x.attach_grad()
    with mx.autograd.record():
        z = x * 2
    z.backward(retain_graph=True)
    return [[at(a) for a in group] for group in (stays, leaves, [x.grad, z, mx.autograd.grad(z, x)[0]])]


def mixed(mx):
    """Operators on arrays of several devices: results are where the first array is."""
    x, y = mx.nd.array([1.0, 2.0]), mx.nd.array([3.0, 4.0], ctx=mx.cpu(1))
    made = [x + y, y + x, mx.nd.concat(y, x, dim=0), mx.nd.where(x, y, y), mx.nd.add_n(x, y, y), y == x,
            mx.nd.dot(y, x), mx.nd.stack(y, x), mx.nd.Embedding(x * 0, mx.nd.ones((3, 2), mx.cpu(5)), input_dim=3,
                                                                output_dim=2), mx.nd.sgd_update(y, x, lr=0.5),
            mx.nd.elemwise_add(x, x, out=y), mx.nd.random.uniform(shape=(2,), out=mx.nd.ones((2,), mx.cpu(4)))]
    y += x
    return [[at(a) for a in made], [a.asnumpy().tolist() for a in made[:-1]], at(y), y.asnumpy().tolist()]


def recorded(mx):
    """Gradients over devices; the gradient is where the array is."""
    x = mx.nd.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = x.as_in_context(mx.cpu(1)) * 3 + x.as_in_context(mx.cpu(2)) * x
        z = y.copyto(mx.cpu(4))
    z.backward(retain_graph=True)
    return [at(y), at(z), at(x.grad), x.grad.asnumpy().tolist()]


def over_a_copy(mx):
    x = mx.nd.ones((2,))
    x.attach_grad()
    with mx.autograd.record():
        y = x.as_in_context(mx.cpu(1)) * 3
    return at(mx.autograd.grad(y, x)[0])


def marked(mx):
    x, slope = mx.nd.ones((2,)), mx.nd.zeros((2,), mx.cpu(3))
    mx.autograd.mark_variables(x, slope)
    with mx.autograd.record():
        y = x * 3
    y.backward()
    return [at(slope), slope.asnumpy().tolist()]


def scopes(mx):
    found = [str(mx.current_context())]
    again = mx.cpu(5)
    with mx.cpu(3), again, again:
        found += [str(mx.current_context()), at(mx.nd.ones((2,))), at(mx.nd.random.uniform(shape=(2,))),
                  at(mx.nd.zeros_like(mx.nd.ones((1,), mx.cpu(1)))), at(mx.nd.array([1])), at(mx.nd.arange(3))]
        with mx.cpu(-2):
            found += [str(mx.current_context()), at(mx.nd.ones((2,))), at(mx.nd.arange(3)), at(mx.nd.empty((2,)))]
        found.append(str(mx.current_context()))
        try:
            with mx.cpu(6):
                raise ValueError
        except ValueError:
            found.append(str(mx.current_context()))
    return [*found, str(mx.current_context())]


def names(mx):
    contexts = [mx.cpu(), mx.cpu(7), mx.cpu(-1), mx.gpu(2), mx.cpu_pinned(3), mx.Context("cpu_shared", 4),
                mx.Context(mx.gpu(1), 5), mx.Context(mx.cpu_pinned(1))]
    return [[str(c), repr(c), c.device_type, c.device_typeid, c.device_id] for c in contexts]


def equality(mx):
    return [mx.cpu() == mx.cpu(0), mx.cpu() == mx.cpu(1), mx.cpu() == mx.cpu_pinned(), mx.cpu() == "cpu(0)",
            mx.cpu() == None, mx.cpu() != mx.cpu(1), mx.cpu(-1) == mx.cpu(0),  # noqa: E711
            hash(mx.cpu(3)) == hash(mx.Context("cpu", 3)), len({mx.cpu(), mx.cpu(0), mx.cpu(1), mx.gpu(0)})]


ARRAYS = {
    "copies": copies, "pinned": lambda mx: kept(mx, "cpu_pinned"), "shared": lambda mx: kept(mx, "cpu_shared"),
    "mixed": mixed, "recorded": recorded, "marked": marked, "scopes": scopes, "names": names, "equality": equality,
    "order": lambda mx: mx.cpu() < mx.cpu(1), "unknown type": lambda mx: mx.Context("CPU"),
    "number as type": lambda mx: mx.Context(1), "None": lambda mx: str(mx.cpu(None)),
    "text number": lambda mx: str(mx.cpu("1")), "copy to text": lambda mx: mx.nd.ones((1,)).copyto("cpu(1)"),
    "in text": lambda mx: mx.nd.ones((1,)).as_in_context("cpu(1)"),
    "in None": lambda mx: mx.nd.ones((1,)).as_in_context(None), "gpu": lambda mx: mx.nd.ones((1,), mx.gpu(0)),
    "negatives": lambda mx: [at(mx.nd.ones((2,), mx.cpu(i))) for i in (-1, -2, -5)],
    "ctx as text": lambda mx: [at(mx.nd.ones((2,), ctx="cpu(1)")), at(mx.nd.random.uniform(shape=(2,), ctx="cpu(1)")),
                               at(mx.nd.zeros((2,), "cpu_pinned(3)")), at(mx.nd.eye(2, ctx="cpu(1)"))],
    **{f"ctx {text}": lambda mx, text=text: at(mx.nd.ones((2,), text))
       for text in ("cpu", "cpu(1", "cpu(x)", "foo(1)", "gpu(0)", "CPU(1)", "")},
    "gradient over a copy": over_a_copy,
}


def graph_case(seed):
    """A random graph of nodes in groups: [kind, group, inputs] each, its outputs, and where all is bound."""
    rng = random.Random(seed)
    variables = rng.randint(1, 3)
    nodes = [["variable", rng.choice("abc--"), []] for _ in range(variables)]
    for _ in range(rng.randint(1, 8)):
        kind, count = rng.choice([("exp", 1), ("exp", 1), ("elemwise_add", 2), ("add_n", 3), ("zeros", 0)])
        nodes.append([kind, rng.choice("abc--"), [rng.randrange(len(nodes)) for _ in range(count)]])
    outputs = [i for i in range(len(nodes)) if rng.random() < 0.4] or [len(nodes) - 1]
    return {"nodes": nodes, "outputs": outputs, "ctx": rng.randint(0, 5), "simple": rng.random() < 0.5,
            "args": [rng.randint(0, 5) for _ in range(variables)], "groups": {g: rng.randint(0, 5) for g in "cab"}}


def graph_places(mx, case):
    """Where the arrays of such a graph are."""
    made = []
    for i, (kind, group, inputs) in enumerate(case["nodes"]):
        with mx.AttrScope(**({} if group == "-" else {"ctx_group": group})):
            if kind == "variable":
                made.append(mx.sym.Variable(f"v{i}", shape=(2,)))
            elif kind == "zeros":
                made.append(mx.sym.zeros((2,)))
            else:
                made.append(getattr(mx.sym, kind)(*[made[j] for j in inputs]))
    symbol = mx.sym.Group([made[i] for i in case["outputs"]])
    names, group2ctx = symbol.list_arguments(), {g: mx.cpu(i) for g, i in case["groups"].items()}
    if case["simple"]:
        return places(symbol.simple_bind(mx.cpu(case["ctx"]), grad_req="null", group2ctx=group2ctx), names)
    args = {n: mx.nd.ones((2,), mx.cpu(case["args"][int(n[1:])])) for n in names}
    return places(symbol.bind(mx.cpu(case["ctx"]), args, grad_req="null", group2ctx=group2ctx), names)


def answer(mx, call):
    """The value of a call as JSON has it, or {"error": the exception's class and its bases}."""
    try:
        return json.loads(json.dumps(call(mx)))
    except Exception as error:
        return {"error": [c.__name__ for c in type(error).__mro__[:-2]]}


def main():
    mx = importlib.import_module("mxnet")
    found = {"calls": {n: answer(mx, call) for n, call in CALLS.items()},
             "arrays": {n: answer(mx, call) for n, call in ARRAYS.items()},
             "graphs": [[case := graph_case(seed), graph_places(mx, case)] for seed in range(GRAPHS)]}
    (Path(__file__).parent / "contexts.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    sys.exit(main())
