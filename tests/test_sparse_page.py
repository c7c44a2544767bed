"""docs/sparse.md: its tables are as they are written, what they say is computed, and its code runs."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from documents import blocks, ran
from sparse_page import DOCUMENT, REQUIRED, WHERE, WITH, Found, forms, users_rules, written

import mxc as mx
from mxc.compiler.ops.operator import Operator
from mxc.ndarray.ndarray import wrapped
from mxc.runtime.invoke import invoke

# Shapes of the inputs where they are not all (3, 4), and what parameters say of them.
SHAPES = {"dot": ((3, 4), (4, 2)), "_contrib_edge_id": ((3, 4), (2,), (2,)),
          "take": ((3, 4), (2,)), "_sparse_retain": ((3, 4), (2,)),
          "Embedding": ((2,), (3, 4)), "_contrib_SparseEmbedding": ((2,), (3, 4))}
EXTENTS = {name: {"input_dim": 3, "output_dim": 4} for name in ("Embedding", "_contrib_SparseEmbedding")}
# What is computed of the stored elements alone, whatever the operator gives of 0.
OF_STORED = ("_scatter_elemwise_div", "_scatter_plus_scalar", "_scatter_minus_scalar", "broadcast_div",
             "_contrib_getnnz")
FORMS = [(op, found) for op in users_rules() if not op.in_place for found in forms(op)]


def test_the_tables_are_as_they_are_written():
    """`python tests/sparse_page.py --write` makes them so."""
    text = DOCUMENT.read_text()
    assert written(text) == text


def test_what_is_said_is_said_of_operators_that_have_forms():
    assert {*REQUIRED, *WITH, *WHERE} <= {op.name for op in users_rules()}


@pytest.mark.parametrize(("op", "found"), FORMS, ids=lambda each: getattr(each, "name", None) or str(each))
def test_what_the_table_says_is_computed(op: Operator, found: Found):
    """It is kept as the table says, and has the numbers that dense arrays give."""
    rng = np.random.default_rng(0)
    dense = []
    for shape in SHAPES.get(op.name, ((3, 4),) * len(found.ins)):
        values = rng.integers(1, 4, shape) * (rng.random(shape) < 0.6) / 4 if len(shape) == 2 else np.array([2, 0])
        if len(shape) == 2:
            values[1] = 0
        dense.append(mx.nd.array(values))
    kept = [x.tostype(stype) for x, stype in zip(dense, found.ins, strict=True)]
    params = {**found.params, **EXTENTS.get(op.name, {})}
    made = invoke(op.name, [x._array for x in kept], params)[0]
    assert made.stype == found.out
    if op.name not in OF_STORED:
        wanted = invoke(op.name, [x._array for x in dense], params)[0]
        np.testing.assert_allclose(wrapped(made).asnumpy(), wrapped(wanted).asnumpy(), rtol=1e-6)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("scipy")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    making, scipy, files, gradient, symbols, store, lines = blocks("docs/sparse.md", "python")
    assert ran(making, names).asnumpy().tolist() == [[0, 0], [0, 0], [0, 0], [3, 4], [0, 0]]
    for x in (names["x"], names["same"], names["again"]):
        assert x.stype == "csr" and x.asnumpy().tolist() == [[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 0]]
    assert names["nothing"].data.shape == (0, 64)
    ran(scipy, names)
    assert (names["back"] != names["matrix"]).nnz == 0
    assert ran(files, names) == "row_sparse" and names["loaded"]["x"].stype == "csr"
    assert ran(gradient, names).asnumpy().tolist() == [3, 7]
    assert ran(symbols, names) == (["csr", "row_sparse"], "row_sparse")
    ran(store, names)
    assert names["some"].indices.asnumpy().tolist() == [1, 3]
    assert names["some"].asnumpy()[1:4].tolist() == [[7, 7], [0, 0], [0, 0]]
    ran(lines, names)
    assert (names["batch"].data[0].stype, names["batch"].label[0].stype) == ("csr", "default")
