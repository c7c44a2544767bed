"""Networks on sequences: a language model of two LSTM layers, and an encoder as BERT has it."""
from __future__ import annotations

from zoo.parts import dense

import mxc as mx
from mxc.symbol import Symbol

sym = mx.sym
HEADS = 4


def language_model(words: int = 10000, width: int = 200) -> Symbol:
    """W. Zaremba et al. 2014; `data` and `softmax_label` (steps, N)."""
    rows = sym.Embedding(sym.Variable("data"), input_dim=words, output_dim=width)
    states = [sym.zeros(shape=(2, 0, width)) for _ in range(2)]
    net = sym.RNN(rows, sym.Variable("parameters"), *states, mode="lstm", num_layers=2, state_size=width)
    net = dense(sym.Reshape(net, shape=(-1, width)), words)
    return sym.SoftmaxOutput(net, sym.Reshape(sym.Variable("softmax_label"), shape=(-1,)))


def encoder(words: int = 1000, width: int = 64, layers: int = 2) -> Symbol:
    """J. Devlin et al. 2018, without what it is trained with: the first token's state.

    `data` and `segments` are (N, steps), `lengths` (N,), `positions` (steps, width).
    """
    net = sym.Embedding(sym.Variable("data"), input_dim=words, output_dim=width)
    net = net + sym.Embedding(sym.Variable("segments"), input_dim=2, output_dim=width)
    net = sym.Dropout(sym.LayerNorm(sym.broadcast_add(net, sym.expand_dims(sym.Variable("positions"), axis=0))), p=0.1)
    lengths = sym.Variable("lengths")
    for _ in range(layers):
        net = sym.LayerNorm(net + sym.Dropout(attention(net, lengths, width), p=0.1))
        inner = sym.LeakyReLU(dense(net, 4 * width, flatten=False), act_type="gelu")
        net = sym.LayerNorm(net + sym.Dropout(dense(inner, width, flatten=False), p=0.1))
    first = sym.Reshape(sym.slice_axis(net, axis=1, begin=0, end=1), shape=(0, -1))
    return sym.Activation(dense(first, width), act_type="tanh")


def attention(net: Symbol, lengths: Symbol, width: int) -> Symbol:
    """Each token looks at those of its sequence; `lengths` says how many there are."""
    def heads(part: Symbol) -> Symbol:
        part = sym.transpose(sym.Reshape(part, shape=(0, 0, HEADS, -1)), axes=(0, 2, 1, 3))
        return sym.Reshape(part, shape=(-3, 0, 0))

    query, key, value = (heads(dense(net, width, flatten=False)) for _ in range(3))
    scores = sym.batch_dot(query, key, transpose_b=True) * (width // HEADS) ** -0.5
    steps = sym.transpose(scores, axes=(2, 0, 1))  # SequenceMask wants the steps first and the sequences second
    counts = sym.repeat(lengths, repeats=HEADS, axis=0)
    steps = sym.SequenceMask(steps, counts, use_sequence_length=True, value=-1e9)
    weights = sym.Dropout(sym.softmax(sym.transpose(steps, axes=(1, 2, 0)), axis=-1), p=0.1)
    joined = sym.Reshape(sym.batch_dot(weights, value), shape=(-4, -1, HEADS, 0, 0))
    joined = sym.Reshape(sym.transpose(joined, axes=(0, 2, 1, 3)), shape=(0, 0, -3))
    return dense(joined, width, flatten=False)
