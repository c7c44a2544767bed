"""Run a network of reader_networks.py in memory that is poisoned, and compare it with the references in float64.

What passes decide by is lowered now and then, so that small networks are on both sides of it too.
"""
from __future__ import annotations

import ast
import contextlib
import ctypes
import importlib
import pkgutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from pass_checks import changed, options
from reader_networks import SIZES, Network, network

from mxc.compiler.graph.graph import Entry, Graph
from mxc.compiler.graph.purity import auxiliary_names
from mxc.compiler.graph.text import graph_text
from mxc.compiler.kernel.ir import CallKernel, ChainKernel, LoopKernel
from mxc.compiler.ops.operator import Kind
from mxc.compiler.ops.philox import Draws
from mxc.compiler.passes.gradient import gradient
from mxc.compiler.passes.infer import infer
from mxc.compiler.planning import plan_graph
from mxc.compiler.targets.cpu.emit import skeletons
from mxc.compiler.targets.cpu.target import cpu_target
from mxc.compiler.targets.reference.interpreter import evaluate
from mxc.runtime import runner
from mxc.runtime.array import Array
from mxc.runtime.context import cpu
from mxc.runtime.engine import Variable, wait_to_write
from mxc.runtime.executor import BoundArrays, GraphExecutor
from mxc.runtime.executor_memory import Memory, PreparedStorage

