"""Calls of the symbol interface, written once for MXNet and mxc: what they make, answer, or raise.

`make_symbols.py calls` writes what MXNet 1.9.1 does to symbol_calls.json; tests/test_symbol_calls.py compares mxc's.
"""
import copy
import json
import operator
import pickle
import warnings


def _two(mx):
    return mx.sym.Variable("x"), mx.sym.Variable("y")


def _net(mx):
    x, _ = _two(mx)
    layer = mx.sym.FullyConnected(x, num_hidden=3, name="fc", attr={"__mood__": "sad", "lr_mult": "2"})
    return mx.sym.BatchNorm(mx.sym.relu(layer, name="r"), name="bn")


def _method(name, /, *args, **kwargs):
    return lambda mx: getattr(mx.sym.Variable("x"), name)(*args, **kwargs)


def _function(name, /, *args, **kwargs):
    """A call of mx.sym.NAME, of another namespace where NAME has a dot; "$x" stands for a variable x."""
    def call(mx):
        def value(given):
            return mx.sym.Variable(given[1:]) if isinstance(given, str) and given.startswith("$") else given

        function = operator.attrgetter(name)(mx.sym)
        return function(*map(value, args), **{k: value(v) for k, v in kwargs.items()})

    return call


def _numbered(mx):
    class Counted(mx.name.NameManager):
        def get(self, name, hint):
            return name or f"{hint}_{super().get(None, 'n')}"

    x, _ = _two(mx)
    with Counted():
        return mx.sym.relu(mx.sym.tanh(mx.sym.relu(x) + 1, name="t"))


def _nested_prefixes(mx):
    x, _ = _two(mx)
    outer = mx.name.Prefix("a_")
    with outer:
        first = mx.sym.relu(x)
        with mx.name.NameManager():
            second = mx.sym.relu(first)
        third = mx.sym.FullyConnected(second, num_hidden=2)
    with outer:
        return mx.sym.relu(third, name="last") + mx.sym.relu(x)


def _scope_over_functions(mx):
    with mx.AttrScope(__group__="1", lr_mult="2"):
        a = mx.sym.Variable("a", lr_mult=5)
        b = mx.sym.zeros((2,)) + a
        with mx.AttrScope(__group__="2"):
            return mx.sym.Concat(b, -a, mx.sym.ones((2,), name="o"), dim=0)


