"""Checks the GPU target on a machine that has a GPU: `python tests/gpu_check.py [--quick]`. With NUMBA_ENABLE_CUDASIM=1
it runs in the simulator. Prints a line for each check, and exits with 1 where one fails."""
from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import networks
from cuda_cases import CASES
from cuda_runs import Plain
from kernel_cases import arrays_for, compare, expected
from library_cases import (
    DEPTHWISE,
    KINDS,
    POOLS,
    WINDOWS,
    check,
    convolution_case,
    depthwise_case,
    gemm_case,
)
from test_cuda_routines import kernels as routines
from test_cuda_routines import sort

import mxc as mx
from mxc.compiler.error import OutOfMemoryError
from mxc.compiler.kernel.routines import spec
from mxc.compiler.system import env
from mxc.compiler.targets import kernel_target

Check = tuple[str, Callable[[], None]]
PRODUCTS = [(1, 1, 1, 1), (2, 65, 63, 17), (1, 64, 64, 16), (3, 7, 130, 33)]


class Device:
    """Runs kernels on the first GPU."""

    def run(self, kernel: Any, arrays: list[np.ndarray]) -> None:
        target: Any = kernel_target("gpu:0")
        memory, launch = target.launcher.memory, target.launch(kernel)
        address = target.load({launch.key: kernel}).address(launch.key)
        places = [memory.allocate(max(array.nbytes, 1)) for array in arrays]
        for place, array in zip(places, arrays, strict=True):
            memory.write(place, array)
        scratch = memory.allocate(max(launch.scratch_bytes, 1))
        target.launcher.run(target.launcher.table([(address, [*places, *launch.values], launch.units)], scratch))
        for position in kernel.writes():
            memory.read(places[position], arrays[position])
        for place in (*places, scratch):
            memory.release(place)


DEVICE: Any = Device()


def loop(kernel: Any) -> None:
    arrays = arrays_for(kernel, 2000)
    for array in arrays:
        if array.dtype.kind == "f":
            array[~np.isfinite(array)] = 2
    want = expected(kernel, arrays)
    DEVICE.run(kernel, arrays)
    compare(kernel, arrays, want)


def routine(kernel: Any, arrays: list[np.ndarray]) -> None:
    found, right = [a.copy() for a in arrays], [a.copy() for a in arrays]
    DEVICE.run(kernel, found)
    spec.run(kernel, right)
    for position in kernel.writes():
        np.testing.assert_allclose(found[position], right[position], 1e-5, 1e-5)


def network(net: mx.sym.Symbol, train: bool, shape: tuple[int, ...]) -> None:
    found = []
    for place in (mx.cpu(), mx.gpu(0)):
        executor = net.simple_bind(place, grad_req="write" if train else "null", data=shape)
        rng = np.random.default_rng(0)
        for name, array in {**executor.arg_dict, **executor.aux_dict}.items():
            array[:] = rng.integers(0, 10, array.shape) if "label" in name else rng.uniform(0.1, 0.5, array.shape)
        values = []
        for _ in range(2):  # the second time as one graph of launches
            values.append(executor.forward(is_train=train)[0].asnumpy())
            if train:
                executor.backward()
                values += [a.asnumpy() for name, a in executor.grad_dict.items() if "label" not in name]
            executor.arg_dict["data"][:] *= 0.5
        found.append(values)
    for right, value in zip(*found, strict=True):
        scale = max(1.0, float(np.abs(right).max()))
        np.testing.assert_allclose(value / scale, right / scale, 0, 1e-4)


def groups() -> None:
    """Nodes on the GPU and on the CPU."""
    with mx.AttrScope(ctx_group="there"):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="first")
    with mx.AttrScope(ctx_group="here"):
        net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.tanh(net), num_hidden=2), name="loss")
    found = []
    for place in (mx.cpu(), mx.gpu(0)):
        executor = net.simple_bind(place, data=(2, 5), group2ctx={"there": place, "here": mx.cpu()})
        rng = np.random.default_rng(0)
        for _, array in sorted(executor.arg_dict.items()):
            array[:] = rng.uniform(0.2, 1, array.shape)
        executor.forward(is_train=True)
        executor.backward()
        found.append([executor.outputs[0].asnumpy(), executor.grad_dict["first_weight"].asnumpy()])
    for right, value in zip(*found, strict=True):
        np.testing.assert_allclose(value, right, 1e-4, 1e-5)


def artifact() -> None:
    """A file with code for this GPU, made and read."""
    target: Any = kernel_target("gpu:0")
    net = networks.perceptron()
    executor = net.simple_bind(mx.cpu(), data=(4, 64))
    for name, array in executor.arg_dict.items():
        array[:] = np.random.default_rng(len(name)).uniform(-0.5, 0.5, array.shape)
    x = np.random.default_rng(0).random((6, 64), np.float32)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        path = f"{folder}/net.mxc"
        mx.artifact.save(path, [executor], ["data"], target=f"cuda:{target.arch}")
        found = mx.load(path).predict(data=x)["softmax_output"]
    right = [executor.forward(data=part)[0].asnumpy() for part in (x[:4], np.concatenate([x[4:], x[:2]]))]
    np.testing.assert_allclose(found, np.concatenate(right)[:6], 1e-4, 1e-5)


