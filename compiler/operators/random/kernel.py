"""Index rules and routines of random operators.

Every element has a stream of its own. An element's uniform numbers are those of the generator at (seed, offset) and the
indices element + (draw << 41); key holds seed and offset. All is computed in float64.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.kernel import ir, philox
from mxc.compiler.kernel.index_rule import Index, IndexNode, flatten
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import (
    erfinv_,
    exp_,
    float64,
    floor_,
    int64,
    lgamma_,
    log_,
    min_,
    rand_,
    sqrt_,
    uint64,
    uniform_,
)
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.operator import Params


def rand(c: IndexNode, params: Params, index: Index) -> Value:
    """Uniform in [0, 1) at the element's row-major position: of 24 bits in float32, of 53 in float64."""
    draw = philox.single if c.out_dtype == "float32" else philox.uniform
    return draw(c.seed(0), _stream(c, params), ir.cast(flatten(index, c.out_shape), "int64"))


def key(c: IndexNode, params: Params, index: Index) -> Value:
    """The run's seed, and the offset of the stream."""
    return ir.apply("where", ir.apply("eq", index[0], number(0)), c.seed(0), _stream(c, params))


def _stream(c: IndexNode, params: Params) -> Value:
    return ir.apply("add", c.seed(1), ir.const(params.offset, "int64"))


def gamma_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """key, alpha (n, m) -> (n, each), m being 1 or each."""
    return _each("gamma", c)


def poisson_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """key, rate (n, m) -> (n, each), m being 1 or each."""
    return _each("poisson", c)


