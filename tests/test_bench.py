"""The benchmark's own parts, without its peers: arithmetic, comparison, the cases' graphs and who covers them."""
from __future__ import annotations

import ast
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).parents[1] / "bench"
sys.path.append(str(BENCH))

import codegen  # noqa: E402
import gpu  # noqa: E402
from cases import operators as measured  # noqa: E402
from cases import registry, saved, vision  # noqa: E402
from harness import measure, table  # noqa: E402
from peers import graph, numpy_peer, small_graphs  # noqa: E402

import mxc as mx  # noqa: E402
from mxc.compiler.kernel.canonical import lanes  # noqa: E402
from mxc.compiler.kernel.ir import LoopKernel, RoutineKernel  # noqa: E402
from mxc.compiler.ops import table as mx_table  # noqa: E402
from mxc.compiler.targets.cpu.emit import skeletons  # noqa: E402
from mxc.compiler.targets.cpu.target import CpuTarget  # noqa: E402
from mxc.compiler.targets.reference import interpreter  # noqa: E402

# Families that bench/operators.py leaves out: MXNet has no kernels for a CPU, other scripts measure them, or they are
# made by passes.
NOT_MEASURED = {"fourier", "optimizer", "fused"}
ENTRIES = {e.name: e for e in registry.entries(Path("nowhere"))}


@pytest.mark.parametrize("name", codegen.forms())
def test_what_the_generators_are_compared_with_has_its_form(name: str) -> None:
    kernel = codegen.typed_kernel(*codegen.forms()[name], CpuTarget())
    if isinstance(kernel, RoutineKernel):
        assert name == "routine"
        return
    assert isinstance(kernel, LoopKernel)
    found = {"lanes": lanes(kernel) > 0, "tiled": skeletons.is_tiled(kernel),
             "streamed": bool(skeletons.streams(kernel))}
    special = [form for form, there in found.items() if there]
    assert (special or [skeletons.skeleton(kernel)]) == [name.removesuffix(" of functions")]


def computed(symbol: mx.sym.Symbol, values: dict[str, np.ndarray]) -> np.ndarray:
    """The reference's value of the symbol's one output."""
    return interpreter.run(symbol.graph, values, {})[symbol.graph.outputs[0]]


def test_drift_is_corrected():
    seconds = [1.0, 2.0, 1.0, 4.0, 1.1]
    anchors = [0.1, 0.2, 0.1, 0.4, 0.11]  # the machine was slower by the same factors
    alone = measure.corrected({"mxc": seconds}, {"mxc": anchors})
    assert alone == {"mxc": pytest.approx([1.1] * 5)}
    assert measure.corrected({"mxc": [3.0]}, {"mxc": [0.7]}) == {"mxc": pytest.approx([3.0])}
    assert measure.corrected({}, {}) == {}


def test_what_one_anchor_met_corrects_nothing():
    anchors = {"mxc": [0.1, 0.1, 0.1], "torch": [0.1, 0.1, 0.1], "jax": [0.1, 0.4, 0.1], "broken": [0.1]}
    times = {"mxc": [1.0] * 3, "torch": [2.0] * 3, "jax": [3.0] * 3}
    assert measure.corrected(times, anchors) == {name: pytest.approx(t) for name, t in times.items()}


def test_difference_of_results():
    ours: list[measure.Output] = [([2, 2], 4.0, [1.0, 2.0, 3.0, 4.0])]
    assert measure.difference(ours, [([4], 4.0, [1.0, 2.0, 3.0, 4.003])]) == ""
    assert "off by" in measure.difference(ours, [([2, 2], 4.0, [1.0, 2.0, 3.0, 4.01])])
    assert "off by" in measure.difference(ours, [([2, 2], 4.0, [1.0, float("nan"), 3.0, 4.0])])
    assert "off by inf" in measure.difference([([1], 1.0, [float("inf")])], [([1], 1.0, [float("inf")])])
    assert "shape" in measure.difference(ours, [([2], 4.0, [1.0, 2.0])])
    assert "outputs" in measure.difference(ours, [])
    assert measure.difference([*ours, ([1], 1e-7, [1e-7])], [*ours, ([1], 1e-7, [-1e-7])]) == ""
    assert "output 1 is off" in measure.difference([*ours, ([1], 1e-3, [1e-3])], [*ours, ([1], 1e-3, [-1e-3])])
    whole, rounding = np.array([[1.0, -4.0]], "float32"), np.array([1e-7], "float32")
    assert measure.difference([whole, rounding], [whole.ravel() + 0.003, -rounding]) == ""
    assert "output 0 is off by 0.01, with values up to 3.99" in measure.difference([whole], [whole + np.float32(0.01)])
    assert "off by inf" in measure.difference([whole], [whole * np.nan])
    assert measure.difference([np.array([3], "uint8")], [np.array([4], "uint8")], 0.5) == ""
    assert measure.difference([np.zeros((0, 3))], [np.zeros((0, 3))]) == ""


