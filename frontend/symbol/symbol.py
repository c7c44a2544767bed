"""Symbol: outputs of a graph under construction."""
from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, NoReturn

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError, nearest
from mxc.compiler.graph import json_ir
from mxc.compiler.graph.compose import HIDDEN_KEYS, auxiliary_entries, check_auxiliary, hidden_key, output_name
from mxc.compiler.graph.graph import Entry, Graph, Node, topological
from mxc.name import NameManager
from mxc.runtime import remote_files
from mxc.runtime.elsewhere import elsewhere
from mxc.runtime.whole_file import replacing
from mxc.symbol import construct
from mxc.symbol.arithmetic import Arithmetic
from mxc.symbol.methods import OperatorMethods

__getattr__, _names = elsewhere(__name__, {"mxc.symbol": """
    Group Variable arange eye full histogram hypot linspace maximum minimum ones pow power split_v2 var zeros"""}, {
    "": "_internal=mxc.symbol._internal _numpy=numpy ctypes op=mxc.symbol.op", "array": "array",
    "builtins": "py_slice=slice", "mxc.attribute": "AttrScope", "mxc.context": "Context current_context",
    "mxc.base": "ExecutorHandle NDArrayHandle NotImplementedForSymbol SymbolHandle _LIB c_array c_array_buf "
                "c_handle_array c_str c_str_array check_call integer_types mx_int mx_int64 mx_uint numeric_types "
                "py_str string_types",
    "mxc.codes": "_DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _GRAD_REQ_MAP _SIGNED_INT32_UPPER_LIMIT _STORAGE_TYPE_STR_TO_ID "
                 "_int64_enabled",
    "mxc.executor": "Executor", "mxc.ndarray": "NDArray", "mxc.symbol.symbol": "SymbolBase=Symbol",
    "mxc.util": "is_np_shape", "numbers": "Number"})
__all__ = ["Symbol", "load", "load_json", *_names]


