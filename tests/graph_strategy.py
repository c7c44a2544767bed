"""Random graphs of operators as users know them, for Hypothesis, and what they should compute.

Comparisons, rounding and the like jump where the last bit of a value decides; they are applied to variables alone.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from op_cases import Case, cases

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Sink
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Kind, Operator
from mxc.compiler.ops.philox import Draws
from mxc.compiler.targets.reference.interpreter import evaluate

SMOOTH = ("tanh", "sigmoid", "negative", "square", "softsign", "erf", "arctan", "sin", "cos", "_copy", "BlockGrad",
          "exp", "expm1", "relu", "abs", "arcsinh", "hard_sigmoid")
SCALAR = ("_plus_scalar", "_minus_scalar", "_rminus_scalar", "_mul_scalar", "_div_scalar", "_maximum_scalar",
          "_minimum_scalar", "_power_scalar")
SAME = ("elemwise_add", "elemwise_sub", "elemwise_mul", "_maximum", "_minimum")
BROADCAST = ("broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_maximum", "broadcast_minimum")
JUMPS = ("floor", "sign", "rint", "logical_not")
CONSTANT = ("_full", "_zeros", "_ones", "_arange", "_eye", "_linspace")
COMPARE = ("_greater", "_equal", "_lesser_equal", "_logical_and")
REDUCE = ("sum", "mean", "max", "min", "prod", "nansum", "norm")
ACTIVATIONS = ("relu", "sigmoid", "tanh", "softrelu", "softsign")
SHAPES = ((2, 3, 4, 4), (1, 4, 6, 5), (3, 2, 3, 3), (2, 1, 1, 4), (3, 5), (4, 4), (1, 7), (4, 1), (2, 3, 4), (6,))
LARGEST = 4096  # elements of a value


@dataclass
class Sample:
    """A graph with what it is compiled for. grad_req: by argument. ranges: of the values of some arguments."""

    graph: Graph
    grad_req: dict[str, str]
    is_train: bool
    seed: int
    ranges: dict[str, tuple[float, float]]

    def values(self, graph: Graph) -> dict[str, np.ndarray]:
        """Values for the variables of `graph`, which may have head gradients beside the sample's own."""
        rng = np.random.default_rng(self.seed)
        values = {}
        for node in sorted(graph.variables, key=lambda n: n.name):
            shape, dtype = graph.shape(Entry(node)), graph.dtype(Entry(node))
            if node.name.startswith("label"):
                values[node.name] = rng.integers(0, 2, shape).astype(dtype)
            else:
                low = 0.5 if node.name.startswith(("var", "mean")) else -1.2
                values[node.name] = rng.uniform(*self.ranges.get(node.name, (low, 1.2)), shape).astype(dtype)
        return values


@dataclass
class Maker:
    """Adds operators to a graph under construction."""

    draw: st.DrawFn
    dtype: str
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    entries: list[Entry] = field(default_factory=list)
    variables: list[Entry] = field(default_factory=list)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    def pick(self, choices):
        return self.draw(st.sampled_from(list(choices)))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def flip(self) -> bool:
        return self.draw(st.booleans())

    def shape(self, entry: Entry) -> tuple[int, ...]:
        return self.builder.shape(entry)

    def variable(self, shape: tuple[int, ...], prefix: str = "x") -> Entry:
        """A new argument."""
        entry = self.builder.variable(f"{prefix}{len(self.variables)}", shape, self.dtype)
        self.variables.append(entry)
        return entry

    def source(self, *ranks: int) -> Entry | None:
        """Some value, of one of these ranks (any when there are none)."""
        fitting = [e for e in self.entries if not ranks or len(self.shape(e)) in ranks]
        recent = fitting[-3:] if self.flip() else fitting  # long chains, not only wide graphs
        return self.pick(recent) if fitting else None

    def like(self, shape: tuple[int, ...]) -> Entry:
        """A value of this shape, a new argument where there is none."""
        fitting = [e for e in self.entries if self.shape(e) == shape]
        return self.pick(fitting) if fitting else self.variable(shape)

    def add(self) -> None:
        """One more operator."""
        rule: Callable[[Maker], list[Entry] | Entry | None] = self.pick(RULES)
        made = rule(self)
        if made is None:
            return
        many = [made] if isinstance(made, Entry) else made
        if all(0 < np.prod(self.shape(e)) <= LARGEST for e in many):
            self.entries += many


