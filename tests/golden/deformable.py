"""Golden cases of deformable convolutions. MXNet has gradients of the modulated one on GPUs alone."""
from __future__ import annotations

from golden.cases import Case, case

SPAN = (-2.9, 2.9)  # of the offsets: some places are outside of the images


def cases() -> list[Case]:
    made = []
    for op in ("_contrib_DeformableConvolution", "_contrib_ModulatedDeformableConvolution"):
        def deform(label: str, data: tuple[int, ...] = (2, 4, 5, 6), space: tuple[int, ...] = (3, 4), filters: int = 4,
                   group: int = 1, apart: int = 1, bias: bool = True, dtype: str = "float32", op: str = op,
                   train: bool = True, **attrs: object) -> None:
            kernel = attrs.setdefault("kernel", (3, 3))
            assert isinstance(kernel, tuple)
            taps, modulated = apart * kernel[0] * kernel[-1], "Modulated" in op
            shapes: dict[str, tuple[int, ...]] = {"data": data, "offset": (data[0], 2 * taps, *space)}
            if modulated:
                shapes["mask"] = (data[0], taps, *space)
            shapes["weight"] = (filters, data[1] // group, *kernel)
            if bias:
                shapes["bias"] = (filters,)
            parameters = {"num_filter": filters, "num_group": group, "num_deformable_group": apart,
                          "no_bias": not bias, **attrs}
            made.append(case(op, label, shapes, parameters, dtype=dtype, spans={"offset": SPAN},
                             train=train and not modulated))

        deform("plain")
        deform("all", (2, 4, 6, 5), (3, 5), 6, 2, 2, kernel=(3, 2), stride=(2, 1), pad=(1, 1), dilate=(1, 2))
        deform("apart", (1, 6, 4, 4), (4, 4), 3, 1, 3, bias=False, pad=(1, 1))
        deform("pointwise", (2, 3, 3, 4), (3, 4), 2, kernel=(1, 1), layout="NCHW")
        deform("plain", (1, 2, 4, 4), (2, 2), 2, dtype="float64", train=False)
        deform("offset_shape", space=(2, 4))
        deform("apart_uneven", apart=3)
        deform("filters_uneven", (1, 6, 5, 5), (3, 3), 4, apart=3)
        deform("one_axis", (1, 2, 5), (3,), kernel=(3,))
        deform("three_axes", (1, 2, 4, 4, 4), (2, 2, 2), kernel=(3, 3, 3))
    return made
