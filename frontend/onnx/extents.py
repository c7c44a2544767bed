"""Free dimensions: sizes that a model leaves open, such as that of a batch.

A graph's shapes are found twice, for two sizes of each free dimension: `Extents` are both shapes of one array. What is
the same in both is fixed; what differs follows from a free dimension, and a reshape has to say it by the codes 0 (as in
the data) and -1 (what is left), which MXNet and ONNX share.
"""
from __future__ import annotations

from collections.abc import Sequence

Shape = tuple[int, ...]
Extents = tuple[Shape, Shape]
Sizes = tuple[int, int]

# Free dimensions are given different sizes, so that one is not taken for another: those of first axes small ones,
# others multiples of 64, which networks that halve pictures several times take.
_FIRST, _OTHER = 2, 192
_STEP_OF_FIRST, _STEP_OF_OTHERS = 2, 128


class FreeDimensions:
    """The free dimensions of a graph by name, each with its two sizes."""

    def __init__(self) -> None:
        self.sizes: dict[str, Sizes] = {}

    def sizes_of(self, name: str, axis: int) -> Sizes:
        """The two sizes of the dimension `name`, which axis `axis` of an input has."""
        if name not in self.sizes:
            count = len(self.sizes)
            if axis == 0:
                first = _FIRST + _STEP_OF_FIRST * count
                self.sizes[name] = first, first + 1
            else:
                first = _OTHER + _STEP_OF_OTHERS * count
                self.sizes[name] = first, first + _STEP_OF_OTHERS // 2
        return self.sizes[name]

    def extents(self, shape: Sequence[int | str]) -> Extents:
        """Both shapes of an array of which some dimensions have names."""
        pairs = [(d, d) if isinstance(d, int) else self.sizes_of(d, axis) for axis, d in enumerate(shape)]
        return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)

    def name(self, sizes: Sizes) -> str | None:
        """The free dimension that has these sizes, if one has."""
        return next((name for name, pair in self.sizes.items() if pair == sizes), None)


def is_fixed(extents: Extents) -> bool:
    """Whether the shape depends on no free dimension."""
    return extents[0] == extents[1]


def axes_of(extents: Extents) -> list[Sizes]:
    """The two sizes of each axis."""
    return list(zip(*extents, strict=True))


def reshape_codes(source: Extents, target: Extents) -> Shape | None:
    """The shape of a reshape from `source` to `target`, for every size of free dimensions; None when it cannot be said.

    A number is a fixed size, 0 the size that the source has at the same axis, -1 (at most once) what is left.
    """
    there, codes = axes_of(source), []
    for axis, sizes in enumerate(axes_of(target)):
        if sizes[0] == sizes[1]:
            codes.append(sizes[0])
        else:
            codes.append(0 if axis < len(there) and there[axis] == sizes else -1)
    return tuple(codes) if codes.count(-1) <= 1 else None
