"""What MXNet 1.9.1 answers about operators and graphs; runs in the Python that mxnet_python.py prints.

    ask.py cases CASES.json OUT.npz                 operators on inputs made up from their names: cases.py's, in JSON
    ask.py shapes TABLE.json OUT.json               what infer_shape_partial says, see shape_cases.py
    ask.py graph SYMBOL.json INPUTS.npz OUT.npz     a graph on these arguments and auxiliary states, forward; with
                                                    `train` at the end backward too

Outputs are `out/0`, `out/1`, ..., gradients `grad/NAME`, auxiliary states after backward `aux/NAME` and the outputs'
gradients that were given `head/0`, ...; of cases with the case's name before that, and their inputs as `in/NAME`. What
is refused has its message as `error`.
"""
import json
import re
import sys
import zlib

import mxnet as mx
import numpy as np


def uniform(name, shape):
    """Numbers of [-1, 1), float64, always the same for a name and a shape."""
    return np.random.RandomState(zlib.crc32(name.encode())).uniform(-1, 1, shape)


def operator(name):
    """The symbol function of an operator: MXNet hides some in modules of their prefix."""
    for space in ("contrib", "linalg", "random", "image", "sparse"):
        if name.startswith(f"_{space}_"):
            found = getattr(getattr(mx.sym, space), name[len(space) + 2:], None)
            if found is not None:
                return found
    return getattr(mx.sym, name, None) or getattr(mx.sym._internal, name)


def values(item):
    """The values of a case's input, in its range and dtype."""
    low, high = item["low"], item["high"]
    numbers = low + (uniform(item["name"] + " of a case", item["shape"]) + 1) * 0.5 * (high - low)
    if item["dominant"]:
        numbers = numbers + item["shape"][-1] * np.eye(item["shape"][-1])
    return np.asarray(np.floor(numbers) if item["integer"] else numbers).astype(item["dtype"])


def computed(symbol, arrays, without_grad, train):
    """The answers of a graph whose arguments and auxiliary states have these values: forward, and backward to train."""
    names = symbol.list_arguments()
    if not names:  # there is nothing whose shape or gradient could be asked for
        return {f"out/{i}": out.asnumpy() for i, out in enumerate(symbol.bind(mx.cpu(), {}).forward())}
    requests = {name: "write" if train and name not in without_grad else "null" for name in names}
    bound = symbol.simple_bind(mx.cpu(), grad_req=requests,
                               type_dict={name: a.dtype for name, a in arrays.items()},
                               **{name: a.shape for name, a in arrays.items()})
    for name, place in (*bound.arg_dict.items(), *bound.aux_dict.items()):
        if name not in arrays:
            raise ValueError(f"{name}, of shape {place.shape}, has no value among {sorted(arrays)}")
        place[:] = arrays[name]
    outputs = [out.asnumpy() for out in bound.forward(is_train=train)]
    said = {f"out/{i}": out for i, out in enumerate(outputs)}
    if train:
        heads = [uniform(f"head{i}", out.shape).astype(out.dtype) for i, out in enumerate(outputs)]
        bound.backward([mx.nd.array(head, dtype=head.dtype) for head in heads])
        said.update({f"grad/{name}": g.asnumpy() for name, g in bound.grad_dict.items() if g is not None})
        said.update({f"aux/{name}": a.asnumpy() for name, a in bound.aux_dict.items()})
        said.update({f"head/{i}": head for i, head in enumerate(heads)})
    return said


def answer(case):
    """The arrays of one case."""
    arrays = {item["name"]: values(item) for item in case["inputs"]}
    said = {f"in/{name}": array for name, array in arrays.items()}
    try:
        variables = {name: mx.sym.Variable(name) for name in arrays}
        make = operator(case["op"])
        symbol = make(*variables.values(), name="op", **case["attrs"]) if case["list_input"] else \
            make(name="op", **variables, **case["attrs"])
        without_grad = [item["name"] for item in case["inputs"] if not item["grad"]]
        said.update(computed(symbol, arrays, without_grad, case["train"]))
    except Exception as error:
        said["error"] = np.array(message(error))
    return said


def message(error):
    """An error's text in one line, with midnight for the time of day that MXNet puts there."""
    lines = (line for line in str(error).splitlines() if line.strip())
    return re.sub(r"\[\d\d:\d\d:\d\d\]", "[00:00:00]", " | ".join(lines))


def known(shapes):
    """Shapes as lists; an unknown one, which MXNet writes as (), as None."""
    return [list(s) if s else None for s in shapes]


def inferred(row):
    """What MXNet infers of a row: shapes of arguments, outputs and auxiliary states."""
    inputs = {name: mx.sym.Variable(name) for name in row["inputs"]}
    make = operator(row["op"])
    made = make(*inputs.values(), name="op", **row["attrs"]) if row["list_input"] else \
        make(name="op", **inputs, **row["attrs"])
    told = {name: tuple(s) for name, s in row["inputs"].items() if s is not None}
    names, count = made.list_arguments(), len(made.list_outputs())
    if row["out"] is not None:  # a neighbour of known shape tells the first output's shape
        told["neighbour"] = tuple(row["out"])
        made = mx.sym.Group([mx.sym.elemwise_add(made[0], mx.sym.Variable("neighbour")), made])
    arguments, outputs, aux = made.infer_shape_partial(**told)
    arguments = [s for n, s in zip(made.list_arguments(), arguments, strict=True) if n in names]
    return {"inputs": known(arguments), "outputs": known(outputs[-count:]), "aux": known(aux)}


def shapes(table):
    """Each row with `found`, or with `error`."""
    for row in table:
        try:
            row["found"] = inferred(row)
        except Exception as error:
            row["error"] = message(str(error).strip().splitlines()[-1])[:160]
    return table


def read(path):
    with open(path) as file:
        return json.load(file)


def main(command, source, *rest):
    if command == "shapes":
        with open(rest[0], "w") as file:
            file.write("[\n" + ",\n".join(json.dumps(row) for row in shapes(read(source))) + "\n]\n")
    elif command == "cases":
        np.savez(rest[0], **{f"{case['name']}/{key}": array for case in read(source)
                             for key, array in answer(case).items()})
    elif command == "graph":
        with np.load(rest[0]) as file:
            arrays = dict(file)
        np.savez(rest[1], **computed(mx.sym.load(source), arrays, (), "train" in rest[2:]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 3 else sys.exit(__doc__)
