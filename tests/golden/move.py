"""Golden cases of more operators that move elements: cutting, repeating, padding, stacking, joining at places."""
from __future__ import annotations

from golden.cases import Case, case

Shape = tuple[int, ...]


def cases() -> list[Case]:
    return _cut() + _crop() + _repeat() + _upsampling() + _axes() + _pad() + _like() + _split() + _assign() + _small()


def whole(
    op: str,
    label: str,
    shapes: dict[str, Shape],
    attrs: dict[str, object] | None = None,
    dtype: str = "int32",
    **more: bool,
) -> Case:
    """Whole numbers, inference alone."""
    return case(
        op,
        label,
        shapes,
        attrs,
        dtype,
        span=(-9, 9) if dtype[0] != "u" else (0, 9),
        integer=list(shapes),
        train=False,
        **more,
    )


def _cut() -> list[Case]:
    data: Shape = (3, 4, 2)
    made = []
    for label, begin, end, step in [
        ("plain", (0, 1), (2, 3), ()),
        ("none", (None, 1, None), (2, None, None), ()),
        ("short", (1,), (3,), ()),
        ("negative", (-2, -3), (None, -1), ()),
        ("step", (0, 0), (3, 4), (2, 3)),
        ("back", (None, None, None), (None, None, None), (-1, -2, -1)),
        ("back_end", (2, 3), (0, -4), (-1, -1)),
        ("back_negative", (None, -1), (None, -4), (1, -2)),
        ("beyond", (0, 1), (9, 9), ()),
        ("beyond_back", (9, None), (None, None), (-1, None)),
        ("below", (-9, 0), (2, 4), ()),
        ("below_end", (2,), (-9,), (-1,)),
        ("step_none", (0, 1), (3, 4), (None, 2)),
    ]:
        attrs: dict[str, object] = {"begin": begin, "end": end, **({"step": step} if step else {})}
        made.append(
            case("slice", label, {"data": data}, attrs, train=label in ("plain", "step", "back", "back_negative"))
        )
    for label, begin, end, step in [
        ("zero_step", (0,), (2,), (0,)),
        ("long", (0,) * 4, (1,) * 4, ()),
        ("lengths", (0, 0), (1,), ()),
        ("step_length", (0, 0), (1, 1), (1,)),
        ("no_begin", (), (), ()),
    ]:
        attrs = {"begin": begin, "end": end, **({"step": step} if step else {})}
        made.append(case("slice", label, {"data": data}, attrs, train=False))
    made += [
        case("crop", "alias", {"data": data}, {"begin": (1, 0), "end": (3, 2)}, train=False),
        whole("slice", "int", {"data": (5,)}, {"begin": (None,), "end": (None,), "step": (-2,)}, "int64"),
        case("slice", "half", {"data": (5, 2)}, {"begin": (1,), "end": (4,)}, "float16", train=False),
    ]

    def like(label: str, data: Shape, other: Shape, train: bool = False, **attrs: object) -> None:
        made.append(case("slice_like", label, {"data": data, "shape_like": other}, attrs, train=train))

    like("whole", (3, 4), (2, 3), True)
    like("axes", (3, 4, 5), (2, 9, 2), True, axes=(0, 2))
    like("negative", (3, 4, 5), (2, 9, 2), axes=(-1,))
    like("rank", (3, 4, 5), (2, 3), axes=(0,))
    like("rank_all", (3, 4, 5), (2, 3))
    like("bigger", (3, 4), (3, 5))
    like("negative_wide", (4,), (2, 3), axes=(-1,))
    like("negative_narrow", (3, 4, 5), (2, 3), axes=(-3,))
    like("bad_axis", (3, 4), (2, 3), axes=(2,))
    like("bad_axis_negative", (3, 4, 5), (2, 3), axes=(-1,))
    like("bad_axis_like", (3, 4, 5), (2, 3), axes=(2,))
    made.append(case("slice_like", "half", {"data": (3, 4), "shape_like": (2, 3)}, dtype="float16", train=False))
    made.append(
        case("slice_like", "mixed", {"data": (3, 4), "shape_like": (2, 3)}, dtypes={"shape_like": "int32"}, train=False)
    )
    return made


