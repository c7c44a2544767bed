"""Run lowered programs: by the NumPy definitions of loop kernels and library calls, or by generated code."""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mxc.compiler.graph.graph import Entry, Graph
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.purity import static_names
from mxc.compiler.kernel import interpret, interpret_calls, interpret_chain
from mxc.compiler.kernel.ir import CallKernel, ChainKernel, LoopKernel, RoutineKernel
from mxc.compiler.kernel.routines import spec
from mxc.compiler.lowering import stage
from mxc.compiler.lowering.fuse import alone, fuse
from mxc.compiler.lowering.launches import Launch, Storage
from mxc.compiler.lowering.plan_memory import plan_memory
from mxc.compiler.lowering.stages import STAGES
from mxc.compiler.ops.dtypes import converted, numpy_dtype
from mxc.compiler.passes.infer import infer
from mxc.compiler.planning import program_of
from mxc.compiler.targets.cpu import preferences
from mxc.compiler.targets.preferences import Preferences
from mxc.compiler.targets.reference.interpreter import evaluate
from mxc.runtime import runner
from mxc.runtime.step_table import StepTable

DEFINITIONS: dict[type, Callable[..., None]] = {
    LoopKernel: interpret.run, CallKernel: interpret_calls.interpret, RoutineKernel: spec.run,
    ChainKernel: interpret_chain.interpret}


class Tiles:
    """The tile sizes of a target that is not there: odd ones, so that blocks have tails. Its figures are the CPU's."""

    def tile(self, dtype: str) -> tuple[int, int]:
        return 3, 6

    def lanes(self, dtype: str) -> int:
        return 2

    @property
    def prefers(self) -> Preferences:
        return preferences.FIGURES


class Program(stage.Program):
    """A lowered graph that can be run."""

    def kernels(self, target: Any) -> dict[str, Any]:
        """Its kernels by the key that `target` gives them."""
        return {target.launch(kernel).key: kernel for launch in self.launches for kernel in launch.kernels}

    def run(self, given: Mapping[str, np.ndarray], before: Mapping[str, np.ndarray] | None = None,
            target: Any = None, library: Any = None, run: Callable[..., None] | None = None,
            ) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """(the graph's outputs, the auxiliary states afterwards). given: arguments, auxiliary states and head gradients
        by name; before: what gradients to add to hold at first. With a target and its library of loaded kernels the
        generated code runs, or `run` runs each kernel on its arrays, else the kernels' definitions do."""
        memory: dict[Storage, np.ndarray] = {}

        def flat(storage: Storage) -> np.ndarray:
            if storage not in memory:
                if storage.pool in ("argument", "aux", "head"):
                    name = f"_head_grad_{storage.name}" if storage.pool == "head" else storage.name
                    memory[storage] = np.array(converted(given[name], numpy_dtype(storage.dtype))).ravel()
                elif storage.pool == "gradient" and before and storage.name in before:
                    memory[storage] = np.array(converted(before[storage.name], numpy_dtype(storage.dtype))).ravel()
                elif storage.pool == "seed":
                    memory[storage] = np.array([7, 0], "int64")
                else:
                    memory[storage] = np.full(storage.nbytes, 0x7B, "u1").view(numpy_dtype(storage.dtype)).copy()
            return memory[storage]

        self.run_on([[flat(s) for s in launch.storages] for launch in self.launches], target, library, run)
        aux = {s.name: a.reshape(s.shape) for s, a in memory.items() if s.pool == "aux"}
        return [flat(s).reshape(s.shape) for s in self.outputs], aux

    def run_on(self, arrays: Sequence[Sequence[np.ndarray]], target: Any = None, library: Any = None,
               run: Callable[..., None] | None = None) -> None:
        """Run every launch on its flat arrays, one list for each launch."""
        for launch, own in zip(self.launches, arrays, strict=True):
            if launch.kernel is None:
                self._on_host(launch, own)
            elif library is not None:
                self._launch(launch, own, target, library)
            elif run is not None:
                run(launch.kernel, list(own))
            else:
                DEFINITIONS[type(launch.kernel)](launch.kernel, list(own))

    def _on_host(self, launch: Launch, arrays: Sequence[np.ndarray]) -> None:
        node = self.graph.nodes[launch.host]
        entries = [*node.inputs, *(Entry(node, i) for i in range(node.num_outputs))]
        shaped = [a.reshape(self.graph.shape(e)) for a, e in zip(arrays, entries, strict=True)]
        results = evaluate(node, shaped[:launch.inputs], False, np.random.default_rng(0))
        for target, result in zip(shaped[launch.inputs:], results, strict=True):
            target[...] = result

    @staticmethod
    def _launch(launch: Launch, arrays: Sequence[np.ndarray], target: Any, library: Any) -> None:
        assert launch.kernel is not None
        code = target.launch(launch.kernel)
        stride = -(-code.scratch_bytes // 64) * 64
        scratch = np.empty(stride * runner.num_threads() + 64, "u1")
        values = list(code.values)
        for position, key in code.calls:
            values[position] = library.address(key)
        arguments = [*(a.ctypes.data for a in arrays), *values]
        runner.run(StepTable([(library.address(code.key), arguments, code.units)],
                                    scratch.ctypes.data + -scratch.ctypes.data % 64, stride))


def lowered(graph: Graph, shapes: Mapping[str, Sequence[int]], dtypes: Mapping[str, str] | None = None,
            grad_req: Mapping[str, str] | None = None, is_train: bool = False, target: object = None,
            merge: bool = True, skip: Collection[str] = ("share_code", "chains")) -> Program:
    """`graph` through every pass, and through the stages before plan_memory.

    target: for its tile sizes and figures only. merge: whether nodes share kernels. skip: names of stages that are left
    out.
    """
    known = infer(graph, shapes, dtypes or {})
    grad_req = grad_req or {}
    wants = is_train or any(mode != "null" for mode in grad_req.values())
    options = Options(target=target or Tiles(), is_train=is_train, grad_req=dict(grad_req),  # type: ignore[arg-type]
                      static=frozenset() if wants else static_names(known))
    program = Program(**vars(program_of(known, options)))
    for each in STAGES:
        if each is fuse and (not merge or each.name in skip):
            program.groups = alone(program.graph, options)
        elif each.name not in skip and each is not plan_memory:
            each.run(program)
    return program
