"""Golden cases of pooling over regions of images."""
from __future__ import annotations

from golden.cases import Case, case


def cases() -> list[Case]:
    made = []
    for op in ("ROIPooling", "_contrib_ROIAlign"):
        def roi(label: str, channels: int = 2, low: float = 0.6, op: str = op, train: bool = True,
                dtype: str = "float32", rois: tuple[int, ...] = (4, 5), **attrs: object) -> None:
            shapes = {"data": (4, channels, 5, 6), "rois": rois}
            made.append(case(op, label, shapes, {"pooled_size": (2, 3), "spatial_scale": 1, **attrs}, dtype=dtype,
                             spans={"rois": (low, 3.9)}, no_grad=["rois"], train=train))

        roi("plain")
        roi("scaled", spatial_scale=0.5, pooled_size=(3, 2), train=False)
        roi("one", pooled_size=(1, 1))
        roi("plain", dtype="float64", train=False)
        roi("five", rois=(4, 4))
        roi("one_number", pooled_size=(2,))
    roi("samples", sample_ratio=3)
    roi("apart", channels=12, position_sensitive=True)
    roi("apart_uneven", channels=5, position_sensitive=True)
    for label, attrs in (("plain", {}), ("scaled", {"spatial_scale": 0.5, "pooled_size": (3, 2)}),
                         ("samples", {"sampling_ratio": 3}), ("one_number", {"pooled_size": (2,)})):
        for dtype in ("float32", "float64"):
            made.append(_turned(label, attrs, dtype))
    made.append(_turned("five", {}, numbers=5))
    return made


def _turned(label: str, attrs: dict[str, object], dtype: str = "float32", numbers: int = 6) -> Case:
    """Regions with centre, size and angle; all numbers are drawn from one span, so angles are of a few degrees.
    contrib_calls.py has larger ones."""
    return case("_contrib_RROIAlign", label, {"data": (4, 2, 5, 6), "rois": (6, numbers)},
                {"pooled_size": (2, 3), "spatial_scale": 1, **attrs}, dtype=dtype, spans={"rois": (0.6, 3.9)},
                train=False)
