"""Samples per second of Module.fit, and per second of CPU: mxc and MXNet, and how many times as many mxc trains on.

    python bench/train.py [--mxnet PYTHON] [--threads 1 2] [--rounds N] [--cases WORD ...]

Both run the same program, in processes of their own, by turns; a number is the best epoch of all rounds, after one that
compiles. The data are random, and in memory.
"""
from __future__ import annotations

from harness.programs import answer, arguments

# A program for mxc and MXNet alike: `mx` is the module, `case` the name of the network.
PROGRAM = """
import json, logging, sys, time
import numpy as np
sym = mx.sym

def mlp():
    x = sym.var("data")
    for i, n in enumerate((128, 64)):
        x = sym.Activation(sym.FullyConnected(x, num_hidden=n, name=f"fc{i}"), act_type="relu")
    return sym.FullyConnected(x, num_hidden=10, name="last"), (784,), 64, 12800

def lenet():
    x = sym.var("data")
    for i, n in enumerate((20, 50)):
        x = sym.Activation(sym.Convolution(x, kernel=(5, 5), num_filter=n, name=f"conv{i}"), act_type="tanh")
        x = sym.Pooling(x, pool_type="max", kernel=(2, 2), stride=(2, 2))
    x = sym.Activation(sym.FullyConnected(sym.Flatten(x), num_hidden=500, name="fc"), act_type="tanh")
    return sym.FullyConnected(x, num_hidden=10, name="last"), (1, 28, 28), 64, 1920

def resnet18():
    def unit(x, name, filters, stride, same):
        def normed(x, name, n, k, s):
            x = sym.Convolution(x, kernel=(k, k), num_filter=n, stride=(s, s), pad=(k // 2, k // 2), no_bias=True,
                                name=name)
            return sym.BatchNorm(x, fix_gamma=False, name=name + "_bn")
        y = sym.Activation(normed(x, name + "a", filters, 3, stride), act_type="relu")
        y = normed(y, name + "b", filters, 3, 1)
        return sym.Activation(y + (x if same else normed(x, name + "c", filters, 1, stride)), act_type="relu")
    x = sym.Convolution(sym.var("data"), kernel=(7, 7), stride=(2, 2), pad=(3, 3), num_filter=64, no_bias=True,
                        name="first")
    x = sym.Activation(sym.BatchNorm(x, fix_gamma=False, name="first_bn"), act_type="relu")
    x = sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")
    for i, n in enumerate((64, 128, 256, 512)):
        x = unit(unit(x, f"s{i}u0", n, 1 if i == 0 else 2, i == 0), f"s{i}u1", n, 1, True)
    x = sym.Flatten(sym.Pooling(x, global_pool=True, pool_type="avg", kernel=(1, 1)))
    return sym.FullyConnected(x, num_hidden=10, name="last"), (3, 64, 64), 16, 64

def lstm(length):
    words = sym.Embedding(sym.var("data"), input_dim=1000, output_dim=128, name="embed")
    outputs, _ = mx.rnn.LSTMCell(128, prefix="lstm_").unroll(length, inputs=words, merge_outputs=True)
    scores = sym.FullyConnected(sym.Reshape(outputs, shape=(-1, 128)), num_hidden=1000, name="last")
    label = sym.Reshape(sym.var("softmax_label"), shape=(-1,))
    return sym.SoftmaxOutput(scores, label, name="softmax"), ("data",), ("softmax_label",)

draw, metric = np.random.RandomState(0), "acc"
if case == "lstm":
    rows, metric = 640, mx.metric.Perplexity(0)
    sentences = [list(draw.randint(1, 1000, length)) for length in (10, 20, 30, 40) for _ in range(rows // 4)]
    data = mx.rnn.BucketSentenceIter(sentences, 32, buckets=[10, 20, 30, 40], invalid_label=0)
    module = mx.mod.BucketingModule(lstm, data.default_bucket_key, context=mx.cpu())
else:
    out, row, batch, rows = {"mlp": mlp, "lenet": lenet, "resnet18": resnet18}[case]()
    data = mx.io.NDArrayIter(draw.rand(rows, *row).astype("float32"), draw.randint(0, 10, rows).astype("float32"),
                             batch)
    module = mx.mod.Module(sym.SoftmaxOutput(out, name="softmax"), context=mx.cpu())
ends = []

def note(*_):
    mx.nd.waitall()
    ends.append((time.perf_counter(), time.process_time()))

module.fit(data, eval_metric=metric, num_epoch=5, optimizer="sgd", initializer=mx.init.Xavier(),
           optimizer_params={"learning_rate": 0.01, "momentum": 0.9}, epoch_end_callback=note)
print(json.dumps([rows / min(b[i] - a[i] for a, b in zip(ends, ends[1:])) for i in (0, 1)]))
"""
CASES = ("mlp", "lenet", "resnet18", "lstm")


def main() -> None:
    args = arguments(__doc__, CASES, [1, 2])
    theirs = "mxnet" in args.peers
    print(f"{'':12}{'threads':>8}{'mxc /s':>12}{'MXNet':>12}{'x':>7}{'mxc /CPU s':>14}{'MXNet':>12}{'x':>7}")
    for case in args.cases:
        for threads in args.threads:
            best = {peer: [0.0, 0.0] for peer in args.peers}
            for _ in range(args.rounds):
                for peer, python in args.peers.items():
                    best[peer] = [*map(max, best[peer], answer(python, peer, PROGRAM, threads, case=case))]
            columns = ""
            for i, width in ((0, 12), (1, 14)):
                other = f"{best['mxnet'][i]:12.0f}{best['mxc'][i] / best['mxnet'][i]:7.2f}" if theirs else f"{'':19}"
                columns += f"{best['mxc'][i]:{width}.0f}{other}"
            print(f"{case:12}{threads:8}{columns}", flush=True)


if __name__ == "__main__":
    main()
