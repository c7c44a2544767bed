"""The CPU target: launches, cached and compiled kernels, warm starts, several compiling processes."""
from __future__ import annotations

import os
import platform
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from kernel_cases import F, arrays_for, call, compare, expected, pointwise
from library_cases import gemm_case

from mxc.compiler.cache import Cache, Claims
from mxc.compiler.error import MXNetError
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import LoopKernel, apply, axis, cast, const, load
from mxc.compiler.system import progress
from mxc.compiler.targets.cpu import library, runner_ir
from mxc.compiler.targets.cpu import target as target_module
from mxc.compiler.targets.cpu.build import load as load_module
from mxc.compiler.targets.cpu.build import worker
from mxc.compiler.targets.cpu.build.jobs import job_of
from mxc.compiler.targets.cpu.machine.isa import AVX512, PLAIN
from mxc.compiler.targets.cpu.target import CpuTarget
from mxc.compiler.targets.launch import sources_digest


def scaled(factor: float, count: int = 100) -> LoopKernel:
    return canonical(pointwise("scale", (F, F), [apply("mul", load(0, axis(0), F), const(factor, F))], count))


def run(target: CpuTarget, kernel: LoopKernel):
    launch = target.launch(kernel)
    loaded = target.load({launch.key: kernel})
    arrays = arrays_for(kernel)
    want = expected(kernel, arrays)
    call(loaded.address(launch.key), kernel, arrays, [(0, launch.units)], launch.scratch_bytes)
    compare(kernel, arrays, want)
    return loaded


def test_shapes_share_code_and_constants_do_not() -> None:
    target = CpuTarget()
    keys = [target.launch(k).key for k in (scaled(2.0), scaled(2.0, 90000), scaled(3.0))]
    assert keys[0] == keys[1] != keys[2]
    assert target.launch(scaled(2.0, 90000)).units == 11