class Symbol(Arithmetic, OperatorMethods):
    """Outputs of a graph: what a program builds by applying operators to `Variable`s, and then binds or saves.

    A symbol has no values and does not change (but for `_set_attr`); several symbols share the nodes below them.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: list[Entry] | None) -> None:
        """Make a symbol. entries: its outputs; None when MXNet's pickle is read, where a state with the graph follows.
        """
        self.entries = list(entries or ())

    # -- the graph

    @property
    def graph(self) -> Graph:
        """The graph of all nodes that this symbol's outputs need."""
        return Graph(self.entries)

    @property
    def name(self) -> str | None:
        """The node's name; None for a group of several nodes' outputs."""
        node = self._single_node()
        return None if node is None else node.name

    def _single_node(self) -> Node | None:
        node = self.entries[0].node
        return node if all(entry.node is node for entry in self.entries) else None

    def __repr__(self) -> str:
        if self.name is None:
            return f"<Symbol group [{', '.join(entry.node.name for entry in self.entries)}]>"
        return f"<Symbol {self.name}>"

    def _inputs(self) -> tuple[list[Node], set[Node]]:
        """Every variable in order, and those of them that are auxiliary states: some operator changes them."""
        nodes = topological(self.entries)
        aux = {entry.node for node in nodes for entry in auxiliary_entries(node)}
        return [node for node in nodes if node.is_variable], aux

    def list_inputs(self) -> list[str]:
        """Names of all variables, auxiliary states too, in the order of the graph's nodes."""
        return [node.name for node in self._inputs()[0]]

    def list_arguments(self) -> list[str]:
        """Names of the variables that are no auxiliary states, in the order of the graph's nodes."""
        variables, aux = self._inputs()
        return [node.name for node in variables if node not in aux]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states (BatchNorm's moving mean and variance, ...)."""
        variables, aux = self._inputs()
        return [node.name for node in variables if node in aux]

    def list_outputs(self) -> list[str]:
        """Names of the outputs: NODE_OUTPUT for an operator's, the variable's own name for a variable."""
        return [output_name(entry) for entry in self.entries]

    def get_internals(self) -> Symbol:
        """A group of every output in the graph, in the order of its nodes; hidden outputs are left out."""
        return Symbol([entry for node in topological(self.entries) for entry in construct.visible_entries(node)])

    def get_children(self) -> Symbol | None:
        """A group of the inputs of the symbol's nodes; None for variables."""
        nodes = dict.fromkeys(entry.node for entry in self.entries)
        below = [entry for node in nodes for entry in node.inputs]
        return Symbol(below) if below else None

    # -- outputs

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Symbol]:
        return (Symbol([entry]) for entry in self.entries)

    def __getitem__(self, index: int | str | slice) -> Symbol:
        """One output by number or by its name in `list_outputs`, or a group of several by a slice.

        Raises ValueError for a name that no output or more than one output has, IndexError for a number too large,
        TypeError for an empty slice.
        """
        if isinstance(index, slice):
            return construct.Group([Symbol([entry]) for entry in self.entries[index]])
        if isinstance(index, str):
            names = self.list_outputs()
            if names.count(index) > 1:
                raise ArgumentError(f'There are multiple outputs with name "{index}"')
            if index not in names:
                raise ArgumentError(f'Cannot find output that matches name "{index}"{nearest(index, names)}')
            return Symbol([self.entries[names.index(index)]])
        try:
            number = operator.index(index)
        except TypeError:
            raise ArgumentTypeError("Symbol only support integer index to fetch i-th output") from None
        if number < 0:
            raise MXNetError(f"Symbol only accept nonnegative index, got {number}")
        if number >= len(self.entries):
            raise IndexError(f"output {number} of a symbol that has {len(self.entries)}")
        return Symbol([self.entries[number]])

    # -- attributes

    def attr(self, key: str) -> str | None:
        """The attribute `key` of the node (`lr_mult` finds `__lr_mult__` too); None without one, or for a group."""
        node = self._single_node()
        if node is None:
            return None
        return node.attrs.get(key, node.attrs.get(hidden_key(key)))

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """All attributes of the node; for a group, those of its first node. Raises DeprecationWarning with `recursive`:
        use `attr_dict`."""
        if recursive:
            raise DeprecationWarning("Symbol.list_attr with recursive=True has been deprecated. Please use attr_dict "
                                     "instead.")
        return _shown_attributes(self.entries[0].node)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """The attributes of every node that has any, by the node's name; those of nodes of one name are merged."""
        found: dict[str, dict[str, str]] = {}
        for node in topological(self.entries):
            if node.attrs:
                found.setdefault(node.name, {}).update(_shown_attributes(node))
        return found

    def _set_attr(self, **attrs: str) -> None:
        """Set attributes of the node; this changes every symbol that shares the node.

        Raises ValueError for values that are no strings, MXNetError for a group and for unknown parameters.
        """
        if not all(isinstance(value, str) for value in attrs.values()):
            raise ArgumentError("Set Attr only accepts string values")
        node = self._single_node()
        if node is None:
            raise MXNetError("Symbol.SetAttrs only works for non-grouped symbol")
        merged = {**node.attrs, **construct.stored_attributes(attrs)}
        if node.op is not None:
            node.params = node.op.parse_attrs(merged, node.name)
        node.attrs = merged

    # -- composition and copies

    def __copy__(self) -> Symbol:
        """A symbol over copies of all its nodes."""
        return _rebuilt(self, {})

    def __deepcopy__(self, _: Any) -> Symbol:
        return _rebuilt(self, {})

    def __getstate__(self) -> dict[str, str]:
        """The state that pickle keeps: the JSON text, under the key `handle`."""
        return {"handle": self.tojson(remove_amp_cast=False)}

    def __setstate__(self, state: Mapping[str, str]) -> None:
        self.entries = load_json(state["handle"]).entries

    def __call__(self, *args: Symbol, **kwargs: Any) -> Symbol:
        """A copy of this graph in which other symbols take the place of arguments: `net(data=other, name="new")`.

        kwargs: a symbol for each argument or auxiliary state to replace; `name` renames the copy's node. Arguments
        that are not named stay. Raises MXNetError for names that are no inputs, symbols of several outputs, and
        symbols by position (only an operator's own function takes them so); TypeError for anything but symbols.
        """
        name = kwargs.pop("name", None)
        if args and kwargs:
            raise ArgumentTypeError("compose only accept input Symbols either as positional or keyword arguments, "
                                    "not both")
        if not all(isinstance(value, Symbol) for value in (*args, *kwargs.values())):
            raise ArgumentTypeError("Compose expect `Symbol` as arguments")
        if args:
            raise MXNetError("General composition only support kwargs for now: name the arguments to replace, one of "
                             + ", ".join(self.list_inputs()))
        inputs = self.list_inputs()
        for key in kwargs:
            if key not in inputs:
                raise MXNetError(f"Symbol.Compose: argument name {key} not found{nearest(key, inputs)}. Candidate "
                                 f"arguments: {', '.join(inputs)}")
        replaced = {key: construct.single_entry(value, f"argument {key}") for key, value in kwargs.items()}
        made = _rebuilt(self, replaced)
        if name:
            made.entries[0].node.name = NameManager._current.value.get(name, name)
        return made

    # -- inference and binding

    def infer_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes of all arguments, outputs and auxiliary states, from those of some arguments.

        Shapes are tuples, by position (order of `list_arguments`, None: not known) or by name; 0 is an unknown
        dimension. Returns three lists of tuples; (None, None, None) and a UserWarning when something stays unknown.

        Raises MXNetError when shapes contradict each other or a name is no argument; TypeError for what is no tuple.
        """
        from mxc.symbol.inference import shapes

        return shapes(self, args, kwargs, partial=False)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> Any:
        """Like `infer_shape`, but returns what could be found: () where nothing is known, 0 for unknown dimensions."""
        from mxc.symbol.inference import shapes

        return shapes(self, args, kwargs, partial=True)

    def infer_type(self, *args: Any, **kwargs: Any) -> Any:
        """Types of all arguments, outputs and auxiliary states, from those of some arguments.

        Types are anything that numpy.dtype takes, by position or by name. Returns three lists of NumPy types;
        (None, None, None) and a UserWarning when something stays unknown. Errors as in `infer_shape`.
        """
        from mxc.symbol.inference import types

        return types(self, args, kwargs, partial=False)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> Any:
        """Like `infer_type`, but returns what could be found, with None for types that are not known."""
        from mxc.symbol.inference import types

        return types(self, args, kwargs, partial=True)

    def bind(self, ctx: Any, args: Any, args_grad: Any = None, grad_req: Any = "write", aux_states: Any = None,
             group2ctx: Any = None, shared_exec: Any = None) -> Any:
        """An executor over the given arrays.

        args: NDArrays in the order of `list_arguments`, or by name (further names are ignored). args_grad: where
        gradients go, in the same forms, or some by name. grad_req: "write", "add" or "null", for all, as a list or by
        name (null for those not named). aux_states: as args. shared_exec: an executor whose memory may be shared.
        group2ctx: the context of each `ctx_group`. Without it all arrays but auxiliary states must be on `ctx`; with it
        they may be on any, and the outputs are where the nodes are that make them: in their group's context, or with
        the first of their inputs.

        Raises ValueError naming what is missing or superfluous, TypeError for what is no NDArray or Context,
        MXNetError when shapes do not fit, and for a group that group2ctx does not name.
        """
        from mxc.symbol.binding import bind

        return bind(self, ctx, args, args_grad, grad_req, aux_states, group2ctx, shared_exec)

    # MXNet's signature
    def simple_bind(self, ctx: Any, grad_req: Any = "write", type_dict: Mapping[str, Any] | None = None,
                    stype_dict: Mapping[str, str] | None = None, group2ctx: Any = None, shared_arg_names: Any = None,
                    shared_exec: Any = None, shared_buffer: Any = None, **kwargs: Any) -> Any:
        """An executor over new arrays, zero-filled, whose shapes follow from those given by name.

        type_dict: dtypes by argument; grad_req as in `bind`; kwargs: shapes by argument (other names are ignored).
        shared_exec: an executor whose arrays are used again: auxiliary states, and the arguments and gradients named
        in shared_arg_names. shared_buffer: arrays by name that are used again; new ones of arguments and gradients are
        added to it. An array is only used again when shape and dtype are the same. group2ctx: as in `bind`; an array is
        in the context of its variable's group, or in `ctx`.

        Raises MXNetError (a RuntimeError) when shapes or dtypes do not follow, contradict each other, or grad_req
        does not fit.
        """
        from mxc.symbol.binding import simple_bind

        return simple_bind(self, ctx, grad_req, type_dict, kwargs, stype_dict, group2ctx, shared_arg_names,
                           shared_exec, shared_buffer)

    def eval(self, ctx: Any = None, **kwargs: Any) -> Any:
        """The outputs for the given arrays (NDArrays by argument), computed once, on `ctx` (default: the current)."""
        from mxc.symbol.binding import evaluate

        return evaluate(self, ctx, kwargs)

    def gradient(self, wrt: Sequence[str]) -> NoReturn:
        """Raises MXNetError, as MXNet does: gradients come from an executor's `backward`."""
        raise MXNetError("Symbol.gradient is not implemented. Bind the symbol with args_grad and call backward of the "
                         f"executor: it computes the gradients of {', '.join(map(str, wrt))}")

    # MXNet's signature
    def optimize_for(self, backend: str, args: Any = None, aux: Any = None, ctx: Any = None,
                     shape_dict: Mapping[str, Any] | None = None, type_dict: Mapping[str, Any] | None = None,
                     stype_dict: Mapping[str, str] | None = None, skip_infer: bool = False, **kwargs: Any) -> Symbol:
        """The same graph as a new symbol, with a UserWarning: MXNet's backends are no part of mxc, which fuses and
        optimises each graph when it is bound. Nothing but `backend` is looked at. Raises TypeError unless it is a str.
        """
        return self._without_backend(backend)

    def get_backend_symbol(self, backend: str) -> Symbol:
        """The same graph as a new symbol; see `optimize_for`."""
        return self._without_backend(backend)

    def _without_backend(self, backend: str) -> Symbol:
        if not isinstance(backend, str):
            raise ArgumentTypeError(f"the backend must be a string, got {type(backend)}")
        warnings.warn(f"backend {backend!r} is not used: every graph is optimised when it is bound, so the symbol "
                      "stays as it is", stacklevel=3)
        return Symbol(self.entries)

    # -- text

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph as JSON that MXNet 1.9.1 reads. remove_amp_cast: without `amp_cast` nodes."""
        return json_ir.write(self.graph, remove_amp_cast)

    def save(self, fname: str | PathLike[str], remove_amp_cast: bool = True) -> None:
        """Write `tojson` to a file, whole or not at all, or to a URL as `mx.nd.save` does.

        Raises TypeError when `fname` is no path, FileAccessError (an MXNetError) when it cannot be written.
        """
        if not isinstance(fname, (str, PathLike)):
            raise ArgumentTypeError("fname need to be string")
        if remote_files.is_url(fname):
            remote_files.write(str(fname), self.tojson(remove_amp_cast).encode())
            return
        content = self.tojson(remove_amp_cast).encode()
        with replacing(fname) as file:
            file.write(content)

    def debug_str(self) -> str:
        """The graph as text, node by node: operator, name, inputs and attributes."""
        nodes = topological(self.entries)
        if len(self.entries) == 1 and self.entries[0].node.is_variable:
            return f"Variable:{self.name}\n"
        if len(self.entries) == 1 and nodes[-1].op is not None and not nodes[-1].inputs:
            return f"AtomicFunctor  Op:{nodes[-1].op.name}\n"
        lines = ["Symbol Outputs:"]
        lines += [f"\toutput[{i}]={e.node.name}({e.index})" for i, e in enumerate(self.entries)]
        versions: dict[Node, int] = {}
        for node in nodes:
            if node.op is None:
                lines.append(f"Variable:{node.name}")
                continue
            for entry in auxiliary_entries(node):
                versions[entry.node] = versions.get(entry.node, 0) + 1
            lines += ["-" * 20, f"Op:{node.op.name}, Name={node.name}", "Inputs:"]
            for i, entry in enumerate(node.inputs):
                version = f" version={versions.get(entry.node, 0)}" if entry.node.is_variable else ""
                lines.append(f"\targ[{i}]={entry.node.name}({entry.index}){version}")
            if node.attrs:
                lines += ["Attrs:", *(f"\t{key}={value}" for key, value in sorted(node.attrs.items()))]
        return "\n".join(lines) + "\n"


def load(fname: str | PathLike[str]) -> Symbol:
    """The symbol in a JSON file, or at a URL, that any MXNet version, or `save`, wrote.

    Raises ModelFileError (path, byte offset, reason) when it is no such file, UnsupportedError listing every operator
    and attribute that mxc does not know, TypeError when `fname` is no path.
    """
    if not isinstance(fname, (str, PathLike)):
        raise ArgumentTypeError("fname need to be string")
    if remote_files.is_url(fname):
        return Symbol(json_ir.read_bytes(remote_files.read(str(fname)), str(fname)).outputs)
    return Symbol(json_ir.read_file(fspath(fname)).outputs)


def load_json(json_str: str) -> Symbol:
    """The symbol that a JSON text describes; errors as `load`."""
    if not isinstance(json_str, str):
        raise ArgumentTypeError("fname required to be string")
    return Symbol(json_ir.read(json_str).outputs)


def fromjson(json_str: str) -> Symbol:
    """The same as `load_json`."""
    return load_json(json_str)


def _shown_attributes(node: Node) -> dict[str, str]:
    """A node's attributes, `__lr_mult__` and its like under their plain names too."""
    shown = dict(node.attrs)
    shown.update({key: node.attrs[hidden_key(key)] for key in HIDDEN_KEYS if hidden_key(key) in node.attrs})
    return shown


def _rebuilt(symbol: Symbol, replaced: Mapping[str, Entry]) -> Symbol:
    """A symbol over copies of all nodes, with the variables of these names replaced."""
    copies: dict[Node, Entry | Node] = {}

    def moved(entry: Entry) -> Entry:
        new = copies[entry.node]
        return new if isinstance(new, Entry) else Entry(new, entry.index)

    for node in topological(symbol.entries):
        if node.is_variable and node.name in replaced:
            copies[node] = replaced[node.name]
            continue
        copy = Node(node.op, node.name, node.attrs, node.params, [moved(e) for e in node.inputs], node.subgraphs)
        check_auxiliary(copy)
        copies[node] = copy
    return Symbol([moved(entry) for entry in symbol.entries])
