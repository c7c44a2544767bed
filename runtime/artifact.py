"""The runtime's side of artifacts, compiled models in one file: artifact_file.py has the format, artifact_writer.py
writes it.

An artifact is a program: its code runs in this process. The checks tell damage, not intent.
"""
from __future__ import annotations

import functools
import hashlib
import json
import os
import struct
import warnings
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mxc.compiler import plan, targets
from mxc.compiler.error import ArgumentError, MXNetError, TargetError
from mxc.compiler.ops.dtypes import numpy_dtype
from mxc.compiler.plan import Plan
from mxc.compiler.system import env
from mxc.compiler.system.forks import Lock
from mxc.compiler.system.garbage import uncollected
from mxc.compiler.system.packages import compiler_lacks
from mxc.compiler.targets.launch import LoadedKernels
from mxc.runtime import artifact_cuda, artifact_file, runner
from mxc.runtime.array import Array, dtype_name
from mxc.runtime.batches import Batches, Part
from mxc.runtime.context import Context, cpu
from mxc.runtime.engine import Variable
from mxc.runtime.features import cpu_level
from mxc.runtime.plan_check import check_plan

if TYPE_CHECKING:
    from mxc.compiler.graph.graph import Graph
    from mxc.compiler.targets.protocol import CodeTarget

Shape = tuple[int, ...]
INFERENCE, TRAINING = "inference", "training"
# what may be raised while a manifest or plan is read that is not of the format
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, struct.error)
OTHER_BATCHES = {"inputs": {}, "outputs": [], "mixed": "the file is of an earlier version, which did not look for how"}
IMAGE, OBJECTS = "image", "objects"  # what a CPU's code in a file is: linked, or object files
_lock = Lock()
_loaded: dict[str, LoadedKernels] = {}  # by the checksum of the code and the manifest's entry of it


