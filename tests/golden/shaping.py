"""Golden cases of operators that only move elements."""
from __future__ import annotations

from golden.cases import Case, case


def cases() -> list[Case]:
    return _reshape() + _axes() + _pieces()


def _reshape() -> list[Case]:
    def one(label: str, data: tuple[int, ...], shape: tuple[int, ...], op: str = "Reshape", **more: object) -> Case:
        return case(op, label, {"data": data}, {"shape": shape, **more})

    return [
        one("plain", (2, 3, 4), (4, 6)), one("zero", (2, 3, 4), (0, 12)), one("minus1", (2, 3, 4), (-1, 4)),
        one("zero_minus1", (2, 3, 4), (0, -1)), one("swap", (2, 3, 4), (4, 0, 2)), one("zeros", (2, 3, 4), (2, 0, 0)),
        one("minus2", (2, 3, 4), (-2,)), one("minus2_head", (2, 3, 4), (2, -2)),
        one("minus2_tail", (2, 3, 4), (-2, 1, 1)),
        one("minus2_split", (2, 3, 4), (1, 2, -2)), one("minus3", (2, 3, 4), (-3, 4)),
        one("minus3_twice", (2, 3, 4, 5), (-3, -3)), one("minus3_zero", (2, 3, 4), (0, -3)),
        one("minus3_minus2", (2, 3, 4), (-3, -2)), one("minus4", (2, 3, 4), (-4, 1, 2, -2)),
        one("minus4_open", (2, 3, 4), (2, -4, -1, 3, -2)), one("minus4_second", (4, 3), (-4, 2, -1, 0)),
        one("columns", (10, 5, 4), (-1, 0)), one("columns_reverse", (10, 5, 4), (-1, 0), reverse=True),
        one("reverse_minus4", (2, 12), (0, -4, 3, -1), reverse=True),
        one("reverse_split", (8, 3, 3, 3, 4, 4), (-4, -1, 2, 0, 0, 0, -4, 2, -1), reverse=True),
        one("reverse_minus3", (2, 3, 4), (0, -3), reverse=True),
        one("reverse_minus2", (2, 3, 4), (-2, 2, 2), reverse=True),
        one("retina", (1, 4, 2, 3), (0, 2, -1, 0)), one("retina4", (1, 8, 2, 3), (0, 4, -1, 0)),
        one("ssd", (2, 42), (0, -1, 21)), one("ssd4", (1, 8), (1, -1, 4)), one("one", (1, 1), (-1,)),
        one("scalar_like", (1,), (1, 1, 1)), one("bad_minus2", (2, 2), (1, -2)), one("bad_size", (2, 3), (4, 2)),
        one("bad_minus1", (2, 3), (-1, 4)), one("two_minus1", (2, 3), (-1, -1)), one("bad_code", (2, 3), (-5,)),
        one("bad_minus4", (2, 3), (-4, 2, 2, 3)), one("bad_minus3", (2,), (-3,)),
        one("bad_zero", (6,), (2, 0)), one("lower_case", (2, 3), (3, 2), op="reshape"),
        case("Reshape", "target", {"data": (2, 3, 4)}, {"target_shape": (2, 0)}),
        case("Reshape", "target_all", {"data": (2, 3, 4)}, {"target_shape": (4, 6)}),
        case("Reshape", "target_keep", {"data": (2, 3, 4)}, {"target_shape": (5, 0), "keep_highest": True}),
        case("Reshape", "target_keep_3", {"data": (2, 3, 4)}, {"target_shape": (0, 4, 0), "keep_highest": True}),
        case("Reshape", "no_shape", {"data": (2, 3, 4)}, {}),
        case("Reshape", "half", {"data": (2, 3)}, {"shape": (-1,)}, dtype="float16"),
        case("Reshape", "int", {"data": (2, 3)}, {"shape": (-1,)}, dtype="int32", integer=["data"], span=(-9, 9),
             train=False),
        case("Flatten", "plain", {"data": (2, 3, 4)}), case("Flatten", "flat", {"data": (2, 3)}),
        case("Flatten", "vector", {"data": (3,)}), case("flatten", "alias", {"data": (2, 3, 2, 1)}),
        case("Flatten", "half", {"data": (2, 3, 2)}, dtype="float16"),
    ]