def streams(size: int) -> None:
    """Copies beside computing: arrays written again while they are computed with, in memory that others have left, and
    read while more is computed."""
    place, rng = mx.gpu(0), np.random.default_rng(0)
    kept, found, right = mx.nd.zeros((size,), ctx=place), list[Any](), list[np.ndarray]()
    for i in range(6):
        batch = rng.random(size, np.float32)
        source = mx.nd.array(batch, ctx=mx.cpu_pinned() if i % 2 else mx.cpu())
        fresh = source.as_in_context(place)
        source[:] = -1
        kept[:] = batch
        for _ in range(3):
            kept = kept * 0.5 + fresh
        found.append((kept + fresh, fresh.copy()))
        right += [batch * 0.125 + batch * 2.75, batch]
        if i == 3:
            np.testing.assert_allclose(found[0][0].asnumpy(), right[0], 1e-5)
        kept = mx.nd.zeros((size,), ctx=place)
    for value, wanted in zip([each for pair in found for each in pair], right, strict=True):
        back = mx.nd.zeros((size,), ctx=mx.cpu_pinned())
        value.copyto(back)
        np.testing.assert_allclose(back.asnumpy(), wanted, 1e-5)
        np.testing.assert_allclose(value.asnumpy(), wanted, 1e-5)


def draws() -> None:
    drawn = []
    for place in (mx.cpu(), mx.gpu(0)):
        mx.random.seed(5, ctx=place)
        with place:
            drawn.append([mx.nd.random.uniform(shape=(1000,)).asnumpy(),
                          mx.nd.random.randint(0, 99, shape=(1000,)).asnumpy()])
    for right, value in zip(*drawn, strict=True):
        np.testing.assert_array_equal(value, right)


def memory() -> None:
    _, total = mx.context.gpu_memory_info(0)
    try:
        mx.nd.zeros((total,), ctx=mx.gpu(0)).wait_to_read()
    except OutOfMemoryError as error:
        assert "bytes left" in str(error)
    else:
        raise AssertionError("more memory was given than there is")
    assert mx.nd.ones((10,), ctx=mx.gpu(0)).sum().asscalar() == 10


def checks(quick: bool) -> Iterator[Check]:
    """Every check with its name."""
    plain: Any = Plain()
    for kernel in CASES:
        yield f"loop {kernel.name}", lambda kernel=kernel: loop(kernel)
    for sizes in PRODUCTS:
        for dtype in ("float32", "float64", "float16", "int32"):
            case = gemm_case((*sizes, dtype, False, True, False), plain)
            yield f"product {sizes} {dtype}", lambda case=case: check(*case, DEVICE)
    for name in ("same", "3d", "1x1 stride", "far"):
        for kind in KINDS:
            case = convolution_case(kind, WINDOWS[name], "float32", plain, packed=False)
            yield f"convolution {name} {kind}", lambda case=case: check(*case, DEVICE)
    for kind in KINDS:
        case = depthwise_case(kind, DEPTHWISE["stride"], "float32")
        yield f"depthwise {kind}", lambda case=case: check(*case, DEVICE)
    yield "pooling's gradient", lambda: check(*depthwise_case("pool", POOLS["overlap"], "float32"), DEVICE)
    for kernel, arrays in routines(("float32",), True):
        yield f"routine {kernel.routine}", lambda kernel=kernel, arrays=arrays: routine(kernel, arrays)
    for dtype, rows, n, k in (("float32", 3, 70_000, 70_000), ("float64", 100, 1000, 10), ("int32", 1, 1 << 20, 100)):
        data = np.random.default_rng(0).integers(-1000, 1000, rows * n).astype(dtype)
        case = sort(dtype, rows, n, k, False), [data, np.zeros(rows * k, "int32")]
        yield f"sort {rows} x {n} {dtype}", lambda case=case: routine(*case)
    yield "copies beside computing", lambda: streams(1000 if quick else 5_000_001)
    yield "random numbers", draws
    yield "out of memory", memory
    yield "groups on the GPU and the CPU", groups
    if not env.simulated_gpus():  # the simulator cannot make machine code
        yield "an artifact", artifact
    yield "LeNet, inference", lambda: network(networks.lenet(), False, (4, 1, 8, 8))
    yield "LeNet, training", lambda: network(networks.lenet(), True, (4, 1, 8, 8))
    if not quick:
        yield "ResNet-20, inference", lambda: network(networks.cifar_resnet20(), False, (2, 3, 32, 32))
        yield "ResNet-20, training", lambda: network(networks.cifar_resnet20(), True, (2, 3, 32, 32))


def main() -> int:
    """Run the checks; 1 where one fails, or there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the larger networks out")
    options = parser.parse_args()
    if not mx.context.num_gpus():
        print("there is no GPU")
        return 1
    target: Any = kernel_target("gpu:0")
    device = target.launcher.memory.device
    print(f"{device.name} ({device.arch}), {device.memory_info()[1] >> 20} MiB")
    failed = 0
    for name, run in checks(options.quick):
        start = time.perf_counter()
        try:
            run()
            result = "ok"
        except Exception:
            failed += 1
            result = "FAILED\n" + "".join(f"    {line}\n" for line in traceback.format_exc().splitlines()[-12:])
        print(f"{name}: {result} ({time.perf_counter() - start:.1f} s)", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
