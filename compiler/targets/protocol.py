"""What a target is: the protocol that the compiler and the runtime know targets by.

Every target is a `Target`. One of these protocols says what else it can do:

  GraphTarget    runs graphs node by node: `reference`
  KernelTarget   has code for kernels; `compile_graph` takes it: `cpu`, `cuda`, `gpu`
  HostTarget     a KernelTarget whose code runs in this process, on its memory: `cpu`
  CodeTarget     a KernelTarget of a GPU's architecture, whose code goes into files: `cuda`
  DeviceTarget   a KernelTarget of a GPU that is there, which runs such code: `gpu`

The loaded code of kernels is a `LoadedKernels` (launch.py), which says how it is launched (`Launcher`) and in which
memory (`Memory`). Nothing here is imported when a program runs: implementations need not inherit, mypy compares them.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from mxc.compiler.cache import Cache
    from mxc.compiler.graph.graph import Entry, Graph, Node
    from mxc.compiler.kernel.ir import Kernel
    from mxc.compiler.ops.functions import ScalarFunction
    from mxc.compiler.ops.philox import Draws
    from mxc.compiler.plan import Plan
    from mxc.compiler.targets.launch import DeviceCode, LaunchConfig, LoadedKernels
    from mxc.compiler.targets.preferences import Preferences


class Target(Protocol):
    """What every target has. name: as `targets.target` knows it, without what follows a colon."""

    @property
    def name(self) -> str: ...


class GraphTarget(Target, Protocol):
    """A target that runs graphs node by node, on NumPy arrays, and compiles nothing."""

    def evaluate(self, node: Node, inputs: list[np.ndarray], is_train: bool = False,
                 rng: Draws | None = None) -> list[np.ndarray]:
        """All outputs of one operator node, in the dtypes that inference gives. Raises MXNetError naming the node."""
        ...

    def run(self, graph: Graph, args: Mapping[str, np.ndarray], aux: Mapping[str, np.ndarray], is_train: bool = False,
            rng: Draws | None = None, watch: Callable[[Node, list[np.ndarray]], None] | None = None,
            ) -> dict[Entry, np.ndarray]:
        """The value of every output of every node. args, aux: values of the variables by name."""
        ...


class KernelTarget(Target, Protocol):
    """A target that has code for kernels: what the passes, the memory plan and `compile_graph` ask.

    parts: what its code depends on, labelled (CPU, versions, a digest of the sources): a part of the keys of kernels
    and plans, and what the cache explains misses by. cache: where code and plans are kept; None: nowhere. plans: of
    this process, which stored_plans.py fills; None: plans for this target are made anew each time. prefers: the figures
    that passes and stages decide by.
    """

    @property
    def parts(self) -> Mapping[str, str]: ...

    @property
    def cache(self) -> Cache | None: ...

    @property
    def plans(self) -> dict[str, Plan] | None: ...

    @property
    def prefers(self) -> Preferences: ...

    def tile(self, dtype: str) -> tuple[int, int]:
        """(MR, NR): rows and columns of the register tile that the target's matrix kernels use for `dtype`.

        NR is a multiple of `lanes`. (0, 0): they read plain weights.
        """
        ...

    def lanes(self, dtype: str) -> int:
        """Channels that lie side by side in blocked arrays of `dtype`; 1: the target has no kernels for these."""
        ...

    def lacks(self, kernel: Kernel) -> str:
        """The name of what the target lacks for `kernel`, a template, a routine or a function; "" if it has code for
        it. `LoadedKernels.missing` lists these names; a plan that has such a kernel cannot run."""
        ...

    def launch(self, kernel: Kernel) -> LaunchConfig:
        """How `kernel` is launched: the key of its code, units, scratch memory, integers behind the buffers. A loop
        kernel must be canonical (kernel/canonical.py). Nothing is compiled."""
        ...

    def load(self, kernels: Mapping[str, Kernel]) -> LoadedKernels:
        """The code of `kernels` (by the key of their launch), from the cache or compiled. Raises MXNetError naming the
        kernel that does not compile, TargetError when code cannot be loaded."""
        ...

    def load_known(self, keys: Sequence[str]) -> LoadedKernels | None:
        """The code of the kernels of these keys, like `load`; None when some is neither in this process nor in the
        cache. It prints and compiles nothing."""
        ...

    def source(self, kernel: Kernel) -> str:
        """What is compiled for `kernel`, for people. Raises MXNetError for a kernel that the target lacks."""
        ...

    def assembly(self, kernel: Kernel) -> str:
        """The assembly of `kernel`, which is compiled for it, for people. Raises what `source` raises."""
        ...


class HostTarget(KernelTarget, Protocol):
    """A target whose code is machine code of this process. Keys name functions as `launch.symbol` says."""

    def objects(self, keys: Sequence[str], kernels: Callable[[], Mapping[str, Kernel]]) -> dict[str, bytes]:
        """The object code of the kernels of these keys, for files. kernels: gives them, by key, when code is missing.
        Raises MXNetError when one does not compile."""
        ...

    def runner_object(self) -> bytes:
        """The object code of the runner's functions (`Host.runner`), for files."""
        ...

    def runner_functions(self) -> dict[str, int]:
        """The addresses of the runner's functions, by name, their code from the cache or compiled."""
        ...

    def function_text(self, function: ScalarFunction, dtype: str) -> str:
        """The code of a native function of the running program for a dtype, which its kernels get. Raises MXNetError
        that quotes the user's line where it does not compile, TargetError without what compiles it."""
        ...

    def limits(self) -> LimitKernels:
        """Kernels that measure what limits a machine."""
        ...