def _crop() -> list[Case]:
    def one(label: str, data: Shape, other: Shape | None = None, train: bool = False, **attrs: object) -> Case:
        shapes = {"x0": data, **({"x1": other} if other else {})}
        return case("Crop", label, shapes, {"num_args": len(shapes), **attrs}, list_input=True, train=train)

    return [
        one("like", (2, 3, 5, 6), (1, 2, 4, 3), True),
        one("centre", (2, 3, 5, 6), (1, 2, 2, 3), True, center_crop=True),
        one("offset", (1, 2, 5, 6), (1, 2, 2, 3), True, offset=(1, 2)),
        one("size", (1, 2, 5, 6), None, True, h_w=(3, 2), offset=(2, 1)),
        one("size_centre", (1, 2, 6, 5), None, h_w=(3, 2), center_crop=True),
        one("same", (1, 2, 3, 3), (1, 2, 3, 3)),
        one("smaller", (1, 2, 3, 3), (1, 2, 4, 3)),
        one("outside", (1, 2, 5, 6), (1, 2, 4, 3), offset=(2, 0)),
        one("flat", (5, 6), (4, 3)),
        one("no_size", (1, 2, 3, 3)),
        one("both", (1, 2, 5, 6), (1, 2, 2, 3), h_w=(1, 1)),
    ]


def _repeat() -> list[Case]:
    def tile(label: str, data: Shape, reps: Shape, train: bool = False) -> Case:
        return case("tile", label, {"data": data}, {"reps": reps}, train=train)

    def repeat(label: str, data: Shape, train: bool = False, **attrs: object) -> Case:
        return case("repeat", label, {"data": data}, attrs, train=train)

    return [
        tile("plain", (2, 3), (2, 2), True),
        tile("longer", (2, 3), (2, 1, 3), True),
        tile("shorter", (2, 3), (2,)),
        tile("ones", (2, 3), (1, 1)),
        tile("none", (2, 3), ()),
        tile("bad", (2, 3), (2, -1)),
        tile("zero", (2,), (0,)),
        whole("tile", "int", {"data": (3,)}, {"reps": (2,)}, "uint8"),
        repeat("flat", (2, 3), True, repeats=2),
        repeat("axis", (2, 3, 2), True, repeats=3, axis=1),
        repeat("negative", (2, 3), repeats=2, axis=-1),
        repeat("one", (2, 3), repeats=1, axis=0),
        repeat("minus", (2, 3), repeats=-1),
        repeat("bad_axis", (2, 3), repeats=2, axis=2),
        whole("repeat", "int", {"data": (3,)}, {"repeats": 2}, "int64"),
    ]


def _upsampling() -> list[Case]:
    def near(label: str, *shapes: Shape, train: bool = False, **attrs: object) -> Case:
        return case(
            "UpSampling",
            label,
            {f"x{i}": s for i, s in enumerate(shapes)},
            {"sample_type": "nearest", "num_args": len(shapes), **attrs},
            list_input=True,
            train=train,
        )

    def linear(label: str, data: Shape, weight: Shape, scale: int, filters: int, **attrs: object) -> Case:
        return case(
            "UpSampling",
            label,
            {"data": data, "weight": weight},
            {"sample_type": "bilinear", "num_args": 2, "scale": scale, "num_filter": filters, **attrs},
        )

    return [
        near("nearest", (1, 2, 2, 3), scale=2, train=True),
        near("concat", (1, 2, 2, 3), (1, 1, 4, 6), scale=2, train=True),
        near("sum", (1, 2, 2, 3), (1, 2, 4, 6), (1, 2, 1, 1), scale=2, multi_input_mode="sum"),
        near("sum_two", (1, 2, 2, 3), (1, 2, 4, 6), scale=2, multi_input_mode="sum", train=True),
        near("first", (1, 1, 4, 4), (1, 1, 2, 2), scale=2),
        near("one", (1, 1, 2, 2), scale=1),
        near("unfit", (1, 1, 2, 2), (1, 1, 3, 3), scale=2),
        near("flat", (2, 3), scale=2),
        near("channels", (1, 2, 2, 3), (1, 1, 4, 6), scale=2, multi_input_mode="sum"),
        case(
            "UpSampling",
            "half",
            {"x0": (1, 1, 2, 2)},
            {"sample_type": "nearest", "num_args": 1, "scale": 2},
            "float16",
            list_input=True,
            train=False,
        ),
        linear("bilinear", (1, 2, 3, 2), (2, 1, 4, 4), 2, 2),
        linear("odd", (1, 2, 2, 2), (2, 1, 5, 5), 3, 2),
        linear("plain", (1, 1, 3, 2), (1, 1, 4, 4), 2, 1, num_args=1),
        linear("bad_weight", (1, 2, 3, 2), (2, 1, 3, 3), 2, 2),
    ]


