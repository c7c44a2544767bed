"""Elementwise operators of the program's own in networks, on arrays, saved and loaded."""
from __future__ import annotations

import inspect
import math
import os
import threading
from pathlib import Path
from typing import Any

import cuda_elementwise
import elementwise_operators as own
import numpy as np
import pytest
from elsewhere import run

import mxc as mx
from mxc.compiler.error import MXNetError, TargetError
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.ops import functions
from mxc.compiler.targets.cuda.code import compile_kernel, toolchain
from mxc.test_utils import check_numeric_gradient

SHAPE = (2, 8, 14, 14)


def bound(symbol: Any, grad_req: str = "write", shape: tuple[int, ...] = SHAPE, dtype: str = "float32") -> Any:
    executor = symbol.simple_bind(mx.cpu(), grad_req=grad_req, data=shape, type_dict={"data": dtype})
    random = np.random.default_rng(0)
    for name in sorted(executor.arg_dict):
        array = executor.arg_dict[name]
        array[:] = random.uniform(-1, 1, array.shape)
    return executor


def trained(executor: Any) -> list[np.ndarray]:
    output, = executor.forward(is_train=True)
    executor.backward(mx.nd.ones(output.shape, dtype=output.dtype))
    return [output.asnumpy(), *(executor.grad_dict[name].asnumpy() for name in sorted(executor.grad_dict))]


def test_a_formula_computes_what_built_in_operators_do():
    got, want = (trained(bound(own.network(op, beta=1.5))) for op in ("cut_swish", "swish"))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize(("op", "params"), [("cut_swish", {"beta": 1.5}), ("often_halved", {"most": 3})])
@pytest.mark.parametrize("is_train", [False, True])
def test_it_is_part_of_its_neighbours_kernels(op: str, params: dict[str, Any], is_train: bool):
    """As many kernels as with relu in its place, and none of its own."""
    executor = bound(own.network(op, **params), "write" if is_train else "null")
    plain = bound(own.network("relu"), "write" if is_train else "null")
    counts = [len(e.compiled(is_train=is_train).plan.steps) for e in (executor, plain)]
    assert counts[0] == counts[1]
    if not is_train:
        labels = [s.label for s in executor.compiled().plan.steps_of("forward") if op in s.label]
        assert labels and all("onvolution" in label for label in labels)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes(dtype: str):
    x = mx.nd.array(np.linspace(-30, 30, 1001), dtype=dtype)
    wide = x.asnumpy().astype("float64")
    with np.errstate(over="ignore"):
        want = np.where(wide < -20, 0, wide / (1 + np.exp(-2 * wide)))
    tolerance = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-12}[dtype]
    got = mx.nd.cut_swish(x, beta=2)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_allclose(got.asnumpy().astype("float64"), want, rtol=tolerance, atol=1e-7)
    halved = mx.nd.often_halved(x, most=2)
    assert halved.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(halved.asnumpy(), [own.often_halved(v, most=2) for v in x.asnumpy()])


@pytest.mark.parametrize("size", [5, 70_000])
def test_eager_calls(size: int):
    """Small arrays by NumPy, large ones by kernels."""
    values = np.random.default_rng(1).uniform(-40, 40, size)
    x, y = mx.nd.array(values), mx.nd.array(values[::-1])
    wanted = [own.often_halved(v, most=3) for v in x.asnumpy()]
    np.testing.assert_allclose(mx.nd.often_halved(x, most=3).asnumpy(), wanted)
    np.testing.assert_allclose(mx.nd.blended(x, y, sharp=True).asnumpy(), np.where(
        values > values[::-1], values, 0.25 * values + 0.75 * values[::-1]), rtol=1e-6, atol=1e-5)
    out = mx.nd.zeros(size)
    assert mx.nd.cut_swish(x, out=out) is out
    np.testing.assert_allclose(out.asnumpy(), mx.nd.cut_swish(x).asnumpy())
    assert mx.nd.cut_swish(x=x, beta=0.0).asnumpy()[0] == pytest.approx(0 if values[0] < -20 else values[0] / 2)


