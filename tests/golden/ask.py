"""Questions that the oracle's own commands do not take; runs in the Python that has the real MXNet.

    ask.py created CASES.json OUT.npz     the outputs of operators without inputs, as <case>/out/0 or <case>/error
    ask.py shapes TABLE.json OUT.json     what infer_shape_partial says, see shape_cases.py
"""
import json
import sys

import mxnet as mx
import numpy as np


def operator(name):
    """The symbol function of an operator: MXNet hides some in modules of their prefix."""
    for module, prefix in ((mx.sym, ""), (mx.sym.contrib, "_contrib_"), (mx.sym.linalg, "_linalg_")):
        found = getattr(module, name[len(prefix):], None) if name.startswith(prefix) else None
        if found is not None:
            return found
    return getattr(mx.sym._internal, name)


def created(cases):
    """The outputs of each case."""
    arrays = {}
    for case in cases:
        try:
            made = operator(case["op"])(name="op", **case["attrs"]).bind(mx.cpu(), {}).forward()
            arrays.update({f"{case['name']}/out/{i}": out.asnumpy() for i, out in enumerate(made)})
        except Exception as error:
            arrays[f"{case['name']}/error"] = np.array(str(error)[:200])
    return arrays


def lists(shapes):
    """Shapes as lists; an unknown one, which MXNet writes as (), as None."""
    return [list(s) if s else None for s in shapes]


def shapes(table):
    """Each row with `found`: shapes of arguments, outputs and auxiliary states; or `error`."""
    for row in table:
        inputs = {name: mx.sym.Variable(name) for name in row["inputs"]}
        try:
            make = operator(row["op"])
            made = make(*inputs.values(), name="op", **row["attrs"]) if row["list_input"] else \
                make(name="op", **inputs, **row["attrs"])
            known = {name: tuple(s) for name, s in row["inputs"].items() if s is not None}
            names = made.list_arguments()
            count = len(made.list_outputs())
            if row["out"] is not None:  # a neighbour of known shape tells the first output's shape
                known["neighbour"] = tuple(row["out"])
                made = mx.sym.Group([mx.sym.elemwise_add(made[0], mx.sym.Variable("neighbour")), made])
                arguments, outputs, aux = made.infer_shape_partial(**known)
                arguments = [s for n, s in zip(made.list_arguments(), arguments, strict=True) if n in names]
                outputs = outputs[1:]
            else:
                arguments, outputs, aux = made.infer_shape_partial(**known)
            assert len(outputs) == count
            row["found"] = {"inputs": lists(arguments), "outputs": lists(outputs), "aux": lists(aux)}
        except Exception as error:
            row["error"] = str(error).strip().splitlines()[-1][:160]
    return table


if __name__ == "__main__":
    command, source, target = sys.argv[1:]
    with open(source) as file:
        asked = json.load(file)
    if command == "created":
        np.savez(target, **created(asked))
    else:
        with open(target, "w") as file:
            file.write("[\n" + ",\n".join(json.dumps(row) for row in shapes(asked)) + "\n]\n")
