"""Record what Apache MXNet makes of a model, for `mxc verify --expected`.

    python expected_of_mxnet.py NAME-symbol.json NAME-0000.params OUT.npz data=image.npy [NAME=FILE.npy ...]
    python expected_of_mxnet.py NAME-symbol.json NAME-0000.params OUT.npz inputs.npz

It is run where MXNet is installed, and needs nothing but that and NumPy. The inputs are arrays in .npy files, or those
of a file that `mxc verify --save-expected` wrote (its arrays `in/NAME`). What else the model reads comes from the
parameters; labels that are not given are zero. OUT.npz gets the inputs as `in/NAME` and the outputs as `out/NAME`:

    mxc verify NAME-symbol.json --params NAME-0000.params --expected OUT.npz
"""
from __future__ import annotations

import sys

if {"-h", "--help"} & {*sys.argv[1:]}:  # before what may be missing is imported
    print(__doc__)
    sys.exit()

import mxnet as mx
import numpy as np


def inputs_of(words: list[str]) -> dict[str, np.ndarray]:
    """Inputs by name, of words NAME=FILE.npy and of one FILE.npz."""
    found = {}
    for word in words:
        name, equals, path = word.partition("=")
        if equals:
            found[name] = np.load(path)
        else:
            found.update({key[3:]: array for key, array in np.load(word).items() if key.startswith("in/")})
    return found


def record(symbol_file: str, params_file: str, out_file: str, words: list[str]) -> None:
    """Run the model once, for inference, and write the file."""
    symbol, inputs = mx.sym.load(symbol_file), inputs_of(words)
    values = {key.split(":", 1)[-1]: array for key, array in mx.nd.load(params_file).items()}
    values.update({name: mx.nd.array(array, dtype=array.dtype) for name, array in inputs.items()})
    names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
    known = {name: values[name].shape for name in names if name in values}
    shapes = dict(zip(names, symbol.infer_shape(**known)[0]))  # noqa: B905 (MXNet's Pythons are older)
    values.update({name: mx.nd.zeros(shapes[name]) for name in names if name not in values and name.endswith("label")})
    missing = [name for name in (*names, *states) if name not in values]
    if missing:
        sys.exit("there are no values for " + ", ".join(missing))
    executor = symbol.bind(mx.cpu(), {name: values[name] for name in names}, grad_req="null",
                           aux_states={name: values[name] for name in states})
    outputs = dict(zip(symbol.list_outputs(), executor.forward(is_train=False)))  # noqa: B905
    np.savez(out_file, **{"in/" + name: array for name, array in inputs.items()},
             **{"out/" + name: array.asnumpy() for name, array in outputs.items()})
    print(out_file + ": " + ", ".join(outputs))


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    record(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
