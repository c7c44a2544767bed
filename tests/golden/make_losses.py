"""Write losses.json: the first losses of examples/lenet.py's networks when MXNet 1.9.1 trains them.

    make_losses.py PYTHON      PYTHON: one that has the real MXNet; this one has scikit-learn, which holds the digits

The example's own program runs there, with MXNet in the place of mxc: the same start values, batches and steps.
"""
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
STEPS = 50
sys.path.insert(0, str(HERE.parents[1] / "examples"))


def ask(path):
    """Print the losses as JSON: what MXNet's Python runs. path: an .npz with images and labels."""
    sys.modules["mxc"] = importlib.import_module("mxnet")
    lenet = importlib.import_module("lenet")
    with np.load(path) as data:
        images, labels = data["images"], data["labels"]
    epochs = -(-STEPS // (len(images) // lenet.BATCH))
    losses = {name: lenet.train(make(), images, labels, epochs)[1][:STEPS]
              for name, make in (("lenet", lenet.lenet), ("perceptron", lenet.perceptron))}
    print(json.dumps(losses))


def main(python):
    lenet = importlib.import_module("lenet")
    images, labels = lenet.digits()[:2]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.npz"
        np.savez(path, images=images, labels=labels)
        answer = subprocess.run([python, __file__, "--ask", str(path)], capture_output=True, text=True, check=True)
    losses = json.loads(answer.stdout.splitlines()[-1])
    (HERE / "losses.json").write_text(json.dumps(losses, indent=0) + "\n")


if __name__ == "__main__":
    ask(sys.argv[2]) if sys.argv[1] == "--ask" else main(sys.argv[1])
