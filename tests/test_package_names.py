"""What packages written for MXNet import besides its public names: GluonCV and GluonNLP do."""
from __future__ import annotations

import multiprocessing
import multiprocessing.pool
import pickle
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


def test_mixed_precision_is_never_on() -> None:
    assert amp.amp._amp_initialized is False
    with pytest.raises(mx.MXNetError, match="multi_precision"):
        amp.init()


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
