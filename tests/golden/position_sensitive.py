"""Golden cases of pooling over regions where each part has channels of its own."""
from __future__ import annotations

from golden.cases import Case, case

PLAIN, DEFORMABLE = "_contrib_PSROIPooling", "_contrib_DeformablePSROIPooling"


def cases() -> list[Case]:
    made = []
    for label, attrs, end, dtype in (
            ("plain", {"pooled_size": 2}, 5.4, "float32"), ("plain", {"pooled_size": 2}, 5.4, "float64"),
            ("scaled", {"pooled_size": 3, "spatial_scale": 0.57, "output_dim": 1}, 9, "float32"),
            ("groups", {"pooled_size": 3, "group_size": 2}, 7, "float32"),
            ("one_group", {"pooled_size": 2, "group_size": 1}, 6, "float32")):
        attrs = {"spatial_scale": 1, "output_dim": 2, **attrs}
        side, classes = attrs.get("group_size", attrs["pooled_size"]), attrs["output_dim"]
        # A region's first number is its image.
        shapes = {"data": (int(end) + 1, classes * side * side, 5, 6), "rois": (5, 5)}
        more = {"spans": {"rois": (0, end)}, "dtype": dtype, "no_grad": ("rois",)}
        made.append(case(PLAIN, label, shapes, attrs, **more))
        for kind, extra in (("still", {"no_trans": True}), ("moved", {"trans_std": 0.1}),
                            ("sampled", {"trans_std": 0.2, "sample_per_part": 3}),
                            ("parts", {"trans_std": 0.1, "part_size": 2, "sample_per_part": 2})):
            moves = extra.get("part_size", attrs["pooled_size"])
            trans = {"trans": (5, 2 * classes if kind == "sampled" else 2, moves, moves)} if kind != "still" else {}
            given = {**attrs, "group_size": side, **extra}
            made.append(case(DEFORMABLE, f"{label}_{kind}", {**shapes, **trans}, given, **more))
    for op, attrs in ((PLAIN, {"pooled_size": 2}), (DEFORMABLE, {"pooled_size": 2, "group_size": 2, "no_trans": True})):
        for number, (data, rois) in enumerate((((8, 4, 4), (2, 5)), ((1, 8, 4, 4), (2, 4)))):
            made.append(case(op, f"refused{number}", {"data": data, "rois": rois},
                             {"spatial_scale": 1, "output_dim": 2, **attrs}))
    return made
