"""The constants of the floating formats that functions are computed in (kernel/math.py)."""
from __future__ import annotations

import math as pymath


class _Format:
    """The constants of one floating format."""

    def __init__(self, dtype: str):
        single = dtype == "float32"
        self.mantissa = 23 if single else 52
        self.bias = 127 if single else 1023
        # The bits of x + magic end in the integer n nearest to x, and these bits shifted right by one end in n / 2.
        self.magic = 1.5 * 2.0**self.mantissa
        self.ln2_high = 0.693359375 if single else 0.693147180369123816490  # log(2) in so few bits that n * it is exact
        self.ln2_low = pymath.log(2) - 0.693359375 if single else 1.90821492927058770002e-10
        self.highest = 89.5 if single else 711.0  # for larger x, exp(x) and exp(x) / 2 overflow
        self.lowest = -104.5 if single else -746.0  # for smaller x, exp(x) rounds to 0
        self.tiny = 2.0**-126 if single else 2.0**-1022  # the smallest normal number
        self.least = pymath.log(self.tiny)
        self.spare = 32 if single else 64  # `sigmoid` scales by 2**-spare: exp(-lowest) * 2**-spare is finite
        self.flat = 19.0 if single else 40.0  # tanh(flat / 2) rounds to 1
        self.sign = -2**31 if single else -2**63  # the integer whose only bit is the sign


FORMATS = {"float32": _Format("float32"), "float64": _Format("float64")}
