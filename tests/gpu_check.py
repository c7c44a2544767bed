"""Checks the GPU target on a machine that has a GPU: `python tests/gpu_check.py [--quick]`. With NUMBA_ENABLE_CUDASIM=1
it runs in the simulator. Prints a line for each check, and exits with 1 where one fails."""
from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
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
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.routines import spec
from mxc.compiler.system import env
from mxc.compiler.targets import kernel_target

Check = tuple[str, Callable[[], None]]
PRODUCTS = [(1, 1, 1, 1), (2, 65, 63, 17), (1, 64, 64, 16), (3, 7, 130, 33)]


class Device:
    """Runs kernels on the first GPU. way: how NVIDIA's libraries are used there, of choice.WAYS; with "always" they
    have to be."""

    def __init__(self, way: str):
        self.way = way

    def run(self, kernel: Any, arrays: list[np.ndarray]) -> None:
        target: Any = kernel_target("gpu:0")
        target.launcher.libraries.way = self.way
        memory, launch = target.launcher.memory, target.launch(kernel)
        address = target.load({launch.key: kernel}).address(launch.key)
        places = [memory.allocate(max(array.nbytes, 1)) for array in arrays]
        for place, array in zip(places, arrays, strict=True):
            memory.write(place, array)
        scratch = memory.allocate(max(launch.scratch_bytes, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a library's result that differs is one
            table = target.launcher.table([(address, [*places, *launch.values], launch.units)], scratch)
        assert (table.rows[0].call is not None) == (self.way == "always"), "the wrong one runs"
        target.launcher.run(table)
        for position in kernel.writes():
            memory.read(places[position], arrays[position])
        for place in (*places, scratch):
            memory.release(place)


DEVICE: Any = Device("never")
BY_LIBRARY: Any = Device("always")


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


def network(net: mx.sym.Symbol, train: bool, shape: tuple[int, ...], way: str) -> None:
    """way: how NVIDIA's libraries are used, of choice.WAYS."""
    target: Any = kernel_target("gpu:0")
    target.launcher.libraries.way = way
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


def with_epilogue(kernel: Any, arrays: list[np.ndarray], channel: int, relu: bool) -> tuple[Any, list[np.ndarray]]:
    """A case with a bias along an output axis, and a ReLU."""
    dtype = kernel.buffers[0]
    bias = np.random.default_rng(3).standard_normal(4096).astype(dtype)
    value = ir.apply("add", ir.acc(0, dtype), ir.load(2, linear({channel: 1}), dtype))
    value = ir.apply("max", value, ir.const(0.0, dtype)) if relu else value
    store = replace(kernel.stores[0], buffer=3, value=value)
    return replace(kernel, buffers=(dtype,) * 4, stores=(store,)), [*arrays[:2], bias, arrays[2]]


def by_libraries(names: Collection[str]) -> Iterator[Check]:
    """Checks of NVIDIA's libraries through mxc. names: of those that are installed."""
    plain: Any = Plain()
    target: Any = kernel_target("gpu:0")
    libraries = target.launcher.libraries
    libraries.way = "always"

    def taken(case: tuple[Any, list[np.ndarray]]) -> None:
        assert libraries.has(case[0]), (libraries.missing, [*libraries.refused.values()][-1:])
        check(*case, BY_LIBRARY)

    cases = [(f"cuBLASLt {sizes} {dtype} {ways}", gemm_case((*sizes, dtype, *ways, False), plain), 2)
             for sizes in PRODUCTS[1:] for dtype in ("float32", "float64", "float16")
             for ways in ((False, True), (True, False))]
    cases += [(f"cuDNN {name} {kind} {dtype}", convolution_case(kind, WINDOWS[name], dtype, plain, packed=False), 1)
              for name in ("same", "3d", "1x1 stride", "1d") for kind in KINDS for dtype in ("float32", "float16")]
    for name, (kernel, arrays), channel in cases:
        if name.split()[0] not in names:
            continue
        yield name, lambda case=(kernel, arrays): taken(case)
        if kernel.template in ("gemm", "convolution"):
            for relu in (False, True):
                ended = with_epilogue(kernel, arrays, channel, relu)
                yield f"{name}, bias{', relu' if relu else ''}", lambda case=ended: taken(case)


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
    sorts = [("float32", 3, 70_000, 70_000), ("float64", 100, 1000, 10), ("int32", 1, 1 << 20, 100)]
    if env.simulated_gpus():  # 30 million exchanges would take it minutes
        sorts = [("float32", 3, 70, 70), ("float64", 5, 100, 10), ("int32", 1, 130, 100)]
    for dtype, rows, n, k in sorts:
        data = np.random.default_rng(0).integers(-1000, 1000, rows * n).astype(dtype)
        case = sort(dtype, rows, n, k, False), [data, np.zeros(rows * k, "int32")]
        yield f"sort {rows} x {n} {dtype}", lambda case=case: routine(*case)
    yield "copies beside computing", lambda: streams(1000 if quick else 5_000_001)
    if not env.simulated_gpus():
        modules = {"cuBLASLt": "nvmath", "cuDNN": "cudnn"}
        yield from by_libraries([name for name, module in modules.items() if importlib.util.find_spec(module)])
    yield "random numbers", draws
    yield "out of memory", memory
    yield "groups on the GPU and the CPU", groups
    if not env.simulated_gpus():  # the simulator cannot make machine code
        yield "an artifact", artifact
    nets = [("LeNet", networks.lenet, (4, 1, 8, 8))]
    nets += [] if quick else [("ResNet-20", networks.cifar_resnet20, (2, 3, 32, 32))]
    for name, make, shape in nets:
        for way in ("never",) if env.simulated_gpus() else ("never", "always"):
            for train in (False, True):
                yield f"{name}, {'training' if train else 'inference'}, libraries {way}", (
                    lambda make=make, train=train, shape=shape, way=way: network(make(), train, shape, way))


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