def _each(routine: str, c: RoutineNode) -> RoutineCall:
    count = prod(c.out_shapes[0])
    return call(routine, (count, count // prod(c.shape(1))))


def integers_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """key -> whole numbers, low <= x < high."""
    bits = (params.high - 1 - params.low).bit_length()
    mask = (1 << bits) - 1 if bits < 64 else -1
    return call("integers", (prod(c.out_shapes[0]), params.low, params.high, mask))


def zipfian_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """key -> classes (rows, n), tries (rows,)."""
    return call("zipfian", (*c.out_shapes[0], params.range_max))


@routine(inputs=("key", "alpha"), outputs=("out",), units="count",
         scratch={"places": ("int64", "64"), "shapes": ("float64", "64"), "drawn": ("float64", "64")})
def gamma(first, last, key, alpha, out, places, shapes, drawn, count, each):
    """Gamma numbers of scale 1, `each` of a shape parameter alpha: Marsaglia and Tsang, A simple method for generating
    gamma variables, 2000. alpha 0 gives 0, one below 0 NaN.

    Up to 64 elements take their first try together, so that it is vector code, then those that it did not fit their
    second, and so on. A value below 0 is one that did not fit.
    """
    seed = int64(key[0])
    offset = int64(key[1])
    row = first // each
    rest = first % each
    for start in range(first, last, 64):
        left = min_(64, last - start)
        lowest = float64(1.0)
        for j in range(left):
            places[j] = int64(start + j)
            shapes[j] = alpha[row]
            if alpha[row] < lowest:
                lowest = float64(alpha[row])
            rest += 1
            if rest == each:
                rest = 0
                row += 1
        turn = int64(0)
        while left > 0:
            for j in range(left):
                shape = shapes[j]
                at = places[j] + turn
                d = (shape if shape >= float64(1.0) else shape + float64(1.0)) - float64(1.0) / float64(3.0)
                x = float64(2.0) * uniform_(seed, offset, at) - float64(1.0) + float64(2.0**-53)
                x = float64(1.4142135623730951) * erfinv_(x)
                u = float64(1.0) - uniform_(seed, offset, at + (int64(1) << int64(41)))
                v = float64(1.0) + float64(1.0) / sqrt_(float64(9.0) * d) * x
                v = v * v * v
                fits = v > float64(0.0) and (u < float64(1.0) - float64(0.0331) * x * x * x * x or
                                             log_(u) < float64(0.5) * x * x + d - d * v + d * log_(v))
                drawn[j] = (d * v if fits else float64(-1.0)) if shape > float64(0.0) else sqrt_(shape)
            turn += int64(1) << int64(42)
            if lowest < float64(1.0):
                for j in range(left):
                    shape = shapes[j]
                    value = drawn[j]
                    u = float64(1.0) - uniform_(seed, offset, places[j] + turn)
                    small = value > float64(0.0) and shape < float64(1.0)
                    drawn[j] = value * exp_(log_(u) / shape) if small else value
            again = 0
            for j in range(left):
                if drawn[j] < float64(0.0):
                    places[again] = places[j]
                    shapes[again] = shapes[j]
                    again += 1
                else:
                    out[places[j]] = drawn[j]
            left = again


@routine(inputs=("key", "rate"), outputs=("out",), units="count",
         scratch={"rates": ("float64", "64"), "numbers": ("float64", "64"), "parts": ("float64", "64"),
                  "totals": ("float64", "64")})
def poisson(first, last, key, rate, out, rates, numbers, parts, totals, count, each):
    """Poisson numbers, `each` of a rate: by adding up probabilities where it is below 10, for 64 elements together, so
    that it is vector code; else by Hörmann's transformed rejection (The transformed rejection method for generating
    Poisson random variables, 1993, PTRS). A rate below 0 gives NaN."""
    seed = int64(key[0])
    offset = int64(key[1])
    row = first // each
    rest = first % each
    for start in range(first, last, 64):
        stop = min_(start + 64, last)
        for i in range(start, stop):
            rates[i - start] = rate[row]
            rest += 1
            if rest == each:
                rest = 0
                row += 1
        for i in range(start, stop):
            lam = rates[i - start]
            u = uniform_(seed, offset, int64(i))
            small = float64(0.0) <= lam and lam < float64(10.0)
            numbers[i - start] = u if small else float64(-1.0)
            parts[i - start] = exp_(-lam)
            totals[i - start] = exp_(-lam)
            out[i] = float64(0.0)
        k = float64(0.0)
        above = 1
        while above > 0 and k < float64(120.0):  # The probability beyond 120 is less than the generator resolves.
            k += float64(1.0)
            above = 0
            for i in range(start, stop):
                more = numbers[i - start] >= totals[i - start]
                part = parts[i - start] * rates[i - start] / k
                parts[i - start] = part
                totals[i - start] = totals[i - start] + part
                out[i] = out[i] + float64(more)
                above += int64(more)  # type: ignore[assignment]
        for i in range(start, stop):
            lam = rates[i - start]
            if lam >= float64(10.0) and lam < float64(1e300):
                b = float64(0.931) + float64(2.53) * sqrt_(lam)
                a = float64(-0.059) + float64(0.02483) * b
                inverse = float64(1.1239) + float64(1.1328) / (b - float64(3.4))
                most = float64(0.9277) - float64(3.6224) / (b - float64(2.0))
                at = int64(i)
                searching = True
                while searching:
                    u = uniform_(seed, offset, at) - float64(0.5)
                    v = float64(1.0) - uniform_(seed, offset, at + (int64(1) << int64(41)))
                    at += int64(1) << int64(42)
                    near = float64(0.5) - (u if u > float64(0.0) else -u)
                    if near > float64(0.0):
                        k = floor_((float64(2.0) * a / near + b) * u + lam + float64(0.43))
                        if near >= float64(0.07) and v <= most:
                            searching = False
                        elif k >= float64(0.0) and (near >= float64(0.013) or v <= near):
                            searching = not (log_(v) + log_(inverse) - log_(a / (near * near) + b)
                                             <= -lam + k * log_(lam) - lgamma_(k + float64(1.0)))
                out[i] = k
            elif not (lam >= float64(0.0) and lam < float64(10.0)):
                out[i] = sqrt_(lam) if lam < float64(0.0) else lam


@routine(inputs=("key",), outputs=("out",), units="count")
def integers(first, last, key, out, count, low, high, mask):
    """Whole numbers low <= x < high: low and the bits under mask, the first that is in range; sums wrap."""
    seed = int64(key[0])
    offset = int64(key[1])
    for i in range(first, last):
        at = int64(i)
        value = high
        while value < low or value >= high:
            upper = uint64(rand_(seed, offset, at)) << uint64(32)
            lower = uint64(rand_(seed, offset, at + (int64(1) << int64(40))))
            value = int64(uint64(int64(low)) + ((upper | lower) & uint64(int64(mask))))
            at += int64(1) << int64(41)
        out[i] = value


@routine(inputs=("key",), outputs=("classes", "tries"), units="rows")
def zipfian(first, last, key, classes, tries, rows, n, most):
    """Draws n different classes below `most` for each row, with log-uniform probabilities, and counts the draws."""
    seed = int64(key[0])
    offset = int64(key[1])
    scale = log_(float64(most) + float64(1.0))
    for row in range(first, last):
        draws = int64(0)
        for j in range(n):
            value = int64(-1)
            while value < int64(0):
                u = uniform_(seed, offset, row + draws * rows)
                draws += int64(1)
                value = int64(exp_(u * scale)) - int64(1)
                if value >= most:
                    value = most - int64(1)
                for k in range(j):
                    if classes[row * n + k] == value:
                        value = int64(-1)
            classes[row * n + j] = value
        tries[row] = draws
