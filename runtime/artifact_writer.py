"""Writes artifacts: plans of executors, the code of their kernels and of the runner, and parameters."""
from __future__ import annotations

import functools
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.plan import Plan
from mxc.compiler.targets import host
from mxc.compiler.targets.launch import DeviceCode, symbol
from mxc.runtime import artifact_cuda, artifact_file, costs, runner
from mxc.runtime.artifact import IMAGE, INFERENCE, OBJECTS, TRAINING, parts
from mxc.runtime.artifact_file import Piece, Section
from mxc.runtime.batches import Batches
from mxc.runtime.executor import GraphExecutor

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import CodeTarget


class Interface(NamedTuple):
    """What a caller of an artifact sees, all by name. inputs, optional: the arguments that the caller gives, and may
    give. outputs: in their order. given: the parameters and states whose values are in the file. unread: those of
    `optional` that no plan for inference reads. batches: how such plans take batches of other sizes. keeps: whether
    the parameters are also there as they were given where no plan reads them so, but only what was prepared of them."""

    inputs: Sequence[str]
    optional: Sequence[str]
    outputs: Sequence[str]
    given: Sequence[str]
    unread: Sequence[str]
    batches: Batches
    keeps: bool = False


def write(path: str | os.PathLike[str], version: str, graph: str, executors: Sequence[GraphExecutor],
          interface: Interface, train: bool, target: CodeTarget | None = None) -> None:
    """Write an artifact.

    version: of mxc. graph: the model's JSON. executors: one for each set of input shapes, with equal parameters, on the
    values of those that the interface has as `given`, which the file gets. train: training plans too, with the
    gradients that the executors want. target: a GPU's; None: this CPU's.
    Raises MXNetError when parameters of two executors differ in shape, or the target has no code for a kernel,
    FileAccessError when the file cannot be written.
    """
    arrays, given = {**executors[0].args, **executors[0].aux}, interface.given
    for executor in executors[1:]:
        for name in given:
            shape = {**executor.args, **executor.aux}[name].shape
            if shape != arrays[name].shape:
                raise MXNetError(f"parameter {name!r} has the shape {arrays[name].shape} for the first input shapes "
                                 f"and {shape} for others: one file cannot have both")
    values, prepared, read = Section(), Section(), {*given} if interface.keeps or target is not None else set[str]()
    plans, entries, objects, codes = dict[str, list[Piece]](), [], dict[str, bytes](), dict[str, DeviceCode]()
    for executor in executors:
        for mode in (INFERENCE, TRAINING) if train else (INFERENCE,):
            compiled = made_for(target, executor, mode == TRAINING)
            section = f"plan {len(plans)}"
            plans[section] = [compiled.plan.to_json().encode()]
            if target is None:
                objects |= host().target().objects([key for key in compiled.plan.kernels if key not in objects],
                                                   functools.partial(getattr, compiled, "kernels"))
            elif compiled.library.missing:
                raise MXNetError(f"there is no code for {', '.join(sorted({*compiled.library.missing.values()}))} on "
                                 f"GPUs, so {os.fspath(path)} cannot be written: compile the model for the CPU")
            else:
                codes |= target.stored(compiled.library, compiled.kernels)
            made = dict[int, int]()
            if target is None and given and mode == INFERENCE and _can_store(compiled.plan):
                made = _store(compiled.plan, executor.prepared_values(), prepared)
            read |= _read(compiled.plan, without_preparing=bool(made))
            entries.append({
                "mode": mode, "section": section, "cost": costs.of_run(compiled.plan),
                "arrays": _facts(executor, given),
                "outputs": [[output.dtype, list(output.shape)] for output in executor.outputs],
                "grad_req": {name: how for name, how in executor.grad_req.items() if how != "null"}
                if mode == TRAINING else {}, "prepared": made})
    linked, code = _code(objects) if target is None else artifact_cuda.stored(codes)
    manifest = {
        "parts": parts(version, target), "args": list(executors[0].args), "aux": list(executors[0].aux),
        "inputs": list(interface.inputs), "optional": list(interface.optional), "outputs": list(interface.outputs),
        "unread": list(interface.unread), "batches": interface.batches.stored(),
        "parameters": {name: [arrays[name].dtype, list(arrays[name].shape),
                              values.add(name, arrays[name].data) if name in read else None] for name in given},
        "plans": entries, "code": linked}
    artifact_file.write(path, manifest, {"graph": [graph.encode()], **plans, "code": code,
                                         "parameters": values.pieces, "prepared": prepared.pieces})


def made_for(target: CodeTarget | None, executor: GraphExecutor, is_train: bool) -> Any:
    """What the compiler makes of an executor's graph (compiler.api.Compiled) for a GPU's target, or for this CPU."""
    return executor.compiled(is_train) if target is None else executor.compiled_for(target, is_train)


def _facts(executor: GraphExecutor, given: Sequence[str]) -> dict[str, Any]:
    """dtype and shape of the arrays that are not `given`."""
    return {name: [array.dtype, list(array.shape)] for name, array in {**executor.args, **executor.aux}.items()
            if name not in given}


def _read(plan: Plan, without_preparing: bool) -> set[str]:
    """The names of the arguments and states that runs of the plan read. without_preparing: when all is prepared."""
    used = plan.read_in_runs if without_preparing else range(len(plan.buffers))
    return {plan.buffers[i].name for i in used if plan.buffers[i].pool in ("argument", "aux")}


def _can_store(plan: Plan) -> bool:
    """Whether all that the prepare steps do is to fill prepared buffers."""
    written = {plan.buffers[i].pool for step in plan.steps_of("prepare") for i in step.writes}
    return written <= {"prepared", "arena", "status"}


def _store(plan: Plan, values: Mapping[int, np.ndarray], section: Section) -> dict[int, int]:
    """Put prepared values, by position in plan.buffers, into the section. The offset of each; what several plans
    prepare in the same way is in the section once."""
    made: dict[int, Hashable] = {}  # what each buffer holds when the prepare steps are done
    for number, step in enumerate(plan.steps_of("prepare")):
        def content(i: int, made: Mapping[int, Hashable] = made) -> Hashable:
            return made.get(i, (plan.buffers[i].pool, plan.buffers[i].name))

        work = (step.kernel or (id(plan), number), step.values, step.calls, tuple(content(i) for i in step.buffers))
        made |= {i: (work, where) for where, i in enumerate(step.buffers) if i in step.writes}
    return {i: section.add(made.get(i, (id(plan), i)), value) for i, value in values.items()}


def _code(objects: Mapping[str, bytes]) -> tuple[dict[str, Any], list[Piece]]:
    """What the manifest says of the code, and the code: linked where that can be done, else as objects."""
    codes = list(objects.values())
    symbols = {key: symbol(key) for key in objects}
    if runner.is_native():
        codes.append(host().target().runner_object())
        symbols |= {name: name for name in host().runner().FUNCTIONS}
    linked = host().link(codes, list(symbols.values()))
    if linked is not None:
        code, functions, imports = linked
        return {"form": IMAGE, "symbols": symbols, "functions": functions, "imports": imports}, [code]
    section, places = Section(), []
    for number, code in enumerate(codes):
        places.append([section.add(number, np.frombuffer(code, np.uint8)), len(code)])
    return {"form": OBJECTS, "symbols": symbols, "objects": places}, section.pieces
