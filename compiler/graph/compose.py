"""Making operator nodes: which inputs they take, the variables made for inputs that nobody gave, and their attributes.

Shared by the symbol frontend and by the upgrade of old files, which must name and mark such variables alike.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.ops.operator import Operator, Params

# User attributes that MXNet keeps under `__KEY__` although programs may write them plainly.
HIDDEN_KEYS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")


def hidden_key(key: str) -> str:
    """`__lr_mult__` for `lr_mult` and the other keys that MXNet hides; any other key as it is."""
    return f"__{key}__" if key in HIDDEN_KEYS else key


def is_user_key(key: str) -> bool:
    """True for `__x__`: attributes that operators do not read."""
    return key.startswith("__") and key.endswith("__")


def split_key(key: str) -> tuple[str, str] | None:
    """("weight", "lr_mult") for `weight_lr_mult`: an attribute of one input, written on the operator. Else None."""
    for hidden in HIDDEN_KEYS:
        if key.endswith(f"_{hidden}") and not key.startswith("__"):
            return key[:-len(hidden) - 1], hidden
    return None


def input_names(op: Operator, params: Params) -> tuple[str, ...]:
    """Names of everything a node of `op` takes, auxiliary states too."""
    return op.all_names(params)


def inner_params(op: Operator, params: Params, subgraphs: Sequence[Graph]) -> Params:
    """The parameters of a node with those that its subgraphs tell, of an operator that stands for several.

    Raises MXNetError where they are not what the operator stands for.
    """
    rule = op.rule("subgraph")
    return params if rule is None else op.make_params({**params, **rule(params, subgraphs)})


def output_name(entry: Entry) -> str:
    """What an output is called: NODE_OUTPUT, or the name of the variable that it is."""
    node = entry.node
    return node.name if node.op is None else f"{node.name}_{node.op.output_names(node.params)[entry.index]}"


def place_name(entry: Entry) -> str:
    """What MXNet names a node after that a pass puts behind an output: as `output_name`, but NODE_0 where MXNet's
    operator has no names of outputs."""
    op = entry.node.op
    return output_name(entry) if op is None or op.named_outputs else f"{entry.node.name}_{entry.index}"


def make_node(op: Operator, name: str, attrs: Mapping[str, str], params: Params,
              given: Mapping[str, Entry]) -> Node:
    """A node of `op`; for each input that is not in `given`, a new variable NAME_INPUT.

    A variable made here carries the operator's attributes too, as MXNet's do. Variables, given ones as well, that
    serve as an input the operator knows how to start get that `__init__` unless they have one.

    Raises MXNetError when `given` names something that is no input of the operator, or when an auxiliary state is
    not a variable.
    """
    names = input_names(op, params)
    for key in given:
        if key not in names:
            raise MXNetError(f"operator {op.name}, node {name!r}: it has no input {key!r}; its inputs: "
                             + (", ".join(names) or "none"))
    entries = [given[key] if key in given else Entry(variable(f"{name}_{key}", dict(attrs))) for key in names]
    for key, entry in zip(names, entries, strict=True):
        start = op.starts.get(key) if entry.node.is_variable else None
        if start is not None:
            entry.node.attrs.setdefault("__init__", start)
    node = Node(op, name, dict(attrs), params, entries)
    check_auxiliary(node)
    return node


def auxiliary_entries(node: Node) -> Sequence[Entry]:
    """The inputs of `node` that are auxiliary states: the operator changes them."""
    if node.op is None or not node.op.aux:
        return ()
    return node.inputs[node.op.states(node.params)]


def check_auxiliary(node: Node) -> None:
    """Raise MXNetError when an auxiliary state of `node` is computed: what is changed must be a variable."""
    for entry in auxiliary_entries(node):
        if not entry.node.is_variable:
            raise MXNetError(f"{node!r}: its auxiliary states must be variables, but one is made by {entry.node!r}")
