"""The operator table's record of an operator: `Operator`, and the records that it is made of."""
from __future__ import annotations

import ast
import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import ClassVar

import numpy as np

from mxc.compiler.error import MXNetError, nearest
from mxc.compiler.ops.dtypes import numpy_dtype, widened
from mxc.compiler.ops.expr import as_dtype
from mxc.compiler.ops.params import ParamType
from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.rules import Role, find_rule, rules_of
from mxc.compiler.system import syntax

MOST = 1 << 16  # inputs or outputs of one node: no real graph has so many, and lists of that length fit in memory


class Kind(enum.IntEnum):
    """What an operator is to lowering and fusion; ordered."""

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = 3
    ANCHOR = 4
    OPAQUE = 5


class Params(Mapping[str, object]):
    """Parsed parameters, frozen and hashable; read as `params.kernel` or `params["kernel"]`.

    A parameter whose name is that of a mapping's method (`get`, `keys`, `items`, `values`) is read in the second way.
    Parameters are equal when they are written alike: 0.0 and -0.0 differ, NaN is equal to itself.
    """

    __slots__ = ("_text", "_values")
    _values: dict[str, object]
    _text: str

    def __init__(self, values: Mapping[str, object] | None = None):
        given = dict(values or {})
        object.__setattr__(self, "_values", given)
        object.__setattr__(self, "_text", repr(sorted(given.items())))  # Keys differ, so values are never compared.

    def __getitem__(self, key: str) -> object:
        return self._values[key]

    def __getattr__(self, key: str):  # Python calls this for names that are no attributes.
        if key in Params.__slots__:  # The object is being copied, and has no attributes yet.
            raise AttributeError(key)
        try:
            return self._values[key]
        except KeyError:
            raise AttributeError(f"no parameter {key!r}") from None

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"parameters do not change: {key!r} cannot be set")

    def __reduce__(self) -> tuple:
        return Params, (self._values,)

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return self._text

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Params) and self._text == other._text


@dataclass(frozen=True)
class Reduce:
    """A reduction: `combine` (sum, prod, max, min, argmax or argmin) of `body` over the reduced elements, then `final`.

    body: expression over the inputs and parameters, one element. final: expression over `acc` (what was combined),
    `count` (how many elements were) and the parameters; computed in the accumulator's dtype, then cast to the output's.
    """

    combine: str
    body: str
    final: str = "acc"


@dataclass(frozen=True)
class InputSpec:
    """An input as the table has it: NAME, `NAME if COND`, `NAME unless COND`, or `NAME*` (a variable number), which may
    go on with endings, of which each number has all in turn: `NAME*_min|_max`."""

    name: str
    condition: str = ""
    negated: bool = False
    variadic: bool = False
    endings: tuple[str, ...] = ("",)

    def present(self, params: Params) -> bool:
        return not self.condition or bool(condition(self.condition, params)) != self.negated


FLOAT16 = ("always", "passed")  # when an operator of a model that is converted to float16 is computed in it
NO_GRADIENT = ("none", "refused")  # what `grad` may say instead of formulas or a rule


