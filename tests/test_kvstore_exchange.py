"""What a worker sends to servers and does with their answers, without Ray."""
from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_kvstore_dist import Objects, layout

import mxc as mx
from mxc.base import MXNetError
from mxc.kvstore import parts
from mxc.kvstore.allreduce import AllReduce
from mxc.kvstore.exchange import Exchange, Item
from mxc.kvstore.parts import Layout, Part
from mxc.runtime import engine, outside


class Recorder:
    """In place of a server's actor: notes messages, and answers each with zeros when it is told to."""

    def __init__(self) -> None:
        self.messages: list[list[str]] = []
        self.values: list[Any] = []
        self.asked: list[Any] = []
        self.kept: list[bool] = []
        self.futures: list[tuple[Future, int]] = []
        self.exchange = SimpleNamespace(remote=self._exchange)

    def _exchange(self, store: int, rank: int, message: int, pushed: Any, values: Any, pulled: Any,
                  settings: Any, is_kept: bool) -> Any:
        assert message == len(self.messages)
        self.messages.append([name[0] for name, _ in pushed])
        self.values += [] if is_kept else values
        self.kept.append(is_kept)
        self.asked += [rows for _, _, rows in pulled]
        future: Future = Future()
        self.futures.append((future, len(pulled)))
        return SimpleNamespace(future=lambda: future)


