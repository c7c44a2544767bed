"""`compile_reference` stands in for compiler.api.compile_graph: each node is one "kernel" that calls back to Python.

So the executor, its tables and the runner are tested on any graph without generating code.
"""
from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np

from mxc.compiler.graph.graph import Entry
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.phases import BACKWARD, FORWARD, phases
from mxc.compiler.ops.philox import Draws
from mxc.compiler.passes.gradient import gradient
from mxc.compiler.passes.infer import infer
from mxc.compiler.plan import Buffer, Plan, Step
from mxc.compiler.targets.reference.interpreter import evaluate

KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


class Library:
    """Callbacks by key; `calls` counts them. They have the ABI of kernels, so the runtime's own threads launch them."""

    launcher = None

    def __init__(self):
        self.functions, self.calls, self.errors = {}, {}, []

    def add(self, key, views, work):
        """A kernel on buffers of these (shape, dtype)."""

        def kernel(args, first, last, scratch):
            self.calls[key] = self.calls.get(key, 0) + 1
            try:
                work([view(args[i], shape, dtype) for i, (shape, dtype) in enumerate(views)])
            except Exception as error:  # nothing may pass through native code
                self.errors.append(error)

        self.functions[key] = KERNEL(kernel)

    def address(self, key):
        return ctypes.cast(self.functions[key], ctypes.c_void_p).value


def view(address, shape, dtype):
    count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * count).from_address(address), dtype).reshape(shape)


def compile_reference(graph, shapes, dtypes, grad_req, is_train, prepare=(), host=()):
    """As compile_graph. prepare: names of nodes that go into the prepare part. host: of those that Python runs."""
    joint = infer(graph, shapes, dtypes)
    options = Options(target=None, is_train=is_train, grad_req=grad_req)
    if is_train or options.wants_gradients:
        joint = gradient(joint, options)
    phase = phases(joint, frozenset())
    plan, library = Plan(), Library()
    aux = {e.node.name for n in graph.nodes if n.op for e in n.inputs[len(n.op.input_names(n.params)):]}
    place = {}

    def buffer(pool, entry, name=""):
        nbytes = int(np.prod(joint.shape(entry))) * np.dtype(joint.dtype(entry)).itemsize
        offset = 0
        if pool in ("arena", "prepared"):
            offset = getattr(plan, f"{pool}_bytes")
            setattr(plan, f"{pool}_bytes", offset + -(-nbytes // 64) * 64)
        plan.buffers.append(Buffer(pool, joint.dtype(entry), joint.shape(entry), nbytes, name, offset))
        return len(plan.buffers) - 1

    plan.buffers.append(Buffer("seed", "int64", (2,), 16))
    for position, node in enumerate(joint.nodes):
        entries = [Entry(node, i) for i in range(node.num_outputs)]
        if node.is_variable:
            pool = "head" if node.name.startswith("_head_grad_") else "aux" if node.name in aux else "argument"
            name = node.name.removeprefix("_head_grad_") if pool == "head" else node.name
            place[entries[0]] = buffer(pool, entries[0], name)
            continue
        kind = "prepare" if node.name in prepare else phase[node]
        for entry in entries:
            place[entry] = buffer("prepared" if kind == "prepare" else "arena", entry)
        operands = [*node.inputs, *entries]
        if node.name in host:
            buffers = tuple(place[e] for e in operands)
            count = len(node.inputs)
            plan.steps.append(Step(kind, "", buffers, (), 1, buffers[:count], buffers[count:],
                                   node.op.name, position))
            continue
        first = 0 if kind == "prepare" else 1  # the seed comes first where numbers may be drawn

        def work(arrays, node=node, position=position, first=first):
            inputs, outputs = arrays[first:first + len(node.inputs)], arrays[first + len(node.inputs):]
            rng = Draws(arrays[0][0], arrays[0][1] + 16 * position) if first else None
            for target, value in zip(outputs, evaluate(node, inputs, is_train, rng), strict=True):
                target[...] = value

        add_step(plan, library, kind, f"{position} {node.name}", [*[0] * first, *(place[e] for e in operands)],
                 [*[0] * first, *(place[e] for e in node.inputs)], [place[e] for e in entries], work)
    for i, (entry, sink) in enumerate(zip(joint.outputs, joint.sinks, strict=True)):
        pool = {"output": "output", "grad": "gradient", "aux": "aux"}[sink.kind]
        target = buffer(pool, entry, str(i) if pool == "output" else sink.name)
        plan.outputs.append(target)

        def copy(arrays, add=sink.mode == "add"):
            arrays[1][...] = arrays[0] + arrays[1] if add else arrays[0]

        add_step(plan, library, FORWARD if sink.kind == "output" else BACKWARD, f"copy {i}", [place[entry], target],
                 [place[entry]], [target], copy)
    return SimpleNamespace(graph=joint, plan=plan, library=library)


def add_step(plan, library, phase, key, buffers, reads, writes, work):
    library.add(key, [(plan.buffers[i].shape, plan.buffers[i].dtype) for i in buffers], work)
    plan.steps.append(Step(phase, key, tuple(buffers), (), 1, tuple(reads), tuple(writes), key))
