"""Rules that move scales and shifts of channels into the weights before them, for inference.

BatchNorm in inference is x * scale + shift. Where x comes from a convolution or fully connected layer, its output
channels can be scaled in the weights instead, once, in the plan's prepare part.
"""
from __future__ import annotations

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.passes.simplify_rules.rule import Site, rule

ANCHORS = ("Convolution", "FullyConnected", "_mxc_conv_data_grad")


def _static_channels(site: Site, entry: Entry, of: Entry) -> bool:
    """True when `entry` is static and has one value for each channel (axis 1) of `of`."""
    shape = site.graph.shape(of)
    expected = tuple(n if axis == 1 else 1 for axis, n in enumerate(shape))
    same_dtype = site.graph.dtype(entry) == site.graph.dtype(of)
    return entry.node in site.static and same_dtype and site.graph.shape(entry) == expected


def _operand(site: Site, node: Node, *ops: str) -> tuple[Node, Entry] | None:
    """(the producer of one input, the other input): the producer is of `ops`, nothing else reads it, and the other
    input is static, one value for each channel."""
    for position in (0, 1):
        data, other = node.inputs[position], node.inputs[1 - position]
        inner = site.producer(data, *ops)
        if inner is not None and site.used_once(data) and _static_channels(site, other, data):
            return inner, other
    return None


def _weight_scale_shape(node: Node, weight: tuple[int, ...], channels: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(how the weight is seen, how the scale is seen) so that they broadcast: output channels are the weight's first
    axis, but the second of a `_mxc_conv_data_grad`, within each group."""
    if node.op is None or node.op.name != "_mxc_conv_data_grad":
        return weight, (channels,) + (1,) * (len(weight) - 1)
    groups = node.params.num_group
    ones = (1,) * (len(weight) - 2)
    return (groups, weight[0] // groups, *weight[1:]), (groups, 1, channels // groups, *ones)


@rule("broadcast_mul")
def scale_into_weight(site: Site, node: Node) -> Entry | None:
    """anchor(x, W) * s -> anchor(x, W * s), where s has a value for each output channel and W and s are static"""
    found = _operand(site, node, *ANCHORS) if site.is_inference else None
    if found is None or len(found[0].inputs) != 2:
        return None
    anchor, scale = found
    data, weight = anchor.inputs
    if weight.node not in site.static or site.graph.dtype(weight) != site.graph.dtype(scale):
        return None
    builder, shape = site.builder, site.graph.shape(weight)
    seen, scale_seen = _weight_scale_shape(anchor, shape, site.graph.shape(Entry(node))[1])
    scaled = builder.make("broadcast_mul", as_shape(builder, site.new(weight), seen),
                          as_shape(builder, site.new(scale), scale_seen))
    new = Node(anchor.op, anchor.name, anchor.attrs, anchor.params, [site.new(data), as_shape(builder, scaled, shape)])
    return builder.add(new)[0]


@rule("broadcast_mul")
def scale_before_shift(site: Site, node: Node) -> Entry | None:
    """(anchor + b) * s -> anchor * s + b * s, where b and s have a static value for each channel"""
    found = _operand(site, node, "broadcast_add") if site.is_inference else None
    inner = _operand(site, found[0], *ANCHORS) if found is not None else None
    if found is None or inner is None:
        return None
    scale, (anchor, shift) = site.new(found[1]), inner
    scaled = site.builder.make("broadcast_mul", site.new(Entry(anchor)), scale)
    return site.builder.make("broadcast_add", scaled, site.builder.make("elemwise_mul", site.new(shift), scale))


@rule("broadcast_add")
def shifts_together(site: Site, node: Node) -> Entry | None:
    """(anchor + b) + c -> anchor + (b + c), where b and c have a static value for each channel"""
    found = _operand(site, node, "broadcast_add") if site.is_inference else None
    inner = _operand(site, found[0], *ANCHORS) if found is not None else None
    if found is None or inner is None:
        return None
    shift = site.builder.make("elemwise_add", site.new(inner[1]), site.new(found[1]))
    return site.builder.make("broadcast_add", site.new(Entry(inner[0])), shift)
