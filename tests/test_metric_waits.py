"""Metrics wait for a batch's values when somebody asks, and not before; errors in values come then at the latest."""
from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import mxc as mx
from mxc.runtime import engine

LABELS = np.array([0, 1, 1, 0, 1], "float32")
SCORES = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]], "float32")
NAMES = {"acc": {}, "top_k_acc": {"top_k": 2}, "f1": {}, "mcc": {}, "pcc": {}, "ce": {}, "nll_loss": {},
         "perplexity": {"ignore_label": 0}, "mae": {}, "mse": {}, "rmse": {}, "pearsonr": {}, "loss": {},
         "composite": {"metrics": ["acc", "mse"]}}


def batch(name: str) -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
    """Labels and predictions that a metric takes."""
    scores = SCORES[:, 0] if name == "pearsonr" else SCORES
    return mx.nd.array(LABELS), mx.nd.array(scores)


class Held:
    """A scope in which work that writes an array goes on until `release`."""

    def __init__(self, array: mx.nd.NDArray):
        self.array, self.event = array._array, threading.Event()

    def __enter__(self) -> Held:
        engine.push(self.event.wait, (), (self.array.variable,), "held", small=False)
        return self

    def release(self) -> None:
        self.event.set()

    def __exit__(self, *_: object) -> None:
        self.event.set()
        engine.waitall()


@pytest.mark.parametrize("name", NAMES)
def test_an_update_waits_for_nothing(name: str):
    label, pred = batch(name)
    ready, late = (mx.metric.create(name, **NAMES[name]) for _ in range(2))
    for _ in range(2):
        ready.update([label], [pred])
    with Held(pred) as held:
        for _ in range(2):
            late.update([label], [pred])
        assert not held.event.is_set()
        pred[:] = 0  # behind what the metric reads
        held.release()
        assert late.get() == ready.get() and late.get_global() == ready.get_global()
    assert not pred.asnumpy().any()


def test_a_function_waits():
    label, pred = batch("custom")
    metric = mx.metric.np(lambda label, pred: float(pred.sum()))
    with Held(pred) as held:
        threading.Timer(0.05, held.release).start()
        metric.update([label], [pred])
        assert held.event.is_set()
    assert metric.get()[1] == pytest.approx(SCORES.sum())


def test_shapes_are_told_at_once():
    label, pred = mx.nd.array(LABELS[:4]), mx.nd.array(SCORES)
    with Held(pred), pytest.raises(ValueError, match=r"4 labels, of shape \(4,\)"):
        mx.metric.Accuracy().update([label], [pred])


@pytest.mark.parametrize("ask", ["get", "get_global", "reset", "reset_local", "update", "num_inst", "copy"])
def test_a_label_that_is_no_class_is_told_by_the_next_call(ask: str):
    label, pred = mx.nd.array([0, 7, 1, 0, 1]), mx.nd.array(SCORES)
    metric = mx.metric.CrossEntropy()
    metric.update([mx.nd.array(LABELS)], [pred])
    before = metric.get()
    with Held(pred) as held:
        metric.update([label], [pred])
        held.release()
        pred.wait_to_read()
        with pytest.raises(IndexError, match="the label 7 is none of 2 classes"):
            engine.waitall()
            if ask == "update":
                metric.update([mx.nd.array(LABELS)], [pred])
            elif ask == "copy":
                copy.deepcopy(metric)
            elif ask == "num_inst":
                assert metric.num_inst
            else:
                getattr(metric, ask)()
    assert metric.get() == before  # told once; the batch is left out


@pytest.mark.parametrize("name", ["f1", "mcc"])
def test_a_batch_that_is_left_out_has_no_score(name: str):
    label, pred = mx.nd.array([0, 1, 2, 0, 1]), mx.nd.array(SCORES)
    metric = mx.metric.create(name)
    metric.update([mx.nd.array(LABELS)], [pred])
    before = metric.get()
    with Held(pred) as held:
        metric.update([label], [pred])
        metric.update([mx.nd.array(LABELS)], [pred])  # behind it, so it does not count either
        held.release()
        with pytest.raises(ValueError, match="is for two classes, the labels have 3"):
            metric.get()
    assert metric.get() == before and metric.num_inst == 1


def test_a_label_that_is_no_class_is_told_at_once_when_it_is_there():
    with pytest.raises(IndexError, match="the label 7 is none of 2 classes"):
        mx.metric.CrossEntropy().update([mx.nd.array([0, 7, 1, 0, 1])], [mx.nd.array(SCORES)])


def test_what_failed_before_is_told_and_left_out():
    def fail() -> None:
        raise ValueError("no value")

    label, pred, good = mx.nd.array(LABELS), mx.nd.array(SCORES), mx.nd.array(SCORES)
    metric = mx.metric.MSE()
    metric.update([label], [good])
    before = metric.get()
    engine.push(fail, (), (pred._array.variable,), "failing", small=False)
    metric.update([label], [pred])
    metric.update([label], [good])
    with pytest.raises(mx.MXNetError, match="failing: no value"):
        metric.get()
    assert metric.get() == before
    metric.update([label], [good])
    assert metric.num_inst == 2 and metric.get() == before


def test_several_threads_update_one_metric():
    label, pred = batch("acc")
    metric, alone = mx.metric.create(["acc", "pcc", "ce"]), mx.metric.create(["acc", "pcc", "ce"])

    def update() -> None:
        for _ in range(50):
            metric.update([label], [pred])

    threads = [threading.Thread(target=update) for _ in range(4)]
    with Held(pred) as held:
        for thread in threads:
            thread.start()
        held.release()
        for thread in threads:
            thread.join()
    for _ in range(200):
        alone.update([label], [pred])
    assert [part.num_inst for part in metric.metrics] == [1000, 200, 1000]
    assert metric.get() == alone.get()