@dataclass(eq=False)
class Operator:
    """One operator, as `ops.yaml` describes it. Compared by identity; `get` finds it.

    variadic, counted: the parameter that is the number of a variable number of inputs; `counted` where it is not filled
    in. inputs: without auxiliary states, which are behind them, or behind the input `aux_behind`; where `aux_if` is an
    expression over the parameters there are such only where it holds. parameters: the inputs that are learned. starts:
    {input: how its variable starts where the operator itself knows, as MXNet's JSON text of an initialiser}. outputs:
    names of all outputs, hidden ones too; ("output",) with `count` set when their number is an expression over the
    parameters, `numbered` when a single one is output0. visible: number or expression. named: whether monitors are
    told an only input by its name, as MXNet's of operators that list names; else as input0. named_outputs: whether
    nodes that MXNet puts behind it are named after an output's name, NODE_output; else after its number, NODE_0.
    unwatched: outputs that monitors are told only where those are visible, for MXNet has no such hidden ones. expr: of
    an elementwise or broadcast operator; a dict {parameter: {value: expression}} selects by a parameter's value. grad:
    {input: formula}, the name of a rule, "none" (no gradient flows), "refused" (there is none, as in MXNet, and one
    that is asked for is an error), or None (that of `expr`, else of the decomposition, else there is none). rules:
    role -> name of a rule, defaults of the kind filled in; family: the folder of compiler/operators/ where they are.
    float16: one of FLOAT16, or "" for never.
    update: the lines of an operator that changes arrays in place (updates.py), {} of others; many: the name of the one
    that it applies to several weights, inputs_of_one: how many inputs each weight has, common: how many of the last
    ones are there once for all, behind them, along: the name of the one that makes the steps, where `many` gives their
    directions. host: by what Python computes it, of one that has no kernels. doc: one line for its function's help.
    """

    name: str
    kind: Kind
    inputs: tuple[InputSpec, ...] = ()
    params: Mapping[str, ParamType] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    variadic: str = ""
    counted: str = ""
    parameters: tuple[str, ...] = ()
    aux: tuple[str, ...] = ()
    aux_behind: str = ""
    aux_if: str = ""
    starts: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("output",)
    count: str = ""
    numbered: bool = False
    visible: int | str = 0
    named: bool = False
    named_outputs: bool = False
    unwatched: tuple[str, ...] = ()
    expr: str | dict[str, dict[str, str]] | None = None
    grad: dict[str, str | dict[str, dict[str, str]]] | str | None = None
    float16: str = ""
    reduce: Reduce | None = None
    update: Mapping[str, str] = field(default_factory=dict)
    many: str = ""
    common: int = 0
    along: str = ""
    inputs_of_one: int = 0
    host: str = ""
    rules: Mapping[Role, str] = field(default_factory=dict)
    family: str = "basic"
    samples: tuple[dict, ...] = ()
    doc: str = ""
    line: int = 0

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    is_native: ClassVar[bool] = False  # whether arrays of any size are computed by its compiled code
    no_gradient: ClassVar[str] = "put BlockGrad around it, or set grad_req to 'null' for the arguments before it"

    @property
    def signature(self) -> str | None:
        """All that a plan depends on in an operator that is not in the table, besides its node's shapes and dtypes.
        None: that is not known, so plans of graphs that have the operator are not kept."""
        return None

    # -- parameters

    def parse_attrs(self, attrs: Mapping[str, str], node_name: str = "") -> Params:
        """Typed parameters of raw strings, defaults filled in. `__x__` attributes are the user's and are left out.

        Raises MXNetError naming node, attribute and what was expected. As in MXNet, an operator without any parameters
        does not look at attributes.
        """
        given = {k: v for k, v in attrs.items() if not (k.startswith("__") and k.endswith("__"))}
        return self._parse(given if self.params else {}, node_name, lambda kind, value: kind.parse(str(value)))

    def make_params(self, values: Mapping[str, object], node_name: str = "") -> Params:
        """Typed parameters of Python values, defaults filled in; strings are parsed. Errors as in `parse_attrs`."""
        return self._parse(values, node_name, lambda kind, value: kind.convert(value))

    def _parse(self, given: Mapping[str, object], node_name: str,
               read: Callable[[ParamType, object], object]) -> Params:
        where = f"operator {self.name}" + (f", node {node_name!r}" if node_name else "")
        unknown = [k for k in given if k not in self.params]
        if unknown:
            known = f"it has {', '.join(self.params)}" if self.params else "it has no parameters"
            raise MXNetError("\n".join(f"{where}: unknown attribute {k!r}{nearest(k, self.params)} ({known})"
                                       for k in unknown))
        values: dict[str, object] = {}
        for name, kind in self.params.items():
            if name in given:
                try:
                    values[name] = read(kind, given[name])
                except MXNetError as error:
                    raise MXNetError(f"{where}: attribute {name!r}: {error}") from None
            elif kind.required:
                raise MXNetError(f"{where}: required attribute {name!r} ({kind}) is missing")
            else:
                values[name] = kind.default
        return Params(values)

    def attrs_of(self, params: Params) -> dict[str, str]:
        """The strings for JSON of every parameter that has no default or differs from it."""
        return {k: t.text(params[k]) for k, t in self.params.items() if t.required or params[k] != t.default}

    # -- inputs and outputs

    def input_names(self, params: Params) -> tuple[str, ...]:
        """Names of the inputs that are there with `params`, auxiliary states left out; `arg*` as arg0, arg1, ..."""
        if self._fixed_inputs is not None:
            return self._fixed_inputs
        names: list[str] = []
        for spec in self.inputs:
            if spec.variadic and spec.present(params):
                count = _count(self._variable_inputs(params), "inputs")
                names += [f"{spec.name}{i}{ending}" for i in range(count) for ending in spec.endings]
            elif spec.present(params):
                names.append(spec.name)
        return tuple(names)

    @functools.cached_property
    def _fixed_inputs(self) -> tuple[str, ...] | None:
        """Names of the inputs where parameters do not change which there are."""
        changing = any(spec.variadic or spec.condition for spec in self.inputs)
        return None if changing else tuple(spec.name for spec in self.inputs)

    def _variable_inputs(self, params: Params) -> object:
        if not self.many:
            return params[self.counter]
        rates = 0 if "wds" in self.params else 2  # Learning rates and decays are two parameters, or two more arrays.
        return self.num_weights(params) * self.inputs_of_one + self.common + rates

    @property
    def counter(self) -> str:
        """The parameter that is the number of a variable number of inputs; "" where there is none."""
        return self.variadic or self.counted

    @property
    def takes_any_number(self) -> bool:
        """Whether it takes a variable number of inputs."""
        return bool(self.counter or self.many)

    def num_weights(self, params: Params) -> int:
        """How many weights an update of several is given."""
        return _integer(params["num_weights" if "num_weights" in self.params else "num_tensors"])

    @property
    def listed_inputs(self) -> list[str]:
        """The names of all inputs and auxiliary states that it may have, in the order of its function's parameters."""
        names = [spec.name for spec in self.inputs]
        first = names.index(self.aux_behind) + 1 if self.aux_behind else len(names)
        return [*names[:first], *self.aux, *names[first:]]

    def aux_names(self, params: Params) -> tuple[str, ...]:
        """Names of the auxiliary states."""
        return () if self.aux_if and not condition(self.aux_if, params) else self.aux

    def states(self, params: Params) -> slice:
        """Where the auxiliary states are among all that a node takes: behind the inputs, or behind `aux_behind`."""
        inputs, count = self.input_names(params), len(self.aux_names(params))
        first = inputs.index(self.aux_behind) + 1 if self.aux_behind and count else len(inputs)
        return slice(first, first + count)

    def all_names(self, params: Params) -> tuple[str, ...]:
        """Names of the inputs and auxiliary states, in the order in which a node takes them."""
        inputs, first = self.input_names(params), self.states(params).start
        return (*inputs[:first], *self.aux_names(params), *inputs[first:])

    def num_outputs(self, params: Params) -> int:
        """How many outputs there are, hidden ones too."""
        return _count(condition(self.count, params), "outputs") if self.count else len(self.outputs)

    def num_visible(self, params: Params) -> int:
        """How many outputs a user sees: the first ones."""
        if not self.visible:
            return self.num_outputs(params)
        return self.visible if isinstance(self.visible, int) else _integer(condition(self.visible, params))

    def output_names(self, params: Params) -> tuple[str, ...]:
        """Names of all outputs: where parameters give their number they are numbered, a single one if `numbered`; of
        several names it is the first ones."""
        if not self.count:
            return self.outputs
        if len(self.outputs) > 1:
            return self.outputs[:self.num_outputs(params)]
        count = self.num_outputs(params)
        return tuple(f"{self.outputs[0]}{i}" for i in range(count)) if count > 1 or self.numbered else self.outputs

    def watched_names(self, params: Params) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What a monitor is told: names of the inputs and auxiliary states, and of the outputs, "" for those not."""
        inputs = self.all_names(params)
        if not (self.named or self.counter) and len(self.inputs) + len(self.aux) == 1:
            inputs = tuple(f"input{i}" for i in range(len(inputs)))
        visible = self.num_visible(params)
        outputs = [name if i < visible or name not in self.unwatched else ""
                   for i, name in enumerate(self.output_names(params))]
        return inputs, tuple(outputs)

    # -- computing

    def refusal(self, params: Params) -> str:
        """What is wrong with the values of its parameters (a rule of `values`), or ""."""
        rule = self.rule("values")
        return "" if rule is None else rule(params)

    @property
    def in_place(self) -> bool:
        """Whether it changes arrays in place, and so is no operator of graphs."""
        return bool(self.update or self.many or "changes" in self.rules)

    @property
    def is_host(self) -> bool:
        """Whether Python computes it in every plan: it becomes neither other operators nor a kernel."""
        return (self.kind is Kind.OPAQUE and not self.in_place
                and self.rules.keys().isdisjoint(("decompose", "routine")))

    def rule(self, role: Role) -> Callable | None:
        """The function of the rule named for `role`, or None when the operator has none."""
        name = self.rules.get(role)
        return None if name is None else find_rule(role, self.family, name)

    def reference(self, params: Params, inputs: Sequence[np.ndarray], out_dtypes: Sequence[str], is_train: bool = False,
                  rng: Draws | None = None) -> list[np.ndarray]:
        """All outputs, computed by NumPy from `expr`, `reduce` or the operator's reference rule, of `out_dtypes`.

        inputs: auxiliary states last; of bfloat16 they are computed with in float32. Raises MXNetError when the
        operator has no reference.
        """
        arrays = [widened(np.asarray(a)) for a in inputs]
        rule = self.rule("reference")
        if rule is not None:
            if "bfloat16" in params.values():
                params = Params({k: "float32" if v == "bfloat16" else v for k, v in params.items()})
            results = rule(params, arrays, is_train, rng or Draws())
            return [as_dtype(np.asarray(r), numpy_dtype(d)) for r, d in zip(results, out_dtypes, strict=True)]
        from mxc.compiler.ops import formula

        if self.reduce is not None:
            return [formula.reduction_value(self, params, arrays, out_dtypes[0])]
        if self.expr is not None:
            return [formula.expression_value(self, params, arrays, out_dtypes[0])]
        there = self.name in rules_of("reference", self.family)
        raise MXNetError(f"operator {self.name} has no reference: its entry of ops.yaml names none; write "
                         f"`reference: {self.name if there else 'NAME'}`, a function "
                         f"{'that is there in' if there else 'of'} compiler/operators/{self.family}/reference.py")

    def expression(self, params: Params) -> str | None:
        """The expression for these parameters, over `input_names(params)` and the parameters; None: it has none."""
        return self._select(self.expr, params)

    def _select(self, expr: str | dict[str, dict[str, str]] | None, params: Params) -> str | None:
        if isinstance(expr, dict):
            (parameter, choices), = expr.items()
            if str(params[parameter]) not in choices:
                raise MXNetError(f"operator {self.name}: no expression for {parameter}={params[parameter]!r}")
            expr = choices[str(params[parameter])]
        if expr is not None and self.sums:
            return " + ".join(self.input_names(params))
        return expr

    @property
    def sums(self) -> bool:
        """Whether it adds up a variable number of inputs: its expression grows with their number."""
        return bool(self.variadic) and any(self.expr == f"sum({s.name})" for s in self.inputs if s.variadic)

    @property
    def differentiable(self) -> bool:
        """Whether a gradient is known: `grad` says how, or an expression or a decomposition is differentiated."""
        if self.grad is not None:
            return self.grad not in NO_GRADIENT
        return self.expr is not None or self.is_made_of_others

    @property
    def is_made_of_others(self) -> bool:
        """Whether its gradient is that of the operators that its decomposition is made of."""
        return self.grad is None and self.expr is None and "decompose" in self.rules and bool(self.inputs)

    def formula(self, input_name: str) -> str | dict[str, dict[str, str]]:
        """The gradient of one input over og, out, inputs and parameters: from `grad`, else derived from `expr`.

        "0": nothing flows. A dict where `expr` is one. Raises MXNetError when a named rule gives the gradient.
        """
        from mxc.compiler.ops.derive import gradient

        if isinstance(self.grad, dict):
            return self.grad.get(input_name, "0")
        if self.grad is not None or self.expr is None:
            raise MXNetError(f"operator {self.name} has no gradient formula")
        if isinstance(self.expr, dict):
            (parameter, choices), = self.expr.items()
            return {parameter: {value: gradient(text, input_name) for value, text in choices.items()}}
        return "og" if self.variadic else gradient(self.expr, input_name)


def _integer(value: object) -> int:
    assert isinstance(value, int)
    return int(value)


def _count(value: object, what: str) -> int:
    """How many inputs or outputs a parameter asks for, refused before a list of that length is made."""
    count = _integer(value)
    if count > MOST:
        raise MXNetError(f"{count} {what}; expected at most {MOST}")
    return count


_GLOBALS: dict[str, object] = {"__builtins__": {}, "len": len}
_CONDITION_NODES = (ast.Expression, ast.Compare, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.IfExp,
                    ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Eq,
                    ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn, ast.Tuple)


@functools.cache
def _compiled(text: str) -> CodeType:
    tree = syntax.parse(text, "eval")
    for node in ast.walk(tree):
        is_len = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
        if not isinstance(node, _CONDITION_NODES) and not is_len:
            raise MXNetError(f"condition {text!r}: {type(node).__name__} is not allowed")
    return compile(tree, text, "eval")


def condition(text: str, params: Params) -> object:
    """The value of a condition of ops.yaml: Python comparisons, `and or not`, `A if C else B`, integer arithmetic and
    `len` over the parameters. Raises MXNetError for anything else."""
    return eval(_compiled(text), _GLOBALS, params._values)  # `_compiled` has refused all but checked syntax.
