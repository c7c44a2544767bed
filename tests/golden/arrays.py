"""Golden cases of operators on several arrays: elementwise, broadcasting, reductions, products and creation."""
from __future__ import annotations

from golden.cases import Case, case

ARITHMETIC = ("add", "sub", "mul", "div", "mod", "power", "maximum", "minimum", "hypot")
LOGICAL = ("equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal", "logical_and", "logical_or",
           "logical_xor")
ELEMENTWISE = ("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "_maximum", "_minimum",
               "_power", "_mod", "_hypot", "_equal", "_not_equal", "_greater", "_greater_equal", "_lesser",
               "_lesser_equal", "_logical_and", "_logical_or", "_logical_xor")
REDUCTIONS = ("sum", "mean", "prod", "nansum", "nanprod", "max", "min", "norm")


def _span(op: str) -> tuple[float, float]:
    return (0.4, 3) if any(word in op for word in ("power", "div", "mod")) else (-2, 2)


def cases() -> list[Case]:
    return _elementwise() + _broadcast() + _reductions() + _products() + _creation()


def _elementwise() -> list[Case]:
    made = []
    for op in ELEMENTWISE:
        made.append(case(op, "train", {"lhs": (3, 4), "rhs": (3, 4)}, span=_span(op)))
        made.append(case(op, "int", {"lhs": (9,), "rhs": (9,)}, dtype="int32", integer=["lhs", "rhs"], train=False,
                         span=(-3, 4), spans={"rhs": (1, 4)} if "div" in op else None))
    for op in ("elemwise_add", "elemwise_mul", "elemwise_div"):
        made.append(case(op, "half", {"lhs": (7,), "rhs": (7,)}, dtype="float16", span=(0.5, 3)))
        made.append(case(op, "wrap", {"lhs": (9,), "rhs": (9,)}, dtype="int8", span=(20, 127), integer=["lhs", "rhs"],
                         train=False))
        made.append(case(op, "mismatch", {"lhs": (3, 4), "rhs": (3, 1)}))
        made.append(case(op, "mixed", {"lhs": (3,), "rhs": (3,)}, dtypes={"rhs": "float64"}))
    for count in (1, 2, 5):
        inputs: dict[str, tuple[int, ...]] = {f"x{i}": (2, 3) for i in range(count)}
        made.append(case("add_n", f"of{count}", inputs, {"num_args": count}, list_input=True))
    made.append(case("add_n", "half", {"a": (6,), "b": (6,), "c": (6,)}, {"num_args": 3}, dtype="float16",
                     list_input=True))
    for dtype in ("float32", "float64", "int32"):
        made.append(case("where", "full", {"condition": (3, 4), "x": (3, 4), "y": (3, 4)}, dtype=dtype, span=(0, 2),
                         spans={"x": (-9, 9), "y": (-9, 9)}, integer=["condition"] + ["x", "y"] * (dtype == "int32"),
                         no_grad=["condition"], train=dtype != "int32"))
    made.append(case("where", "rows", {"condition": (3,), "x": (3, 4), "y": (3, 4)}, span=(0, 2), integer=["condition"],
                     no_grad=["condition"]))
    return made


def _broadcast() -> list[Case]:
    made = []
    for op in ARITHMETIC + LOGICAL:
        name = f"broadcast_{op}"
        made.append(case(name, "train", {"lhs": (2, 3, 4), "rhs": (1, 3, 1)}, span=_span(op)))
        made.append(case(name, "int", {"lhs": (3, 3), "rhs": (1, 3)}, dtype="int32", integer=["lhs", "rhs"],
                         train=False,
                         span=(-3, 4), spans={"rhs": (1, 4)} if op == "div" else None))
        if op in ("add", "mul", "div", "power", "maximum"):
            made.append(case(name, "half", {"lhs": (2, 3), "rhs": (2, 1)}, dtype="float16", span=(0.5, 3)))
            made.append(case(name, "both", {"lhs": (2, 1, 3), "rhs": (1, 4, 1)}, span=_span(op)))
            made.append(case(name, "plain", {"lhs": (3, 1), "rhs": (1, 2)}, dtype="float64", span=_span(op)))
    made += [case("broadcast_add", "equal", {"lhs": (2, 3), "rhs": (2, 3)}),
             case("broadcast_add", "rank_mismatch", {"lhs": (2, 3), "rhs": (3,)}),
             case("broadcast_add", "mismatch", {"lhs": (2, 3), "rhs": (2, 2)}),
             case("broadcast_mul", "five", {"lhs": (2, 1, 2, 1, 2), "rhs": (1, 3, 2, 2, 1)}),
             case("broadcast_mod", "signs", {"lhs": (5, 1), "rhs": (1, 6)}, span=(-5, 5), train=False),
             case("broadcast_to", "zero", {"data": (1, 3, 1)}, {"shape": (2, 0, 4)}),
             case("broadcast_to", "bad", {"data": (1, 3, 1)}, {"shape": (2, 2, 4)}),
             case("broadcast_axis", "two", {"data": (1, 3, 1)}, {"axis": (0, 2), "size": (2, 4)}),
             case("broadcast_axis", "bad", {"data": (2, 3, 1)}, {"axis": (0,), "size": (4,)}),
             case("broadcast_like", "whole", {"lhs": (1, 3, 1), "rhs": (2, 3, 4)}),
             case("broadcast_like", "axes", {"lhs": (1, 3, 1), "rhs": (4, 2)},
                  {"lhs_axes": (0, 2), "rhs_axes": (1, 0)})]
    return made


