"""Signs of zeros that functions give, as MXNet 1.9.1 has them: the cases, and the script that asks.

With MXNet's Python:  make_signs.py        writes signs.json
An answer has a character for each result: + and - for zeros of that sign, n for NaN, a dot for any other number.
"""
from pathlib import Path

import numpy as np

ANSWERS = Path(__file__).with_name("signs.json")
FUNCTIONS = ["sqrt", "cbrt", "sin", "tan", "tanh", "sinh", "arcsin", "arctan", "arcsinh", "arctanh", "expm1", "log1p",
             "rint", "trunc", "fix", "ceil", "floor", "round", "degrees", "radians", "erf", "erfinv", "softsign",
             "negative", "abs", "square", "reciprocal", "sign"]
REMAINDERS = ["broadcast_mod(a, b)", *(f"{name}(a, scalar={s})" for name in ("_mod_scalar", "_rmod_scalar")
                                      for s in (0.0, -0.0, 1.0, -1.0, 3.0, -3.0))]
CASES = [f"{call} {dtype}" for call in (*[f"{name}(a)" for name in FUNCTIONS], *REMAINDERS)
         for dtype in ("float32", "float64")]
A, B = np.array([[x, y] for x in (0.0, -0.0, 0.3, -0.3, -0.7, 1.0, -1.0, 3.0, -3.0, 1e-9, -1e-9)
                 for y in (0.0, -0.0, 1.0, -1.0, 3.0, -3.0)]).T


def symbol(mx, call, variables=None):
    """The case's operator on variables `a` and `b`."""
    variables = variables or {name: mx.sym.Variable(name) for name in "ab"}
    name, arguments = call.split("(", 1)
    op = getattr(mx.sym, name, None) or getattr(mx.sym._internal, name)
    return eval(f"op({arguments}", {"op": op, **variables})


def signs(values):
    """The answer for an array of results."""
    return "".join("n" if x != x else "." if x else "-" if np.signbit(x) else "+" for x in values.tolist())


def answer(mx, case):
    """What MXNet says of one case."""
    call, dtype = case.rsplit(" ", 1)
    arrays = {"a": mx.nd.array(A, dtype=dtype), "b": mx.nd.array(B, dtype=dtype)}
    made = symbol(mx, call)
    return signs(made.bind(mx.cpu(), {name: arrays[name] for name in made.list_arguments()}).forward()[0].asnumpy())


if __name__ == "__main__":
    from answers import run  # beside this script

    made = run(__file__, ANSWERS, CASES, answer)
    print(f"{len(made)} cases")
