"""Which call sites NVIDIA's libraries compute: those where their result agrees and is there sooner."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mxc.compiler.cache_files import entry_key
from mxc.compiler.error import MXNetError, OutOfMemoryError, SettingError
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.system import env
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cuda.device import Launch, LibraryCall, LibraryLacks
from mxc.compiler.targets.cuda.nvidia import cublaslt, cudnn_graphs
from mxc.compiler.targets.cuda.nvidia.forms import Form, form_of, with_numbers
from mxc.compiler.targets.cuda.nvidia.trial import Outcome, Trial
from mxc.compiler.targets.cuda.nvidia.workspace import Workspace

if TYPE_CHECKING:
    from mxc.compiler.cache import Cache
    from mxc.compiler.targets.cuda.allocator import Allocator

FASTER, ALWAYS, NEVER = WAYS = ("faster", "always", "never")  # the values of MXC_CUDA_LIBRARIES
OWN, LIBRARY = b"own", b"library"  # what is remembered of a call site
MOST_CALLS = 1024  # calls that are kept for further call sites of their form


def setting() -> str:
    """MXC_CUDA_LIBRARIES. Raises SettingError for another value."""
    way = env.text("MXC_CUDA_LIBRARIES", FASTER)
    if way not in WAYS:
        raise SettingError(f"MXC_CUDA_LIBRARIES={way}: expected one of {', '.join(WAYS)}")
    return way


class Libraries:
    """NVIDIA's libraries on a device. cache, parts: where choices are remembered, and what else they depend on. notes:
    why a library that the process was to use is not there, by its module."""

    def __init__(self, memory: Allocator, cache: Cache | None = None, parts: dict[str, str] | None = None):
        self.memory, self.cache, self.way, self.tf32 = memory, cache, setting(), env.tf32()
        self.notes: dict[str, str] = {}
        self._workspace, self._lock = Workspace(memory), Lock()
        self._found: dict[str, Any] = {}
        if self.way != NEVER:
            for name, module, make in (("cuBLASLt", cublaslt.MODULE, cublaslt.CublasLt),
                                       ("cuDNN", cudnn_graphs.MODULE, cudnn_graphs.Cudnn)):
                self._find(name, module, make)
        versions = {each.version: "" for each in self._found.values()}
        self._parts = {**(parts or {}), "device": memory.device.name, "libraries": ", ".join(versions),
                       "tf32": str(self.tf32), "choice": self.way}
        self._calls: dict[Form, LibraryCall | None] = {}

    def _find(self, name: str, module: str, make: Callable[..., Any]) -> None:
        device = self.memory.device
        try:
            found = make(device.library(module), device, self._workspace, self.tf32)
            self._found[name] = found if found.version else None
        except ImportError as error:
            self.notes[module] = str(error)
        except Exception as error:  # of the library, whatever it is: mxc's kernels do its work
            self.notes[module] = f"{type(error).__name__}: {error}"
            warnings.warn(f"gpu({device.number}): {name} cannot be used, so mxc's kernels are: {self.notes[module]}",
                          RuntimeWarning, stacklevel=2)

    def form(self, kernel: object) -> Form | None:
        """What a library that is there would compute for a kernel."""
        found = form_of(kernel) if self._found and isinstance(kernel, CallKernel) else None
        return found if found is not None and found.library in self._found else None

    def taken(self, kernel: CallKernel, numbers: Sequence[int], own: Callable[[Sequence[int]], Launch],
              ) -> LibraryCall | None:
        """The call that a launch of a kernel's code with these integers becomes; None where it stays a launch. own:
        that launch, with its buffers at these addresses."""
        if not self._found or form_of(kernel) is None:
            return None
        form = self.form(with_numbers(kernel, numbers))
        if form is None:
            return None
        with self._lock:
            if form not in self._calls:
                while len(self._calls) >= MOST_CALLS:
                    del self._calls[next(iter(self._calls))]
                try:
                    self._calls[form] = self._chosen(form, len(kernel.buffers), own)
                except OutOfMemoryError:  # there may be more memory later
                    return None
            return self._calls[form]

    def _chosen(self, form: Form, buffers: int, own: Callable[[Sequence[int]], Launch]) -> LibraryCall | None:
        key = entry_key(f"{form!r}\n", self._parts)
        known = self.cache.get(key) if self.cache is not None else None
        if known == OWN:
            return None
        try:
            call: LibraryCall = self._found[form.library].call(form)
            if known == LIBRARY:
                return call
            outcome = self._tried(form, buffers, own, call)
            wins = outcome.agrees and (self.way == ALWAYS or outcome.library < outcome.own)
            reason = f"own {outcome.own * 1e6:.1f} us, library {outcome.library * 1e6:.1f} us, off {outcome.off:.2g}"
        except LibraryLacks as error:
            wins, reason = False, str(error)
        if self.cache is not None:
            self.cache.put(key, self._parts, LIBRARY if wins else OWN, form.text(), reason)
        return call if wins else None

    def _tried(self, form: Form, buffers: int, own: Callable[[Sequence[int]], Launch], call: LibraryCall) -> Outcome:
        """What a trial finds. Raises MXNetError where the device fails in it."""
        def called(places: Sequence[int]) -> Launch:
            return Launch(call, 1, 1, [(place, form.dtype) for place in places])

        trial = Trial(self.memory, form, buffers, own, called)
        try:
            found = trial.outcome(self.tf32, self.way == FASTER)
        except MXNetError as error:
            raise MXNetError(f"gpu({self.memory.device.number}): a trial of {form.text()} failed: {error}; with "
                             "MXC_CUDA_LIBRARIES=never mxc's kernels run alone") from error
        finally:
            trial.close()
        if not found.agrees:
            what = "treats NaN in another way" if found.off <= found.allowed else (
                f"differs by {found.off:.2g} of the largest result, more than {found.allowed:.2g} for rounding")
            warnings.warn(f"{form.text()}: the library's result {what}, so mxc's kernel is used", RuntimeWarning,
                          stacklevel=2)
        return found


def library_of(kernel: object) -> str:
    """The library that may be taken for a kernel where it is there, for people; "" for none. A sum in parts is whole
    then."""
    form = form_of(kernel) if isinstance(kernel, CallKernel) else None
    return "" if form is None else form.library
