"""Key-value stores: what they do is compared with MXNet 1.9.1's, see tests/golden/kvstores.py."""
from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from golden import kvstores

import mxc as mx
from mxc.base import MXNetError

ANSWERS = json.loads(kvstores.PATH.read_text())


@pytest.mark.parametrize("name", [name for name in kvstores.CASES if not name.startswith("refused")])
def test_it_does_as_mxnet(name: str) -> None:
    assert kvstores.answers(mx, name) == ANSWERS[name]


@pytest.mark.parametrize("kind", ["local", "device"])
def test_it_refuses_what_mxnet_refuses(kind: str) -> None:
    found, wanted = kvstores.answers(mx, f"refused {kind}"), ANSWERS[f"refused {kind}"]
    for name, classes in wanted.items():
        assert found[name], f"{name} is not refused"
        # MXNet takes a value of another shape for a key; its plain Exception is an MXNetError here
        assert classes in (None, ["Exception"]) or classes[0] in found[name], name


def test_a_key_that_occurs_twice_in_a_list_has_the_sum() -> None:
    store = mx.kv.create("local")
    store.init("w", mx.nd.zeros((2,)))
    out = mx.nd.zeros((2,))
    store.pushpull(["w", "w"], [mx.nd.ones((2,)), [mx.nd.ones((2,)), mx.nd.ones((2,))]], out=[out, mx.nd.zeros((2,))])
    assert out.asnumpy().tolist() == [3, 3]


def test_what_is_given_is_copied() -> None:
    store, given = mx.kv.create(), mx.nd.ones((3,))
    store.init(0, given)
    given[:] = 5
    out = mx.nd.zeros((3,))
    store.pull(0, out)
    out += 1
    store.pull(0, given)
    assert (given.asnumpy().tolist(), out.asnumpy().tolist()) == ([1] * 3, [2] * 3)


def test_an_updater_that_raises_leaves_the_value() -> None:
    store, out = mx.kv.create(), mx.nd.zeros((2,))
    store.init(0, mx.nd.ones((2,)))
    store._set_updater(lambda key, given, stored: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.push(0, mx.nd.ones((2,)))
    store.pull(0, out)
    assert out.asnumpy().tolist() == [1, 1]
    with pytest.raises(TypeError, match="must be a function"):
        store._set_updater(3)


def test_all_weights_go_to_the_optimizer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(mx.optimizer.Updater, "__call__", lambda self, index, grad, weight: calls.append(index))
    store = mx.kv.create()
    store.init([1, 2], [mx.nd.ones((2,))] * 2)
    store.set_optimizer(mx.optimizer.SGD())
    store.push([1, 2], [mx.nd.ones((2,))] * 2)
    assert calls == [[1, 2]]


def test_rows_are_pulled() -> None:
    store, whole = mx.kv.create(), np.arange(12, dtype=np.float32).reshape(4, 3)
    store.init("e", mx.nd.array(whole))
    out = mx.nd.ones((4, 3))
    store.row_sparse_pull("e", out=out, row_ids=mx.nd.array([2, 0]))
    assert (out.asnumpy() == whole * np.array([[1], [0], [1], [0]])).all()
    with pytest.raises(IndexError, match="from 0 to 3"):
        store.row_sparse_pull("e", out=out, row_ids=mx.nd.array([4]))
    with pytest.raises(ValueError, match="row_ids"):
        store.row_sparse_pull("e", out=out)


def test_states_that_cannot_be_read(tmp_path: Path) -> None:
    store = mx.kv.create()
    store.init(0, mx.nd.ones((2,)))
    store.set_optimizer(mx.optimizer.Adam())
    with pytest.raises(MXNetError, match="cannot be read: No such file"):
        store.load_optimizer_states(str(tmp_path / "none"))
    (tmp_path / "cut").write_bytes(b"no states")
    with pytest.raises(ValueError):
        store.load_optimizer_states(str(tmp_path / "cut"))


def test_a_name_that_is_no_store() -> None:
    with pytest.raises(ValueError, match=r"no kvstore is called 'locl'.*did you mean 'local'"):
        mx.kv.create("locl")
    assert mx.kv.create("LOCAL").type == "local"
    with pytest.raises(MXNetError, match="unknown parameter 'size'"):
        mx.kv.create("device").set_gradient_compression({"type": "2bit", "size": 3})
    with pytest.raises(MXNetError, match="has no server"):
        mx.kv.KVStoreServer(mx.kv.create()).run()


def test_a_program_s_own_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx.kv.KVStoreBase, "kv_registry", dict(mx.kv.KVStoreBase.kv_registry))

    @mx.kv.KVStoreBase.register
    class Mine(mx.kv.KVStoreBase):
        pass

    assert isinstance(mx.kv.create("mine"), Mine)
    with pytest.raises(TypeError, match="takes a class"):
        mx.kv.KVStoreBase.register("mine")
    store, values = mx.kv.create("teststore"), [mx.nd.ones((2,)), mx.nd.ones((2,), ctx=mx.cpu(1))]
    store.pushpull("w", values)
    assert [value.asnumpy().tolist() for value in values] == [[2, 2], [2, 2]]
    assert (store.type, store.rank, store.num_workers, store.is_capable("optimizer")) == ("teststore", 0, 1, False)


def test_threads_push_to_keys_of_their_own() -> None:
    store = mx.kv.create()
    store.init(list(range(4)), [mx.nd.zeros((100,))] * 4)
    store._set_updater(lambda key, given, stored: stored.__iadd__(given))

    def work(key: int) -> None:
        for _ in range(50):
            store.push(key, mx.nd.ones((100,)))

    threads = [threading.Thread(target=work, args=(key,)) for key in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out = mx.nd.zeros((100,))
    for key in range(4):
        store.pull(key, out)
        assert (out.asnumpy() == 50).all()
