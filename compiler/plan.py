"""The plan: buffers and steps as pure data, the same for every target. Written as JSON, run by the runtime."""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mxc.compiler.error import ArgumentIndexError, MXNetError
from mxc.compiler.functions.faults import Faults, Line

# How many offsets of the random generator each run has for itself: a random node adds its own number, which is below
# this, to the offset of the run.
OFFSETS_PER_RUN = 1 << 16
# A status of a routine is the number of its text plus NUMBERS times a number that this tells; NO_NUMBER stands for NaN.
NUMBERS = 256
NO_NUMBER = -(1 << 54)


class Buffer(NamedTuple):
    """A place for one array.

    pool: "argument", "aux", "output", "gradient", "head" (head gradient), "seed" (the random generator's two int64:
    seed and offset): bound by name; "arena": at byte `offset` of the executor's arena; "prepared": at byte `offset` of
    the storage that the prepare steps fill; "status": at byte `offset` of what tells where kernels raised. name: the
    name of an argument (also for its gradient) or of an auxiliary state; the position of an output (also for its head
    gradient). node: the node that makes it, as an id in the graph that the passes made; None where no node of it does.
    """

    pool: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    name: str = ""
    offset: int = 0
    node: int | None = None


class Refusals(NamedTuple):
    """What a routine's errors are told with: texts with `{}` for a number, and whether they are of an
    ArgumentIndexError (kernel/routines/rule.py)."""

    texts: tuple[tuple[str, bool], ...]

    def error(self, status: int, shapes: Sequence[tuple[int, ...]]) -> MXNetError:
        """The error of a status that is not 0."""
        value, number = divmod(status, NUMBERS)
        text, is_index = self.texts[number - 1]
        kind = ArgumentIndexError if is_index else MXNetError
        return kind(text.format("NaN" if value == NO_NUMBER else value))


class Step(NamedTuple):
    """One launch of a kernel, a loop, or a host step.

    phase: "prepare", "forward" or "backward". kernel: key of the kernel's code ("" for a host step). buffers: positions
    in Plan.buffers, in the kernel's order. values: run-time integers after the buffers. units: independent pieces of
    work. reads, writes: positions in Plan.buffers. label: the operators in it, for people. host: the node that Python
    runs, as its id in the graph that the passes made; None for kernels. flops: multiplications and additions of a
    library kernel's product, for people. calls: which of `values` (by position) are addresses of the code of other
    kernels (by key). faults: what errors are told with, for a kernel that may raise: it writes a status to its last
    buffer. loop: the steps of a loop, which has no kernel of its own; its last buffer is the loop's memory.
    origins: the nodes of the model's graph that it came from, as ids in that graph, in order.
    """

    phase: str
    kernel: str
    buffers: tuple[int, ...]
    values: tuple[int, ...]
    units: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    label: str = ""
    host: int | None = None
    flops: int = 0
    calls: tuple[tuple[int, str], ...] = ()
    faults: Faults | Refusals | None = None
    loop: Loop | None = None
    origins: tuple[int, ...] = ()

    def layers(self, names: Sequence[str]) -> list[str]:
        """The names of the nodes that it came from. names: of the nodes of the model's graph, by id."""
        return [names[i] for i in self.origins]

    def numbers(self, address: Callable[[str], int]) -> list[int]:
        """`values`, with the addresses that `address` gives for the keys of kernels."""
        numbers = list(self.values)
        for position, key in self.calls:
            numbers[position] = address(key)
        return numbers


@dataclass
class Loop:
    """What a loop's step does: the first steps of `plan` once, the others `length` times.

    plan: its buffers of the pool "outside" are parts of the step's buffers: `name` is a position in Step.buffers, and
    `offset` where the part begins in the first round, in bytes; those of the pool "arena" are in the last of the step's
    buffers. moves: by how many bytes each of its buffers moves on with every round. once: how many steps run once.
    tests: how many of the next steps, which begin a round, make the int32 in the buffer `flag` (-1: there is none). If
    that is 0, the loop ends where it `stops`; else the rest of the round is left out. counts: int64 numbers that grow
    with every round, as (buffer, byte in it, by how much). statuses: how many of the step's buffers, before its memory,
    tell where kernels raised.
    """

    plan: Plan
    moves: tuple[int, ...]
    length: int
    once: int
    tests: int = 0
    flag: int = -1
    stops: bool = True
    counts: tuple[tuple[int, int, int], ...] = ()
    statuses: int = 0


