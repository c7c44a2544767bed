"""Train LeNet on digits, save it, compile it, run it on an image, and print what happened.

Run it as `make demo`, or as `python examples/demo.py` where mxc and scikit-learn are installed.
"""
from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from lenet import accuracy, digits, lenet, train

import mxc as mx

FOLDER = Path(__file__).resolve().parents[1] / "build" / "demo"


def main() -> None:
    images, labels, test_images, test_labels = digits()
    symbol = lenet()
    print(f"training LeNet on {len(images)} digits (a first run compiles the kernels) ...", flush=True)
    start = time.perf_counter()
    executor, losses = train(symbol, images, labels, epochs=10)
    seconds = time.perf_counter() - start
    parameters = {n: a for n, a in executor.arg_dict.items() if n not in ("data", "softmax_label")}
    right = accuracy(symbol, parameters, test_images, test_labels)
    print(f"trained LeNet for {len(losses)} steps in {seconds:.1f} s: loss {losses[0]:.3f} -> {losses[-1]:.3f}, "
          f"test accuracy {right:.1%}")

    FOLDER.mkdir(parents=True, exist_ok=True)
    prefix = FOLDER / "lenet"
    symbol.save(f"{prefix}-symbol.json")
    mx.nd.save(f"{prefix}-0010.params", {f"arg:{n}": a for n, a in parameters.items()})
    np.save(FOLDER / "digit.npy", test_images[:1])
    print(f"saved {prefix}-symbol.json, {prefix.name}-0010.params and digit.npy, which stay there")

    loaded = mx.sym.load(f"{prefix}-symbol.json")
    arrays = {k.removeprefix("arg:"): v for k, v in mx.nd.load(f"{prefix}-0010.params").items()}
    model = loaded.simple_bind(mx.cpu(), grad_req="null", data=(1, 1, 8, 8))
    model.copy_params_from(arrays)
    compiled = model.compiled()
    plan = compiled.plan
    print(f"compiled for inference: {plan.nodes} nodes -> {len(plan.steps_of('forward'))} kernels "
          f"in {compiled.seconds * 1e3:.0f} ms ({compiled.library.hits} from the cache)")
    print("  " + "\n  ".join(step.label for step in plan.steps_of("forward")))
    print(f"memory: {plan.unplanned_bytes} bytes of activations before planning, {plan.arena_bytes} after")

    image, label = test_images[:1], int(test_labels[0])
    model.forward(is_train=False, data=image)
    start = time.perf_counter()
    probabilities = model.forward(is_train=False, data=image)[0].asnumpy()[0]
    print(f"ran one image in {(time.perf_counter() - start) * 1e6:.0f} us; it shows a {label}; top predictions: "
          + ", ".join(f"{i} ({probabilities[i]:.1%})" for i in probabilities.argsort()[::-1][:3]))
    program, folder = (os.path.relpath(path) for path in (Path(sys.executable).parent / "mxc", FOLDER))
    print("\n".join(["what to try next:", *(f"  {line}" for line in next_commands(program, folder))]))


def next_commands(program: str, folder: str) -> list[str]:
    """Commands that work with the files of the demo. program: mxc."""
    model, values = f"{folder}/lenet-symbol.json", f"--input data=@{folder}/digit.npy"
    return [f"{program} inspect {model}", f"{program} run {model} {values} --top 3",
            f"{program} verify {model} {values}",
            f"{program} compile {model} --shape data=1,1,8,8 -o {folder}/lenet.mxc",
            f"{program} bench {folder}/lenet.mxc"]


if __name__ == "__main__":
    main()
