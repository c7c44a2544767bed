"""Which call sites NVIDIA's libraries compute: those where their result agrees and is there sooner."""
from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mxc.compiler.cache_files import entry_key
from mxc.compiler.error import MXNetError, OutOfMemoryError, SettingError
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.system import env
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cuda.device import Launch, LibraryCall, LibraryLacks
from mxc.compiler.targets.cuda.nvidia import cublaslt, cudnn_graphs
from mxc.compiler.targets.cuda.nvidia.forms import Form, form_of, is_deep, may_have_form, with_numbers
from mxc.compiler.targets.cuda.nvidia.rounding import Rounding
from mxc.compiler.targets.cuda.nvidia.trial import Outcome, Trial
from mxc.compiler.targets.cuda.nvidia.workspace import Workspace

if TYPE_CHECKING:
    from mxc.compiler.cache import Cache
    from mxc.compiler.targets.cuda.allocator import Allocator

FASTER, ALWAYS, NEVER = WAYS = ("faster", "always", "never")  # the values of MXC_CUDA_LIBRARIES
OWN, LIBRARY = b"own", b"library"  # what is remembered of a call site
MOST_CALLS = 1024  # calls that are kept for further call sites of their form
LIBRARIES: dict[str, tuple[str, Callable[..., Any]]] = {
    "cuBLASLt": (cublaslt.MODULE, cublaslt.CublasLt), "cuDNN": (cudnn_graphs.MODULE, cudnn_graphs.Cudnn)}


def setting() -> str:
    """MXC_CUDA_LIBRARIES. Raises SettingError for another value."""
    way = env.text("MXC_CUDA_LIBRARIES", FASTER)
    if way not in WAYS:
        raise SettingError(f"MXC_CUDA_LIBRARIES={way}: expected one of {', '.join(WAYS)}")
    return way


