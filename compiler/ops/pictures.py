"""What operators, augmenters and iterators know of pictures alike: colours, sizes, and ways to resize."""
from __future__ import annotations

from collections.abc import Callable, Sequence

LUMINANCE = (0.299, 0.587, 0.114)  # how bright red, green and blue are, as of Rec. 601
# How much, and along which directions (columns), the colours of ImageNet's pictures vary (AlexNet).
VARIANCES = (55.46, 4.794, 1.148)
DIRECTIONS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))


def with_short_side(length: int, height: int, width: int) -> tuple[int, int]:
    """The height and width of a picture of that height and width when its shorter side is made so long."""
    return (height * length // width, length) if height > width else (length, width * length // height)


def interpolation(code: int, before: Sequence[int], after: Sequence[int], randint: Callable[[int, int], int]) -> int:
    """One of the codes 0 to 4 of OpenCV's ways to resize, for a code: itself, 9 for cubic (2) to enlarge and area (3)
    to shrink, else bilinear (1), or 10 for any by chance. before, after: heights and widths. randint: draws a number
    from the first to the second of two."""
    if code == 10:
        return randint(0, 4)
    if code != 9:
        return code
    if after[0] > before[0] and after[1] > before[1]:
        return 2
    return 3 if after[0] < before[0] and after[1] < before[1] else 1