def _axes() -> list[Case]:
    return [
        case("transpose", "reverse", {"data": (2, 3, 4)}), case("transpose", "matrix", {"data": (3, 4)}),
        case("transpose", "axes", {"data": (2, 3, 4)}, {"axes": (1, 2, 0)}),
        case("transpose", "nhwc", {"data": (2, 3, 2, 4)}, {"axes": (0, 2, 3, 1)}),
        case("transpose", "five", {"data": (2, 1, 3, 2, 2)}, {"axes": (4, 0, 2, 1, 3)}),
        case("transpose", "negative", {"data": (2, 3, 4)}, {"axes": (0, -1, 1)}),
        case("transpose", "vector", {"data": (5,)}),
        case("transpose", "half", {"data": (2, 3)}, dtype="float16"),
        case("transpose", "int", {"data": (2, 3)}, dtype="int32", integer=["data"], span=(-9, 9), train=False),
        case("transpose", "bad", {"data": (2, 3)}, {"axes": (0, 0)}),
        case("transpose", "short", {"data": (2, 3, 4)}, {"axes": (1, 0)}),
        case("expand_dims", "front", {"data": (2, 3)}, {"axis": 0}),
        case("expand_dims", "middle", {"data": (2, 3)}, {"axis": 1}),
        case("expand_dims", "last", {"data": (2, 3)}, {"axis": -1}),
        case("expand_dims", "end", {"data": (2, 3)}, {"axis": 2}),
        case("expand_dims", "first", {"data": (2, 3)}, {"axis": -3}),
        case("expand_dims", "bad", {"data": (2, 3)}, {"axis": 3}),
        case("expand_dims", "half", {"data": (2, 3)}, {"axis": 1}, dtype="float16"),
    ]


def _pieces() -> list[Case]:
    def join(label: str, shapes: list[tuple[int, ...]], dim: int | None = None, op: str = "Concat",
             dtype: str = "float32", dtypes: dict[str, str] | None = None) -> Case:
        attrs = {"num_args": len(shapes), **({} if dim is None else {"dim": dim})}
        return case(op, label, {f"x{i}": s for i, s in enumerate(shapes)}, attrs, list_input=True, dtype=dtype,
                    dtypes=dtypes)

    def split(label: str, data: tuple[int, ...], count: int, op: str = "SliceChannel", dtype: str = "float32",
              **attrs: object) -> Case:
        return case(op, label, {"data": data}, {"num_outputs": count, **attrs}, dtype=dtype)

    def cut(label: str, axis: int, begin: int, end: int | None, **more: object) -> Case:
        return case("slice_axis", label, {"data": (3, 4, 2)}, {"axis": axis, "begin": begin, "end": end})

    return [
        join("default", [(2, 3), (2, 1)]), join("rows", [(2, 3), (1, 3), (3, 3)], 0),
        join("last", [(2, 3, 1), (2, 3, 2)], -1),
        join("one", [(2, 3)]), join("maps", [(1, 2, 3, 3), (1, 1, 3, 3), (1, 4, 3, 3)]),
        join("vectors", [(2,), (3,)], 0),
        join("alias", [(2, 3), (2, 1)], op="concat"), join("half", [(2, 3), (2, 1)], dtype="float16"),
        join("mixed", [(2, 3), (2, 1)], dtypes={"x1": "float64"}), join("mismatch", [(2, 3), (3, 1)]),
        join("rank", [(2, 3), (2, 3, 1)]), join("bad_dim", [(2, 3), (2, 3)], 2), join("many", [(1, 1)] * 9),
        split("channels", (2, 6, 2), 3), split("squeeze", (2, 3, 2), 3, squeeze_axis=True),
        split("rows", (4, 3), 2, axis=0),
        split("last", (2, 3, 4), 2, axis=-1), split("one", (2, 3), 1), split("alias", (2, 4), 2, op="split"),
        split("half", (2, 4), 2, dtype="float16"), split("bad", (2, 5), 2),
        split("bad_squeeze", (2, 4), 2, squeeze_axis=True),
        split("bad_axis", (2, 4), 2, axis=2), split("squeeze_last", (2, 2), 2, axis=-1, squeeze_axis=True),
        cut("middle", 1, 1, 3), cut("open", 1, 2, None), cut("negative", -1, -1, None), cut("negative_end", 0, 0, -1),
        cut("whole", 2, 0, 2), cut("bad_begin", 1, 5, None), cut("bad_end", 1, 0, 5), cut("empty", 1, 2, 2),
    ]
