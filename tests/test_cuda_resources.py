"""What kernels take of a GPU, as their machine code says it, and the times that follow."""
from __future__ import annotations

import json
from pathlib import Path

import networks
import pytest
from cuda_cases import CASES

from mxc.cli.main import USAGE, main
from mxc.compiler.error import MXNetError, TargetError
from mxc.compiler.targets.cuda.code import compile_kernel, toolchain
from mxc.compiler.targets.cuda.estimate import LAUNCH, MEMORY, machine, seconds
from mxc.compiler.targets.cuda.resources import Resources, resources


def test_occupancy() -> None:
    """By hand: 65536 registers of a multiprocessor are 4 blocks of 4 warps with 128 registers a thread."""
    assert Resources(128, 0, 0).occupancy(128, "sm_90") == (0.25, "registers")
    assert Resources(32, 0, 0).occupancy(128, "sm_90") == (1.0, "threads")
    assert Resources(32, 0, 48 << 10).occupancy(128, "sm_90") == (0.25, "shared memory")  # 4 of 49 KB in 228 KB
    assert Resources(33, 0, 0).occupancy(128, "sm_80") == (0.75, "registers")  # a warp gets 1280, a block 5120: 12
    assert Resources(16, 0, 0).occupancy(32, "sm_80") == (0.5, "blocks")


def test_what_is_no_code() -> None:
    for data in (b"", b"\x7fELF", b"\x7fELF" + bytes(200)):
        with pytest.raises(MXNetError, match="cannot be read"):
            resources(data)


def test_times() -> None:
    on = machine("sm_90")
    assert seconds(on, 0, 0, 1) == LAUNCH
    many = seconds(on, 1 << 30, 0, 10_000)
    assert many == pytest.approx((1 << 30) / (3.35e12 * MEMORY) + LAUNCH)
    assert seconds(on, 1 << 30, 0, 66) - LAUNCH == pytest.approx(2 * (many - LAUNCH))  # half of the multiprocessors
    with pytest.raises(TargetError, match=r"cuda:sm_75: times are told for sm_80, sm_90, sm_100"):
        machine("sm_75")


def test_of_a_kernel() -> None:
    try:
        toolchain()
    except TargetError as error:
        pytest.skip(str(error))
    found = resources(compile_kernel(next(k for k in CASES if k.name.startswith("rows sum")), "k", "sm_90").cubin)
    assert 8 < found.registers < 128 and found.stack == 0
    kernel = next(k for k in CASES if k.name == "one point")
    assert resources(compile_kernel(kernel, "k", "sm_80").cubin).shared == 0


def test_inspect(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        toolchain()
    except TargetError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    networks.perceptron().save("net-symbol.json")
    command = ["inspect", "net-symbol.json", "--shape", "data=2,64", "--target"]
    assert main([*command, "cuda:sm_90", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["kernels"]
    assert told["machine"] == "H100 SXM" and not told["without_code"]
    assert all(0 < step["occupancy"] <= 1 and step["stack"] == 0 for step in told["steps"])
    assert told["microseconds"] == pytest.approx(sum(step["microseconds"] for step in told["steps"]))
    assert {step["library"] for step in told["steps"] if step["flops"]} == {"cuBLASLt"}
    assert main([*command, "cuda:sm_90"]) == 0
    out = capsys.readouterr().out
    assert "predicted for an H100 SXM" in out and "cuBLASLt: where it is there and faster" in out
    assert main([*command, "sm_90"]) == USAGE
