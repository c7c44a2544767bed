"""The passes inside of loops: bodies and tests become what the passes make of graphs of their own."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Sink, rewrite, variable
from mxc.compiler.graph.loop import LoopForm, LoopOperator, add_loop
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.purity import RANDOM
from mxc.compiler.plan import OFFSETS_PER_RUN

Transform = Callable[[Graph, Options], Graph]


def options_inside(form: LoopForm, options: Options) -> Options:
    """The options for a loop's body and test: what the loop reads whole does not change from step to step, so there it
    is static."""
    whole = frozenset(each.name for each in form.variables[form.data + form.states:])
    return Options(options.target, options.is_train, {}, whole, options.strict)


def with_transformed_bodies(graph: Graph, options: Options, transform: Transform) -> Graph:
    """The graph, which has passed the passes, whose loops' bodies and tests have passed them too.

    What depends on a body's static inputs alone is prepared before the loop. A body that draws random numbers draws
    other ones in each step: the loop gets seed and offset as one more input. Raises MXNetError when a run's offsets are
    used up.
    """
    if not any(isinstance(node.op, LoopOperator) for node in graph.nodes):
        return graph
    used = _streams(graph)

    def rule(builder: GraphBuilder, node: Node) -> Sequence[Entry] | None:
        nonlocal used
        if not isinstance(node.op, LoopOperator):
            return None
        form = node.op.form
        inner = options_inside(form, options)
        made = replace(form, body=transform(form.body, inner),
                       test=None if form.test is None else transform(_flag(form.test), inner))
        inputs = [builder.map[e] for e in node.inputs]
        streams = _streams(made.body)
        if streams:
            made = replace(made, variables=[*made.variables, variable("key")], streams=streams)
            inputs.append(builder.make("_mxc_key", offset=used))
            used += streams * made.length
            if used > OFFSETS_PER_RUN:
                raise MXNetError(f"{node!r} draws random numbers {streams} times in each of {made.length} steps, more "
                                 f"than the {OFFSETS_PER_RUN} times of a run; make the loop shorter")
        return add_loop(builder, made, inputs, node.name)

    return rewrite(graph, rule)


def _flag(test: Graph) -> Graph:
    """A test as an int32, 0 or 1."""
    builder = GraphBuilder(test)
    for node in test.nodes:
        builder.copy(node)
    flag = builder.make("Cast", builder.make("_not_equal_scalar", test.outputs[0], scalar=0.0), dtype="int32")
    return builder.finish([flag], [Sink("output", "")])


def _streams(graph: Graph) -> int:
    """How many streams of random numbers a graph draws from, those of the loops in it included."""
    count, reserved = 0, 0
    for node in graph.nodes:
        if node.op is not None and node.op.name in RANDOM:
            count = max(count, int(node.params.offset) + 1)
        if isinstance(node.op, LoopOperator) and node.op.form.streams:
            form: LoopForm = node.op.form
            first = int(node.inputs[-1].node.params.offset)
            reserved = max(reserved, first + form.streams * form.length)
    return max(count, reserved)
