"""What callbacks and monitors log, written once for MXNet and mxc: lines, calls, errors.

With MXNet's Python, `callbacks.py` writes what MXNet 1.9.1 does to callbacks.json; tests/test_callbacks.py compares
mxc's. A case is an expression over the names of `_scope`. Clocks stand still but for what a case says.
"""
# ruff: noqa: B905 (MXNet's Python may be older than `strict`)
import logging
import sys
import time
import warnings
from collections import namedtuple
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import answers

PATH = Path(__file__).with_suffix(".json")
Param = namedtuple("Param", ["epoch", "nbatch", "eval_metric", "locals"])
CASES = r"""
batches('Speedometer(4, 2)', "acc", range(7))
batches('Speedometer(4, 2)', None, range(7))
batches('Speedometer(4, 2, auto_reset=False)', "acc", range(7))
batches('Speedometer(4, 2, auto_reset=False)', ["acc", "mse"], range(7))
batches('Speedometer(4, 2)', ["acc", "mse"], range(7))
batches('Speedometer(4, 2)', [], range(5))
batches('Speedometer(32, 50)', "acc", [0, 49, 50, 51, 100, 101])
batches('Speedometer(4, 2)', "acc", [0, 1, 2, 3, 4, 0, 1, 2, 3, 4])
batches('Speedometer(4, 2)', "acc", [1, 2, 4, 1, 2])
batches('Speedometer(4, 2)', "acc", [2, 4, 4, 6])
batches('Speedometer(4, 2)', "acc", range(5), 0)
batches('Speedometer(4, 1)', "acc", range(3))
batches('Speedometer(4, frequent=0)', "acc", range(3))
batches('Speedometer(0.5, 2)', "acc", range(5))
batches('Speedometer("a", 2)', "acc", range(5))
batches('Speedometer()', "acc", range(5))
batches('Speedometer(4, 2)', "custom", range(5))
batches('log_train_metric(2)', "acc", range(5))
batches('log_train_metric(2, auto_reset=True)', "acc", range(5))
batches('log_train_metric(2)', ["acc", "mse"], range(5))
batches('log_train_metric(2)', None, range(5))
batches('log_train_metric(0)', "acc", range(3))
batches('LogValidationMetricsCallback()', "acc", range(2))
batches('LogValidationMetricsCallback()', ["acc", "mse"], range(2))
batches('LogValidationMetricsCallback()', None, range(2))
batches('ProgressBar(4)', None, range(5))
batches('ProgressBar(4, length=10)', None, range(5))
batches('ProgressBar(total=3, length=7)', "acc", range(5))
batches('ProgressBar(0)', None, range(2))
batches('ProgressBar(8, 0)', None, range(3))
[mx.callback.Speedometer(4).frequent, mx.callback.Speedometer(4).auto_reset, mx.callback.Speedometer(4).batch_size]
[mx.callback.ProgressBar(4).total, mx.callback.ProgressBar(4).bar_len]
epochs(lambda module, folder: mx.callback.module_checkpoint(module, 'p'), 4)
epochs(lambda module, folder: mx.callback.module_checkpoint(module, 'p', 2), 5)
epochs(lambda module, folder: mx.callback.module_checkpoint(module, 'p', 2, True), 5)
epochs(lambda module, folder: mx.callback.module_checkpoint(module, 'p', 0), 3)
epochs(lambda module, folder: mx.callback.module_checkpoint(module, 'p', 1.9), 3)
epochs(lambda module, folder: mx.callback.module_checkpoint(module, 'p', 'a'), 3)
monitored("mx.mon.Monitor(1)", 2)
monitored("mx.mon.Monitor(2)", 5)
monitored("mx.mon.Monitor(1, pattern='.*weight')", 2)
monitored("mx.mon.Monitor(1, pattern='fc')", 1)
monitored("mx.mon.Monitor(1, pattern='c')", 1)
monitored("mx.mon.Monitor(1, sort=True)", 1)
monitored("mx.mon.Monitor(1, sort=True, monitor_all=True)", 1, False)
monitored("mx.mon.Monitor(1, monitor_all=True)", 1, False)
monitored("mx.mon.Monitor(1, lambda x: x.max())", 1)
monitored("mx.mon.Monitor(1, lambda x: [x.max(), x.min()])", 1)
monitored("mx.mon.Monitor(1, lambda x: (x.max(), x.min()))", 1)
monitored("mx.mon.Monitor(1, lambda x: 3)", 1)
monitored("mx.mon.Monitor(1, lambda x: x.asnumpy())", 1)
monitored("mx.mon.Monitor(0)", 1)
monitored("mx.mon.Monitor(1, pattern='(')", 1)
monitored("mx.mon.Monitor(1, pattern='nothing')", 1)
monitored_print("mx.mon.Monitor(1)")
monitored_print("mx.mon.Monitor(1, pattern='.*bias|.*output')")
monitored_twice("mx.mon.Monitor(1)")
[[k for k in sorted(vars(mx.mon.Monitor(3))) if not k.startswith('stat_')], mx.mon.Monitor(3).interval]
[mx.mon.Monitor(1).toc(), mx.mon.Monitor(1).toc_print()]
mx.mon.Monitor()
quiet("mx.mon.Monitor(1)")
""".strip().splitlines()


