"""Decompositions of operators on pictures.

Colours are computed in float32 whatever the picture's dtype, as in MXNet, and stored in that one: of uint8 between 0
and 255. A random factor is an array (1, 1, 1), which is spread over the picture.
"""
from __future__ import annotations

from collections.abc import Callable

from mxc.compiler.graph.batch_rows import Rows, RowSite
from mxc.compiler.graph.building import as_dtype, as_shape, filled, finished, random_numbers
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.image.shape import LIGHTING
from mxc.compiler.ops.pictures import LUMINANCE


def to_tensor(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A transpose and a division."""
    rank = len(builder.shape(inputs[0]))
    axes = (*range(rank - 3), rank - 1, rank - 3, rank - 2)
    wide = as_dtype(builder, builder.make("transpose", inputs[0], axes=axes), "float32")
    return [builder.make("_div_scalar", wide, scalar=255.0, name=node.name)]


def normalized(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """(data - mean) / std"""
    data, name = inputs[0], builder.dtype(inputs[0])
    data = data if "float" in name else as_dtype(builder, data, "float32")
    for op, numbers in (("broadcast_sub", node.params["mean"]), ("broadcast_div", node.params["std"])):
        data = builder.make(op, data, _row(builder, numbers, builder.dtype(data)))  # type: ignore[arg-type]
    return finished(builder, node, [data])


def _row(builder: GraphBuilder, numbers: tuple[float, ...], dtype: str) -> Entry:
    """Numbers as an array (count, 1, 1)."""
    parts = [filled(builder, (1, 1, 1), number, dtype) for number in numbers]
    return parts[0] if len(parts) == 1 else builder.make("Concat", *parts, num_args=len(parts), dim=0)


def cropped(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A slice."""
    params, more = node.params, (None,) * (len(builder.shape(inputs[0])) - 3)
    return [builder.make("slice", inputs[0], name=node.name, begin=(*more, params.y, params.x),
                         end=(*more, params.y + params.height, params.x + params.width))]


def flipped_across(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Axis 1 reversed."""
    return [builder.make("reverse", inputs[0], axis=(1,), name=node.name)]


def flipped_down(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Axis 0 reversed."""
    return [builder.make("reverse", inputs[0], axis=(0,), name=node.name)]


def _perhaps(builder: GraphBuilder, node: Node, data: Entry, axis: int) -> list[Entry]:
    """The axis reversed where a random number is below a half."""
    is_below = builder.make("_lesser_scalar", random_numbers(builder, (1, 1, 1)), scalar=0.5)
    everywhere = builder.make("broadcast_to", is_below, shape=builder.shape(data))
    return [builder.make("where", everywhere, builder.make("reverse", data, axis=(axis,)), data, name=node.name)]


def perhaps_across(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Axis 1 reversed, or not."""
    return _perhaps(builder, node, inputs[0], 1)


def perhaps_down(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Axis 0 reversed, or not."""
    return _perhaps(builder, node, inputs[0], 0)


def _stored(builder: GraphBuilder, node: Node, values: Entry) -> list[Entry]:
    assert builder.old is not None
    if builder.old.dtype(Entry(node)) == "uint8":
        values = builder.make("clip", values, a_min=0.0, a_max=255.0)
    return finished(builder, node, [values])


def _channels(builder: GraphBuilder, x: Entry) -> list[Entry]:
    """Each channel, (height, width, 1)."""
    return [builder.make("slice_axis", x, axis=2, begin=i, end=i + 1) for i in range(builder.shape(x)[2])]


def _grey(builder: GraphBuilder, x: Entry) -> Entry:
    channels = _channels(builder, x)
    if len(channels) == 1:
        return x
    parts = [builder.make("_mul_scalar", channel, scalar=share)
             for channel, share in zip(channels, LUMINANCE, strict=True)]
    return builder.make("elemwise_add", builder.make("elemwise_add", parts[0], parts[1]), parts[2])


def _mixed(builder: GraphBuilder, x: Entry, factor: Entry, other: Entry) -> Entry:
    """x * factor + other * (1 - factor)"""
    rest = builder.make("_rminus_scalar", factor, scalar=1.0)
    return builder.make("broadcast_add", builder.make("broadcast_mul", x, factor),
                        builder.make("broadcast_mul", other, rest))


Adjustment = Callable[[GraphBuilder, Entry, Entry], Entry]


def _adjusted(builder: GraphBuilder, node: Node, data: Entry, adjust: Adjustment, colours_only: bool) -> list[Entry]:
    """The picture changed by a factor between min_factor and max_factor."""
    if colours_only and builder.shape(data)[2] == 1:
        return [data]
    low, high = node.params.min_factor, node.params.max_factor
    numbers = builder.make("_mul_scalar", random_numbers(builder, (1, 1, 1)), scalar=high - low)
    factor = builder.make("_plus_scalar", numbers, scalar=low)
    return _stored(builder, node, adjust(builder, as_dtype(builder, data, "float32"), factor))


def brightness(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Colours times the factor."""
    return _adjusted(builder, node, inputs[0], lambda b, x, factor: b.make("broadcast_mul", x, factor), False)


def contrast(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Colours mixed with the mean brightness."""
    def mixed(b: GraphBuilder, x: Entry, factor: Entry) -> Entry:
        return _mixed(b, x, factor, b.make("mean", _grey(b, x), axis=(0, 1), keepdims=True))

    return _adjusted(builder, node, inputs[0], mixed, False)


def saturation(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Colours mixed with a grey: as in MXNet, the blue's share of how bright the pixel is."""
    def mixed(b: GraphBuilder, x: Entry, factor: Entry) -> Entry:
        return _mixed(b, x, factor, b.make("_mul_scalar", _channels(b, x)[2], scalar=LUMINANCE[2]))

    return _adjusted(builder, node, inputs[0], mixed, True)


def hue(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Hues turned."""
    return _adjusted(builder, node, inputs[0], _turned, True)


def _turned(builder: GraphBuilder, x: Entry, turn: Entry) -> Entry:
    """The hue of each pixel turned: the three colours of the new hue are between the least and the largest part that
    its lightness and saturation tell."""
    make = builder.make
    red, green, blue = _channels(builder, make("_div_scalar", x, scalar=255.0))
    most = make("_maximum", make("_maximum", red, green), blue)
    least = make("_minimum", make("_minimum", red, green), blue)
    width, total = make("elemwise_sub", most, least), make("elemwise_add", most, least)
    hue = make("_mxc_hue", red, green, blue, most, width)
    hue = make("where", make("_lesser_scalar", hue, scalar=0.0), make("_plus_scalar", hue, scalar=360.0), hue)
    hue = make("broadcast_add", hue, make("_mul_scalar", turn, scalar=360.0))
    sixth = make("_mod_scalar", make("_mul_scalar", hue, scalar=6 / 360), scalar=6.0)
    light = make("_mul_scalar", total, scalar=0.5)
    upper = make("_mxc_largest_part", light, make("_mxc_saturation", most, least))
    lower = make("elemwise_sub", total, upper)
    colours = [make("_mxc_part_of_hue", sixth, lower, upper, channel=channel) for channel in ("red", "green", "blue")]
    return make("_mul_scalar", make("Concat", *colours, num_args=3, dim=2), scalar=255.0)


def _moved(builder: GraphBuilder, node: Node, data: Entry, alpha: list[Entry]) -> list[Entry]:
    """Each channel plus its share of the three directions, by as much as the numbers (1, 1, 1) say."""
    offsets = []
    for row in LIGHTING:
        parts = [builder.make("_mul_scalar", number, scalar=share)
                 for number, share in zip(alpha, row, strict=True)]
        offsets.append(builder.make("elemwise_add", builder.make("elemwise_add", parts[0], parts[1]), parts[2]))
    offset = builder.make("Concat", *offsets, num_args=3, dim=2)
    return _stored(builder, node, builder.make("broadcast_add", as_dtype(builder, data, "float32"), offset))


def lighting(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Colours moved by numbers that are given."""
    if builder.shape(inputs[0])[2] == 1:
        return inputs
    numbers = node.params["alpha"][:3]  # type: ignore[index]
    return _moved(builder, node, inputs[0], [filled(builder, (1, 1, 1), number, "float32") for number in numbers])


def random_lighting(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Colours moved by normal numbers."""
    if builder.shape(inputs[0])[2] == 1:
        return inputs
    numbers = builder.make("_random_normal", scale=node.params.alpha_std, shape=(3, 1, 1), dtype="float32")
    return _moved(builder, node, inputs[0],
                  [builder.make("slice_axis", numbers, axis=0, begin=i, end=i + 1) for i in range(3)])


def color_jitter(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A host step, and its random numbers: which change comes first is known only then."""
    numbers = as_shape(builder, random_numbers(builder, (8,)), (8,))
    return [builder.make("_mxc_color_jitter", inputs[0], numbers, name=node.name, **node.params)]


def picture_rows(site: RowSite) -> list[Rows | None]:
    """Axis 0 of several pictures; one alone has no batch."""
    return [site.along({0: 0} if len(site.ins[0]) == 4 else {})]
