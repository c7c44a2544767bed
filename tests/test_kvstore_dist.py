"""The parts of kvstores of several processes, without Ray: tests/test_kvstore_exchange.py has what workers send, and
tests/test_kvstore_processes.py processes."""
from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError
from mxc.compiler.ops.storage import Rows
from mxc.kvstore import optimizer_data, parts
from mxc.kvstore.compression import TwoBit, unpacked
from mxc.kvstore.parts import Layout, Part, Spread
from mxc.kvstore.server import Server
from mxc.runtime import outside, updates

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


async def answered(call: Any) -> list[Any]:
    answers, refs = await call
    assert not refs
    return answers


def exchanged(server: Server, rank: int, message: int, value: Any, number: int, pulls: bool = True) -> asyncio.Task:
    pushed = [] if value is None else [(("w", 0), number)]
    return asyncio.create_task(answered(server.exchange(
        0, rank, message, pushed, [] if value is None else [np.array(value, "f")],
        [(("w", 0), number, None)] if pulls else [], [] if value is None else [None])))


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


class Objects:
    """In place of Ray's object store."""

    def __init__(self) -> None:
        self.kept: list[list[np.ndarray]] = []

    def put(self, values: list[np.ndarray]) -> int:
        self.kept.append([np.array(value) for value in values])
        return len(self.kept) - 1

    def get(self, refs: list[int]) -> list[list[np.ndarray]]:
        return [self.kept[ref] for ref in refs]


@pytest.mark.parametrize("with_optimizer", [False, True])
def test_all_workers_are_given_one_object(with_optimizer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    objects, size = Objects(), parts.INLINE // 4
    monkeypatch.setattr("mxc.kvstore.server.package", lambda: objects)

    async def program() -> None:
        server = await opened(2, value=(0.0,) * size)
        await server.init(0, {("v", 0): np.zeros(2, "f")})
        if with_optimizer:
            await server.set_optimizer(0, optimizer_data.described(mx.optimizer.create("sgd", learning_rate=1.0)))
        names = [("w", 0), ("v", 0)]
        for number in (1, 2):
            found = await asyncio.gather(*[asyncio.create_task(server.exchange(
                0, rank, number - 1, [(name, number) for name in names],
                [np.full(size, 3 * number + rank, "f"), np.full(2, 7 * number, "f")],
                [(name, number, None) for name in names[::-1]], [None] * 2)) for rank in range(2)])
            assert found == [([1, 0], [number - 1])] * 2  # places in the object of this round
            assert len(objects.kept) == number
        wanted = [[7, 13], [14, 28]]  # sums of the rounds
        for kind, (first, second) in enumerate(wanted):
            given = [objects.kept[number][kind] for number in range(2)]
            assert [set(each.tolist()) for each in given] == (
                [{-first}, {-first - second}] if with_optimizer else [{first}, {second}])

    served(program)


def test_what_one_worker_pushes_is_its_answer() -> None:
    async def program() -> None:
        server = await opened(1)
        await server.init(0, {("v", 0): np.zeros(2, "f")})
        pulled = [(("v", 0), 0, None), (("w", 0), 1, None)]
        answers, refs = await server.exchange(0, 0, 0, [(("w", 0), 1)], [np.full(2, 5, "f")], pulled, [None], True)
        assert answers[0].tolist() == [0, 0] and answers[1] == 0 and not refs  # type: ignore[union-attr]
        assert (await exchanged(server, 0, 1, None, 1))[0].tolist() == [5, 5]

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


@pytest.mark.parametrize("name", ["sgd", "lamb", "lars", "groupadagrad"])
def test_a_part_is_updated_as_its_value_whatever_else_is_on_its_server(name: str, monkeypatch: pytest.MonkeyPatch,
                                                                       ) -> None:
    monkeypatch.setattr(updates, "COMPILED", updates.COMPILED)  # it gets its value again
    monkeypatch.setattr(updates, "_compiled", set())
    scheduler = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1)
    optimizer = mx.optimizer.create(name, lr_scheduler=scheduler, param_idx2name={3: "w_gamma"},
                                    wd=0.0 if name == "groupadagrad" else 0.1)
    first, slopes = np.random.RandomState(0).uniform(-1, 1, (2, 20, 5)).astype("f")

    async def program(others: int) -> np.ndarray:
        server = Server(0, 1)
        await server.ready()
        await server.join(None, [asyncio.get_running_loop().create_future()])
        await server.open(0, True)
        await server.set_optimizer(0, optimizer_data.described(optimizer))
        names = [(3, 0), *[(9 + i, 0) for i in range(others)]]
        await server.init(0, {each: first if each == (3, 0) else np.ones((40, 30), "f") for each in names})
        for step in range(1, 5):
            for message, each in enumerate(reversed(names)):
                given = slopes if each == (3, 0) else np.ones((40, 30), "f")
                found, _ = await server.exchange(0, 0, (step - 1) * len(names) + message, [(each, step)], [given],
                                                 [(each, step, None)], [None])
        return found[0]

    alone, beside = served(lambda: program(0)), served(lambda: program(1))
    np.testing.assert_array_equal(alone, beside)
    updater, weight = mx.optimizer.get_updater(optimizer), mx.nd.array(first)
    for _ in range(4):
        updater(3, mx.nd.array(slopes), weight)
    np.testing.assert_allclose(alone, weight.asnumpy(), rtol=1e-4)


