"""Random networks in which every value has several readers of different kinds, compared with the references.

    python tests/reader_networks.py --count 5000 --seed 0

Ten networks in a row have the same operators at other sizes, so that they share most of their kernels. A number that
is wrong is printed with the network's seed, what its thresholds were, and the smallest part of it that is wrong too.
"""
from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Sink

SIZES = 10  # networks that have the same operators
MOST_WORK = 6e7  # multiply-adds of a network of 3 x 3 convolutions: what the references take a second for
MODES = ("inference", "training", "inference", "training", "gradient")  # "gradient": in inference mode, of inference
# Batch, channels, height and width, of which one row after the other is on another side of what passes decide by.
IMAGES = ((1, 16, 16, 16), (1, 64, 14, 14), (2, 48, 7, 7), (1, 32, 28, 28), (1, 16, 56, 56), (4, 16, 28, 28),
          (1, 8, 5, 5), (2, 8, 1, 1), (1, 8, 9, 1), (1, 32, 1, 1), (3, 16, 2, 3), (2, 4, 8, 8), (1, 3, 11, 12),
          (2, 6, 10, 10), (1, 12, 13, 17), (1, 20, 16, 16), (2, 24, 12, 12), (1, 40, 20, 20), (1, 8, 29, 28),
          (1, 8, 27, 29), (8, 16, 6, 6), (17, 8, 5, 5), (1, 8, 2, 520), (2, 16, 40, 4), (1, 128, 7, 7), (1, 96, 10, 9),
          (16, 2, 8, 8), (2, 5, 9, 9), (1, 16, 64, 8), (1, 8, 90, 91))
MATRICES = ((1, 16), (2, 16), (3, 17), (4, 32), (5, 8), (8, 8), (16, 16), (17, 33), (33, 16), (64, 64), (2, 512),
            (4, 512), (1, 600), (5, 520), (128, 24), (256, 8), (300, 40), (8, 128), (1, 1), (12, 4), (770, 3),
            (20, 100))
LONG = ((1, 33000), (2, 40000), (3, 8191), (3, 8193), (8, 4097), (15, 4500), (16, 2100), (17, 2000), (4, 128),
        (5, 127), (8, 300), (7, 1024), (9, 1023), (2, 16384), (40, 40), (300, 8), (600, 16), (2, 4), (1, 9000))
STEPS = ((3, 2, 8), (5, 17, 8), (4, 16, 12), (2, 1, 16), (7, 33, 4), (1, 3, 5), (6, 15, 1))
ACTIVATIONS = ("relu", "sigmoid", "tanh", "softrelu", "softsign")


@dataclass
class Network:
    """A graph and what it is run as. mode: of MODES. grad_req: by argument."""

    seed: int
    graph: Graph
    mode: str
    grad_req: dict[str, str]

    @property
    def is_train(self) -> bool:
        return self.mode == "training"


@dataclass
class Maker:
    """A network under construction. structure: what chooses the operators, whatever the extents.

    maps: values of the shape of the network's input, `shape`. small: values that broadcast to it. ends: what nobody
    reads any more. weights, states: arguments, and pairs of auxiliary states, that may be read again. count: of all
    variables.
    """

    structure: np.random.Generator
    dtype: str
    shape: tuple[int, ...] = ()
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    maps: list[Entry] = field(default_factory=list)
    small: list[Entry] = field(default_factory=list)
    ends: list[Entry] = field(default_factory=list)
    weights: list[Entry] = field(default_factory=list)
    states: list[list[Entry]] = field(default_factory=list)
    count: int = 0

    def chance(self, share: float) -> bool:
        return bool(self.structure.random() < share)

    def choice(self, options: Sequence):
        return options[int(self.structure.integers(len(options)))]

    def variable(self, shape: Sequence[int], prefix: str = "w", dtype: str = "") -> Entry:
        self.count += 1
        return self.builder.variable(f"{prefix}{self.count}", tuple(shape), dtype or self.dtype)

    def weight(self, shape: Sequence[int], dtype: str = "") -> Entry:
        """A new argument, or one of that shape that others read already."""
        facts = tuple(shape), dtype or self.dtype
        alike = [w for w in self.weights if (self.builder.shape(w), self.builder.dtype(w)) == facts]
        again, which = self.chance(0.3), self.structure.random()
        if alike and again:
            return alike[int(which * len(alike))]
        self.weights.append(self.variable(shape, dtype=dtype))
        return self.weights[-1]

    def make(self, op: str, *inputs: Entry, **params: object) -> Entry:
        return self.builder.make(op, *inputs, **params)

    def value(self) -> Entry:
        """One of the values so far, mostly one of the last ones."""
        recent = self.maps[-3:] if self.chance(0.8) else self.maps
        return recent[int(self.structure.random() * len(recent))]

    def pair(self) -> tuple[Entry, Entry]:
        x = self.value()
        return (x, x) if self.chance(0.15) else (x, self.value())


