"""Parameter types: spellings read, values printed as MXNet writes them, what is refused and how it is said."""
from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Params, condition
from mxc.compiler.ops.params import parse_type

READ = [
    ("int", "3", 3), ("int", "-1", -1), ("int", " 2 ", 2),
    ("int or None", "None", None), ("int or None", "4", 4),
    ("float", "0.1", float(np.float32(0.1))), ("float", "1e-3", float(np.float32(1e-3))), ("float", "inf", np.inf),
    ("double", "0.1", 0.1), ("double or None", "None", None),
    ("bool", "True", True), ("bool", "true", True), ("bool", "1", True), ("bool", "False", False), ("bool", "0", False),
    ("str", "any thing", "any thing"), ("str", "", ""),
    ("shape", "(3, 3)", (3, 3)), ("shape", "[3,3]", (3, 3)), ("shape", "3", (3,)), ("shape", "(3L, 3L)", (3, 3)),
    ("shape", "3L", (3,)), ("shape", "()", ()), ("shape", "[]", ()), ("shape", "(2,)", (2,)),
    ("shape", "( 0 , -1 )", (0, -1)), ("shape or None", "None", None),
    ("float", "0.5f", 0.5), ("double", "1.F", 1.0), ("double", ".5", 0.5), ("int or None", "5L", 5), ("int", "007", 7),
    ("bool", "TRUE", True), ("bool or None", "none", None), ("shape", "[1,2)", (1, 2)), ("shape", "(1 L,2)", (1, 2)),
    ("shape = (0, 0)", "None", (0, 0)), ("bounds = ()", "None", ()), ("str", "None", "None"),
    ("bounds", "(None, 1)", (None, 1)), ("floats", "[1,2,0.5]", (1.0, 2.0, 0.5)),
    ("enum(relu, tanh)", "tanh", "tanh"), ("enum(off, fastest) or None", "None", None),
    ("dtype", "float16", "float16"), ("dtype or None", "None", None),
]


@pytest.mark.parametrize(("spec", "text", "value"), READ)
def test_spellings_are_read(spec: str, text: str, value: object) -> None:
    parsed = parse_type(spec).parse(text)
    assert parsed == value and type(parsed) is type(value)


PRINTED = [
    ("int", 3, "3"), ("bool", True, "True"), ("shape", (3, 3), "(3, 3)"), ("shape", (2,), "(2,)"), ("shape", (), "()"),
    ("shape or None", None, "None"), ("float", 0.1, "0.1"), ("float", 0.5, "0.5"), ("double", 1e-7, "1e-07"),
    ("floats", (0.1, 1.0), "(0.1, 1.0)"), ("floats", (0.1,), "(0.1,)"), ("bounds", (None, 1), "(None, 1)"),
    ("dtype", np.float16, "float16"), ("dtype", "float64", "float64"), ("enum(a, b)", "a", "a"),
    ("shape", [4, 5], "(4, 5)"),
    ("shape", 3, "(3,)"), ("int", np.int64(7), "7"), ("int", True, "1"), ("bool", 1, "True"),
    ("shape", np.array([1, 2]), "(1, 2)"),
]


@pytest.mark.parametrize(("spec", "value", "text"), PRINTED)
def test_values_are_printed_and_read_back(spec: str, value: object, text: str) -> None:
    kind = parse_type(spec)
    converted = kind.convert(value)
    assert kind.text(converted) == text
    assert kind.parse(text) == converted


REFUSED = [
    ("int", "3.0"), ("int", "10L"), ("int", ""), ("int", "1_000"), ("int", "１"), ("float", "1_000"), ("float", "inff"),
    ("float", "1e"), ("float", "0x10"), ("double", "１"), ("shape", "1,2"), ("shape", "None"),
    ("bool", "yes"), ("bool", "2"), ("float", "a"),
    ("shape", "(3, a)"), ("shape", ""), ("shape", "(3, 3"), ("shape", "(3, None)"), ("int", "None"),
    ("enum(relu, tanh)", "rel"), ("dtype", "float31"), ("int in 1..", "0"), ("float in 0..1", "1.5"),
    ("shape in 1..", "(3, 0)"), ("float", "1e39"), ("double", "-1e400"), ("floats", "(1, 1e39)"),
]


@pytest.mark.parametrize(("spec", "text"), REFUSED)
def test_what_does_not_fit_is_refused(spec: str, text: str) -> None:
    with pytest.raises(MXNetError, match="expected"):
        parse_type(spec).parse(text)


