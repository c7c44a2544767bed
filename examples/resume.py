"""A training run that goes on where it stopped: run it again with the same folder after Ctrl-C, a crash, or for more
epochs. What it ends with is, bit for bit, what a run without a break ends with.

    python examples/resume.py FOLDER --epochs 3
    python examples/resume.py FOLDER --epochs 6      # goes on with epoch 4
"""
from __future__ import annotations

import argparse
import hashlib
import warnings
from pathlib import Path

from lenet import BATCH, digits, perceptron

import mxc as mx


def last_epoch(prefix: Path) -> int:
    """The epoch of the newest checkpoint, 0 without one. Of a checkpoint's files the parameters come last, and each
    appears whole or not at all: where they are, the checkpoint is complete."""
    found = prefix.parent.glob(f"{prefix.name}-[0-9][0-9][0-9][0-9].params")
    return max((int(path.stem[-4:]) for path in found), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for the checkpoints")
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    prefix = args.folder / "digits"
    begin = last_epoch(prefix)
    print(f"goes on after epoch {begin}" if begin else "starts anew")

    images, labels, _, _ = digits()  # in an order that is always the same, so a resumed run sees the same batches
    train = mx.io.NDArrayIter(images, labels, BATCH, last_batch_handle="discard")
    batches = len(images) // BATCH
    if begin:
        module = mx.mod.Module.load(str(prefix), begin, load_optimizer_states=True)
    else:
        module = mx.mod.Module(perceptron())
    # A loaded module has its parameters; fit says that it does not initialize them.
    warnings.filterwarnings("ignore", "Parameters already initialized")
    mx.random.seed(0)
    # The file of states has the moments of Adam, but not how many updates there were, by which Adam and the schedule
    # of the learning rate go: begin_num_update says that.
    module.fit(train, begin_epoch=begin, num_epoch=args.epochs, initializer=mx.init.Xavier(), optimizer="adam",
               optimizer_params={"learning_rate": 0.01, "begin_num_update": begin * batches,
                                 "lr_scheduler": mx.lr_scheduler.FactorScheduler(step=2 * batches, factor=0.5)},
               epoch_end_callback=mx.callback.module_checkpoint(module, str(prefix), save_optimizer_states=True))
    values, _ = module.get_params()
    digest = hashlib.sha256(b"".join(values[name].asnumpy().tobytes() for name in sorted(values)))
    print(f"accuracy {module.score(train, 'acc')[0][1]:.3f}, parameters {digest.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
