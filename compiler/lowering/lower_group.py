"""One fused group as a kernel: every stored value is followed back to what it is computed from.

The form of the group says at which index each entry is computed (fuse_forms.py). `value(entry, index)` is the scalar
computation of one element: a load for an entry that another group stored, else the operator's formula over the values
of its inputs at the indices that it reads. An index is one "index" Value for each axis of the entry.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mxc.compiler.graph.graph import Entry, Graph, Node, Shape
from mxc.compiler.kernel import calls
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.index_rule import flatten, unflatten
from mxc.compiler.kernel.ir import (
    INDEX,
    Accumulator,
    CallKernel,
    FunctionKernel,
    LoopKernel,
    RoutineKernel,
    Store,
    Value,
    acc,
    apply,
    axis,
    cast,
    computing_dtype,
    const,
    load,
)
from mxc.compiler.kernel.scalar import body_value, expression, reduction_final
from mxc.compiler.kernel.simplify_index import Simplifier
from mxc.compiler.lowering.fuse import Group
from mxc.compiler.lowering.fuse_forms import DOMAIN, is_view, is_window
from mxc.compiler.lowering.launches import Storage
from mxc.compiler.ops.operator import Kind

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Preferences

Index = tuple[Value, ...]
ZERO = const(0, INDEX)
SEED = Storage("seed", "int64", (2,), "seed")


class CallSite:
    """What a rule sees of its node: the shapes and dtypes of its inputs and of one output."""

    def __init__(self, graph: Graph, entry: Entry):
        self._graph, self._node = graph, entry.node
        self.output = entry.index
        self.out_shape = graph.shape(entry)
        self.out_dtype = graph.dtype(entry)

    def shape(self, k: int) -> Shape:
        return self._graph.shape(self._node.inputs[k])

    def dtype(self, k: int) -> str:
        return self._graph.dtype(self._node.inputs[k])


class Anchor(CallSite):
    """What a call rule sees of its node: the target's figures too."""

    def __init__(self, graph: Graph, entry: Entry, prefers: Preferences):
        super().__init__(graph, entry)
        self.prefers = prefers


class RoutineSite(CallSite):
    """What a routine rule sees of its node: all outputs besides."""

    def __init__(self, graph: Graph, node: Node):
        super().__init__(graph, Entry(node))
        entries = [Entry(node, i) for i in range(node.num_outputs)]
        self.out_shapes = [graph.shape(e) for e in entries]
        self.out_dtypes = [graph.dtype(e) for e in entries]


def routine_kernel(graph: Graph, node: Node) -> RoutineKernel | FunctionKernel:
    """The kernel of a node whose operator names a routine, or is a function of the program's own."""
    assert node.op is not None
    rule = node.op.rule("routine")
    assert rule is not None, node
    seen = RoutineSite(graph, node)
    made = rule(seen, node.params)
    if isinstance(made, FunctionKernel):
        return made
    inputs = [graph.dtype(e) for e in node.inputs]
    status = ("int64",) if made.refusals else ()
    return RoutineKernel(node.op.name, made.routine, made.constants, (*inputs, *seen.out_dtypes, *status),
                         made.integers, len(inputs), made.refusals)


class IndexSite(CallSite):
    """What an index rule sees of its node: its inputs' elements too."""

    def __init__(self, lowering: GroupLowering, entry: Entry):
        super().__init__(lowering.graph, entry)
        self._lowering = lowering

    @property
    def count(self) -> int:
        return len(self._node.inputs)

    def seed(self, position: int) -> Value:
        """The run's seed (position 0) or offset (1) for random numbers."""
        return load(self._lowering.slot(SEED), const(position, INDEX), "int64")

    def load(self, k: int, index: Sequence[Value], when: Value | None = None, fill: Value | None = None) -> Value:
        """The element of input `k` at `index`; where `when` does not hold, `fill` (default 0) and nothing is read."""
        entry = self._node.inputs[k]
        if when is None:
            return self._lowering.value(entry, tuple(index))
        fill = const(0, self.dtype(k)) if fill is None else fill
        return self._lowering.guarded(entry, tuple(index), when, fill)


