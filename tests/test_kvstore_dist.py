"""The parts of kvstores of several processes, without Ray: tests/test_kvstore_processes.py has processes."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError
from mxc.compiler.ops.storage import Rows
from mxc.kvstore import optimizer_data, parts
from mxc.kvstore.compression import TwoBit, unpacked
from mxc.kvstore.exchange import Exchange, Item
from mxc.kvstore.parts import Layout, Part, Spread
from mxc.kvstore.server import Server
from mxc.runtime import engine, outside

# -- parts of values


def test_parts_do_not_depend_on_the_number_of_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(parts.BOUND, "1000")
    one, three = Spread(1), Spread(3)
    for key, shape in enumerate([(30, 100), (7,), (4000,), (1,)]):
        found, other = one.layout(key, shape, "float32", False), three.layout(key, shape, "float32", False)
        assert [(p.begin, p.end) for p in found.parts] == [(p.begin, p.end) for p in other.parts]
        assert found.parts[0].begin == 0 and found.parts[-1].end == shape[0]
        assert max(p.end - p.begin for p in found.parts) * np.prod(shape[1:]) <= 1000
    assert max(three.bytes) < 2 * min(three.bytes)
    assert len(one.layout("whole", (3000,), "float32", True).parts) == 1
    monkeypatch.setenv(parts.BOUND, "none")
    with pytest.raises(MXNetError, match="BIGARRAY_BOUND must be a whole number"):
        parts.bound()


# -- optimizers as data


@pytest.mark.parametrize("name", ["sgd", "adam", "nag", "rmsprop", "lamb", "ftrl", "adagrad", "signum", "lars"])
def test_an_optimizer_of_data_updates_as_the_one_described(name: str) -> None:
    scheduler = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1)
    optimizer = mx.optimizer.create(name, lr_scheduler=scheduler, wd=0.01, param_idx2name={0: "w_weight", 1: "b_bias"})
    optimizer.set_lr_mult({"w_weight": 0.5})
    data = optimizer_data.described(optimizer)
    assert set(map(type, _leaves(data))) <= {bool, int, float, str, type(None)}
    updaters = [mx.optimizer.get_updater(each) for each in (optimizer, optimizer_data.made(data))]
    weights = [[mx.nd.array([1.0, -2, 3]), mx.nd.array([0.5, 0.5])] for _ in updaters]
    for step in range(4):
        for updater, (weight, bias) in zip(updaters, weights, strict=True):
            updater([0, 1], [mx.nd.array([0.1, step, -1]), mx.nd.array([1.0, 2])], [weight, bias])
    for mine, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(mine.asnumpy(), other.asnumpy())


def _leaves(data: Any) -> list[Any]:
    if isinstance(data, dict):
        return [leaf for pair in data.items() for each in pair for leaf in _leaves(each)]
    return [leaf for each in data for leaf in _leaves(each)] if isinstance(data, (list, tuple)) else [data]


def test_what_is_more_than_data_is_refused() -> None:
    class Own(mx.optimizer.SGD):
        pass

    with pytest.raises(ValueError, match="servers know mxc's own classes"):
        optimizer_data.described(Own())
    optimizer = mx.optimizer.create("sgd")
    optimizer.momentum = print
    with pytest.raises(ValueError, match="optimizer's momentum cannot be sent"):
        optimizer_data.described(optimizer)
    with pytest.raises(TypeError, match="takes an Optimizer"):
        optimizer_data.described("sgd")
    with pytest.raises(ValueError, match="no 'Os'"):
        optimizer_data.made({"class": "Os", "settings": {}})


# -- compression


def test_packed_numbers_are_those_of_local_compression() -> None:
    values = np.random.RandomState(0).randn(3, 37).astype("f")
    local, packed = (TwoBit({"type": "2bit", "threshold": 0.7}) for _ in range(2))
    for _ in range(4):
        wanted = local.compressed("k", [mx.nd.array(values)])[0].asnumpy()
        sent = packed.packed(("k", 0), values)
        np.testing.assert_array_equal(unpacked(sent), wanted)
        assert sent.above.nbytes + sent.below.nbytes < values.nbytes / 14


# -- a server


def layout(key: str = "w", shape: tuple[int, ...] = (2,)) -> Layout:
    return Layout(shape, "float32", (Part(key, 0, 0, 0, int(np.prod(shape))),), False)


async def opened(workers: int, is_sync: bool = True, value: tuple[float, ...] = (1.0, 1.0)) -> Server:
    server = Server(0, workers)
    for rank in range(workers):
        assert await server.join(None, [asyncio.get_running_loop().create_future()]) == rank
        await server.open(0, is_sync)
    assert await server.declare(0, 0, 0, layout()) == (layout(), True)
    await server.init(0, {("w", 0): np.array(value, "f")})
    return server


def exchanged(server: Server, rank: int, message: int, value: Any, number: int, pulls: bool = True) -> asyncio.Task:
    pushed = [] if value is None else [(("w", 0), number)]
    return asyncio.create_task(server.exchange(
        0, rank, message, pushed, [] if value is None else [np.array(value, "f")],
        [(("w", 0), number, None)] if pulls else [], [] if value is None else [None]))


def served(program: Callable[[], Any]) -> Any:
    return asyncio.run(asyncio.wait_for(program(), 30))


def test_a_round_has_what_all_workers_pushed_whatever_comes_first() -> None:
    async def program() -> None:
        server = await opened(2)
        late = exchanged(server, 0, 1, (10, 20), 2)  # Ray may start calls in another order
        first = exchanged(server, 0, 0, (1, 2), 1)
        others = [exchanged(server, 1, i, (5, 5), i + 1) for i in range(2)]
        found = [(await task)[0].tolist() for task in (first, *others, late)]
        assert found == [[6, 7], [6, 7], [15, 25], [15, 25]]

    served(program)


def test_an_optimizer_changes_the_value_and_follows_worker_0() -> None:
    async def program() -> None:
        server = await opened(1)
        data = optimizer_data.described(mx.optimizer.create("sgd", learning_rate=0.5))
        await server.set_optimizer(0, data)
        assert (await exchanged(server, 0, 0, (2, 4), 1))[0].tolist() == [0, -1]
        await server.set_optimizer(0, data)  # of a worker that was started again
        await server.exchange(0, 0, 1, [(("w", 0), 2)], [np.ones(2, "f")], [], [{"lr": 0.25}])
        assert (await exchanged(server, 0, 2, None, 2))[0].tolist() == [-0.25, -1.25]

    served(program)


def test_a_worker_that_is_lost_is_an_error_of_the_others() -> None:
    async def program() -> None:
        server = Server(0, 2)
        presence = [asyncio.get_running_loop().create_future() for _ in range(2)]
        for each in presence:
            await server.join(None, [each])
        await server.open(0, True)
        await server.declare(0, 0, 0, layout())
        await server.init(0, {("w", 0): np.ones(2, "f")})
        waiting = exchanged(server, 0, 0, (1, 1), 1)
        await asyncio.sleep(0)
        presence[1].set_exception(RuntimeError("the owner is gone"))
        with pytest.raises(MXNetError, match="worker 1 has been killed or failed; the others cannot go on"):
            await waiting
        with pytest.raises(MXNetError, match="worker 1 has been killed"):
            await server.barrier(0, 1)

    served(program)


def test_a_worker_that_ends_early_is_an_error_of_who_waits_for_it() -> None:
    async def program() -> None:
        server = await opened(2)
        waiting = exchanged(server, 0, 0, (1, 1), 1)
        await asyncio.sleep(0)
        await server.leave(1)
        with pytest.raises(MXNetError, match="worker 1 has ended, and the others wait for it"):
            await waiting
        assert await server.lost(1, "ended with exit code 3") == "worker 1 has ended with exit code 3"
        assert await server.over() == "worker 1 has ended with exit code 3"

    served(program)


def test_the_others_go_on_where_they_need_not_wait() -> None:
    async def program() -> None:
        server = await opened(2, is_sync=False)
        await server.set_optimizer(0, optimizer_data.described(mx.optimizer.create("sgd", learning_rate=1.0)))
        assert (await exchanged(server, 1, 0, (1, 0), 1))[0].tolist() == [0, 1]
        assert await server.lost(1, "been killed (SIGKILL)") == ""
        assert (await exchanged(server, 0, 0, (0, 1), 1))[0].tolist() == [0, 0]
        await server.barrier(0, 1)
        assert await server.join(1, [asyncio.get_running_loop().create_future()]) == 1
        assert await server.declare(0, 1, 0, layout()) == (layout(), False)
        assert (await exchanged(server, 1, 0, None, 0))[0].tolist() == [0, 0]
        assert await server.counts() == {"messages": 3, "bytes": 16}

    served(program)


def rows(numbers: list[int], values: list[float]) -> Rows:
    return Rows(np.array(values, "f")[:, None], np.array(numbers, np.int64), (5, 1))


def rows_of(server: Server, rank: int, message: int, value: Rows | None, number: int, asked: list[int]) -> asyncio.Task:
    pushed = [] if value is None else [(("w", 0), number)]
    return asyncio.create_task(server.exchange(
        0, rank, message, pushed, [] if value is None else [value], [(("w", 0), number, np.array(asked, np.int64))],
        [None] * len(pushed)))


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_server_takes_and_gives_rows_alone(is_sparse: bool) -> None:
    async def program() -> None:
        server = Server(0, 2)
        for _ in range(2):
            await server.join(None, [asyncio.get_running_loop().create_future()])
            await server.open(0, True)
        await server.declare(0, 0, 0, layout(shape=(5, 1)))
        first = rows([0, 1, 2, 3, 4], [1] * 5) if is_sparse else np.ones((5, 1), "f")
        await server.init(0, {("w", 0): first})
        found = [rows_of(server, 0, 0, rows([1, 3], [2, 2]), 1, [0, 3]),
                 rows_of(server, 1, 0, rows([3, 4], [5, 5]), 1, [])]
        assert [(await each)[0].tolist() for each in found] == [[[0], [7]], []]
        assert (await server.counts())["bytes"] == 2 * (2 * 4 + 2 * 8)
        data = optimizer_data.described(mx.optimizer.create("sgd", learning_rate=1.0, wd=1.0))
        await server.set_optimizer(0, data)
        found = [rows_of(server, rank, 1, rows([rank], [1]), 2, [0, 1, 3]) for rank in range(2)]
        assert [(await each)[0].ravel().tolist() for each in found] == [[-1, -1, 7]] * 2  # row 3 has no decay

    served(program)


def test_each_push_is_applied_with_the_numbers_that_the_optimizer_had_then() -> None:
    async def program() -> None:
        server = await opened(1)
        await server.set_optimizer(0, optimizer_data.described(mx.optimizer.create("sgd", learning_rate=1.0)))
        await server.init(0, {("v", 0): np.ones(2, "f")})
        names = [(("w", 0), 1), (("v", 0), 1)]
        found = await server.exchange(0, 0, 0, names, [np.ones(2, "f")] * 2, [(*each, None) for each in names],
                                      [{"lr": 0.5}, {"lr": 0.25}])
        assert [each.tolist() for each in found] == [[0.5, 0.5], [0.75, 0.75]]

    served(program)


@pytest.mark.parametrize(("wanted", "message"), [
    (layout("v"), "initializes the key 'v', where worker 0 initialized 'w'"),
    (layout(shape=(3,)), r"the key 'w' is float32 \(2,\) in worker 0, and float32 \(3,\) here"),
    (layout()._replace(dtype="float16"), r"the key 'w' is float32 \(2,\) in worker 0, and float16 \(2,\) here")])
def test_another_key_shape_or_dtype_is_an_error_of_that_worker(wanted: Layout, message: str) -> None:
    async def program() -> None:
        server = await opened(2)
        with pytest.raises(MXNetError, match=message):
            await server.declare(0, 1, 0, wanted)
        assert await server.declare(0, 1, 0, layout()) == (layout(), False)

    served(program)


def test_servers_refuse_what_does_not_fit() -> None:
    async def program() -> None:
        server = await opened(1)
        with pytest.raises(MXNetError, match=r"what worker 0 pushes is float32 \(3,\)"):
            await exchanged(server, 0, 0, (1, 2, 3), 1)
        with pytest.raises(MXNetError, match="there are 1 workers already"):
            await server.join(None, [asyncio.get_running_loop().create_future()])
        with pytest.raises(MXNetError, match="worker 0 is there already"):
            await server.join(0, [asyncio.get_running_loop().create_future()])
        with pytest.raises(MXNetError, match="there is no worker 5"):
            await server.join(5, [asyncio.get_running_loop().create_future()])
        with pytest.raises(MXNetError, match="some workers have a store of the type dist_sync"):
            await server.open(0, False)
        with pytest.raises(MXNetError, match="no optimizer"):
            await server.states(0)

    served(program)


# -- what a worker sends


class Recorder:
    """In place of a server's actor: notes messages, and answers each with zeros when it is told to."""

    def __init__(self) -> None:
        self.messages: list[list[str]] = []
        self.values: list[Any] = []
        self.asked: list[Any] = []
        self.futures: list[tuple[Future, int]] = []
        self.exchange = SimpleNamespace(remote=self._exchange)

    def _exchange(self, store: int, rank: int, message: int, pushed: Any, values: Any, pulled: Any,
                  settings: Any) -> Any:
        assert message == len(self.messages)
        self.messages.append([name[0] for name, _ in pushed])
        self.values += values
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
            future.set_result([np.zeros(size, "f")] * pulled)
        exchange.settle()
        assert not out.asnumpy().any()
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
            future.set_result([])
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
        servers[0].futures[0][0].set_result([np.array([[1, 2], [3, 4]], "f")])
        servers[1].futures[0][0].set_result([])
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
    servers[1].futures[0][0].set_result([np.full(2, 5, "f")])
    time.sleep(0.1)  # the thread has taken this answer, which cannot be written before the other
    servers[0].futures[0][0].set_result([np.full(2, 4, "f")])
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


def test_a_backward_run_tells_of_gradients_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    x = mx.sym.var("data")
    for i in range(3):
        x = mx.sym.FullyConnected(x, num_hidden=600, name=f"f{i}")
    executor = mx.sym.MakeLoss(x).simple_bind(mx.cpu(), data=(4, 600))
    told: list[int] = []
    monkeypatch.setattr(outside, "announce", lambda variables: told.append(len(variables)))
    for wanted in (0, 1):
        monkeypatch.setattr(outside, "listeners", wanted)
        executor.forward(is_train=True)
        executor.backward()
        mx.nd.waitall()
        assert (len(told) >= 2) == bool(wanted)


def test_without_other_processes_an_error_says_what_starts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DMLC_NUM_WORKER", "DMLC_NUM_SERVER"):
        monkeypatch.delenv(name, raising=False)
    for kind in ("dist_sync", "dist_allreduce"):
        with pytest.raises(MXNetError, match="mxc launch -n WORKERS"):
            mx.kv.create(kind)


def test_without_what_sums_an_error_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DMLC_NUM_WORKER", "2")
    monkeypatch.setenv("DMLC_WORKER_ID", "0")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MXNetError, match="pip install torch"):
        mx.kv.create("dist_allreduce")
