"""Making symbols: variables, and operators applied to symbols."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc import mixed_precision
from mxc.attribute import AttrScope
from mxc.base import _Null
from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError
from mxc.compiler.graph.compose import hidden_key, input_names, is_user_key, make_node, split_key
from mxc.compiler.graph.graph import Entry, Node, variable
from mxc.compiler.ops import dtypes
from mxc.compiler.ops.operator import Operator
from mxc.compiler.passes.stated import DTYPE_CODES
from mxc.name import NameManager
from mxc.runtime.array import dtype_name
from mxc.symbol import mixed

if TYPE_CHECKING:
    from mxc.symbol.symbol import Symbol

# The numbers that stand for dtypes and storage types in the attributes of MXNet's files.
_DTYPE_CODES = {name: code for code, name in DTYPE_CODES.items()}
_STORAGE_CODES = {"default": 0, "row_sparse": 1, "csr": 2}


def attribute_text(value: object) -> str:
    """A Python value as the string that MXNet stores: tuples as "(1, 2)" whatever the type of their numbers."""
    if isinstance(value, (tuple, list, np.ndarray)):
        inner = ", ".join(repr(v) if isinstance(v, str) else attribute_text(v) for v in value)
        if isinstance(value, tuple):
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        return f"[{inner}]"
    return str(value)


def _storage_code(stype: str) -> int:
    if stype not in _STORAGE_CODES:
        raise ArgumentError(f"unknown storage type {stype!r}; expected one of {', '.join(_STORAGE_CODES)}")
    return _STORAGE_CODES[stype]


def stored_attributes(attrs: Mapping[str, str]) -> dict[str, str]:
    """Attributes under the keys by which a node keeps them: `lr_mult` as `__lr_mult__`.

    Raises MXNetError for `weight_lr_mult`: an attribute of an input belongs to that input's variable.
    """
    for key, value in attrs.items():
        parts = split_key(key)
        if parts is not None:
            raise MXNetError(f"setting variable attributes with {key} is deprecated; make the variable yourself: "
                             f"w = Variable(..., {parts[1]}={value}) and pass {parts[0]}=w")
    return {hidden_key(key): value for key, value in attrs.items()}


# MXNet's signature
def Variable(name: str, attr: Mapping[str, str] | None = None, shape: Sequence[int] | None = None,
             lr_mult: float | None = None, wd_mult: float | None = None, dtype: object = None, init: object = None,
             stype: str | None = None, **kwargs: object) -> Symbol:
    """A symbol for an input: data, label, weight or auxiliary state.

    attr: further attributes (strings). shape: what is known of its shape, 0 for an unknown dimension. lr_mult,
    wd_mult: factors of the learning rate and weight decay. init: an initializer, or its JSON text. stype: storage type.
    kwargs: attributes named `__x__`; others raise ValueError.

    >>> mx.sym.Variable("data", shape=(0, 3, 224, 224)).list_arguments()
    ['data']
    """
    from mxc.symbol.symbol import Symbol

    if not isinstance(name, str):
        raise ArgumentTypeError("Expect a string for variable `name`")
    if attr and not all(isinstance(value, str) for value in attr.values()):
        raise ArgumentError("Set Attr only accepts string values")
    attrs = stored_attributes(AttrScope._current.value.get(attr))
    given = {"__shape__": shape, "__lr_mult__": lr_mult, "__wd_mult__": wd_mult,
             "__dtype__": None if dtype is None else _DTYPE_CODES[dtype_name(dtype)],
             "__init__": init if init is None or isinstance(init, str) else init.dumps(),  # type: ignore[attr-defined]
             "__storage_type__": None if stype is None else _storage_code(stype)}
    attrs.update({key: attribute_text(value) for key, value in given.items() if value is not None})
    for key, value in kwargs.items():
        if not is_user_key(key):
            raise ArgumentError(f"Attribute name={key} is not supported. Additional attributes must start and end with "
                             "double underscores, e.g, __yourattr__")
        attrs[key] = attribute_text(value)
    return Symbol([Entry(variable(name, attrs))])


def Group(symbols: Sequence[Symbol], create_fn: Callable[[list[Entry]], Any] | None = None) -> Any:
    """One symbol with the outputs of all `symbols`, in their order. Raises TypeError for anything but symbols.

    create_fn: makes the result from the list of outputs; Symbol unless given.
    """
    from mxc.symbol.symbol import Symbol

    if not isinstance(symbols, (list, tuple)) or not symbols or not all(isinstance(s, Symbol) for s in symbols):
        raise ArgumentTypeError("Expected a list of symbols as input")
    return (create_fn or Symbol)([entry for symbol in symbols for entry in symbol.entries])


def apply(op: Operator, hint: str, inputs: Mapping[str, Symbol] | Sequence[Symbol],
          attrs: Mapping[str, Any], name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """`op` applied to symbols: all its visible outputs as one symbol.

    hint: the stem of an automatic name. inputs: by name, or in order. attrs: parameters (and `__x__` attributes) as
    Python values. Inputs that are not given become variables NAME_INPUT.

    Raises MXNetError for unknown inputs or attributes, wrong values, and inputs that have several outputs.
    """
    from mxc.symbol.symbol import Symbol

    texts = {key: dtypes.dtype_name(value) if key == "dtype" and _is_type(value) else attribute_text(value)
             for key, value in attrs.items() if value is not _Null}
    scope = {key: attribute_text(value) for key, value in AttrScope._current.value.get(attr).items()}
    stored = stored_attributes({**scope, **texts})
    params = op.parse_attrs(stored, name or "")
    if not isinstance(inputs, Mapping):
        names = input_names(op, params)
        if len(inputs) > len(names):
            raise MXNetError(f"operator {op.name} takes {len(names)} inputs ({', '.join(names[:8])}), "
                             f"but {len(inputs)} are given")
        inputs = dict(zip(names, inputs, strict=False))
    given: dict[str, Entry] = {}
    for key, symbol in inputs.items():
        given[key] = single_entry(symbol, f"argument {key} of operator {op.name}")
    node = make_node(op, NameManager._current.value.get(name, hint), stored, params, given)
    rules = mixed_precision.rules
    return Symbol(visible_entries(node if rules is None else mixed.cast(rules, node, apply)))


def single_entry(symbol: Symbol, what: str) -> Entry:
    """The one output of `symbol`. Raises MXNetError when it has several, since it cannot be told which is meant."""
    if len(symbol.entries) != 1:
        raise MXNetError(f"{what} is a tuple of {len(symbol.entries)} outputs, single value is required; "
                         "choose one by index, e.g. symbol[0]")
    return symbol.entries[0]


def visible_entries(node: Node) -> list[Entry]:
    """The outputs of a node that a user sees: all but the hidden ones."""
    count = 1 if node.op is None else node.op.num_visible(node.params)
    return [Entry(node, i) for i in range(count)]


def _is_type(value: object) -> bool:
    """True for a dtype given as an object (np.float32, np.dtype("float32"), float) and not by its name."""
    return isinstance(value, (type, np.dtype))
