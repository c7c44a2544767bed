"""The DataLoader of Gluon: every example once and in order, and nothing left of workers that raise, die, hang or are
interrupted."""
from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc import gluon
from mxc.base import MXNetError
from mxc.gluon.data import DataLoader, Dataset
from mxc.gluon.data.shared_batches import Blocks

SHARED = Path("/dev/shm")
WORKERS = [{"num_workers": 2}, {"num_workers": 2, "thread_pool": True}, {"num_workers": 0}]


class Numbers(Dataset):
    """40 examples: an array that is full of a number, and the number. act: is called with each."""

    def __init__(self, act: Callable[[int], None] | None = None):
        self._act = act

    def __len__(self) -> int:
        return 40

    def __getitem__(self, idx: int) -> tuple[np.ndarray, int]:
        if self._act is not None:
            self._act(idx)
        return np.full(300, idx, "float32"), idx


def blocks(loader: DataLoader | None = None) -> list[str]:
    """The blocks in shared memory of a loader; of all."""
    members = [] if loader is None else loader._workers._close.peek()[2][0]
    begin = tuple(member._name for member in members) or "mxc_"
    return [path.name for path in SHARED.iterdir() if path.name.startswith(begin)] if SHARED.exists() else []


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before, deadline = blocks(), time.monotonic() + 60
    yield
    while (left := {*blocks()}.difference(before)) and time.monotonic() < deadline:
        gc.collect()  # of a loader that the traceback of an expected error refers to
        time.sleep(0.05)  # what other tests have at this moment goes away
    assert not left


def numbers(loader: DataLoader) -> Iterator[int]:
    """The examples' numbers, as they come."""
    for data, label in loader:
        assert (data.asnumpy() == label.asnumpy()[:, None]).all()
        yield from label.asnumpy().tolist()


@pytest.mark.parametrize("prefetch", [None, 0, 7])
@pytest.mark.parametrize("workers", WORKERS, ids=str)
def test_all_examples_in_order(workers: dict, prefetch: int | None):
    loader = DataLoader(Numbers(lambda i: time.sleep(0.003 * (i % 3))), 3, prefetch=prefetch, **workers)
    for _ in range(2):
        assert list(numbers(loader)) == list(range(40))
    one, other = numbers(loader), numbers(loader)  # two passes at once
    assert list(zip(one, other, strict=True)) == [(i, i) for i in range(40)]


def fail(idx: int) -> None:
    if idx == 17:
        raise KeyError("seventeen")


def fail_oddly(idx: int) -> None:
    class Own(Exception):
        def __init__(self, one: int, other: int):
            super().__init__(f"{one} and {other}")

    if idx == 17:
        raise Own(1, 2)


def die(idx: int) -> None:
    if idx == 17:
        os.kill(os.getpid(), signal.SIGKILL)


def hang(idx: int) -> None:
    if idx == 17:
        time.sleep(60)


@pytest.mark.parametrize("workers", WORKERS[:2], ids=str)
def test_what_a_dataset_raises(workers: dict):
    loader, seen = DataLoader(Numbers(fail), 4, **workers), []
    with pytest.raises(KeyError, match="seventeen") as caught:
        seen.extend(numbers(loader))
    if "thread_pool" not in workers:
        assert "in fail\n" in str(caught.value.__cause__)  # the worker's lines
    with pytest.raises(KeyError):
        list(loader)


def test_an_error_that_cannot_be_pickled_says_its_text():
    with pytest.raises(MXNetError, match="Own: 1 and 2"):
        list(DataLoader(Numbers(fail_oddly), 4, num_workers=1))


@pytest.mark.parametrize("act, words, timeout", [(die, "ended suddenly", 60), (hang, "not made in 0.5 seconds", 0.5)],
                         ids=["dies", "hangs"])
def test_a_worker_that_gives_no_answer(act: Callable[[int], None], words: str, timeout: float):
    loader = DataLoader(Numbers(act), 4, num_workers=2, timeout=timeout)
    workers = loader._workers
    began, seen = time.monotonic(), []
    with pytest.raises(MXNetError, match=words):
        for number in numbers(loader):
            seen.append(number)
    assert seen == list(range(16)) and time.monotonic() - began < 20
    assert workers is not None and not loader._workers  # another pass starts new ones
    loader._dataset = Numbers()
    assert list(numbers(loader)) == list(range(40))


@pytest.mark.parametrize("seconds", [0, 0.3], ids=["in the making", "made"])
def test_a_pass_that_is_left_in_the_middle_and_a_refresh_in_it(seconds: float):
    loader = DataLoader(Numbers(), 4, num_workers=2)
    for _, label in loader:
        assert label.asnumpy()[0] == 0
        break
    assert list(numbers(loader)) == list(range(40))
    running = iter(loader)
    next(running)
    time.sleep(seconds)
    loader.refresh()
    with pytest.raises(MXNetError, match="were ended during this pass"):
        list(running)
    assert list(numbers(loader)) == list(range(40))
    loader.clean()


@pytest.mark.skipif(not SHARED.exists(), reason="shared memory has no files here")
def test_a_block_whose_worker_died_before_giving_it_a_size_is_removed():
    (SHARED / "mxc_nothing").touch()
    Blocks().remove("mxc_nothing")
    assert "mxc_nothing" not in blocks()


