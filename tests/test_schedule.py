"""The order of launches: what must come first does, and little is alive at once."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import NAMES, program

from mxc.compiler.graph.phases import BACKWARD, FORWARD, PREPARE
from mxc.compiler.kernel.ir import LoopKernel, Store, apply, axis, const, load
from mxc.compiler.lowering.launches import Launch, Storage, by_phase
from mxc.compiler.lowering.schedule import live_bytes, peak, schedule


def launch(reads: list[Storage], write: Storage, phase: str = FORWARD, mode: str = "write") -> Launch:
    """write[i] (+)= 1 + the sum of what `reads` hold at i."""
    value = const(1.0, "float32")
    for i in range(len(reads)):
        value = apply("add", value, load(i, axis(0), "float32"))
    kernel = LoopKernel("k", ("float32",) * (len(reads) + 1), (1,), (), (), (Store(len(reads), axis(0), value, mode),))
    return Launch(phase, write.name, kernel, [*reads, write])


def arena(name: str, extent: int = 16) -> Storage:
    return Storage("arena", "float32", (extent,), name)


def names(launches: list[Launch]) -> list[str]:
    return [each.label for each in launches]


def test_phases_follow_each_other():
    """From the start, so that what is not scheduled runs too; of a phase, launches stay as they are."""
    late, early, prepared = arena("late"), arena("early"), Storage("prepared", "float32", (16,), "prepared")
    given_order = [launch([], late, BACKWARD), launch([], early, FORWARD), launch([], prepared, PREPARE),
                   launch([late], late, BACKWARD)]
    assert names(by_phase(given_order)) == ["prepared", "early", "late", "late"]
    assert names(schedule(by_phase(given_order))) == ["prepared", "early", "late", "late"]


def test_large_values_do_not_wait():
    """Both large values made first, then both small ones: better one after the other."""
    big, small = [arena(f"big{i}", 1000) for i in range(2)], [arena(f"small{i}") for i in range(2)]
    result = Storage("output", "float32", (16,), "result")
    order = schedule([launch([], big[0]), launch([], big[1]), launch([big[0]], small[0]), launch([big[1]], small[1]),
                      launch(small, result)])
    assert names(order) == ["big0", "small0", "big1", "small1", "result"]
    assert peak(order) == 4000 + 2 * 64


def test_what_swells_does_not_wait():
    """A chain of steps, and of each something larger, that makes something small: none of these waits for the end of
    the chain, where all steps would still be alive."""
    launches, source = [], arena("source", 100)
    for i in range(4):
        step, large, small = arena(f"step{i}", 100), arena(f"large{i}", 300), arena(f"small{i}", 10)
        launches += [launch([source], step), launch([step], large), launch([large], small)]
        source = step
    launches.sort(key=lambda each: "step" not in each.label)
    order = names(schedule(launches))
    assert order[-3:] == ["step3", "large3", "small3"]
    assert all(order.index(f"small{i}") == order.index(f"large{i}") + 1 for i in range(4))


def test_a_leaf_runs_when_it_is_needed():
    """Packed weights depend on arguments alone; smaller ones, which later launches need, must not go first."""
    weights = [Storage("argument", "float32", (n,), f"w{n}") for n in (1000, 10, 20)]
    packed = [arena(f"packed{w.name}", w.shape[0]) for w in weights]
    steps = [arena(f"step{i}") for i in range(3)]
    launches = [launch([w], p) for w, p in zip(weights, packed, strict=True)]
    launches += [launch([packed[i], *steps[max(i - 1, 0):i]], steps[i]) for i in range(3)]
    order = schedule(launches)
    assert names(order) == ["packedw1000", "step0", "packedw10", "step1", "packedw20", "step2"]


def test_the_given_order_stays_where_it_is_as_good():
    values = [arena(f"v{i}") for i in range(4)]
    result = Storage("output", "float32", (16,), "result")
    launches = [launch([], v) for v in values] + [launch(values, result)]
    assert schedule(launches) == launches


def test_a_reader_of_the_old_value_goes_before_its_writer():
    state, old, new = Storage("aux", "float32", (16,), "state"), arena("old"), arena("big", 5000)
    launches = [launch([], new), launch([state], old), launch([old], state), launch([new, state], arena("end"))]
    order = names(schedule(launches))
    assert order.index("old") < order.index("state") < order.index("end")


@pytest.mark.parametrize("train", (False, True), ids=("inference", "training"))
@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(("resnet18", "resnet50", "mobilenet"))])
def test_networks(name, train):
    launches = program(name, train).launches
    written: set[Storage] = set()
    for each in launches:
        assert all(s in written for s in each.reads if s.pool in ("arena", "prepared")), each.label
        written.update(each.writes)
    assert [each.phase for each in launches] == sorted((each.phase for each in launches),
                                                       key=(PREPARE, FORWARD, BACKWARD).index)


@st.composite
def programs(draw: st.DrawFn) -> list[Launch]:
    """Launches that read and overwrite each other's storages."""
    storages = [arena(f"s{i}", draw(st.integers(1, 50))) for i in range(draw(st.integers(1, 8)))]
    made: list[Launch] = []
    written: list[Storage] = []
    for _ in range(draw(st.integers(1, 14))):
        reads = draw(st.lists(st.sampled_from(written), max_size=3, unique_by=id)) if written else []
        target = draw(st.sampled_from(storages))
        mode = "add" if target in written and draw(st.booleans()) else "write"
        if target in reads:
            continue
        made.append(launch(reads, target, FORWARD, mode))
        written = [*(w for w in written if w is not target), target]
    return made


def run(launches: list[Launch]) -> dict[str, float]:
    """What every storage holds in the end, and a trace of every launch's reads: orders that matter show."""
    memory: dict[Storage, float] = {}
    for each in launches:
        assert isinstance(each.kernel, LoopKernel)
        store = each.kernel.stores[0]
        value = 1.0 + sum(memory[s] * (3 + i) for i, s in enumerate(each.storages[:-1]))
        target = each.storages[-1]
        memory[target] = value + (7 * memory[target] if store.mode == "add" else 0)
    return {s.name: v for s, v in memory.items()}


@settings(max_examples=80, deadline=None)
@given(programs())
def test_random_programs(launches):
    order = schedule(launches)
    assert sorted(map(id, order)) == sorted(map(id, launches))
    assert run(order) == run(launches)
    assert peak(order) <= peak(launches)
    assert len(live_bytes(order)) == len(order)
    assert np.all(np.array(live_bytes(order)) >= 0)
