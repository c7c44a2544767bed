"""mx.registry: classes by name, and objects from names, as MXNet 1.9.1 makes them."""
from __future__ import annotations

import pytest

import mxc as mx


class Base:
    def __init__(self, *args: object, **kwargs: object) -> None:
        self.given = (args, kwargs)


register = mx.registry.get_register_func(Base, "thing")
create = mx.registry.get_create_func(Base, "thing")


@register
class Foo(Base):
    pass


@mx.registry.get_alias_func(Base, "thing")("x", "Yy")
class Bar(Base):
    pass


def test_classes_by_name() -> None:
    assert mx.registry.get_registry(Base) == {"foo": Foo, "x": Bar, "yy": Bar}
    assert mx.registry.get_registry(Base) is not mx.registry.get_registry(Base)
    assert mx.registry.get_registry(Foo) == {} and register(Foo, "Foo") is Foo


@pytest.mark.parametrize("args, kwargs, made, given", [
    (("foo", 1), {"b": 2}, Foo, ((1,), {"b": 2})), (("FOO",), {}, Foo, ((), {})), (("yY",), {}, Bar, ((), {})),
    (('["foo", {"z": 5}]',), {}, Foo, ((), {"z": 5})), (('{"thing": "foo", "q": 1}',), {}, Foo, ((), {"q": 1})),
    ((), {"thing": "x", "q": 1}, Bar, ((), {"q": 1})), (({"thing": "foo", "q": 2},), {}, Foo, ((), {"q": 2})),
])
def test_objects_from_names(args, kwargs, made, given) -> None:
    found = create(*args, **kwargs)
    assert type(found) is made and found.given == given


def test_an_object_is_given_back() -> None:
    thing = Foo(3)
    assert create(thing) is thing


@pytest.mark.parametrize("args, kwargs, error, text", [
    (("nope",), {}, ValueError, "no thing is registered as 'nope'; there are foo, x, yy"),
    (("fo",), {}, ValueError, "did you mean 'foo'"), ((5,), {}, TypeError, "given by its name, got 5"),
    ((Foo(), 1), {}, ValueError, "takes no arguments"), (('["foo", {}]', 3), {}, ValueError, "takes no others"),
    (("[bad",), {}, ValueError, "Expecting value"), ((), {}, KeyError, "thing"), (('{"q": 1}',), {}, KeyError, "thing"),
])
def test_what_makes_no_object(args, kwargs, error, text) -> None:
    with pytest.raises(error, match=text):
        create(*args, **kwargs)


def test_what_cannot_be_registered() -> None:
    for wrong in (int, 5, Foo()):
        with pytest.raises(TypeError, match="a thing must be a class derived from Base"):
            register(wrong)

    class Foo2(Base):
        pass

    with pytest.warns(UserWarning, match=r"thing .*Foo2 takes the name 'foo' of .*\.Foo"):
        register(Foo2, "foo")
    mx.registry._REGISTRY[Base]["foo"] = Foo
