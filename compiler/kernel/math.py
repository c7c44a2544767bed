"""Functions of one real variable as arithmetic on kernel values, so that they are inlined and vectorised.

`expand(value)` rewrites a value until only ARITHMETIC is left and calls of LIBM, which the printers emit as calls
of the C library. In float32, results are off by at most 2 units in the last place over the whole range, and denormals,
infinities and NaN are right; `decay` and `normal_cdf`, which softmax and gelu are made of, say themselves how exact
they are. In float64 results are off by at most 4 units. float16 and bfloat16 are computed in float32 and rounded once.

The polynomials are those of polynomials.py. No step may be reassociated: the printers never allow it outside of
reductions.
"""
from __future__ import annotations

import math as pymath
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel import ir, philox
from mxc.compiler.kernel.formats import FORMATS
from mxc.compiler.kernel.ir import FUNCTIONS, Value
from mxc.compiler.kernel.polynomials import (
    ATANH,
    ERF_EXPONENT,
    ERF_ONE,
    ERF_POWER,
    ERFINV_CENTRAL,
    ERFINV_SPLIT,
    ERFINV_TAIL,
    EXP,
    LOG32,
    LOG64,
    NORMAL_END,
    NORMAL_OVER,
    NORMAL_UNDER,
    POWER_34,
    SINH,
)
from mxc.compiler.kernel.real import Real, fma, from_bits, integer, polynomial, where
from mxc.compiler.ops.dtypes import NARROW
from mxc.compiler.scalar_functions.records import OF_KERNELS, Builtin
from mxc.compiler.scalar_functions.special import ORDERS, asymptotic_terms, cotangent_terms

Function = Callable[..., Real]
EXPANSIONS: dict[str, Function] = {}
_ONLY: dict[str, str] = {}  # function -> the dtype, float32 or float64, that its expansion is for alone


def expansion(function: Function) -> Function:
    """Mark how the function of that name of scalar_functions/records.py is computed, in float32 and in float64."""
    EXPANSIONS[function.__name__] = function
    return function


def expansion_in(dtype: str) -> Callable[[Function], Function]:
    """Like `expansion`, for one dtype. With an expansion for float64 alone, a float32 is computed in float64 and
    rounded: this is for functions that are rare and lose digits. With one for float32 alone, the C library computes the
    function in float64."""
    def mark(function: Function) -> Function:
        _ONLY[function.__name__] = dtype
        return expansion(function)

    return mark


def _clamped(x: Real, low: float, high: float) -> Real:
    x = where(x > high, x.const(high), x)
    return where(x < low, x.const(low), x)


def _reduced(x: Real, offset: int, sign: float = 1.0) -> tuple[Value, Real]:
    """An integer whose low bits are n + offset, and r with x = sign * n * log(2) + r and |r| <= log(2) / 2, for |x| up
    to 1000.

    n is taken from the low bits of a sum, because the conversion of NaN to an integer is not defined.
    """
    form = FORMATS[x.dtype]
    magic = form.magic + offset
    shifted = fma(x, sign * pymath.log2(pymath.e), magic)
    n = shifted - magic
    return shifted.bits(), fma(n, -sign * form.ln2_low, fma(n, -sign * form.ln2_high, x))


def _power_of_two(n: Value) -> Real:
    """2**(n - bias), which must be a normal number. Only the low bits of n matter."""
    return from_bits(integer("shl", n, FORMATS["float32" if n.dtype == "int32" else "float64"].mantissa))


def _expm1_of_rest(r: Real, sign: float = 1.0) -> Real:
    """exp(sign r) - 1"""
    terms = [c * sign**i for i, c in enumerate(EXP[r.dtype])]
    return fma(polynomial(r, terms), r * r, r if sign > 0 else -r)


def _scaled_exp(x: Real, shift: int = 0) -> Real:
    """exp(x) * 2**shift over the whole range of results, denormals too. The power of two is a product of two factors,
    because it may itself be outside of the range."""
    n, r = _reduced(x, 2 * FORMATS[x.dtype].bias + shift)
    half = integer("shr", n, 1)
    first = _power_of_two(half)
    return fma(first, _expm1_of_rest(r), first) * _power_of_two(ir.apply("sub", n, half))


def _exp(x: Real, shift: int = 0) -> Real:
    """exp(x) * 2**shift, rounded once."""
    form = FORMATS[x.dtype]
    return _scaled_exp(_clamped(x, form.lowest, form.highest), shift)