class CodeTarget(KernelTarget, Protocol):
    """A target of an architecture of GPUs, which need not be there."""

    @property
    def arch(self) -> str: ...

    def stored(self, library: LoadedKernels, kernels: Mapping[str, Kernel]) -> dict[str, DeviceCode]:
        """What a file gets of the code that `load` gave for these kernels, by key; nothing of what is missing."""
        ...


class DeviceTarget(KernelTarget, Protocol):
    """A target of a GPU of this process."""

    def differences(self, arch: str, sources: str) -> list[str]:
        """Why machine code for `arch`, which the sources of that digest made, does not run here."""
        ...

    def load_stored(self, codes: Mapping[str, DeviceCode]) -> LoadedKernels:
        """The kernels of a file. Raises MXNetError where the driver refuses code."""
        ...


class LimitKernels(Protocol):
    """Two functions with the ABI of kernel/ir.py, for float32, by their addresses.

    multiply: args (values, rounds): each unit does `rounds` rounds of multiply-adds with `values`, of 2 * lanes
    numbers, and writes their sums to the thread's scratch memory, of `scratch_bytes`. copy: args (from, to, count):
    unit i copies `count` numbers, a multiple of 4 * lanes, at i * count. flops: multiplications and additions of a
    round.
    """

    @property
    def multiply(self) -> int: ...

    @property
    def copy(self) -> int: ...

    @property
    def lanes(self) -> int: ...

    @property
    def scratch_bytes(self) -> int: ...

    @property
    def flops(self) -> int: ...


class Memory(Protocol):
    """The memory of a device that is not the host's. Addresses are numbers that kernels get; 0 is none. alignment: of
    every address that `allocate` gives, in bytes."""

    @property
    def alignment(self) -> int: ...

    def allocate(self, nbytes: int, holder: str = "") -> int:
        """The address of `nbytes` bytes, which hold anything. holder: whose they are, for errors. Raises
        OutOfMemoryError."""
        ...

    def release(self, address: int) -> None:
        """Give back what `allocate` gave."""
        ...

    def write(self, address: int, values: np.ndarray) -> None:
        """Copy an array that is in one piece from the host to the device."""
        ...

    def read(self, address: int, values: np.ndarray) -> None:
        """Copy from the device into an array of the host that is in one piece."""
        ...


class Mark(Protocol):
    """The end of a piece of work of a GPU, which it may not have reached yet. is_over: whether it is known to have."""

    @property
    def is_over(self) -> bool: ...


