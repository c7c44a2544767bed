"""An inference plan of an artifact, bound to the values of its parameters and to inputs and outputs of its own."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mxc.compiler.ops.dtypes import write
from mxc.compiler.plan import Buffer, Plan
from mxc.runtime import random
from mxc.runtime.array import Array
from mxc.runtime.artifact import Artifact, StoredCode, StoredPlan
from mxc.runtime.artifact_file import malformed
from mxc.runtime.executor_memory import Memory, PreparedStorage
from mxc.runtime.executor_plan import BoundPlan


class Prediction:
    """`stored` on the arrays `values` (parameters by name), which nobody changes.

    memory: shared by the predictions of an artifact, which its lock keeps apart. from_file: the values are the file's
    own, so what the prepare steps make of them may be there too.
    """

    def __init__(self, artifact: Artifact, stored: StoredPlan, values: Mapping[str, Array], memory: Memory,
                 from_file: bool):
        self._artifact, self._stored, self._memory = artifact, stored, memory
        self._arrays, self._own = dict(values), dict[str, Array]()
        self._seed, self._unused = Array.of(np.zeros(2, np.int64)), set[str]()
        compiled, prepared = artifact.compiled(stored), None
        if from_file and stored.prepared:
            section = artifact.contents.sections["prepared"]
            compiled = StoredCode(self._on_section(compiled.plan, len(section)), compiled.library, compiled.find_graph,
                                  compiled.text)
            prepared = PreparedStorage(np.frombuffer(section, np.uint8).ctypes.data, section, [])
        self.plan = compiled.plan
        self._bound = BoundPlan(compiled, self._find, memory, prepared=prepared)
        self._outputs = [self._bound.arrays[i] for i in compiled.plan.outputs]

    def _on_section(self, plan: Plan, size: int) -> Plan:
        """The plan without prepare steps, their results where the file has them."""
        places = self._stored.prepared
        for i, place in places.items():
            if not 0 <= i < len(plan.buffers) or not 0 <= place <= size - plan.buffers[i].nbytes:
                raise malformed(self._artifact.path, ValueError(f"prepared buffer {i} is at {place}"))
        buffers = [b._replace(offset=places.get(i, 0)) if b.pool == "prepared" else b
                   for i, b in enumerate(plan.buffers)]
        steps = [step for step in plan.steps if step.phase != "prepare"]
        used = plan.read_in_runs  # what only the prepare steps read has no array, and may have no value
        self._unused = {b.name for i, b in enumerate(buffers) if b.pool in ("argument", "aux") and i not in used}
        return Plan(**{**vars(plan), "buffers": buffers, "steps": steps})

    def _find(self, buffer: Buffer) -> Array | None:
        if buffer.pool == "seed":
            return self._seed
        given = buffer.pool in ("argument", "aux")
        if given and buffer.name in self._unused:
            return None
        arrays, key = (self._arrays, buffer.name) if given else (self._own, f"{buffer.pool} {buffer.name}")
        if key not in arrays:
            arrays[key] = Array.empty(buffer.shape, buffer.dtype)
        array = arrays[key]
        if (array.nbytes, array.dtype) != (buffer.nbytes, buffer.dtype):
            raise malformed(self._artifact.path, ValueError(f"{key} is {array!r}, its plan has {buffer}"))
        return array

    def run(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs for inputs of the plan's shapes; those that are not given (labels) are zero."""
        with self._memory.lock:
            for name in (*self._artifact.inputs, *self._artifact.optional):
                array = self._arrays.get(name)
                if array is not None:  # else no kernel reads it
                    write(array.memory, np.asarray(inputs.get(name, 0)))
            draw = random.take(self._artifact.context) if self._bound.draws or self._bound.has_hosts else (0, 0)
            self._seed.memory[:] = draw
            self._bound.run("forward", draw)
            outputs = []
            for array in self._outputs:
                assert array is not None  # outputs have arrays of their own
                outputs.append(array.memory.copy())
            return outputs