# long: a table of cases
def _axes() -> list[Case]:
    def swap(label: str, data: Shape, op: str = "SwapAxis", train: bool = False, **attrs: object) -> Case:
        return case(op, label, {"data": data}, attrs, train=train)

    def squeeze(label: str, data: Shape, train: bool = False, **attrs: object) -> Case:
        return case("squeeze", label, {"data": data}, attrs, train=train)

    def stack(label: str, shapes: list[Shape], train: bool = False, dtype: str = "float32", **attrs: object) -> Case:
        return case(
            "stack",
            label,
            {f"x{i}": s for i, s in enumerate(shapes)},
            {"num_args": len(shapes), **attrs},
            dtype,
            list_input=True,
            train=train,
        )

    def flip(label: str, data: Shape, axis: object, op: str = "reverse", train: bool = False) -> Case:
        return case(op, label, {"data": data}, {"axis": axis}, train=train)

    def blocks(op: str, label: str, data: Shape, size: int, train: bool = False) -> Case:
        return case(op, label, {"data": data}, {"block_size": size}, train=train)

    def diag(label: str, data: Shape, train: bool = False, **attrs: object) -> Case:
        return case("diag", label, {"data": data}, attrs, train=train)

    return [
        swap("plain", (2, 3, 4), dim1=0, dim2=2, train=True),
        swap("default", (2, 3)),
        swap("negative", (2, 3, 4), dim1=-1, dim2=0),
        swap("alias", (2, 3), "swapaxes", dim1=0, dim2=1),
        swap("bad", (2, 3), dim1=0, dim2=2),
        swap("far", (2, 3), dim1=-3, dim2=1),
        swap("same", (2, 3), dim1=1, dim2=1),
        swap("five", (2, 1, 3, 2, 2), dim1=1, dim2=4),
        squeeze("all", (1, 2, 1, 3), True),
        squeeze("axis", (1, 2, 1, 3), axis=0),
        squeeze("ones", (1, 1)),
        squeeze("axes", (1, 2, 1, 3), True, axis=(0, -2)),
        squeeze("bad", (1, 2), axis=1),
        squeeze("none", (2, 3)),
        squeeze("far", (1, 2), axis=2),
        squeeze("twice", (1, 2, 1), axis=(0, 0)),
        squeeze("empty", (1, 2, 1), axis=()),
        stack("front", [(2, 3)] * 2, True),
        stack("last", [(2, 3)] * 3, True, axis=-1),
        stack("middle", [(2, 3)] * 2, axis=1),
        stack("one", [(2, 3)]),
        stack("bad_axis", [(2, 3)] * 2, axis=3),
        stack("half", [(2,)] * 2, dtype="float16"),
        flip("one", (2, 3, 4), 1, train=True),
        flip("several", (2, 3, 4), (0, 2), train=True),
        flip("negative", (2, 3), -1),
        flip("alias", (2, 3), (1,), "flip"),
        flip("bad", (2, 3), 2),
        flip("none", (2, 3), ()),
        flip("twice", (2, 3), (1, 1)),
        whole("reverse", "int", {"data": (5,)}, {"axis": 0}, "int8"),
        blocks("depth_to_space", "plain", (1, 8, 2, 3), 2, True),
        blocks("depth_to_space", "bad", (1, 6, 2, 3), 2),
        blocks("depth_to_space", "flat", (8, 2, 3), 2),
        blocks("depth_to_space", "zero", (1, 8, 2, 3), 0),
        blocks("space_to_depth", "plain", (1, 2, 4, 6), 2, True),
        blocks("space_to_depth", "bad", (1, 2, 3, 6), 2),
        blocks("space_to_depth", "one", (1, 2, 3, 3), 1),
        blocks("depth_to_space", "three", (2, 9, 1, 2), 3),
        diag("vector", (3,), True),
        diag("vector_up", (3,), k=1),
        diag("vector_down", (2,), True, k=-2),
        diag("matrix", (3, 4), True),
        diag("up", (3, 4), True, k=2),
        diag("down", (3, 4), k=-1),
        diag("cube", (2, 3, 4), True),
        diag("axes", (2, 3, 4), True, axis1=2, axis2=0, k=-1),
        diag("negative", (2, 3, 4), axis1=-1, axis2=-2),
        diag("same", (2, 3), axis1=1, axis2=1),
        diag("bad", (2, 3), axis1=0, axis2=2),
        whole("diag", "int", {"data": (2, 2)}),
    ]


