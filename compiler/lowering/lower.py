"""Lowering: groups of nodes become launches of kernels over storages."""
from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from mxc.compiler.graph.graph import NOWHERE, Entry, Graph, Node
from mxc.compiler.graph.names import head_position
from mxc.compiler.graph.phases import BACKWARD, FORWARD, PREPARE
from mxc.compiler.kernel.ir import FunctionKernel, Kernel
from mxc.compiler.lowering.copy_kernels import copy_kernel, placing_kernel
from mxc.compiler.lowering.fuse import COPY, Group
from mxc.compiler.lowering.fuse_forms import is_view
from mxc.compiler.lowering.launches import Launch, Storage, by_phase
from mxc.compiler.lowering.lower_group import GroupLowering, routine_kernel
from mxc.compiler.lowering.stage import lowering_stage
from mxc.compiler.plan import Loop

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Preferences


class Lowering:
    """Lowers the groups of one graph; `launches` are what came out, `outputs` the storages of the graph's outputs."""

    def __init__(self, graph: Graph, groups: Sequence[Group], args: Set[str], aux: Set[str],
                 prefers: Preferences, loops: Mapping[Node, Loop]):
        self.graph, self.prefers, self.loops = graph, prefers, loops
        self.groups = groups
        self.storage_of: dict[Entry, Storage] = {}
        self.launches: list[Launch] = []
        self.outputs: list[Storage] = []
        self.copies: list[tuple[Entry, Storage, str]] = []
        self.copied: set[Entry] = set()  # the entries that `copies` copy
        self.targets: dict[Entry, list[tuple[Storage, str]]] = {}
        for node in graph.variables:
            entry = Entry(node)
            pool = "aux" if node.name in aux else "argument" if node.name in args else "head"
            name = str(head_position(node.name)) if pool == "head" else node.name
            self.storage_of[entry] = Storage(pool, graph.dtype(entry), graph.shape(entry), name)
        self.phase_of: dict[Node, str] = {n: g.phase for g in groups for n in g.nodes}
        self.alone = {n for g in groups if len(g.nodes) == 1 for n in g.nodes if is_view(n)}
        self.readers: dict[Entry, set[int]] = {}  # stored entry -> positions of the groups that load it
        self.group_at: dict[Node, int] = {}
        for position, group in enumerate(groups):
            self.group_at.update(dict.fromkeys(group.nodes, position))
            for entry in (e for n in group.nodes if n not in self.alone for e in n.inputs):
                self.readers.setdefault(self.root(entry), set()).add(position)

    def run(self) -> None:
        """Lower every group, then copy what an output shares with another output or with an argument."""
        self._place_outputs()
        for group in self.groups:
            if len(group.nodes) == 1 and is_view(group.nodes[0]):
                self._view(Entry(group.nodes[0]))
            else:
                self._lower(group)
        for entry, storage, mode in self.copies:
            self._copy(entry, storage, mode)
        kept = {s for launch in self.launches if launch.phase != PREPARE for s in launch.storages}
        for storage in {s for launch in self.launches for s in launch.storages if s.pool == "prepared"} - kept:
            storage.pool = "arena"  # only other prepare launches read it, so its memory can serve again

    def root(self, entry: Entry) -> Entry:
        """The entry in whose memory `entry` is: itself, or the one that it is a view of."""
        while entry.node in self.alone:
            entry = entry.node.inputs[0]
        return entry

    def _place_outputs(self) -> None:
        """Give each output its storage: the kernel that computes it writes there, else it is copied in the end."""
        states = {s.name: s for s in self.storage_of.values() if s.pool == "aux"}
        users: dict[str, list[Node]] = {}
        for node in (n for n in self.graph.nodes if states and n not in self.alone):
            for name in {source.node.name for source in map(self.root, node.inputs)} & states.keys():
                users.setdefault(name, []).append(node)
        for position, (entry, sink) in enumerate(zip(self.graph.outputs, self.graph.sinks, strict=True)):
            pool = {"output": "output", "grad": "gradient", "aux": "aux"}[sink.kind]
            name = str(position) if sink.kind == "output" else sink.name
            storage = Storage(pool, self.graph.dtype(entry), self.graph.shape(entry), name)
            if sink.kind == "aux":
                storage = states.get(name, storage)
            self.outputs.append(storage)
            root = self.root(entry)
            # `kept`: the kernel that computes it must not write it to its place. A forward run must change no gradient
            # and no state; and a state may have readers that run later and need the old value.
            kept = sink.kind != "output" and self.phase_of.get(root.node) != BACKWARD
            if sink.kind == "aux" and not root.node.is_variable:
                at = self.group_at[root.node]
                kept |= sum(self.group_at[n] >= at for n in users.get(name, ())) > 1
                # A kernel over more elements than the state has reads it once for each of them.
                kept |= any(self.group_at[n] == at for n in users.get(name, ())) and any(
                    self.graph.shape(e) != storage.shape for e in self.groups[at].stored)
            if root.node.is_variable or root in self.targets or kept:
                self._copy_in_the_end(entry, storage, sink.mode)
            else:
                self.targets[root] = [(storage, sink.mode)]
                if sink.mode == "write":
                    self.storage_of[root] = storage

    def _targets(self, group: Group) -> dict[Entry, list[tuple[Storage, str]]]:
        result = {}
        for entry in group.stored:
            places = self.targets.get(entry, [])
            if entry not in self.storage_of and (not places or self._read_again(entry)):
                pool = "prepared" if group.phase == PREPARE else "arena"
                self.storage_of[entry] = Storage(pool, self.graph.dtype(entry), self.graph.shape(entry),
                                                 node=self.graph.ids[entry.node])
                places = [(self.storage_of[entry], "write"), *places]
            result[entry] = places
        return result

    def _read_again(self, entry: Entry) -> bool:
        """True when another group loads `entry`, or it is copied in the end."""
        others = self.readers.get(entry, set()) - {self.group_at[entry.node]}
        return bool(others) or entry in self.copied

    def _view(self, entry: Entry) -> None:
        source = self.storage_of.get(entry.node.inputs[0])
        if source is not None:
            self.storage_of[entry] = source

    def _lower(self, group: Group) -> None:
        if group.form.kind in ("host", "routine"):
            self._alone(group)
            return
        targets = self._targets(group)
        if group.form.kind == "join":
            self._join(group, targets)
            return
        lowering = GroupLowering(self.graph, group, self.storage_of, self.prefers)
        kernel = lowering.kernel(targets)
        self._launch(group, kernel, lowering.storages)

    def _join(self, group: Group, targets: dict[Entry, list[tuple[Storage, str]]]) -> None:
        """For a join of many arrays, makes a launch for each input that copies it to its place."""
        node = group.nodes[0]
        whole = self.graph.shape(Entry(node))
        joined = int(node.params.dim) % len(whole)
        for storage, mode in targets.get(Entry(node), ()):
            start = 0
            for entry in node.inputs:
                shape = self.graph.shape(entry)
                kernel = placing_kernel(storage.dtype, shape, whole, joined, start, mode)
                self._launch(group, kernel, [self.storage_of[entry], storage])
                start += shape[joined]

    def _alone(self, group: Group) -> None:
        """Makes the launch of a routine, a loop or a host step: over its inputs' storages, then its outputs'."""
        node = group.nodes[0]
        inputs = [self.storage_of[e] for e in node.inputs]
        outputs = []
        for i in range(node.num_outputs):
            entry = Entry(node, i)
            if entry not in self.storage_of:
                pool = "prepared" if group.phase == PREPARE else "arena"
                self.storage_of[entry] = Storage(pool, self.graph.dtype(entry), self.graph.shape(entry),
                                                 node=self.graph.ids[node])
                for storage, mode in self.targets.get(entry, []):
                    self._copy_in_the_end(entry, storage, mode)
            outputs.append(self.storage_of[entry])
        storages = [*inputs, *outputs]
        loop = self.loops.get(node)
        if loop is not None:
            storages += [Storage("status", "int64", (1,)) for _ in range(loop.statuses)]
            storages.append(Storage("arena", "uint8", (max(loop.plan.arena_bytes, 1),)))
            self._launch(group, None, storages, inputs=len(inputs), loop=loop)
        elif group.form.kind == "host":
            self._launch(group, None, storages, self.graph.ids[node], len(inputs))
        else:
            kernel = routine_kernel(self.graph, node)
            if isinstance(kernel, FunctionKernel) or kernel.refusals:
                storages.append(Storage("status", "int64", (1,)))
            self._launch(group, kernel, storages)

    def _launch(self, group: Group, kernel: Kernel | None, storages: list[Storage], host: int | None = None,
                inputs: int = 0, loop: Loop | None = None) -> None:
        origin = NOWHERE.union(*map(self.graph.origin, group.nodes))
        self.launches.append(Launch(group.phase, group.label, kernel, storages, host, inputs, loop, origin=origin))

    def _copy_in_the_end(self, entry: Entry, storage: Storage, mode: str) -> None:
        self.copies.append((entry, storage, mode))
        self.copied.add(self.root(entry))

    def _copy(self, entry: Entry, storage: Storage, mode: str) -> None:
        source = self.storage_of[self.root(entry)]
        phase = FORWARD if storage.pool == "output" else BACKWARD
        self.launches.append(Launch(phase, COPY, copy_kernel(storage.dtype, storage.shape, mode), [source, storage],
                                    origin=self.graph.origin(entry.node)))


@lowering_stage(needs=("graph", "groups", "args", "aux", "prefers", "loops"), gives=("launches", "outputs"))
def lower(graph: Graph, groups: Sequence[Group], args: Set[str], aux: Set[str],
          prefers: Preferences, loops: Mapping[Node, Loop]) -> tuple[list[Launch], list[Storage]]:
    """Makes groups launches of kernels over storages, in the order of the phases.

    Inside a phase they have the order of the groups. args, aux: names of the arguments and auxiliary states among the
    graph's variables; the others are head gradients. loops: what those of the graph's nodes do that are loops. Returns
    the storages of the graph's outputs too.
    """
    lowering = Lowering(graph, groups, args, aux, prefers, loops)
    lowering.run()
    return by_phase(lowering.launches), lowering.outputs