def test_an_update_that_fails_is_an_error_of_all_workers() -> None:
    async def program() -> None:
        server = await opened(2)
        await server.set_optimizer(0, optimizer_data.described(mx.optimizer.create("groupadagrad")))
        results = await asyncio.gather(*[exchanged(server, rank, 0, (1, 1), 1) for rank in range(2)],
                                       return_exceptions=True)
        assert all(isinstance(each, MXNetError) and "GroupAdaGrad updates" in str(each) for each in results)

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


def test_a_program_that_has_ended_is_waited_for_as_long_as_something_of_it_is_on_its_way() -> None:
    async def program() -> None:
        server = await opened(2)
        first = exchanged(server, 1, 0, (1, 1), 1)
        await server.close(1, {(0, "w"): 2})  # it waits for the answer, so it has not left
        with pytest.raises(MXNetError, match="worker 1 has ended, and the others wait for it"):
            await server.barrier(0, 1)
        assert [(await each)[0].tolist() for each in (exchanged(server, 0, 0, (2, 4), 1), first)] == [[3, 5], [3, 5]]
        second = exchanged(server, 0, 1, (2, 4), 2)
        await asyncio.sleep(0)
        await exchanged(server, 1, 1, (1, 1), 2)
        assert (await second)[0].tolist() == [3, 5]
        with pytest.raises(MXNetError, match="worker 1 has ended, and the others wait for it"):
            await exchanged(server, 0, 2, (2, 4), 3)
        await server.close(0, {})
        for rank in range(2):
            await server.leave(rank)
        assert await server.ends() == [1, 0]

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
    return asyncio.create_task(answered(server.exchange(
        0, rank, message, pushed, [] if value is None else [value], [(("w", 0), number, np.array(asked, np.int64))],
        [None] * len(pushed))))


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


def test_a_message_of_a_worker_that_was_started_again_does_not_count() -> None:
    async def program() -> None:
        server = await opened(2, is_sync=False)
        await server.set_optimizer(0, optimizer_data.described(mx.optimizer.create("sgd", learning_rate=1.0)))
        late = exchanged(server, 1, 1, (5, 5), 2)  # the one before it never came
        await asyncio.sleep(0)
        await server.lost(1, "been killed")
        await server.join(1, [asyncio.get_running_loop().create_future()])
        with pytest.raises(MXNetError, match="worker 1 was started again"):
            await late
        found = [(await exchanged(server, 1, i, (1, 2), i + 1))[0].tolist() for i in range(2)]
        assert found == [[0, -1], [-1, -3]]

    served(program)


def test_each_push_is_applied_with_the_numbers_that_the_optimizer_had_then() -> None:
    async def program() -> None:
        server = await opened(1)
        await server.set_optimizer(0, optimizer_data.described(mx.optimizer.create("sgd", learning_rate=1.0)))
        await server.init(0, {("v", 0): np.ones(2, "f")})
        names = [(("w", 0), 1), (("v", 0), 1)]
        found = await answered(server.exchange(0, 0, 0, names, [np.ones(2, "f")] * 2,
                                               [(*each, None) for each in names], [{"lr": 0.5}, {"lr": 0.25}]))
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


# -- workers


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
