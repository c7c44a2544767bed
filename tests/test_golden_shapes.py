"""Shape inference, forward, backward and partial, against what the real MXNet infers."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.ops import table
from mxc.compiler.passes.infer_shape import infer_shape

FILES = sorted(Path(__file__).with_name("golden").joinpath("shapes").glob("*.json"))
ROWS = [row for path in FILES for row in json.loads(path.read_text()) if table.has(row["op"])]


def name_of(row: dict) -> str:
    shapes = ";".join("?" if s is None else ",".join(map(str, s)) for s in [*row["inputs"].values(), row["out"]])
    return f"{row['op']}({shapes}){''.join(f' {k}={v}' for k, v in row['attrs'].items())}"


def inferred(row: dict) -> dict[str, list]:
    """The shapes of inputs, visible outputs and auxiliary states that partial inference finds."""
    op = table.get(row["op"])
    params = op.parse_attrs(row["attrs"], "op")
    inputs = [variable(name) for name in row["inputs"]]
    aux = [variable(f"op_{name}") for name in op.aux_names(params)]
    node = Node(op, "op", row["attrs"], params, [Entry(v) for v in (*inputs, *aux)])
    visible = op.num_visible(params)
    outputs = [Entry(node, i) for i in range(visible)]
    known = {name: shape for name, shape in row["inputs"].items() if shape is not None}
    if row["out"] is not None:
        neighbour = variable("neighbour")
        add = table.get("elemwise_add")
        outputs.append(Entry(Node(add, "add", {}, add.make_params({}), [Entry(node, 0), Entry(neighbour)])))
        known["neighbour"] = row["out"]
    graph = Graph(outputs)
    shapes = infer_shape(graph, known, partial=True)
    found = {"inputs": [shapes[graph.ids[v]][0] for v in inputs], "aux": [shapes[graph.ids[v]][0] for v in aux],
             "outputs": shapes[graph.ids[node]][:visible]}
    return {part: [None if s is None else list(s) for s in values] for part, values in found.items()}


def is_partial(row: dict) -> bool:
    """Whether something is not known: MXNet refuses some such rows, having counted with unknown sizes."""
    shapes = [*row["inputs"].values(), row["out"]]
    return any(s is not None and 0 in s for s in shapes) or (row["op"] == "Concat" and None in row["inputs"].values())


def says(ours: list[int] | None, theirs: list[int] | None) -> bool:
    """Whether our shape says all that theirs says; it may know more."""
    if theirs is None or ours is None:
        return theirs is None
    return len(ours) == len(theirs) and all(b in (0, a) for a, b in zip(ours, theirs, strict=True))


# Where this differs by intent, see test_differences.
DIFFERENT = ("BatchNorm(2,3,4,5;4;?;?)", "Concat(2,3,4;?;?) num_args=2")
FOUND = [r for r in ROWS if "found" in r and name_of(r) not in DIFFERENT]
REFUSED = [r for r in ROWS if "error" in r and not is_partial(r)]


@pytest.mark.parametrize("row", FOUND, ids=name_of)
def test_inference(row: dict) -> None:
    found = inferred(row)
    for part, shapes in row["found"].items():
        assert len(found[part]) == len(shapes)
        for ours, theirs in zip(found[part], shapes, strict=True):
            assert says(ours, theirs), f"{part}: expected {shapes}, got {found[part]}"


@pytest.mark.parametrize("row", REFUSED, ids=name_of)
def test_refusals(row: dict) -> None:
    with pytest.raises(MXNetError, match=f"{row['op']} 'op'|add"):
        inferred(row)


def test_differences() -> None:
    """MXNet overwrites a wrong gamma with the right shape, and counts an input of unknown rank as nothing."""
    by_name = {name_of(r): r for r in ROWS}
    with pytest.raises(MXNetError):
        inferred(by_name[DIFFERENT[0]])
    assert inferred(by_name[DIFFERENT[1]])["outputs"] == [[2, 0, 4]]
