"""Classes of all pictures of a folder, by Ray Data: pictures are read in parallel, and actors that hold a compiled
model (an artifact, see docs/artifact.md) take them batch by batch, on one machine or a cluster.

    pip install 'mxc-compiler[dist,image]' 'ray[data]'
    mxc compile net-symbol.json --shape data=16,3,224,224 -o net.mxc
    python examples/batch_inference.py net.mxc FOLDER --out classes.csv
"""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

MEAN, DEVIATION = np.array([123.68, 116.779, 103.939], "f"), np.array([58.393, 57.12, 57.375], "f")


class Classifier:
    """What an actor of Ray's is: it loads the artifact once. size: of the pictures; rows: of a batch."""

    def __init__(self, artifact: str, rows: int):
        import mxc as mx

        self.model, self.rows = mx.load(artifact), rows
        self.name = self.model.input_names[0]

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        pictures = (np.stack(list(batch["image"])).astype("f") - MEAN) / DEVIATION
        count = len(pictures)
        filled = np.zeros((self.rows, *pictures.shape[1:]), "f")  # the last batch is short, the model of one size
        filled[:count] = pictures
        outputs = self.model.predict(**{self.name: filled.transpose(0, 3, 1, 2)})
        scores = outputs[self.model.output_names[0]][:count]
        return {"path": batch["path"], "class": scores.argmax(1), "score": scores.max(1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=16, help="of a batch, as in the artifact")
    parser.add_argument("--size", type=int, default=224, help="height and width of pictures")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--address", help="a cluster of Ray's; the files must be there on its machines")
    parser.add_argument("--out", default="classes.csv")
    options = parser.parse_args()

    import ray

    ray.init(address=options.address or "local", include_dashboard=False, logging_level="error")
    pictures = ray.data.read_images(options.folder, size=(options.size, options.size), mode="RGB", include_paths=True)
    found = pictures.map_batches(Classifier, batch_size=options.rows, num_cpus=1,
                                 compute=ray.data.ActorPoolStrategy(size=options.actors),
                                 fn_constructor_args=(str(options.artifact.resolve()), options.rows))
    rows = found.to_pandas().sort_values("path")
    rows.to_csv(options.out, index=False)
    print(f"{len(rows)} pictures, classes in {options.out}")


if __name__ == "__main__":
    main()
