"""Samplers, datasets and batches of Gluon, written once for MXNet and mxc.

With MXNet's Python, `gluon_data.py` writes what MXNet 1.9.1 answers to gluon_data.json, a line for each case;
tests/test_gluon_samplers.py compares mxc's.
"""
import importlib
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_suffix(".json")


def plain(value):
    """Arrays as their shape, dtype and values; the rest by itself."""
    if hasattr(value, "asnumpy"):
        return ["NDArray", *plain(value.asnumpy())[1:]]
    if isinstance(value, np.ndarray):
        return ["array", str(value.dtype), value.tolist()]
    if isinstance(value, np.generic):
        return [str(value.dtype), value.item()]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    return value


def several(*makes):
    """The answers of several expressions over `data` and `mx`: what a sampler or dataset has, or the error's kind."""
    def call(mx):
        data = importlib.import_module(f"{mx.__name__}.gluon.data")
        found = []
        for make in makes:
            try:
                made = make(data, mx)
                passes = 2 if isinstance(made, data.BatchSampler) else 1
                rolls = getattr(made, "_last_batch", "") == "rollover"
                items = [[plain(item) for item in made] for _ in range(passes)] if not isinstance(
                    made, data.Dataset) else [plain(made[i]) for i in range(len(made))]
                found.append([items, None if rolls else len(made)])
            except Exception as error:
                kinds = (TypeError, AssertionError, ValueError, NotImplementedError, IndexError)
                found.append([kind.__name__ for kind in kinds if isinstance(error, kind)][:1])
        return found

    return call


def batches(*makes, seed=None, **options):
    """The batches of two passes of a DataLoader over the dataset that `make(data, mx)` gives."""
    def call(mx):
        data = importlib.import_module(f"{mx.__name__}.gluon.data")
        found = []
        for make in makes:
            loader = data.DataLoader(make(data, mx), **{name: value(data) if callable(value) else value
                                                        for name, value in options.items()})
            if seed is not None:
                np.random.seed(seed)
            found.append([len(loader), [[plain(batch) for batch in loader] for _ in range(2)]])
        return found

    return call


def sampler(n, size, last):
    return lambda d, mx: d.BatchSampler(d.SequentialSampler(n), size, last)


def numbers(data, mx):
    return data.SimpleDataset(list(range(7)))


def pairs(data, mx):
    return data.ArrayDataset(mx.nd.arange(14).reshape((7, 2)), np.arange(7, dtype="int32"))


CASES = {
    "sequential": several(lambda d, mx: d.SequentialSampler(5), lambda d, mx: d.SequentialSampler(3, 4)),
    "filter": several(lambda d, mx: d.FilterSampler(lambda x: x % 3 == 0, numbers(d, mx))),
    **{f"batches, {last}": several(sampler(7, 3, last), sampler(6, 3, last), sampler(2, 3, last), sampler(0, 3, last))
       for last in ("keep", "discard", "rollover")},
    "batches, some": several(sampler(7, 3, "some")),
    "arrays": several(pairs, lambda d, mx: d.ArrayDataset(mx.nd.arange(3)), lambda d, mx: d.ArrayDataset([5, 6]),
                      lambda d, mx: d.ArrayDataset(), lambda d, mx: d.ArrayDataset([1, 2], [3])),
    "shards": several(*(lambda d, mx, i=i: numbers(d, mx).shard(3, i) for i in (0, 1, 2, 3, -1))),
    "take": several(*(lambda d, mx, n=n: numbers(d, mx).take(n) for n in (0, 3, 7, 9, None))),
    "sample": several(lambda d, mx: numbers(d, mx).sample(d.SequentialSampler(2, 3)),
                      lambda d, mx: numbers(d, mx).sample([1, 2])),
    "filtered": several(lambda d, mx: numbers(d, mx).filter(lambda x: x > 3),
                        lambda d, mx: numbers(d, mx).filter(lambda x: x > 3).shard(2, 0).take(1)),
    "transform": several(lambda d, mx: pairs(d, mx).transform(lambda x, y: x * y),
                         lambda d, mx: pairs(d, mx).transform_first(lambda x: x + 1),
                         lambda d, mx: pairs(d, mx).transform(lambda x, y: (y, x), lazy=False),
                         lambda d, mx: numbers(d, mx).transform_first(lambda x: -x)),
    **{f"loader, {last}": batches(numbers, pairs, batch_size=3, last_batch=last)
       for last in ("keep", "discard", "rollover", None)},
    "loader, shuffled": batches(numbers, pairs, batch_size=3, shuffle=True, seed=7),
    "loader of a sampler": batches(numbers, batch_size=2, sampler=lambda d: d.SequentialSampler(3, 2)),
    "loader of batches": batches(numbers, batch_sampler=lambda d: d.BatchSampler(d.SequentialSampler(5), 2, "discard")),
    "loader of tuples": batches(lambda d, mx: d.SimpleDataset([(i, (np.float32(i), [i, -i])) for i in range(3)]),
                                batch_size=2),
}


def answer(mx, case):
    """What a case gives."""
    return CASES[case](mx)


if __name__ == "__main__":
    import answers

    answers.run(__file__, PATH, CASES, answer)