# Numbers that passes and kernels decide by, by module: what the search lowers them to now and then, where they are no
# part of printed code; BOTH where the networks' sizes are on both sides of them; NOT where no reader could notice, as
# they are bounds that no graph reaches, numbers of formulas, or what memory is aligned to.
BOTH, NOT = "sizes on both sides", "decides nothing"
THRESHOLDS: dict[str, dict[str, object]] = {
    "targets.cpu.preferences": {
        "blocks.map_pixels": 64, "blocks.data_elements": 4096, "blocks.waste": 1, "blocks.full": 0.1,
        "chains.private_bytes": 12 << 10, "chains.worthwhile_bytes": 1 << 10, "chains.units": 3,
        "chains.segment_rows": 3, "spreading.fewest_rows": 64, "spreading.small_space": 16, "packing.few_pixels": 16,
        "packing.point_map": 8, "packing.window_map": 32, "packing.few_channels": 40, "recomputing.worth_bytes": 64,
        "recomputing.most_nodes": 2, "joins.shortest": 32, "reductions.few": 2000, "reductions.long": 64,
        "reductions.part": 16, "winograd.transform": 1, "winograd.weight": 0, "winograd.gain": 0.01,
        "winograd.kept_bytes": BOTH, "winograd.kept_tiles": 1,
        "training_winograd.transform": 1, "training_winograd.weight": 0, "training_winograd.far_weight": 0,
        "training_winograd.gain": 0.01, "training_winograd.cache_bytes": NOT, "training_winograd.most_bytes": BOTH,
        "winograd.bands": 1, "winograd.line_bytes": NOT, "winograd.band": BOTH, "winograd.band_kernels": BOTH,
        "panels.fewest_pixels": 4, "panels.longest_row": 8, "panels.few_channels": 4, "planes.fewest_pixels": 4,
        "planes.filled": 0.2, "planes.row_bytes": 1 << 10, "filters.fewest_pixels": 4, "filters.shortest_sum": 1,
        "filters.row_bytes": 1 << 10, "products.few": 8, "tiles.words": BOTH,
        "products.moderate": (12, 48), "products.at_once": ((4, 2, 1 << 6), (8, 16, 1 << 8))},
    "operators.slices.graph": {"MOST_PARTS": 2}, "operators.reduction.graph": {"LONG": 2, "EXACT": NOT},
    "operators.regions.graph": {"LAST": NOT, "SECOND": NOT},
    "operators.losses.graph": {"LEAST": NOT},
    "operators.attention.graph": {"QUERIES": NOT, "KEYS": NOT, "VALUES": NOT},
    "operators.convolution.graph": {"FEWEST": 1}, "operators.fused.graph": {"LARGEST_BIAS": NOT},
    "operators.quantized.graph": {"BELOW_INT32": NOT, "EXACT_FLOAT32": BOTH, "LARGEST_PRODUCT": NOT},
    "operators.proposals.graph": {"LOWEST": NOT}, "operators.basic.graph": {"MOST_TERMS": 2},
    "lowering.fuse": {"MAX_NODES": 3, "MAX_BUFFERS": 4},
    "lowering.fuse_forms": {"MOST_JOINED": 1, "MOST_PLACES": 3, "MOST_REPEATS": 1},
    "lowering.index_reads": {"REMEMBERED": NOT},
    "passes.infer_shape": {"MOST_LINES": NOT},
    "lowering.plan_memory": {"ALIGNMENT": NOT, "MOST_COMPARED": 4},
    "operators.order.kernel": {"SPARE": 2},
    "operators.rnn.kernel": {"ROWS": 2}, "operators.losses.kernel": {"FAR": NOT},
    "operators.gather.kernel": {"AXES": NOT, "COLUMNS": 4, "PARTS": 3, "LOOK": 1},
    "lowering.share_code": {"ALIKE": 1},
    "passes.simplify": {"ROUNDS": NOT}, "passes.decompose": {"ROUNDS": NOT},
    "passes.simplify_rules.constants": {"LARGEST": 8}, "passes.simplify_rules.rule": {"DEEPEST": NOT},
    "lowering.split_joins": {"MOST": 2},
    "kernel.calls": {"TOGETHER": 2},
    "kernel.canonical": {"LANES": BOTH, "FEW": BOTH, "REMEMBERED": NOT, "SHORT_WINDOW": BOTH, "SHORTEST_SPLIT": BOTH,
                         "WINDOW_STEP": BOTH},
    "targets.cpu.emit.skeletons": {"STREAMED": 1 << 12, "CHUNK": BOTH, "COLUMNS": BOTH, "WIDE_BLOCK": BOTH,
                                    "TILE": BOTH, "TILE_ROWS": BOTH, "PIECE": BOTH, "ROW": BOTH, "SHORT_ROW": BOTH,
                                    "PARTIAL": BOTH, "MOST_LANES": NOT},
}
# What only divides a library kernel's own work, which the kernels' tests have on both sides; some networks are too.
LIBRARY = {
    "amx": "AT_ONCE COLUMNS_AT CONFIGURATION LINE ROWS ROWS_AT WORD",
    "tiled": "BAND_PIXELS COPY_BYTES COPY_WORTH FEWEST_PIXELS GRAIN_BYTES",
    "words": "CHUNK_ROWS GRAIN_BYTES PANELS STEP",
    "blocked": "BAND_PIXELS COPY_BYTES GRAIN_BYTES", "blocked_depthwise": "BAND_PIXELS PIXELS UNROLLED",
    "blocks": "AHEAD CHUNK_TILES DEPTH_BYTES LINE PANELS PANEL_BYTES", "convolution": "FILTERS", "cutting": "UNITS",
    "depthwise": "AT_ONCE BAND_ELEMENTS TAPS UNROLLED VECTORS", "epilogue": "BRIEF BRIEF_OF_QUADS",
    "gemm": "AHEAD DEPTH_BYTES KEPT_BYTES PANELS PART ROWS SQUARE UNIT_PRODUCTS",
    "image_lanes": "COPY_BYTES DEPTH_BYTES KEPT_BYTES NUMBERS TOGETHER VECTORS",
    "panels": "AHEAD LINES PANELS PANEL_BYTES", "planes": "AHEAD BAND_PIXELS COPY_BYTES DEPTH_BYTES WIDEST",
    "product": "BLOCK_BYTES", "taps": "AT_ONCE", "tile": "CHAINS LIFT STEP",
    "vector": "AHEAD AT_ONCE CHAINS LARGEST ROWS STEPS SUMS UNIT_PRODUCTS VECTORS",
    "weight_grad": "AHEAD COPY_BYTES FEW_PIXELS KEPT_BYTES LINES LINES_FACTOR PIXELS POINT_PIXELS",
    "plain_winograd": "BAND", "winograd": "AHEAD BAND_BYTES FILTERS PRODUCT_BYTES WEIGHT_BYTES WHERE",
    "winograd_side": "COPY_BYTES",
    "winograd_weight": "PART", "winograd_weight_grad": "CHUNK PART",
    "winograd_tiles": "PLACES READ RESULTS",
}
ROOTS = ("passes", "lowering", "operators", "kernel.calls", "kernel.canonical", "targets.cpu.emit.skeletons",
         "targets.cpu.library", "targets.cpu.preferences")
