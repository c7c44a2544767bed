"""Reading and writing at indices that the array does not have: what users of MXNet reported, and what differs here."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from guarded import first_death, guarded, needs_linux
from programs import lowered

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cpu.target import cpu_target

DATA, INDEX = mx.sym.Variable("data"), mx.sym.Variable("index")
ROWS = np.arange(8, dtype="float32").reshape(4, 2)
ODD = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, 5, -1], "float32")


def run(net: Any, is_train: bool = False, **given: np.ndarray) -> dict[str, np.ndarray]:
    """Outputs "0", "1", ... of the compiled graph, and gradients by argument with head gradients 1, 2, ..."""
    executor = net.simple_bind(mx.cpu(), grad_req="write" if is_train else "null",
                               type_dict={k: v.dtype for k, v in given.items()},
                               **{k: v.shape for k, v in given.items()})
    for name, value in given.items():
        executor.arg_dict[name][:] = value
    outputs = executor.forward(is_train=is_train)
    found = {str(i): out.asnumpy() for i, out in enumerate(outputs)}
    if is_train:
        executor.backward([mx.nd.array(np.arange(1, o.size + 1).reshape(o.shape), dtype=o.dtype) for o in outputs])
        found |= {name: grad.asnumpy() for name, grad in executor.grad_dict.items()}
    return found


def rows(*numbers: int) -> list[list[float]]:
    """Rows of ROWS."""
    return ROWS[list(numbers)].tolist()


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_o13_indices_out_of_range(dtype: str) -> None:
    """Exact values for -1 and a large index, and gradients that land on the row that was read."""
    index = np.array([-1, 1000, 1, -6], dtype)
    embedding = run(mx.sym.Embedding(INDEX, DATA, input_dim=4, output_dim=2), True, index=index, data=ROWS)
    clipped = run(mx.sym.take(DATA, INDEX), True, index=index, data=ROWS)
    for found in (embedding, clipped):
        assert found["0"].tolist() == rows(0, 3, 1, 0)
        assert found["data"].tolist() == [[8, 10], [5, 6], [0, 0], [3, 4]]
        assert not found["index"].any()
    wrapped = run(mx.sym.take(DATA, INDEX, mode="wrap"), True, index=index, data=ROWS)
    assert wrapped["0"].tolist() == rows(3, 0, 1, 2)
    assert wrapped["data"].tolist() == [[3, 4], [5, 6], [7, 8], [1, 2]]
    for mode, picked in (("clip", [0, 1, 1, 0]), ("wrap", [1, 0, 1, 0])):
        found = run(mx.sym.pick(DATA, INDEX, mode=mode), True, index=index, data=ROWS)
        assert found["0"].tolist() == ROWS[np.arange(4), picked].tolist()
        expected = np.zeros((4, 2))
        expected[np.arange(4), picked] = [1, 2, 3, 4]
        assert found["data"].tolist() == expected.tolist() and not found["index"].any()


@pytest.mark.parametrize("index", [-1, 4, 3.5, -0.5, np.nan])
def test_o13_mode_raise(index: float) -> None:
    """An error, compiled and eager, and the executor works on with indices that are right."""
    executor = mx.sym.take(DATA * 1, mx.sym.Reshape(INDEX, shape=(2, 1)), mode="raise").simple_bind(
        mx.cpu(), grad_req="null", data=(4, 2), index=(2,))
    executor.arg_dict["data"][:] = ROWS
    executor.arg_dict["index"][:] = np.array([1, index], "float32")
    with pytest.raises(MXNetError, match=r"expected indices from 0 to 3 of extent 4.*, got"):
        executor.forward()[0].asnumpy()
    executor.arg_dict["index"][:] = np.array([1, 3])
    assert executor.forward()[0].asnumpy().tolist() == [rows(1), rows(3)]
    with pytest.raises(MXNetError, match="expected indices from 0 to 3 along axis 0, got"):
        mx.nd.take(mx.nd.array(ROWS), mx.nd.array([1, index]), mode="raise").asnumpy()


def test_gather_nd_out_of_range() -> None:
    """Negative indices count from the end, gradients too; others are refused."""
    net = mx.sym.gather_nd(DATA, INDEX)
    found = run(net, True, data=ROWS, index=np.array([[0, -1, 3], [1, -2, 0]], "int32"))
    assert found["0"].tolist() == [1, 6, 6]
    assert found["data"].tolist() == [[0, 1], [0, 0], [0, 0], [5, 0]]
    for wrong in (4, -5):
        index = np.array([[0, wrong]], "float32")
        with pytest.raises(MXNetError, match="expected indices from -4 to 3 of extent 4, row 0, got"):
            run(net, data=ROWS, index=index)
        with pytest.raises(MXNetError, match="expected indices from -4 to 3 along axis 0, got"):
            mx.nd.gather_nd(mx.nd.array(ROWS), mx.nd.array(index)).asnumpy()


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "uint8", "float16"])
def test_many_indices_are_checked_by_several_threads(dtype: str) -> None:
    """In kernels, and each of them: whichever is wrong is found."""
    random = np.random.RandomState(0)
    data = random.normal(size=(3, 100, 2, 2)).astype("float32")
    index = np.stack([random.randint(0, n, 20000) for n in data.shape[:3]])
    net = mx.sym.gather_nd(DATA, INDEX)
    bound = net.simple_bind(mx.cpu(), grad_req="null", data=data.shape, index=index.shape, type_dict={"index": dtype})
    assert all(step.host is None for step in bound.compiled().plan.steps)
    bound.arg_dict["data"][:] = data
    bound.arg_dict["index"][:] = index
    np.testing.assert_array_equal(bound.forward()[0].asnumpy(), data[tuple(index)])
    for row, place in ((0, 0), (1, 9999), (2, 19999)):
        wrong = index.copy()
        wrong[row, place] = data.shape[row]
        bound.arg_dict["index"][:] = wrong
        with pytest.raises(IndexError, match=f"of extent {data.shape[row]}, row {row}, got {data.shape[row]}"):
            bound.forward()[0].asnumpy()


def test_writing_out_of_range_is_left_out() -> None:
    """And nothing flows back from there."""
    found = run(mx.sym.scatter_nd(DATA, INDEX, shape=(3, 2)), True, data=ROWS[1:],
                index=np.array([[2, -1, 3]], "float32"))
    assert found["0"].tolist() == [[0, 0], [0, 0], [2, 3]]
    assert found["data"].tolist() == [[5, 6], [0, 0], [0, 0]]
    new = mx.sym.Variable("new")
    found = run(mx.sym.contrib.index_copy(DATA, INDEX, new), True, data=ROWS, new=ROWS[:2] + 20,
                index=np.array([9, 2], "float32"))
    assert found["0"].tolist() == [[0, 1], [2, 3], [22, 23], [6, 7]]
    assert found["data"].tolist() == [[1, 2], [3, 4], [0, 0], [7, 8]]
    assert found["new"].tolist() == [[0, 0], [5, 6]] and not found["index"].any()


def test_operators_that_only_arrays_have() -> None:
    data, numbers = mx.nd.array(ROWS), mx.nd.array([9, 8, 7, 6])
    filled = mx.nd.fill_element_0index(data, numbers, mx.nd.array([0, 1, 5, -1]))
    assert filled.asnumpy().tolist() == [[9, 1], [2, 8], [4, 5], [6, 7]]
    encoded = mx.nd._internal._onehot_encode(mx.nd.array([0, 1, 5, -1]), data)
    assert encoded.asnumpy().tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    mx.nd._internal._scatter_set_nd(data, mx.nd.array([5, 6]), mx.nd.array([[0, 1], [1, 0]]), shape=(4, 2), out=data)
    assert data.asnumpy().tolist() == [[0, 5], [6, 3], [4, 5], [6, 7]]


def test_operators_that_only_arrays_have_in_mxnet() -> None:
    """fill_element_0index, _onehot_encode and _scatter_set_nd in a graph give what they give eagerly."""
    third = mx.sym.Variable("third")
    given = {"data": ROWS, "third": np.array([9, 8, 7, 6], "float32"), "index": np.array([0, 1, 5, -1], "float32")}
    net = mx.sym.Group([mx.sym.fill_element_0index(DATA, third, INDEX), mx.sym._internal._onehot_encode(INDEX, DATA)])
    found = run(net, **given)
    assert found["0"].tolist() == [[9, 1], [2, 8], [4, 5], [6, 7]]
    assert found["1"].tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    net = mx.sym._internal._scatter_set_nd(DATA, third, INDEX, shape=(4, 2))
    found = run(net, data=ROWS, third=given["third"][:2], index=np.array([[0, 1], [1, 0]], "int64"))
    assert found["0"].tolist() == [[0, 9], [8, 3], [4, 5], [6, 7]]


def test_unravel_index_of_more_axes() -> None:
    """Each position has its index; MXNet gives the shape of the first axis alone."""
    flat = np.array([[22, 41], [37, 1]], "int32")
    found = run(mx.sym.unravel_index(DATA, shape=(7, 6)), data=flat)["0"]
    np.testing.assert_array_equal(found, np.stack(np.unravel_index(flat, (7, 6))))


@pytest.mark.parametrize("lengths", [[0, 9], [-3, 4], [np.nan, np.inf]])
def test_lengths_out_of_range(lengths: list[float]) -> None:
    """A length is cut to the data's; SequenceLast of nothing is the first step."""
    data = np.arange(6, dtype="float32").reshape(3, 2)
    cut = [int(min(max(x, 0), 3)) if np.isfinite(x) else 0 for x in lengths]
    told = {"sequence_length": INDEX, "use_sequence_length": True}
    given = {"data": data, "index": np.array(lengths, "float32")}
    mask = np.arange(3)[:, None] < cut
    found = run(mx.sym.SequenceMask(DATA, value=-1, **told), True, **given)
    np.testing.assert_array_equal(found["0"], np.where(mask, data, -1))
    assert not found["index"].any()
    last = run(mx.sym.SequenceLast(DATA, **told), True, **given)
    places = np.maximum(np.array(cut) - 1, 0)
    assert last["0"].tolist() == data[places, [0, 1]].tolist()
    assert [np.flatnonzero(column).tolist() for column in last["data"].T] == [[p] for p in places]
    turned = run(mx.sym.SequenceReverse(DATA, **told), True, **given)["0"]
    for column, length in enumerate(cut):
        assert turned[:, column].tolist() == [*data[:length, column][::-1], *data[length:, column]]


