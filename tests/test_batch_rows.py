"""Where outputs have the rows of a batch, and that layers which mix rows are found."""
from __future__ import annotations

import itertools
import re

import networks
import numpy as np
import pytest
from op_cases import Case, cases

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.graph.batch_rows import MixedRows, Rows
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.ops import loader
from mxc.compiler.ops.operator import Operator
from mxc.compiler.passes.batch_rows import find_rows
from mxc.compiler.passes.infer import infer
from mxc.compiler.targets.reference.interpreter import run
from mxc.runtime.batches import Place

MOST = 60  # ways to give axes to the inputs of an operator that are tried, beside those of one axis in some of them
# The reference of _mxc_function_of, which is in no model, takes equal shapes alone.
OPERATORS = [op for op in loader.load() if not op.in_place and op.name != "_mxc_function_of"]
WITH_RULE = [op.name for op in OPERATORS if op.rules.get("rows", "numbered_pictures") != "numbered_pictures"]
# Operators without inputs, and of numbers of 8 bits, which networks below have.
ELSEWHERE = {"_zeros", "_ones", "_full", "_zeros_without_dtype", "_mxc_int8_convolution", "_mxc_int8_product"}
ROWS = 3
# Cases beside the samples of the table, which often have sizes that allow one batch alone: inputs' shapes, parameters.
MORE: dict[str, list[tuple[list[tuple[int, ...]], dict[str, object]]]] = {
    "Reshape": [([(2, 3, 4)], {"shape": (0, -1)}), ([(2, 3, 4)], {"shape": (-1, 4)}), ([(2, 3, 4)], {"shape": (-3, 0)}),
                ([(2, 3, 4)], {"shape": (-2, 2, -1)}), ([(2, 3, 4)], {"shape": (4, -1)}),
                ([(6, 4)], {"shape": (-4, 3, -1, 0)}), ([(6, 4)], {"shape": (-4, -1, 3, 0)})],
    "broadcast_to": [([(1, 3)], {"shape": (2, 0)}), ([(2, 1)], {"shape": (0, 3)})],
    "squeeze": [([(2, 1, 3)], {"axis": (1,)}), ([(2, 1, 3)], {})],
    "slice": [([(2, 3, 4)], {"begin": (None, 1), "end": (None, 3)}), ([(2, 3)], {"begin": (None,), "end": (None,),
                                                                                  "step": (-1,)})],
    "slice_axis": [([(2, 3, 4)], {"axis": 1, "begin": 0, "end": 2}), ([(2, 3)], {"axis": 0, "begin": 0, "end": None}),
                   ([(2, 3)], {"axis": 0, "begin": 0, "end": 1}), ([(2, 3)], {"axis": 0, "begin": 0, "end": -1})],
    "_contrib_arange_like": [([(2, 3)], {"axis": 0}), ([(2, 3)], {"axis": 1}), ([(2, 3)], {})],
    "repeat": [([(2, 3)], {"repeats": 2, "axis": 1}), ([(2, 3)], {"repeats": 2, "axis": 0})],
    "tile": [([(2, 3)], {"reps": (2, 1)}), ([(2, 3)], {"reps": (1, 2)}), ([(2, 3)], {"reps": (2, 1, 1)})],
    "dot": [([(2, 3, 4), (4, 5, 6)], {}), ([(4, 2), (5, 4)], {"transpose_a": True, "transpose_b": True})],
    "BatchNorm": [([(2, 3, 4), (3,), (3,), (3,), (3,)], {})],
    "_linalg_gemm2": [([(2, 3, 4), (2, 4, 5)], {})],
    "_linalg_gemm": [([(2, 3, 4), (2, 4, 5), (2, 3, 5)], {})],
    "_slice_assign": [([(2, 5), (2, 3)], {"begin": (None, 1), "end": (None, 4)})],
    "batch_take": [([(2, 3), (2,)], {})],
    "_image_resize": [([(2, 4, 5, 3)], {"size": (3, 2)})],
    "_contrib_bipartite_matching": [([(2, 2, 3)], {"threshold": 0.1})],
    "_contrib_box_encode": [([(2, 3), (2, 3), (2, 3, 4), (2, 2, 4), (4,), (4,)], {})],
}


def more_cases(op: Operator) -> list[Case]:
    """The table's samples, those of MORE, and the samples with one more axis in front where that can be."""
    try:
        found = cases(op)
    except MXNetError:  # required parameters, and no sample
        found = []
    return [*found, *(Case(op, op.make_params(params), tuple(shapes)) for shapes, params in MORE.get(op.name, ()))]


def graph_of(case: Case) -> Graph:
    """A graph of the operator alone, with the outputs that users see."""
    inputs = [Entry(variable(f"x{i}")) for i in range(len(case.shapes))]
    node = Node(case.op, "layer", None, case.params, inputs)
    return Graph([Entry(node, i) for i in range(case.op.num_visible(case.params))])


