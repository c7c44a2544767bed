"""What the tests of graph passes share: options, and comparing graphs by text and by what they compute."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from mxc.compiler.graph.check import check_graph
from mxc.compiler.graph.graph import Entry, Graph
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.text import graph_text, parse_graph, same_graph
from mxc.compiler.ops.dtypes import converted, numpy_dtype
from mxc.compiler.targets.cpu import preferences
from mxc.compiler.targets.preferences import Preferences
from mxc.compiler.targets.reference import interpreter


class FixedTiles:
    """A target with register tiles of 4 x 8, vectors of 4 and the CPU's figures, without tiles of AMX."""

    def tile(self, dtype: str) -> tuple[int, int]:
        return 4, 8

    def lanes(self, dtype: str) -> int:
        return 4

    @property
    def prefers(self) -> Preferences:
        return replace(preferences.FIGURES, tiles=None)


def options(**fields: object) -> Options:
    """Options for a target with register tiles of 4 x 8."""
    return Options(target=FixedTiles(), **fields)  # type: ignore[arg-type]


def changed(figures: Preferences, values: Mapping[str, object]) -> Preferences:
    """The figures with others in place of some of them, by their names as "chains.units"."""
    for name, value in values.items():
        group, figure = name.split(".")
        own = replace(getattr(figures, group), **{figure: value})
        figures = replace(figures, **{group: own})  # type: ignore[arg-type]
    return figures


def prefer(monkeypatch: pytest.MonkeyPatch, **values: object) -> None:
    """Give the CPU other figures, by their names with two underlines for the dot, as chains__units=1."""
    named = {name.replace("__", "."): value for name, value in values.items()}
    monkeypatch.setattr(preferences, "FIGURES", changed(preferences.FIGURES, named))


def values_for(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    """Values for every variable; those of names that end in "var" are positive, integers are small."""
    rng = np.random.default_rng(seed)
    values = {}
    for node in graph.variables:
        shape, dtype = graph.shape(Entry(node)), graph.dtype(Entry(node))
        low, high = (0.5, 1.5) if node.name.endswith("var") else (-1.0, 1.0)
        made = rng.uniform(low, high, shape) if "float" in dtype else rng.integers(0, 4, shape)
        values[node.name] = converted(made, numpy_dtype(dtype))
    return values


def outputs_of(graph: Graph, values: dict[str, np.ndarray], is_train: bool = False) -> list[np.ndarray]:
    """What the graph's outputs are, computed node by node."""
    found = interpreter.run(graph, values, {}, is_train)
    return [found[e] for e in graph.outputs]


def assert_same_numbers(before: Graph, after: Graph, is_train: bool = False, rtol: float = 1e-5,
                        atol: float = 1e-6) -> None:
    """Both graphs are whole and compute the same from the same values, in the same shapes and dtypes."""
    check_graph(after)
    values = values_for(before)
    pairs = zip(outputs_of(before, values, is_train), outputs_of(after, values, is_train), strict=True)
    for i, (expected, got) in enumerate(pairs):
        assert (expected.shape, expected.dtype) == (got.shape, got.dtype), f"output {i}"
        np.testing.assert_allclose(got, expected, rtol, atol, err_msg=f"output {i} of\n{graph_text(after)}")


def assert_graph(got: Graph, expected: str) -> None:
    """`got` is the graph that the text describes, but for the names of its operator nodes."""
    assert same_graph(got, parse_graph(expected)), f"got\n{graph_text(got)}\nexpected\n{expected}"
