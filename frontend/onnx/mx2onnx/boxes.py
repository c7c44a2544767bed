"""Operators on boxes. What ONNX has no operator for is a function of its operators, which is called by the name of
MXNet's operator: other programs run its body, and `import_model` takes MXNet's operator again."""
from __future__ import annotations

import numpy as np

from mxc.onnx.mx2onnx.writer import FUNCTIONS, OPSET, Call, Converter

FLOATS_END = float(np.finfo(np.float32).min)


def as_function(body: Converter) -> Converter:
    """What a converter makes, as a call of a function with the operator's parameters as attributes."""
    def convert(c: Call) -> str:
        writer, helper = c.writer, c.writer.onnx.helper
        assert c.node.op is not None
        outside, writer.nodes = writer.nodes, []
        try:
            made = body(c)
            inside = writer.nodes
        finally:
            writer.nodes = outside
        constants = [helper.make_node("Constant", [], [name], value=writer.onnx.numpy_helper.from_array(
            writer.initializers[name])) for name in dict.fromkeys(name for node in inside for name in node.input)
            if name in writer.initializers and name not in c.inputs]
        texts = {name: str(value) for name, value in c.params.items()}
        name = writer.unused(f"function{c.node.op.name}")
        writer.functions[name] = helper.make_function(
            FUNCTIONS, name, c.inputs, [made], [*constants, *inside], [helper.make_opsetid("", OPSET)],
            ["operator", *texts])
        return writer.add(name, c.inputs, 1, c.node.name, FUNCTIONS, operator=c.node.op.name, **texts)[0]

    return convert


def columns(c: Call, tensor: str, first: int, count: int) -> str:
    """Some of the last axis."""
    return c.emit("Slice", tensor, c.ints(first), c.ints(first + count), c.ints(-1))


def box_nms(c: Call) -> str:
    """The order is the scores'; a mask says what is kept, and a second sorting brings that to the front."""
    p, rows = c.params, c.fixed_axis(c.rank() - 2)
    if p["topk"] == 0:
        return c.emit("Identity", c.inputs[0])
    count = min(p["topk"], rows) if p["topk"] > 0 else rows
    data = c.emit("Reshape", c.inputs[0], c.ints(-1, rows, c.fixed_axis(c.rank() - 1)))
    scores = c.emit("Squeeze", columns(c, data, p["score_index"], 1), c.ints(2))
    low = c.writer.constant(np.array(FLOATS_END, np.float32), "low")
    if p["id_index"] >= 0:
        kinds = c.emit("Squeeze", columns(c, data, p["id_index"], 1), c.ints(2))
        scores = c.emit("Where", c.emit("Equal", kinds, c.number(p["background_id"])), low, scores)
    scores, order = c.emit_many(2, "TopK", scores, c.ints(count), axis=1)
    best = c.emit("GatherND", data, c.emit("Unsqueeze", order, c.ints(2)), batch_dims=1)
    by_class = c.emit("Unsqueeze", scores, c.ints(1))
    if p["id_index"] >= 0 and not p["force_suppress"]:
        kinds = c.cast(c.emit("Squeeze", columns(c, best, p["id_index"], 1), c.ints(2)), "int64")
        first, last = (c.emit(f"Reduce{which}", kinds, keepdims=0) for which in ("Min", "Max"))
        one = c.writer.constant(np.array(1, np.int64), "one")
        every = c.emit("Reshape", c.emit("Range", first, c.emit("Add", last, one), one), c.ints(1, -1, 1))
        by_class = c.emit("Where", c.emit("Equal", c.emit("Unsqueeze", kinds, c.ints(1)), every), by_class, low)
    most, overlap, least = (c.writer.constant(np.array(each), "limit") for each in (
        np.int64(count), np.float32(p["overlap_thresh"]), np.float32(p["valid_thresh"])))
    chosen = c.emit("NonMaxSuppression", with_area(c, best), by_class, most, overlap, least,
                    center_point_box=int(p["in_format"] == "center"))
    places = c.emit("Gather", chosen, c.ints(0, 2), axis=1)
    ones = c.emit("Expand", c.number(1, "float32"), c.emit("Slice", c.emit("Shape", chosen), c.ints(0), c.ints(1)))
    nowhere = c.emit("Expand", c.number(0, "float32"), c.emit("Shape", scores))
    mask = c.emit("ScatterND", nowhere, places, ones)
    ranks = c.writer.constant(np.arange(count, dtype=np.float32)[None], "ranks")
    keys = c.emit("Sub", c.emit("Mul", mask, c.number(2 * count, "float32")), ranks)
    keys, order = c.emit_many(2, "TopK", keys, c.ints(count), axis=1)
    there = c.emit("Unsqueeze", c.emit("Greater", keys, c.number(0.5, "float32")), c.ints(2))
    best = changed_format(c, c.emit("GatherND", best, c.emit("Unsqueeze", order, c.ints(2)), batch_dims=1))
    made = c.emit("Where", there, best, c.number(-1))
    if count < rows:
        made = c.emit("Pad", made, c.ints(0, 0, 0, 0, rows - count, 0), c.writer.constant(
            np.array(-1, c.dtype()), "nothing"))
    return c.emit("Reshape", made, c.emit("Shape", c.inputs[0]))