MARGIN = 64  # elements before and behind an array
# Of a dtype: what values are moved by to see what rounding does to results; and by which share of its largest number a
# result may be off without that.
NOISE = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-14}
USUAL = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-11}
LEAST = {"float16": 1e-6, "float32": 1e-35, "float64": 1e-300}  # what is smaller may be 0
DRAWS = 3  # of values, with all of which a wrong network is wrong: of one kind only, a sign or a maximum was undecided


@dataclass
class Report:
    """What a search has seen: how often kernels of each kind ran, and networks whose numbers tell nothing."""

    kinds: Counter[str] = field(default_factory=Counter)
    unsteady: int = 0

    def add(self, kernels: Mapping[str, Any]) -> None:
        for kernel in kernels.values():
            for each in (kernel, *(k for k, _ in kernel.calls())) if isinstance(kernel, ChainKernel) else (kernel,):
                self.kinds[kind(each)] += 1

    def __str__(self) -> str:
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.kinds.items()))
        return f"{self.unsteady} that rounding decides; kernels: {kinds}"


def kind(kernel: Any) -> str:
    """A library kernel's template, or what a loop kernel is on this CPU."""
    if isinstance(kernel, CallKernel):
        return kernel.template
    if not isinstance(kernel, LoopKernel):
        return type(kernel).__name__
    streamed = " past the caches" if skeletons.streams(kernel) else ""
    return skeletons.skeleton(kernel) + streamed


# --- thresholds


def modules() -> Iterator[str]:
    """The modules with what is decided by sizes, below mxc.compiler."""
    for name in ROOTS:
        module = importlib.import_module(f"mxc.compiler.{name}")
        yield name
        for info in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
            if name == "operators" and not info.name.endswith((".graph", ".kernel")):
                continue  # what operators mean, which nothing lowers
            yield info.name.removeprefix("mxc.compiler.")


def constants(module: str) -> set[str]:
    """The names that a module gives to numbers, or to tuples of them, and those of the figures in a target's
    preferences, as "chains.units"."""
    found = importlib.import_module(f"mxc.compiler.{module}")
    if module == "targets.cpu.preferences":
        return {f"{group}.{figure}" for group, own in asdict(found.FIGURES).items() for figure in own or ()}
    names: set[str] = set()
    for statement in ast.parse(Path(str(found.__file__)).read_text()).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", statement)]
        for target in targets if isinstance(statement, ast.Assign | ast.AnnAssign) else ():
            names |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and n.id.isupper()}
    return {name for name in names if _numeric(vars(found)[name])}