class GpuMemory(Memory, Protocol):
    """The memory of a GPU. Kernels, `write`, `read`, `copy` and `clear` are in one order, the order of computing, and
    but for `read` they return when that has begun. `send` and `fetch` are copies beside it. Errors of the device, which
    comes later, are raised by what waits: MXNetError, which names kernels and copies."""

    def last_use(self, address: int) -> Any:
        """The mark behind which a block that `allocate` gave is free of others' work, for `send`; None where it is."""
        ...

    def release(self, address: int, sent: Any = None) -> None:
        """Give back what `allocate` gave, while kernels may still use it. sent: the mark of a copy to it that computing
        has not followed."""
        ...

    def send(self, address: int, values: np.ndarray, after: Any) -> Any:
        """Begin to copy an array that is in one piece to the device, behind that mark. It may be changed afterwards.
        The mark of the copy, which computing is to `follow`."""
        ...

    def fetch(self, address: int, values: np.ndarray, after: Any) -> None:
        """Copy from the device, behind that mark, into an array that is in one piece. Returns when it is done."""
        ...

    def computed(self) -> Any:
        """The mark behind all computing that has begun; None where none has."""
        ...

    def follow(self, mark: Any) -> None:
        """What is computed from now on comes behind a mark of this device, or None."""
        ...

    def wait(self, mark: Any) -> None:
        """Return when what a mark stands for is done."""
        ...

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy from one place of the device to another one."""
        ...

    def clear(self, address: int, nbytes: int) -> None:
        """Fill with zeros."""
        ...

    def release_free(self) -> None:
        """Give what is kept for later arrays and for copies back to the device, and to the system."""
        ...

    def info(self) -> tuple[int, int]:
        """(free, total) bytes of the device; what is kept for later arrays counts as free."""
        ...


class CollectiveGroup(Protocol):
    """Several GPUs that add up arrays together."""

    def begin(self, kind: str, shares: Sequence[tuple[Sequence[int], Sequence[int], int, str]]) -> None:
        """Begin, in the order of computing of each, a sum that all get ("all-reduce"), one that the first gets
        ("reduce"), or a copy of what the first has ("broadcast"). shares: for each array its addresses on the GPUs,
        those of what each gets (0 for nothing), how many elements, their dtype. Raises MXNetError."""
        ...


class Collectives(Protocol):
    """Sums over several GPUs. DTYPES: of what can be summed."""

    @property
    def DTYPES(self) -> Mapping[str, str]: ...

    def fault(self) -> str:
        """Why there are none; "" where there are."""
        ...

    def version(self) -> str:
        """That of what makes them."""
        ...


class Gpus(Protocol):
    """The GPUs that arrays can be put on."""

    def count(self) -> int:
        """How many there are."""
        ...

    def require(self, number: int) -> None:
        """Raise TargetError unless arrays can live on the GPU of that number, in this process."""
        ...

    def memory(self, number: int) -> GpuMemory:
        """The memory of a GPU. Raises TargetError as `require`."""
        ...

    def wait(self) -> None:
        """Return when all GPUs of this process have done what they have begun. Raises MXNetError for what failed."""
        ...

    def pin(self, owner: Any, address: int, nbytes: int) -> bool:
        """Lock pages of the host's memory as long as `owner` lives, so that GPUs copy from it directly. False where the
        system does not, and where this process uses no GPU."""
        ...

    def release_staging(self) -> None:
        """Give the host's memory that copies go through back to the system."""
        ...

    def collectives(self) -> Collectives:
        """Whether and what sums over several of them there are."""
        ...

    def collective_group(self, numbers: tuple[int, ...]) -> CollectiveGroup:
        """The GPUs of these numbers, in this order, for such sums. Raises MXNetError where they cannot be connected."""
        ...

    def capability(self, number: int) -> int:
        """The compute capability of a GPU, times 10: 90. Raises TargetError as `require`."""
        ...


