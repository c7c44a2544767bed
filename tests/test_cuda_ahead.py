"""Loop kernels to PTX and cubin for an architecture, on a machine that need not have a GPU."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import networks
import pytest
from cuda_cases import CASES, LONG

from mxc.cli.main import main
from mxc.compiler.api import compile_graph
from mxc.compiler.cache import Cache
from mxc.compiler.error import TargetError
from mxc.compiler.plan import Plan
from mxc.compiler.targets.cuda.ahead import CudaTarget, symbol
from mxc.compiler.targets.cuda.code import CudaCode, capability, compile_kernel, toolchain
from mxc.runtime import artifact_file

ELF, MACHINE_CUDA = b"\x7fELF", 190


@pytest.fixture(scope="module")
def compiler() -> None:
    """What compiles for CUDA; skips where no numba-cuda works with this NumPy."""
    try:
        toolchain()
    except TargetError as error:
        if "does not work with NumPy" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("kernel", [*CASES, *(pytest.param(k, marks=pytest.mark.slow) for k in LONG)],
                         ids=lambda k: k.name)
def test_every_form_has_code(kernel) -> None:
    code = compile_kernel(kernel, "mxc_kernel", "sm_90")
    assert ".target sm_90" in code.ptx
    header = code.ptx[code.ptx.index(".entry mxc_kernel("):]
    assert header[:header.index(")")].count(".param .u64") == len(kernel.buffers) + 1  # and the integers
    assert code.cubin[:4] == ELF and int.from_bytes(code.cubin[18:20], "little") == MACHINE_CUDA
    assert b".text.mxc_kernel" in code.cubin
    assert CudaCode.from_bytes(code.to_bytes()) == code


@pytest.mark.usefixtures("compiler")
def test_architectures_differ() -> None:
    one, other = (compile_kernel(CASES[0], "k", arch) for arch in ("sm_80", "sm_90"))
    assert ".target sm_80" in one.ptx and one.cubin != other.cubin


@pytest.mark.usefixtures("compiler")
def test_an_architecture_that_nvidia_has_not() -> None:
    with pytest.raises(TargetError, match="cuda:sm_91: NVIDIA's linker knows no such architecture"):
        compile_kernel(CASES[0], "k", "sm_91")


@pytest.mark.parametrize("arch", ["sm_20", "sm_", "90", "sm_90; rm", "SM_90", ""])
def test_what_is_no_architecture(arch: str) -> None:
    with pytest.raises(TargetError, match="expected an architecture from sm_75 on, as sm_90"):
        capability(arch)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("net, shape, train", [
    (networks.perceptron(), (4, 64), False),
    pytest.param(networks.lenet(), (4, 1, 8, 8), True, marks=pytest.mark.slow)], ids=["perceptron", "LeNet's training"])
def test_a_network_and_its_cache(net, shape: tuple[int, ...], train: bool, tmp_path: Path) -> None:
    """Its kernels have code under their plan's keys, and the cache has it the second time; a cache for another
    architecture has not."""
    tmp_path.chmod(0o700)
    shapes, gradients = {"data": shape}, {n: "write" for n in net.list_arguments() if "weight" in n and train}

    def compiled(arch: str):
        return compile_graph(net.graph, shapes, {}, gradients, train, CudaTarget(arch, Cache(tmp_path)))

    first = compiled("sm_90")
    library = first.library
    assert not library.missing
    assert {s.kernel for s in first.plan.steps} == {*library.codes, *library.missing}
    assert library.hits == 0 and library.misses == len(library.codes) >= 3
    for key, code in library.codes.items():
        assert f".entry {symbol(key)}(" in code.ptx
    again = compiled("sm_90").library
    assert again.hits == library.misses and again.misses == 0 and again.codes == library.codes
    assert not set(compiled("sm_80").library.codes) & set(library.codes)


@pytest.mark.usefixtures("compiler")
def test_compile_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`mxc compile --target cuda:sm_90` says what has no code, and writes a file that is whole."""
    monkeypatch.setenv("MXC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    networks.perceptron().save("net-symbol.json")
    shapes = ["--shape", "data=2,64", "--shape", "data=8,64"]
    assert main(["compile", "net-symbol.json", *shapes, "--target", "cuda:sm_90", "-o", "net.mxc", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {each["no_code_for"] for each in told["sets"]} == {"nothing"}
    assert [each["cache_hits"] for each in told["sets"]] == [0, told["sets"][0]["cache_misses"]]  # one code for both
    contents = artifact_file.read("net.mxc")
    code, section = contents.manifest["code"], bytes(contents.sections["code"])
    assert contents.manifest["parts"]["target"] == "cuda:sm_90"
    for key, kernel in code["kernels"].items():
        (at, length), (machine_at, _) = kernel["ptx"], kernel["cubin"]
        assert f".entry {symbol(key)}(".encode() in section[at:at + length]
        assert section[machine_at:machine_at + 4] == ELF
    for plan in contents.manifest["plans"]:
        steps = Plan.from_json(bytes(contents.sections[plan["section"]]).decode().rstrip("\0")).steps
        assert {step.kernel for step in steps} <= {*code["kernels"]}


@pytest.mark.parametrize("target, code", [("cuda:sm_9", 5), ("cuda:", 5), ("gpu", 2), ("cuda", 2)])
def test_compile_command_for_what_is_no_target(target: str, code: int, tmp_path: Path) -> None:
    path = tmp_path / "net-symbol.json"
    networks.perceptron().save(str(path))
    assert main(["compile", str(path), "--shape", "data=2,64", "--target", target]) == code


def refusal(before: str) -> str:
    """What is said of the toolchain in a process that ran these statements before."""
    program = (f"{before}\n"
               "from mxc.compiler.targets.cuda.code import toolchain\n"
               "from mxc.compiler.error import TargetError\n"
               "try: toolchain()\nexcept TargetError as error: print(error)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_the_extra() -> None:
    """An error that names what to install, in a process where the packages cannot be found."""
    assert "pip install 'mxc-compiler[cuda]'" in refusal("import sys; sys.modules['numba_cuda'] = None")


def test_with_a_setting_that_numba_refuses() -> None:
    said = refusal("import os; os.environ['NUMBA_NUM_THREADS'] = '-1'")
    assert "compiling for CUDA: its packages cannot be imported (Number of threads" in said


def test_with_a_numpy_that_is_too_new() -> None:
    """numba-cuda 0.30 asks for np.row_stack, which NumPy 2.5 has no longer."""
    said = refusal("import numpy\nvars(numpy).pop('row_stack', None)")
    assert "numba-cuda does not work with NumPy" in said and "mxc-compiler[cuda]" in said
