"""Spellings of parameters in a graph's file, and what MXNet reads of them.

With MXNet's Python, `spellings.py` writes what MXNet 1.9.1 reads to spellings.json: a value, true where the file is
taken but the value does not show, null where it is refused. tests/test_spellings.py compares mxc's parameters.
"""
import json
import os
from pathlib import Path

import numpy as np

NUMBERS = [
    "1", "-1", "+1", " 1", "1 ", " 1 ", "\t1\n", "1.", "1.0", ".5", "-.5", "+.5", "0.5f", "0.5F", "1f", "1.f", ".5f",
    "1e-5", "1E-5", "1e-5f", "1e+3", "1e5", "0.1e1f", "1.5e3", "1e0000005", "0.1", "00", "007", "010", "-0", "-0.0",
    "16777217", "2147483647", "0.30000001192092896", "inf", "-inf", "+inf", "Inf", "INF", "infinity", "INFINITY",
    "-Infinity", "nan", "NaN", "-nan", "NAN", "nan(1)", "nan()", "infi", "inff", "nanf", "5L", "5l", "5LL", "5u",
    "1d", "0.5d", "0.5ff", "1e5L", "0x10", "0X10", "0x1p3", "1_000", "1,5", "1.5.2", "1 2", "1 f", "--1", "+-1",
    "- 1", "", "  ", "True", "true", "False", "None", "none", "NULL", "(1)", "[1]", "'1'", '"1"', "1%", "1;", "1e",
    "1e-", "1ee5", "1e3.5", ".", "f", ".f", "e5", "-", "+", "1e39", "-1e39", "1e400", "-1e400", "1e-46", "1e-400",
    "1e308", "3.4028236e38", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "99999999999999999999",
]
SWITCHES = [
    "True", "true", "TRUE", "tRUE", "False", "false", "FALSE", "1", "0", "2", "-1", "T", "F", "t", "yes", "no", "on",
    " True", "True ", "\tTrue", " 1", "1 ", "+1", "01", "00", "1.0", "0.0", "None", "none", "NONE", " None", "",
    "truee", "True1", "1L",
]
TUPLES = [
    "(1,2)", "(1, 2)", "[1, 2]", "[1,2]", "(1,)", "[1,]", "(1 ,)", "(1, )", "(1,2,)", "(1,,2)", "(,)", "(,1)", "1",
    "3", "-1", "+1", "(+1,2)", "(1L, 2L)", "(1L,2L)", "(1l,2l)", "[1L]", "1L", "5L", "(1LL,2)", "(1L,)", "(1 L,2)",
    "(1L ,2)", "(1u,2)", "()", "[]", "( )", "[ ]", "(1,2]", "[1,2)", "(1,2", "1,2", "1, 2", "1,2)", "(1 2)",
    "((1,2))", "[(1,2)]", "((1),2)", " (1,2)", "(1,2) ", "(1,2) x", "(1,2)x", "(1.0,2)", "(1.5,2)", "(1.,2.)",
    "(None,2)", "(None, None)", "(None,)", "( None ,1)", "(none,1)", "(Nonee,1)", "None,1", "None", "none", "NONE",
    "", "  ", "(-1,0)", "(- 1,2)", "(0x1,2)", "(01,2)", "(True,2)", "(a,b)", "(1e1,2)", "{1,2}", "<1,2>", "(1;2)",
    "( 1 , 2 )", "(\t1,\t2)", "1 ", "  7", "7 x", "(1,2,3)", "(9223372036854775808,1)",
]
FRACTIONS = [
    "(0.5,1)", "(.5,-.5)", "(+.5,1)", "[.5, 1.]", "0.5", "1", "(1e-5,2)", "(0.1,0.2,)", "(1,)", " (0.5,1) ", "(1,2]",
    "(0.5f,1.f)", "0.5f", "(inf,1)", "(-inf,1)", "(nan,1)", "(1L,2L)", "5L", "(1d,2)", "(0x10,1)", "(1e39,1)",
    "(1e400,1)", "(None,1)", "(0.5,,1)", "(0.5 1)", "1,2", "", "a",
]
CHOICES = ["tanh", "Tanh", " tanh", "tanh ", "'tanh'", "", "None", "relu", "0", "1", "tanhh"]
TUNING = ["None", "none", "off", "fastest", " off", "", "0"]
DTYPES = [
    "float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool", "float", "double", "int", "uint16",
    "Float32", "np.float32", "<f4", "0", "1", " float32", "None", "",
]


