"""Operators with parameters, shapes and dtypes at random, good and bad: `python fuzz_operators.py SEED COUNT [NAME]`.

Run as a process of its own, with little memory: what must not happen is a crash, a hang, or an error that is not one of
MXNetError, ValueError and TypeError. What is accepted must mean the same to the operator's reference and to the lowered
program. Prints one block for each finding, then how many tries came to what; the exit code is the number of findings.
"""
from __future__ import annotations

import math
import os
import random
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from graph_strategy import UNSTEADY
from programs import lowered

import mxc as mx
from mxc.compiler.ops import table
from mxc.runtime.array import Array
from mxc.runtime.invoke import invoke
from mxc.symbol.functions import find

ALLOWED = (mx.base.MXNetError, ValueError, TypeError)
DTYPES = ("float32", "float16", "float64", "int32", "int64", "int8", "uint8", "bool")
SHAPES = [(2, 3), (2, 3), (2, 3, 4), (1, 4, 5, 6), (2, 4, 6, 6), (3,), (1,), (4, 4), (2, 1, 3, 1, 2), (4,),
          (2, 3, 1, 1)]
BAD_SHAPES: list[tuple[int, ...]] = [(), (0,), (2, 0, 3), (-1, 3), (2**40, 2**40), (2**62,), (1,) * 33, (2**33, 2),
                                     (10**30,)]
NUMBERS = {
    "int": [0, 1, 1, 2, 2, 3, -1, -2, 4, 7, 2**31, -2**63, 10**30], "shape": [(), (1, 1), (3, 3), (2, 2), (2,), (1,), 0,
        (0, -1), (0, 0), (-1,), (-2,), (-3, -1), (-4, 1, 2, -2), (2, 3), (1, 0), (9, 9), (1, 1, 1), (2**40, 2**40),
        (-7,),
        (3, -1), (10**30, 1), (1, 2, 0), (0, 2, 1), (-1, -1)],
    "float": [0.5, 0, 1, -1, 2, 1e-3, float("nan"), float("inf"), 1e300, 10**400],
    "bool": [True, False, True, False, 2], "str": ["", "cpu(0)"],
}
NUMBERS["double"] = NUMBERS["float"]
NUMBERS["floats"] = NUMBERS["doubles"] = [(), (1.0,), (0.5, 2.0), (-1, 1), (0, 0), (1, 2, 0.5), (float("nan"), 1),
                                         (2, 1)]
NUMBERS["bounds"] = [*NUMBERS["shape"], (None,), (None, None), (1, None), (None, -1), (None, -1, 2)]
NONSENSE = ["x", None, "(1,", "(1, x)", object(), [], "None", b"1", {}, "1e5", float("nan"), "(((", np.zeros(2),
            "2**3"]
SECONDS = 20


class Slow(Exception):
    """A try took too long."""


def parameters(op: Any, rng: random.Random) -> dict[str, object]:
    """A value for required and for some other parameters; now and then one that makes no sense."""
    sample = rng.choice(op.samples).get("params", {}) if op.samples and rng.random() < 0.6 else {}
    given = dict(sample)
    for name, kind in op.params.items():
        if name in given and rng.random() < 0.85:
            continue
        if not kind.required and rng.random() < 0.6:
            continue
        if rng.random() < 0.04:
            given[name] = rng.choice(NONSENSE)
        elif kind.base in ("enum", "dtype"):
            given[name] = rng.choice([*kind.choices, "none of them"] if kind.choices else DTYPES)
        else:
            given[name] = rng.choice(NUMBERS[kind.base])
    if rng.random() < 0.02:
        given[rng.choice(["axes_", "nonsense", "stride "])] = 1
    return given


def shapes_for(op: Any, count: int, rng: random.Random) -> list[tuple[int, ...]]:
    if op.samples and "shapes" in op.samples[0] and rng.random() < 0.6:
        shapes = [tuple(s) for s in rng.choice([s for s in op.samples if "shapes" in s])["shapes"]]
    else:
        shapes = [rng.choice(SHAPES)] * count if rng.random() < 0.5 else [rng.choice(SHAPES) for _ in range(count)]
    shapes = (shapes + [rng.choice(SHAPES)] * count)[:count]
    for i, shape in enumerate(shapes):
        if rng.random() < 0.05:
            shapes[i] = rng.choice(BAD_SHAPES)
        elif rng.random() < 0.1 and shape:
            where = rng.randrange(len(shape))
            shapes[i] = (*shape[:where], shape[where] + rng.choice([-1, 1]), *shape[where + 1:])
    return shapes


