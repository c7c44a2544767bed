"""What programs read and set of what is in force in a thread, written once for MXNet and mxc: the current device, the
attributes and the names of new symbols.

With MXNet's Python, `scopes.py` writes what MXNet 1.9.1 answers to scopes.json; tests/test_scopes.py compares mxc's.
"""
import importlib
import json
import sys
import threading
import warnings
from pathlib import Path


def in_a_thread(call):
    """What `call` gives in a new thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


def device(mx):
    """The current device, as everybody says it."""
    return [str(mx.current_context()), str(mx.nd.ones((1,)).context), str(mx.Context._default_ctx.value),
            str(mx.Context.default_ctx)]


def set_device(mx):
    found = [device(mx)]
    mx.Context.default_ctx = mx.cpu(3)
    found.append(device(mx))
    mx.Context._default_ctx.value = mx.cpu(4)
    found += [device(mx), in_a_thread(lambda: device(mx)), str(mx.cpu(1).default_ctx)]
    with mx.cpu(5):
        found.append(device(mx))
        mx.Context._default_ctx.value = mx.cpu(6)
        found.append(device(mx))
    found.append(device(mx))
    with mx.cpu(5):
        mx.test_utils.set_default_context(mx.cpu(7))
        found.append(device(mx))
    found.append(device(mx))
    mx.test_utils.set_default_context(mx.cpu(8))
    return [*found, device(mx), in_a_thread(lambda: device(mx))]


def keep_device(mx):
    """What programs do around a part: keep the value, set another, put it back."""
    before = mx.Context._default_ctx.value
    mx.Context._default_ctx.value = mx.cpu(2)
    try:
        inner = device(mx)
    finally:
        mx.Context._default_ctx.value = before
    return [inner, device(mx)]


def attributes(mx):
    return mx.sym.exp(mx.sym.Variable("x"), name="e").attr_dict()


def set_attributes(mx):
    scope, found = mx.AttrScope, []
    scope._current.value = scope(ctx_group="g", __z__="1")
    found += [attributes(mx), scope.current._attr, scope.current is scope._current.value]
    scope.current = scope(mood="high")
    found += [attributes(mx), scope._current.value._attr]
    with scope(a="1") as inner:
        found += [scope._current.value is inner, inner._attr, attributes(mx)]
        scope._current.value = scope(b="2")
        found += [attributes(mx), in_a_thread(lambda: attributes(mx))]
    found.append(attributes(mx))
    del scope._current.value
    return [*found, attributes(mx), scope._current.value._attr]


def made(mx):
    """Names of new symbols."""
    return [mx.sym.exp(mx.sym.Variable("x")).name, mx.sym.exp(mx.sym.Variable("x"), name="q").name]


def set_names(mx):
    manager, prefix, found = mx.name.NameManager, mx.name.Prefix, []
    manager._current.value = prefix("p_")
    found += [made(mx), made(mx), manager._current.value._counter, manager.current is prefix._current.value]
    manager.current = manager()
    found.append(made(mx))
    with prefix("a_") as inner:
        found += [manager._current.value is inner, made(mx)]
        with manager():
            found.append(made(mx))
        found.append(made(mx))
        manager._current.value = prefix("c_")
        found += [made(mx), in_a_thread(lambda: made(mx))]
    found.append(made(mx))
    manager._current.value._counter.clear()
    found.append(made(mx))
    del manager._current.value
    return [*found, made(mx)]


def own_manager(mx):
    class Mine(mx.name.NameManager):
        def get(self, name, hint):
            return f"mine_{name or hint}"

    with Mine():
        inner = made(mx)
    mx.name.NameManager._current.value = Mine()
    return [inner, made(mx)]


def warned(mx):
    """The classes of warnings of the old names, when they are read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mx.Context.default_ctx, mx.AttrScope.current, mx.name.NameManager.current  # noqa: B018
    return [w.category.__name__ for w in caught]


def class_properties(mx):
    base = mx.base

    class Counted(base.with_metaclass(base._MXClassPropertyMetaClass, object)):
        _value = 1

        @base.classproperty
        def value(cls):
            return cls._value

        @value.setter
        def value(cls, new):
            cls._value = new

        @base.classproperty
        def fixed(cls):
            return 7

    found = [Counted.value, Counted().value, Counted.fixed, Counted().fixed, Counted.__mro__[1].__name__]
    Counted.value = 5
    found += [Counted.value, Counted._value]
    Counted().value = 6
    found += [Counted.value, Counted().value]
    try:
        Counted.fixed = 3
    except mx.MXNetError:
        found.append("refused")
    return found


CALLS = {"device": set_device, "device kept": keep_device, "attributes": set_attributes, "names": set_names,
         "own manager": own_manager, "warned": warned, "class properties": class_properties}


def answer(mx, call):
    """The value of a call as JSON has it, which finds new scopes; afterwards all is as before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mx.current_context(), mx.AttrScope.current, mx.name.NameManager.current
        held = {mx.Context._default_ctx: mx.cpu(), mx.AttrScope._current: mx.AttrScope(),
                mx.name.NameManager._current: mx.name.NameManager()}
        before = {local: local.value for local in held}
        try:
            for local, new in held.items():
                local.value = new
            return json.loads(json.dumps(call(mx)))
        finally:
            for local, old in before.items():
                local.value = old


def main():
    mx = importlib.import_module("mxnet")
    text = json.dumps({name: answer(mx, call) for name, call in CALLS.items()}, indent=0)
    (Path(__file__).parent / "scopes.json").write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