@functools.cache
def _interface() -> str:
    """A digest of what plans and kernels look like to those who run them."""
    files = [Path(module.__file__ or "") for module in (plan, targets.host().runner(), runner, artifact_file)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def parts(version: str, target: CodeTarget | None = None) -> dict[str, str]:
    """What a file's plans and code depend on, labelled. version: of mxc. target: a GPU's; None: this CPU's."""
    skipped = ",".join(sorted(env.names("MXC_SKIP")))
    settings = " ".join(["MXC_STRICT=1"] * env.flag("MXC_STRICT") + [f"MXC_SKIP={skipped}"] * bool(skipped))
    device = targets.host().parts() if target is None else {"target": f"{artifact_cuda.CUDA}{target.arch}",
                                                            "sources": target.parts["mxc"]}
    return device | {"mxc": f"{version} ({_interface()})", "settings": settings}


class StoredPlan(NamedTuple):
    """One plan of a file. shapes, dtypes: of all arguments and auxiliary states. outputs: dtype and shape of each.
    grad_req: of the arguments whose gradient is computed. prepared: the places in the section "prepared" of the buffers
    in these positions; none where the prepare steps have to run. cost: what a run costs (runtime/costs.py)."""

    mode: str
    shapes: dict[str, Shape]
    dtypes: dict[str, str]
    outputs: list[tuple[str, Shape]]
    grad_req: dict[str, str]
    prepared: dict[int, int]
    section: str
    cost: int


class StoredCode:
    """A plan of a file with its kernels, in the place of a compiler.api.Compiled: groups and seconds are empty, since
    nothing was compiled. find_graph: makes the graph, when it is asked for. text: the model's JSON."""

    groups, seconds = "", 0.0

    def __init__(self, plan: Plan, library: LoadedKernels, find_graph: Callable[[], Graph], text: str):
        self.plan, self.library, self.find_graph, self.text = plan, library, find_graph, text

    @functools.cached_property
    def names(self) -> list[str]:
        """The names of the model's nodes, by the ids that `Step.origins` has."""
        return [str(node["name"]) for node in json.loads(self.text)["nodes"]]

    @functools.cached_property
    def graph(self) -> Graph:
        """What the passes made, for host steps."""
        return self.find_graph()


class Artifact:
    """A file, mapped and checked.

    version: of mxc. inputs, optional: arguments that a caller gives, and may give. unread: those of `optional` that no
    plan for inference reads. outputs: names, each there once. batches: how the plans for inference take batches of
    other sizes. parameters: arguments and auxiliary states with their values, which are the mapped file. facts: dtype
    and shape of all that the file was given values of: of those that are no `parameters` it has only what its plans
    prepared of them. args, aux: all names. arch: of the GPUs that it was compiled for; "" for CPUs. context: where it
    runs; gpu(0) when None is given to a file for GPUs. stale: why its code and plans cannot be used there; "" when they
    can.
    Raises ModelFileError naming the file when it cannot be read, or is damaged anywhere, ArgumentError for a context of
    another kind.
    """

    def __init__(self, path: str | os.PathLike[str], version: str, context: Context | None = None):
        self.contents = artifact_file.read(path)
        self.path = self.contents.path
        with uncollected():
            try:
                self._read(self.contents.manifest)
            except MALFORMED as error:
                raise artifact_file.malformed(self.path, error) from None
        self.context = Context(context or ("gpu" if self.arch else "cpu"))
        if (self.context.gpu_number >= 0) != bool(self.arch):
            raise ArgumentError(f"{self.path} was compiled for {'GPUs' if self.arch else 'CPUs'}, and is to run on "
                                f"{self.context}: compile the model for that with `mxc compile --target "
                                f"{'cpu' if self.arch else 'cuda:sm_...'}`")
        self.stale = "; ".join(self._differences(version))

    def _differences(self, version: str) -> list[str]:
        """Why code and plans cannot be used here."""
        if not self.arch:
            return targets.host().differences(self.parts, parts(version))
        fault = self.gpu_fault()
        if fault:
            return [fault]
        target: Any = self.context.target()
        now = parts(version, target)
        return [*(f"{label}: {self.parts.get(label)!r} then, {now[label]!r} now" for label in ("mxc", "settings")
                  if self.parts.get(label) != now[label]), *target.differences(self.arch, self.parts["sources"])]

    def _read(self, manifest: dict[str, Any]) -> None:
        self.parts: dict[str, str] = {str(label): str(text) for label, text in manifest["parts"].items()}
        self.code = manifest["code"]
        self.arch = self.parts["target"].removeprefix(artifact_cuda.CUDA) if self.code["form"] == artifact_cuda.FORM \
            else ""
        self.args, self.aux, self.inputs, self.optional, self.outputs = (
            [str(name) for name in manifest[kind]] for kind in ("args", "aux", "inputs", "optional", "outputs"))
        # Files of earlier versions have neither.
        self.unread = {str(name) for name in manifest.get("unread", ())}
        self.batches = Batches.read(manifest.get("batches", OTHER_BATCHES))
        self.json = bytes(self.contents.sections["graph"]).decode().rstrip("\0")
        values = self.contents.sections["parameters"]
        self.facts: dict[str, tuple[str, Shape]] = {str(name): (dtype_name(dtype), tuple(map(int, shape)))
                                                    for name, (dtype, shape, _) in manifest["parameters"].items()}
        self.parameters = {name: self._array(values, *self.facts[name], offset)
                           for name, (_, _, offset) in manifest["parameters"].items() if offset is not None}
        self.plans = [self._stored(entry) for entry in manifest["plans"]]
        strange = {*self.inputs, *self.optional} - {*self.args}
        counts = {len(stored.outputs) for stored in self.plans} | {len(each) for each in self.batches.outputs}
        if strange or counts != {len(self.outputs)} or (not self.batches.mixed and len(self.batches.outputs) != sum(
                stored.mode == INFERENCE for stored in self.plans)):
            raise ValueError(f"inputs {self.inputs}, outputs {self.outputs} and {len(self.plans)} plans do not belong "
                             "together")

    def gpu_fault(self) -> str:
        """Why the GPU that this file is to run on cannot be used; "" where it can, and for CPUs."""
        try:
            self.context.target()
        except TargetError as error:
            return str(error)
        return ""

    def _array(self, section: memoryview, dtype: str, shape: Shape, offset: int) -> Array:
        if min(shape, default=0) < 0 or not 0 <= offset <= len(section) - prod(shape) * numpy_dtype(dtype).itemsize:
            raise ValueError(f"a parameter of shape {shape} is at {offset} of {len(section)} bytes")
        return Array(np.ndarray(shape, numpy_dtype(dtype), section, offset), Context(cpu()), Variable())

    def _stored(self, entry: dict[str, Any]) -> StoredPlan:
        if entry["section"] not in self.contents.sections or entry["mode"] not in (INFERENCE, TRAINING):
            raise ValueError(f"a plan is in {entry['section']!r} for {entry['mode']!r}")
        shapes = {name: shape for name, (_, shape) in self.facts.items()}
        dtypes = {name: dtype for name, (dtype, _) in self.facts.items()}
        for name, (dtype, shape) in entry["arrays"].items():
            shapes[name], dtypes[name] = tuple(map(int, shape)), dtype_name(dtype)
        if shapes.keys() != {*self.args, *self.aux}:
            raise ValueError(f"a plan has the arrays {', '.join(shapes)}")
        return StoredPlan(entry["mode"], shapes, dtypes, [(str(d), tuple(map(int, s))) for d, s in entry["outputs"]],
                          dict(entry["grad_req"]), {int(k): int(v) for k, v in entry["prepared"].items()},
                          entry["section"], int(entry.get("cost", 0)))

    def need_compiler(self, why: str, advice: str = "install mxc with all that it requires: pip install mxc-compiler",
                      ) -> None:
        """Raise TargetError, with why a compiler is needed and what to do, where this environment has none."""
        lacking = compiler_lacks()
        if lacking:
            raise TargetError(f"{self.path}: {why}, and this environment has no compiler ({' and '.join(lacking)} "
                              f"{'are' if len(lacking) > 1 else 'is'} not installed)\n{advice}")

    def check_runs_here(self) -> None:
        """Raise TargetError where the GPU is not there, or this file's code cannot be used here, and there is no
        compiler to make other code."""
        fault = self.gpu_fault()
        if fault:
            raise TargetError(f"{self.path} was compiled for {artifact_cuda.CUDA}{self.arch}: {fault}")
        if self.stale and not self.arch:
            level = cpu_level()
            self.need_compiler(f"the model was compiled for something else ({self.stale})", "compile it again with "
                               f"`mxc compile{f' --target cpu:{level}' * bool(level)}`, by this version of mxc and "
                               "with the settings of here")

    def warn_if_stale(self) -> None:
        """Warn where this file's code cannot be used here, so that its model is compiled again."""
        if self.stale:
            warnings.warn(f"mxc: {self.path} was compiled for something else, so its model is compiled here, at its "
                          f"first use ({self.stale}). Run `mxc compile` here to start at once again", RuntimeWarning,
                          stacklevel=4)

    def library(self) -> LoadedKernels:
        """The file's kernels in this process. Raises TargetError when the system does not let code be loaded."""
        checksum = next(s["checksum"] for s in self.contents.manifest["sections"] if s["name"] == "code")
        key = f"{checksum} {self.context} {self.code}"
        with _lock:
            if key not in _loaded and self.arch:
                try:
                    codes = artifact_cuda.read(self.code, self.arch, self.contents.sections["code"])
                except MALFORMED as error:
                    raise artifact_file.malformed(self.path, error) from None
                target: Any = self.context.target()
                _loaded[key] = target.load_stored(codes)
            elif key not in _loaded:
                try:
                    addresses = self._load(self.contents.sections["code"])
                    names = targets.host().runner().FUNCTIONS
                    functions = {name: addresses.pop(name) for name in names if name in addresses}
                except MALFORMED as error:
                    raise artifact_file.malformed(self.path, error) from None
                runner.offer(functions)
                _loaded[key] = LoadedKernels(addresses, hits=len(addresses))
            return _loaded[key]

    def _load(self, code: memoryview) -> dict[str, int]:
        """The addresses of kernels by key, and of the runner's functions by name."""
        symbols: dict[str, str] = self.code["symbols"]
        if self.code["form"] == IMAGE:
            places: dict[str, int] = self.code["functions"]
            if not all(0 <= place < len(code) for place in places.values()):
                raise ValueError("a function is outside of the code")
            base = targets.host().load_image(code, self.code["imports"])
            return {key: base + places[symbol] for key, symbol in symbols.items()}
        objects = [bytes(code[start:start + length]) for start, length in self.code["objects"]]
        found = targets.host().load_objects(objects, list(symbols.values()))
        return {key: found[symbol] for key, symbol in symbols.items()}

    def find(self, mode: str, shapes: Mapping[str, Shape], dtypes: Mapping[str, str] | None = None,
             grad_req: Mapping[str, str] | None = None) -> StoredPlan | None:
        """The plan of a mode for these shapes (of some arguments) and, where given, dtypes and gradients."""
        wanted = None if grad_req is None else {name: how for name, how in grad_req.items() if how != "null"}
        for stored in self.plans:
            if stored.mode == mode and all(stored.shapes.get(name) == shape for name, shape in shapes.items()) \
                    and (dtypes is None or stored.dtypes == dict(dtypes)) \
                    and (wanted is None or stored.grad_req == wanted):
                return stored
        return None

    def plan(self, stored: StoredPlan) -> Plan:
        """One of the file's plans. Raises ModelFileError when it is none."""
        try:
            return Plan.from_json(bytes(self.contents.sections[stored.section]).decode().rstrip("\0"))
        except MALFORMED as error:
            raise artifact_file.malformed(self.path, error) from None

    def compiled(self, stored: StoredPlan, graph: Graph | None = None) -> StoredCode:
        """A plan and its kernels. graph: the model's, where it was read already."""
        library = self.library()
        found = self.plan(stored)
        try:
            check_plan(found, library.addresses)
        except MALFORMED as error:
            raise artifact_file.malformed(self.path, error) from None

        def final_graph() -> Graph:
            self.need_compiler("Python computes some of its operators")
            from mxc.compiler.api import watch_passes  # imports the passes
            from mxc.compiler.graph import json_ir
            from mxc.compiler.graph.text import digest

            source = json_ir.read(self.json, self.path) if graph is None else graph
            made = watch_passes(source, stored.shapes, stored.dtypes, stored.grad_req, stored.mode == TRAINING,
                                 target=self.context.target() or targets.host().target_of(self.parts))
            if found.graph and digest(made) != found.graph:
                raise MXNetError(f"{self.path} was compiled by other passes or for other operators of the program's "
                                 "own, so it is not known which of them Python has to run: compile the model again")
            return made

        return StoredCode(found, library, final_graph, self.json)

    def compile(self, graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
                is_train: bool) -> Any:
        """As compiler.api.compile_graph: from this file where it has the plan, else by the compiler."""
        wants = any(mode != "null" for mode in grad_req.values())
        stored = None
        if not self.stale and (is_train or not wants):
            stored = self.find(TRAINING if is_train else INFERENCE, shapes, dtypes, grad_req)
        if stored is not None:
            return self.compiled(stored, graph)
        from mxc.compiler.api import compile_graph

        return compile_graph(graph, shapes, dtypes, grad_req, is_train, self.context.target())

    def batch_parts(self, shapes: Mapping[str, Shape]) -> list[tuple[StoredPlan, Part]]:
        """The cheapest way to run inputs of these shapes on the plans for inference, cut and filled up; none where
        there is no way."""
        plans = [stored for stored in self.plans if stored.mode == INFERENCE]
        found = self.batches.parts([(stored.shapes, [shape for _, shape in stored.outputs], stored.cost)
                                    for stored in plans], shapes)
        return [(plans[part.plan], part) for part in found]

    def listed_shapes(self) -> str:
        """The inputs' shapes for which there are plans, for messages."""
        sets = dict.fromkeys(shape_text({name: stored.shapes[name] for name in self.inputs}) for stored in self.plans)
        return " or ".join(sets)

    def missing(self, mode: str, shapes: Mapping[str, Shape]) -> MXNetError:
        """What to raise when there is no plan for these shapes."""
        there = [stored for stored in self.plans if stored.mode == mode]
        if not there:
            return MXNetError(f"{self.path} has no plan for {mode}: it was compiled without --train")
        mixed = f"; batches of other sizes cannot be made of these: {self.batches.mixed}" * bool(self.batches.mixed)
        other = ", or compile the model with " + " ".join(f"--shape {shape_text({name: shape})}" for name, shape in
                                                          shapes.items()) + " too" if all(shapes.values()) else ""
        return MXNetError(f"{self.path} has no plan for {shape_text(shapes)}; it has plans for {self.listed_shapes()}"
                          f"{mixed}\ngive one of these shapes{other}")


def shape_text(shapes: Mapping[str, Shape]) -> str:
    """Shapes as `mxc compile` takes them; `()` for a single number."""
    return ", ".join(f"{name}={','.join(map(str, shape)) or '()'}" for name, shape in shapes.items())
