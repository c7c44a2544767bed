"""`mx.io`: short programs answer and raise what MXNet 1.9.1 does (golden/io_calls.json), and what is mxc's own."""
from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError

io_calls = importlib.import_module("golden.io_calls")
REAL = json.loads((Path(__file__).parent / "golden" / "io_calls.json").read_text())
X, Y = io_calls.X, io_calls.Y
# Errors of mxc that are MXNetErrors with a class of Python's, where MXNet's is another one.
OTHER_ERRORS = {"behind the end: pad": None}


def same(ours, theirs) -> bool:
    """Equal, and an error for an error."""
    if isinstance(theirs, dict) and "error" in theirs:
        return isinstance(ours, dict) and theirs["error"][0] in ours.get("error", ())
    if isinstance(theirs, (list, dict)) and type(ours) in (type(theirs), tuple):
        keys = theirs if isinstance(theirs, dict) else range(len(theirs))
        return len(ours) == len(theirs) and all(same(ours[k], theirs[k]) for k in keys)
    return type(ours) is type(theirs) and ours == theirs


def test_every_program_is_recorded():
    assert REAL.keys() == set(io_calls.CASES)


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str):
    ours = io_calls.answer(mx, case)
    assert same(ours, REAL[case]), (ours, REAL[case])


# ---- what is mxc's own

def rows(iterator) -> list[list[float]]:
    return [batch.data[0].asnumpy().ravel().tolist() for batch in iterator]


def test_descriptions_are_pickled_and_copied_with_their_dtype_and_layout():
    again = pickle.loads(pickle.dumps(mx.io.DataDesc("d", (1, 2), "int8", "NT")))
    assert (again, again.dtype, again.layout) == (("d", (1, 2)), "int8", "NT")


def test_a_batch_of_no_list_is_refused():
    with pytest.raises(TypeError, match="the data of a batch is a list"):
        mx.io.DataBatch(mx.nd.zeros((2,)))
    with pytest.raises(TypeError, match="the label of a batch is a list"):
        mx.io.DataBatch([], mx.nd.zeros((2,)))


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ((X, Y, 0), ValueError, "batch_size must be at least 1, got 0"),
    ((X, Y, 2.5), TypeError, "batch_size is a whole number, got 2.5"),
    ((X, Y[:4], 2), ValueError, "softmax_label has 4 elements, but data has 10"),
    (([X, X[:4]], None, 2), ValueError, "_1_data has 4 elements, but _0_data has 10"),
    ((None, Y, 2), ValueError, "at least one array"), (([], Y, 2), ValueError, "at least one array")])
def test_arrays_that_do_not_fit_are_refused(arguments: tuple, error: type, text: str):
    with pytest.raises(error, match=text) as caught:
        mx.io.NDArrayIter(*arguments)
    assert isinstance(caught.value, MXNetError)


def test_there_is_a_batch_only_between_the_first_and_the_end():
    it = mx.io.NDArrayIter(X, Y, 4)
    with pytest.raises(MXNetError, match="before its first batch"):
        it.getdata()
    list(it)
    with pytest.raises(MXNetError, match=r"behind its last batch; call reset\(\)"):
        it.getlabel()


@pytest.mark.parametrize("mode", ["pad", "roll_over"])
def test_a_batch_may_have_all_elements_several_times(mode: str):
    it = mx.io.NDArrayIter(Y[:3], None, 8, last_batch_handle=mode)
    assert rows(it) == ([[0, 1, 2, 0, 1, 2, 0, 1]] if mode == "pad" else [])
    it.reset()
    assert rows(it) == [[0, 1, 2, 0, 1, 2, 0, 1]]


@pytest.mark.parametrize("size", [8, 1 << 18])  # large batches are copied by the engine's threads
@pytest.mark.parametrize("shuffle", [False, True])
def test_what_is_written_to_a_batch_does_not_reach_the_data(size: int, shuffle: bool):
    source = mx.nd.arange(4 * size).reshape((4, size))
    it = mx.io.NDArrayIter(source, None, 2, shuffle=shuffle)
    seen = []
    for batch in it:
        seen += batch.data[0].asnumpy()[:, 0].tolist()
        batch.data[0][:] = -1
    assert sorted(seen) == [i * size for i in range(4)]
    assert (source.asnumpy().ravel() == np.arange(4 * size)).all()


