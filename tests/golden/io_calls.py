"""Short programs with `mx.io`, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `io_calls.py` writes what MXNet 1.9.1 answers to io_calls.json, a line for each program;
tests/test_io.py compares mxc's.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import answers

X, Y = np.arange(20, dtype="float32").reshape(10, 2), np.arange(10, dtype="float32")


def _first(array):
    """The first number of each element: enough to tell which it is."""
    return array.asnumpy().reshape(array.shape[0], -1)[:, 0].tolist() if array.size else []


def _whole(array):
    return [type(array).__name__.replace("CSR", ""), str(np.dtype(array.dtype)), array.asnumpy().tolist()]


def _batch(batch, shown=_first):
    index = None if batch.index is None else [int(i) for i in batch.index]
    described = [None if d is None else [str(each) for each in d] for d in (batch.provide_data, batch.provide_label)]
    return [[shown(a) for a in batch.data], [shown(a) for a in batch.label], batch.pad, index, batch.bucket_key,
            *described]


def _epochs(iterator, times=3, shown=_first):
    found = []
    for _ in range(times):
        found.append([_batch(batch, shown) for batch in iterator])
        iterator.reset()
    return found


def _provided(iterator):
    return [[str(d), str(np.dtype(d.dtype)), d.layout] for d in (*iterator.provide_data, *iterator.provide_label)]


# ---- NDArrayIter

def _of(n, batch, mode, **more):
    return lambda mx: _epochs(mx.io.NDArrayIter(X[:n], Y[:n], batch, last_batch_handle=mode, **more), 4)


def _by_hand(mode):
    def call(mx):
        it = mx.io.NDArrayIter(X, Y, 4, last_batch_handle=mode)
        found = [it.cursor]
        for _ in range(2):
            while it.iter_next():
                found.append([it.cursor, _first(it.getdata()[0]), _first(it.getlabel()[0]), it.getpad(), it.getindex()])
            found.append([it.cursor, it.getpad()])
            it.reset()
            found.append(it.cursor)
        it.iter_next()
        it.hard_reset()
        return [*found, it.cursor, it.getpad()]

    return call


def _resets(mode):
    def call(mx):
        it = mx.io.NDArrayIter(X, Y, 4, last_batch_handle=mode)
        found = [_batch(it.next())]
        it.reset()
        found += [it.cursor, *map(_batch, it)]
        it.hard_reset()
        found += [it.cursor, *map(_batch, it)]
        it.reset()
        it.reset()
        return [*found, it.cursor, *map(_batch, it)]

    return call


def _behind_the_end(mode):
    def call(mx):
        it = mx.io.NDArrayIter(X, Y, 4, last_batch_handle=mode)
        found = [len(list(it))]
        for _ in range(3):
            found.append([answers.raised(it.next), it.cursor])
        it.reset()
        return [*found, it.cursor, *map(_batch, it)]

    return call


def _shuffled(mode):
    def call(mx):
        np.random.seed(3)
        it = mx.io.NDArrayIter({"b": mx.nd.array(X), "a": X}, {"k": Y}, 4, shuffle=True, last_batch_handle=mode)
        found = _epochs(it)
        it.hard_reset()
        found += [_first(it.data[0][1]), _first(it.label[0][1]), it.idx.tolist()]
        return [*found, *map(_batch, it), int(np.random.randint(1000000))]

    return call


def _given(*args, **kwargs):
    return lambda mx: _provided(mx.io.NDArrayIter(*args, **kwargs))


MODES = ("pad", "discard", "roll_over", "another")
CASES = {f"{mode} {n} by {batch}": _of(n, batch, mode) for mode in MODES
         for n, batch in ((10, 3), (10, 5), (10, 4), (3, 3), (7, 2), (10, 10), (5, 4))}
CASES |= {f"few: {mode}": _of(3, 5, mode) for mode in ("pad", "discard")}
CASES |= {f"{name}: {mode}": make(mode) for mode in MODES[:3] for name, make in (
    ("by hand", _by_hand), ("resets", _resets), ("behind the end", _behind_the_end), ("shuffled", _shuffled))}
CASES |= {f"given {name}": call for name, call in {
    "one": _given(X, Y, 3), "no label": _given(X, None, 3), "an empty label": _given(X, [], 3),
    "other dtypes": _given(X.astype("float64"), Y.astype("int64"), 3), "a layout": _given(X, Y, 3, layout="NC"),
    "a list of one": _given([X], [Y], 3), "lists": _given([X, X], [Y, X, Y], 3),
    "names": _given([X, X], Y, 3, data_name="u", label_name="v"),
    "dicts": _given({"b": X, "a": Y}, {"z": Y, "c": X}, 3),
    "lists of numbers": _given([[1, 2], [3, 4]], None, 1), "a list in a dict": _given({"a": [1, 2, 3]}, None, 1),
    "a longer label": _given(X[:4], Y, 3), "a tuple": _given((X, X), None, 1), "text": _given("abc", None, 1),
    "text in a dict": _given({"a": "abc"}, None, 1), "a number": _given(np.float32(3), None, 1),
}.items()}
CASES["given an NDArray"] = lambda mx: _whole(next(mx.io.NDArrayIter(mx.nd.array(X, dtype="int32"), None, 3)).data[0])


# ---- descriptions, batches, iterators of one's own

def _described(mx):
    desc = mx.io.DataDesc
    short = desc("d", (1, 2), "int8", "NT")
    return [str(desc("data", (1, 2))), repr(short), list(short), desc._fields, short == ("d", (1, 2)),
            [desc.get_batch_axis(layout) for layout in (None, "NCHW", "TNC", "", "CHW")],
            [str(d) for d in desc.get_list([("a", (1, 2)), ("b", (3,))], [("a", "int8"), ("b", "int32")])],
            [str(d) for d in desc.get_list([("a", (1, 2)), ("b", (3,))], None)]]


def _printed(mx):
    a, b = mx.nd.zeros((2, 3)), mx.nd.zeros((2,))
    batch = mx.io.DataBatch([a])
    return [str(mx.io.DataBatch([a], [b], pad=1)), str(batch), str(mx.io.DataBatch((a, b), (b,))),
            sorted(vars(batch)), [batch.pad, batch.index, batch.label, batch.bucket_key]]


def own(mx, count=3, key=None):
    """An iterator as programs write them."""
    class Own(mx.io.DataIter):
        def __init__(self):
            super().__init__(2)
            self.at = 0
            self.provide_data, self.provide_label = [mx.io.DataDesc("d", (2, 1))], [("l", (2,))]
            if key is not None:
                self.default_bucket_key = key

        def reset(self):
            self.at = 0

        def next(self):
            if self.at == count:
                raise StopIteration
            self.at += 1
            array = mx.nd.full((2, 1), self.at)
            return mx.io.DataBatch([array], [array], self.at, [self.at], key, self.provide_data, self.provide_label)

    return Own()


class _Counting:
    """What `next` of the base class makes of the other methods."""

    def __init__(self, mx):
        class Counting(mx.io.DataIter):
            at = 0

            def iter_next(self):
                self.at += 1
                return self.at < 3

            def getdata(self):
                return [self.at]

            def getpad(self):
                return 7

        self.found = [[b.data, b.label, b.pad, b.index] for b in Counting(2)]


CASES |= {
    "descriptions": _described,
    "a dtype that is missing": lambda mx: mx.io.DataDesc.get_list([("a", (1,)), ("b", (3,))], [("a", "int8")]),
    "batches": _printed,
    "a base": lambda mx: [vars(mx.io.DataIter()), mx.io.DataIter().iter_next(), mx.io.DataIter().getpad()],
    "a base's next": lambda mx: mx.io.DataIter().next(),
    "counting": lambda mx: _Counting(mx).found,
}


# ---- iterators over iterators

def _resized_by_hand(mx):
    it = mx.io.ResizeIter(mx.io.NDArrayIter(X, Y, 4), 2)
    found = [it.current_batch, it.iter_next(), _first(it.getdata()[0]), _first(it.getlabel()[0]), it.getpad(),
             it.getindex(), it.cur]
    return [*found, it.iter_next(), it.iter_next(), it.iter_next()]


def _two(mx, *more, **kwargs):
    nd = mx.io.NDArrayIter
    return mx.io.PrefetchingIter([nd(X, Y, 4), nd(*(more or (X, Y, 4)), data_name="e", label_name="f")], **kwargs)


def _ahead_by_hand(mx):
    it = mx.io.PrefetchingIter(mx.io.NDArrayIter(X, Y, 4))
    found = [it.iter_next(), _first(it.getdata()[0]), _first(it.getlabel()[0]), it.getpad(), it.getindex(),
             *map(_batch, it), it.iter_next(), it.iter_next()]
    it.reset()
    found.append(_batch(it.next()))
    it.reset()
    it.reset()
    return [*found, len(list(it))]


CASES |= {f"resized {name}": call for name, call in {
    "longer": lambda mx: _epochs(mx.io.ResizeIter(mx.io.NDArrayIter(X, Y, 4), 5)),
    "shorter": lambda mx: _epochs(mx.io.ResizeIter(mx.io.NDArrayIter(X, Y, 4), 2)),
    "going on": lambda mx: _epochs(mx.io.ResizeIter(mx.io.NDArrayIter(X, Y, 4), 2, reset_internal=False)),
    "to nothing": lambda mx: _epochs(mx.io.ResizeIter(mx.io.NDArrayIter(X, Y, 4), 0)),
    "from nothing": lambda mx: _epochs(
        mx.io.ResizeIter(mx.io.NDArrayIter(X[:3], Y, 4, last_batch_handle="discard"), 2)),
    "own": lambda mx: _epochs(mx.io.ResizeIter(own(mx, key=7), 4)),
    "buckets": lambda mx: [mx.io.ResizeIter(own(mx, key=7), 4).default_bucket_key,
                           hasattr(mx.io.ResizeIter(own(mx), 4), "default_bucket_key")],
    "by hand": _resized_by_hand,
}.items()}
CASES |= {f"ahead: {name}": call for name, call in {
    "one": lambda mx: _epochs(mx.io.PrefetchingIter(mx.io.NDArrayIter(X, Y, 4))),
    "a list of one": lambda mx: _epochs(mx.io.PrefetchingIter([mx.io.NDArrayIter(X, Y, 4)])),
    "two": lambda mx: _epochs(_two(mx)),
    "two, described": lambda mx: [_provided(_two(mx)), _two(mx).batch_size, _two(mx).n_iter],
    "renamed": lambda mx: _provided(_two(mx, rename_data=[{"data": "a"}, {"e": "b"}],
                                         rename_label=[{"softmax_label": "u"}, {"f": "w"}])),
    "own": lambda mx: _epochs(mx.io.PrefetchingIter([own(mx, key=5), own(mx, key=6)])),
    "own, renamed": lambda mx: [str(d) for d in mx.io.PrefetchingIter(
        own(mx), rename_data=[{"d": "a"}], rename_label=[{"l": "u"}]).provide_label],
    "by hand": _ahead_by_hand,
}.items()}


# ---- files

LINES = "1,2,3\n4,5,6\n7,8,9\n10,11,12\n13,14,15\n"
LABELS = "1\n2\n3\n4\n5\n"
TWO = "1\n2\n"
PAIRS = "1 0:0.5 2:1.25\n2 1:3\n3\n4 0:1 1:2 2:3\n5 2:-1e2\n"


FOLDER = tempfile.TemporaryDirectory()  # until the end: MXNet reads ahead


def write(content):
    """The path of a new file."""
    path = Path(FOLDER.name) / str(len(list(Path(FOLDER.name).iterdir())))
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def _csv(text=LINES, label=LABELS, times=2, **more):
    def call(mx):
        labels = {} if label is None else {"label_csv": write(label)}
        it = mx.io.CSVIter(data_csv=write(text), **labels, **{"data_shape": (3,), "batch_size": 2, **more})
        return [_provided(it), it.batch_size, *_epochs(it, times, _whole)]

    return call


def _csv_by_hand(mx):
    it = mx.io.CSVIter(data_csv=write(LINES), label_csv=write(LABELS), data_shape=(3,), batch_size=2)
    found = [_batch(it.next()), bool(it.iter_next()), _first(it.getdata()), _first(it.getlabel()), it.getpad(),
             it.getindex().tolist(), _batch(it.next()), answers.raised(it.next), answers.raised(it.next)]
    it.reset()
    found.append(_batch(it.next()))
    return found


def _csv_again_and_again(mx):
    it = mx.io.CSVIter(data_csv=write(LINES), data_shape=(3,), batch_size=2)
    it.debug_skip_load()
    return [_batch(it.next()) for _ in range(5)]


def _libsvm(text=PAIRS, label=None, **more):
    def call(mx):
        labels = {} if label is None else {"label_libsvm": write(label)}
        it = mx.io.LibSVMIter(data_libsvm=write(text), **labels, **{"data_shape": (3,), "batch_size": 2, **more})
        return _epochs(it, 2, _whole)

    return call


def idx(values, magic=None):
    """A file of MNIST's with these bytes."""
    return struct.pack(f">{1 + values.ndim}I", magic or 0x800 + values.ndim, *values.shape) + values.tobytes()


