"""MXNet's operators of control flow, as symbols and files have them: `_foreach`, `_while_loop` and `_cond`.

Such a node carries graphs: foreach its body, while_loop its condition and its body, cond its condition and its two
branches. The inputs of these graphs are fed by the node's inputs, as its parameters tell by numbers: the parameters of
foreach say for each input of the node which input of the body it feeds, those of the others for each input of a graph
which input of the node feeds it. Inference makes loops of them (`passes/control_flow.py`), the only form that the
passes know.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import InputSpec, Kind, Operator, Params
from mxc.compiler.ops.params import parse_type

_COUNT, _PLACES = "int in 0..", "shape"
_GRAPHS = {  # what the graphs of a node are, in their order
    "_foreach": ("the body",), "_while_loop": ("the condition", "the body"),
    "_cond": ("the condition", "the branch of then", "the branch of else")}
_OWN_PARAMS = {  # besides num_args, of inputs and graphs together, and num_outputs
    "_foreach": {"num_out_data": _COUNT, "in_data_locs": _PLACES, "in_state_locs": _PLACES, "remain_locs": _PLACES},
    "_while_loop": {"num_out_data": _COUNT, "max_iterations": "int in 1..", "cond_input_locs": _PLACES,
                    "func_input_locs": _PLACES, "func_var_locs": _PLACES},
    "_cond": {"cond_input_locs": _PLACES, "then_input_locs": _PLACES, "else_input_locs": _PLACES}}


class ControlFlowOperator(Operator):
    """One of the three operators. Its nodes have the graphs in `Node.subgraphs`."""

    def __init__(self, name: str):
        params = {"num_args": _COUNT, "num_outputs": _COUNT, **_OWN_PARAMS[name]}
        super().__init__(name, Kind.OPAQUE, (InputSpec("data", variadic=True),),
                         {key: parse_type(text) for key, text in params.items()}, count="num_outputs", grad="refused")
        self.graphs = _GRAPHS[name]

    def _variable_inputs(self, params: Params) -> object:
        return max(int(params["num_args"]) - len(self.graphs), 0)  # type: ignore[call-overload]


OPERATORS = {name: ControlFlowOperator(name) for name in _GRAPHS}
FOREACH, WHILE_LOOP, COND = OPERATORS.values()
table.made.update({name: lambda attrs, op=op: op for name, op in OPERATORS.items()})  # type: ignore[misc]


class Feed(NamedTuple):
    """What feeds an input of a graph: an input of the node, by position, or a slice of it along axis 0."""

    position: int
    is_slice: bool = False


class Result(NamedTuple):
    """What an output of the node is: an output of a graph, or all of its values stacked along a new axis 0."""

    graph: int
    output: int
    is_stack: bool = False


def feeds(node: Node) -> list[list[Feed]]:
    """For each graph of a control-flow node, what feeds each of its variables, in their order."""
    params = node.params
    if node.op is FOREACH:
        places = [*params.in_data_locs, *params.in_state_locs, *params.remain_locs]
        found: list[Feed] = [Feed(-1)] * len(places)
        for position, place in enumerate(places):
            found[place] = Feed(position, position < len(params.in_data_locs))
        return [found]
    if node.op is WHILE_LOOP:
        return [list(map(Feed, params.cond_input_locs)), list(map(Feed, params.func_input_locs))]
    return [list(map(Feed, locs)) for locs in (params.cond_input_locs, params.then_input_locs, params.else_input_locs)]


def state_positions(node: Node) -> list[int]:
    """The inputs of a loop's node that are its states at first, in the order of the states."""
    params = node.params
    if node.op is FOREACH:
        first = len(params.in_data_locs)
        return list(range(first, first + len(params.in_state_locs)))
    return [params.func_input_locs[place] for place in params.func_var_locs] if node.op is WHILE_LOOP else []


def results(node: Node) -> list[list[Result]]:
    """For each output of a control-flow node what it is: of cond's outputs, what it is in either branch."""
    count = node.num_outputs
    if node.op is COND:
        return [[Result(1, i), Result(2, i)] for i in range(count)]
    body = len(node.subgraphs) - 1
    return [[Result(body, i, i < node.params.num_out_data)] for i in range(count)]


def check_control_flow(node: Node) -> None:
    """Raise MXNetError unless a node's graphs, parameters and inputs fit together."""
    op = node.op
    if not isinstance(op, ControlFlowOperator):
        return
    params = node.params
    if len(node.subgraphs) != len(op.graphs):
        raise MXNetError(f"{op.name} has {len(op.graphs)} graphs ({', '.join(op.graphs)}), "
                         f"but {len(node.subgraphs)} are there")
    if op is FOREACH:
        lists = {"in_data_locs, in_state_locs and remain_locs": (
            [*params.in_data_locs, *params.in_state_locs, *params.remain_locs], len(node.subgraphs[0].variables))}
        _check_places(op, lists, is_permutation=True)
        _check_length(op, "num_args - 1", int(params.num_args) - 1, len(node.subgraphs[0].variables))
    elif op is WHILE_LOOP:
        _check_places(op, {"cond_input_locs": (params.cond_input_locs, len(node.inputs)),
                           "func_input_locs": (params.func_input_locs, len(node.inputs)),
                           "func_var_locs": (params.func_var_locs, len(params.func_input_locs))})
    else:
        _check_places(op, {name: (getattr(params, name), len(node.inputs))
                           for name in ("cond_input_locs", "then_input_locs", "else_input_locs")})
    for what, graph, fed in zip(op.graphs, node.subgraphs, feeds(node), strict=True):
        _check_length(op, f"the inputs that feed {what}", len(fed), len(graph.variables))
    states = len(state_positions(node))
    own = {"_foreach": states, "_while_loop": states, "_cond": 0}[op.name]
    if op is not COND:
        _check_length(op, "num_outputs", node.num_outputs, int(params.num_out_data) + own)
    for per_output in results(node):
        for result in per_output:
            if result.output >= len(node.subgraphs[result.graph].outputs):
                raise MXNetError(f"{op.name}: output {result.output} of {op.graphs[result.graph]} is named, which has "
                                 f"{len(node.subgraphs[result.graph].outputs)}")
    if op is not FOREACH and len(node.subgraphs[0].outputs) != 1:
        raise MXNetError(f"{op.name}: the condition has {len(node.subgraphs[0].outputs)} outputs; expected one")


def _check_places(op: Operator, lists: Mapping[str, tuple[Sequence[int], int]], is_permutation: bool = False) -> None:
    for name, (places, count) in lists.items():
        wrong = [place for place in places if not 0 <= place < count]
        if wrong or (is_permutation and sorted(places) != list(range(count))):
            raise MXNetError(f"{op.name}: {name} is {list(places)}; expected "
                             f"{'each of' if is_permutation else 'numbers of'} 0 to {count - 1}"
                             f"{' once' if is_permutation else ''}")


def _check_length(op: Operator, what: str, came: int, expected: int) -> None:
    if came != expected:
        raise MXNetError(f"{op.name}: {what}: there are {came}; expected {expected}")


def make_node(op: ControlFlowOperator, name: str, attrs: dict[str, str], inputs: Sequence[Entry],
              graphs: Sequence) -> Node:
    """A node of control flow over its inputs. Raises MXNetError unless parameters, inputs and graphs fit together."""
    node = Node(op, name, attrs, op.parse_attrs(attrs, name), inputs, graphs)
    check_control_flow(node)
    return node