def with_area(c: Call, rows: str) -> str:
    """The boxes of rows. Those of negative size have none here, as in MXNet; ONNX would exchange their corners."""
    a, b = (columns(c, rows, c.params["coord_start"] + first, 2) for first in (0, 2))
    return c.emit("Concat", a, c.emit("Max", b, a if c.params["in_format"] == "corner" else c.number(0)), axis=-1)


def changed_format(c: Call, rows: str) -> str:
    """Boxes in the format of the output."""
    p, width = c.params, c.fixed_axis(c.rank() - 1)
    if p["in_format"] == p["out_format"]:
        return rows
    start = p["coord_start"]
    a, b = columns(c, rows, start, 2), columns(c, rows, start + 2, 2)
    half = c.number(0.5)
    if p["in_format"] == "center":
        reach = c.emit("Mul", b, half)
        other = [c.emit("Sub", a, reach), c.emit("Add", a, reach)]
    else:
        other = [c.emit("Mul", c.emit("Add", a, b), half), c.emit("Sub", b, a)]
    boxes = c.emit("Where", c.emit("Less", columns(c, rows, start, 1), c.number(0)), columns(c, rows, start, 4),
                   c.emit("Concat", *other, axis=-1))
    parts = [columns(c, rows, 0, start)] if start else []
    parts += [boxes, *([columns(c, rows, start + 4, width - start - 4)] if width > start + 4 else [])]
    return c.emit("Concat", *parts, axis=-1) if len(parts) > 1 else boxes


def box_decode(c: Call) -> str:
    data, anchors, p = c.inputs[0], c.inputs[1], c.params
    at, size = columns(c, anchors, 0, 2), columns(c, anchors, 2, 2)
    half = c.number(0.5)
    if p["format"] == "corner":
        size = c.emit("Sub", size, at)
        at = c.emit("Add", at, c.emit("Mul", size, half))
    moved, grown = (c.emit("Mul", columns(c, data, first, 2), c.writer.constant(
        np.array([p[f"std{first}"], p[f"std{first + 1}"]], c.dtype()), "std")) for first in (0, 2))
    if p["clip"] > 0:
        grown = c.emit("Min", grown, c.number(p["clip"]))
    centre = c.emit("Add", c.emit("Mul", moved, size), at)
    reach = c.emit("Mul", c.emit("Mul", c.emit("Exp", grown), size), half)
    return c.emit("Concat", c.emit("Sub", centre, reach), c.emit("Add", centre, reach), axis=-1)


CONVERTERS: dict[str, Converter] = {"_contrib_box_nms": as_function(box_nms), "_contrib_box_decode": box_decode}
