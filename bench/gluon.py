"""Training steps and predictions per second with Gluon: mxc, MXNet and torch, hybridised (torch: compiled) or not, and
how many times as many mxc does.

    python bench/gluon.py [--mxnet PYTHON] [--threads 1 2] [--rounds N] [--cases WORD ...]

All run the same networks, in processes of their own, by turns; a number is the best second of CPU time of all rounds.
The data are random, and in memory. A step is forward, backward and the update of a Trainer.
"""
from __future__ import annotations

from cases.gluon import PROGRAM, TORCH
from harness.environments import asked
from harness.programs import answer, arguments

CASES = ("mlp", "resnet18", "lstm", "resnet50")


def main() -> None:
    args = arguments(__doc__, CASES, [1])
    torch = asked("torch")
    if torch:
        args.peers["torch"] = torch
    others = [peer for peer in args.peers if peer != "mxc"]
    print(f"{'':12}{'':12}{'threads':>8}{'mxc /CPU s':>14}" + "".join(f"{peer:>12}{'x':>7}" for peer in others))
    for case in args.cases:
        for hybrid in (True, False):
            for threads in args.threads:
                best = dict.fromkeys(args.peers, 0.0)
                for _ in range(args.rounds):
                    for peer, python in args.peers.items():
                        program = TORCH if peer == "torch" else PROGRAM
                        best[peer] = max(best[peer], answer(python, peer, program, threads, case=case, hybrid=hybrid))
                columns = "".join(f"{best[peer]:12.1f}{best['mxc'] / best[peer]:7.2f}" for peer in others)
                print(f"{case:12}{'hybridised' if hybrid else 'eager':12}{threads:8}{best['mxc']:14.1f}{columns}",
                      flush=True)


if __name__ == "__main__":
    main()