def unary(m: Maker) -> Entry | None:
    x = m.source()
    return m.builder.make(m.pick(SMOOTH), x) if x else None


def scalar(m: Maker) -> Entry | None:
    x, op = m.source(), m.pick(SCALAR)
    value = 2.0 if op == "_power_scalar" else m.pick((0.5, 2.0, -1.5, 1.0, 3.0))
    return m.builder.make(op, x, scalar=value) if x else None


def pair(m: Maker) -> Entry | None:
    x = m.source()
    return m.builder.make(m.pick(SAME), x, m.like(m.shape(x))) if x else None


def several(m: Maker) -> Entry | None:
    x = m.source()
    if x is None:
        return None
    parts = [x, *(m.like(m.shape(x)) for _ in range(m.integer(1, 3)))]
    return m.builder.make("add_n", *parts, num_args=len(parts))


def broadcast(m: Maker) -> Entry | None:
    x = m.source()
    if x is None:
        return None
    small = tuple(1 if m.flip() else d for d in m.shape(x))
    small = small[m.pick((0, 0, len(small) // 2)):]
    others = [e for e in m.entries if len(m.shape(e)) <= len(m.shape(x)) and
              all(a == b or 1 in (a, b) for a, b in zip(m.shape(e)[::-1], m.shape(x)[::-1], strict=False))]
    other = m.pick(others) if others and m.flip() else m.like(small)
    return m.builder.make(m.pick(BROADCAST), *((x, other) if m.flip() else (other, x)))


def quotient(m: Maker) -> Entry | None:
    """A division by something that is at least 1."""
    x = m.source()
    if x is None:
        return None
    square = m.builder.make("square", m.like(tuple(1 if m.flip() else d for d in m.shape(x))))
    return m.builder.make("broadcast_div", x, m.builder.make("_plus_scalar", square, scalar=1.0))


def spread(m: Maker) -> Entry | None:
    x = m.source()
    if x is None or 1 not in m.shape(x):
        return None
    return m.builder.make("broadcast_to", x, shape=tuple(3 if d == 1 else d for d in m.shape(x)))


def constant(m: Maker) -> Entry:
    shape, op = m.pick(SHAPES), m.pick(CONSTANT)
    if op == "_full":
        return m.builder.make(op, shape=shape, value=m.pick((0.5, 1.0, 0.0)), dtype=m.dtype)
    if op == "_arange":
        return m.builder.make(op, start=0, stop=shape[0], step=m.pick((1.0, 0.5)), dtype=m.dtype)
    if op == "_linspace":
        return m.builder.make(op, start=-1, stop=1, num=shape[0], endpoint=m.flip(), dtype=m.dtype)
    if op == "_eye":
        return m.builder.make(op, N=shape[0], M=m.integer(0, 4), k=m.integer(-1, 2), dtype=m.dtype)
    return m.builder.make(op, shape=shape, dtype=m.dtype)


def jump(m: Maker) -> Entry | None:
    x = m.pick(m.variables)
    if m.flip():
        return m.builder.make(m.pick(JUMPS), x)
    test = m.builder.make(m.pick(COMPARE), x, m.variable(m.shape(x)))
    alike = m.like(m.shape(x))
    return m.builder.make("where", test, alike, m.like(m.shape(x)))


def clipped(m: Maker) -> Entry | None:
    x = m.source()
    return m.builder.make("clip", x, a_min=-0.7, a_max=0.9) if x else None


def reduction(m: Maker) -> Entry | None:
    x = m.source()
    if x is None:
        return None
    rank = len(m.shape(x))
    axes = tuple(i for i in range(rank) if m.flip())
    return m.builder.make(m.pick(REDUCE), x, axis=axes or None, keepdims=m.flip())


def rearranged(m: Maker) -> Entry | list[Entry] | None:
    x = m.source(1, 2, 3, 4, 5)  # there is nothing to move in a number
    if x is None:
        return None
    shape, kind = m.shape(x), m.integer(0, 6)
    axis = m.integer(0, len(shape) - 1)
    if kind == 0:
        return m.builder.make("transpose", x, axes=tuple(m.draw(st.permutations(range(len(shape))))))
    if kind == 1:
        return m.builder.make("Reshape", x, shape=m.pick(((-1,), shape[::-1], (shape[0], -1), (-1, *shape[1:]))))
    if kind == 2:
        return m.builder.make("expand_dims", x, axis=axis)
    if kind == 3:
        begin = m.integer(0, shape[axis] - 1)
        return m.builder.make("slice_axis", x, axis=axis, begin=begin, end=m.integer(begin + 1, shape[axis]))
    if kind == 4:
        other = list(shape)
        other[axis] = m.integer(1, 3)
        return m.builder.make("Concat", x, m.like(tuple(other)), num_args=2, dim=axis)
    if kind == 5:
        count = m.pick([n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
        return m.builder.make_all("SliceChannel", x, num_outputs=count, axis=axis)
    return m.builder.make("Flatten", x)


def pooling(m: Maker) -> Entry | None:
    x = m.source(4)
    if x is None:
        return None
    kind = m.pick(("max", "avg", "sum"))
    if m.flip():
        return m.builder.make("Pooling", x, kernel=(1, 1), pool_type=kind, global_pool=True)
    kernel = tuple(m.integer(1, min(3, d)) for d in m.shape(x)[2:])
    pad = tuple(m.integer(0, k - 1) for k in kernel)
    return m.builder.make("Pooling", x, kernel=kernel, pool_type=kind, stride=(m.integer(1, 2), m.integer(1, 2)),
                          pad=pad, pooling_convention=m.pick(("valid", "full")), count_include_pad=m.flip())


def convolution(m: Maker) -> Entry | None:
    x = m.source(4)
    if x is None:
        return None
    channels, *size = m.shape(x)[1:]
    groups = m.pick([1, channels])
    filters = groups * m.integer(1, 2) if groups > 1 else m.integer(1, 4)
    kernel = tuple(m.integer(1, min(3, d)) for d in size)
    pad = tuple(m.integer(0, k - 1) for k in kernel)
    parameters = {"kernel": kernel, "num_filter": filters, "num_group": groups, "pad": pad,
                  "stride": (m.integer(1, 2), m.integer(1, 2)), "no_bias": m.flip()}
    transposed = m.integer(0, 3) == 0
    shape = (channels, filters // groups, *kernel) if transposed else (filters, channels // groups, *kernel)
    bias = [] if parameters["no_bias"] else [m.variable((filters,), "b")]
    return m.builder.make("Deconvolution" if transposed else "Convolution", x, m.variable(shape, "w"), *bias,
                          **parameters)


def dense(m: Maker) -> Entry | None:
    x = m.source(2, 3, 4)
    if x is None:
        return None
    flatten, hidden, bare = m.flip(), m.integer(1, 6), m.flip()
    shape = m.shape(x)
    depth = int(np.prod(shape[1:])) if flatten else shape[-1]
    bias = [] if bare else [m.variable((hidden,), "b")]
    return m.builder.make("FullyConnected", x, m.variable((hidden, depth), "w"), *bias, num_hidden=hidden,
                          no_bias=bare, flatten=flatten)


def product(m: Maker) -> Entry | None:
    x = m.source(2, 3)
    if x is None:
        return None
    shape, left, right = m.shape(x), m.flip(), m.flip()
    depth = shape[-2] if left else shape[-1]
    matrix = (4, depth) if right else (depth, 4)
    op = "dot" if len(shape) == 2 else "batch_dot"
    return m.builder.make(op, x, m.like((*shape[:-2], *matrix)), transpose_a=left, transpose_b=right)


def normalized(m: Maker) -> Entry | None:
    x = m.source(2, 4)
    if x is None:
        return None
    channels = (m.shape(x)[1],)
    learned = [m.variable(channels, name) for name in ("gamma", "beta")]
    states = [m.builder.variable(f"{name}_{len(m.variables)}", channels, m.dtype) for name in ("mean", "var")]
    return m.builder.make("BatchNorm", x, *learned, *states, fix_gamma=m.flip(), use_global_stats=m.flip(), eps=0.01)


def activated(m: Maker) -> Entry | None:
    x = m.source()
    if x is None:
        return None
    kind = m.pick(("activation", "leaky", "elu", "selu", "prelu", "Dropout"))
    if kind == "activation":
        return m.builder.make("Activation", x, act_type=m.pick(ACTIVATIONS))
    if kind == "Dropout":
        return m.builder.make("Dropout", x, p=0.0)
    if kind == "prelu":
        if len(m.shape(x)) < 2:
            return None
        return m.builder.make("LeakyReLU", x, m.variable((m.shape(x)[1],), "slope"), act_type="prelu")
    return m.builder.make("LeakyReLU", x, act_type=kind)


def softmax(m: Maker) -> Entry | None:
    x = m.source(2, 3, 4)
    if x is None:
        return None
    axis = m.integer(0, len(m.shape(x)) - 1)
    op = m.pick(("softmax", "log_softmax", "softmin", "SoftmaxActivation", "SoftmaxOutput"))
    if op == "SoftmaxActivation":
        return m.builder.make(op, x, mode=m.pick(("instance", "channel")))
    if op == "SoftmaxOutput":
        if len(m.shape(x)) != 2:
            return None
        return m.builder.make(op, x, m.builder.variable(f"label{len(m.entries)}", m.shape(x)[:1], m.dtype))
    return m.builder.make(op, x, axis=axis)


# Operators that give other numbers each time; a parameter `p` is the share that is dropped.
UNSTEADY = ("Dropout", "_shuffle", *(n for n in table.names() if re.match("_(random|sample|image_random)_(?!pdf)", n)))


# Families over numbers of 8 bits, which these graphs do not have: tests/test_quantized_networks.py has graphs of them.
EIGHT_BITS = ("quantization", "quantized", "fused")
OF_INT32 = {("batch_take", 1)}  # inputs that are of whole numbers alone
# Other operators that these graphs do not have.
NOT_DRAWN = {
    "_zeros_without_dtype": "it has no dtype of its own",
    "_sample_unique_zipfian": "it draws without inputs",
}


@functools.cache
def table_cases() -> dict[str, list[Case]]:
    """By operator, the samples of every operator for users: internal ones come out of these. Those that drop a share
    `p` of their values, as between layers of RNN, are none: they draw other numbers than their reference."""
    users = [op for op in table.all_operators() if op.inputs and why_not_drawn(op) == ""]
    return {op.name: [case for case in cases(op) if not case.params.get("p")] for op in users}


def why_not_drawn(op: Operator) -> str:
    """Why graphs of `samples` do not have an operator, or ""."""
    if op.name.startswith("_mxc_"):
        return "it comes out of others"
    if op.in_place:
        return "it changes a weight, so no graph runs it: tests/test_updates.py"
    if op.family in EIGHT_BITS:
        return "it is of numbers of 8 bits: tests/test_quantized_networks.py"
    if op.name in UNSTEADY:
        return "it draws other numbers than its reference: tests/test_random.py"
    return NOT_DRAWN.get(op.name, "")


def fitted(m: Maker, x: Entry, shape: tuple[int, ...], low: float, high: float) -> Entry:
    """The first elements of x as an array of `shape`, brought into low..high."""
    size = int(np.prod(shape))
    flat = m.builder.make("Reshape", x, shape=(-1,))
    if int(np.prod(m.shape(x))) > size:
        flat = m.builder.make("slice_axis", flat, axis=0, begin=0, end=size)
    if (low, high) != (-1, 1):
        share = m.builder.make("_mul_scalar", m.builder.make("sigmoid", flat), scalar=high - low)
        flat = m.builder.make("_plus_scalar", share, scalar=low)
    return m.builder.make("Reshape", flat, shape=shape)


def from_table(m: Maker) -> list[Entry] | None:
    """Any operator of the table on one of its samples: its first input, and maybe others, from what is there already,
    unless its result jumps."""
    case = m.pick(table_cases()[m.pick(table_cases())])
    if any(np.prod(shape) == 0 for shape in case.shapes):
        return None
    inputs, names = [], case.op.input_names(case.params)
    smooth = case.op.differentiable and case.op.kind < Kind.OPAQUE
    for i, shape in enumerate(case.shapes):
        x = m.source() if smooth and i < len(names) and (i == 0 or m.flip()) else None
        if x is not None and int(np.prod(m.shape(x))) >= int(np.prod(shape)) and shape:
            inputs.append(fitted(m, x, shape, case.low, case.high))
        else:
            takes_gradient = case.op.grad != "refused" and i < len(names) and "label" not in names[i]
            prefix = "x" if takes_gradient else "mean"  # these have no gradients
            inputs.append(m.variable(shape, prefix))
            m.ranges[inputs[-1].node.name] = case.low, case.high
        if (case.op.name, i) in OF_INT32:
            inputs[-1] = m.builder.make("Cast", inputs[-1], dtype="int32")
    try:
        made = m.builder.make_all(case.op.name, *inputs, **dict(case.params))[:case.op.num_visible(case.params)]
    except MXNetError:
        assert m.dtype != "float32"  # which every operator takes
        return None
    return [e if m.builder.dtype(e) == m.dtype else m.builder.make("Cast", e, dtype=m.dtype) for e in made]


RULES = (*[from_table] * 12, unary, unary, scalar, pair, several, broadcast, broadcast, quotient, spread, constant,
         jump, clipped, reduction, reduction, rearranged, rearranged, pooling, convolution, convolution, dense, product,
         normalized, activated, softmax)


@st.composite
def samples(draw: st.DrawFn, dtypes: tuple[str, ...] = ("float32", "float64"), largest: int = 14) -> Sample:
    """A graph of up to `largest` operators over a few arguments, with gradients wanted of some."""
    m = Maker(draw, draw(st.sampled_from(dtypes)))
    for _ in range(draw(st.integers(1, 2))):
        m.entries.append(m.variable(m.pick(SHAPES)))
    for _ in range(draw(st.integers(largest // 2, largest))):
        m.add()
    made = [e for e in m.entries if not e.node.is_variable] or [m.builder.make("_copy", m.entries[0])]
    read = {source for e in made for source in e.node.inputs}
    ends = [e for e in made if e not in read]
    outputs = list(dict.fromkeys([*ends[-4:], *draw(st.lists(st.sampled_from(made), max_size=1))]))
    graph = m.builder.finish(outputs, [Sink("output", e.node.name) for e in outputs])
    wanted = st.sampled_from(("write", "write", "null", "add"))
    names = [n.name for n in graph.variables]
    learned = [n for n in names if not n.startswith(("mean", "var", "label"))]
    requests = {name: draw(wanted) for name in learned} if draw(st.booleans()) else {}
    return Sample(graph, requests, draw(st.booleans()), draw(st.integers(0, 1000)), m.ranges)


def reference(graph: Graph, values: Mapping[str, np.ndarray], is_train: bool, noise: float = 0.0) -> list[np.ndarray]:
    """The outputs, operator by operator by their references. noise: every value is then off by about this share."""
    rng = np.random.default_rng(1)
    found: dict[Entry, np.ndarray] = {}
    for node in graph.nodes:
        if node.is_variable:
            outputs = [values[node.name]]
        else:
            assert isinstance(node.op, Operator)
            outputs = evaluate(node, [found[e] for e in node.inputs], is_train, Draws())
        for i, output in enumerate(outputs):
            off = 1 + noise * rng.uniform(-1, 1, output.shape)
            found[Entry(node, i)] = (output * off).astype(output.dtype) if output.dtype.kind == "f" else output
    return [found[e] for e in graph.outputs]