def _pad() -> list[Case]:
    flat: Shape = (0, 0, 0, 0, 1, 2, 2, 1)
    deep: Shape = (0, 0, 0, 0, 1, 0, 1, 1, 0, 2)

    def pad(
        label: str,
        mode: str,
        data: Shape,
        width: Shape,
        op: str = "Pad",
        train: bool = True,
        dtype: str = "float32",
        **attrs: object,
    ) -> Case:
        return case(op, label, {"data": data}, {"mode": mode, "pad_width": width, **attrs}, dtype, train=train)

    return [
        pad("constant", "constant", (1, 2, 3, 3), flat, constant_value=1.5),
        pad("edge", "edge", (1, 2, 3, 3), flat),
        pad("reflect", "reflect", (1, 2, 3, 3), flat),
        pad("zero", "constant", (1, 1, 2, 2), flat, "pad", train=False),
        pad("deep", "constant", (1, 1, 2, 2, 3), deep, train=False),
        pad("deep_edge", "edge", (1, 1, 2, 2, 3), deep),
        pad("deep_reflect", "reflect", (1, 1, 2, 2, 3), deep),
        pad("edge_one", "edge", (1, 1, 1, 1), flat),
        pad("rank", "constant", (2, 3), (0, 0, 1, 1)),
        pad("channels", "constant", (1, 1, 2, 2), (0, 0, 1, 1, 0, 0, 0, 0)),
        pad("short", "edge", (1, 1, 2, 2), (0, 0, 0, 0, 1, 1)),
        pad("far", "reflect", (1, 1, 2, 2), (0,) * 4 + (2,) * 4),
        pad("half", "edge", (1, 1, 2, 2), flat, train=False, dtype="float16"),
        pad("plain", "reflect", (1, 1, 3, 3), flat, train=False, dtype="float64"),
        whole("Pad", "int", {"data": (1, 1, 2, 2)}, {"mode": "constant", "pad_width": flat, "constant_value": 2}),
    ]