MAKE = {
    **{f"{name}{args}{kwargs or ''}": _function(name, *args, **kwargs) for name, args, kwargs in [
        ("arange", (3,), {}), ("arange", (1, 7, 2, 3, True), {"name": "a", "dtype": "int32"}), ("arange", (0,), {}),
        ("arange", (2.5, None), {}), ("arange", (5, 1, -1), {}),
        ("eye", (3,), {}), ("eye", (3, 4, -1, "int32"), {"name": "e"}), ("eye", (3,), {"M": 2}),
        ("full", ((2, 3), 4), {}), ("full", ([2], 1.5, "float16"), {"name": "f"}), ("full", (3, True), {}),
        ("zeros", (4,), {}), ("zeros", ((2, 0), "int64"), {"name": "z"}), ("ones", ((),), {}),
        ("ones", ((2,),), {"attr": {"__a__": "b"}}),
        ("linspace", (0, 1, 5), {}), ("linspace", (0.5, -3, 7, False, "l", "int32"), {}),
        ("histogram", ("$x", 3, (0, 1)), {}), ("histogram", ("$x", "$edges"), {"name": "h"}),
        ("histogram", ("$x",), {"bins": 4, "range": [0, 2.5]}),
        ("split_v2", ("$x", 3), {}), ("split_v2", ("$x", (1, 2), 1, True), {}), ("split_v2", ("$x", ()), {}),
        ("hypot", ("$x", "$y"), {}), ("hypot", (3, "$x"), {}), ("pow", ("$x", 2), {}), ("power", (2, "$x"), {}),
        ("power", ("$x", "$y"), {}), ("maximum", (1.5, "$x"), {}), ("minimum", ("$x", "$y"), {}),
        ("minimum", ("$x", 1e-8), {}),
        ("random.uniform", (), {}), ("random.uniform", (0, 2, (2, 3), "float64"), {"name": "u"}),
        ("random.uniform", ("$x", "$y", 3), {}), ("random.normal", (1, 2), {}), ("random.normal", ("$x", "$y"), {}),
        ("random.randn", (2, 3), {"loc": 1, "dtype": "float16"}), ("random.exponential", (4, (2,)), {}),
        ("random.exponential", ("$x",), {}), ("random.gamma", (2, 3), {}), ("random.gamma", ("$x", "$y"), {}),
        ("random.poisson", (3,), {}), ("random.poisson", ("$x",), {"shape": (2,)}),
        ("random.negative_binomial", (3, 0.5), {}), ("random.negative_binomial", ("$x", "$y"), {}),
        ("random.generalized_negative_binomial", (), {}),
        ("random.generalized_negative_binomial", ("$x", "$y"), {}), ("random.randint", (0, 9, (3,), "int64"), {}),
        ("random.multinomial", ("$x",), {}), ("random.multinomial", ("$x", 5), {"get_prob": False}),
        ("random.shuffle", ("$x",), {}), ("random.uniform_like", ("$x",), {"low": 1}),
        ("random.normal_like", ("$x",), {"name": "n"}),
        ("contrib.box_nms", ("$x",), {"overlap_thresh": 0.3}), ("contrib.box_non_maximum_suppression", ("$x",), {}),
        ("contrib.box_iou", ("$x", "$y"), {"format": "center"}), ("contrib.MultiBoxPrior", ("$x",), {"sizes": (1, 2)}),
        ("contrib.ROIAlign", ("$x", "$y", (2, 2), 0.5), {}), ("contrib.round_ste", ("$x",), {}),
        ("contrib.BilinearResize2D", ("$x",), {"height": 3, "width": 4}), ("contrib.arange_like", ("$x",), {"axis": 1}),
        ("contrib.AdaptiveAvgPooling2D", ("$x",), {"output_size": (2, 2)}), ("contrib.quadratic", ("$x", 1, 2, 3), {}),
        ("contrib.boolean_mask", ("$x", "$y"), {}), ("contrib.SyncBatchNorm", ("$x",), {"key": "k"}),
        ("contrib.CTCLoss", ("$x", "$y"), {}), ("contrib.div_sqrt_dim", ("$x",), {}),
        ("linalg.gemm2", ("$x", "$y"), {"transpose_a": True, "alpha": 2}), ("linalg.gemm", ("$x", "$y", "$z"), {}),
        ("linalg.det", ("$x",), {}), ("linalg.potrf", ("$x",), {"name": "p"}), ("linalg.syrk", ("$x",), {}),
        ("image.to_tensor", ("$x",), {}), ("image.normalize", ("$x", (0.5, 0.5), 2), {}),
        ("image.resize", ("$x", (3, 4)), {}), ("image.crop", ("$x", 0, 1, 2, 3), {}),
        ("image.flip_left_right", ("$x",), {}),
        ("sparse.relu", ("$x",), {}), ("sparse.add_n", ("$x", "$y"), {}), ("sparse.dot", ("$x", "$y"), {}),
        ("sparse.retain", ("$x", "$y"), {}),
    ]},
    **{f"rand_zipfian[{i}]": lambda mx, i=i: mx.sym.contrib.rand_zipfian(mx.sym.Variable("x"), 4, 10)[i]
       for i in range(3)},
    **{f"x.{name}{args}{kwargs or ''}": _method(name, *args, **kwargs) for name, args, kwargs in [
        ("argmax", (), {"axis": 1}), ("argmin", (), {}), ("argsort", (), {"is_ascend": False}),
        ("astype", ("float16",), {}), ("astype", (), {"dtype": "int32"}), ("broadcast_to", ((2, 3),), {}),
        ("broadcast_axes", (), {"axis": 1, "size": 3}), ("clip", (0, 6), {}), ("depth_to_space", (2,), {}),
        ("diag", (), {}), ("diag", (1,), {"name": "d"}), ("expand_dims", (1,), {}), ("flatten", (), {"inplace": True}),
        ("flip", (), {"axis": 0}), ("log_softmax", (), {}), ("nansum", (), {"axis": (0, 1)}), ("norm", (), {"ord": 1}),
        ("one_hot", (3,), {}), ("pad", (), {"mode": "edge", "pad_width": (0, 0, 1, 1)}), ("repeat", (2,), {"axis": 1}),
        ("reshape", ((2, -1),), {}), ("shape_array", (), {}), ("size_array", (), {}), ("slice", ((0,), (2,)), {}),
        ("slice_axis", (), {"axis": 0, "begin": 1, "end": None}), ("softmin", (), {}), ("sort", (), {"axis": 0}),
        ("space_to_depth", (2,), {}), ("split", (2,), {"axis": 0}), ("split_v2", (2,), {"axis": 1}),
        ("squeeze", (), {}), ("squeeze", ((0, 1),), {}), ("sum", ((0, 1),), {"keepdims": True}),
        ("swapaxes", (0, 1), {}), ("tile", ((2, 3),), {}),
        ("topk", (), {"k": 2, "ret_typ": "both"}), ("transpose", ((1, 0),), {}),
        ("max", (0,), {}), ("rcbrt", (), {}), ("zeros_like", (), {"name": "q"}), ("as_nd_ndarray", (), {}),
    ]},
    **{f"x.__{name}__(y)": lambda mx, name=name: getattr(_two(mx)[0], f"__{name}__")(_two(mx)[1])
       for name in ("radd", "rsub", "rmul", "rdiv", "rtruediv", "rmod", "rpow", "div")},
    **{f"x.__{name}__(2)": lambda mx, name=name: getattr(_two(mx)[0], f"__{name}__")(2)
       for name in ("radd", "rsub", "rmul", "rdiv", "rtruediv", "rmod", "rpow", "div")},
    "own name manager": _numbered, "nested prefixes": _nested_prefixes, "scope over functions": _scope_over_functions,
    "group in group": lambda mx: mx.sym.Group([mx.sym.Group(list(_two(mx))), mx.sym.Group([_net(mx)])]),
    "pickled": lambda mx: pickle.loads(pickle.dumps(_net(mx))),
    "state": lambda mx: copy.copy(mx.sym.load_json(_net(mx).__getstate__()["handle"])),
    "children of children": lambda mx: _net(mx).get_children()[0].get_children().get_children(),
    "slice of a split": lambda mx: mx.sym.split(mx.sym.Variable("x"), num_outputs=4, name="s")[1:3],
    "unknown backend": lambda mx: _net(mx).optimize_for("no such backend"),
}


