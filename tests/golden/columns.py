"""Golden cases of im2col and col2im."""
from __future__ import annotations

from golden.cases import Case, case

Shape = tuple[int, ...]


def cases() -> list[Case]:
    def one(op: str, label: str, data: Shape, train: bool = False, dtype: str = "float32", **attrs: object) -> Case:
        return case(op, label, {"data": data}, attrs, dtype, train=train)

    size = {"output_size": (3, 4), "kernel": (2, 2)}
    return [
        one("im2col", "plain", (2, 3, 4, 5), True, kernel=(2, 3)),
        one("im2col", "all", (1, 2, 5, 6), True, kernel=(3, 2), stride=(2, 1), pad=(1, 1), dilate=(1, 2)),
        one("im2col", "small", (2, 3, 4, 4), kernel=(5, 2)),
        one("col2im", "plain", (2, 12, 6), True, **size),
        one("col2im", "all", (1, 8, 12), True, output_size=(3, 4), kernel=(2, 2), pad=(1, 0), dilate=(1, 1)),
        one("col2im", "windows", (2, 12, 5), **size),
        one("col2im", "taps", (2, 13, 6), **size),
    ]
