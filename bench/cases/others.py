"""Everything but image networks as symbols: an LSTM, a BERT-base layer, fused chains, matrix products, a tiny graph."""
from __future__ import annotations

import mxc as mx
from mxc.symbol import Symbol

sym = mx.sym
TOKENS, WIDTH, HEADS, INNER = 128, 768, 12, 3072


def lstm() -> Symbol:
    """One fused layer of 200 units; `data` (35, 32, 200), states (1, 32, 200)."""
    return sym.RNN(sym.Variable("data"), parameters=sym.Variable("lstm_parameters"), state=sym.Variable("state"),
                   state_cell=sym.Variable("state_cell"), mode="lstm", state_size=200, num_layers=1, name="lstm")


def _dense(net: Symbol, units: int, name: str) -> Symbol:
    return sym.FullyConnected(net, num_hidden=units, flatten=False, name=name)


def bert_layer() -> Symbol:
    """Self-attention and the two dense layers behind it (J. Devlin et al. 2018); `data` (N, 128, 768)."""
    data = sym.Variable("data")

    def heads(net: Symbol) -> Symbol:
        net = sym.transpose(sym.Reshape(net, shape=(0, 0, HEADS, WIDTH // HEADS)), axes=(0, 2, 1, 3))
        return sym.Reshape(net, shape=(-1, TOKENS, WIDTH // HEADS))

    query, key, value = (heads(_dense(data, WIDTH, name)) for name in ("query", "key", "value"))
    weights = sym.softmax(sym.batch_dot(query, key, transpose_b=True) * (WIDTH // HEADS) ** -0.5, axis=-1)
    net = sym.Reshape(sym.batch_dot(weights, value), shape=(-1, HEADS, TOKENS, WIDTH // HEADS))
    net = sym.Reshape(sym.transpose(net, axes=(0, 2, 1, 3)), shape=(0, 0, WIDTH))
    net = sym.LayerNorm(data + _dense(net, WIDTH, "out"), name="norm0")
    inner = sym.LeakyReLU(_dense(net, INNER, "inner"), act_type="gelu")
    return sym.LayerNorm(net + _dense(inner, WIDTH, "outer"), name="norm1")


def chain() -> Symbol:
    a, x, b, c, d = (sym.Variable(name) for name in "axbcd")
    return sym.relu(a * x + b) * sym.sigmoid(c) + d


def gelu() -> Symbol:
    """By the error function, one operator."""
    return sym.LeakyReLU(sym.Variable("x"), act_type="gelu")


def gelu_tanh() -> Symbol:
    """By its usual approximation, written out."""
    x = sym.Variable("x")
    return 0.5 * x * (1 + sym.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def softmax() -> Symbol:
    return sym.softmax(sym.Variable("rows"), axis=-1)


def layernorm() -> Symbol:
    return sym.LayerNorm(sym.Variable("rows"), name="norm")


def sgemm() -> Symbol:
    return sym.dot(sym.Variable("left"), sym.Variable("right"))


def tiny() -> Symbol:
    """Ten operators on 8x8 arrays: next to no work, so what is measured is what a call costs."""
    x, y = sym.Variable("x"), sym.Variable("y")
    net = sym.tanh(x) * y + x
    net = sym.sigmoid(sym.dot(net, y))
    net = sym.relu(net * 0.5 + 0.1)
    return sym.softmax(net + x, axis=-1)
