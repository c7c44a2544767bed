"""The reference interpreter: values, what it tells a watcher, and real models against what MXNet 1.9.1 computed."""
from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from mxc import symbol as sym
from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.passes.infer import infer
from mxc.compiler.targets.reference import interpreter
from mxc.runtime import ndarray_file

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
GRAPH = parse_graph("""
    graph(x: float32[2,3], y: float32[3])
      s = broadcast_add(x, y)
      e = exp(s)
      return e, s
""")
X, Y = np.arange(6, dtype="float32").reshape(2, 3), np.ones(3, "float32")


def test_values_of_every_entry_in_order():
    seen = []
    values = interpreter.run(GRAPH, {"x": X}, {"y": Y}, watch=lambda node, outputs: seen.append(node.name))
    assert seen == [node.name for node in GRAPH.nodes]
    by_name = {entry.node.name: value for entry, value in values.items()}
    np.testing.assert_array_equal(by_name["s"], X + Y)
    np.testing.assert_allclose(values[GRAPH.outputs[0]], np.exp(X + Y), rtol=1e-6)
    assert by_name["e"].dtype == "float32"


def test_errors_name_the_variable_or_node():
    with pytest.raises(MXNetError, match="variable 'y' has no value"):
        interpreter.run(GRAPH, {"x": X}, {})
    node = GRAPH.outputs[1].node
    with pytest.raises(MXNetError, match="'s'"):
        interpreter.evaluate(node, [X, np.ones(4, "float32")])


def recipe(name: str, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """The values that the expected outputs were computed with: of inputs, by name."""
    rng = np.random.RandomState(zlib.crc32(name.encode()) & 0xFFFFFFFF)
    values = rng.randint(0, 10, shape) if name.endswith("label") else rng.uniform(-1, 1, shape)
    return np.asarray(values).astype(dtype)


@pytest.mark.skipif(not MODELS.is_dir(), reason="the real models are not there")
@pytest.mark.parametrize("name", ["cifar_resnet20_v1", "genderage", "mtcnn_det1", "mtcnn_det2", "mtcnn_det3"])
def test_real_models(name):
    case = json.loads((MODELS / "cases.json").read_text())[name]
    arrays, names = ndarray_file.read(MODELS / case["params"])
    given = {n.split(":", 1)[1]: a for n, a in zip(names, arrays, strict=True)}
    graph = infer(sym.load(str(MODELS / case["symbol"])).graph, {k: tuple(v) for k, v in case["shapes"].items()}, {})
    for node in graph.variables:
        given.setdefault(node.name, recipe(node.name, graph.shape(Entry(node)), graph.dtype(Entry(node))))
    values = interpreter.run(graph, given, {})
    expected = np.load(MODELS / case["expected"])
    for i, entry in enumerate(graph.outputs):
        want = expected[f"out/{i}"]
        np.testing.assert_allclose(values[entry], want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