class Libraries:
    """NVIDIA's libraries on a device, each found when something is asked of it. cache, parts: where choices are
    remembered, and what else they depend on. way: of WAYS, by default as the environment says. missing: why a library
    is not there, by its name; refused: why it has no call for a form. choices: whether a library computes a form, of
    those that call sites had."""

    def __init__(self, memory: Allocator, cache: Cache | None = None, parts: Mapping[str, str] | None = None,
                 way: str | None = None):
        self.memory, self.cache, self.way, self.rounding = memory, cache, way or setting(), Rounding.asked_for()
        self.missing: dict[str, str] = {}
        self.refused: dict[Form, str] = {}
        self._parts = {**(parts or {}), "device": memory.device.name, "rounding": str(self.rounding),
                       "choice": self.way}
        self._workspace, self._lock = Workspace(memory), Lock()
        self._found: dict[str, Any] = {}
        self._calls: dict[Form, LibraryCall | None] = {}
        self.choices: dict[Form, bool] = {}

    def has(self, kernel: object) -> bool:
        """Whether a library has a call for what a kernel does."""
        form = form_of(kernel) if self.way != NEVER and isinstance(kernel, CallKernel) else None
        return form is not None and self._call(form) is not None

    def has_bare(self, kernel: object) -> bool:
        """Whether a library is asked for a product without an epilogue, which runs as a kernel of its own then."""
        return isinstance(kernel, CallKernel) and is_deep(kernel) and self.has(kernel)

    def taken(self, kernel: CallKernel, numbers: Sequence[int], own: Callable[[Sequence[int]], Launch],
              ) -> LibraryCall | None:
        """The call that a launch of a kernel's code with these integers becomes; None where it stays a launch. own:
        that launch, with its buffers at these addresses."""
        form = form_of(with_numbers(kernel, numbers)) if self.way != NEVER and may_have_form(kernel) else None
        call = self._call(form) if form is not None else None
        if form is None or call is None:
            return None
        with self._lock:
            if form not in self.choices:
                try:
                    self.choices[form] = self._chosen(form, call, len(kernel.buffers), own)
                except OutOfMemoryError:  # there may be more memory later
                    return None
            return call if self.choices[form] else None

    def _library(self, name: str) -> Any:
        """The library of that name; None where it is not there, which is found out once."""
        if name in self.missing or name in self._found:
            return self._found.get(name)
        device, (module, make) = self.memory.device, LIBRARIES[name]
        try:
            self._found[name] = make(device.library(module), device, self._workspace, self.rounding)
        except ImportError as error:
            self.missing[name] = str(error)
        except Exception as error:  # of the library, whatever it is: mxc's kernels do its work
            self.missing[name] = f"{type(error).__name__}: {error}"
            warnings.warn(f"gpu({device.number}): {name} cannot be used, so mxc's kernels are: {self.missing[name]}",
                          RuntimeWarning, stacklevel=2)
        return self._found.get(name)

    def _call(self, form: Form) -> LibraryCall | None:
        """The call of a form; None where there is none."""
        with self._lock:
            library = self._library(form.library)
            if library is not None and form not in self._calls:
                while len(self._calls) >= MOST_CALLS:
                    self.refused.pop(next(iter(self._calls)), None)
                    del self._calls[next(iter(self._calls))]
                try:
                    self._calls[form] = library.call(form)
                except LibraryLacks as error:
                    self._calls[form], self.refused[form] = None, str(error)
                    self._tell(str(error))
                except OutOfMemoryError:  # there may be more memory later
                    return None
            return self._calls[form] if library is not None else None

    def _chosen(self, form: Form, call: LibraryCall, buffers: int, own: Callable[[Sequence[int]], Launch]) -> bool:
        """Whether the library computes a form from now on: as it is remembered, or by a trial."""
        parts = {**self._parts, "library": self._found[form.library].version}
        key = entry_key(f"{form!r}\n", parts)
        known = self.cache.get(key) if self.cache is not None else None
        if known is not None:
            return known == LIBRARY
        outcome = self._tried(form, buffers, own, call)
        wins = outcome.agrees and (self.way == ALWAYS or outcome.library < outcome.own)
        reason = f"mxc {outcome.own * 1e6:.1f} us, the library {outcome.library * 1e6:.1f} us, off {outcome.off:.2g}"
        self._tell(f"{form.text()}: {'taken' if wins else 'not taken'}: {reason}")
        if self.cache is not None:
            self.cache.put(key, parts, LIBRARY if wins else OWN, form.text(), reason)
        return wins

    def _tell(self, text: str) -> None:
        if env.debug_level() >= 2:
            print(f"mxc: gpu({self.memory.device.number}): {text}", file=sys.stderr)

    def _tried(self, form: Form, buffers: int, own: Callable[[Sequence[int]], Launch], call: LibraryCall) -> Outcome:
        """What a trial finds. Raises MXNetError where the device fails in it, and does nothing any more."""
        device = self.memory.device

        def called(places: Sequence[int]) -> Launch:
            return Launch(call, 1, 1, [(place, form.dtype) for place in places])

        trial = Trial(self.memory, form, buffers, own, called)
        try:
            found = trial.outcome(self.rounding, self.way == FASTER)
        except MXNetError as error:
            try:
                device.wait()
            except MXNetError:
                raise MXNetError(f"gpu({device.number}): a trial of {form.text()} failed: {error}; with "
                                 "MXC_CUDA_LIBRARIES=never mxc's kernels run alone") from error
            found = Outcome(math.inf, 0.0, False)
            self._warn(f"{form.text()}: a trial failed: {error}")
        else:
            if not found.agrees:
                self._warn(f"{form.text()}: the library's result " + (
                    "treats NaN in another way" if found.off <= found.allowed else f"differs by {found.off:.2g} of the "
                    f"largest result, more than {found.allowed:.2g} for rounding"))
        finally:
            trial.close()
        return found

    @staticmethod
    def _warn(text: str) -> None:
        warnings.warn(f"{text}, so mxc's kernel is used", RuntimeWarning, stacklevel=2)