def _graph(mx, op, inputs, attrs):
    """A file's graph of one operator on variables."""
    nodes = [{"op": "null", "name": name, "inputs": []} for name in inputs]
    nodes.append({"op": op, "name": "op", "attrs": attrs, "inputs": [[i, 0, 0] for i in range(len(inputs))]})
    text = {"nodes": nodes, "arg_nodes": list(range(len(inputs))), "node_row_ptr": list(range(len(nodes) + 1)),
            "heads": [[len(inputs), 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
    return mx.sym.load_json(json.dumps(text))


def _run(mx, symbol, values):
    x = np.array(values)
    arrays = {"x": mx.nd.array(x, dtype=x.dtype)}
    return symbol.bind(mx.cpu(), arrays, grad_req="null").forward()[0].asnumpy()


def _slope(mx, symbol):
    return -float(_run(mx, symbol, np.float32([-1]))[0])


def _factor(mx, symbol):
    return float(_run(mx, symbol, np.float64([1]))[0])


def _begin(mx, symbol):
    begin = int(_run(mx, symbol, np.arange(20, dtype="float32"))[0])
    return begin if begin < 15 else begin - 20


def _end(mx, symbol):
    end = len(_run(mx, symbol, np.arange(20, dtype="float32")))
    return end if end < 15 else True


def _weight(mx, symbol):
    return int(symbol.infer_shape(x=(2, 3))[0][1][0])


def _made(mx, symbol):
    return list(symbol.infer_shape()[1][0])


def _kept(mx, symbol):
    return len(symbol.infer_shape(x=(2, 3))[1][0]) == 2


def _dtype(mx, symbol):
    return np.dtype(symbol.infer_type(x="float32")[1][0]).name


def _taken(mx, symbol):
    return True


# By kind: spellings, operator, its parameter, its other attributes, its inputs, and how the value shows.
KINDS = {
    "float": (NUMBERS, "LeakyReLU", "slope", {"act_type": "leaky"}, ["x"], _slope),
    "double": (NUMBERS, "_mul_scalar", "scalar", {}, ["x"], _factor),
    "double or None": (NUMBERS, "softmax", "temperature", {}, ["x"], _taken),
    "int": (NUMBERS, "slice_axis", "begin", {"axis": "0", "end": "None"}, ["x"], _begin),
    "int or None": (NUMBERS, "slice_axis", "end", {"axis": "0", "begin": "0"}, ["x"], _end),
    "int in 1..": (NUMBERS, "FullyConnected", "num_hidden", {"no_bias": "1"}, ["x", "w"], _weight),
    "bool": (SWITCHES, "sum", "keepdims", {}, ["x"], _kept),
    "bool or None": (SWITCHES, "softmax", "use_length", {}, ["x"], _taken),
    "shape": (TUPLES, "_zeros", "shape", {}, [], _made),
    "shape or None": (TUPLES, "sum", "axis", {}, ["x"], _taken),
    "bounds": (TUPLES, "slice", "begin", {"end": "(9,9)"}, ["x"], _taken),
    "floats": (FRACTIONS, "_contrib_MultiBoxPrior", "sizes", {}, ["x"], _taken),
    "enum": (CHOICES, "Activation", "act_type", {}, ["x"], _taken),
    "enum or None": (TUNING, "Convolution", "cudnn_tune", {"kernel": "(1,1)", "num_filter": "1", "no_bias": "1"},
                     ["x", "w"], _taken),
    "dtype": (DTYPES, "Cast", "dtype", {}, ["x"], _dtype),
}
# A tuple that is "None": operators whose parameter it may be.
UNSET = [("slice", "step", {"begin": "(0,0)", "end": "(1,1)"}, ["x"]), ("slice_like", "axes", {}, ["x", "y"]),
         ("broadcast_axis", "axis", {"size": "None"}, ["x"]),
         ("Crop", "offset", {"num_args": "1", "h_w": "(1,1)"}, ["x"]),
         ("Deconvolution", "target_shape", {"kernel": "(2,2)", "num_filter": "3", "no_bias": "1"}, ["x", "w"])]


def answer(mx, kind, text):
    """The value that a spelling has, true where it does not show, None where the graph is refused."""
    _, op, parameter, attrs, inputs, value = KINDS[kind]
    try:
        symbol = _graph(mx, op, inputs, {**attrs, parameter: text})
    except mx.base.MXNetError:
        return None
    try:
        return value(mx, symbol)
    except (mx.base.MXNetError, TypeError):
        return True


def alone(mx, kind, text):
    """The answer of a process of its own: MXNet refuses infinity once any number has been out of range."""
    reader, writer = os.pipe()
    if not os.fork():
        os.write(writer, json.dumps(answer(mx, kind, text)).encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        found = json.load(file)
    os.wait()
    return found


def main():
    import mxnet as mx

    found = {kind: {text: alone(mx, kind, text) for text in spec[0]} for kind, spec in KINDS.items()}
    for op, parameter, attrs, inputs in UNSET:
        _graph(mx, op, inputs, {**attrs, parameter: "None"})
    rows = (f'"{kind}": {{\n' + ",\n".join(f"{json.dumps(text)}: {json.dumps(value)}" for text, value in texts.items())
            + "\n}" for kind, texts in found.items())
    Path(__file__).with_suffix(".json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