def _like() -> list[Case]:
    def reshape(label: str, lhs: Shape, rhs: Shape, train: bool = False, **attrs: object) -> Case:
        return case("reshape_like", label, {"lhs": lhs, "rhs": rhs}, attrs, train=train)

    def axis(
        label: str, data: Shape, axis: object, size: object, op: str = "broadcast_axis", train: bool = False
    ) -> Case:
        return case(op, label, {"data": data}, {"axis": axis, "size": size}, train=train)

    def like(label: str, lhs: Shape, rhs: Shape, **attrs: object) -> Case:
        return case("broadcast_like", label, {"lhs": lhs, "rhs": rhs}, attrs, train=False)

    return [
        reshape("whole", (2, 6), (3, 4), True),
        reshape("parts", (30, 7), (15, 2, 4), True, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2),
        reshape("negative", (2, 3, 4), (5, 12), lhs_begin=-2, lhs_end=None, rhs_begin=-1),
        reshape("begin", (2, 12), (3, 4), lhs_begin=1),
        reshape("unfit", (2, 3), (4, 2)),
        reshape("unfit_part", (30, 7), (15, 3, 4), lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2),
        reshape("empty", (30, 7), (1, 4), lhs_begin=0, lhs_end=0, rhs_begin=0, rhs_end=1),
        reshape("out", (30, 7), (30, 7), lhs_begin=0, lhs_end=3, rhs_begin=0, rhs_end=1),
        case("reshape_like", "mixed", {"lhs": (2, 3), "rhs": (6,)}, dtypes={"rhs": "int32"}, train=False),
        axis("alias", (1, 3), 0, 2, "broadcast_axes", True),
        axis("negative", (1, 3, 1), (-1, 0), (2, 4)),
        axis("lengths", (1, 3, 1), (0, 2), (2,)),
        axis("far", (1, 3), 2, 2),
        axis("none", (1, 3), (), ()),
        axis("twice", (1, 3), (0, 0), (2, 2)),
        axis("one", (1, 3), 0, 1),
        like("unfit", (2, 3), (3, 3)),
        like("rank", (1, 3), (2, 1, 3)),
        like("negative", (1, 3), (4, 2), lhs_axes=(-2,), rhs_axes=(-1,)),
        like("lengths", (1, 1), (4, 2), lhs_axes=(0, 1), rhs_axes=(0,)),
        like("same", (2, 3), (2, 3)),
        like("only", (1, 3), (4, 3), lhs_axes=(0,)),
        like("empty", (1, 3), (4, 3), lhs_axes=(), rhs_axes=()),
        like("far", (1, 3), (4, 3), lhs_axes=(2,), rhs_axes=(0,)),
        case("broadcast_like", "mixed", {"lhs": (1, 3), "rhs": (2, 3)}, dtypes={"rhs": "int32"}, train=False),
    ]


def _split() -> list[Case]:
    def split(label: str, data: Shape, train: bool = False, **attrs: object) -> Case:
        return case("_split_v2", label, {"data": data}, {"indices": (), **attrs}, train=train)

    return [
        split("indices", (2, 7), True, indices=(0, 2, 3)),
        split("sections", (4, 3), True, axis=0, sections=2),
        split("squeeze", (2, 3), True, sections=3, squeeze_axis=True),
        split("negative", (2, 3, 4), axis=-1, sections=2),
        split("one", (2, 3), sections=1),
        split("start", (2, 7), indices=(0,)),
        split("unfit", (2, 7), sections=2),
        split("uneven", (2, 7), indices=(0, 1, 5), axis=1),
        split("bad_axis", (2, 7), sections=1, axis=2),
        split("squeeze_bad", (2, 6), sections=3, squeeze_axis=True),
        split("order", (2, 7), indices=(0, 3, 2)),
        split("squeeze_indices", (2, 3), indices=(0, 1, 2), squeeze_axis=True),
        split("far", (2, 3), indices=(0, 4)),
        split("late", (2, 7), indices=(2, 4)),
    ]


def _assign() -> list[Case]:
    def assign(
        label: str, lhs: Shape, rhs: Shape, begin: object, end: object, step: object = (), op: str = "_slice_assign"
    ) -> Case:
        return case(op, label, {"lhs": lhs, "rhs": rhs}, {"begin": begin, "end": end, "step": step}, train=False)

    def number(label: str, data: Shape, begin: object, end: object, step: object = ()) -> Case:
        return case(
            "_slice_assign_scalar",
            label,
            {"data": data},
            {"begin": begin, "end": end, "step": step, "scalar": 2.5},
            train=False,
        )

    return [
        assign("plain", (3, 4), (2, 2), (0, 1), (2, 3)),
        assign("step", (5, 6), (2, 2), (1, 1), (5, 6), (2, 3)),
        assign("rows", (5, 4), (2, 4), (1,), (5,), (2,)),
        assign("back", (5, 4), (5, 2), (None, None), (None, 0), (-1, -2)),
        assign("unfit", (3, 4), (2, 3), (0, 1), (2, 3)),
        assign("crop", (3, 4), (3, 1), (None, -1), (None, None), op="_crop_assign"),
        number("plain", (3, 4), (0, 1), (2, 3)),
        number("step", (5, 4), (None, 3), (None, 0), (2, -2)),
        whole("_slice_assign_scalar", "int", {"data": (3,)}, {"begin": (1,), "end": (3,), "scalar": 2.5}),
    ]