def test_gathers_share_a_kernel_with_their_neighbours() -> None:
    net = mx.sym.relu(mx.sym.take(DATA * 2, INDEX + 1)) + 1
    program = lowered(net.graph, {"data": (4, 2), "index": (3,)})
    assert len(program.launches) == 1
    results, _ = program.run({"data": ROWS - 3, "index": np.array([-1, 0, 9], "float32")})
    assert results[0].tolist() == [[1, 1], [1, 1], [7, 9]]


@needs_linux
def test_odd_indices_touch_no_other_memory() -> None:
    """NaN, infinities and huge numbers as indices, with arrays that end where memory does."""
    count = len(ODD)
    told = {"sequence_length": INDEX, "use_sequence_length": True}
    nets = {
        "take": (mx.sym.take(DATA, INDEX), (4, 2)), "wrap": (mx.sym.take(DATA, INDEX, mode="wrap"), (4, 2)),
        "pick": (mx.sym.pick(DATA, INDEX), (count, 3)), "fold": (mx.sym.pick(DATA, INDEX, mode="wrap"), (count, 3)),
        "one_hot": (mx.sym.one_hot(INDEX, depth=3), None),
        "scatter": (mx.sym.scatter_nd(DATA, mx.sym.Reshape(INDEX, shape=(1, -1)), shape=(4,)), (count,)),
        "mask": (mx.sym.SequenceMask(DATA, **told), (3, count)),
        "last": (mx.sym.SequenceLast(DATA, **told), (3, count)),
        "reverse": (mx.sym.SequenceReverse(DATA, **told), (3, count))}
    programs, kernels = {}, {}
    for name, (net, shape) in nets.items():
        shapes = {"index": (count,)} | ({"data": shape} if shape else {})
        wanted = {"data": "write"} if shape else {}
        programs[name] = lowered(net.graph, shapes, None, wanted, bool(shape), cpu_target())
        kernels |= programs[name].kernels(cpu_target())
    library = cpu_target().load(kernels)

    def work(name: str, at_end: bool) -> None:
        program, memory = programs[name], {}
        for storage in {s for launch in program.launches for s in launch.storages}:
            value = ODD if storage.name == "index" else np.zeros(storage.shape, storage.dtype)
            memory[storage] = guarded(np.asarray(value, storage.dtype), at_end)
        program.run_on([[memory[s] for s in launch.storages] for launch in program.launches], cpu_target(), library)

    works = [(f"{name} {side}", lambda name=name, at_end=at_end: work(name, at_end))
             for name in programs for side, at_end in (("behind", True), ("before", False))]
    assert first_death(works) is None