Rule = Callable[[Maker], Entry | None]


# --- of images


def convolved(m: Maker, x: Entry, kernel: Sequence[int], groups: int = 1, dilate: int = 1, stride: int = 1,
              filters: int = 0) -> Entry:
    """A convolution that keeps the sizes of maps, but for a stride."""
    channels = m.builder.shape(x)[1]
    filters = filters or m.shape[1]
    bias = m.chance(0.5)
    inputs = [m.weight((filters, channels // groups, *kernel))]
    if bias:
        inputs.append(m.weight((filters,)))
    made = m.make("Convolution", x, *inputs, kernel=tuple(kernel), num_filter=filters, num_group=groups,
                  no_bias=not bias, dilate=(dilate, dilate), stride=(stride, stride),
                  pad=tuple(dilate * (k // 2) for k in kernel))
    return made


def convolution(m: Maker) -> Entry:
    return convolved(m, m.value(), m.choice(((3, 3), (3, 3), (3, 3), (1, 1), (1, 1), (5, 5), (1, 3))))


def dilated(m: Maker) -> Entry:
    return convolved(m, m.value(), (3, 3), dilate=2)


def depthwise(m: Maker) -> Entry:
    return convolved(m, m.value(), m.choice(((3, 3), (3, 3), (5, 5))), groups=m.shape[1])


def bottleneck(m: Maker) -> Entry:
    """What phones compute: pointwise, depthwise, pointwise, each of which others may read too."""
    wide, act = m.shape[1] * 2, m.choice(("relu", "tanh"))
    up = m.make("Activation", convolved(m, m.value(), (1, 1), filters=wide), act_type=act)
    deep = convolved(m, up, (3, 3), groups=wide, filters=wide)
    if m.chance(0.3):
        deep = m.make("elemwise_add", deep, up)
    if m.chance(0.5):
        other = deep if m.chance(0.5) else up
        m.ends.append(other if m.chance(0.3) else m.make("mean", other, axis=(2, 3)))
    down = convolved(m, m.make("Activation", deep, act_type=act), (1, 1))
    return m.make("elemwise_add", down, m.value()) if m.chance(0.6) else down


def grouped(m: Maker) -> Entry:
    return convolved(m, m.value(), (3, 3), groups=2 if m.shape[1] % 2 == 0 else 1)


def transposed_convolution(m: Maker) -> Entry:
    x, channels = m.value(), m.shape[1]
    return m.make("Deconvolution", x, m.weight((channels, channels, 3, 3)), kernel=(3, 3), num_filter=channels,
                  pad=(1, 1), no_bias=True)


def strided(m: Maker) -> None:
    """What has fewer pixels ends, or goes on as something for each channel."""
    if m.chance(0.7):
        x = convolved(m, m.value(), (3, 3), stride=2)
    else:
        x = m.make("Pooling", m.value(), kernel=tuple(min(2, d) for d in m.shape[2:]), stride=(2, 2),
                   pool_type=m.choice(("max", "avg")), pooling_convention="full")
    m.ends.append(x)
    m.small.append(m.make("mean", x, axis=(2, 3), keepdims=True))


def pooled(m: Maker) -> Entry:
    return m.make("Pooling", m.value(), kernel=(3, 3), pad=(1, 1), pool_type=m.choice(("max", "max", "avg")))


def joined_channels(m: Maker) -> Entry:
    parts = [*m.pair(), m.value()]
    joined = m.make("Concat", *parts, num_args=len(parts), dim=1)
    if m.chance(0.3):
        m.ends.append(joined)
    return convolved(m, joined, m.choice(((1, 1), (3, 3))))


def of_channels(m: Maker) -> None:
    """Something for each channel."""
    x, kind = m.value(), m.choice(("avg", "max", "mean", "sum", "norm"))
    if kind in ("avg", "max"):
        made = m.make("Pooling", x, kernel=(1, 1), pool_type=kind, global_pool=True)
    else:
        made = m.make(kind, x, axis=(2, 3), keepdims=True)
    kind, channels = m.choice(("plain", "dense", "pointwise", "sigmoid")), m.shape[1]
    if kind == "dense":
        flat = m.make("FullyConnected", made, m.weight((channels, channels)), num_hidden=channels, no_bias=True)
        made = m.make("sigmoid", m.make("Reshape", flat, shape=(0, 0, 1, 1)))
    elif kind == "pointwise":
        made = convolved(m, made, (1, 1))
    elif kind == "sigmoid":
        made = m.make("sigmoid", made)
    m.small.append(made)


def attended(m: Maker) -> Entry | None:
    """One value three times: keys, queries and what is looked up."""
    n, channels, h, w = m.shape
    if channels > 64 or n * channels * channels * h * w > 1e6:
        return m.make("tanh", m.value())
    rows = m.make("Reshape", m.value(), shape=(0, 0, -1))
    near = m.make("softmax", m.make("batch_dot", rows, rows, transpose_b=True), axis=-1)
    if m.chance(0.3):
        m.ends.append(near)
    return m.make("reshape_like", m.make("batch_dot", near, rows), m.maps[0])


def turned(m: Maker) -> Entry:
    """The sum of two values with rows and columns exchanged, and back."""
    x, y = (m.make("transpose", e, axes=(0, 1, 3, 2)) for e in m.pair())
    made = m.make("elemwise_add", m.make("tanh", x), y)
    if m.chance(0.3):
        m.ends.append(made)
    return m.make("transpose", made, axes=(0, 1, 3, 2))


# --- of any shape


def unary(m: Maker) -> Entry:
    x, kind = m.value(), m.choice((*ACTIVATIONS, "leaky", "elu", "square", "clip", "scaled", "less", "erf", "copy",
                                      "BlockGrad"))
    if kind in ACTIVATIONS:
        return m.make("Activation", x, act_type=kind)
    if kind in ("leaky", "elu"):
        return m.make("LeakyReLU", x, act_type=kind)
    if kind == "square":
        return m.make("square", m.make("tanh", x))
    if kind == "clip":
        return m.make("clip", x, a_min=-0.7, a_max=0.9)
    if kind in ("scaled", "less"):
        return m.make("_mul_scalar" if kind == "scaled" else "_rminus_scalar", x, scalar=0.75)
    return m.make({"copy": "_copy"}.get(kind, kind), x)


def binary(m: Maker) -> Entry:
    return combined(m, *m.pair())


def combined(m: Maker, x: Entry, y: Entry) -> Entry:
    op = m.choice(("elemwise_add", "elemwise_add", "elemwise_sub", "elemwise_mul", "_maximum", "gate"))
    if op == "gate":
        op, y = "elemwise_mul", m.make("sigmoid", y)
    made = m.make(op, x, y)
    return m.make("Activation", made, act_type="relu") if m.chance(0.2) else made


def with_its_own(m: Maker, made: Entry) -> Entry:
    """A value and what it was made of, where that has its shape: the data of a convolution, say."""
    stack, found = [made], None
    while stack and found is None:
        sources = stack.pop().node.inputs
        found = next((e for e in sources if m.builder.shape(e) == m.shape and m.builder.dtype(e) == m.dtype), None)
        stack += reversed(sources)
    x = m.value() if found is None else found
    return combined(m, x, made) if m.chance(0.5) else combined(m, made, x)


def several(m: Maker) -> Entry:
    parts = [*m.pair(), m.value(), m.value()][: m.choice((3, 4))]
    return m.make("add_n", *parts, num_args=len(parts))


def quotient(m: Maker) -> Entry:
    x, y = m.pair()
    return m.make("elemwise_div", x, m.make("_plus_scalar", m.make("square", y), scalar=1.0))


def spread(m: Maker) -> Entry | None:
    """Something for each channel, row or for all, brought together with a map."""
    if not m.small:
        return None
    op = m.choice(("broadcast_mul", "broadcast_add", "broadcast_sub"))
    other = m.small[-1] if m.chance(0.5) else m.small[int(m.structure.random() * len(m.small))]
    return m.make(op, m.value(), other) if m.chance(0.7) else m.make(op, other, m.value())


def of_all(m: Maker) -> None:
    axes = tuple(range(len(m.shape)))
    m.small.append(m.make(m.choice(("mean", "max", "min")), m.value(), axis=axes, keepdims=True))


def of_lines(m: Maker) -> None:
    axis = m.choice((1, -1))
    m.small.append(m.make(m.choice(("mean", "sum", "max", "norm")), m.value(), axis=(axis,), keepdims=True))


def softmax(m: Maker) -> Entry:
    return m.make(m.choice(("softmax", "softmax", "log_softmax")), m.value(), axis=m.choice((1, -1)))


def normalized(m: Maker) -> Entry:
    x, channels, kind = m.value(), (m.shape[1],), m.choice(("batch", "batch", "batch", "layer", "instance", "l2"))
    if kind == "instance" and len(m.shape) > 2:
        return m.make("InstanceNorm", x, m.weight(channels), m.weight(channels), eps=0.1)
    if kind == "layer":
        last = (m.shape[-1],)
        return m.make("LayerNorm", x, m.weight(last), m.weight(last), axis=-1, eps=0.1)
    if kind == "l2":
        return m.make("L2Normalization", x, mode="instance", eps=0.1)
    wide = "float32" if m.dtype == "float16" else m.dtype
    learned = [m.weight(channels, wide) for _ in range(2)]
    again, which = m.chance(0.3), m.structure.random()
    known = [s for s in m.states if m.builder.shape(s[0]) == channels]
    states = known[int(which * len(known))] if known and again else [
        m.variable(channels, name, wide) for name in ("mean", "var")]
    m.states.append(states)
    return m.make("BatchNorm", x, *learned, *states, fix_gamma=m.chance(0.3), use_global_stats=m.chance(0.3), eps=0.1)


def shifted(m: Maker) -> Entry:
    """A value and its neighbours: one array read at several places for each element."""
    x, axis, size = m.value(), m.choice((1, -1)), 0
    size = m.shape[axis]
    if size < 2:
        return m.make("tanh", x)
    cut = [m.make("slice_axis", x, axis=axis, begin=b, end=e) for b, e in ((1, size), (0, 1))]
    moved = m.make("Concat", *cut, num_args=2, dim=axis % len(m.shape))
    return m.make("elemwise_add", moved, m.value()) if m.chance(0.7) else moved


def halves(m: Maker) -> Entry:
    """The halves of a value's channels, changed in different ways and joined the other way round."""
    x, size = m.value(), m.shape[1]
    if size % 2:
        return m.make("sigmoid", x)
    one, other = m.builder.make_all("SliceChannel", x, num_outputs=2, axis=1)
    if m.chance(0.5):
        one, other = m.make("elemwise_mul", one, other), m.make("elemwise_add", one, other)
    return m.make("Concat", other, one if m.chance(0.5) else m.make("tanh", one), num_args=2, dim=1)


def flipped(m: Maker) -> Entry:
    x, y = m.pair()
    return m.make("elemwise_add", m.make("reverse", x, axis=m.choice((1, len(m.shape) - 1))), y)


def of_weights(m: Maker) -> None:
    """A weight that something else reads too: a norm of it, or a scaled one beside it."""
    if m.weights:
        w = m.weights[int(m.structure.random() * len(m.weights))]
        m.ends.append(m.make("sum", m.make("square", w)) if m.chance(0.5) else m.make("_mul_scalar", w, scalar=0.5))


def of_states(m: Maker) -> None:
    """An auxiliary state that something else reads too."""
    if m.states:
        state = m.states[int(m.structure.random() * len(m.states))][m.choice((0, 0, 1))]
        line = m.make("Reshape", state, shape=(1, -1, *[1] * (len(m.shape) - 2)))
        if m.builder.dtype(line) == m.dtype:
            m.small.append(line)


# --- of matrices


def dense(m: Maker) -> Entry:
    width = m.shape[1]
    return m.make("FullyConnected", m.value(), m.weight((width, width)), m.weight((width,)), num_hidden=width)


def dense_of_itself(m: Maker) -> Entry:
    """A fully connected layer, or a product, whose weight is its data or was made of them, and back."""
    x, y = m.pair()
    rows, width = m.shape
    if m.chance(0.5):
        near = m.make("FullyConnected", x, y, num_hidden=rows, no_bias=True)
    else:
        near = m.make("dot", x, y, transpose_b=True)
    if m.chance(0.5):
        near = m.make("softmax", near, axis=-1)
        if m.chance(0.3):
            m.ends.append(near)
    else:
        near = m.make("_mul_scalar", near, scalar=1.0 / rows / width)
    return m.make("dot", near, m.value())


def squared(m: Maker) -> Entry:
    x = m.value()
    rows, width = m.shape
    square = m.make("_mul_scalar", m.make("dot", x, x, transpose_a=True), scalar=1.0 / rows / width)
    return m.make("elemwise_add", m.make("dot", x, square), m.value()) if m.chance(0.5) else m.make("dot", x, square)


def sorted_rows(m: Maker) -> Entry:
    return m.make("sort", m.value(), axis=-1)


def looked_up(m: Maker) -> Entry:
    """Rows of a value, some of them several times."""
    rows = m.shape[0]
    places = m.make("_arange", start=0, stop=rows, dtype=m.dtype)
    scaled = m.make("floor", m.make("_mul_scalar", places, scalar=0.5))
    return m.make("take", m.value(), scaled, axis=0)


def recurrent(m: Maker) -> Entry:
    """The outputs of all steps; the states begin with a value's first step."""
    width = m.shape[2]
    mode = m.choice(("lstm", "lstm", "gru", "rnn_tanh"))
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1}[mode]
    x = m.value()
    first = m.make("tanh", m.make("slice_axis", m.value(), axis=0, begin=0, end=1))
    states = [first, first] if mode == "lstm" else [first]
    made = m.builder.make_all("RNN", x, m.weight((gates * (2 * width * width + 2 * width),)), *states, state_size=width,
                              num_layers=1, mode=mode, state_outputs=True)
    if m.chance(0.5):
        m.small.append(made[1])  # the last state, beside every step
    return made[0]


ANYWHERE: tuple[Rule, ...] = (unary, unary, unary, binary, binary, several, quotient, spread, spread,
                              spread, of_all, of_lines, softmax, normalized, normalized, shifted, halves, flipped,
                              of_weights, of_states)
OF_IMAGES: tuple[Rule, ...] = (*[convolution] * 14, dilated, depthwise, depthwise, *[bottleneck] * 4, grouped,
                               transposed_convolution, strided, pooled, pooled, joined_channels, joined_channels,
                               of_channels, of_channels, attended, turned, *ANYWHERE)
OF_MATRICES: tuple[Rule, ...] = (dense, dense, dense, dense_of_itself, dense_of_itself, squared, sorted_rows, looked_up,
                                 *ANYWHERE)
FAMILIES = (*[(OF_IMAGES, IMAGES)] * 6, *[(OF_MATRICES, MATRICES)] * 2, (ANYWHERE, LONG), (ANYWHERE, LONG),
            ((recurrent, recurrent, recurrent, *ANYWHERE), STEPS))


def network(seed: int) -> Network:
    """The network of that seed."""
    structure, sizes = np.random.default_rng(seed // SIZES), np.random.default_rng(seed)
    rules, shapes = FAMILIES[int(structure.integers(len(FAMILIES)))]
    mode = MODES[int(structure.integers(len(MODES)))]
    m = Maker(structure, str(structure.choice(("float32",) * 8 + ("float64", "float16"))))
    steps = int(structure.integers(3, 8))
    m.shape = shapes[int(sizes.integers(len(shapes)))]
    while rules is OF_IMAGES and math.prod(m.shape) * m.shape[1] * 9 * steps > MOST_WORK:
        m.shape = shapes[int(sizes.integers(len(shapes)))]
    m.maps.append(m.variable(m.shape, "x"))
    if m.chance(0.3):
        m.maps.append(m.make("tanh", m.variable(m.shape, "x")))
    if m.chance(0.5):  # so that the first reader's data are an array of the arena
        m.maps.append(m.make("_mul_scalar", m.maps[0], scalar=0.5))
    for _ in range(steps):
        made = m.choice(rules)(m)
        own, again = m.chance(0.5), m.chance(0.6)
        if made is None and again:
            made = spread(m)
        if made is not None:
            m.maps.append(with_its_own(m, made) if own else made)
    return Network(seed, finished(m), mode, requests(m, mode))


def finished(m: Maker) -> Graph:
    """The graph of all that nobody reads, and of some of what somebody does; now and then of one value twice."""
    made = [e for e in (*m.maps, *m.small, *m.ends) if not e.node.is_variable]
    read = {source for e in made for source in e.node.inputs}
    outputs = [e for e in dict.fromkeys(made) if (e not in read) | m.chance(0.25)] or [m.make("tanh", m.maps[0])]
    if m.chance(0.1):
        outputs.append(outputs[0])
    if m.chance(0.1):
        outputs.append(m.maps[0])
    return m.builder.finish(outputs, [Sink("output", e.node.name) for e in outputs])


def requests(m: Maker, mode: str) -> dict[str, str]:
    wanted = [m.choice(("write", "write", "write", "add", "null")) for _ in range(m.count)]
    if mode == "inference":
        return {}
    return {f"{prefix}{i + 1}": wanted[i] for i in range(m.count) for prefix in ("w", "x")}


def main(arguments: Sequence[str]) -> int:
    from reader_checks import Report, report

    from mxc.compiler.targets.cpu.build import worker

    worker.SHARE = sys.maxsize  # kernels that another process is started for: a search may take long, on one core
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="networks (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    asked = parser.parse_args(arguments)
    began, wrong, seen = time.monotonic(), 0, Report()
    for seed in range(asked.seed, asked.seed + asked.count):
        text = report(seed, seen)
        if text:
            wrong += 1
            print(text, flush=True)
        if (seed + 1 - asked.seed) % 500 == 0:
            print(f"{seed + 1 - asked.seed} networks, {wrong} wrong, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{asked.count} networks from seed {asked.seed} on, {wrong} wrong, {time.monotonic() - began:.0f} s\n{seen}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