@dataclass
class Plan:
    """Everything that a run needs besides the kernels' code and the arrays.

    outputs: positions of the output buffers, in the graph's order. arena_bytes: bytes of the arena; scratch_bytes:
    bytes of scratch that each thread needs; live_bytes: the largest sum of arena buffers alive at one step (what a
    perfect planner would need); unplanned_bytes: what the arena buffers would take if they shared nothing. graph: the
    digest of the graph whose nodes the host steps run; "" where there are none.
    """

    buffers: list[Buffer] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    arena_bytes: int = 0
    scratch_bytes: int = 0
    prepared_bytes: int = 0
    live_bytes: int = 0
    unplanned_bytes: int = 0
    nodes: int = 0
    graph: str = ""

    def to_json(self) -> str:
        return json.dumps(self._values(), separators=(",", ":"))

    def _values(self) -> dict[str, Any]:
        """The plan as JSON values."""
        loops = [None if s.loop is None else {**vars(s.loop), "plan": s.loop.plan._values()} for s in self.steps]
        steps = [{**s._asdict(), "loop": loop} for s, loop in zip(self.steps, loops, strict=True)]
        return {**vars(self), "buffers": [b._asdict() for b in self.buffers], "steps": steps}

    @classmethod
    def from_json(cls, text: str) -> Plan:
        return cls._made(json.loads(text))

    @classmethod
    def _made(cls, raw: dict[str, Any]) -> Plan:
        raw["buffers"] = [Buffer(**{**b, "shape": tuple(b["shape"])}) for b in raw["buffers"]]
        tuples = ("buffers", "values", "reads", "writes", "origins")
        raw["steps"] = [Step(**s | {k: tuple(s[k]) for k in tuples} | {"calls": tuple(map(tuple, s["calls"]))}
                             | {"faults": _faults(s["faults"]), "loop": _loop(s["loop"])}) for s in raw["steps"]]
        return cls(**raw)

    @property
    def status_bytes(self) -> int:
        """The bytes that the buffers of the pool "status" take."""
        return sum(b.nbytes for b in self.buffers if b.pool == "status")

    @property
    def draws(self) -> bool:
        """Whether runs draw random numbers in kernels."""
        return any(buffer.pool == "seed" for buffer in self.buffers)

    @property
    def read_in_runs(self) -> set[int]:
        """The buffers that other steps than those of the prepare phase use, or that are outputs: by position."""
        return {*self.outputs, *(i for step in self.steps if step.phase != "prepare" for i in step.buffers)}

    def memory(self, parameters: Mapping[str, int], threads: int) -> dict[str, int]:
        """The bytes that a process holds for runs of the plan once it is prepared, besides code: of what `parameters`,
        arguments and states, are by themselves (`parameters_bytes`), of those that runs read as they were given
        (`kept_bytes`), of what was prepared (`prepared_bytes`), of the arena, of the scratch memory of so many threads,
        of all other arrays (inputs, outputs, gradients: `arrays_bytes`), and of these but the first together
        (`resident_bytes`). parameters: bytes by name."""
        arrays = [self.buffers[i] for i in self.read_in_runs]
        held = {(b.pool, b.name): b.nbytes for b in arrays if b.pool not in ("arena", "prepared", "status")}
        kept = sum(n for (pool, name), n in held.items() if pool in ("argument", "aux") and name in parameters)
        parts = {"kept_bytes": kept, "prepared_bytes": self.prepared_bytes, "arena_bytes": self.arena_bytes,
                 "scratch_bytes": self.scratch_bytes * threads, "arrays_bytes": sum(held.values()) - kept}
        return {"parameters_bytes": sum(parameters.values()), **parts, "resident_bytes": sum(parts.values())}

    def text(self, names: Sequence[str] = (), model: Sequence[str] = ()) -> str:
        """A line for each step: phase, operators, units, and where it reads and writes; host steps name their node.
        names: of the nodes of the graph that the passes made, by id; without them the id stands for the node. model: of
        the nodes of the model's graph, by id; with them each step says which of them it came from."""
        lines = []
        for step in self.steps:
            reads, writes = (", ".join(self._place(i) for i in group) for group in (step.reads, step.writes))
            if step.loop is not None:
                what = f"{step.label} (loop of {step.loop.length} rounds)"
            elif step.host is None:
                what = f"{step.label} x{step.units}"
            else:
                what = f"{step.label} (host step of {names[step.host] if names else f'node {step.host}'})"
            layers = f" of {layers_text(step.layers(model))}" if model else ""
            lines.append(f"{step.phase:8} {what}{layers}: {reads} -> {writes}")
            if step.loop is not None:
                lines += [f"  {line}" for line in step.loop.plan.text().splitlines()]
        lines.append(f"arena {self.arena_bytes} (live {self.live_bytes}, unplanned {self.unplanned_bytes}), "
                     f"prepared {self.prepared_bytes}, scratch {self.scratch_bytes} a thread")
        return "\n".join(lines) + "\n"

    def _place(self, position: int) -> str:
        buffer = self.buffers[position]
        at = f"@{buffer.offset}" if buffer.pool in ("arena", "prepared") else f"[{buffer.name}]"
        return f"{buffer.pool}{at} {buffer.dtype}{list(buffer.shape)}"

    @property
    def kernels(self) -> list[str]:
        """The keys of the kernels' code, each once."""
        inner = (s.loop.plan.kernels if s.loop is not None else () for s in self.steps)
        return list(dict.fromkeys(key for s, more in zip(self.steps, inner, strict=True)
                                  for key in (s.kernel, *(key for _, key in s.calls), *more) if key))

    def steps_of(self, phase: str) -> list[Step]:
        return [s for s in self.steps if s.phase == phase]


def _loop(raw: dict[str, Any] | None) -> Loop | None:
    if raw is None:
        return None
    return Loop(**{**raw, "plan": Plan._made(raw["plan"]), "moves": tuple(raw["moves"]),
                   "counts": tuple(map(tuple, raw["counts"]))})


def layers_text(layers: Sequence[str]) -> str:
    """The names of a step's layers for people: `stage3_conv2 + bn2 + relu2`. What a name has in common with the first
    one, up to an underscore, is left out."""
    first = layers[0] if layers else ""
    words = [first]
    for name in layers[1:]:
        common = next((i for i, (a, b) in enumerate(zip(first, name, strict=False)) if a != b),
                      min(len(first), len(name)))
        words.append(name[name.rfind("_", 0, common) + 1:] or name)
    return " + ".join(words)


def _faults(raw: list[Any] | None) -> Faults | Refusals | None:
    if raw is None:
        return None
    if len(raw) == len(Refusals._fields):
        return Refusals(tuple((str(text), bool(is_index)) for text, is_index in raw[0]))
    operator, role, arrays, lines = raw
    return Faults(operator, role, tuple(arrays), tuple(Line(*line) for line in lines))
