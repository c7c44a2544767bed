"""`mxc.load` and `Predictor`, the interface to artifacts: models compiled ahead of time, each in one file, NAME.mxc.

`mxc compile` writes them, `mxc.load` reads them. **An artifact is a program.** Its checksums tell damage, not intent:
loading one runs machine code from it, with all the rights of the process. Load only what you trust.
"""
from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import mxc
from mxc.batching import found_batches
from mxc.compiler.error import ArgumentError, ArgumentTypeError, ModelFileError, MXNetError, nearest
from mxc.compiler.ops.dtypes import is_number, numpy_dtype
from mxc.compiler.system.garbage import uncollected
from mxc.runtime.array import Array, dtype_name
from mxc.runtime.artifact import INFERENCE, TRAINING, Artifact, StoredPlan
from mxc.runtime.executor_memory import Memory
from mxc.runtime.ndarray_file import own_name
from mxc.runtime.prediction import Prediction

Shape = tuple[int, ...]
GIVE = "a program as mxc.load(path, params=mx.nd.load(FILE)), a command of mxc with --params FILE"


def load(path: str | os.PathLike[str], params: Mapping[str, Any] | None = None, ctx: Any = None) -> Predictor:
    """The model in an artifact, ready to run. An artifact is a program: load only what you trust.

    path: of a file that `mxc compile -o` or `mxc.artifact.save` wrote. params: values (NDArrays or NumPy arrays) of
    parameters, in place of those in the file, by name, with or without `arg:` and `aux:` as `mx.nd.load` gives them.
    ctx: the GPU on which a file for GPUs runs, mx.gpu(0) when None; files for CPUs take none but mx.cpu().

    The file is mapped into memory and every byte of it checked; neither LLVM nor the compiler's passes are
    imported. On another CPU than it was compiled for, or with another version of mxc, one warning says so, and the
    model is compiled here from the graph inside, if the file has its parameters (`keep_params` of `save`) or they are
    given; an error says so where the packages that compile are not installed. While it is in use the file must not be
    changed in place; to replace it, write another and rename it, as `mxc compile` does.
    Raises ModelFileError naming the file when it cannot be read, is no artifact or is damaged, ArgumentError for
    parameters that the model lacks or of other shapes and for a context of another kind, TargetError where the model
    has to be compiled here, without the packages for that, and where the GPU is not there.
    """
    artifact = Artifact(path, mxc.VERSION, ctx)
    artifact.check_runs_here()
    predictor = Predictor(artifact, params or {})
    if artifact.stale and predictor.prepared_params:
        raise ModelFileError(predictor.path, f"it was compiled for something else ({artifact.stale}), and has its "
                             "parameters only as that code reads them\ncompile the model again, here or with "
                             f"--keep-params, or give all parameters: {GIVE}")
    artifact.warn_if_stale()
    return predictor