def _minus_size(x: Real) -> Real:
    """-|x|"""
    return from_bits(integer("bitor", x.bits(), FORMATS[x.dtype].sign))


def _exp_of_minus(x: Real) -> Real:
    """exp(-|x|)."""
    size = _minus_size(x)
    low = size.const(FORMATS[x.dtype].lowest)
    return _scaled_exp(where(size < low, low, size))


@expansion
def exp(x: Real) -> Real:
    return _exp(x)


@expansion
def decay(x: Real) -> Real:
    """exp(x) for x <= 0, and 0 where that is no normal number: `exp` takes longer for the ends of its range."""
    form = FORMATS[x.dtype]
    n, r = _reduced(x, form.bias)
    scale = _power_of_two(n)
    return where(x < form.least, x.const(0.0), fma(scale, _expm1_of_rest(r), scale))


@expansion
def expm1(x: Real) -> Real:
    top = 89.0 if x.dtype == "float32" else 710.0  # exp(top) is infinite, and 2**n / 2 is not
    n, r = _reduced(_clamped(x, -60.0, top), FORMATS[x.dtype].bias - 1)
    half = _power_of_two(n)  # half of 2**n, because 2**n overflows before the result does
    result = fma(half, _expm1_of_rest(r), half - 0.5) * 2.0
    return where(x.op("abs") < FORMATS[x.dtype].tiny * 2.0**24, x, result)


def _log_parts(x: Real) -> tuple[Real, Real]:
    """e and log(m) with x = 2**e m, sqrt(1/2) <= m <= sqrt(2), for positive finite x."""
    form = FORMATS[x.dtype]
    denormal = x < form.tiny
    x = where(denormal, x * 2.0**form.mantissa, x)
    root = _bits_of(pymath.sqrt(0.5), x.dtype)
    offset = integer("sub", x.bits(), root)
    shifted = integer("add", offset, form.bias << form.mantissa)  # positive for a logical shift
    biased = integer("shr", shifted, form.mantissa)
    exponent = Real(ir.cast(biased, x.dtype)) - float(form.bias)
    exponent = where(denormal, exponent - float(form.mantissa), exponent)
    m = from_bits(ir.apply("sub", x.bits(), integer("shl", integer("sub", biased, form.bias), form.mantissa)))
    f = m - 1.0
    if x.dtype == "float32":
        square = f * f
        return exponent, f + fma(polynomial(f, LOG32), square * f, square * -0.5)
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return exponent, f - (half - s * (half + z * polynomial(z, LOG64)))


def _bits_of(number: float, dtype: str) -> int:
    code, integer = ("<f", "<i") if dtype == "float32" else ("<d", "<q")
    return int(struct.unpack(integer, struct.pack(code, number))[0])


def _log_edges(x: Real, result: Real) -> Real:
    """What a logarithm is at 0, infinity, below 0 and at NaN."""
    result = where(x < float("inf"), result, x)
    return where(x > 0.0, result, where(x.equals(0.0), x.const(-pymath.inf), x.const(pymath.nan)))


@expansion
def log(x: Real) -> Real:
    form = FORMATS[x.dtype]
    e, m = _log_parts(x)
    return _log_edges(x, fma(e, form.ln2_high, fma(e, form.ln2_low, m)))


@expansion
def log2(x: Real) -> Real:
    e, m = _log_parts(x)
    high = float(_rounded(pymath.log2(pymath.e), x.dtype))
    return _log_edges(x, e + fma(m, high, m * (pymath.log2(pymath.e) - high)))


@expansion
def log10(x: Real) -> Real:
    e, m = _log_parts(x)
    high, factor = _rounded(pymath.log10(2), x.dtype), pymath.log10(pymath.e)
    return _log_edges(x, fma(e, high, fma(m, factor, e * (pymath.log10(2) - high))))


def _rounded(number: float, dtype: str) -> float:
    """`number` with only as many bits as leave its product with an exponent exact."""
    bits = 12 if dtype == "float32" else 40
    scale = 2.0 ** (bits - pymath.frexp(number)[1])
    return round(number * scale) / scale


@expansion
def log1p(x: Real) -> Real:
    u = x + 1.0
    lost = where(x > 1.0, 1.0 - (u - x), x - (u - 1.0))  # what rounding took from u
    result = log(u) + lost / u
    inside = _with_sign(where(x > -1.0, result, log(u)), x)  # both results have x's sign, but at -0
    return where(x < float("inf"), inside, x)