class GroupLowering:
    """Turns one group into a kernel; `storages` are then the kernel's buffers. prefers: the target's figures."""

    def __init__(self, graph: Graph, group: Group, storage_of: dict[Entry, Storage], prefers: Preferences):
        self.graph, self.group, self.storage_of, self.prefers = graph, group, storage_of, prefers
        self.inside = set(group.nodes)
        self.storages: list[Storage] = []
        self.guard: Value | None = None
        self.memo: dict[tuple[Entry, Index, Value | None], Value] = {}
        self.accumulators: list[Accumulator] = []
        self.acc_of: dict[Node, Value] = {}
        self.domain: Shape = ()
        self.reduce: Shape = ()
        self.simplify = Simplifier(())
        # The shape of an anchor's output. Its axes of extent 1 (one image, say) are indexed like all other axes, so
        # that the same kernel serves every extent. Axes of extent 1 of other entries have the index 0.
        self.whole: Shape = ()

    # -- elements

    def slot(self, storage: Storage) -> int:
        for position, known in enumerate(self.storages):
            if known is storage:
                return position
        self.storages.append(storage)
        return len(self.storages) - 1

    def guarded(self, entry: Entry, index: Index, when: Value, fill: Value) -> Value:
        outer = self.guard
        if entry.node in self.inside:
            self.guard = when if outer is None else apply("and", outer, when)
            inner = self.value(entry, index)
            self.guard = outer
            return apply("where", when, inner, fill)
        both = when if outer is None else apply("and", outer, when)
        return self.external(entry, index, both, fill)

    def external(self, entry: Entry, index: Index, when: Value | None, fill: Value | None = None) -> Value:
        """A load of what another group stored, or of an argument."""
        dtype = self.graph.dtype(entry)
        position = self.simplify(flatten(index, self.graph.shape(entry)))
        if when is not None and fill is None:
            fill = const(0, dtype)
        return load(self.slot(self.storage_of[entry]), position, dtype, when, fill)

    def value(self, entry: Entry, index: Index) -> Value:
        """The element of `entry` at `index`."""
        shape = self.graph.shape(entry)
        index = tuple(ZERO if d == 1 and shape != self.whole else self.simplify(i)
                      for i, d in zip(index, shape, strict=True))
        if entry.node not in self.inside:
            return self.external(entry, index, self.guard)
        key = (entry, index, self.guard)
        if key not in self.memo:
            self.memo[key] = self.compute(entry, index)
        return self.memo[key]

    def compute(self, entry: Entry, index: Index) -> Value:
        node = entry.node
        assert node.op is not None
        if node in self.acc_of:
            return self.acc_of[node]
        if node.op.kind == Kind.REDUCTION:
            return self.reduced(entry)
        if is_view(node):
            source = node.inputs[0]
            flat = self.simplify(flatten(index, self.graph.shape(entry)))
            return self.value(source, unflatten(flat, self.graph.shape(source)))
        rule = node.op.rule("index")
        if rule is not None:
            return rule(IndexSite(self, entry), node.params, index)
        return self.formula(entry, index)

    def formula(self, entry: Entry, index: Index) -> Value:
        """An elementwise or broadcast operator: its expression over its inputs, aligned at the last axis."""
        node = entry.node
        assert node.op is not None
        values = []
        for source in node.inputs:
            rank = len(self.graph.shape(source))
            values.append(self.value(source, index[len(index) - rank:]))
        return expression(node.op, node.params, values, self.graph.dtype(entry))

    # -- reductions

    def space_axes(self) -> Index:
        """The axes of the space in the kernel's numbering: domain axes first, then the reduced ones."""
        form = self.group.form
        kept = [i for i in range(len(form.space)) if i not in form.reduced]
        number = {i: n for n, i in enumerate([*kept, *sorted(form.reduced)])}
        return tuple(ZERO if form.space[i] == 1 else axis(number[i]) for i in range(len(form.space)))

    def domain_index(self, shape: Shape) -> Index:
        """The index of a domain-level entry of `shape` (the domain's, with or without axes of extent 1)."""
        form = self.group.form
        kept = [d for i, d in enumerate(form.space) if i not in form.reduced]
        axes = iter([axis(n) for n, d in enumerate(kept) if d != 1])
        return tuple(ZERO if d == 1 else next(axes) for d in shape)

    def reduced(self, entry: Entry) -> Value:
        """A reduction's result: the accumulator, made at the first use, and the operator's final formula."""
        node = entry.node
        assert node.op is not None
        if is_window(node):
            rule = node.op.rule("window")
            assert rule is not None, node
            result = rule(WindowSite(self, entry), node.params)
        else:
            source = node.inputs[0]
            element = self.value(source, self.space_axes())
            dtype = self.graph.dtype(entry)
            reduce = node.op.reduce
            assert reduce is not None
            body, wide = reduction_body(node, element, dtype)
            total = self.accumulate(reduce.combine, body)
            count = 1
            for extent in self.reduce:
                count *= extent
            result = reduction_final(node.op, node.params, total, cast(const(count, INDEX), wide), dtype)
        self.acc_of[node] = result
        return result

    def accumulate(self, combine: str, body: Value) -> Value:
        """The finished accumulator that combines `body` over the reduce axes."""
        if body.dtype == "bool":  # max tells whether any is true, min whether all are
            combine = {"sum": "max", "prod": "min"}.get(combine, combine)
        wanted = Accumulator(combine, body)
        if wanted not in self.accumulators:
            self.accumulators.append(wanted)
        return acc(self.accumulators.index(wanted), "int64" if combine in ("argmax", "argmin") else body.dtype)

    # -- kernels

    def kernel(self, targets: dict[Entry, list[tuple[Storage, str]]]) -> LoopKernel | CallKernel:
        """The group's kernel. targets: for each stored entry, where it goes and how ("write" or "add")."""
        form = self.group.form
        if form.kind == "anchor":
            return self.call_kernel(targets)
        self.domain = form.domain
        self.reduce = tuple(form.space[i] for i in sorted(form.reduced))
        if form.kind == "reduce":
            windows = [n for n in self.group.nodes if is_window(n)]
            if windows:
                params = windows[0].params
                self.reduce = tuple(params.reach if "reach" in params else params.kernel)
        self.simplify = Simplifier((*self.domain, *self.reduce))
        stores = self.stores(targets)
        return canonical(LoopKernel(self.group.label, tuple(s.dtype for s in self.storages), self.domain,
                                    self.reduce, tuple(self.accumulators), stores))

    def stores(self, targets: dict[Entry, list[tuple[Storage, str]]]) -> tuple[Store, ...]:
        form = self.group.form
        made: list[tuple[bool, Store]] = []
        for entry in self.group.stored:
            shape = self.graph.shape(entry)
            level = form.levels[entry]
            index = self.domain_index(shape) if level == DOMAIN else self.space_axes()
            element = self.value(entry, index)
            flat = flatten(tuple(ZERO if d == 1 else i for i, d in zip(index, shape, strict=True)), shape)
            position = self.simplify(flat)
            made += [(level != DOMAIN, Store(self.slot(storage), position, element, mode))
                     for storage, mode in targets[entry]]
        made.sort(key=lambda pair: pair[0])  # Stores that run once for each point of the domain come before the others.
        return tuple(store for _, store in made)

    def call_kernel(self, targets: dict[Entry, list[tuple[Storage, str]]]) -> CallKernel:
        form = self.group.form
        anchor = next(n for n in self.group.nodes if n.op is not None and n.op.kind == Kind.ANCHOR)
        assert anchor.op is not None
        rule = anchor.op.rule("call")
        assert rule is not None, anchor
        for source in anchor.inputs:
            self.storages.append(self.storage_of[source])  # operands come first, even when two are the same array
        geometry, axes = rule(Anchor(self.graph, Entry(anchor), self.prefers), anchor.params)
        self.acc_of[anchor] = acc(0, self.graph.dtype(Entry(anchor)))
        extents = [1] * (max(axes) + 1)
        for extent, position in zip(form.space, axes, strict=True):
            extents[position] = extent
        self.simplify = Simplifier([max(2, extent) for extent in extents])
        self.whole = form.space
        places = tuple(axis(i) for i in axes)
        stores = []
        for entry in self.group.stored:
            element = self.value(entry, places)
            position = self.simplify(flatten(places, form.space))
            stores += [Store(self.slot(s), position, element, mode) for s, mode in targets[entry]]
        return calls.call(self.group.label, geometry, [s.dtype for s in self.storages], stores)


class WindowSite(IndexSite):
    """What a window rule sees: its input's elements, the output's index and the window's axes."""

    def __init__(self, lowering: GroupLowering, entry: Entry):
        super().__init__(lowering, entry)
        self.index = lowering.domain_index(self.out_shape)
        self.window = tuple(ZERO if d == 1 else axis(len(lowering.domain) + i) for i, d in enumerate(lowering.reduce))
        self.accumulate = lowering.accumulate


def reduction_body(node: Node, element: Value, dtype: str) -> tuple[Value, str]:
    """The body of a reduction in the accumulator's dtype, and that dtype: float32 for float16, else the output's."""
    assert node.op is not None and node.op.reduce is not None
    wide = computing_dtype(dtype)
    return body_value(node.op, node.params, element, wide), wide
