"""What packages written for MXNet import besides its public names: GluonCV and GluonNLP do."""
from __future__ import annotations

import multiprocessing
import multiprocessing.pool
import pickle
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.contrib import amp
from mxc.gluon.data import dataloader
from mxc.gluon.model_zoo import model_store
from mxc.gluon.utils import _get_repo_file_url, _get_repo_url


def test_the_server_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MXNET_GLUON_REPO", raising=False)
    assert _get_repo_url() == "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"
    for given in ("http://a/b", "http://a/b/"):
        monkeypatch.setenv("MXNET_GLUON_REPO", given)
        assert (_get_repo_url(), _get_repo_file_url("x/y", "z")) == ("http://a/b/", "http://a/b/x/y/z")


def test_digests_say_which_weights_are_a_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for digits in ("01234567", "89abcdef"):
        (tmp_path / f"net-{digits}.params").touch()
    assert model_store.get_model_file("net", str(tmp_path)).endswith("net-89abcdef.params")
    monkeypatch.setitem(model_store._model_sha1, "net", "0123456789abcdef")
    assert model_store.get_model_file("net", str(tmp_path)).endswith("net-01234567.params")
    monkeypatch.setitem(model_store._model_sha1, "net", "ffff456789abcdef")
    with pytest.raises(mx.MXNetError, match="no weights of net"):
        model_store.get_model_file("net", str(tmp_path))


def test_mixed_precision_is_off_at_first() -> None:
    assert amp.amp._amp_initialized is False


def batch(data: list[np.ndarray]) -> mx.nd.NDArray:
    return mx.nd.array(np.stack(data))


def test_batches_of_a_pool() -> None:
    dataset = [np.full(2, i) for i in range(7)]
    sampler = mx.gluon.data.BatchSampler(mx.gluon.data.SequentialSampler(7), 3)
    with multiprocessing.pool.ThreadPool(2) as pool:
        batches = dataloader._MultiWorkerIter(pool, batch, sampler, pin_memory=True, prefetch=2, dataset=dataset)
        assert len(batches) == 3
        found = list(batches)
    assert [each.asnumpy()[:, 0].tolist() for each in found] == [[0, 1, 2], [3, 4, 5], [6]]
    assert found[0].context == mx.cpu_pinned()
    with pytest.raises(ValueError, match="worker_fn"):
        dataloader._MultiWorkerIter(pool, batch, sampler)


def scaled(indices: list[int], factor: int, batchify: object) -> bytes:
    """What a worker process gives, as GluonCV's do."""
    return bytes(ForkingPickler.dumps(batch([np.full(2, i * factor) for i in indices]), pickle.HIGHEST_PROTOCOL))


class Scaled(dataloader._MultiWorkerIter):
    """A loader that tells its workers one thing more."""

    def _push_next(self) -> None:
        indices = next(self._iter, None)
        if indices is not None:
            self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(
                self._worker_fn, (indices, 10, self._batchify_fn))
            self._sent_idx += 1


def test_a_loader_that_derives_from_it() -> None:
    sampler = mx.gluon.data.BatchSampler(mx.gluon.data.SequentialSampler(5), 2)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found = [each.asnumpy()[:, 0].tolist() for each in Scaled(pool, batch, sampler, worker_fn=scaled, prefetch=1)]
    assert found == [[0, 10], [20, 30], [40]]


class Chosen(mx.gluon.data.DataLoader):
    """As GluonCV's loader of random transforms: it has workers of its own."""

    def __init__(self, dataset: list[np.ndarray], pool: multiprocessing.pool.ThreadPool):
        super().__init__(dataset, 2, num_workers=0, pin_memory=True, batchify_fn=batch)
        self._worker_pool, self._num_workers = pool, 1

    def __iter__(self) -> Iterator[mx.nd.NDArray]:
        return dataloader._MultiWorkerIter(
            self._worker_pool, self._batchify_fn, self._batch_sampler, pin_memory=self._pin_memory,
            pin_device_id=self._pin_device_id, prefetch=self._prefetch, dataset=self._dataset)


def test_a_loader_with_workers_of_its_own() -> None:
    with multiprocessing.pool.ThreadPool(1) as pool:
        found = list(Chosen([np.full(2, i) for i in range(3)], pool))
    assert [each.asnumpy()[:, 0].tolist() for each in found] == [[0, 1], [2]]
    assert found[0].context == mx.cpu_pinned()


class Dropped(mx.gluon.Parameter):
    """As GluonNLP's WeightDropParameter: it takes the place of a parameter, and gives what becomes of that."""

    def __init__(self, p: mx.gluon.Parameter):
        self._deferred_init = p._deferred_init
        super().__init__(name=p.name, grad_req=p.grad_req, shape=p._shape, dtype=p.dtype, lr_mult=p.lr_mult,
                         wd_mult=p.wd_mult, init=p.init, allow_deferred_init=p._allow_deferred_init,
                         differentiable=p._differentiable)
        self._var, self._data, self._grad = p._var, p._data, p._grad
        self._ctx_list, self._ctx_map, self._trainer = p._ctx_list, p._ctx_map, p._trainer

    def data(self, ctx: mx.Context | None = None) -> mx.nd.NDArray:
        return mx.nd.Dropout(self._check_and_get(self._data, ctx), 0.5, "training", ())


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybrid"])
@pytest.mark.parametrize("first", [False, True], ids=["before", "after initialization"])
def test_parameters_that_give_what_becomes_of_them(hybrid: bool, first: bool) -> None:
    layer = mx.gluon.nn.Dense(50, use_bias=False, in_units=40)
    if first:
        layer.initialize(mx.init.One())
    dropped = Dropped(layer.weight)
    layer.params._params[dropped.name] = layer._reg_params["weight"] = dropped
    if not first:
        layer.initialize(mx.init.One())
    if hybrid:
        layer.hybridize()
    x = mx.nd.ones((1, 40))
    assert layer(x).asnumpy().tolist() == [[40] * 50]
    with mx.autograd.record():
        out = layer(x)
    assert 20 < float(out.asnumpy().std() * 10) < 100 and set(out.asnumpy().ravel() % 2) == {0}
    out.backward()
    kept = dropped.grad().asnumpy()
    assert set(kept.ravel()) == {0, 2} and np.array_equal(kept.sum(1), out.asnumpy()[0])