def until(is_over: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_over():
        assert time.monotonic() < end
        time.sleep(0.01)


def item(key: str, source: mx.nd.NDArray, outs: list[mx.nd.NDArray], priority: int) -> Item:
    return Item(0, key, layout(key, source.shape), source._array, [out._array for out in outs], 1, 1 if outs else -1,
                priority, None, None)


def test_gradients_that_are_finished_are_sent_while_backward_runs() -> None:
    server, size = Recorder(), parts.LEAST // 4
    exchange = Exchange([server], 0)
    try:
        first, second = mx.nd.zeros((size,)), mx.nd.zeros((size,))
        variables = [first._array.variable, second._array.variable]
        steps: list[Any] = []

        def backward() -> None:  # as a run of a plan, which tells what is finished
            first._array.memory[:] = 1
            outside.announce([variables[0]])
            until(lambda: bool(server.messages))
            steps.append(list(server.messages))
            second._array.memory[:] = 1

        engine.push(backward, [], variables, "backward", small=False)
        out = mx.nd.ones((size,))
        exchange.submit([item("first", first, [out], 0), item("second", second, [out], 0)])
        until(lambda: len(server.messages) == 2)
        assert steps == [[["first"]]] and server.messages == [["first"], ["second"]]
        for future, pulled in server.futures:
            future.set_result(([np.zeros(size, "f")] * pulled, []))
        exchange.settle()
        assert not out.asnumpy().any()
    finally:
        exchange.close()


def test_answers_are_taken_from_the_objects_that_they_name() -> None:
    server, objects, size = Recorder(), Objects(), parts.INLINE // 4 + 1
    exchange = Exchange([server], 0, ray=objects)
    try:
        outs = [mx.nd.zeros((size,)) for _ in range(3)]
        exchange.submit([item(str(i), mx.nd.full((size,), i + 1), [out], -i) for i, out in enumerate(outs)])
        until(lambda: bool(server.futures))
        assert server.kept == [True] and len(objects.kept[0]) == 3
        ref = objects.put([np.full(size, 8, "f"), np.full(size, 9, "f")])
        server.futures[0][0].set_result(([1, 4, np.full(size, 7, "f")], [ref]))
        assert [out.asnumpy()[-1] for out in outs] == [2, 9, 7]
        exchange.submit([item("0", mx.nd.zeros((size,)), outs[:1], 0), item("1", mx.nd.zeros((2,)), [], 0)])
        until(lambda: len(server.futures) == 2)
        server.futures[1][0].set_result(([2], [ref]))  # of the worker's own object nothing is wanted
        assert outs[0].asnumpy()[0] == 8
        exchange.submit([item("1", mx.nd.zeros((2,)), [], 0)])
        until(lambda: len(server.futures) == 3)
        assert server.kept == [True, True, False]
        server.futures[2][0].set_result(([], []))
    finally:
        exchange.close()


def test_the_highest_priority_is_sent_first_and_small_arrays_together() -> None:
    server = Recorder()
    exchange = Exchange([server], 0)
    try:
        large, small = mx.nd.zeros((parts.MOST // 8,)), [mx.nd.zeros((3,)) for _ in range(4)]
        exchange.submit([item("large", large, [], -9), item("large too", large, [], -10),
                         *(item(f"small {i}", each, [], -i) for i, each in enumerate(small))])
        until(lambda: len(server.messages) == 2)
        assert server.messages == [["small 0", "small 1", "small 2", "small 3", "large"], ["large too"]]
    finally:
        for future, _ in server.futures:
            future.set_result(([], []))
        exchange.close()


def test_of_row_sparse_arrays_rows_alone_are_sent() -> None:
    servers = [Recorder(), Recorder()]
    exchange = Exchange(servers, 0)
    try:
        halves = Layout((6, 2), "float32", (Part("w", 0, 0, 0, 3), Part("w", 1, 1, 3, 6)), False)
        gradient = mx.nd.sparse.row_sparse_array((np.ones((2, 2)), [2, 5]), shape=(6, 2))
        out, none = mx.nd.sparse.zeros("row_sparse", (6, 2)), mx.nd.ones((6, 2))
        exchange.submit([Item(0, "w", halves, gradient._array, [], 1, -1, 0, None, None),
                         Item(0, "w", halves, None, [out._array], 0, 1, 0, None, None, np.array([1, 2])),
                         Item(0, "w", halves, None, [none._array], 0, 1, 0, None, None, np.array([], np.int64))])
        until(lambda: all(server.futures for server in servers))
        assert [server.values[0].rows.tolist() for server in servers] == [[2], [2]]
        assert [server.values[0].shape for server in servers] == [(3, 2), (3, 2)]
        assert servers[0].asked[0].tolist() == [1, 2] and not servers[1].asked
        servers[0].futures[0][0].set_result(([np.array([[1, 2], [3, 4]], "f")], []))
        servers[1].futures[0][0].set_result(([], []))
        exchange.settle()
        assert out.indices.asnumpy().tolist() == [1, 2] and out.data.asnumpy().tolist() == [[1, 2], [3, 4]]
        assert not none.asnumpy().any()
    finally:
        exchange.close()


def test_an_answer_that_comes_before_an_earlier_item_s_waits_alone() -> None:
    servers = [Recorder(), Recorder()]
    exchange = Exchange(servers, 0)
    out, where = mx.nd.ones((2,)), [Layout((2,), "float32", (Part(key, 0, i, 0, 2),), False)
                                    for i, key in enumerate(("early", "late"))]
    exchange.submit([Item(0, each.parts[0].key, each, None, [out._array], 0, 0, 0, None, None) for each in where])
    until(lambda: all(server.futures for server in servers))
    servers[1].futures[0][0].set_result(([np.full(2, 5, "f")], []))
    time.sleep(0.1)  # the thread has taken this answer, which cannot be written before the other
    servers[0].futures[0][0].set_result(([np.full(2, 4, "f")], []))
    until(lambda: exchange._open == 0)
    assert out.asnumpy().tolist() == [5, 5]
    exchange.close()  # which would wait for ever after a failure


def test_an_error_of_a_message_is_raised_where_its_values_are_read_and_by_later_calls() -> None:
    server = Recorder()
    exchange = Exchange([server], 0)
    out = mx.nd.ones((2,))
    exchange.submit([item("w", mx.nd.zeros((2,)), [out], 0)])
    until(lambda: bool(server.futures))
    server.futures[0][0].set_exception(MXNetError("kvstore: worker 1 has ended"))
    with pytest.raises(MXNetError, match="worker 1 has ended"):
        out.asnumpy()
    with pytest.raises(MXNetError, match="worker 1 has ended"):
        exchange.check()
    exchange.close()


def test_what_was_never_computed_is_an_error_of_later_calls() -> None:
    server = Recorder()
    exchange = Exchange([server], 0)
    broken, out = mx.nd.ones((2,)), mx.nd.ones((2,))

    def compute() -> None:
        raise ValueError("no gradient")

    engine.push(compute, [], [broken._array.variable], "compute", small=False)
    exchange.submit([item("w", broken, [], 0), item("v", mx.nd.ones((2,)), [out], 0)])
    for array in (out, broken):
        with pytest.raises(MXNetError, match="no gradient"):
            array.asnumpy()
    with pytest.raises(MXNetError, match="operation compute: no gradient"):
        exchange.check()
    exchange.close()
    assert not server.messages


def test_what_collectives_do_not_sum() -> None:
    """A row_sparse array, one of bfloat16, and arrays of other shapes are refused before anything is sent."""
    one = mx.nd.ones((2, 3))
    for other, why in ((one.tostype("row_sparse"), "has a row_sparse one"), (one.astype("bfloat16"), "of bfloat16"),
                       (mx.nd.ones((3, 2)), r"the shapes \(2, 3\) and \(3, 2\)")):
        with pytest.raises(MXNetError, match=f"'w' .*{why}|'w' have {why}"):
            AllReduce._check("w", [one], [other])
    AllReduce._check("w", [one], [one.astype("float16")])