def assignments(case: Case) -> list[dict[str, int]]:
    """Ways to have a batch along an axis of some of the inputs: the same of all of these, and others."""
    ranks = [len(shape) for shape in case.shapes]
    ways = [tuple(axis if chosen and axis < rank else None for chosen, rank in zip(mask, ranks, strict=True))
            for axis in range(max(ranks, default=0)) for mask in itertools.product((True, False), repeat=len(ranks))]
    others = itertools.product(*([None, *range(rank)] for rank in ranks))
    ways += itertools.islice(others, 5000)
    first, rest = ways[:MOST * 2], ways[MOST * 2:]
    picked = [*first, *(rest[i] for i in np.random.default_rng(0).permutation(len(rest))[:MOST])]
    return [{f"x{i}": axis for i, axis in enumerate(axes) if axis is not None}
            for axes in dict.fromkeys(picked) if any(axis is not None for axis in axes)]


def values_of(case: Case, axes: dict[str, int], rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    found = {}
    for i, shape in enumerate(case.shapes):
        axis = axes.get(f"x{i}")
        sized = shape if axis is None else (*shape[:axis], rows, *shape[axis + 1:])
        found[f"x{i}"] = rng.uniform(case.low, case.high, sized).astype(np.float32)
    return found


def computed(graph: Graph, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    typed = infer(graph, {name: array.shape for name, array in values.items()}, {})
    given = {node.name: values[node.name].astype(typed.dtype(Entry(node))) for node in typed.variables}
    made = run(typed, given, {}, False, None)
    return [made[entry] for entry in typed.outputs]


def assert_kept_apart(graph: Graph, rows: list[Rows | None], axes: dict[str, int],
                      whole: dict[str, np.ndarray]) -> None:
    """What each row of a batch gives is what it gives alone."""
    outputs = computed(graph, whole)
    for row in range(ROWS):
        single = {name: np.take(array, [row], axes[name]) if name in axes else array for name, array in whole.items()}
        for place, all_of_it, alone in zip(rows, outputs, computed(graph, single), strict=True):
            part = all_of_it
            if place is not None:
                at = Place(*place)
                part = at.rows(all_of_it, ROWS)[(*(slice(None),) * (at.axis + 1), slice(row, row + 1))]
                part = part.reshape(at.shape(all_of_it.shape, 1))
            np.testing.assert_allclose(part, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_rows_that_are_kept_apart_are_those_of_the_rows_alone(op: Operator):
    """Every operator, with a batch along every axis of its inputs: what is said to be kept apart is."""
    found = 0
    for case in more_cases(op):
        graph = graph_of(case)
        for axes in assignments(case):
            shapes = {f"x{i}": shape for i, shape in enumerate(case.shapes)}
            try:
                rows = find_rows(graph, shapes, {}, axes)
            except MXNetError:
                continue
            found += 1
            assert_kept_apart(graph, rows, axes, values_of(case, axes, ROWS))
    assert found or op.name not in WITH_RULE or op.name in ELSEWHERE, f"{op.name}: its rule never applies"


# ---- networks

def rows_of(symbol: mx.sym.Symbol, is_train: bool = False, **shapes: tuple[int, ...]) -> list[Rows | None]:
    """As `find_rows`, of a model whose inputs have rows along their first axes."""
    inferred, _, _ = symbol.infer_shape(**shapes)
    known = {name: shape for name, shape in zip(symbol.list_arguments(), inferred, strict=True)
             if not name.endswith("label")}
    return find_rows(symbol.graph, known, {}, dict.fromkeys(shapes, 0), is_train)


def test_layers_that_mix_rows_are_named():
    data = mx.sym.Variable("data")
    first = mx.sym.shape_array(data, name="sizes").slice_axis(axis=0, begin=0, end=1)
    cases = [
        (mx.sym.softmax(mx.sym.FullyConnected(data, num_hidden=3, name="fc"), axis=0, name="over"),
         "over (softmax): it computes across axis 0 of an array (N, 3), which has the rows of the batch (N)"),
        (mx.sym.broadcast_sub(data, mx.sym.mean(data, axis=0, keepdims=True, name="centre")), "centre (mean): "),
        (mx.sym.sum(data, name="total"), "total (sum): it computes across axis 0"),
        (mx.sym.reverse(data, axis=0, name="back"), "back (reverse): it computes across axis 0"),
        (mx.sym.dot(data, data, transpose_a=True, name="gram"), "gram (dot): it computes across axis 0"),
        (mx.sym.dot(data, data, transpose_b=True, name="gram"), "gram (dot): its inputs have the rows"),
        (mx.sym.Reshape(data, shape=(-1, 8), name="two"),
         "the model does not take batches of every size: with 11 rows, "),
        (mx.sym.Reshape(data, shape=(2, -1), name="literal"),
         "literal (Reshape): it brings elements of several rows of (N, 4) together in (2, 2N)"),
        (mx.sym.slice_axis(data, axis=0, begin=0, end=1, name="head"), "head (slice_axis): it computes across axis 0"),
        (mx.sym.broadcast_mul(data, mx.sym.contrib.arange_like(data, axis=0, name="numbers").expand_dims(1)),
         "numbers (_contrib_arange_like): it numbers the rows"),
        (mx.sym.broadcast_div(data, first.astype("float32").reshape((1, 1))),
         "sizes (shape_array): what it computes depends on the size"),
        (mx.sym.Dropout(data, mode="always", name="drop"), "drop (Dropout): it draws random numbers"),
        (mx.sym.squeeze(data, name="flat"), "flat (squeeze): without `axis`"),
        (mx.sym.topk(data, axis=None, name="best"), "best (topk): without `axis`"),
        (mx.sym.contrib.quantize_v2(data, name="small")[0], "small (_contrib_quantize_v2): it computes across axis 0"),
        (mx.sym.ROIPooling(mx.sym.reshape(data, shape=(0, 1, 2, 2)), mx.sym.Variable("boxes"), pooled_size=(1, 1),
                           spatial_scale=1.0, name="regions"), "regions (ROIPooling): it tells the pictures"),
    ]
    for symbol, message in cases:
        shapes = {"data": (4, 4), **({"boxes": (4, 5)} if "boxes" in symbol.list_arguments() else {})}
        with pytest.raises(MixedRows, match=f"^{re.escape(message)}"):
            rows_of(symbol, **shapes)


def test_batch_normalisation_mixes_rows_in_training_alone():
    net = mx.sym.BatchNorm(mx.sym.Variable("data"), name="norm")
    assert rows_of(net, data=(4, 3)) == [Rows(0)]
    with pytest.raises(MixedRows, match=r"^norm \(BatchNorm\): it computes across axis 0"):
        rows_of(net, is_train=True, data=(4, 3))


def test_rows_are_found_behind_time_and_inside_of_axes():
    data = mx.sym.Variable("data")
    steps = mx.sym.RNN(data, mx.sym.Variable("weights"), mx.sym.zeros((1, 0, 5)), mode="rnn_tanh", state_size=5,
                       num_layers=1, name="rnn")
    flat = mx.sym.Reshape(steps, shape=(-3, 0))
    inferred, _, _ = flat.infer_shape(data=(7, 2, 3))
    known = dict(zip(flat.list_arguments(), inferred, strict=True))
    assert find_rows(flat.graph, known, {}, {"data": 1}) == [Rows(0, outer=7)]
    with pytest.raises(MixedRows, match=r"^rnn \(RNN\): it computes across axis 0"):
        find_rows(flat.graph, known, {}, {"data": 0})
    pairs = mx.sym.Reshape(data, shape=(-1, 2))
    assert rows_of(pairs, data=(4, 6)) == [Rows(0, inner=3)]


def test_loops_keep_rows_apart_as_their_bodies_do():
    data, start = mx.sym.Variable("data"), mx.sym.Variable("start")
    outputs, last = mx.sym.contrib.foreach(lambda x, s: (x * s, x + s), data, start)
    shapes = {"data": (5, 2, 3), "start": (2, 3)}
    assert find_rows(mx.sym.Group([outputs, last]).graph, shapes, {}, {"data": 1, "start": 0}) == [Rows(1), Rows(0)]
    assert find_rows(outputs.graph, shapes, {}, {"data": 2, "start": 1}) == [Rows(2)]
    with pytest.raises(MixedRows, match=r"^_foreach\d+ \(a loop\): its steps go through the rows of the batch"):
        find_rows(outputs.graph, shapes, {}, {"data": 0})
    mixing, _ = mx.sym.contrib.foreach(
        lambda x, s: (x, mx.sym.broadcast_add(x, mx.sym.sum(s, axis=0, keepdims=True, name="all"))), data, start)
    with pytest.raises(MixedRows, match=r"^_foreach\d+ \(a loop\): all \(sum\): it computes across axis 0"):
        find_rows(mixing.graph, shapes, {}, {"data": 1, "start": 0})


def test_a_state_that_begins_with_zeros_gets_the_rows_of_the_steps():
    data = mx.sym.Variable("data")
    _, last = mx.sym.contrib.foreach(lambda x, s: (x, x + s), data, mx.sym.zeros((0, 3)))
    assert find_rows(last.graph, {"data": (5, 2, 3)}, {}, {"data": 1}) == [Rows(0)]


def test_networks_keep_rows_apart():
    assert rows_of(networks.cifar_resnet20(), data=(4, 3, 32, 32)) == [Rows(0)]
    assert rows_of(networks.lenet(), data=(4, 1, 8, 8)) == [Rows(0)]
