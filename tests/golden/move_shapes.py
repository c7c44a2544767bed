"""Shape inference of more operators that move elements, in both directions."""
from __future__ import annotations

from golden.shape_cases import Row, row


# long: a table of cases
def rows() -> list[Row]:
    made = []
    for op, attrs, knowns in [
        (
            "slice",
            {"begin": (0, 1), "end": (2, None)},
            [((3, 4), None), ((0, 4), None), ((0, 0), (2, 3)), (None, (2, 3))],
        ),
        ("SwapAxis", {"dim1": 0, "dim2": 1}, [((2, 3), None), ((2, 0), (3, 0)), ((0, 3), (0, 2)), (None, (2, 3))]),
        ("tile", {"reps": (2, 3)}, [((3, 4), None), ((0, 4), None), ((0, 4), (6, 12)), (None, (6, 12))]),
        ("repeat", {"repeats": 2, "axis": 0}, [((3, 4), None), ((0, 4), None), ((0, 4), (6, 4)), (None, (6, 4))]),
        ("repeat", {"repeats": 2}, [((3, 4), None), ((0, 4), None)]),
        ("squeeze", {"axis": 1}, [((2, 1, 3), None), ((0, 1, 3), None), ((0, 1, 3), (2, 3)), ((2, 0, 3), None)]),
        ("squeeze", {}, [((2, 1, 3), None), ((0, 1, 3), None)]),
        ("reverse", {"axis": 0}, [((2, 3), None), ((0, 3), None), ((0, 3), (2, 3)), (None, (2, 3))]),
        (
            "Pad",
            {"mode": "edge", "pad_width": (0, 0, 0, 0, 1, 1, 2, 2)},
            [((1, 2, 3, 3), None), ((0, 2, 3, 3), (1, 2, 5, 7))],
        ),
        (
            "depth_to_space",
            {"block_size": 2},
            [((1, 8, 2, 3), None), ((0, 8, 2, 3), None), ((0, 8, 2, 3), (1, 2, 4, 6))],
        ),
        (
            "space_to_depth",
            {"block_size": 2},
            [((1, 2, 4, 6), None), ((0, 2, 4, 6), None), ((0, 2, 4, 6), (1, 8, 2, 3))],
        ),
        ("broadcast_axis", {"axis": 0, "size": 2}, [((1, 3), None), ((0, 3), None), ((1, 0), None), ((1, 0), (2, 3))]),
        ("diag", {}, [((3,), None), ((3, 4), None), ((0, 4), None), ((0,), None), ((2, 3, 0), None)]),
        ("shape_array", {}, [((2, 3), None), ((0, 3), None), (None, None)]),
        ("size_array", {}, [((2, 3), None), ((0, 3), None), (None, None)]),
        (
            "_split_v2",
            {"indices": (), "sections": 2},
            [((2, 4), None), ((0, 4), None), ((2, 0), None), ((0, 4), (2, 2)), (None, (2, 2))],
        ),
        ("_split_v2", {"indices": (0, 1)}, [((2, 4), None), ((0, 4), None), ((0, 4), (2, 1))]),
        ("_slice_assign_scalar", {"begin": (0,), "end": (1,)}, [((2, 3), None), ((0, 3), (2, 3)), (None, (2, 3))]),
    ]:
        for data, out in knowns:
            made.append(row(op, {"data": data}, attrs, out))
    for op, attrs, pairs in [
        (
            "slice_like",
            {},
            [
                ((3, 4), (2, 3), None),
                ((3, 4), None, None),
                ((3, 4), (2, 0), None),
                ((0, 4), (2, 3), None),
                ((3, 4), None, (2, 3)),
            ],
        ),
        ("slice_like", {"axes": 0}, [((3, 4), (2, 9), None), ((3, 0), (2, 9), None), ((3, 4), (0, 9), (2, 4))]),
    ]:
        for data, like, out in pairs:
            made.append(row(op, {"data": data, "shape_like": like}, attrs, out))
    for op, attrs, triples in [
        ("broadcast_like", {}, [((1, 3), (2, 3), None), ((1, 3), None, None), ((1, 0), (2, 3), None)]),
        ("broadcast_like", {"lhs_axes": (0,), "rhs_axes": (1,)}, [((1, 3), (2, 4), None), ((1, 0), (2, 4), None)]),
        ("reshape_like", {}, [((6, 2), (3, 4), None), ((0, 2), (3, 4), None), ((6, 2), (0, 4), None)]),
        (
            "reshape_like",
            {"lhs_begin": 0, "lhs_end": 1, "rhs_begin": 0, "rhs_end": 2},
            [((30, 7), (15, 2, 4), None), ((30, 0), (15, 2, 4), None)],
        ),
        (
            "_slice_assign",
            {"begin": (0,), "end": (1,)},
            [((2, 3), (1, 3), None), ((2, 3), None, None), ((0, 3), None, (2, 3))],
        ),
        ("_identity_with_attr_like_rhs", {}, [((2, 3), None, None), (None, (2, 3), None), (None, None, (2, 3))]),
    ]:
        for lhs, rhs, out in triples:
            made.append(row(op, {"lhs": lhs, "rhs": rhs}, attrs, out))
    for op, attrs, lists in [
        (
            "stack",
            {"axis": 1},
            [([(2, 3), (2, 3)], None), ([(2, 0), (0, 3)], None), ([(2, 3), None], None), ([None, None], (2, 2, 3))],
        ),
        ("Crop", {}, [([(1, 2, 5, 6), (1, 2, 3, 4)], None), ([(0, 2, 5, 6), (1, 2, 3, 4)], None)]),
        (
            "UpSampling",
            {"scale": 2, "sample_type": "nearest"},
            [([(1, 2, 3, 4)], None), ([(1, 2, 3, 4), (1, 1, 6, 8)], None), ([(0, 2, 3, 4)], None)],
        ),
        ("_rnn_param_concat", {"dim": 0}, [([(2,), (3,)], None), ([(0,), (3,)], (5,))]),
    ]:
        for shapes, out in lists:
            made.append(
                row(op, {f"x{i}": s for i, s in enumerate(shapes)}, {"num_args": len(shapes), **attrs}, out, True)
            )
    for data, weight, out in [
        ((1, 2, 3, 4), None, None),
        ((1, 2, 3, 4), (2, 1, 4, 4), None),
        ((0, 2, 3, 4), None, (1, 2, 6, 8)),
    ]:
        made.append(
            row(
                "UpSampling",
                {"data": data, "weight": weight},
                {"scale": 2, "sample_type": "bilinear", "num_filter": 2, "num_args": 2},
                out,
            )
        )
    return made
