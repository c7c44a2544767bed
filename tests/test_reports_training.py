"""What went wrong for users of MXNet: modules, optimizers and data. Each test's name begins with its report; numbers
are what MXNet 1.9.1 gives."""
from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import MXNetError

ROWS = np.random.RandomState(0).rand(12, 4), np.arange(12) % 3


def classifier(**given: Any) -> Any:
    scores = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(scores, name="softmax", **given)


def rows() -> Any:
    return mx.io.NDArrayIter(*ROWS, 4)


def test_l12_a_label_of_another_name_is_named() -> None:
    scores = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    net, given = mx.sym.SoftmaxOutput(scores, name="prob"), {"fc_weight": mx.nd.ones((3, 4)), "fc_bias": mx.nd.ones(3)}
    for names in (("softmax_label",), None):
        module = mx.mod.Module(net, label_names=names)
        module.bind([("data", (2, 4))], for_training=False)
        with pytest.raises(RuntimeError, match=r"prob_label is not presented.*looks like a label.*\['prob_label'\]"):
            module.set_params(given, {})
    module = mx.mod.Module(net, label_names=["prob_label"])
    module.bind([("data", (2, 4))], for_training=False)
    module.set_params(given, {})
    assert module.predict(mx.io.NDArrayIter(np.ones((2, 4)), None, 2)).shape == (2, 3)


def test_s08_a_batch_that_a_symbol_fixes_does_not_go_to_two_devices() -> None:
    scores = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    for shape, fits in (((4, 3), False), ((0, -1), True)):
        net = mx.sym.SoftmaxOutput(mx.sym.Reshape(scores, shape=shape, name="flat"), name="softmax")
        module = mx.mod.Module(net, context=[mx.cpu(0), mx.cpu(1)])
        if fits:
            module.bind([("data", (4, 4))], [("softmax_label", (4,))])
        else:
            with pytest.raises(MXNetError, match=r"(?s)flat.*the batch, which is split between devices"):
                module.bind([("data", (4, 4))], [("softmax_label", (4,))])


@pytest.mark.parametrize("normalization, by_name, by_object", [
    ("null", 0.00167, 0.00667), ("batch", 0.00042, 0.00167), ("valid", 0.00042, 0.00167)])
@pytest.mark.filterwarnings("ignore:Optimizer created manually")
def test_t01_who_divides_by_the_batch(normalization: str, by_name: float, by_object: float) -> None:
    """An optimizer made by its name does, one that is given does not, and a loss that divides does so besides."""
    made = {"sgd": by_name, mx.optimizer.SGD(): by_object, mx.optimizer.SGD(rescale_grad=0.25): by_name}
    for optimizer, expected in made.items():
        module, batches = mx.mod.Module(classifier(normalization=normalization)), rows()
        module.bind(batches.provide_data, batches.provide_label)
        module.init_params(mx.init.One())
        module.init_optimizer(optimizer=optimizer)
        module.forward_backward(next(batches))
        module.update()
        bias = module.get_params()[0]["fc_bias"].asnumpy()
        assert bias == pytest.approx([expected, -expected / 2, -expected / 2], abs=6e-6)


def test_t05_files_are_numbered_from_one_and_epochs_from_nought(tmp_path: Path, caplog: pytest.LogCaptureFixture,
                                                                ) -> None:
    prefix = str(tmp_path / "net")
    mx.mod.Module(classifier()).fit(rows(), num_epoch=3, epoch_end_callback=mx.callback.do_checkpoint(prefix))
    assert sorted(path.name for path in tmp_path.glob("*.params")) == [f"net-000{n}.params" for n in (1, 2, 3)]
    symbol, args, auxs = mx.model.load_checkpoint(prefix, 3)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        mx.mod.Module(symbol).fit(rows(), num_epoch=4, begin_epoch=3, arg_params=args, aux_params=auxs)
    lines = [record.getMessage() for record in caplog.records]
    assert lines and all(line.startswith("Epoch[3] ") for line in lines if "Compiling" not in line)


def test_t09_a_bucket_uses_some_of_the_parameters() -> None:
    def generate(key: int) -> Any:
        net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="all")
        if key <= 1:
            net = mx.sym.FullyConnected(net, num_hidden=4, name="some")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    shapes = [("data", (2, 3))], [("softmax_label", (2,))]
    module = mx.mod.BucketingModule(generate, default_bucket_key=1)
    module.bind(*shapes)
    module.init_params(mx.init.One())
    module.init_optimizer()
    for key in (1, 2, 1, 2):
        module.forward_backward(mx.io.DataBatch([mx.nd.ones((2, 3))], [mx.nd.zeros(2)], bucket_key=key,
                                                provide_data=shapes[0], provide_label=shapes[1]))
        module.update()
    sums = {name: float(value.asnumpy().sum()) for name, value in module.get_params()[0].items()}
    assert sums == pytest.approx({"all_bias": 0.0008, "all_weight": 12.0024, "some_bias": 0, "some_weight": 16},
                                 abs=1e-4)
    module = mx.mod.BucketingModule(generate, default_bucket_key=2)
    module.bind(*shapes)
    module.init_params()
    with pytest.raises(MXNetError, match=r"'some_weight' is not in the module whose parameters this one uses"):
        module.switch_bucket(1, *shapes)


def test_t11_what_decays() -> None:
    """Weights and gammas, those of PReLU too; not biases and betas."""
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    net = mx.sym.LeakyReLU(mx.sym.BatchNorm(net, name="bn", fix_gamma=False), act_type="prelu", name="slope")
    module = mx.mod.Module(mx.sym.MakeLoss(mx.sym.sum(net) * 0), label_names=None)
    module.bind([("data", (2, 3))])
    module.init_params(mx.init.One())
    args, auxs = module.get_params()
    module.set_params({name: mx.nd.ones(value.shape) for name, value in args.items()}, auxs)
    module.init_optimizer(optimizer_params={"learning_rate": 1, "wd": 0.1})
    module.forward_backward(mx.io.DataBatch([mx.nd.ones((2, 3))]))
    module.update()
    found = {name: float(value.asnumpy().flat[0]) for name, value in module.get_params()[0].items()}
    assert found == pytest.approx({"bn_beta": 1, "bn_gamma": 0.9, "fc_bias": 1, "fc_weight": 0.9, "slope_gamma": 0.9})


EPOCHS = {
    "pad": [[([0, 1, 2], 0), ([3, 4, 5], 0), ([6, 7, 8], 0), ([9, 0, 1], 2)]] * 3,
    "discard": [[([0, 1, 2], 0), ([3, 4, 5], 0), ([6, 7, 8], 0)]] * 3,
    "roll_over": [[([0, 1, 2], 0), ([3, 4, 5], 0), ([6, 7, 8], 0)], [([9, 0, 1], 1), ([2, 3, 4], 0), ([5, 6, 7], 0)],
                  [([8, 9, 0], 2), ([1, 2, 3], 0), ([4, 5, 6], 0), ([7, 8, 9], 0)]],
}


@pytest.mark.parametrize("mode", EPOCHS)
def test_d01_what_becomes_of_rows_that_fill_no_batch(mode: str) -> None:
    values = np.arange(10.0).reshape(10, 1)
    batches = mx.io.NDArrayIter({"b": values, "a": values}, values[:, 0], 3, last_batch_handle=mode)
    assert [each.name for each in batches.provide_data] == ["a", "b"]
    for epoch in EPOCHS[mode]:
        assert [(batch.label[0].asnumpy().tolist(), batch.pad) for batch in batches] == epoch
        batches.reset()
