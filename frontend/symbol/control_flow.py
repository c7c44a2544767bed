"""Loops and choices in graphs: a Python function makes the graph of a loop's body, or of a branch, once.

Names, attributes and the order of inputs are MXNet's, so that files are alike. What a function makes carries the
attribute `__subgraph_name__`; by it a graph is cut out of what the function was given or took from around it. For each
entry of another graph that it reads it has a variable of that entry's name.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mxc.attribute import AttrScope
from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.compiler.graph import control_flow
from mxc.compiler.graph.compose import output_name
from mxc.compiler.graph.graph import Entry, Graph, Node, topological, variable
from mxc.name import NameManager
from mxc.symbol import construct, functions
from mxc.symbol.symbol import Symbol

Nested = Any  # a symbol, or a list of Nested
_SCOPE = "__subgraph_name__"


def foreach(body: Callable[[Nested, Nested], tuple[Nested, Nested]], data: Nested, init_states: Nested,
            name: str = "foreach") -> tuple[Nested, Nested]:
    """A loop over the slices of the data along axis 0: `body(slice, states) -> (outputs, states)`, one after the other.

    data, init_states: a symbol, or (nested) lists of them; the body must use all of them. Slices of data with one axis
    have the shape (1,). Returns the outputs of all steps, stacked along a new axis 0, and the last states. name: stem
    of the name of the body's graph.

    Raises TypeError for anything but symbols, ValueError for a body that leaves out data or states, or returns other
    states than it gets.
    """
    arrays = list(_leaves(data, "foreach: data"))
    states = list(_leaves(init_states, "foreach: init_states"))
    scope = _new_name(name)
    with AttrScope(**{_SCOPE: scope}):
        fed = [_stand_in(symbol) for symbol in (*arrays, *states)]
        outputs, changed = _pair(body(_like(data, iter(fed)), _like(init_states, iter(fed[len(arrays):]))), "body")
        made, new = list(_leaves(outputs, "foreach: an output of body")), list(_leaves(changed, "foreach: a new state"))
        if _form(changed) != _form(init_states):
            raise ArgumentError(f"foreach: body must return as many states as it gets, in the same lists; it gets "
                                f"{_form(init_states)} and returns {_form(changed)} (* is a symbol)")
        part = _cut(made, new, scope)
    _check_different(part, "foreach: body")
    places = {node: i for i, node in enumerate(part.graph.variables)}
    for what, group in (("data", fed[:len(arrays)]), ("state", fed[len(arrays):])):
        missing = [s.name for s in group if s.entries[0].node not in places]
        if missing:
            raise ArgumentError(f"foreach: body must use all data and states; it does not use the {what} "
                                f"{', '.join(str(each).rpartition('-')[0] for each in missing)}")
    own = [places.pop(s.entries[0].node) for s in fed]
    node = _node("_foreach", [*(s.entries[0] for s in (*arrays, *states)), *map(part.source, places)], [part.graph], {
        "num_outputs": len(made) + len(new), "num_out_data": len(made), "in_data_locs": own[:len(arrays)],
        "in_state_locs": own[len(arrays):], "remain_locs": list(places.values())})
    results = iter([Symbol([Entry(node, i)]) for i in range(len(made) + len(new))])
    return _like(outputs, results), _like(changed, results)


def while_loop(cond: Callable[..., Symbol], func: Callable[..., tuple[Nested, Nested]], loop_vars: Nested,
               max_iterations: int | None = None, name: str = "while_loop") -> tuple[Nested, Nested]:
    """A loop: `func(*loop_vars) -> (outputs, loop_vars)` while `cond(*loop_vars)`, a symbol of one element, is not 0,
    at most `max_iterations` times. func must use all loop_vars.

    Returns the outputs, each stacked along a new axis 0 of length max_iterations (zeros for steps that are not taken),
    and the last loop_vars. name: stem of the names of the two graphs.

    Raises TypeError for anything but symbols; ValueError without loop_vars or max_iterations, and for functions that
    leave out loop_vars or return others than they get.
    """
    if max_iterations is None:
        raise ArgumentError("while_loop: max_iterations must be given")
    try:
        limit = int(max_iterations)
    except (TypeError, ValueError):
        raise ArgumentError(f"while_loop: max_iterations must be an integer, got {max_iterations!r}") from None
    given = list(_leaves(loop_vars, "while_loop: loop_vars"))
    if not given:
        raise ArgumentError("while_loop: loop_vars has no symbols")
    single = isinstance(loop_vars, Symbol)

    def call(function: Callable[..., Any]) -> tuple[list[Symbol], Any]:
        fed = [_stand_in(symbol) for symbol in given]
        arguments = _like(loop_vars, iter(fed))
        return fed, function(arguments) if single else function(*arguments)

    scope = _new_name(f"{name}_cond")
    with AttrScope(**{_SCOPE: scope}):
        fed_cond, holds = call(cond)
        if not isinstance(holds, Symbol):
            raise ArgumentError(f"while_loop: cond must return a symbol, got {type(holds)}")
        test = _cut([holds], [], scope)
    scope = _new_name(f"{name}_func")
    with AttrScope(**{_SCOPE: scope}):
        fed, returned = call(func)
        outputs, changed = _pair(returned, "func")
        outputs = [] if outputs is None else outputs
        made = list(_leaves(outputs, "while_loop: an output of func"))
        new = [] if changed is None else list(_leaves(changed, "while_loop: a new loop_var"))
        if len(new) != len(given):
            raise ArgumentError(f"while_loop: func must return as many loop_vars as it gets; it gets {len(given)} and "
                                f"returns {len(new)}")
        part = _cut(made, new, scope)
    for each, what in ((test, "cond"), (part, "func")):
        _check_different(each, f"while_loop: {what}")
    inputs: list[Entry] = []
    positions: dict[int, int] = {}  # number of a loop_var -> its position among the inputs
    places = [_feed(each, stand_ins, given, inputs, positions) for each, stand_ins in ((test, fed_cond), (part, fed))]
    func_variables = part.graph.variables
    for number, symbol in enumerate(fed, 1):
        if symbol.entries[0].node not in func_variables:
            raise ArgumentError(f"while_loop: func must use all loop_vars; it does not use number {number}, "
                                f"{str(symbol.name).rpartition('-')[0]}")
    node = _node("_while_loop", inputs, [test.graph, part.graph], {
        "max_iterations": limit, "num_outputs": len(made) + len(new), "num_out_data": len(made),
        "cond_input_locs": places[0], "func_input_locs": places[1],
        "func_var_locs": [func_variables.index(s.entries[0].node) for s in fed]})
    results = iter([Symbol([Entry(node, i)]) for i in range(len(made) + len(new))])
    return _like(outputs, results), _like(loop_vars, results)


def cond(pred: Symbol, then_func: Callable[[], Nested], else_func: Callable[[], Nested], name: str = "cond") -> Nested:
    """What `then_func()` gives where `pred`, a symbol of one element, is not 0, else what `else_func()` gives. Only
    that branch is computed. Both give as many symbols, of the same shapes. name: stem of the names of the three graphs.

    Raises TypeError for anything but symbols, ValueError where the branches give different numbers of them.
    """
    parts: list[_Part] = []
    inputs: list[Entry] = []
    locations: list[list[int]] = []
    known: dict[str, int] = {}  # name of an input's node -> its position
    forms: list[Nested] = []
    for what, function in (("pred", lambda: pred), ("then", then_func), ("else", else_func)):
        scope = _new_name(f"{name}_{what}")
        with AttrScope(**{_SCOPE: scope}):
            forms.append(function())
            part = _cut(list(_leaves(forms[-1], f"cond: {what}")), [], scope)
        parts.append(part)
        found: list[int] = []
        for node in part.graph.variables:
            if node.name not in known:
                inputs.append(part.source(node))
            found.append(known.get(node.name, len(inputs) - 1))
        known.update((inputs[place].node.name, place) for place in found)
        locations.append(found)
    counts = [len(part.graph.outputs) for part in parts]
    if counts[1] != counts[2]:
        raise ArgumentError(f"cond: then_func gives {counts[1]} outputs, else_func gives {counts[2]}; expected as many")
    node = _node("_cond", inputs, [part.graph for part in parts], {
        "num_outputs": counts[1], "cond_input_locs": locations[0], "then_input_locs": locations[1],
        "else_input_locs": locations[2]})
    return _like(forms[1], iter([Symbol([Entry(node, i)]) for i in range(counts[1])]))


# -- lists of symbols

def _leaves(value: Nested, what: str) -> Iterator[Symbol]:
    """The symbols of a nested list. Raises TypeError for anything else in it."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part, what)
    elif isinstance(value, Symbol):
        construct.single_entry(value, what)
        yield value
    else:
        raise ArgumentTypeError(f"{what} must be a Symbol or a nested list of them, got {value} of {type(value)}")


