"""Artifacts of blocks: mx.gluon.compile, and what export writes, as `mxc compile` reads it."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc import gluon
from mxc.base import MXNetError
from mxc.gluon import nn


def network() -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.Flatten(), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    return net


def only(results: dict[str, np.ndarray]) -> np.ndarray:
    (value,) = results.values()
    return value


class Two(gluon.HybridBlock):
    """Two inputs, one of them read twice, and two outputs."""

    def hybrid_forward(self, F, x, y):
        return F.dot(x, y), x + 1


def test_a_block_becomes_an_artifact(tmp_path: Path):
    net, x = network(), mx.nd.random.uniform(shape=(2, 1, 6, 6))
    model = gluon.compile(net, x, tmp_path / "net.mxc")
    np.testing.assert_allclose(only(model.predict(data=x.asnumpy())), net(x).asnumpy(), rtol=1e-5, atol=1e-6)
    net[4].bias.data()[:] = 5  # the artifact has the values of then
    assert abs(only(model.predict(data=x.asnumpy())) - net(x).asnumpy()).max() > 1
    again = mx.load(tmp_path / "net.mxc")
    np.testing.assert_array_equal(only(again.predict(data=x.asnumpy())), only(model.predict(data=x.asnumpy())))


def test_several_shapes_and_inputs(tmp_path: Path):
    net = Two()
    sets = [[mx.nd.ones((n, 3)), mx.nd.ones((3, 2))] for n in (1, 4)]
    model = gluon.compile(net, sets, tmp_path / "two.mxc")
    assert model.input_names == ("data0", "data1")
    for x, y in sets:
        product, more = model.predict(data0=x.asnumpy(), data1=y.asnumpy()).values()
        assert product.shape == (len(x), 2) and (product == 3).all() and (more == 2).all()


def test_the_default_path_is_the_blocks_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    gluon.compile(network(), mx.nd.ones((1, 1, 6, 6)))
    assert (tmp_path / "net.mxc").exists()


def test_what_export_writes_is_compiled(tmp_path: Path):
    net, x = network(), mx.nd.random.uniform(shape=(2, 1, 6, 6))
    net.hybridize()
    wanted = net(x).asnumpy()
    net.export(str(tmp_path / "net"))
    done = subprocess.run([sys.executable, "-m", "mxc", "compile", str(tmp_path / "net-symbol.json"), "--shape",
                           "data=2,1,6,6", "-o", str(tmp_path / "net.mxc")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    model = mx.load(tmp_path / "net.mxc")
    np.testing.assert_allclose(only(model.predict(data=x.asnumpy())), wanted, rtol=1e-5, atol=1e-6)


def test_refusals(tmp_path: Path):
    with pytest.raises(TypeError, match="only a HybridBlock has a graph"):
        gluon.compile(gluon.Block(), mx.nd.ones(2))
    with pytest.raises(TypeError, match="is compiled for arrays"):
        gluon.compile(network(), np.ones((1, 1, 6, 6)))
    with pytest.raises((MXNetError, TypeError)):
        gluon.compile(Two(), mx.nd.ones((2, 3)), tmp_path / "two.mxc")
    assert not list(tmp_path.iterdir())