class Peer:
    """A worker that answers at once, from a script."""

    def __init__(self, name: str, values: list[float], seconds: float, reason: str = ""):
        self.name, self.values, self.seconds, self.reason, self.asked = name, values, seconds, reason, 0

    def ask(self, do: str, **request: object) -> dict:
        if do == "load":
            return {"unsupported": self.reason} if self.reason else {"outputs": [([2], 2.0, self.values)], "seconds": 9}
        self.asked += 1
        if self.seconds < 0:
            raise measure.Stopped("crashed")
        return {"seconds": self.seconds, "anchor": 1.0}


def test_measure_takes_those_that_agree():
    peers = [Peer("mxc", [1, 2], 0.01), Peer("torch", [1, 2], 0.03), Peer("jax", [1, 3], 0.03),
             Peer("numpy", [1, 2], -1), Peer("numexpr", [], 0, "no such expression")]
    result = measure.measure(peers, Path("case"), 5, 60)  # type: ignore[arg-type]
    assert result.times == {"mxc": [0.01] * 5, "torch": [0.03] * 5}
    assert "another result" in result.failures["jax"] and result.failures["numpy"] == "crashed"
    assert result.reasons == {"numexpr": "no such expression"}
    assert measure.measure(peers[:2], Path("case"), 50, 0.01).times["mxc"] == [0.01] * 3  # type: ignore[arg-type]


def test_table():
    times = {"mxc": [2e-3, 1e-3, 4e-3], "torch": [3e-3, 3e-3, 2e-3], "jax": []}
    assert table.ratios({"times": times}) == {"torch": (pytest.approx(2.0), pytest.approx(1.5))}
    even = {"times": times, "corrected": {"mxc": [1.0, 1.0], "torch": [4.0, 4.0]}}
    assert table.ratios(even) == {"torch": (pytest.approx(2.0), pytest.approx(4.0))}
    result = {"times": times, "failures": {"openvino": "crashed"}}
    peers = ["mxc", "torch", "openvino", "jax"]
    assert table.row("mlp", result, peers).split() == ["mlp", "1.000/2.000", "2.00/1.50", "FAILED", "-"]
    assert len(table.header(peers)) == len(table.row("mlp", result, peers))
    assert table.row("mlp", {"times": {"torch": [1.0]}, "failures": {"mxc": "wrong"}}, peers).split()[1:3] == [
        "FAILED", "-"]


def test_compare():
    def run(**ratio: float) -> dict:
        return {"threads": {"1": {case: {"times": {"mxc": [1.0], "torch": [r]}} for case, r in ratio.items()}}}

    lines = table.comparison(run(a=1.0, b=1.0, c=1.0, d=1.0), run(a=1.2, b=0.8, c=1.01, e=1.0))
    assert [line.split()[1] for line in lines] == ["a", "b", "c"]
    assert lines[0].endswith("+20.0%  better") and lines[1].endswith("-20.0%  WORSE") and lines[2].endswith("+1.0%")


@pytest.mark.parametrize(("build", "millions"), [
    (vision.resnet18, 11.69), (vision.resnet50, 25.56), (vision.mobilenet_v2, 3.50), (vision.vgg16, 138.36),
    (vision.densenet121, 7.98), (vision.squeezenet, 1.24)])
def test_networks_have_the_parameters_of_their_papers(build, millions):
    shapes, outputs, _ = build().infer_shape(data=(1, 3, 224, 224))
    assert outputs == [(1, 1000)]
    assert sum(np.prod(s) for s in shapes[1:]) / 1e6 == pytest.approx(millions, abs=0.006)