@expansion
def sigmoid(x: Real) -> Real:
    """1 / (1 + exp(-x)), with numerator and denominator times a power of two that keeps exp(-x) normal."""
    form = FORMATS[x.dtype]
    n, r = _reduced(_clamped(x, form.lowest, 64.0), form.bias - form.spare, -1.0)
    scale, one = _power_of_two(n), 2.0**-form.spare
    return one / (fma(scale, _expm1_of_rest(r, -1.0), one) + scale)


@expansion
def softrelu(x: Real) -> Real:
    """log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))."""
    e = _exp_of_minus(x)
    s = e / (e + 2.0)
    z = s * s
    # log(1 + e) is 2 atanh(s), and 2 s is e - s e
    return where(x > 0.0, x, 0.0) + fma(-s, fma(-z, polynomial(z, ATANH[x.dtype]), e), e)


def _with_sign(size: Real, x: Real) -> Real:
    """`size` with the sign of x. `size` must not be negative where x is not."""
    return from_bits(ir.apply("bitor", size.bits(), integer("bitand", x.bits(), FORMATS[x.dtype].sign)))


@expansion
def tanh(x: Real) -> Real:
    """h / (h + 1) with h = expm1(2 |x|) / 2, and a correction by what rounding took from the quotient."""
    form = FORMATS[x.dtype]
    size = x.op("abs")
    twice = size + size
    n, r = _reduced(where(twice > form.flat, x.const(form.flat), twice), form.bias - 1)
    half = _power_of_two(n)
    h = fma(half, _expm1_of_rest(r), half - 0.5)
    inverse = 1.0 / (h + 1.0)
    y = h * inverse
    return _with_sign(fma(fma(-y, h, h - y), inverse, y), x)


@expansion
def sinh(x: Real) -> Real:
    size = x.op("abs")
    half = _exp(size, -1)
    large = half - 0.25 / half
    square = x * x
    small = fma(polynomial(square, SINH[x.dtype]), square * x, x)
    return where(size < 1.0, small, where(x < 0.0, -large, large))


@expansion
def cosh(x: Real) -> Real:
    half = _exp(x.op("abs"), -1)
    return half + 0.25 / half


@expansion_in("float32")
def erf(x: Real) -> Real:
    """1 - 2**-u with u = -log2(erfc(|x|))."""
    form = FORMATS[x.dtype]
    size = x.op("abs")
    t = where(size > ERF_ONE, x.const(ERF_ONE), size)
    u = fma(t, polynomial(t, ERF_EXPONENT), -t)
    magic = form.magic + form.bias
    shifted = u + magic
    r = u - (shifted - magic)
    power = _power_of_two(shifted.bits())
    return _with_sign(fma(-power, fma(r, polynomial(r, ERF_POWER), r), 1.0 - power), x)


@expansion
def normal_cdf(x: Real) -> Real:
    """The standard normal distribution's function. In float32 it is off by at most 3.2 * 2**-24 at every x: a quotient
    of polynomials takes half as long as erf, whose small relative error near 0 is not needed here. In float64 it is
    made of erf."""
    if x.dtype == "float64":
        return 0.5 * (Real(ir.make("erf", ((x * 0.5**0.5).value,), x.dtype)) + 1.0)
    t = _clamped(x, -NORMAL_END, NORMAL_END)
    square = t * t
    return t * polynomial(square, NORMAL_OVER) / polynomial(square, NORMAL_UNDER) + 0.5


@expansion
def power_minus_3_4(x: Real) -> Real:
    """x ** (-3/4). Two roots and a quotient take three times as long, but in float32 what is less than normal is 0."""
    if x.dtype == "float64":
        return (1.0 / x.op("sqrt")) * (1.0 / x.op("sqrt")).op("sqrt")
    start, b = ir.const(POWER_34[0], "int32"), x.bits()
    y = from_bits(ir.apply("sub", start, ir.apply("sub", b, integer("shr", b, 2))))
    for terms in POWER_34[1]:
        h = fma(-_repeated(x * y, 3), y, 1.0)
        y = fma(y * h, polynomial(h, terms), y)
    small = where(x < 0.0, x.const(pymath.nan), pymath.inf)
    return where(x < FORMATS[x.dtype].tiny, small, where(x.equals(pymath.inf), x.const(0.0), y))