@pytest.mark.parametrize("size", [5, 70_000])
def test_eager_gradients(size: int):
    x = mx.nd.array(np.random.default_rng(2).uniform(-4, 4, size))
    y = mx.nd.array(np.random.default_rng(3).uniform(-4, 4, size))
    for array in (x, y):
        array.attach_grad()
    with mx.autograd.record():
        z = mx.nd.blended(x, y) + 3 * mx.nd.often_halved(x)
    z.backward()
    slopes = np.array([own.often_halved_slope(v) for v in x.asnumpy()])
    np.testing.assert_allclose(x.grad.asnumpy(), 0.25 + 3 * slopes)
    np.testing.assert_allclose(y.grad.asnumpy(), np.full(size, 0.75))


def test_second_derivatives_of_a_formula():
    @mx.operator.elementwise("waves")
    def waves(x):
        total = 0.0
        for k in range(1, 4):
            total += math.sin(k * x) / k
        return total if x > 0 else x**3

    x = mx.nd.array([-2.0, -0.5, 0.5, 2.0], dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        first = mx.autograd.grad(mx.nd.waves(x), x, create_graph=True, retain_graph=True)[0]
    first.backward()
    points = x.asnumpy()
    slopes = sum(np.cos(k * points) for k in range(1, 4))
    bends = -sum(k * np.sin(k * points) for k in range(1, 4))
    np.testing.assert_allclose(first.asnumpy(), np.where(points > 0, slopes, 3 * points**2))
    np.testing.assert_allclose(x.grad.asnumpy(), np.where(points > 0, bends, 6 * points))


GRADIENTS = {
    "cut_swish": {"beta": 1.3}, "slopes_math": {}, "slopes_rest": {}, "slopes_choice": {},
}


@mx.operator.elementwise("slopes_math")
def slopes_math(x):
    return math.exp(-x * x) * math.tanh(x) + math.log1p(x * x) / (1 + math.atan(x) ** 2) + 2**x + abs(x) ** 1.5


@mx.operator.elementwise("slopes_rest")
def slopes_rest(x):
    return x % 3 * 0.5 + x // 2 + math.copysign(x * x, x) + math.floor(x) * x + math.erf(x) * math.hypot(x, 1) ** 0 \
        if x != 0 else 1.0


@mx.operator.elementwise("slopes_choice")
def slopes_choice(x):
    a, b = x * 2, x - 1
    if a < b or x > 1.7:
        a, b = b, a * a
    return min(a, b, 1.0) * max(x, 0.3) + (x and 1 / x)


@pytest.mark.parametrize("name", ["cut_swish", "slopes_math", "slopes_choice"])
def test_derivatives_by_differences(name: str):
    points = np.random.default_rng(4).uniform(-2.4, 2.4, (5, 7))
    symbol = getattr(mx.sym, name)(mx.sym.Variable("data"), **GRADIENTS[name])
    check_numeric_gradient(symbol, {"data": points}, numeric_eps=1e-5, rtol=1e-4, atol=1e-5, dtype=np.float64)


def test_a_branch_that_is_not_taken_has_no_say():
    """The derivative of sqrt at 0, of the branch that is not taken, is infinite."""
    @mx.operator.elementwise("guarded_root")
    def guarded_root(x):
        return math.sqrt(x) if x > 0 else 0.0

    x = mx.nd.array([-1.0, 0.0, 4.0])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.guarded_root(x)
    y.backward()
    np.testing.assert_array_equal(y.asnumpy(), [0, 0, 2])
    np.testing.assert_array_equal(x.grad.asnumpy(), [0, 0, 0.25])


def test_gradients_add_and_are_left_out():
    executor = bound(own.network("often_halved", most=3), "add")
    before = trained(executor)
    np.testing.assert_allclose(trained(executor)[1], 2 * before[1], rtol=1e-5, atol=1e-5)
    symbol = mx.sym.blended(mx.sym.Variable("data"), mx.sym.Variable("other"))
    executor = symbol.bind(mx.cpu(), {"data": mx.nd.ones((3,)), "other": mx.nd.ones((3,))},
                           args_grad={"other": mx.nd.zeros((3,))}, grad_req={"data": "null", "other": "write"})
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((3,)))
    np.testing.assert_allclose(executor.grad_dict["other"].asnumpy(), [0.75] * 3)