@pytest.mark.parametrize(("spec", "value"), [("int", 2.5), ("int", None), ("bool", 3), ("shape", (1, 2.5)),
                                             ("float", "x"), ("enum(a, b)", 3), ("shape", object()), ("float", 1e39)])
def test_python_values_that_do_not_fit_are_refused(spec: str, value: object) -> None:
    with pytest.raises(MXNetError, match="expected"):
        parse_type(spec).convert(value)


def test_a_type_with_range_and_default() -> None:
    kind = parse_type("int in 1..8 = 2")
    assert (kind.low, kind.high, kind.default, str(kind)) == (1, 8, 2, "int in 1..8")
    assert parse_type("str =").default == ""
    assert parse_type("shape or None = None").default is None
    assert parse_type("int").required


@pytest.mark.parametrize("spec", ["integer", "int =x", "enum", "", "int in a.."])
def test_bad_types_are_refused(spec: str) -> None:
    with pytest.raises(MXNetError):
        parse_type(spec)


def test_an_unknown_attribute_is_named_with_node_and_nearest() -> None:
    message = r"operator sum, node 'total': unknown attribute 'keepdim'; did you mean 'keepdims'"
    with pytest.raises(MXNetError, match=message):
        table.get("sum").parse_attrs({"keepdim": "True"}, "total")


def test_a_bad_value_and_a_missing_attribute_are_named() -> None:
    with pytest.raises(MXNetError, match=r"operator clip, node 'c': attribute 'a_min': expected float, got 'a'"):
        table.get("clip").parse_attrs({"a_min": "a", "a_max": "1"}, "c")
    with pytest.raises(MXNetError, match=r"operator clip: required attribute 'a_max' \(float\) is missing"):
        table.get("clip").parse_attrs({"a_min": "0"})


def test_user_attributes_are_left_out_and_defaults_filled_in() -> None:
    op = table.get("sum")
    params = op.parse_attrs({"__lr_mult__": "2", "axis": "[0, 1]", "keepdims": "1"})
    assert dict(params) == {"axis": (0, 1), "keepdims": True, "exclude": False}
    assert op.attrs_of(params) == {"axis": "(0, 1)", "keepdims": "True"}
    assert params == op.make_params({"axis": (0, 1), "keepdims": True})


def test_an_operator_without_parameters_ignores_attributes_as_mxnet_does() -> None:
    assert dict(table.get("exp").parse_attrs({"workspace": "512"})) == {}


@pytest.mark.parametrize("op", table.all_operators(), ids=lambda op: op.name)
def test_defaults_survive_printing(op: table.Operator) -> None:
    for name, kind in op.params.items():
        if not kind.required:
            assert kind.parse(kind.text(kind.default)) == kind.default, name


def test_parameters_called_as_methods_are() -> None:
    """Every name may be a parameter's: what reads them all goes by keys."""
    names = ("get", "keys", "items", "values", "_values", "_text", "kernel")
    params = Params({name: i for i, name in enumerate(names)})
    assert dict(params) == {name: i for i, name in enumerate(names)}
    assert [params[name] for name in names] == list(range(7)) and params.kernel == 6
    assert params.get("values") == 3 and list(params.values()) == list(range(7)) and "keys" in params
    assert condition("kernel == 6 and keys == 1", params)
    for copied in (copy.copy(params), copy.deepcopy(params), pickle.loads(pickle.dumps(params))):
        assert copied == params and hash(copied) == hash(params)
    with pytest.raises(AttributeError, match="no parameter 'pad'"):
        _ = params.pad
    with pytest.raises(AttributeError, match="do not change"):
        params.kernel = 5  # type: ignore[misc]


def test_parameters_are_equal_when_they_are_written_alike() -> None:
    def scalar(number: float) -> Params:
        return Params({"scalar": number, "is_int": True})

    assert scalar(0.0) != scalar(-0.0) and scalar(float("nan")) == scalar(float("nan"))
    assert scalar(1.0) == Params({"is_int": True, "scalar": 1.0})
    assert len({scalar(0.0), scalar(-0.0), scalar(0.0)}) == 2


@pytest.mark.parametrize(("spec", "value"), [("int", np.float32(2.7)), ("int", np.float64("nan")),
                                            ("float in 0..1", float("nan")), ("shape", [np.float32(1.5)])])
def test_numbers_that_are_none_of_the_type(spec: str, value: object) -> None:
    with pytest.raises(MXNetError, match="expected"):
        parse_type(spec).convert(value)