@expansion_in("float64")
def digamma(x: Real) -> Real:
    """Abramowitz and Stegun 6.3.5 (recurrence), 6.3.7 (reflection), 6.3.18 (asymptotic series). float64."""
    reflected = x < 0.5
    y = where(reflected, 1.0 - x, x)
    shifted = y + 10.0
    below = 1.0 / y
    for k in range(1, 10):
        below = below + 1.0 / (y + float(k))
    inverse = 1.0 / (shifted * shifted)
    series = polynomial(inverse, (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)) * inverse
    positive = log(shifted) - 0.5 / shifted - series - below
    turn = (x - x.op("rint")) * pymath.pi
    return where(reflected, positive - pymath.pi / turn.op("tan"), positive)


# For each order, the terms of the asymptotic series, and those of the derivative of the cotangent.
POLYGAMMA = {order: (asymptotic_terms(order), cotangent_terms(order)) for order in ORDERS}


def _polygamma(order: int, x: Real) -> Real:
    """The derivative of that order of digamma, by the formulas of scalar_functions/special.py. In float64 its relative
    error is at most 3e-15 at positive x, and 1e-13 at negative x, except close to its zeros, which even orders have
    between the poles."""
    reflected = x < 0.5
    y = where(reflected, 1.0 - x, x)
    shifted, count = y + 10.0, float(pymath.factorial(order))
    total = x.const(0.0)
    for k in range(10):
        total = total + count * _repeated(1.0 / (y + float(k)), order + 1)
    (first, *later), turning = POLYGAMMA[order]
    z = 1.0 / shifted
    tail = fma(z, count / 2, polynomial(z * z, later) * (z * z)) + first
    positive = fma(_repeated(z, order), tail, total)
    cotangent = 1.0 / ((x - x.op("rint")) * pymath.pi).op("tan")
    turned = polynomial(cotangent, turning) * pymath.pi ** (order + 1)
    if order % 2 == 0:
        return where(reflected, -positive - turned, -positive)
    return where(reflected, -turned - positive, positive)


def _repeated(x: Real, power: int) -> Real:
    result = x
    for _ in range(power - 1):
        result = result * x
    return result


@expansion_in("float64")
def erfinv(x: Real) -> Real:
    """x times a polynomial in w = -log(1 - x**2), or for large w in the square root of w. float64."""
    w = -log((1.0 - x) * (1.0 + x))
    central = polynomial((w - ERFINV_SPLIT / 2) * (2 / ERFINV_SPLIT), ERFINV_CENTRAL)
    low, high = pymath.sqrt(ERFINV_SPLIT), 6.2
    tail = polynomial((w.op("sqrt") - (low + high) / 2) * (2 / (high - low)), ERFINV_TAIL)
    result = x * where(w < ERFINV_SPLIT, central, tail)
    return where(x.op("abs").equals(1.0), x * pymath.inf, result)


def _power(base: Real, exponent: Real) -> Real | None:
    """base to the power of exponent: by products and roots where the exponent is one of some numbers; else in float32
    by logarithm and exponential in float64, rounded once. None in float64, whose logarithm has not digits enough."""
    number = _number(exponent.value)
    number = number if number is not None and pymath.isfinite(number) else None
    special: dict[float | None, Callable[[], Real]] = {
        0.5: lambda: base.op("sqrt"), -0.5: lambda: 1.0 / base.op("sqrt"), 1.0: lambda: base, 2.0: lambda: base * base,
        3.0: lambda: base * base * base, 4.0: lambda: (base * base) * (base * base), -1.0: lambda: 1.0 / base,
        -2.0: lambda: 1.0 / (base * base), 0.0: lambda: base.const(1.0),
    }
    if number in special:
        return special[number]()
    if base.dtype == "float64":
        return None
    wide = Real(ir.cast(base.value, "float64"))
    size, y = wide.op("abs"), Real(ir.cast(exponent.value, "float64"))
    e, m = _log_parts(size)
    times = y * _log_edges(size, fma(e, pymath.log(2), m))
    if number is None:  # 1 and 0 are the base and the exponent of 1, whatever the other is
        times = where(ir.apply("or", size.equals(1.0), y.equals(0.0)), times.const(0.0), times)
    n, r = _reduced(_clamped(times, -200.0, 200.0), FORMATS["float64"].bias)  # beyond, a float32 is 0 or infinite
    scale = _power_of_two(n)
    result = Real(ir.cast(fma(scale, _expm1_of_rest(r), scale).value, "float32"))
    return _signed_power(base, exponent, number, result)