def test_shapes_are_inferred_through_it():
    symbol = mx.sym.blended(mx.sym.Variable("a"), mx.sym.Variable("b"), name="mix")
    assert symbol.list_arguments() == ["a", "b"]
    assert symbol.infer_shape(b=(3, 4)) == ([(3, 4), (3, 4)], [(3, 4)], [])
    with pytest.raises(MXNetError, match=r"mix"):
        symbol.infer_shape(a=(3, 4), b=(3, 1))
    automatic = mx.sym.cut_swish(mx.sym.Variable("data"))
    assert automatic.name.startswith("cut_swish")


def test_other_dtypes_are_refused():
    with pytest.raises(MXNetError, match=r"operator cut_swish computes with floats, and its inputs are int32"):
        mx.nd.cut_swish(mx.nd.ones(3, dtype="int32")).asnumpy()


def test_monitors_see_it():
    seen: dict[str, np.ndarray] = {}
    executor = bound(own.network("often_halved", most=3))
    executor.set_monitor_callback(lambda name, array: seen.update({name: array.asnumpy()}))
    output = executor.forward(is_train=False)[0].asnumpy()
    executor.set_monitor_callback(None)
    np.testing.assert_allclose(executor.forward(is_train=False)[0].asnumpy(), output, rtol=1e-5, atol=1e-5)
    assert "act_output" in seen


def test_help_says_what_it_is():
    assert "x times the sigmoid of beta x" in mx.nd.cut_swish.__doc__ and "beta : double, default 1.0" in \
        mx.sym.cut_swish.__doc__
    assert [*inspect.signature(mx.nd.cut_swish).parameters][:2] == ["x", "beta"]
    assert "cut_swish" in mx.operator.get_all_registered_operators()


def test_a_graph_is_saved_by_name():
    symbol = own.network("often_halved", most=3)
    text = symbol.tojson()
    assert '"op": "often_halved"' in text and '"attrs": {"most": "3"}' in text
    again = mx.sym.load_json(text)
    assert again.tojson() == text
    np.testing.assert_array_equal(trained(bound(again))[0], trained(bound(symbol))[0])


LOAD = """
import sys
import mxc as mx
try:
    mx.sym.load_json(open(sys.argv[1]).read())
except mx.base.MXNetError as error:
    print(error)
"""


def test_a_graph_needs_its_operators(tmp_path: Path):
    file = tmp_path / "net.json"
    file.write_text(own.network("often_halved").tojson())
    said = run(LOAD, file)
    assert "operator 'often_halved' (node 'act', 1 of them)" in said and "mx.operator.elementwise" in said


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import numpy as np
import mxc
predictor = mxc.load(sys.argv[1])
data = np.linspace(-1, 1, 2 * 8 * 14 * 14, dtype=np.float32).reshape(2, 8, 14, 14)
output, = predictor.predict(data=data).values()
assert "mxc.operator_elementwise" not in sys.modules
print(output.tobytes().hex())
"""


@pytest.mark.parametrize(("op", "params"), [("cut_swish", {"beta": 1.5}), ("often_halved", {"most": 3})])
def test_an_artifact_needs_neither_numba_nor_the_function(op: str, params: dict[str, Any], tmp_path: Path):
    executor = bound(own.network(op, **params), "null")
    mx.artifact.save(tmp_path / "net.mxc", [executor], ["data"])
    executor.arg_dict["data"][:] = np.linspace(-1, 1, 2 * 8 * 14 * 14).reshape(SHAPE)
    want = executor.forward(is_train=False)[0].asnumpy()
    got = run(WITHOUT_NUMBA, tmp_path / "net.mxc", MXC_CACHE_DIR=str(tmp_path / "none"))
    assert bytes.fromhex(got.strip()) == want.tobytes()


WARM = """
import sys
import cuda_elementwise
import elementwise_operators as own
import mxc as mx
executor = own.network("often_halved", most=3).simple_bind(mx.cpu(), data=(2, 8, 14, 14))
executor.forward(is_train=True)
executor.backward([mx.nd.ones((2, 8, 14, 14))])
executor.outputs[0].asnumpy()
print("numba" in sys.modules)
"""


def test_a_warm_start_imports_no_numba(tmp_path: Path):
    assert [run(WARM, MXC_CACHE_DIR=str(tmp_path)).strip() for _ in range(2)] == ["True", "False"]


OTHER = """
import sys
import mxc as mx
import {file}
x = mx.sym.Variable("data")
executor = mx.sym.{op}(x * 2).simple_bind(mx.cpu(), grad_req="write", data=(100,))
executor.arg_dict["data"][:] = 3
executor.forward(is_train=True)
executor.backward([mx.nd.ones((100,))])
print(executor.outputs[0].asnumpy()[0], executor.grad_dict["data"].asnumpy()[0])
"""
DEFINITION = """
import mxc as mx
def slope(x):
    return {slope}
