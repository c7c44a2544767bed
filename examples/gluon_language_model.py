"""A language model with Gluon: an LSTM learns the characters of CONTRIBUTING.md, in stretches whose states go on from
one to the next, and then writes.

    python examples/gluon_language_model.py
"""
from __future__ import annotations

import math
from pathlib import Path

import numpy as np

import mxc as mx
from mxc import autograd, gluon
from mxc.gluon import nn, rnn

BATCH, STEPS, HIDDEN, EPOCHS = 8, 35, 128, 10
TEXT = Path(__file__).parents[1] / "CONTRIBUTING.md"


class Model(gluon.HybridBlock):
    """Scores of the next character for each character; states go in and out."""

    def __init__(self, characters: int):
        super().__init__()
        with self.name_scope():
            self.embedding = nn.Embedding(characters, 32)
            self.lstm = rnn.LSTM(HIDDEN, input_size=32)
            self.scores = nn.Dense(characters, flatten=False, in_units=HIDDEN)

    def hybrid_forward(self, F, x, states):
        out, states = self.lstm(self.embedding(x), states)
        return self.scores(out), states


def write(model: Model, characters: list[str], begin: str, count: int) -> str:
    """`begin`, and the most likely characters behind it."""
    text, states = begin, model.lstm.begin_state(1)
    given = [characters.index(c) for c in begin]
    for _ in range(count):
        scores, states = model(mx.nd.array(given).reshape((-1, 1)), states)
        given = [int(scores[-1, 0].argmax(axis=0).asscalar())]
        text += characters[given[0]]
    return text


def main() -> None:
    mx.random.seed(1)
    text = TEXT.read_text()
    characters = sorted(set(text))
    numbers = np.array([characters.index(c) for c in text])
    rows = len(numbers) // BATCH
    columns = mx.nd.array(numbers[:rows * BATCH].reshape(BATCH, rows).T)  # (rows, BATCH): a stretch of text in each

    model = Model(len(characters))
    model.initialize(mx.init.Xavier())
    model.hybridize()
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 0.01})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    for epoch in range(EPOCHS):
        states, total, count = model.lstm.begin_state(BATCH), 0.0, 0
        for begin in range(0, rows - STEPS - 1, STEPS):
            states = [state.detach() for state in states]  # gradients end where a stretch begins
            data, label = columns[begin:begin + STEPS], columns[begin + 1:begin + STEPS + 1]
            with autograd.record():
                scores, states = model(data, states)
                loss = loss_of(scores.reshape((-1, len(characters))), label.reshape((-1,)))
            loss.backward()
            gluon.utils.clip_global_norm([p.grad() for p in model.collect_params().values()], STEPS * BATCH)
            trainer.step(STEPS * BATCH)
            total, count = total + loss.mean().asscalar(), count + 1
        print(f"epoch {epoch + 1}: perplexity {math.exp(total / count):.2f}")
    print(f"it writes: {write(model, characters, 'The ', 60)!r}")


if __name__ == "__main__":
    main()