def logged(call):
    """The lines that the root logger is told during a call, and the error of the call as the last."""
    said, lines = answers.logged(lambda: answers.raised(call))
    return lines + ([said] if isinstance(said, dict) else [])


class _Clock:
    """Clocks that show what `now` says, while this is in force."""

    NAMES = ("time", "monotonic", "perf_counter")

    def __init__(self):
        self.now = 1000.0

    def __enter__(self):
        self.before = [getattr(time, name) for name in self.NAMES]
        for name in self.NAMES:
            setattr(time, name, lambda: self.now)
        return self

    def __exit__(self, *_):
        for name, function in zip(self.NAMES, self.before):
            setattr(time, name, function)


# long: many short functions, which cases call by name
def _scope(mx):
    """The names of a case's expression. batches: the lines of a callback that is called with these numbers of batches,
    each `seconds` after the one before. epochs: what it asks of a module. monitored: what a monitor has of a network's
    runs."""
    def metric_of(what):
        if what is None:
            return None
        return mx.metric.create((lambda label, pred: (7.0, 2)) if what == "custom" else what)

    def batches(text, what, numbers, seconds=0.25):
        def run():
            call = eval(f"mx.callback.{text}", {"mx": mx})
            metric = metric_of(what)
            for i, number in enumerate(numbers):
                if metric is not None:
                    rng = np.random.RandomState(i)
                    metric.update([mx.nd.array(rng.randint(0, 2, (4, 1)))], [mx.nd.array(rng.uniform(0, 1, (4, 2)))])
                clock.now += seconds
                call(Param(3, number, metric, None))
                lines = logging.getLogger().handlers[0].lines
                if metric is not None:
                    lines.append(f"{metric.get()} {metric.get_global()}")

        with _Clock() as clock:
            return logged(run)

    def epochs(make, count):
        told = []

        class Module:
            def save_checkpoint(self, *args, **kwargs):
                told.append([list(args), sorted(kwargs.items())])

        call = make(Module(), None)
        for epoch in range(count):
            call(epoch, None, {}, {})
        return told

    def network():
        S = mx.sym
        net = S.SoftmaxOutput(S.FullyConnected(S.var("x"), num_hidden=2, name="fc"), name="sm")
        bound = net.simple_bind(mx.cpu(), x=(3, 4))
        rng = np.random.RandomState(1)
        for name, array in zip(net.list_arguments(), bound.arg_arrays):
            array[:] = rng.randint(0, 2, array.shape) if name == "sm_label" else rng.uniform(-1, 1, array.shape)
        return bound

    def run(bound, back=True):
        for output in bound.forward(is_train=True):
            output.wait_to_read()
        if back:
            bound.backward()

    def monitored(text, batches, back=True):
        monitor = eval(text, {"mx": mx})
        bound, found = network(), []
        monitor.install(bound)
        for _ in range(batches):
            monitor.tic()
            run(bound, back)
            found.append(monitor.toc())
        return [found, monitor.step]

    def monitored_print(text):
        monitor, bound = eval(text, {"mx": mx}), network()
        monitor.install(bound)
        monitor.tic()
        run(bound)
        return logged(monitor.toc_print)

    def monitored_twice(text):
        monitor, first, second = eval(text, {"mx": mx}), network(), network()
        monitor.install(first)
        monitor.install(second)
        monitor.tic()
        run(first)
        run(second)
        return [monitor.toc(), monitor.toc(), len(monitor.exes)]

    def quiet(text):
        monitor, bound = eval(text, {"mx": mx}), network()
        monitor.install(bound)
        run(bound)
        return [monitor.toc(), monitor.queue, monitor.activated, monitor.step]

    return {"mx": mx, **{f.__name__: f for f in (
        batches, epochs, monitored, monitored_print, monitored_twice, quiet)}}


def answer(mx, case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return answers.raised(lambda: answers.plain(eval(case, _scope(mx))))


if __name__ == "__main__":
    print(f"{len(answers.run(__file__, PATH, CASES, answer))} cases")
