"""Devices and the current one."""
from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

from mxc import random as mx_random
from mxc.compiler.error import TargetError
from mxc.runtime import random
from mxc.runtime.array import Array
from mxc.runtime.context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus


def test_names_equality_and_copies():
    assert [str(c) for c in (cpu(), cpu(1), gpu(2), cpu_pinned())] == ["cpu(0)", "cpu(1)", "gpu(2)", "cpu_pinned(0)"]
    assert cpu() == cpu(0) == Context("cpu", 0) == Context(cpu(0)) != cpu(1) != gpu(1)
    assert len({cpu(), cpu(0), cpu(1), gpu(0)}) == 3
    assert (cpu().device_type, cpu().device_typeid, gpu(1).device_id) == ("cpu", 1, 1)
    assert pickle.loads(pickle.dumps(gpu(3))) == gpu(3)


def test_scopes_nest_and_belong_to_a_thread():
    seen = []
    with cpu(1):
        with Context("cpu", 2) as inner:
            assert current_context() == inner == cpu(2)
            thread = threading.Thread(target=lambda: seen.append(current_context()))
            thread.start()
            thread.join()
        assert current_context() == cpu(1)
    assert current_context() == cpu(0)
    assert seen == [cpu(0)]


def test_what_is_not_there():
    with pytest.raises(KeyError, match=r"no device type 'cpo'.*did you mean 'cpu'"):
        Context("cpo")
    assert num_gpus() == 0
    for use in (lambda: Array.empty((2,), context=gpu()), lambda: gpu_memory_info(0)):
        with pytest.raises(TargetError, match=r"gpu\(0\): there is none: .*; use mx.cpu\(\)"):
            use()


def test_seed_starts_the_sequence_again():
    mx_random.seed(7)
    first = [random.take() for _ in range(2)]
    mx_random.seed(7)
    assert [random.take() for _ in range(2)] == first
    assert first[0] == (7, 0) and first[1][1] == random.OFFSETS_PER_RUN


def test_every_integer_is_a_seed():
    for number, kept in ((2**63, -2**63), (2**64 + 5, 5), (-1, -1)):
        random.seed(number)
        assert np.array(random.take(), np.int64)[0] == kept