# long: a table of cases
def _small() -> list[Case]:
    one: dict[str, Shape] = {"data": (2, 3)}
    made = [
        case("_contrib_div_sqrt_dim", "plain", {"data": (2, 5)}),
        case("_contrib_quadratic", "plain", one, {"a": 2, "b": -1.5, "c": 3}),
        case("_contrib_quadratic", "default", one, train=False),
        case("_contrib_gradientmultiplier", "plain", one, {"scalar": -0.5}),
        whole("_contrib_gradientmultiplier", "int", one, {"scalar": -0.5}),
        case("_contrib_round_ste", "plain", one, span=(-3, 3)),
        case("_contrib_sign_ste", "plain", one),
        case("_identity_with_attr_like_rhs", "plain", {"lhs": (2, 3), "rhs": (2, 3)}),
        case("_identity_with_attr_like_rhs", "unfit", {"lhs": (2, 3), "rhs": (3, 2)}, train=False),
        case(
            "_identity_with_attr_like_rhs",
            "mixed",
            {"lhs": (2, 3), "rhs": (2, 3)},
            dtypes={"rhs": "float64"},
            train=False,
        ),
        case("shape_array", "plain", {"data": (2, 3, 4)}, train=False),
        case("shape_array", "train", {"data": (2,)}),
        case("size_array", "plain", {"data": (2, 3, 4)}, train=False),
        whole("size_array", "int", one),
        case("size_array", "train", one),
        case("_contrib_index_array", "plain", one, train=False),
        case("_contrib_index_array", "train", one),
        case("_contrib_index_array", "axes", {"data": (2, 3, 2)}, {"axes": (2, 0)}, train=False),
        case("_contrib_index_array", "negative", {"data": (2, 3, 2)}, {"axes": (-1,)}, train=False),
        case("khatri_rao", "two", {"x0": (2, 3), "x1": (4, 3)}, {"num_args": 2}, list_input=True, train=False),
        case(
            "khatri_rao",
            "three",
            {"x0": (2, 2), "x1": (1, 2), "x2": (3, 2)},
            {"num_args": 3},
            list_input=True,
            train=False,
        ),
        case("khatri_rao", "one", {"x0": (2, 2)}, {"num_args": 1}, list_input=True, train=False),
        case("khatri_rao", "unfit", {"x0": (2, 3), "x1": (4, 2)}, {"num_args": 2}, list_input=True, train=False),
    ]
    for label, attrs in [
        ("plain", {}),
        ("axis", {"axis": 1, "start": 2, "step": 0.5}),
        ("negative", {"axis": -1}),
        ("repeat", {"repeat": 2}),
        ("repeat_axis", {"repeat": 2, "axis": 1}),
        ("bad", {"axis": 2}),
    ]:
        made.append(case("_contrib_arange_like", label, {"data": (2, 6)}, attrs, train=False))
    made += [
        case("_contrib_arange_like", "train", one),
        whole("_contrib_arange_like", "int", one, {"start": 1.5, "step": 1.5}),
        case("_contrib_arange_like", "uneven", one, {"repeat": 2, "axis": 1}, train=False),
    ]
    for label, shapes, dim in [
        ("flat", [(2,), (3,)], 0),
        ("matrix", [(2, 3), (2, 1)], 1),
        ("unfit", [(2, 3), (3, 1)], 1),
    ]:
        made.append(
            case(
                "_rnn_param_concat",
                label,
                {f"x{i}": s for i, s in enumerate(shapes)},
                {"num_args": len(shapes), "dim": dim},
                list_input=True,
                train=label == "flat",
            )
        )
    return made
