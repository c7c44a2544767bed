"""An LSTM learns to predict the next character of the LICENSE beside this folder. Its lines have many lengths: they go
into buckets, BucketingModule makes a network for each length, and all of these share the parameters.

    python examples/bucketing_lstm.py
"""
from __future__ import annotations

import random
from pathlib import Path

import numpy as np

import mxc as mx

BATCH, WIDTH, BUCKETS = 16, 64, [30, 55, 80]
FILL = 0  # the character that fills a line up to its bucket's length
START = "Contri"


def main() -> None:
    random.seed(0)
    np.random.seed(0)
    mx.random.seed(0)
    text = (Path(__file__).parents[1] / "LICENSE").read_text()
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) > 3]
    sentences, vocabulary = mx.rnn.encode_sentences(lines, invalid_label=FILL, start_label=1, invalid_key="\n")
    train = mx.rnn.BucketSentenceIter(sentences, BATCH, buckets=BUCKETS, invalid_label=FILL)
    characters = len(vocabulary)

    def network(length: int) -> tuple[mx.sym.Symbol, tuple[str, ...], tuple[str, ...]]:
        """The network for lines of one length, with the names of its data and labels."""
        embedded = mx.sym.Embedding(mx.sym.var("data"), input_dim=characters, output_dim=WIDTH, name="embed")
        outputs, _ = mx.rnn.LSTMCell(WIDTH, prefix="lstm_").unroll(length, inputs=embedded, merge_outputs=True)
        scores = mx.sym.FullyConnected(mx.sym.Reshape(outputs, shape=(-1, WIDTH)), num_hidden=characters, name="last")
        label = mx.sym.Reshape(mx.sym.var("softmax_label"), shape=(-1,))
        return mx.sym.SoftmaxOutput(scores, label, use_ignore=True, ignore_label=FILL, name="softmax"), \
            ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(network, default_bucket_key=train.default_bucket_key)
    perplexity = mx.metric.Perplexity(ignore_label=FILL)  # how many characters it wavers between
    history = []
    module.fit(train, num_epoch=20, eval_metric=perplexity, initializer=mx.init.Xavier(), optimizer="adam",
               optimizer_params={"learning_rate": 0.01},
               epoch_end_callback=lambda *_: history.append(perplexity.get_global()[1]))
    print(f"{len(sentences)} lines of {characters} characters: perplexity {history[0]:.1f} in the first epoch, "
          f"{history[-1]:.1f} in the last")

    # Let it end a word: a network for one line gives the most probable next character, again and again.
    length = BUCKETS[0]
    writer = mx.mod.BucketingModule(network, default_bucket_key=length)
    writer.bind([("data", (1, length))], [("softmax_label", (1, length))], for_training=False)
    writer.set_params(*module.get_params())
    names = {number: character for character, number in vocabulary.items()}
    line = START
    while len(line) < length and not line.endswith(" "):
        row = np.full((1, length), FILL)
        row[0, :len(line)] = [vocabulary[character] for character in line]
        writer.forward(mx.io.DataBatch([mx.nd.array(row)], None, bucket_key=length, provide_data=writer.data_shapes),
                       is_train=False)
        line += names[int(writer.get_outputs()[0].asnumpy()[len(line) - 1].argmax())]
    print(f"it goes on after {START!r}: {line!r}")


if __name__ == "__main__":
    main()