def attempt(op: Any, rng: random.Random, told: list[str]) -> str:
    """One try; what came of it. told: gets what was tried, for a finding."""
    given = parameters(op, rng)
    told += [op.name, f"params {given}"]
    params = op.make_params(given if not op.variadic else {op.variadic: rng.choice([1, 2, 3]), **given})
    names = [*op.input_names(params), *op.aux_names(params)][:100]
    shapes = shapes_for(op, len(names), rng)
    dtype = rng.choice(DTYPES) if rng.random() < 0.5 else "float32"
    dtypes = [dtype if rng.random() < 0.93 else rng.choice(DTYPES) for _ in names]
    told.append(f"inputs {list(zip(names, shapes, dtypes, strict=True))}")
    variables = [mx.sym.Variable(n) for n in names]
    made = find(op.name)
    if op.variadic:
        net = made(*variables, name="op", **given)
    else:
        net = made(**dict(zip(names, variables, strict=True)), name="op", **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.infer_shape(**dict(zip(names, shapes, strict=True)))
        net.infer_type(**dict(zip(names, dtypes, strict=True)))
    train = rng.random() < 0.5
    grad_req = "write" if rng.random() < 0.7 else "null"
    executor = net.simple_bind(mx.cpu(), grad_req=grad_req, type_dict=dict(zip(names, dtypes, strict=True)),
                               **dict(zip(names, shapes, strict=True)))
    if max([math.prod(a.shape) for a in (*executor.arg_arrays, *executor.aux_arrays, *executor.outputs)]) > 1e5:
        return "large"
    values = [draw(n, a.shape, str(np.dtype(a.dtype)), rng) for n, a in [*executor.arg_dict.items(),
                                                                        *executor.aux_dict.items()]]
    return compare(op, net, given, values, grad_req, train, told)


def draw(name: str, shape: Sequence[int], dtype: str, rng: random.Random) -> np.ndarray:
    numbers = np.random.default_rng(rng.randrange(2**32))
    if dtype == "bool":
        return numbers.integers(0, 2, shape).astype(bool)
    if not dtype.startswith("float") or "label" in name or name == "length":
        return numbers.integers(0, 4, shape).astype(dtype)
    return (numbers.uniform(0.1, 1.5, shape)).astype(dtype)


def compare(op: Any, net: Any, given: dict[str, Any], values: list[np.ndarray], grad_req: str, train: bool,
            told: list[str]) -> str:
    """The lowered program's outputs against the reference's; float16 is left out, where sums differ by their order."""
    told.append(f"train {train}, grad_req {grad_req}")
    plain = not train and grad_req == "null"
    names = [*net.list_arguments(), *net.list_auxiliary_states()]
    shapes, dtypes = {n: v.shape for n, v in zip(names, values, strict=True)}, {}
    dtypes = {n: str(v.dtype) for n, v in zip(names, values, strict=True)}
    want = invoke(op.name, [Array.of(v) for v in values], given, is_train=train)
    program = lowered(net.graph, shapes, dtypes, dict.fromkeys(net.list_arguments(), grad_req), train)
    arrays = dict(zip(names, values, strict=True))
    for sink_head in range(len(want)):
        arrays[f"_head_grad_{sink_head}"] = np.ones(want[sink_head].shape, want[sink_head].dtype)
    got, _ = program.run(arrays)
    if op.name in UNSTEADY or given.get("act_type") == "rrelu" or given.get("p"):
        return "random"
    for i, one in enumerate(want):
        other = got[i]
        if (one.shape, one.dtype) != (other.shape, str(other.dtype)):
            raise AssertionError(f"output {i} is {other.dtype} {other.shape}, by the reference {one.dtype} {one.shape}")
        if "float16" not in (one.dtype, *dtypes.values()):
            if one.dtype.startswith("int"):  # what a NaN becomes there is the machine's
                other = np.where(one.data == np.iinfo(one.dtype).min, one.data, other)
            np.testing.assert_allclose(other, one.data, 2e-4, 1e-5, err_msg=f"output {i}")
    return "compared" if plain else "compared, gradients run"


def main() -> int:
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    operators = [op for op in table.all_operators() if not op.name.startswith("_mxc_")]
    if len(sys.argv) > 3 and sys.argv[3] != "-v":
        operators = [table.get(sys.argv[3])]

    def slow(number: int, frame: Any) -> None:
        raise Slow(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, slow)
    results: Counter[str] = Counter()
    findings: dict[str, str] = {}
    np.seterr(all="ignore")
    for i in range(count):
        rng = random.Random(f"{seed} {i}")
        op = operators[i % len(operators)]
        told: list[str] = []
        signal.alarm(SECONDS)
        try:
            results[attempt(op, rng, told)] += 1
        except ALLOWED as error:
            results[type(error).__name__] += 1
            if not isinstance(error, mx.base.MXNetError) and "-v" in sys.argv:
                findings.setdefault(f"{op.name} {error!r}", "\n".join([*told, *traceback.format_exception(error)[-3:]]))
            if not str(error).strip():
                findings.setdefault(f"{op.name} no message", f"{told}")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            results["finding"] += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            key = f"{op.name} {type(error).__name__} {where.filename}:{where.lineno}"
            findings.setdefault(key, "\n  ".join([*told, *traceback.format_exception(error)[-4:]]))
        finally:
            signal.alarm(0)
    for key, text in findings.items():
        print(f"FINDING {key}\n  {text}\n")
    print(dict(results))
    sys.stdout.flush()
    os._exit(min(len(findings), 100))  # without tidying up: what a finding left behind must not hide it


if __name__ == "__main__":
    main()
