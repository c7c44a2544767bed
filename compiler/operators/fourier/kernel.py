"""The routine of Fourier transforms."""
from __future__ import annotations

from math import pi, prod

from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import cos_, float64, int64, sin_
from mxc.compiler.ops.operator import Params


def fft_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """Real data."""
    return _call(c, False)


def ifft_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """Complex data."""
    return _call(c, True)


def _call(c: RoutineNode, inverse: bool) -> RoutineCall:
    return call("fourier", (prod(c.shape(0)[:-1]), min(c.shape(0)[-1], c.out_shapes[0][-1])), inverse=inverse,
                turn=2 * pi, real=c.dtype(0))


@routine(inputs=("data",), outputs=("out",), units="rows",
         scratch={"work": ("real", "4 * n"), "cosines": ("real", "n"), "sines": ("real", "n")})
def fourier(first, last, data, out, work, cosines, sines, rows, n, *, inverse, turn, real):
    """The Fourier transform of each row: of n real numbers to n complex ones, or back, where it is not divided by n and
    the imaginary parts are left out.

    T. Stockham's algorithm, which sorts as it goes, for any factors of n: each pass splits the transforms of `left`
    elements, which lie `step` apart, by the smallest factor. turn: 2 pi; work: two rows, complex.
    """
    for i in range(n):
        angle = float64(turn) * float64(i) / float64(n)
        cosines[i] = real(cos_(angle))
        sines[i] = real(sin_(angle))
    for row in range(first, last):
        for i in range(n):
            work[2 * i] = data[2 * (row * n + i)] if inverse else data[row * n + i]
            work[2 * i + 1] = data[2 * (row * n + i) + 1] if inverse else real(0)
        at = int64(0)
        left = int64(n)
        step = int64(1)
        while left > 1:
            factor = int64(2)
            while left % factor != 0:
                factor += 1
            rest = left // factor
            to = 2 * n - at
            for place in range(left):
                part = place % factor
                target = to + 2 * step * place
                for k in range(2 * step):
                    work[target + k] = real(0)
                for j in range(factor):
                    root = (place // factor * part * step + j * part * (n // factor)) % n
                    c = cosines[root]
                    s = sines[root] if inverse else -sines[root]
                    source = at + 2 * step * (place // factor + rest * j)
                    for k in range(step):
                        x = work[source + 2 * k]
                        y = work[source + 2 * k + 1]
                        work[target + 2 * k] = work[target + 2 * k] + x * c - y * s
                        work[target + 2 * k + 1] = work[target + 2 * k + 1] + x * s + y * c
            at = to
            left = rest
            step = step * factor
        for i in range(n):
            if inverse:
                out[row * n + i] = work[at + 2 * i]
            else:
                out[2 * (row * n + i)] = work[at + 2 * i]
                out[2 * (row * n + i) + 1] = work[at + 2 * i + 1]
