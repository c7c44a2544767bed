"""One peer in a process of its own: reads requests from stdin, a line each, answers on stdout.

    worker.py PEER            the first answer is `ready CASE ...` or `missing REASON`
    time CASE                 -> seconds of one run
    sample CASE               -> 64 values of the result, spread over it
"""
from __future__ import annotations

import sys
import time

import numpy as np


def main(peer: str) -> None:
    answer = sys.stdout
    sys.stdout = sys.stderr  # what a library prints must not be taken for an answer
    try:
        import fusion_cases

        cases = fusion_cases.make(peer)
    except ImportError as error:
        print(f"missing {error}", file=answer, flush=True)
        return
    print("ready", *cases, file=answer, flush=True)
    for line in sys.stdin:
        command, case = line.split()
        start = time.perf_counter()
        result = cases[case]()
        seconds = time.perf_counter() - start
        if command == "time":
            print(seconds, file=answer, flush=True)
        else:
            values = fusion_cases.as_array(result).ravel()
            print(*values[np.linspace(0, values.size - 1, 64).astype(int)], file=answer, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