def test_what_is_written_to_the_data_is_in_later_batches():
    source = mx.nd.zeros((4, 2))
    it = mx.io.NDArrayIter(source, None, 2)
    it.next()
    source += 1
    assert it.next().data[0].asnumpy().tolist() == [[1, 1], [1, 1]]


def test_a_data_set_is_anything_with_an_array():
    class DataSet:
        def __array__(self, dtype=None, copy=None):
            return X

    assert rows(mx.io.NDArrayIter(DataSet(), None, 10)) == [X.ravel().tolist()]


# ---- reading ahead

class Failing(mx.io.DataIter):
    """Fails at the second batch."""

    def __init__(self):
        super().__init__(1)
        self.at, self.provide_data, self.provide_label = 0, [("d", (1,))], []

    def reset(self):
        self.at = 0

    def next(self):
        self.at += 1
        if self.at == 2:
            raise KeyError("the second")
        return mx.io.DataBatch([mx.nd.array([self.at])], pad=0)


def test_what_an_iterator_raises_comes_where_its_batch_would():
    it = mx.io.PrefetchingIter(Failing())
    assert it.next().data[0].asscalar() == 1
    with pytest.raises(KeyError, match="the second"):
        it.next()
    with pytest.raises(StopIteration):
        it.next()
    it.reset()
    assert it.next().data[0].asscalar() == 1


def test_threads_end_with_their_iterator():
    before = set(threading.enumerate())
    it = mx.io.PrefetchingIter([mx.io.NDArrayIter(X, Y, 4), mx.io.NDArrayIter(X, Y, 4)])
    it.next()
    started = set(threading.enumerate()) - before
    assert len(started) == 2
    del it
    gc.collect()
    for thread in started:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(("others", "text"), [((X[:9], Y[:9], 4), r"different pads, \[2, 3\]"),
                                              ((X[:4], Y[:4], 4), "different numbers of batches")])
def test_iterators_that_go_apart_are_refused(others: tuple, text: str):
    it = mx.io.PrefetchingIter([mx.io.NDArrayIter(X, Y, 4), mx.io.NDArrayIter(*others)])
    with pytest.raises(MXNetError, match=text):
        list(it)
    with pytest.raises(ValueError, match="at least one iterator"):
        mx.io.PrefetchingIter([])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_is_told_that_the_threads_are_not_there():
    it = mx.io.PrefetchingIter(mx.io.NDArrayIter(X, Y, 4))
    child = os.fork()
    if not child:
        try:
            it.next()
        except MXNetError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(list(it)) == 3


@pytest.mark.parametrize("given, expected", [
    (np.array([[1, 2.5], [True, None]], object), [[1, 2.5], [1, np.nan]]),
    (np.array(["1", "2.5"]), [1, 2.5]),
    (np.array([b"1", b"1e3"]), [1, 1000]),
])
def test_objects_and_texts_become_numbers(given: np.ndarray, expected: list) -> None:
    for made in (mx.nd.array(given), mx.nd.array(given.tolist()), mx.io.NDArrayIter(given).data[0][1],
                 mx.io.NDArrayIter(given, given).label[0][1]):
        assert made.dtype is np.float32 and np.array_equal(made.asnumpy(), expected, equal_nan=True)


@pytest.mark.parametrize("given", [np.array(["1", "a"]), np.array([1, {}], object), np.ones(2, complex),
                                   np.array(["2020-01-01"], "M8[D]")])
def test_what_does_not_become_numbers(given: np.ndarray) -> None:
    for make in (mx.nd.array, mx.io.NDArrayIter):
        with pytest.raises(mx.MXNetError, match=r"\.astype\('float32'\)"):
            make(given)
    with pytest.raises(TypeError, match="int32"):
        mx.nd.array([1, None], dtype="int32")
