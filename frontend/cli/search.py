"""Where in a graph a compiled model goes wrong: the first operator, or the smallest part that shows the fault."""
from __future__ import annotations

from typing import Any, NamedTuple

from mxc.cli.differences import Difference, judged
from mxc.cli.reduction import WRONG_OUTPUTS, Part, first_wrong, operators_of, outcome, part_of
from mxc.cli.reference import Reference, draws_of
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.plan import layers_text
from mxc.compiler.targets.reference.interpreter import evaluate


class Found(NamedTuple):
    """The first output of an operator that is wrong when it is compiled with all that it reads. layers: those of the
    kernel that makes it."""

    name: str
    layers: str


class Search:
    """Compares parts of an executor's graph. reference: of its graph and arguments. allowed: the tolerance."""

    def __init__(self, executor: Any, symbol: Any, reference: Reference, allowed: float | None):
        self.executor, self.symbol, self.reference, self.allowed = executor, symbol, reference, allowed

    def nodes(self) -> list[Difference]:
        """The difference of each operator's outputs from the reference of the inputs that it had, in order."""
        executor = self._bound(self.symbol.get_internals())
        graph = executor._core.graph
        values = {entry: output.asnumpy() for entry, output in
                  zip(graph.outputs, executor.forward(is_train=False), strict=True)}
        found, rng = [], draws_of(executor)()
        for node in graph.nodes:
            if node.op is None:
                continue
            inputs = [values[e] for e in node.inputs]
            results = evaluate(node, inputs, False, rng)
            alone = of_node(node, inputs, results, self.reference)
            for index, (name, result) in enumerate(zip(node.op.output_names(node.params), results, strict=True)):
                entry = Entry(node, index)
                if entry in values:
                    found.append(judged(f"{node.name}_{name}", node.op.name, values[entry], alone,
                                        alone.graph.outputs[index], self.allowed))
                values.setdefault(entry, result)
        return found

    def smallest(self, last: Entry) -> Found:
        """The first output of an operator that is wrong when it is compiled alone with what it needs. last: an output
        of the reference's graph that is wrong."""
        kept = operators_of(self.reference.graph)

        def part(entry: Entry) -> Part:
            return part_of(self.reference, kept, [entry])

        entry = first_wrong(kept, last, lambda entry: outcome(part(entry), self.allowed) == WRONG_OUTPUTS)
        found = part(entry)
        compiled = found.executor().compiled()
        return Found(found.symbol.list_outputs()[0], layers_text(compiled.plan.steps[-1].layers(compiled.names)))

    def _bound(self, symbol: Any) -> Any:
        """An executor of a part of the graph on the same arguments."""
        args, states = symbol.list_arguments(), symbol.list_auxiliary_states()
        return symbol.bind(self.executor._ctx, {name: self.executor.arg_dict[name] for name in args}, grad_req="null",
                           aux_states={name: self.executor.aux_dict[name] for name in states})


def of_node(node: Node, inputs: list[Any], results: list[Any], whole: Reference) -> Reference:
    """The reference of one node alone, on these inputs. results: its values there. whole: of the node's graph."""
    variables = [variable(f"input{i}") for i in range(len(inputs))]
    copy = Node(node.op, node.name, node.attrs, node.params, [Entry(each) for each in variables], node.subgraphs)
    graph = Graph([Entry(copy, i) for i in range(node.num_outputs)])
    made = Reference(graph, {each.name: array for each, array in zip(variables, inputs, strict=True)}, whole.draws)
    made.values = {Entry(each): array for each, array in zip(variables, inputs, strict=True)} | dict(
        zip(graph.outputs, results, strict=True))
    return made