def test_batches_of_all_kinds():
    def batchify(examples: list) -> dict:
        return {"own": mx.nd.array([e[1] for e in examples]), "half": np.zeros((2, 0), "float16"), "text": ["a", None],
                "pair": (np.array([True, False]), mx.nd.ones((1, 2), dtype="int8"))}

    (batch,) = DataLoader(Numbers(), 40, batchify_fn=batchify, num_workers=1)
    assert batch["own"].asnumpy().tolist() == list(range(40)) and batch["text"] == ["a", None]
    assert batch["half"].shape == (2, 0) and batch["half"].dtype == np.float16
    assert batch["pair"][0].tolist() == [True, False] and batch["pair"][1].dtype == np.int8
    assert isinstance(batch["pair"], tuple) and isinstance(batch["pair"][1], mx.nd.NDArray)


def test_networks_run_in_workers():
    net = gluon.nn.Dense(2, in_units=300)
    net.initialize("ones")
    net.hybridize()
    net(mx.nd.ones((1, 300)))  # compiled in this process, used in the others
    data = Numbers().transform(lambda x, i: (net(mx.nd.array(x).reshape((1, -1)))[0], i))
    for out, label in DataLoader(data, 8, num_workers=2, timeout=60):
        np.testing.assert_allclose(out.asnumpy()[:, 0], label.asnumpy() * 300, rtol=1e-5)


@pytest.mark.parametrize("arguments, error", [
    ({"timeout": 0}, AssertionError), ({"batch_size": None}, ValueError), ({"last_batch": "some"}, ValueError),
    ({"batch_sampler": gluon.data.BatchSampler(gluon.data.SequentialSampler(3), 2)}, ValueError),
    ({"sampler": gluon.data.SequentialSampler(3), "shuffle": True}, ValueError)],
    ids=["timeout", "no size", "last batch", "two samplers", "shuffled sampler"])
def test_refusals(arguments: dict, error: type[Exception]):
    with pytest.raises(error):
        list(DataLoader(Numbers(), **{"batch_size": 2, **arguments}))


PROGRAM = """
import time
import numpy as np
import mxc as mx
from mxc.gluon.data import DataLoader, Dataset
from mxc.gluon.data.shared_batches import Blocks

class Slow(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, idx):
        time.sleep(60 if idx >= 8 else 0)
        return np.full(300, idx)

for i, batch in enumerate(DataLoader(Slow(), 4, num_workers=2)):
    if i == 1:
        print("two", flush=True)
        time.sleep({seconds})
"""


@pytest.mark.parametrize("seconds", [0, 60], ids=["waits", "trains"])
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda kind: kind.name)
def test_an_interrupted_program_leaves_no_process(kind: signal.Signals, seconds: int):
    """Ctrl-C goes to all processes of a terminal, other signals to the program alone."""
    program = subprocess.Popen([sys.executable, "-c", PROGRAM.format(seconds=seconds)], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    assert program.stdout is not None
    with program.stdout:
        assert program.stdout.readline() == "two\n"
        time.sleep(0.2)
        (os.killpg if kind == signal.SIGINT else os.kill)(program.pid, kind)
        assert program.stdout.read() == ""  # ends when the last process that has it has ended
    assert program.wait(30) == -kind
    deadline = time.monotonic() + 30
    while is_there(program.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_there(program.pid)


def is_there(group: int) -> bool:
    """Whether processes of a group are there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


class Growing(Numbers):
    """Examples of more and more elements, and some of no array."""

    def __getitem__(self, idx: int) -> object:
        return np.full(2000 * (idx // 8), idx, "float32") if idx // 8 != 2 else "none"


def test_blocks_serve_again_and_larger_ones_come_where_they_are_needed():
    loader = DataLoader(Growing(), 8, num_workers=1, prefetch=0, batchify_fn=list)
    for _ in range(3):
        made = list(loader)
        for number, batch in enumerate(made):
            if number == 2:
                assert batch == ["none"] * 8
            else:
                assert [each.shape for each in batch] == [(2000 * number,)] * 8
                assert all((each == number * 8 + k).all() for k, each in enumerate(batch))
        assert 1 <= len(blocks(loader)) <= 2
    same = DataLoader(Numbers(), 4, num_workers=2)
    assert [list(numbers(same)) for _ in range(4)] == [list(range(40))] * 4
    assert len(blocks(same)) <= 2 * (4 + 2)  # what is ahead, and one in the program's hands


class Unsendable(Numbers):
    def __getitem__(self, idx: int) -> object:
        return (np.zeros(100, "float32"), (lambda: idx) if idx == 3 else idx)


def test_a_batch_that_cannot_be_sent_leaves_its_block_to_the_next():
    loader = DataLoader(Unsendable(), 1, num_workers=1, batchify_fn=list)
    for _ in range(2):
        with pytest.raises((AttributeError, TypeError, MXNetError), match="lambda"):
            list(loader)
    loader._dataset = Numbers()
    loader.refresh()
    assert len(list(loader)) == 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("workers", WORKERS[:2], ids=str)
def test_a_pass_goes_on_in_the_process_that_began_it(workers: dict):
    loader = DataLoader(Numbers(lambda idx: time.sleep(0.02)), 4, **workers)
    batches = numbers(loader)
    assert next(batches) == 0
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException):
            try:
                list(batches)
            except MXNetError as error:
                code = 7 if "forked in the middle" in str(error) else 2
        os._exit(code)
    assert list(batches) == list(range(1, 40))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