class Predictor:
    """A model from an artifact.

    path: the file. input_names: the inputs that `predict` needs; further_inputs: those that it may get (those that
    inference does not read, and labels, which are zero when not given). output_names: each is there once. params: the
    values of the parameters and auxiliary states that the file has, by name, read-only: of a file for inference those
    that its plans read as they were given, unless it was made with `keep_params`; with none the file was compiled
    without.
    """

    def __init__(self, artifact: Artifact, params: Mapping[str, Any]):
        self._artifact = artifact
        self.path = artifact.path
        self.input_names, self.further_inputs = tuple(artifact.inputs), tuple(artifact.optional)
        self.output_names = tuple(artifact.outputs)
        self._values = dict(artifact.parameters)
        self._values.update(self._given(params))
        self._own_values = not params
        self._memory = Memory(artifact.context)
        self._runs: dict[str, Prediction] = {}
        self._executors: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<mxc.artifact.Predictor {self.path}: {self._artifact.listed_shapes()} -> " \
               f"{', '.join(self.output_names)}>"

    @property
    def params(self) -> dict[str, np.ndarray]:
        """Parameters and auxiliary states that have values as they were given, by name, read-only."""
        return {name: array.data for name, array in self._values.items()}

    @property
    def missing_params(self) -> dict[str, tuple[Shape, str]]:
        """Shape and dtype of the parameters and auxiliary states that `predict` lacks, by name."""
        stored, lacking = self._artifact.plans[0], self.prepared_params
        if self._own_values and not self._artifact.stale:
            lacking = ()  # the file's plans need no more than what was prepared
        return {name: (shape, stored.dtypes[name]) for name, shape in stored.shapes.items()
                if name in lacking or name not in (*self._values, *self._artifact.facts, *self.input_names,
                                                   *self.further_inputs)}

    @property
    def prepared_params(self) -> tuple[str, ...]:
        """The names of those parameters and auxiliary states of which the file has only what its plans prepared."""
        return tuple(name for name in self._artifact.facts if name not in self._values)

    @property
    def input_shapes(self) -> list[dict[str, Shape]]:
        """The sets of input shapes that `predict` takes, by input name."""
        return [{name: stored.shapes[name] for name in self.input_names} for stored in self._plans(INFERENCE)]

    @property
    def output_shapes(self) -> list[dict[str, Shape]]:
        """The outputs' shapes by name, for each of `input_shapes`."""
        return [{name: shape for name, (_, shape) in zip(self.output_names, stored.outputs, strict=True)}
                for stored in self._plans(INFERENCE)]

    @property
    def input_dtypes(self) -> dict[str, str]:
        """The inputs' dtypes; what `predict` gets is converted."""
        return {name: self._artifact.plans[0].dtypes[name] for name in self.input_names}

    @property
    def output_dtypes(self) -> dict[str, str]:
        """The outputs' dtypes."""
        outputs = self._artifact.plans[0].outputs
        return {name: dtype for name, (dtype, _) in zip(self.output_names, outputs, strict=True)}

    @property
    def trains(self) -> bool:
        """Whether the file has training plans (`mxc compile --train`)."""
        return bool(self._plans(TRAINING))

    @property
    def operators(self) -> set[str]:
        """The names of the model's operators, as its file has them."""
        return {str(node["op"]) for node in json.loads(self._artifact.json)["nodes"]} - {"null"}

    @property
    def symbol(self) -> Any:
        """The model as a Symbol. Raises TargetError where the packages that read graphs are not installed."""
        self._artifact.need_compiler("its graph is asked for")
        from mxc.compiler.graph import json_ir
        from mxc.symbol import Symbol

        return Symbol(json_ir.read(self._artifact.json, self.path).outputs)

    def predict(self, /, **inputs: Any) -> dict[str, np.ndarray]:
        """Compute the outputs, new NumPy arrays by name, for inputs by name (NumPy arrays, NDArrays or lists).

        The inputs' shapes choose the plan; a batch of a size for which there is none is cut over the plans that there
        are, and the last part filled up, where the model keeps the rows of a batch apart. Threads may call this at
        once; they take turns, but for those that have predictors of their own (`clone`).
        Raises ArgumentTypeError for inputs that there are not or that are missing, MXNetError listing the shapes that
        there are for others.
        """
        values = {name: self._numbers(name, value) for name, value in inputs.items()}
        self._check_names(values)
        missing = [name for name in self.input_names if name not in values]
        if missing:
            raise ArgumentTypeError(f"predict needs the inputs {', '.join(self.input_names)}; missing: "
                                    f"{', '.join(missing)}")
        values = {name: value for name, value in values.items() if name not in self._artifact.unread}
        shapes = {name: value.shape for name, value in values.items()}
        stored = self._artifact.find(INFERENCE, shapes)
        with self._memory.lock:
            results = self._cut(values, shapes) if stored is None else self._outputs(stored, values)
        return dict(zip(self.output_names, results, strict=True))

    def clone(self) -> Predictor:
        """A predictor of the same file on the same parameters, with memory of its own for its runs, so that two
        threads with one each run at the same time."""
        other = Predictor(self._artifact, {})
        other._values, other._own_values = self._values, self._own_values
        return other

    def _cut(self, values: Mapping[str, np.ndarray], shapes: Mapping[str, Shape]) -> list[np.ndarray]:
        """The outputs for a batch for which there is no plan, by those that there are."""
        batches, results = self._artifact.batches, list[np.ndarray]()
        parts = self._artifact.batch_parts(shapes)
        if not parts:
            raise self._artifact.missing(INFERENCE, shapes)
        for stored, part in parts:
            batches.join(results, self._outputs(stored, batches.cut(values, part)), part, batches.rows(shapes) or 0)
        return results

    def _outputs(self, stored: StoredPlan, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs of a plan."""
        if self._artifact.stale or self._artifact.arch:
            return self._by_executor(stored, values)
        if stored.section not in self._runs:
            self._need_values()
            with uncollected():  # the first run makes tables
                run = Prediction(self._artifact, stored, self._values, self._memory, self._own_values)
                results = run.run(values)
            self._runs[stored.section] = run
            return results
        return self._runs[stored.section].run(values)

    def shapes_for(self, shapes: Mapping[str, Shape]) -> dict[str, Shape] | None:
        """The shapes of all inputs that go with those of some: the file's first set that agrees with them, or such a
        set for as many rows of a batch as they have, where batches are cut and filled up; None where neither is."""
        sets = self.input_shapes
        for each in sets:
            if all(each.get(name, shape) == shape for name, shape in shapes.items()):
                return each
        batches = self._artifact.batches
        rows = batches.rows(shapes)
        for each in sets:
            made = each if rows is None else batches.sized(each, rows)
            if all(made.get(name, shape) == shape for name, shape in shapes.items()) and \
                    self._artifact.batch_parts(made):
                return made
        return None

    def executor(self, inputs: Mapping[str, Sequence[int]] | None = None, /, *, ctx: Any = None, grad_req: Any = None,
                 **shapes: Sequence[int]) -> Any:
        """An Executor for input shapes that the file has plans for; its arrays are its own, its parameters hold the
        file's values. It runs forward and backward with the file's plans.

        shapes: of inputs, by name; they may be left out when the file has one set. inputs: the same, as a dict, which
        also takes inputs that are called ctx or grad_req. grad_req: as of Symbol.simple_bind; None: the gradients that
        a training artifact was compiled for, else none. Other gradients than those are compiled when they are first
        needed.
        Raises MXNetError listing the shapes that there are for others.
        """
        shapes = {**(inputs or {}), **shapes}
        mode = TRAINING if self._plans(TRAINING) else INFERENCE
        if not shapes and len(self._plans(mode)) == 1:
            stored = self._plans(mode)[0]
        else:
            stored = self._find(mode, {name: tuple(shape) for name, shape in shapes.items()})
        return self._executor(stored, ctx or self._artifact.context,
                              (stored.grad_req or "null") if grad_req is None else grad_req)

    def _executor(self, stored: StoredPlan, ctx: Any, grad_req: Any) -> Any:
        self._artifact.need_compiler("an executor is asked for")
        self.need_params()
        from mxc.symbol.binding import simple_bind  # takes arguments of any name, as the method does not

        executor = simple_bind(self.symbol, ctx, grad_req, stored.dtypes, stored.shapes)
        executor._core.compiler = self._artifact.compile
        return self._filled(executor)

    def _filled(self, executor: Any) -> Any:
        """The executor, whose parameters have the values of this model's."""
        for name, array in self._values.items():
            (executor.arg_dict if name in executor.arg_dict else executor.aux_dict)[name][:] = array.data
        return executor

    def _bound_here(self, shapes: Mapping[str, Shape]) -> Any:
        """An executor for shapes of inputs that the file has no plan for: its model is compiled here."""
        from mxc.symbol.binding import simple_bind

        self.need_params()
        stored = self._artifact.plans[0]
        known = {name: array.shape for name, array in self._values.items()}
        return self._filled(simple_bind(self.symbol, self._artifact.context, "null", stored.dtypes,
                                        {**known, **shapes}))

    def _by_executor(self, stored: StoredPlan, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs by an executor: on a GPU, and of what the compiler makes of the graph here."""
        if stored.section not in self._executors:
            self._need_values()
            made = self._executors[stored.section] = self._executor(stored, self._artifact.context, "null")
            made._release([name for name in stored.shapes if name not in (*self.input_names, *self.further_inputs)])
        executor = self._executors[stored.section]
        for name, value in values.items():
            executor.arg_dict[name][:] = value
        return [output.asnumpy() for output in executor.forward(is_train=False)]

    def _plan(self, shapes: Mapping[str, Shape]) -> Any:
        """The plan that runs for inputs of these shapes (compiler.plan.Plan), one of which was done: that of the first
        part of a batch that is cut."""
        parts = self._artifact.batch_parts(shapes) if self._artifact.find(INFERENCE, shapes) is None else ()
        stored = parts[0][0] if parts else self._find(INFERENCE, shapes)
        made = self._executors.get(stored.section)
        return self._runs[stored.section].plan if made is None else made.compiled().plan

    def _sizes(self) -> dict[str, int]:
        """The bytes of each parameter and auxiliary state, by name."""
        stored = self._artifact.plans[0]
        return {name: math.prod(shape) * numpy_dtype(stored.dtypes[name]).itemsize
                for name, shape in stored.shapes.items() if name not in (*self.input_names, *self.further_inputs)}

    def _plans(self, mode: str) -> list[StoredPlan]:
        return [stored for stored in self._artifact.plans if stored.mode == mode]

    def _check_names(self, given: Iterable[str]) -> None:
        known = (*self.input_names, *self.further_inputs)
        for name in given:
            if name not in known:
                raise ArgumentTypeError(f"{self.path} has no input {name!r}{nearest(name, known)}; its inputs are "
                                        f"{', '.join(known)}")

    def _find(self, mode: str, shapes: Mapping[str, Shape]) -> StoredPlan:
        self._check_names(shapes)
        stored = self._artifact.find(mode, shapes)
        if stored is None:
            raise self._artifact.missing(mode, shapes)
        return stored

    def _numbers(self, name: str, value: Any) -> np.ndarray:
        try:
            array = np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
        except ValueError as error:  # lists of different lengths
            raise ArgumentTypeError(f"input {name!r} is no array: {error}") from None
        if not is_number(array.dtype):
            raise ArgumentTypeError(f"input {name!r} needs numbers, got an array of dtype {array.dtype}")
        return array

    def need_params(self) -> None:
        """Raises MXNetError if the file has only what its plans prepared of some parameters, and nobody gave them."""
        if self.prepared_params:
            raise MXNetError(f"{self.path} has {_listed(self.prepared_params)} only as its plans read them\n"
                             f"give all parameters: {GIVE}; or compile the model with --keep-params")

    def _need_values(self) -> None:
        if self.missing_params.keys() & {*self.prepared_params}:
            self.need_params()
        if self.missing_params:
            raise MXNetError(f"{self.path} was compiled without values of {_listed(tuple(self.missing_params))}\n"
                             f"compile it with --params FILE, or give them: {GIVE}")

    def _given(self, params: Mapping[str, Any]) -> dict[str, Array]:
        """Copies of a caller's parameters, of the model's dtypes and shapes."""
        stored, given = self._artifact.plans[0], {}
        for key, value in params.items():
            name = own_name(key)
            if name not in stored.shapes or name in self.input_names:
                if name in self.input_names:
                    raise ArgumentError(f"{name!r} is an input of {self.path}: give it to predict")
                raise ArgumentError(f"{self.path} has no parameter {name!r}{nearest(name, stored.shapes)}")
            array = self._numbers(name, value)
            if array.shape != stored.shapes[name]:
                raise ArgumentError(f"parameter {name!r} has the shape {array.shape}; {self.path} has it with "
                                    f"{stored.shapes[name]}")
            given[name] = Array.of(array, stored.dtypes[name])
        return given


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:6])}{f' and {len(names) - 6} more' if len(names) > 6 else ''}"


def save(path: str | os.PathLike[str], executors: Sequence[Any], inputs: Sequence[str], with_params: bool = True,
         train: bool = False, batch_axes: Mapping[str, int] | None = None, keep_params: bool = False,
         target: str | None = None) -> str:
    """Write an artifact of a symbol's executors, one for each set of input shapes. Gives why batches of other sizes
    cannot be cut and filled up; "" where they can.

    inputs: the arguments that a caller of the artifact gives; it may leave out those that inference does not read. All
    others are parameters, whose values the file gets from the first executor (with_params), but for those whose names
    end in `label`. train: also what a training step needs, with the gradients that the executors want. batch_axes:
    along which axis an input has the rows of a batch, by name; others have none. Left out: the only axis in which the
    sets of shapes differ, or the first one of all inputs that have as many rows as the first input. keep_params: the
    file also gets the parameters as they are where no plan reads them so; without them it has only what was prepared
    of them: then it is for this CPU and version alone, and gives neither executors nor other values of some parameters.
    target: a GPU's architecture, as "cuda:sm_90", which need not be there; such a file has all parameters. None: this
    CPU.
    Raises MXNetError when parameters of two executors differ in shape, ArgumentError when executors are of different
    symbols, differ in dtypes, have the same shapes, or are on GPUs, and for an axis that an input lacks, TargetError
    for what is no target, FileAccessError when the file cannot be written.
    """
    from mxc.compiler.targets import kernel_target
    from mxc.runtime.artifact_writer import Interface, made_for, write

    if not executors:
        raise ArgumentError("an artifact needs at least one executor")
    first = executors[0]
    _check_family(executors)
    names = [*first.arg_dict, *first.aux_dict]
    unknown = [name for name in (*inputs, *(batch_axes or ())) if name not in first.arg_dict]
    if unknown:
        raise ArgumentError(f"{unknown[0]!r} is not an argument of the model{nearest(unknown[0], names)}")
    if any(array.context.gpu_number >= 0 for executor in executors for array in executor.arg_dict.values()):
        raise ArgumentError("the executors are on a GPU: bind them on mx.cpu(), and say target=\"cuda:sm_90\", or of "
                            "which architecture the GPUs are that the artifact is for")
    device: Any = kernel_target(target) if target is not None else None
    read = {buffer.name for executor in executors for buffer in made_for(device, executor._core, False).plan.buffers
            if buffer.pool == "argument"}
    free = [name for name in first.arg_dict if name in inputs or name.endswith("label")]
    needed = [name for name in inputs if name in read]
    given = [name for name in names if name not in free] if with_params else []
    batches = found_batches(executors, [name for name in free if name in read], free, batch_axes)
    interface = Interface(needed, [name for name in free if name not in needed], distinct_outputs(first._symbol), given,
                          [name for name in free if name not in read], batches, keep_params)
    write(path, mxc.VERSION, first._symbol.tojson(), [executor._core for executor in executors], interface, train,
          device)
    return batches.mixed


def distinct_outputs(symbol: Any) -> list[str]:
    """The names of a Symbol's outputs; of those that are there several times, with their places."""
    listed = symbol.list_outputs()
    return [name if listed.count(name) == 1 else f"{name}[{i}]" for i, name in enumerate(listed)]


def _check_family(executors: Sequence[Any]) -> None:
    """Raise ArgumentError for executors that cannot be in one artifact."""
    seen: list[dict[str, Shape]] = []
    graph, dtypes = executors[0]._symbol.tojson(), None
    for executor in executors:
        arrays = executor.arg_dict | executor.aux_dict
        shapes, found = ({name: getattr(array, what) for name, array in arrays.items()} for what in ("shape", "dtype"))
        if executor._symbol is not executors[0]._symbol and executor._symbol.tojson() != graph:
            raise ArgumentError("the executors are of different symbols; an artifact holds one model")
        if found != (dtypes := dtypes or found):
            name = next(name for name in found if found[name] != dtypes[name])
            raise ArgumentError(f"{name!r} is {dtype_name(dtypes[name])} in the first executor and "
                                f"{dtype_name(found[name])} in another; an artifact has each input in one dtype")
        if shapes in seen:
            raise ArgumentError(f"two executors have the same shapes, {shapes}; give one for each set of input shapes")
        seen.append(shapes)