def _numeric(value: object) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_numeric, value))
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def lowered_for(seed: int) -> dict[tuple[str, str], object]:
    """The thresholds of a network's operators that are others than usual: of half of them none."""
    rng = np.random.default_rng([seed // SIZES, 1])
    lowerable = [(module, name, value) for module, own in THRESHOLDS.items() for name, value in own.items()
                 if value not in (BOTH, NOT)]
    share = rng.choice((0, 0, 0.15, 0.5))
    return {(module, name): value for module, name, value in lowerable if rng.random() < share}


@contextlib.contextmanager
def lowered(values: Mapping[tuple[str, str], object]) -> Iterator[None]:
    """With these thresholds, by module and name."""
    before = []
    for (module, name), value in values.items():
        place = importlib.import_module(f"mxc.compiler.{module}")
        if "." in name:
            name, value = "FIGURES", changed(place.FIGURES, {name: value})
        before.append((place, name, getattr(place, name)))
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in reversed(before):
            setattr(place, name, value)


# --- poisoned memory


class Poisoned(Memory):
    """Memory of an executor in which every byte is 0xFF, which as any float is NaN, until somebody writes it; and
    behind the arena there is some that nobody may write."""

    arena_bytes = 0

    def reserve(self, arena: int, scratch: int) -> None:
        self.arena_bytes = max(arena, self.arena_bytes)
        super().reserve(self.arena_bytes + MARGIN, scratch)
        self.poison()

    def poison(self, arena: bool = True) -> None:
        if arena and self.arena:
            ctypes.memset(self.arena, 0xFF, self.arena_bytes + MARGIN)
        if self.scratch:
            ctypes.memset(self.scratch, 0xFF, self.scratch_stride * runner.num_threads())

    def prepared(self, key: Any, nbytes: int) -> PreparedStorage:
        found = super().prepared(key, nbytes)
        if found.seen is None and nbytes:
            ctypes.memset(found.address, 0xFF, nbytes)
        return found

    def is_whole(self) -> bool:
        return not self.arena or ctypes.string_at(self.arena + self.arena_bytes, MARGIN) == b"\xff" * MARGIN


def amid(values: np.ndarray) -> Array:
    """The values as an array between two stretches of NaN."""
    whole = np.full(values.size + 2 * MARGIN, np.nan, values.dtype)
    whole[MARGIN:-MARGIN] = values.ravel()
    return Array(whole[MARGIN:-MARGIN].reshape(values.shape), cpu(), Variable())


def is_amid(array: Array) -> bool:
    whole = array.memory.base
    while whole.base is not None:
        whole = whole.base
    return bool(np.isnan(whole[:MARGIN]).all() and np.isnan(whole[-MARGIN:]).all())


# --- running and comparing


def joint_of(net: Network) -> Graph:
    """The graph with what is asked for besides its outputs."""
    graph = net.graph
    variables = graph.variables
    known = infer(graph, {n.name: graph.shape(Entry(n)) for n in variables},
                  {n.name: graph.dtype(Entry(n)) for n in variables})
    asked = {n.name: net.grad_req.get(n.name, "null") for n in variables}
    if net.mode == "inference":
        return known
    return gradient(known, options(is_train=net.is_train, grad_req=asked))


def values_of(net: Network, joint: Graph, draw: int) -> dict[str, np.ndarray]:
    """Values of the variables, head gradients among them."""
    rng, values = np.random.default_rng([net.seed, draw]), {}
    for node in joint.variables:
        shape, dtype = joint.shape(Entry(node)), joint.dtype(Entry(node))
        low = 0.5 if node.name.startswith("var") else -1.2
        made = rng.uniform(low, 1.2, shape)
        if node.name.startswith("w") and len(shape) > 1:
            made = made * 1.5 / np.sqrt(np.prod(shape[1:]))  # of products whose results are about as large as the data
        values[node.name] = made.astype(dtype)
    return values


def expected(net: Network, joint: Graph, values: Mapping[str, np.ndarray], noise: float = 0.0) -> list[np.ndarray]:
    """What every sink gets, computed node by node in float64. noise: by which share of the largest number of its
    array every number is off."""
    rng, found = np.random.default_rng(1), dict[Entry, np.ndarray]()
    for node in joint.nodes:
        if node.is_variable:
            made = [values[node.name].astype("float64")]
        else:
            made = [a.astype("float64") for a in evaluate(node, [found[e] for e in node.inputs], net.is_train, Draws())]
        for i, array in enumerate(made):
            if noise and array.size:
                array = array + noise * np.abs(array).max() * rng.uniform(-1, 1, array.shape)
            found[Entry(node, i)] = array
    return [found[e] + 0.5 if s.mode == "add" else found[e] for e, s in zip(joint.outputs, joint.sinks, strict=True)]


def run(net: Network, joint: Graph, values: Mapping[str, np.ndarray], report: Report) -> list[np.ndarray]:
    """What every sink of the compiled network gets. Raises AssertionError when memory was written that is nobody's, or
    when the same run gives other numbers."""
    graph, aux_names = net.graph, auxiliary_names(net.graph)
    asked = {n: r for n, r in net.grad_req.items() if n in values and r != "null"}
    args = {n.name: amid(values[n.name]) for n in graph.variables if n.name not in aux_names}
    aux = {name: amid(values[name]) for name in aux_names}
    grads = {name: amid(np.full_like(values[name], 0.5 if mode == "add" else np.nan)) for name, mode in asked.items()}
    memory = Poisoned(cpu())

    def compiled(graph: Graph, shapes: Any, dtypes: Any, grad_req: Any, is_train: bool) -> Any:
        planned = plan_graph(graph, shapes, dtypes, grad_req, is_train, cpu_target(), True)
        report.add(planned.kernels)
        return SimpleNamespace(plan=planned.plan, library=cpu_target().load(planned.kernels), graph=planned.graph)

    executor = GraphExecutor(graph, cpu(), BoundArrays(args, grads, asked, aux), memory, compiled)
    results = []
    for _ in range(2):
        for array in executor.outputs:
            if array not in args.values():
                array.memory.fill(np.nan)
        for name, mode in asked.items():
            grads[name].memory.fill(0.5 if mode == "add" else np.nan)
        for name in aux_names:
            aux[name].memory[...] = values[name]
            aux[name].variable.version += 1
        memory.poison()
        executor.forward(net.is_train)
        wait_to_write(memory.variable)  # long runs are queued
        memory.poison(arena=False)
        if asked:
            heads = [amid(values[f"_head_grad_{i}"]) if f"_head_grad_{i}" in values else None
                     for i in range(len(graph.outputs))]
            executor.backward(heads, net.is_train)
            wait_to_write(memory.variable)
        assert memory.is_whole() and all(map(is_amid, (*args.values(), *aux.values(), *grads.values()))), "margins"
        found = {"output": iter(executor.outputs)}
        results.append([(next(found["output"]) if s.kind == "output" else {"grad": grads, "aux": aux}[s.kind][s.name])
                        .memory.copy() for s in joint.sinks])
    assert all(map(_same, *results)), "another run gives other numbers"
    for name, array in args.items():
        assert _same(array.memory, values[name]), f"argument {name} has changed"
    return results[0]


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True)


def wrong(net: Network, report: Report, draw: int = 0) -> str:
    """What is wrong with a network, "" if nothing is."""
    joint = joint_of(net)
    values = values_of(net, joint, draw)
    dtype = joint.dtype(joint.outputs[0])
    with np.errstate(all="ignore"):
        want = expected(net, joint, values)
    if not all(np.isfinite(a).all() and np.abs(a).max(initial=0) < (1e4 if dtype == "float16" else 1e30) for a in want):
        report.unsteady += 1
        return ""
    try:
        got = run(net, joint, values, report)
    except Exception as error:
        return f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
    off = [_distance(a, b) for a, b in zip(got, want, strict=True)]
    usual = [USUAL[dtype] * float(np.abs(a).max(initial=0)) + LEAST[dtype] for a in want]
    if all(d <= limit for d, limit in zip(off, usual, strict=True)):
        return ""
    with np.errstate(all="ignore"):
        shaken = expected(net, joint, values, NOISE[dtype])
    lines = []
    for sink, d, limit, a, b in zip(joint.sinks, off, usual, want, shaken, strict=True):
        if not d <= limit + 100 * _distance(a, b):
            lines.append(f"{sink.kind} {sink.name} is off by {d:.3g}, of numbers up to {np.abs(a).max():.3g}")
    return "\n".join(lines)


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a.astype("float64") - b).max(initial=0))