@pytest.mark.parametrize("name", sorted(numpy_peer.NUMPY))
def test_chains_are_what_numpy_computes(name):
    entry = ENTRIES[name]
    small = {n: tuple(min(size, 24) for size in shape) for n, shape in entry.shapes.items()}
    values = {n: graph.values(n, shape) for n, shape in small.items()}
    symbol = entry.build()
    got = computed(symbol, values)
    wanted = numpy_peer.NUMPY[name](*[values[n] for n in symbol.list_arguments()])
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def operators(peer: str) -> set[str]:
    """The keys of a peer's OPS, read from its source: the peer itself need not be installed."""
    for node in ast.parse((BENCH / "peers" / f"{peer}.py").read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "OPS":
            assert isinstance(node.value, ast.Dict)
            return {key.value for key in node.value.keys if isinstance(key, ast.Constant)}
    raise AssertionError(f"{peer} has no OPS")


@pytest.mark.parametrize(("module", "peers"), [("torch_peer", {"torch", "torch.compile"}), ("jax_peer", {"jax"}),
                                               ("onnx_export", {"onnxruntime", "openvino"})])
def test_peers_cover_the_operators_of_what_they_are_asked(module, peers):
    known = operators(module)
    for entry in ENTRIES.values():
        if entry.file is None and entry.family != "convolutions" and peers & {*entry.peers, *entry.main}:
            assert not graph.missing(entry.case().nodes, known), entry.name


def test_a_case_survives_its_file(tmp_path):
    case = ENTRIES["resnet18 step"].case()
    case.save(tmp_path / "case.json")
    read = graph.Case.load(tmp_path / "case.json")
    assert read == case
    assert "data" not in read.wrt and "softmax_label" not in read.wrt and read.aux
    assert set(ENTRIES["lstm"].case().wrt) == {"data", "lstm_parameters"}


def test_a_graph_as_a_function():
    case = ENTRIES["tiny"].case()
    ops = {"tanh": np.tanh, "elemwise_mul": np.multiply, "elemwise_add": np.add, "dot": np.dot,
           "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0),
           "_mul_scalar": lambda x, scalar: x * scalar, "_plus_scalar": lambda x, scalar: x + scalar,
           "softmax": lambda x, axis: np.exp(x) / np.exp(x).sum(axis, keepdims=True)}
    arrays = case.arrays()
    (got,) = graph.function(case, ops, {n: f"values[{n!r}]" for n in arrays}, "values")(arrays)
    assert sum(n.op != "null" for n in case.nodes) == 10
    np.testing.assert_allclose(got, computed(ENTRIES["tiny"].build(), arrays), rtol=1e-5)
    with pytest.raises(graph.Unsupported, match="no sigmoid, tanh"):
        graph.function(case, {k: v for k, v in ops.items() if k not in ("tanh", "sigmoid")}, {}, "values")


@pytest.mark.parametrize("convention", ["valid", "full"])
@pytest.mark.parametrize("size", [7, 8, 9])
def test_pooling_windows(convention, size):
    attrs = {"kernel": (3, 2), "stride": (2, 3), "pad": (1, 0), "pooling_convention": convention}
    (kernel, stride, padding) = graph.pooling(attrs, (size, size))
    got = [(size + sum(p) - k) // s + 1 for k, s, p in zip(kernel, stride, padding, strict=True)]
    _, (shape,), _ = mx.sym.Pooling(mx.sym.Variable("x"), **attrs).infer_shape(x=(1, 1, size, size))
    assert (1, 1, *got) == shape


def test_heads_are_the_last_convolutions(tmp_path):
    net = mx.sym.Variable("data")
    first = mx.sym.Convolution(net, kernel=(1, 1), num_filter=2, name="first")
    one = mx.sym.Convolution(mx.sym.relu(first), kernel=(1, 1), num_filter=3, name="one")
    two = mx.sym.Convolution(first, kernel=(1, 1), num_filter=4, name="two")
    mx.sym.Concat(one, mx.sym.sigmoid(two), dim=1).save(str(tmp_path / "net.json"))
    assert saved.heads(tmp_path / "net.json").list_outputs() == ["one_output", "two_output"]


def test_words_choose_cases():
    def names(*words: str, quick: bool = False) -> list[str]:
        return [e.name for e in registry.chosen(Path("nowhere"), list(words), quick)]

    assert names("lenet") == ["lenet step"]  # not mobilenet
    assert names("tiny", "mlp step") == ["mlp step", "tiny"]
    assert names("chains") == [name + size for size in ("", " small")
                               for name in ("chain", "gelu", "gelu tanh", "softmax", "layernorm")]
    assert "resnet50 b1" in names(quick=True) and "vgg16 b1" not in names(quick=True)
    assert len(names()) == len(set(names())) > 100


def test_a_run_and_another_that_is_compared_with_it(tmp_path):
    """The whole script on one case, with this Python as the peer's: no environment is made."""
    variables = {k: v for k, v in os.environ.items() if k != "BENCH_PEERS"} | {"XDG_CACHE_HOME": str(tmp_path)}
    old = tmp_path / "old.json"

    def run(*arguments: str) -> str:
        done = subprocess.run([sys.executable, str(BENCH / "networks.py"), "--quick", "--python",
                               f"numpy={sys.executable}", "--cases", "sgemm 64x784x512", *arguments],
                              capture_output=True, text=True, timeout=300, env=variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    first = run("--peers", "numpy", "--json", str(old))
    (row,) = (line.split() for line in first.splitlines() if line.startswith("sgemm 64x784x512"))
    assert len(row) == 4 and all(float(ratio) > 0 for ratio in row[-1].split("/")) and f"written: {old}" in first
    times = json.loads(old.read_text())["threads"]["1"]["sgemm 64x784x512"]["times"]
    assert {name: len(each) >= 3 for name, each in times.items()} == {"mxc": True, "numpy": True}
    variables["BENCH_PEERS"] = "numpy"
    second = run("--compare", str(old))
    assert f"ratio before and now, against {old}" in second and second.count("sgemm 64x784x512") == 2
    assert (tmp_path / "mxc-bench" / "networks.json").exists()
    alone = run("--python", "numpy=/nonexistent/python")
    assert "skipped numpy: --python numpy=/nonexistent/python: there is no such program" in alone
    assert len(next(line for line in alone.splitlines() if line.startswith("sgemm 64x784x512")).split()) == 3


@pytest.mark.parametrize(("arguments", "said"), [
    (["--peers", "nosuch"], "no peer nosuch; there are mxc, mxnet"), (["--python", "nosuch=python"], "no peer nosuch"),
    (["--cases", "nosuch"], "no case is or begins with nosuch"), (["--compare", "none.json"], "--compare none.json: "),
    (["--compare", __file__], "test_bench.py: ")], ids=["peer", "python", "case", "no file", "another file"])
def test_what_a_run_is_told_wrongly(arguments, said):
    done = subprocess.run([sys.executable, str(BENCH / "networks.py"), *arguments], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr


def test_small_graphs_are_the_same_each_time() -> None:
    """Of each kind two; the shapes that are given determine all others."""
    seen = set()
    for number in range(2 * len(small_graphs.KINDS)):
        make = small_graphs.KINDS[number % len(small_graphs.KINDS)]
        (one, shapes, frozen), again = (make(mx, random.Random(number)) for _ in range(2))
        assert (shapes, frozen) == again[1:] and frozen <= set(shapes) <= set(one.list_arguments())
        assert one.infer_shape(**shapes)[1] == again[0].infer_shape(**shapes)[1] != None  # noqa: E711
        seen.add((one.tojson(), str(shapes)))
    assert len(seen) == 2 * len(small_graphs.KINDS)


def test_operators_of_every_family_are_measured() -> None:
    covered = {mx_table.get(case.op).family for case in measured.CASES.values()} | {"storage"}
    families = {op.family for op in mx_table.all_operators()}
    assert families - covered == NOT_MEASURED
    names = {case.name for case in measured.CASES.values()}
    assert {*measured.QUICK} <= names and len(names) == len(measured.CASES)


@pytest.mark.parametrize("name", measured.CASES)
def test_what_is_measured_can_be_bound(name: str) -> None:
    case = measured.CASES[name]
    params = mx_table.get(case.op).make_params(case.attrs)
    wanted = mx_table.get(case.op).input_names(params)
    assert len(wanted) <= len(case.shapes) + len(mx_table.get(case.op).aux_names(params))
    assert {*case.whole, *case.spans, *case.fixed, *case.dtypes} <= {*case.shapes}


def stand_in(folder: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> list[gpu.Row]:
    """The rows of a part whose process is this program."""
    file = folder / "part.py"
    file.write_text(program)
    monkeypatch.setattr(gpu, "__file__", str(file))
    monkeypatch.setattr(gpu, "GRACE", 1.0)
    return list(gpu.Part("loops", 1.0, folder).rows())


def test_a_part_that_hangs_or_dies_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = """print('@ROW {"part": "loops", "name": "first"}\\n@BEGIN "second"', flush=True)\n"""
    found = stand_in(tmp_path, row + "import time; time.sleep(60)", monkeypatch)
    assert [(each.name, each.verdict) for each in found] == [("first", "ok"), ("second", "FAILED")]
    assert "ended after 2 s" in found[1].note
    found = stand_in(tmp_path, row + "raise ValueError('broken')", monkeypatch)
    assert [(each.name, each.verdict) for each in found] == [("first", "ok"), ("second", "FAILED")]
    assert "ended with 1: ValueError: broken" in found[1].note


def test_the_check_of_a_gpu_is_rehearsed(tmp_path: Path) -> None:
    told = tmp_path / "rows.json"
    command = [sys.executable, str(BENCH / "gpu.py"), "--parts", "loops", "products", "overlap", "sums",
               "--json", str(told)]
    settings = {"NUMBA_ENABLE_CUDASIM": "1", "MXC_SIMULATED_GPUS": "2"}
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(told.read_text())["rows"]
    assert [(row["name"], row["verdict"]) for row in rows] == [
        ("a copy", "ok"), ("softmax", "ok"), ("sgemm 5x9x7", "ok"), ("to the GPU", "ok"),
        ("to the GPU, page-locked", "ok"), ("back, page-locked", "ok"), ("batches of a loader", "ok"),
        ("NCCL", "not reached"), ("copies and sums", "ok")]
    assert {"kernel", "library"} <= set(rows[2]["peers"]) and not {"kernel", "library"} & set(rows[1]["peers"])
    assert all("hidden" in row["note"] for row in rows[3:6]) and "simulated" in rows[7]["note"]
    assert "0 FAILED" in done.stdout