def mnist_files(n=10):
    images = (np.arange(n * 6) * 4 % 256).astype("uint8").reshape(n, 2, 3)
    return {"image": write(idx(images)), "label": write(idx(np.arange(n, dtype="uint8")))}


def _mnist(shown=_first, n=10, **more):
    def call(mx):
        it = mx.io.MNISTIter(**{**mnist_files(n), "batch_size": 4, "silent": True, **more})
        return [_provided(it), *_epochs(it, 2, shown)]

    return call


CASES |= {f"csv {name}": call for name, call in {
    "with labels": _csv(), "without labels": _csv(label=None), "not round": _csv(round_batch=False, times=3),
    "round": _csv(times=4), "in one": _csv(batch_size=5), "int32": _csv(dtype="int32"),
    "int64": _csv("9007199254740993,2,3\n", "1\n", dtype="int64", batch_size=1),
    "another shape": _csv(data_shape=(3, 1)), "a row": _csv(data_shape=(1, 3), data_name="x", label_name="y"),
    "a number": _csv(data_shape=3, label_shape=1), "text for all": _csv(data_shape="(3,)", batch_size="2"),
    "one wide": _csv(LABELS, data_shape=(1,)), "two labels": _csv(label="1,2\n3,4\n5,6\n7,8\n9,0\n", label_shape=(2,)),
    "more labels": _csv(label=LABELS + LABELS, round_batch=False),
    "byte order mark": _csv(b"\xef\xbb\xbf1,2,3\n4,5,6\n", TWO), "crlf": _csv("1,2,3\r\n4,5,6\r\n", TWO),
    "cr": _csv("1,2,3\r4,5,6\r", TWO), "no end": _csv("1,2,3\n4,5,6", TWO),
    "blank lines": _csv("1,2,3\n\n4,5,6\n\n", TWO),
    "commas behind": _csv("1,2,3,\n4,5,6,\n", TWO), "spaces": _csv("1 , 2,3\n 4, 5 ,6\n", TWO),
    "other numbers": _csv("1e3,-2.5E-1,+3\n.5,5.,6\n", TWO),
    "few labels": _csv(label="1\n2\n3\n"), "an empty cell": _csv("1,,3\n4,5,6\n", TWO),
    "text": _csv("1,abc,3\n4,5,6\n", TWO),
    "a header": _csv("a,b,c\n1,2,3\n", TWO), "a short row": _csv("1,2,3\n4,5\n", TWO),
    "a long row": _csv("1,2,3\n4,5,6,7\n", TWO),
    "semicolons": _csv("1;2;3\n"), "nothing": _csv(""), "float64": _csv(dtype="float64"),
    "no shape": lambda mx: mx.io.CSVIter(data_csv="none", batch_size=2),
    "no file": lambda mx: mx.io.CSVIter(data_csv="/none/none.csv", data_shape=(3,), batch_size=2),
    "no batch size": lambda mx: mx.io.CSVIter(data_csv="none", data_shape=(3,)),
    "by hand": _csv_by_hand, "again and again": _csv_again_and_again,
}.items()}
CASES |= {f"libsvm {name}": call for name, call in {
    "pairs": _libsvm(), "labels of their own": _libsvm(label="9 0:1 1:2\n8 1:5\n9 0:3\n9\n9 1:1\n", label_shape=(2,)),
    "two parts": _libsvm(batch_size=1, num_parts=2, part_index=0),
    "two axes": _libsvm(data_shape=(3, 1)), "not round": _libsvm(round_batch=False), "nothing": _libsvm(""),
}.items()}
CASES |= {f"mnist {name}": call for name, call in {
    "in order": _mnist(shuffle=False), "pixels": _mnist(_whole, shuffle=False), "flat": _mnist(_whole, flat=True),
    "shuffled": _mnist(), "seed 7": _mnist(seed=7), "many": _mnist(n=200, batch_size=200, seed=3),
    "a part": _mnist(shuffle=False, num_parts=4, part_index=1, batch_size=1),
    "a shuffled part": _mnist(num_parts=3, part_index=2, batch_size=2), "no batch": _mnist(batch_size=0),
    "another dtype": _mnist(dtype="uint8"),
    "no file": lambda mx: mx.io.MNISTIter(image="/none/none", label="/none/none"),
}.items()}


def answer(mx, case):
    """What one program answers."""
    return answers.raised(lambda: CASES[case](mx))


def ask(cases):
    """What a process of its own answers, by case."""
    asked = subprocess.run([sys.executable, __file__, *cases], capture_output=True, check=True)
    return json.loads(asked.stdout.splitlines()[-1])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import mxnet

        print(json.dumps({case: answer(mxnet, case) for case in sys.argv[1:]}), flush=True)
        os._exit(0)
    # After an error MXNet's iterators over files may end the process later on, so each of these has one of its own.
    alone = [case for case in CASES if case.startswith(("csv", "libsvm", "mnist"))]
    said = ask([case for case in CASES if case not in alone])
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(ask, [[case] for case in alone]):
            said |= found
    lines = [f"{json.dumps(case)}: {json.dumps(said[case])}" for case in CASES]
    Path(__file__).with_name("io_calls.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(lines)} programs")
