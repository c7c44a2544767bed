"""Pooling of convention `same` as MXNet 1.9.1 has it: the cases, and the script that asks.

With MXNet's Python:  make_pooling_same.py        writes pooling_same.json
MXNet looks at three numbers of `pad`, so it takes the convention only where `pad` is (0, 0, 0), and in float32 no
library of its computes it. Its answers in float64 say what it means.
"""
from pathlib import Path

import numpy as np

ANSWERS = Path(__file__).with_name("pooling_same.json")
CASES = [f"pool((1, 2, {n}), kernel=({k},), stride=({s},), pool_type='{kind}', p_value=2)"
         for n in (1, 7, 8) for k in (1, 2, 3, 5, 9) for s in (1, 2, 3, 5) for kind in ("max", "avg", "sum", "lp")]
CASES += [f"pool((1, 7, 2), kernel=(3,), stride=(2,), pool_type='{kind}', layout='NWC')" for kind in ("max", "avg")]
CASES += ["pool((1, 2, 7), kernel=(3,), stride=(2,), pool_type='avg', count_include_pad=False)",
          "pool((1, 2, 7), kernel=(1,), global_pool=True)", "pool((1, 2, 7, 7), kernel=(3, 3), stride=(2, 2))",
          "pool((1, 1, 5, 5, 5), kernel=(3, 3, 3), pool_type='max')", "pool((1, 2, 7), kernel=(3,), pad=(1, 1, 1))"]


def answer(mx, case):
    """The result and the gradient of the data, to seven digits; or that it is refused."""
    def pool(shape, pad=(0, 0, 0), **params):
        def numbers(shape):
            return mx.nd.array((np.arange(int(np.prod(shape))) * 37 % 101 - 50).reshape(shape) / 8, dtype="float64")

        data = numbers(shape)
        data.attach_grad()
        with mx.autograd.record():
            out = mx.nd.Pooling(data, pad=pad, pooling_convention="same", **params)
        out.backward(numbers(out.shape))
        return [[list(a.shape), [float(f"{x:.7g}") + 0 for x in a.asnumpy().ravel()]] for a in (out, data.grad)]

    try:
        return eval(case, {"pool": pool})
    except Exception:
        return "refused"


if __name__ == "__main__":
    from answers import run  # beside this script

    made = run(__file__, ANSWERS, CASES, answer)
    print(f"{len(made)} cases")