class Launcher(Protocol):
    """How the code of a library is launched. memory: where the arrays are that it reads and writes; None: the host's.

    A row is a kernel's address (`LoadedKernels.address`), its arguments (addresses of its buffers, then the integers of
    `Step.numbers`) and its units of work; one without an address is a turn of a loop (runtime/step_table.py), where the
    target's figures say that it runs loops. A table is rows in their order, made once and run often.
    """

    @property
    def memory(self) -> Memory | None: ...

    def table(self, rows: Sequence[tuple[int, Any, int]], scratch: int = 0, stride: int = 0) -> Any:
        """A table. scratch, stride: thread i may use what lies at scratch + i * stride, as much as the plan says."""
        ...

    def put(self, table: Any, row: int, argument: int, address: int) -> None:
        """Put another address in the place of an argument of a row, while the table does not run."""
        ...

    def run(self, table: Any) -> None:
        """Run the rows in order; returns when all are done, on a GPU when they have begun, and raises what kernels
        raise."""
        ...

    def bound(self, table: Any, quick: bool = False) -> Callable[[], None]:
        """`run` of this table, for one that runs often. quick: it takes so little time that the caller can wait."""
        ...


class RunnerCode(Protocol):
    """The CPU's native runner (targets/cpu/runner_ir.py says what its words mean): its functions, how many words each
    takes, and offsets of fields in the memory of its pool, in bytes."""

    __file__: str | None
    FUNCTIONS: dict[str, int]
    POOL_BYTES: int
    QUIT: int
    WORD: int
    SYSCALL: int
    FUTEX: int
    YIELD: int
    SPINS: int

    def machines(self) -> frozenset[str]:
        """The machines (as platform.machine() names them) that have a native runner, on Linux."""
        ...

    def system_calls(self, machine: str) -> tuple[int, int]:
        """The numbers of futex and sched_yield."""
        ...


class Host(Protocol):
    """What the CPU target offers a process that compiles nothing, above all one that loads an artifact: no target is
    made for it, and neither LLVM nor what prints kernels is imported."""

    def target(self) -> HostTarget:
        """The target of this process: this machine's CPU as the environment asks for it. Raises TargetError."""
        ...

    def target_of(self, parts: Mapping[str, str]) -> HostTarget:
        """The target that code with these parts was made for, where it runs here. Raises TargetError."""
        ...

    def parts(self) -> dict[str, str]:
        """What compiled code depends on, labelled: the system, the machine, the CPU, and its features."""
        ...

    def differences(self, then: dict[str, str], now: dict[str, str]) -> list[str]:
        """Why code that was compiled with the parts `then` may not run with the parts `now`."""
        ...

    def link(self, objects: Sequence[bytes], symbols: Sequence[str],
             ) -> tuple[bytes, dict[str, int], dict[str, int]] | None:
        """One image of object code, the offsets of the functions `symbols`, and of the slots of the C library's
        functions; None where code cannot be linked so."""
        ...

    def load_image(self, code: bytes | memoryview, imports: Mapping[str, int]) -> int:
        """Map an image into this process, for as long as that lives, and give its address. Raises TargetError."""
        ...

    def load_objects(self, objects: Sequence[bytes], symbols: Sequence[str]) -> dict[str, int]:
        """The addresses of the functions `symbols`, which this object code defines. Raises TargetError."""
        ...

    def runner(self) -> RunnerCode:
        """The native runner."""
        ...

    def features(self) -> frozenset[str]:
        """What this machine's CPU can do, by LLVM's names."""
        ...

    def vector_form(self) -> tuple[str, int]:
        """The name of the instructions that kernels are made of on this machine, and the bits of a vector."""
        ...

    def levels(self) -> tuple[str, ...]:
        """The levels of CPUs that code can be made for instead of for this machine's: the values of MXC_CPU."""
        ...

    def level_of(self, features: Set[str]) -> str:
        """The highest of these levels that a CPU with the features, as `parts` has them, is of; "" for none."""
        ...

    def generators(self) -> dict[str, str]:
        """What can make code of typed source, and what that is: the values of MXC_CODEGEN."""
        ...

    def generator(self) -> str:
        """The one that MXC_CODEGEN asks for. Raises SettingError when it names none."""
        ...

    def numba_fault(self) -> tuple[str, str]:
        """Why Numba cannot be imported, which is tried, and what to do; ("", "") where it can."""
        ...
