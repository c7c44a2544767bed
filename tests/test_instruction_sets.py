"""Instruction sets: kernels of those that this machine lacks, and whole networks on those that it has."""
from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import level_networks
import numpy as np
import pytest
import test_blocked
import test_plain_winograd
import test_quads
import test_strides
import test_tiled
import test_winograd
from instruction_sets import OWN, RUNNING, SETS, InstructionSet, filled, report
from kernel_cases import every_kernel
from library_cases import (
    DEPTHWISE,
    GEMMS,
    KINDS,
    PANELS,
    PLANES,
    POOLS,
    SMALL_MAPS,
    WINDOWS,
    convolution_case,
    depthwise_case,
    gemm_case,
    panel_case,
    plane_case,
    quad_case,
    spread_case,
    window,
)
from programs import lowered

from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.build.jobs import job_of
from mxc.compiler.targets.cpu.machine import host
from mxc.compiler.targets.cpu.machine.isa import AMX, NEON, Isa, native
from mxc.compiler.targets.cpu.machine.levels import LEVELS, Level

OTHERS = [each for each in SETS if each.processor is None or each.is_emulated]
FLAGS = frozenset(host.host_parts()["features"].split())
HERE = [level for level in LEVELS.values() if level.flags <= FLAGS]


def templates(isa: Isa) -> list[CallKernel]:
    """A kernel of every template of the library that the set has."""
    forms = [gemm_case(case, isa) for case in (GEMMS[1], GEMMS[11], GEMMS[13], GEMMS[21])]
    forms.append(test_strides.case(test_strides.SIZES[0], "float32"))
    for kind in KINDS:
        forms += [convolution_case(kind, WINDOWS["stride"], "float32", isa),
                  depthwise_case(kind, DEPTHWISE["stride"], "float32")]
    forms += [convolution_case(kind, SMALL_MAPS["stride"], "float32", isa, by_images=True) for kind in KINDS[:2]]
    forms += [depthwise_case("pool", POOLS["overlap"], "float32"), spread_case(POOLS["overlap"], "float32", "inside"),
              panel_case(PANELS["stride"], "float32", isa), quad_case(PANELS["stride"], isa)]
    forms += [plane_case(kind, PLANES["stride"], "float32", isa, vectors=n) for kind in KINDS[:2] for n in (0, 2)]
    forms += [test_blocked.case(test_blocked.WINDOWS["same"], dtype, isa) for dtype in ("float32", "float16")]
    forms += [test_quads.case(test_blocked.WINDOWS["same"], dtype, isa) for dtype in ("uint8", "int8")]
    forms += [test_blocked.depthwise_case(test_blocked.DEPTHWISE["same"], "float32", isa)]
    forms += [test_winograd.kernel_case(test_winograd.SIZES["several images"], isa)]
    if isa.tiles:
        forms += [test_tiled.case(test_blocked.WINDOWS["same"], dtype) for dtype in test_tiled.DTYPES]
    forms += [test_tiled.product_case(test_tiled.PRODUCTS[3], kind, isa) for kind in test_tiled.KINDS]
    side, _ = test_winograd.given_case(test_winograd.SIZES["several images"], isa)[0]
    forms += test_plain_winograd.every_kernel(test_plain_winograd.geometry(*test_plain_winograd.SIZES["two"], isa), isa)
    return [*(call for call, _ in forms), side]


def test_every_template_is_there() -> None:
    assert {call.template for call in templates(AMX)} == set(library.MODULES)


@pytest.mark.skipif(not OTHERS, reason="this machine has every set")
@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_kernels_of_other_sets_compile(other: InstructionSet) -> None:
    """Every template, and some of the loops."""
    try:
        assert other.generator
    except RuntimeError:
        pytest.skip(f"LLVM was built without {other.machine}")
    for kernel in (*templates(other.isa), *every_kernel()[::9]):
        assert other.object_of(job_of(kernel, "kernel", other.isa)), kernel.name


@pytest.mark.slow
@pytest.mark.parametrize("chosen", SETS, ids=str)
def test_something_runs_the_set(chosen: InstructionSet) -> None:
    """Its tests are there then; else this says what is missing."""
    if chosen.processor is None:
        pytest.skip(f"{chosen}: {chosen.missing}")
    assert chosen in RUNNING


def test_the_report_names_every_set() -> None:
    text = "\n".join(report())
    assert all(each.name in text for each in SETS)


def test_the_widest_set_is_what_the_machine_has() -> None:
    assert OWN.isa is native()
    assert not OWN.is_emulated and (OWN.isa is NEON) == (OWN.machine == "aarch64")


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_windows_fill_blocks(lanes: int) -> None:
    w = filled(window(2, 3, 8, 40, (1, 5, 5), (1, 3, 3)), lanes)
    assert (w.groups, w.channels % lanes, w.filters % lanes) == (3, 0, 0) and w.channels < 8 + lanes
    assert filled(window(2, 8, 1, 1, (1, 5, 5), (1, 3, 3)), lanes).groups == max(8, lanes)


# --- whole networks


@functools.cache
def by_definition(name: str, train: bool) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """A network's arguments, and what the definitions of kernels give, with tiles that no machine has."""
    symbol, shapes = level_networks.built()[name]
    given = level_networks.values(symbol, shapes)
    requests = dict.fromkeys(symbol.list_arguments(), "write") if train else {}
    program = lowered(symbol.graph, shapes, {}, requests, train)
    heads = {s.name: s for launch in program.launches for s in launch.storages if s.pool == "head"}
    rng = np.random.default_rng(1)
    given |= {f"_head_grad_{n}": rng.standard_normal(s.shape).astype(s.dtype) for n, s in heads.items()}
    return given, program.run(given)[0]


def check_network(name: str, train: bool, instructions: InstructionSet) -> None:
    symbol, shapes = level_networks.built()[name]
    given, expected = by_definition(name, train)
    requests = dict.fromkeys(symbol.list_arguments(), "write") if train else {}
    program = lowered(symbol.graph, shapes, {}, requests, train, instructions.target)
    found, _ = program.run(given, run=instructions.run)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * max(1e-3, float(np.abs(other).max())))


NAMES = ["LeNet", "residual", "mobile", "LSTM"]


@pytest.mark.parametrize("name", NAMES)
def test_networks(name: str, instructions: InstructionSet) -> None:
    check_network(name, False, instructions)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_training(name: str, instructions: InstructionSet) -> None:
    check_network(name, True, instructions)


as_this_process_runs_them = functools.cache(level_networks.results)


@pytest.mark.parametrize("mode", ["inference", pytest.param("training", marks=pytest.mark.slow)])
@pytest.mark.parametrize("level", HERE[:1] + [pytest.param(level, marks=pytest.mark.slow) for level in HERE[1:-1]]
                         + HERE[1:][-1:], ids=lambda level: level.name)
def test_networks_at_a_level_of_cpus(level: Level, mode: str, tmp_path: Path) -> None:
    """In a process of its own, with executors."""
    command = [sys.executable, level_networks.__file__, mode, str(tmp_path / "results.npz")]
    done = subprocess.run(command, env={**os.environ, "MXC_CPU": level.name, "MXC_CACHE_DIR": ""}, capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    expected = as_this_process_runs_them(mode == "training")
    with np.load(tmp_path / "results.npz") as found:
        assert set(found) == set(expected)
        for name, want in expected.items():
            np.testing.assert_allclose(found[name], want, rtol=0, atol=1e-4 * max(1e-3, float(np.abs(want).max())),
                                       err_msg=name)