def _reductions() -> list[Case]:
    made = []
    for op in REDUCTIONS:
        span = (0.5, 1.5) if "prod" in op else (-2, 2)
        for label, attrs in (("all", {}), ("axis", {"axis": 1}), ("axes", {"axis": (0, 2), "keepdims": True}),
                             ("negative", {"axis": -1})):
            made.append(case(op, label, {"data": (2, 3, 4)}, attrs, span=span))
        if op != "norm":
            made.append(case(op, "exclude", {"data": (2, 3, 4)}, {"axis": 1, "exclude": True}, span=span))
            made.append(case(op, "int", {"data": (3, 3)}, {"axis": 0}, dtype="int32", span=(-4, 5), integer=["data"],
                             train=False))
        made.append(case(op, "half", {"data": (2, 40)}, {"axis": 1}, dtype="float16", span=span))
        made.append(case(op, "plain", {"data": (2, 5)}, {"axis": 1}, dtype="float64", span=span))
        made.append(case(op, "bad_axis", {"data": (2, 3)}, {"axis": 2}, span=span))
    made.append(case("sum", "twice", {"data": (2, 3)}, {"axis": (1, -1)}))
    made.append(case("sum", "small", {"data": (60,)}, {}, dtype="int8", span=(50, 127), integer=["data"], train=False))
    made.append(case("max", "ties", {"data": (3, 4)}, {"axis": 1}, span=(0, 2), integer=["data"]))
    made.append(case("norm", "one", {"data": (3, 4)}, {"axis": 1, "ord": 1}))
    for op in ("argmax", "argmin"):
        for label, attrs in (("axis", {"axis": 1}), ("all", {}), ("keep", {"axis": -1, "keepdims": True})):
            made.append(case(op, label, {"data": (3, 4)}, attrs, train=False))
        made.append(case(op, "ties", {"data": (3, 6)}, {"axis": 1}, span=(0, 3), integer=["data"], train=False))
        made.append(case(op, "int", {"data": (3, 6)}, {"axis": 1}, span=(0, 3), dtype="int32", integer=["data"],
                         train=False))
    made.append(case("argmax_channel", "plain", {"data": (3, 6)}, train=False))
    return made


def _products() -> list[Case]:
    made = []
    for left in (False, True):
        for right in (False, True):
            attrs = {"transpose_a": left, "transpose_b": right}
            label = f"{'t' if left else 'n'}{'t' if right else 'n'}"
            made.append(case("dot", label, {"lhs": (4, 3) if left else (3, 4), "rhs": (5, 4) if right else (4, 5)},
                             attrs))
            made.append(case("batch_dot", label, {"lhs": (2, 4, 3) if left else (2, 3, 4),
                                                  "rhs": (2, 5, 4) if right else (2, 4, 5)}, attrs))
    made += [case("dot", "vectors", {"lhs": (6,), "rhs": (6,)}),
             case("dot", "tensors", {"lhs": (2, 3, 4), "rhs": (4, 5)}),
             case("dot", "tensor_right", {"lhs": (3, 4), "rhs": (4, 2, 2)}),
             case("dot", "matrix_vector", {"lhs": (3, 4), "rhs": (4,)}),
             case("dot", "plain", {"lhs": (3, 4), "rhs": (4, 2)}, dtype="float64"),
             case("dot", "mismatch", {"lhs": (3, 4), "rhs": (3, 2)}),
             case("batch_dot", "mismatch", {"lhs": (2, 3, 4), "rhs": (3, 4, 2)}),
             case("batch_dot", "heads", {"lhs": (2, 3, 4, 2), "rhs": (2, 3, 5, 2)}, {"transpose_b": True}),
             case("batch_dot", "five", {"lhs": (2, 1, 2, 2, 3), "rhs": (2, 1, 2, 2, 4)}, {"transpose_a": True}),
             case("batch_dot", "mixed_ranks", {"lhs": (2, 3, 4, 2), "rhs": (6, 2, 2)}),
             case("batch_dot", "spread", {"lhs": (2, 3, 4, 2), "rhs": (1, 3, 2, 2)})]
    return made


def _creation() -> list[Case]:
    made = []
    for dtype in ("float32", "float64", "float16", "int32", "uint8", "bool"):
        for op in ("_zeros", "_ones"):
            made.append(case(op, dtype, {}, {"shape": (2, 3), "dtype": dtype}, train=False))
    made += [case("_full", "float", {}, {"shape": (2, 2), "value": 1.7}, train=False),
             case("_full", "int", {}, {"shape": (2, 2), "value": -1.7, "dtype": "int32"}, train=False),
             case("_arange", "stop", {}, {"start": 2, "stop": 9, "step": 2}, train=False),
             case("_arange", "repeat", {}, {"start": 0, "stop": 3, "repeat": 2, "dtype": "int32"}, train=False),
             case("_arange", "single", {}, {"start": 4}, train=False),
             case("_arange", "down", {}, {"start": 5, "stop": -1, "step": -1.5}, train=False),
             case("_eye", "offset", {}, {"N": 3, "M": 4, "k": 1}, train=False),
             case("_eye", "square", {}, {"N": 3}, train=False)]
    return made