def test_miss_then_hit_then_rebuilt(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    kernel = scaled(2.5)
    first = run(CpuTarget(cache=Cache(tmp_path)), kernel)
    assert (first.hits, first.misses) == (0, 1) and first.compile_seconds > 0
    second = run(CpuTarget(cache=Cache(tmp_path)), kernel)
    assert (second.hits, second.misses) == (1, 0)
    entry = Cache(tmp_path).place(CpuTarget().launch(kernel).key)
    entry.write_bytes(entry.read_bytes()[:-1])
    with pytest.warns(RuntimeWarning, match="built anew"):
        third = run(CpuTarget(cache=Cache(tmp_path)), kernel)
    assert third.misses == 1 and (tmp_path / entry.name).exists()


def test_another_cpu_is_a_miss() -> None:
    kernel = scaled(2.0)
    keys = {CpuTarget(cpu, features).launch(kernel).key for cpu, features in (("", ""), ("x86-64", ""), (
        "x86-64", "+avx2"))}
    assert len(keys) == 3


def test_unknown_key() -> None:
    with pytest.raises(MXNetError, match="no kernel"):
        CpuTarget().load({}).address("x")


WARM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_cpu_target import scaled, run, CpuTarget, Cache
library = run(CpuTarget(cache=Cache(Path(sys.argv[1]))), scaled(2.5))
assert (library.hits, library.misses) == (1, 0), library
assert "mxc.compiler.targets.cpu.emit.translate" not in sys.modules
"""


def test_warm_start_of_another_process_needs_no_compiler(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    sources_digest.cache_clear()  # of the files as the other process finds them
    run(CpuTarget(cache=Cache(tmp_path)), scaled(2.5))
    done = subprocess.run([sys.executable, "-c", WARM, str(tmp_path), str(Path(__file__).parent)], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr


def test_functions_of_ir_text_come_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chmod(tmp_path, 0o700)
    text = runner_ir.runner_source(platform.machine())
    names = ["mxc_run", "mxc_worker"]
    first = CpuTarget(cache=Cache(tmp_path)).functions(text, names)
    monkeypatch.setattr(load_module, "optimised", None)
    second = CpuTarget(cache=Cache(tmp_path)).functions(text, names)
    assert first.keys() == second.keys() == set(names) and all(second.values())


def test_several_processes_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SHARE", 1)
    monkeypatch.setenv("MXC_NUM_THREADS", "2")
    target = CpuTarget()
    kernels = [scaled(float(n)) for n in (5, 6)]
    launches = [target.launch(k) for k in kernels]
    library = target.load({launch.key: k for launch, k in zip(launches, kernels, strict=True)})
    for kernel, launch in zip(kernels, launches, strict=True):
        arrays = [np.ones(100, F), np.zeros(100, F)]
        call(library.address(launch.key), kernel, arrays, [(0, launch.units)], 0)
        np.testing.assert_array_equal(arrays[1], float(kernel.stores[0].value.args[1].data))


def test_float16_without_the_instructions() -> None:
    halves = np.arange(1 << 16, dtype="uint16").view("float16")
    x = load(0, axis(0), "float16")
    wide = [cast(x, F), cast(load(1, axis(0), F), "float16")]
    kernel = canonical(pointwise("half", ("float16", F, F, "float16"), wide, 1 << 16))
    target = CpuTarget("x86-64", "")
    launch = target.launch(kernel)
    floats = np.random.default_rng(0).integers(0, 2**32, 1 << 16, dtype="uint32").view(F)
    with np.errstate(all="ignore"):
        floats[::2] = (halves.astype(F) * np.float32(1.0003))[::2]
    arrays = [halves, floats, np.zeros(1 << 16, F), np.zeros(1 << 16, "float16")]
    call(target.load({launch.key: kernel}).address(launch.key), kernel, arrays, [(0, launch.units)], 0)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(arrays[2], halves.astype(F))
        np.testing.assert_array_equal(arrays[3], floats.astype("float16"))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="CPUs of x86-64")
@pytest.mark.parametrize("cpu", ["skylake-avx512", "sapphirerapids", "znver4", "x86-64-v4"])
def test_loops_use_the_whole_of_a_register(cpu: str) -> None:
    target = load_module.machine(cpu, AVX512.features)
    module = worker.module_of(job_of(scaled(2.0), "f", AVX512), target, AVX512.features)
    assert "%zmm" in target.emit_assembly(module)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="CPUs of x86-64")
def test_library_kernels_for_another_cpu_use_its_instructions() -> None:
    """No 512-bit registers and no conversion of float16 in hardware, whatever this machine has."""
    old = CpuTarget("x86-64", "")
    assert old.isa is PLAIN and old.tile("float32") == PLAIN.tile("float32")
    call, _ = gemm_case((1, 5, 6, 7, "float16", False, False, False), PLAIN)
    assert old.launch(call).scratch_bytes == library.scratch_bytes(call, PLAIN)
    assert "fpext" not in job_of(call, "f", old.isa).text


def test_progress_is_told_and_misses_are_explained(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    kernels = {"scale": scaled(3.5), "again": scaled(4.5)}
    target, told = CpuTarget(cache=Cache(tmp_path)), []
    wanted = {target.launch(kernel).key: kernel for kernel in kernels.values()}
    assert set(target.explain(wanted).values()) == {"this kernel was not compiled before"}
    with progress.watched(lambda *what: told.append(what)):
        target.load(wanted)
    target.load(wanted)
    assert told == [(0, len(wanted), ""), *((i + 1, len(wanted), k.name) for i, k in enumerate(wanted.values()))]
    assert set(CpuTarget(cache=Cache(tmp_path)).explain(wanted).values()) == {""}
    assert {entry.reason for entry in Cache(tmp_path).entries()} == {"this kernel was not compiled before"}


class OneByOne(Claims):
    """Claims as another process meets them that waits for the same keys: a third stores all of them at once, and the
    other has the next key for as long as this process keeps the last one."""

    def __init__(self, store: Cache, entries: dict[str, bytes]):
        super().__init__(None)
        self.store, self.entries, self.kept = store, entries, set[str]()

    def take(self, key: str) -> bool:
        for name, code in self.entries.items():
            self.store.put(name, {}, code)
        if self.kept:
            return False
        self.kept.add(key)
        return True

    def release(self, key: str) -> None:
        self.kept.discard(key)


def test_what_others_stored_is_not_kept_from_a_third(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chmod(tmp_path, 0o700)
    kernels = {CpuTarget().launch(k).key: k for k in (scaled(2.5), scaled(3.5), scaled(4.5))}
    (tmp_path / "source").mkdir(mode=0o700)
    source = CpuTarget(cache=Cache(tmp_path / "source"))
    source.load(kernels)
    codes = {key: code for key in kernels if (code := source.cache.get(key)) is not None}
    store = Cache(tmp_path)
    claims = OneByOne(store, codes)
    monkeypatch.setattr(store, "claims", lambda: nullcontext(claims))
    polls: list[float] = []
    monkeypatch.setattr(target_module.time, "sleep", polls.append)
    loaded = CpuTarget(cache=store).load(kernels)
    assert (loaded.hits, loaded.misses) == (3, 0) and not polls and not claims.kept