def _like(form: Nested, symbols: Iterator[Symbol]) -> Nested:
    """The symbols in lists as those of `form`."""
    return [_like(part, symbols) for part in form] if isinstance(form, (list, tuple)) else next(symbols)


def _form(value: Nested) -> str:
    """The lists of a value, with a star for each symbol."""
    return f"[{', '.join(map(_form, value))}]" if isinstance(value, (list, tuple)) else "*"


def _pair(returned: Any, what: str) -> tuple[Nested, Nested]:
    if not isinstance(returned, (list, tuple)) or len(returned) != 2:
        raise ArgumentError(f"{what} must return two things, its outputs and the new states; it returned {returned!r}")
    return returned[0], returned[1]


# -- cutting out a graph

class _Part(NamedTuple):
    """A graph that was cut out. sources: of its variables that stand for entries around it, these entries."""

    graph: Graph
    sources: Mapping[Node, Entry]

    def source(self, node: Node) -> Entry:
        """The entry that feeds a variable from outside; a variable that the function made is one of the outside too."""
        return self.sources.get(node, Entry(node))


def _new_name(stem: str) -> str:
    around = AttrScope._current.value._attr.get(_SCOPE, "")
    stem = f"{around}${stem}" if around else stem
    counts = AttrScope._subgraph_names
    counts[stem] += 1
    return f"{stem}{counts[stem] - 1}"