def _outcome_of_setattr(mx, **attrs):
    symbol = _net(mx)
    symbol._set_attr(**attrs)
    return symbol.list_attr()


def _bound(mx):
    x, y = _two(mx)
    return (x + y).simple_bind(mx.cpu(), x=(2, 3), y=(2, 3))


def _get_scoped(mx, given):
    with mx.AttrScope(a="1", b="2"), mx.AttrScope(b="3") as scope:
        return scope.get(given)


ANSWER = {  # values, or what is raised
    **{name: _method(name) for name in ("as_in_context", "asnumpy", "asscalar", "backward", "copy", "detach",
                                       "wait_to_read")},
    "asnumpy(1)": _method("asnumpy", 1),
    **{f"{name} y": lambda mx, name=name: getattr(operator, name)(*_two(mx))
       for name in ("iadd", "isub", "imul", "itruediv", "floordiv", "matmul", "and_", "or_", "lshift")},
    "__idiv__": lambda mx: _two(mx)[0].__idiv__(1), "iadd 1": lambda mx: operator.iadd(_two(mx)[0], 1),
    **{f"{f.__name__}(x)": lambda mx, f=f: f(_two(mx)[0]) for f in (bool, int, float, hash, operator.invert, len)},
    "__nonzero__": lambda mx: _two(mx)[0].__nonzero__(), "in": lambda mx: _two(mx)[1] in [_two(mx)[0]],
    "x == None": lambda mx: _two(mx)[0] == None,  # noqa: E711
    "x + 'a'": lambda mx: _two(mx)[0] + "a", "[1] * x": lambda mx: [1] * _two(mx)[0],
    "x + True": lambda mx: _two(mx)[0] + True, "x + 1j": lambda mx: _two(mx)[0] + 1j,
    "gradient": lambda mx: _net(mx).gradient(["x"]),
    "list_attr": lambda mx: _net(mx).get_internals()["fc_output"].list_attr(),
    "list_attr recursive": lambda mx: _net(mx).list_attr(recursive=True),
    "list_attr of a group": lambda mx: mx.sym.Group([mx.sym.Variable("a", __b__=2), _net(mx)]).list_attr(),
    "attr of a group": lambda mx: mx.sym.Group([mx.sym.Variable("a", __b__=2), _net(mx)]).attr("__b__"),
    "attr of one in a group": lambda mx: mx.sym.Group([mx.sym.Variable("a", lr_mult=2)]).attr("lr_mult"),
    "attr_dict": lambda mx: _net(mx).attr_dict(),
    "name of a group": lambda mx: mx.sym.Group(list(_two(mx))).name,
    "children of a variable": lambda mx: _two(mx)[0].get_children(),
    "set_attr": lambda mx: _outcome_of_setattr(mx, __a__="1", wd_mult="2"),
    "set_attr of no string": lambda mx: _outcome_of_setattr(mx, a=1),
    "state of a variable": lambda mx: json.loads(_two(mx)[0].__getstate__()["handle"])["nodes"],
    "names": lambda mx: [mx.name.NameManager().get(*pair) for pair in ((None, "a"), ("q", "a"), ("", "b"))],
    "prefix": lambda mx: [mx.name.Prefix("p_").get(*pair) for pair in ((None, "a"), ("q", "a"), ("", "b"))],
    "scope": lambda mx: [mx.AttrScope(a="b").get(given) for given in (None, {}, {"a": "c", "d": "e"})],
    "scoped": lambda mx: [_get_scoped(mx, given) for given in (None, {"a": "9"})],
    "scope of no string": lambda mx: mx.AttrScope(a=3),
    **{f"refused {name}{args}{kwargs or ''}": _function(name, *args, **kwargs) for name, args, kwargs in [
        ("histogram", ("$x",), {}), ("histogram", ("$x", 2.5, (0, 1)), {}), ("split_v2", ("$x", 2.5), {}),
        ("split_v2", ("$x", [1]), {}), ("zeros", ((2,),), {"foo": 3}), ("ones", ((2,),), {"attr": {"a": "b"}}),
        ("zeros", ((2,),), {"stype": "csr"}), ("hypot", ("a", "$x"), {}), ("maximum", ("a", 3), {}),
        ("pow", ("a", "b"), {}), ("arange", (), {}), ("arange", (3,), {"ctx": "cpu"}), ("load", (3,), {}),
        ("load", ("/no/such/file",), {}), ("load_json", (3,), {}), ("Group", (3,), {}), ("Group", ([],), {}),
        ("Group", ([1],), {}), ("var", ("a",), {"foo": 3}), ("var", (3,), {}), ("random.randint", (1.5, 3), {}),
        ("random.uniform", ("a", 1), {}), ("contrib.no_such_thing", (), {}), ("no_such_thing", (), {}),
        ("linalg._x", (), {}),
    ]},
    **{f"number {name}{args}": _function(name, *args) for name, args in [
        ("hypot", (3, 4)), ("pow", (2, 3)), ("power", (2.0, 3)), ("maximum", (2, 3)), ("minimum", (2.5, 3))]},
    "save to no path": lambda mx: _net(mx).save(3),
    **{f"output {index!r}": lambda mx, index=index: _net(mx)[index].name
       for index in (0, 3, -1, None, "q", "bn_output", 1.0, slice(0, 1), slice(1, 1))},
    "iteration": lambda mx: [s.name for s in mx.sym.split(_two(mx)[0], num_outputs=2, name="s")],
    "infer nothing": lambda mx: _net(mx).infer_shape(), "infer partial": lambda mx: _net(mx).infer_shape_partial(),
    "infer partly": lambda mx: _net(mx).infer_shape_partial(fc_weight=(3, 5)),
    "infer shape": lambda mx: _net(mx).infer_shape(x=(4, 5)),
    "infer both ways": lambda mx: _net(mx).infer_shape((4, 5), fc_weight=(3, 5)),
    "infer a list": lambda mx: _net(mx).infer_shape(x=[4, 5]),
    "infer a stranger": lambda mx: _net(mx).infer_shape(z=(2,)),
    "infer contradiction": lambda mx: _net(mx).infer_shape(x=(2, 3), fc_weight=(3, 4)),
    **{f"infer type {t}": lambda mx, t=t: [[str(t.__name__) for t in group] for group in _net(mx).infer_type(x=t)]
       for t in ("float32", "float16", "float64")},
    "infer type partial": lambda mx: _net(mx).infer_type_partial(),
    "infer type of nothing": lambda mx: _net(mx).infer_type(),
    "infer type contradiction": lambda mx: operator.add(*_two(mx)).infer_type(x="float32", y="float64"),
    "eval": lambda mx: [a.asnumpy().tolist() for a in
                        operator.add(*_two(mx)).eval(x=mx.nd.ones((2,)), y=mx.nd.ones((2,)), z=mx.nd.ones((9,)))],
    "eval with one missing": lambda mx: operator.add(*_two(mx)).eval(x=mx.nd.ones((2,))),
    "eval of a number": lambda mx: operator.add(*_two(mx)).eval(x=1, y=mx.nd.ones((2,))),
    "backend of no string": lambda mx: _net(mx).optimize_for(3),
    "executor": lambda mx: [[list(d) for d in (e.arg_dict, e.grad_dict, e.aux_dict, e.output_dict)]
                            for e in [_bound(mx)]],
    "optimized symbol": lambda mx: _bound(mx).get_optimized_symbol().list_outputs(),
    "forward of a stranger": lambda mx: _bound(mx).forward(z=mx.nd.ones((2, 3))),
    "forward of a number": lambda mx: _bound(mx).forward(x=3),
    "forward of another shape": lambda mx: _bound(mx).forward(x=mx.nd.ones((1, 3))),
    "backward of a number": lambda mx: _bound(mx).backward([1]),
    "backward without a name": lambda mx: _bound(mx).backward({"z": mx.nd.ones((2, 3))}),
    "copy a stranger": lambda mx: _bound(mx).copy_params_from({"z": mx.nd.ones((2, 3))}),
    "copy a strange state": lambda mx: _bound(mx).copy_params_from({}, {"z": mx.nd.ones((2, 3))}),
    "copy another shape": lambda mx: _bound(mx).copy_params_from({"x": mx.nd.ones((2, 4))}),
    "reshape": lambda mx: [a.shape for a in _bound(mx).reshape(x=(1, 3), y=(1, 3)).arg_arrays],
    "reshape one": lambda mx: _bound(mx).reshape(x=(1, 3)),
    "reshape partly": lambda mx: [a.shape for a in _bound(mx).reshape(partial_shaping=True, x=(1, 3)).arg_arrays],
    "reshape up": lambda mx: _bound(mx).reshape(x=(4, 3), y=(4, 3)),
    "reshape up, allowed": lambda mx: [a.shape for a in
                                       _bound(mx).reshape(allow_up_sizing=True, x=(4, 3), y=(4, 3)).outputs],
    "two outputs of a name": lambda mx: mx.sym.Group([_two(mx)[0]] * 2).bind(mx.cpu(), [mx.nd.ones(1)]).output_dict,
}


def answer(mx, call):
    """{"value": ...} of a call as JSON has it, or {"error": [the exception's class, its bases']}, with "text" where
    that is NotImplementedForSymbol; and "warnings", the classes of those it gave."""
    with warnings.catch_warnings(record=True) as caught, mx.name.NameManager():
        warnings.simplefilter("always")
        try:
            found = {"value": json.loads(json.dumps(call(mx)))}
        except (Exception, Warning) as error:
            found = {"error": [c.__name__ for c in type(error).__mro__[:-2]]}
            if "NotImplementedForSymbol" in found["error"]:
                found["text"] = str(error)
    return {**found, "warnings": sorted({w.category.__name__ for w in caught})}