def part(graph: Graph, outputs: Sequence[Entry]) -> Graph:
    """What of the graph these outputs need."""
    made = Graph(outputs)
    made.facts.shape = [graph.facts.shape[graph.ids[n]] for n in made.nodes]
    made.facts.dtype = [graph.facts.dtype[graph.ids[n]] for n in made.nodes]
    return made


def smaller(net: Network, is_wrong: Callable[[Network], bool]) -> Network:
    """The smallest part of a wrong network, by leaving out outputs and by ending earlier, that is wrong too."""
    found = True
    while found:
        found, graph = False, net.graph
        fewer = [[e for k, e in enumerate(graph.outputs) if k != i] for i in range(len(graph.outputs))]
        earlier = [[*graph.outputs[:i], *(s for s in e.node.inputs if not s.node.is_variable), *graph.outputs[i + 1:]]
                   for i, e in enumerate(graph.outputs) if e.node.op is not None and e.node.op.kind < Kind.OPAQUE]
        for outputs in (*fewer, *earlier):
            outputs = list(dict.fromkeys(outputs))
            if not outputs or all(e.node.is_variable for e in outputs):
                continue
            made = Network(net.seed, part(graph, outputs), net.mode, net.grad_req)
            if _size(made.graph) < _size(graph) and is_wrong(made):
                net, found = made, True
                break
    return net


def _size(graph: Graph) -> int:
    return 4 * len(graph.nodes) + len(graph.outputs)


def report(seed: int, seen: Report) -> str:
    """What is wrong with the network of a seed, and the smallest part of it that is; "" if nothing is."""
    net, thresholds = network(seed), lowered_for(seed)
    with lowered(thresholds):
        what = wrong(net, seen)
        if not what:
            return ""
        if not all(wrong(net, Report(), draw) for draw in range(1, DRAWS)):
            seen.unsteady += 1
            return ""
        small = smaller(net, lambda part: all(wrong(part, Report(), draw) for draw in range(DRAWS)))
        others = "".join(f"\n  {module}.{name} = {value}" for (module, name), value in thresholds.items())
        return (f"seed {seed}, {net.mode}: {what}\nIts smallest part: {wrong(small, Report())}\n"
                f"gradients: {small.grad_req}, thresholds:{others or ' as usual'}\n{graph_text(small.graph)}")