def test_large_batches_are_counted_in_threads():
    rng = np.random.default_rng(3)
    scores, label = rng.random((600, 1000), "float32"), rng.integers(0, 1000, 600)
    order = np.argsort(-scores, axis=1)
    metric = mx.metric.create(["acc", mx.metric.TopKAccuracy(top_k=5), "ce"])
    for _ in range(3):
        metric.update([mx.nd.array(label)], [mx.nd.array(scores)])
    right, within, entropy = metric.get()[1]
    assert right == (order[:, 0] == label).mean()
    assert within == (order[:, :5] == label[:, None]).any(axis=1).mean()
    assert entropy == pytest.approx(-np.log(scores[np.arange(600), label] + 1e-12).mean(), rel=1e-5)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "composite"])
def test_a_copy_goes_on_by_itself(name: str, duplicate):
    label, pred = batch(name)
    metric = mx.metric.create(name, **NAMES[name])
    with Held(pred) as held:
        metric.update([label], [pred])
        threading.Timer(0.02, held.release).start()
        made = duplicate(metric)
        assert held.event.is_set()
    assert made.get() == metric.get()
    before = metric.get()
    made.update([label], [mx.nd.array(pred.asnumpy() * 0.5)])
    assert metric.get() == before


def test_sums_of_a_programs_own_metric_are_plain_numbers():
    class Recall(mx.metric.EvalMetric):
        def update(self, labels, preds):
            for label, pred in zip(labels, preds, strict=True):
                self.sum_metric += int(((pred.asnumpy().argmax(1) == 1) & (label.asnumpy() == 1)).sum())
                self.num_inst += int((label.asnumpy() == 1).sum())

    class Both(mx.metric.EvalMetric):
        """A metric with several values, as programs of MXNet write them."""

        def reset(self):
            self.num_inst, self.sum_metric = [0, 0], [0.0, 0.0]

        def update(self, labels, preds):
            for i, pred in enumerate(preds):
                self.sum_metric[i] += float(pred.asnumpy().sum())
                self.num_inst[i] += 1

        def get(self):
            return [f"{self.name}_{i}" for i in range(2)], [s / n for s, n in zip(self.sum_metric, self.num_inst,
                                                                                strict=True)]

    metric = Recall("recall")
    metric.update(*[[array] for array in batch("recall")])
    assert metric.get() == ("recall", 2 / 3) and metric.get_global() == metric.get()
    both = Both("both")
    both.update([], [mx.nd.ones(3), mx.nd.ones(4)])
    assert both.get_name_value() == [("both_0", 3.0), ("both_1", 4.0)]
    assert str(both) == "EvalMetric: {'both_0': 3.0, 'both_1': 4.0}"


def test_sums_keep_their_digits():
    metric = mx.metric.EvalMetric("own")
    metric.sum_metric = 2.0 ** 25
    metric.num_inst += np.int64(2)
    for _ in range(4):
        metric.sum_metric += np.float32(1)
    assert metric.sum_metric == 2 ** 25 + 4 and type(metric.num_inst) is int
    function = mx.metric.np(lambda label, pred: (np.float32(2 ** 24), np.int64(1)))
    for array in ([1.0], [2.0]):
        function.update([mx.nd.array(array)], [mx.nd.array(array)])
    function.update([mx.nd.array([1])], [mx.nd.array([1])])
    assert function.sum_metric == 3 * 2 ** 24 and str(function) == "EvalMetric: {'custom(<lambda>)': 16777216.0}"


def test_a_name_that_is_not_there_is_named():
    metric = mx.metric.Accuracy(output_names=["softmax_outptu"])
    with pytest.raises(KeyError, match="accuracy: there is no output 'softmax_outptu'; there are softmax_output; "
                                         "did you mean 'softmax_output'"):
        metric.update_dict({"softmax_label": mx.nd.array(LABELS)}, {"softmax_output": mx.nd.array(SCORES)})


def test_a_metric_is_made_again_of_its_configuration():
    for name, arguments in NAMES.items():
        metric = mx.metric.create(name, **arguments)
        config = metric.get_config()
        top = {"top_k_acc": {"name": "top_k_accuracy"}}.get(name, {})  # K comes behind the name once more
        again = mx.metric.create(**{**config, **top})
        assert (type(again), again.get_config()) == (type(metric), config)


def test_global_values_of_all_batches():
    rng = np.random.default_rng(5)
    batches = [(rng.random(7), rng.random(7)) for _ in range(4)]
    metric = mx.metric.PearsonCorrelation(average="micro")
    for i, (label, pred) in enumerate(batches):
        metric.update([mx.nd.array(label)], [mx.nd.array(pred)])
        if i == 1:
            metric.reset_local()
    expected = np.corrcoef(*[np.concatenate(part) for part in zip(*batches, strict=True)])[0, 1]
    assert metric.get_global() == ("pearsonr", pytest.approx(expected, rel=1e-6))


def test_the_first_of_equal_scores_are_the_best():
    metric = mx.metric.TopKAccuracy(top_k=2)
    metric.update([mx.nd.array([0, 1, 2, 3])], [mx.nd.ones((4, 4))])
    assert metric.get() == ("top_k_accuracy_2", 0.5)
    metric = mx.metric.Accuracy()
    metric.update([mx.nd.array([0, 1, 2, 3])], [mx.nd.ones((4, 4))])
    assert metric.get() == ("accuracy", 0.25)
