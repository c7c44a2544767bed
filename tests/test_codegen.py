"""Numba as the generator of kernels' code: how it is chosen, that it stays in the background, and what it refuses."""
from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from instruction_sets import NUMBA
from kernel_cases import F, at, every_kernel, pointwise

from mxc.cli.main import USAGE, main
from mxc.compiler.cache import Cache
from mxc.compiler.error import MXNetError, SettingError, TargetError
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import Accumulator, LoopKernel, Store, Value, acc, apply, axis, load
from mxc.compiler.targets.cpu.build import codegen
from mxc.compiler.targets.cpu.build.jobs import Job, job_of
from mxc.compiler.targets.cpu.build.load import machine, optimised
from mxc.compiler.targets.cpu.build.worker import compile_here, module_of
from mxc.compiler.targets.cpu.emit.interleave import hinted
from mxc.compiler.targets.cpu.target import CpuTarget

HEAD = "def kernel(args, first, last, scratch):\n    b0 = buffer0(args, 0)\n"
NETWORK = """
import mxc as mx
x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
net = mx.sym.softmax(mx.sym.tanh(mx.sym.FullyConnected(x, w, num_hidden=8, no_bias=True)) * 3)
net = mx.sym.broadcast_add(mx.sym.argsort(net, axis=1), mx.sym.sum(mx.sym.exp(net), axis=1, keepdims=True))
executor = net.simple_bind(mx.cpu(), x=(4, 5))
executor.arg_dict["x"][:] = mx.nd.arange(20).reshape((4, 5)) / 20
executor.arg_dict["w"][:] = mx.nd.arange(40).reshape((8, 5)) / 40
values = executor.forward(is_train=True)[0].asnumpy()
executor.backward([mx.nd.ones((4, 8))])
executor.forward(is_train=False)
values = [*values.ravel(), *executor.grad_dict["w"].asnumpy().ravel()]
"""
OPERATORS = """
import mxc as mx

def running_gradient(grad_out, grad_x):
    total = 0.0
    for i in range(grad_out.shape[0] - 1, -1, -1):
        total += grad_out[i]
        grad_x[i] = total

@mx.operator.kernel("t_running", shapes=lambda x: [x], gradient=running_gradient)
def running(x, out):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
        out[i] = total
"""
OWN = """
import elementwise_operators as own
import numpy as np
import mxc as mx
import own_operators
random = np.random.default_rng(0)
values = []
for dtype in ("float32", "float64", "float16"):
    x, y = (mx.nd.array(random.uniform(-9, 9, 70_000), dtype=dtype) for _ in range(2))
    x.attach_grad()
    with mx.autograd.record():
        z = mx.nd.blended(mx.nd.often_halved(x * 2, most=3), mx.nd.tanh(y), sharp=True) * mx.nd.cut_swish(x, beta=0.5)
    z.backward()
    values += [*z.asnumpy()[::37], *x.grad.asnumpy()[::37]]
x = mx.sym.Variable("data")
after = mx.sym.softmax(mx.sym.often_halved(mx.sym.Reshape(mx.sym.t_running(mx.sym.tanh(x)), (30, 100))) / 3)
networks = [(own.network("often_halved", most=2), (2, 8, 14, 14)), (own.network("cut_swish"), (2, 8, 14, 14)),
            (after, (3000,))]
for network, shape in networks:
    executor = network.simple_bind(mx.cpu(), data=shape)
    for array in executor.arg_dict.values():
        array[:] = random.uniform(-1, 1, array.shape)
    for is_train in (False, True):
        values += [*executor.forward(is_train=is_train)[0].asnumpy().ravel()[::7]]
    executor.backward([mx.nd.array(random.uniform(-1, 1, executor.outputs[0].shape))])
    values += [value for array in executor.grad_arrays for value in array.asnumpy().ravel()[::7]]
"""
NEEDY = """
import mxc as mx

def halved(x):
    count = 0.0
    while x > 1:
        x, count = x / 2, count + 1
    return count

def elementwise():
    mx.operator.elementwise("waves", gradient=lambda x: 0.0)(halved)
    mx.nd.waves(mx.nd.ones(100_000)).wait_to_read()

@mx.operator.kernel("doubled", shapes=lambda x: [x])
def doubled(x, y):
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]

def kernel():
    mx.nd.doubled(mx.nd.ones(100_000)).wait_to_read()

def network():
    mx.sym.exp(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(4, 5)).forward()[0].wait_to_read()

for name, run in {"elementwise": elementwise, "kernel": kernel, "network": network, "again": network}.items():
    try:
        run()
    except mx.MXNetError as error:
        assert type(error).__name__ == "TargetError", error
        print(f"{name}: {error}")
"""
TELL = "\nimport sys\nprint('numba' in sys.modules, *map(float, values))"


