"""Sums and copies over several GPUs of this process, by NVIDIA's NCCL (the extra `nccl`: nccl4py). Nothing of this file
has run on GPUs yet (docs/cuda.md).

Each GPU's part is in its stream for computing, so it comes behind what computed the values and before what uses them,
and no stream waits for another one but inside of NCCL. NCCL begins when the parts of all GPUs have been asked for, in
the same order everywhere; so one thread at a time asks, and nothing else gets into the streams meanwhile.
"""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mxc.compiler.error import MXNetError
from mxc.compiler.system import env
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cuda.device import Stream

if TYPE_CHECKING:
    from mxc.compiler.targets.cuda.allocator import Allocator

EXTRA = "pip install 'mxc-compiler[cuda,nccl]'"
MOST = 1024  # parts that are asked for at once; NCCL takes 2048
DTYPES = {"float32": "Float32", "float64": "Float64", "float16": "Float16", "bfloat16": "Bfloat16", "int8": "Int8",
          "uint8": "Uint8", "int32": "Int32", "int64": "Int64"}
_lock = Lock()


class Share(NamedTuple):
    """An array on each of the GPUs. sent, received: its addresses, and those of what each GPU gets; 0 for nothing."""

    sent: Sequence[int]
    received: Sequence[int]
    size: int
    dtype: str


def bindings() -> Any:
    """nccl.bindings.nccl. Raises ImportError without the extra, MXNetError for simulated GPUs."""
    if env.simulated_gpus():
        raise MXNetError("GPUs are simulated")
    from nccl.bindings import nccl

    return nccl


@functools.cache
def fault() -> str:
    """Why NCCL cannot be used; "" where it can."""
    try:
        bindings().get_version()
    except ImportError as error:
        return f"the packages for it are not installed ({error}): {EXTRA}"
    except Exception as error:  # such as a library that cannot be loaded
        return f"NCCL cannot be used ({' '.join(str(error).split())})"
    return ""


def version() -> str:
    """NCCL's version, as 2.28.3. Raises what `fault` tells of."""
    number = int(bindings().get_version())  # 10000 for each major version, 100 for each minor one
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


class Group:
    """Several GPUs, by their memories, that NCCL connects. Raises MXNetError where it does not."""

    def __init__(self, memories: Sequence[Allocator]):
        self._memories, self._nccl = memories, bindings()
        numbers = [memory.device.number for memory in memories]
        self.name = ", ".join(f"gpu({number})" for number in numbers)
        with self._translated("connect"):
            self._parts = self._nccl.comm_init_all(len(numbers), numbers)

    @contextlib.contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except MXNetError:
            raise
        except Exception as error:
            raise MXNetError(f"NCCL cannot {what} {self.name}: {' '.join(str(error).split())}; NCCL_DEBUG=INFO tells "
                             "more") from error

    def begin(self, kind: str, shares: Sequence[tuple[Sequence[int], Sequence[int], int, str]]) -> None:
        """See CollectiveGroup. shares: see Share. Raises MXNetError where NCCL refuses."""
        together = max(1, MOST // len(self._parts))
        with _lock:
            for start in range(0, len(shares), together):
                with contextlib.ExitStack() as orders, self._translated(f"begin {kind} on"):
                    for memory in sorted(self._memories, key=lambda memory: memory.device.number):
                        orders.enter_context(memory.order.work(Stream.COMPUTE, (f"{kind} by NCCL on {self.name}",)))
                    self._ask(kind, [Share(*share) for share in shares[start:start + together]])

    def _ask(self, kind: str, shares: Sequence[Share]) -> None:
        nccl = self._nccl
        for part in self._parts:
            if code := int(nccl.comm_get_async_error(part)):
                raise MXNetError(f"NCCL has failed on {self.name}: {nccl.get_error_string(code)}")
        call = {"all-reduce": nccl.all_reduce, "reduce": nccl.reduce, "broadcast": nccl.broadcast}[kind]
        settings = {"all-reduce": (nccl.RedOp.Sum,), "reduce": (nccl.RedOp.Sum, 0), "broadcast": (0,)}[kind]  # 0: root
        nccl.group_start()
        try:
            for share in shares:
                dtype = getattr(nccl.DataType, DTYPES[share.dtype])
                for i, (part, memory) in enumerate(zip(self._parts, self._memories, strict=True)):
                    call(share.sent[i], share.received[i], share.size, dtype, *settings, part,
                         memory.device.stream(Stream.COMPUTE))
        finally:
            nccl.group_end()