def _stand_in(symbol: Symbol) -> Symbol:
    """The variable that stands for a symbol in a graph."""
    (node, index), = symbol.entries
    return construct.Variable(f"{node.name}-{index}")


def _cut(outputs: Sequence[Symbol], states: Sequence[Symbol], scope: str) -> _Part:
    """The graph of what was made in the scope of that name. An output that is a variable, or was made elsewhere, is
    copied in it, and so is a state whose node has an output's name."""
    wanted, names = [], {s.name for s in outputs}
    inputs = set(Symbol([s.entries[0] for s in (*outputs, *states)]).list_inputs())
    for i, symbol in enumerate((*outputs, *states)):
        node = symbol.entries[0].node
        again = node.name in inputs or (i >= len(outputs) and node.name in names) or node.attrs.get(_SCOPE) != scope
        wanted.append((functions.find("identity")(symbol) if again else symbol).entries[0])
    new: dict[Node, Node] = {}
    stand_ins: dict[Entry, Node] = {}
    for node in topological(wanted):
        if node.attrs.get(_SCOPE) != scope:
            continue
        ends = []
        for entry in node.inputs:
            if entry.node in new:
                ends.append(Entry(new[entry.node], entry.index))
            else:
                ends.append(Entry(stand_ins.setdefault(entry, variable(output_name(entry)))))
        new[node] = node if ends == node.inputs else Node(node.op, node.name, node.attrs, node.params, ends,
                                                          node.subgraphs)
    graph = Graph([Entry(new[e.node], e.index) for e in wanted])
    return _Part(graph, {node: entry for entry, node in stand_ins.items()})


def _check_different(part: _Part, what: str) -> None:
    """Raise ValueError where two inputs of a graph have one name: it could not be told which is which in a file."""
    names = [node.name for node in part.graph.variables]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ArgumentError(f"{what} reads several inputs of one name ({', '.join(twice)}); expected different names")


def _feed(part: _Part, stand_ins: Sequence[Symbol], given: Sequence[Symbol], inputs: list[Entry],
          positions: dict[int, int]) -> list[int]:
    """The positions of what feeds a graph of while_loop, appended to `inputs` but for loop_vars that are there."""
    numbers = {symbol.entries[0].node: i for i, symbol in enumerate(stand_ins)}
    places = []
    for node in part.graph.variables:
        number = numbers.get(node)
        if number is None or number not in positions:
            inputs.append(part.source(node) if number is None else given[number].entries[0])
        places.append(len(inputs) - 1 if number is None else positions.setdefault(number, len(inputs) - 1))
    return places


def _node(op: str, inputs: Sequence[Entry], graphs: Sequence[Graph], params: Mapping[str, Any]) -> Node:
    texts = {key: construct.attribute_text(value) for key, value in params.items()}
    texts["num_args"] = str(len(inputs) + len(graphs))
    attrs = construct.stored_attributes({**AttrScope._current.value.get(None), **texts})
    return control_flow.make_node(control_flow.OPERATORS[op], NameManager._current.value.get(None, op), attrs, inputs,
                                  graphs)