def answer(program: str, **variables: str) -> tuple[str, list[float]]:
    """Whether a fresh process imported Numba, and the values that it computed."""
    done = subprocess.run([sys.executable, "-c", program + TELL], env={**os.environ, **variables}, text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    imported, *values = done.stdout.splitlines()[-1].split()
    return imported, [float(value) for value in values]


def test_both_lie_in_one_cache_and_run_without_numba(tmp_path: Path) -> None:
    cache = {"MXC_CACHE_DIR": str(tmp_path / "cache")}
    with_numba = {**cache, "MXC_CODEGEN": "numba"}
    default, first = answer(NETWORK, **cache), answer(NETWORK, **with_numba)
    assert (default[0], first[0]) == ("False", "True")
    np.testing.assert_allclose(first[1], default[1], rtol=3e-7, atol=1e-9)
    artifact = tmp_path / "net.mxc"
    save = f"\nfrom mxc.artifact import save\nsave({str(artifact)!r}, [executor], ['x'], True, False)"
    again = answer(NETWORK + save, **with_numba)
    assert again == ("False", first[1])
    assert answer(NETWORK, **cache) == default
    loaded = ("import sys\nsys.modules['numba'] = None\nimport numpy as np\nimport mxc as mx\n"
              f"x, net = np.arange(20, dtype='f').reshape(4, 5) / 20, mx.load({str(artifact)!r})\n"
              "(values,) = net.predict(x=x).values()\nvalues = values.ravel()\ndel sys.modules['numba']")
    assert answer(loaded, MXC_CACHE_DIR="") == ("False", first[1][:32])


def test_both_generators_run_operators_of_the_program(tmp_path: Path) -> None:
    """On large arrays, behind convolutions, and over whole arrays. Of each the same code is called, but what is around
    it is the generator's."""
    (tmp_path / "own_operators.py").write_text(OPERATORS)
    search = os.pathsep.join(filter(None, (str(tmp_path), str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    ours, numba = (answer(OWN, PYTHONPATH=search, MXC_CACHE_DIR="", MXC_CODEGEN=g)[1] for g in codegen.GENERATORS)
    assert np.isfinite(ours).all() and len(set(ours)) > 10_000
    np.testing.assert_allclose(numba, ours, rtol=1e-6, atol=1e-6)


def test_what_users_set_for_numba_changes_nothing(tmp_path: Path) -> None:
    """Six kernels at least, so that a helper process compiles too, whose answers what Numba prints must not disturb."""
    settings = {"NUMBA_OPT": "0", "NUMBA_DISABLE_JIT": "1", "NUMBA_DEBUGINFO": "1", "NUMBA_BOUNDSCHECK": "1",
                "NUMBA_DUMP_IR": "1", "NUMBA_DUMP_LLVM": "1", "NUMBA_DUMP_OPTIMIZED": "1"}
    plain = {"MXC_CODEGEN": "numba", "MXC_NUM_THREADS": "2", "MXC_CACHE_DIR": str(tmp_path / "plain")}
    other = plain | settings | {"MXC_CACHE_DIR": str(tmp_path / "other")}
    assert answer(NETWORK, **plain) == answer(NETWORK, **other)

    def codes(path: Path) -> dict[str, bytes | None]:
        cache = Cache(path)
        return {entry.key: cache.get(entry.key) for entry in cache.entries()}

    assert codes(tmp_path / "plain") == codes(tmp_path / "other")


def test_the_generator_is_a_part_of_the_key() -> None:
    kernel = canonical(pointwise("exp", (F, F), [apply("exp", load(0, axis(0), F))]))
    default, numba = CpuTarget(), CpuTarget(generator=codegen.NUMBA)
    assert default.launch(kernel).key != numba.launch(kernel).key
    assert numba.parts == default.parts | {"codegen": "numba", "numba": metadata.version("numba")}


def test_a_generator_that_there_is_not(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                                       tmp_path: Path) -> None:
    monkeypatch.setenv("MXC_CODEGEN", "nmba")
    with pytest.raises(SettingError, match=r"MXC_CODEGEN: .* .nmba.; expected .* did you mean 'numba'"):
        codegen.chosen()
    monkeypatch.setenv("MXC_CODEGEN", "numba")
    assert codegen.chosen() == codegen.NUMBA
    monkeypatch.delenv("MXC_CODEGEN")
    assert codegen.chosen() == codegen.LLVM
    assert main(["compile", "net-symbol.json", "--codegen", "nmba"]) == USAGE
    assert "no code generator 'nmba'; expected llvm or numba; did you mean 'numba'?" in capsys.readouterr().err
    assert main(["compile", "net-symbol.json", "--codegen", "numba", "--target", "cuda:sm_90"]) == USAGE
    assert "leave it out with --target cuda:sm_90" in capsys.readouterr().err


def test_numba_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    assert codegen.parts(codegen.LLVM) == {}
    with pytest.raises(TargetError, match=r"Numba is not installed, and MXC_CODEGEN=numba has .*: pip install numba"):
        codegen.parts(codegen.NUMBA)
    with pytest.raises(TargetError, match=r"Numba is not installed, and operator waves is .*: pip install numba"):
        codegen.numba_version("waves")


@pytest.mark.parametrize(("text", "variables", "reason"), [
    ("raise ImportError('Numba needs\\nNumPy 2.3 or less')", {}, "Numba needs NumPy 2.3 or less"),
    ("import sys\nsys.modules[__name__] = None\nimport numba", {}, "import of numba halted"),
    ("", {"NUMBA_NUM_THREADS": "-1"}, "Number of threads specified must be > 0"),
], ids=["broken", "blocked", "a setting"])
def test_numba_that_cannot_be_imported(text: str, variables: dict[str, str], reason: str, tmp_path: Path) -> None:
    """Each time that it is needed, and whatever else Numba's second import would say."""
    if text:
        (tmp_path / "numba").mkdir()
        (tmp_path / "numba/__init__.py").write_text(text)
    (tmp_path / "program.py").write_text(NEEDY)
    search = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": search, "MXC_CODEGEN": "numba", "MXC_CACHE_DIR": "", **variables})
    assert done.returncode == 0, done.stderr
    why = {"elementwise": "operator waves is", "kernel": "operator doubled is", "network": "MXC_CODEGEN=numba has it"}
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert list(said) == [*why, "again"] and said["again"] == said["network"]
    for what, who in why.items():
        assert said[what].startswith(f"Numba cannot be imported ({reason}"), what
        assert f"), and {who}" in said[what] and "pip install --force-reinstall numba" in said[what], what


@pytest.mark.parametrize(("lines", "reason"), [
    ("    assert first < last\n", "may raise an exception"),
    ("    b0[0] = 'text'\n", "is no dtype of kernels"),
    ("    b0[first] = unknown\n", "unknown"),
    ("    b0[0] = add_(1, 2.0)\n", "expected arguments of one dtype"),
])
def test_what_is_refused(lines: str, reason: str) -> None:
    job = Job("refused", "small", "typed", HEAD + lines, (F,), generator=codegen.NUMBA)
    with pytest.raises(MXNetError, match=f"(?s)kernel small: Numba makes .*MXC_CODEGEN=llvm.*{reason}") as caught:
        compile_here(job, NUMBA.cpu, NUMBA.features)
    assert str(caught.value).count(job.text) == 1


def test_loops_whose_step_is_an_argument() -> None:
    job = Job("with_step", "small", "typed", HEAD + "    for i in range(first, 8, last):\n        b0[i] = i\n", (F,))
    for code, generator in enumerate(codegen.GENERATORS):
        array = np.zeros(8, F)
        named = dataclasses.replace(job, symbol=f"with_step_{code}", generator=generator)
        object_code = compile_here(named, NUMBA.cpu, NUMBA.features)
        NUMBA.call(NUMBA.processor.load(named.symbol, object_code), [array], [], 0, [(1, 3)])
        np.testing.assert_array_equal(array, [0, 1, 0, 0, 4, 0, 0, 7])


def test_functions_that_come_with_the_job() -> None:
    text = ("define float @mxc_function_twice_1a_float32(float %x) {\n  %y = fadd float %x, %x\n  ret float %y\n}\n")
    job = Job("with_function", "small", "typed", HEAD + "    b0[0] = twice_1a_(b0[0])\n", (F,), functions=(text,))
    array = np.array([1.25], F)
    NUMBA.call(NUMBA.compiled(job), [array], [], 0, [(0, 1)])
    assert array[0] == 2.5


def test_code_refers_to_the_mathematical_library_alone() -> None:
    """Nothing of Numba's runtime may be left, for the processes that run code have no Numba."""
    for kernel in every_kernel()[::4]:
        module = module_of(job_of(kernel, "kernel", NUMBA.isa, codegen.NUMBA), NUMBA.generator, NUMBA.features)
        assert [f.name for f in module.functions if not f.is_declaration] == ["kernel"], kernel.name
        outside = {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")}
        assert not {name for name in outside if "numba" in name.lower() or "NRT" in name or "Py" in name}, kernel.name
        assert not list(module.global_variables) or all(g.is_constant for g in module.global_variables), kernel.name


def test_loops_of_long_formulas_run_several_vectors_at_a_time() -> None:
    from mxc.compiler.targets.numba.generate import SIMPLE, generated

    def hints(kernel: LoopKernel) -> list[str]:
        text = hinted(str(optimised(generated(job_of(canonical(kernel), "f"), ""), machine(), SIMPLE)))
        optimised(text, machine())  # LLVM takes it
        return [line.split()[-1] for line in text.splitlines() if "interleave.count" in line]

    def of(value: Value) -> LoopKernel:
        return pointwise("f", (F, F), [value])

    x = load(0, axis(0), F)
    assert hints(of(apply("add", x, x))) == []
    assert hints(of(apply("exp", x))) == ["4}"]
    assert hints(of(apply("exp", apply("exp", apply("exp", apply("exp", x)))))) == ["2}"]
    body = apply("exp", load(0, at((0, 40), (1, 1)), F))
    assert hints(LoopKernel("sum", (F, F), (3,), (40,), (Accumulator("sum", body),),
                            (Store(1, axis(0), acc(0, F)),))) == ["4}"]