@mx.operator.elementwise("varying", gradient=slope)
def varying(x):
    {body}
"""


def test_two_definitions_of_a_name_share_nothing(tmp_path: Path):
    """In one cache, in processes of their own: functions, native functions, gradients."""
    native = "while x > {}:\n        x = x - 1\n    return x"
    cases = [("return x + 1", "1.0", "7.0 2.0"), ("return x + 2", "1.0", "8.0 2.0"),
             ("return x + 2", "5.0", "8.0 10.0"), (native.format(3), "1.0", "3.0 2.0"),
             (native.format(2), "1.0", "2.0 2.0")]
    for i, (body, slope, _) in enumerate(cases):
        (tmp_path / f"made{i}.py").write_text(DEFINITION.format(body=body, slope=slope))
    for _ in range(2):
        for i, (_, _, want) in enumerate(cases):
            got = run(OTHER.format(file=f"made{i}", op="varying"), PYTHONPATH=str(tmp_path),
                      MXC_CACHE_DIR=str(tmp_path / "cache"))
            assert got.strip() == want, i


def test_in_threads_and_forked_children():
    x = mx.nd.array(np.linspace(-9, 9, 70_000))
    want = mx.nd.often_halved(x, most=2).asnumpy()
    got: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: got.append(mx.nd.often_halved(x, most=2).asnumpy())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 4 and all((g == want).all() for g in got)
    child = os.fork()
    if not child:
        executor = bound(own.network("often_halved", most=7), "null")
        fine = (mx.nd.often_halved(x, most=2).asnumpy() == want).all() and executor.forward()[0].asnumpy().any()
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_deep_formula_stays_small():
    @mx.operator.elementwise("squarings")
    def squarings(x):
        for _ in range(30):
            x = x * x * 0.999 + 1e-3
        return x

    forward = functions.find(next(n for n in functions._known if n.startswith("squarings_")))
    assert forward is not None and len(forward.lines) <= 90
    x = mx.nd.array(np.linspace(-0.9, 0.9, 70_000))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.squarings(x)
    y.backward()
    assert np.isfinite(x.grad.asnumpy()).all()


SIMULATED = """
import warnings
import numpy as np
from cuda_elementwise import kernels
from cuda_runs import run
from kernel_cases import arrays_for, compare, expected
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.targets.cuda import vocabulary

warnings.simplefilter("ignore")
# A warning, ignored or not, adds this to the globals, over which the simulator's threads iterate.
vars(vocabulary)["__warningregistry__"] = {}
for kernel in map(canonical, kernels()):
    arrays = [np.where(np.isfinite(a), a, 2) for a in arrays_for(kernel, 400)]
    want = expected(kernel, arrays)
    run(kernel, arrays, most=2)
    compare(kernel, arrays, want)
"""


def test_in_the_simulator_of_a_gpu():
    run(SIMULATED, NUMBA_ENABLE_CUDASIM="1")


def test_code_for_a_gpu():
    try:
        toolchain()
    except TargetError:
        pytest.skip("the extra cuda is not installed")
    for kernel in map(canonical, cuda_elementwise.kernels()):
        assert ".entry mxc_kernel(" in compile_kernel(kernel, "mxc_kernel", "sm_90").ptx
