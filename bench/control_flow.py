"""Recurrent layers by `foreach` over 100 steps, and the same unrolled: mxc, MXNet, and how many times as fast mxc is.

    python bench/control_flow.py [--mxnet PYTHON] [--threads 1 2] [--rounds N] [--cases WORD ...]

Both run the same program, in processes of their own, by turns; a number is the least CPU time of all rounds, in
milliseconds of a forward run, and of forward and backward; and the seconds from the symbol to the end of the first
forward and backward, with what a run before has left in the caches.
"""
from __future__ import annotations

from harness.programs import answer, arguments

# A program for mxc and MXNet alike: `mx` is the module, `case` the cell, `looped` whether it is in a loop.
PROGRAM = """
import json, time
import numpy as np
sym, steps, batch, size = mx.sym, 100, 32, 128
parts = 4 if case == "lstm" else 1
w, u, b = sym.var("w"), sym.var("u"), sym.var("b")

def cell(x, states):
    gates = sym.FullyConnected(x, weight=w, bias=b, num_hidden=parts * size) + sym.FullyConnected(
        states[0], weight=u, num_hidden=parts * size, no_bias=True)
    if parts == 1:
        hidden = sym.tanh(gates)
        return hidden, [hidden]
    i, f, c, o = sym.split(gates, num_outputs=4, axis=1)
    memory = sym.sigmoid(f) * states[1] + sym.sigmoid(i) * sym.tanh(c)
    hidden = sym.sigmoid(o) * sym.tanh(memory)
    return hidden, [hidden, memory]

states = [sym.var("h"), sym.var("c")][:2 if case == "lstm" else 1]
begin = time.perf_counter()
if looped:
    outputs, _ = sym.contrib.foreach(cell, sym.var("x"), states)
else:
    made = []
    for part in sym.split(sym.var("x"), num_outputs=steps, axis=0, squeeze_axis=1):
        output, states = cell(part, states)
        made.append(output)
    outputs = sym.stack(*made, axis=0)
shapes = {"x": (steps, batch, size), "h": (batch, size), "c": (batch, size)}
shapes = {name: shape for name, shape in shapes.items() if name in outputs.list_arguments()}

def bound(train):
    made = outputs.simple_bind(mx.cpu(), grad_req="write" if train else "null", **shapes)
    draw = np.random.RandomState(0)
    for name, array in made.arg_dict.items():
        array[:] = draw.uniform(-0.1, 0.1, array.shape)
    return made

infer, train, head = bound(False), bound(True), mx.nd.array(np.ones((steps, batch, size)))

def forward():
    infer.forward(is_train=False)[0].wait_to_read()

def step():
    train.forward(is_train=True)
    train.backward(head)
    mx.nd.waitall()

step()
first = time.perf_counter() - begin
forward()

def least(run):
    best = float("inf")
    for _ in range(12):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best * 1e3

print(json.dumps([least(forward), least(step), first]))
"""
CASES = ("rnn", "lstm")


def main() -> None:
    args = arguments(__doc__, CASES, [1])
    theirs = "mxnet" in args.peers
    print(f"{'':16}{'threads':>8}" + "".join(f"{f'mxc {what}':>14}{'MXNet':>10}{'x':>7}"
                                             for what in ("forward ms", "step ms", "first s")))
    for case in args.cases:
        for looped in (True, False):
            for threads in args.threads:
                best = {peer: [float("inf")] * 3 for peer in args.peers}
                for _ in range(args.rounds):
                    for peer, python in args.peers.items():
                        made = answer(python, peer, PROGRAM, threads, case=case, looped=looped)
                        best[peer] = [*map(min, best[peer], made)]
                columns = ""
                for i, ours in enumerate(best["mxc"]):
                    other = f"{best['mxnet'][i]:10.2f}{best['mxnet'][i] / ours:7.2f}" if theirs else f"{'':17}"
                    columns += f"{ours:14.2f}{other}"
                print(f"{case:5}{'foreach' if looped else 'unrolled':11}{threads:8}{columns}", flush=True)


if __name__ == "__main__":
    main()