def _signed_power(base: Real, exponent: Real, number: float | None, result: Real) -> Real:
    """`result`, the power of |base|, with its sign where base is negative: NaN but for whole exponents and infinity."""
    outside = where(base > -pymath.inf, base.const(pymath.nan), result)
    if number is not None:
        if number % 2 == 1:
            return _with_sign(result, base)
        return result if number % 1 == 0 else where(base < 0.0, outside, result)
    whole, half = exponent.op("floor").equals(exponent), exponent * 0.5
    odd = ir.apply("and", whole, ir.apply("not", half.op("floor").equals(half)))
    return where(odd, _with_sign(result, base), where(ir.apply("and", base < 0.0, ir.apply("not", whole)), outside,
                                                      result))


def _number(value: Value) -> float | None:
    """The number that a value is: a constant, or the sum or difference of two, as derivatives of powers have it."""
    if value.op == "const" and isinstance(value.data, (int, float)):
        return float(value.data)
    if value.op not in ("add", "sub"):
        return None
    left, right = map(_number, value.args)
    if left is None or right is None:
        return None
    return left + right if value.op == "add" else left - right


for _order in POLYGAMMA:
    EXPANSIONS[f"polygamma{_order}"] = partial(_polygamma, _order)
    _ONLY[f"polygamma{_order}"] = "float64"

# The functions that stay calls of the C library after expansion, in float32 or float64.
LIBM = frozenset(["pow", "mod", *(f for f in OF_KERNELS if f not in EXPANSIONS or _ONLY.get(f) == "float32")])


def check_ties(records: Mapping[str, Builtin], expanded: Iterable[str], called: Iterable[str]) -> None:
    """Raises MXNetError for a function without a way to compute it, and for an expansion of no function.

    expanded: names of functions that have an expansion; called: of those that stay calls of the C library.
    """
    for name in sorted({*expanded} - records.keys()):
        raise MXNetError(f"kernel/math.py: the expansion {name} is of no function in scalar_functions/records.py")
    for name in sorted(set(called) & records.keys()):
        if not records[name].c:
            raise MXNetError(f"scalar_functions/records.py: the function {name}: expected c, the C library's function "
                             f"that computes it, or an expansion of that name in kernel/math.py")


check_ties(OF_KERNELS, EXPANSIONS, LIBM)


def _expanded(op: str, args: tuple[Value, ...], dtype: str) -> Value:
    if dtype in NARROW:
        wide = _expanded(op, tuple(ir.cast(a, "float32") for a in args), "float32")
        return ir.cast(wide, dtype)
    only = _ONLY.get(op, dtype)
    if (dtype, only) == ("float32", "float64"):
        return ir.cast(_expanded(op, tuple(ir.cast(a, "float64") for a in args), "float64"), dtype)
    if op == "pow":
        power = _power(*map(Real, args))
        return power.value if power is not None else ir.make(op, args, dtype)
    if op not in EXPANSIONS or dtype != only:
        return ir.make(op, args, dtype)
    made = EXPANSIONS[op](*map(Real, args)).value
    return _rebuilt([made])[0] if op in _ONLY and dtype == "float64" else made


def _rebuilt(values: Sequence[Value]) -> list[Value]:
    new: dict[int, Value] = {}
    for value in ir.walk(values):
        args = tuple(new[id(a)] for a in value.args)
        floating = value.dtype in ir.FLOATS
        if floating and (value.op in FUNCTIONS or value.op in ("pow", "mod")):
            new[id(value)] = _expanded(value.op, args, value.dtype)
        elif value.op == "rand":
            new[id(value)] = philox.expanded(*args)
        else:
            new[id(value)] = value if args == value.args else ir.make(value.op, args, value.dtype, value.data)
    return [new[id(v)] for v in values]


def expand(value: Value) -> Value:
    """`value` with every function but those of LIBM written out as arithmetic (see the module's text)."""
    return _rebuilt([value])[0]


def expand_all(values: Sequence[Value]) -> list[Value]:
    """Like `expand`, for several values that share parts."""
    return _rebuilt(values)
