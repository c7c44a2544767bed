"""Networks that find things in pictures: three for faces one behind the other, faces on a feature pyramid, SSD, YOLO,
joints of bodies, and centres of things.

As in classifiers.py, they are built after their papers and do what saved models of their kind do; `data` is
(N, 3, H, W).
"""
from __future__ import annotations

from repository import vision
from zoo.classifiers import mobile
from zoo.parts import act, conv, conv_norm, dense, norm, pool, prelu

import mxc as mx
from mxc.symbol import Symbol

sym = mx.sym
CLASSES = 20


def face_proposals() -> Symbol:
    """K. Zhang et al. 2016, the first of three networks: boxes and scores at every place; `data` of any size."""
    net = pool(prelu(conv(sym.Variable("data"), 10, 3, pad=0, bias=True)), "max", 2, 2, full=True)
    for filters in (16, 32):
        net = prelu(conv(net, filters, 3, pad=0, bias=True))
    boxes, scores = (conv(net, count, 1, bias=True) for count in (4, 2))
    return sym.Group([boxes, sym.SoftmaxActivation(scores, mode="channel")])


def faces(layers: tuple[tuple[int, int, int], ...], units: int, heads: tuple[int, ...]) -> Symbol:
    """The second and the third of these: convolutions (filters, their size, size of the pooling behind them or 0), then
    heads of so many numbers each, and scores of two classes."""
    net = sym.Variable("data")
    for filters, kernel, pooled in layers:
        net = prelu(conv(net, filters, kernel, pad=0, bias=True))
        net = pool(net, "max", pooled, 2, full=True) if pooled else net
    net = prelu(dense(net, units))
    return sym.Group([*(dense(net, count) for count in heads), sym.SoftmaxOutput(dense(net, 2), name="scores")])


def face_refinement() -> Symbol:
    """`data` (N, 3, 24, 24)."""
    return faces(((28, 3, 3), (48, 3, 3), (64, 2, 0)), 128, (4,))


def face_landmarks() -> Symbol:
    """`data` (N, 3, 48, 48)."""
    return faces(((32, 3, 3), (64, 3, 3), (64, 3, 2), (128, 2, 0)), 256, (10, 4))


def face_pyramid() -> Symbol:
    """J. Deng et al. 2019 on a narrow MobileNet v1: three sizes of things, each with scores, boxes and landmarks."""
    def layer(net: Symbol, filters: int, kernel: int) -> Symbol:
        return conv_norm(net, filters, kernel, bias=True, eps=2e-5)

    def context(net: Symbol) -> Symbol:
        """Wider and wider windows, side by side."""
        middle = act(layer(net, 16, 3))
        parts = [layer(net, 32, 3), layer(middle, 16, 3), layer(act(layer(middle, 16, 3)), 16, 3)]
        return act(sym.Concat(*parts, dim=1))

    def heads(net: Symbol) -> list[Symbol]:
        scores = sym.Reshape(conv(net, 4, 1, bias=True), shape=(0, 2, -1, 0))
        scores = sym.Reshape(sym.SoftmaxActivation(scores, mode="channel"), shape=(0, 4, -1, 0))
        return [scores, conv(net, 8, 1, bias=True), conv(net, 20, 1, bias=True)]

    layers = mobile(sym.Variable("data"), 8)
    net = act(layer(layers[13], 64, 1))
    found = heads(context(net))
    for below in (layers[11], layers[5]):
        side = act(layer(below, 64, 1))
        grown = sym.Crop(sym.UpSampling(net, scale=2, sample_type="nearest", num_args=1), side, num_args=2)
        net = act(layer(side + grown, 64, 3))
        found += heads(context(net))
    return sym.Group(found)


def joints() -> Symbol:
    """B. Xiao et al. 2018: a ResNet-18 and three transposed convolutions; a map for each of 17 joints."""
    return conv(grown((256, 256, 256)), 17, 1, bias=True)


def grown(filters: tuple[int, ...]) -> Symbol:
    """The last maps of a ResNet-18, grown to twice the size by each transposed convolution."""
    net = act(vision.resnet18().get_internals()["s3b1_add_output"])
    for count in filters:
        net = sym.Deconvolution(net, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=count, no_bias=True)
        net = act(norm(net))
    return net


def centres() -> Symbol:
    """X. Zhou et al. 2019 with plain convolutions: a map for each class, whose highest places are the centres of
    things, and sizes and offsets there; the hundred highest."""
    net = grown((256, 128, 64))
    heat, size, offset = (conv(act(conv(net, 64, 3, bias=True)), count, 1, bias=True) for count in (CLASSES, 2, 2))
    heat = sym.sigmoid(heat)
    peaks = heat * sym.broadcast_equal(pool(heat, "max", 3, 1, 1), heat)
    scores, places = sym.topk(sym.Reshape(peaks, shape=(0, -1)), k=100, ret_typ="both")
    return sym.Group([scores, places, size, offset])


def ssd() -> Symbol:
    """W. Liu et al. 2015 on a MobileNet v1: boxes from six sizes of maps."""
    counts, layers = (4, 6, 6, 6, 4, 4), mobile(sym.Variable("data"))
    maps = [layers[11], layers[13]]
    for filters in (512, 512, 256, 256):
        net = act(sym.BatchNorm(conv(maps[-1], filters, 1)))
        maps.append(act(sym.BatchNorm(conv(net, filters, 3, 2))))

    def of_each(numbers: int) -> Symbol:
        """So many numbers for each box, as rows."""
        parts = [sym.Flatten(sym.transpose(conv(net, count * numbers, 3, bias=True), axes=(0, 2, 3, 1)))
                 for net, count in zip(maps, counts, strict=True)]
        return sym.Reshape(sym.Concat(*parts, dim=1), shape=(0, -1, numbers))

    scores = sym.softmax(of_each(CLASSES + 1), axis=-1)
    things = sym.slice_axis(scores, axis=-1, begin=1, end=None)
    likely = things > 0.01
    numbers = sym.Reshape(sym.arange(CLASSES), shape=(1, 1, CLASSES))
    numbers = sym.broadcast_add(sym.zeros_like(sym.slice_axis(scores, axis=-1, begin=0, end=1)), numbers)
    numbers = sym.where(likely, numbers, sym.ones_like(numbers) * -1)
    things = sym.where(likely, things, sym.zeros_like(things))
    boxes = sym.contrib.box_decode(of_each(4), priors(maps, counts), std0=0.1, std1=0.1, std2=0.2, std3=0.2,
                                   format="center")
    rows = []
    for i in range(CLASSES):
        one = [sym.slice_axis(part, axis=-1, begin=i, end=i + 1) for part in (numbers, things)]
        rows.append(sym.Concat(*one, boxes, dim=-1))
    return best(sym.Concat(*rows, dim=1))


def priors(maps: list[Symbol], counts: tuple[int, ...]) -> Symbol:
    """The boxes that are moved and scaled: cut, for each map, from a large one that is given."""
    parts = []
    for i, (net, count) in enumerate(zip(maps, counts, strict=True)):
        size = max(128 >> i, 16)
        given = sym.Variable(f"priors{i}", shape=(1, 1, size, size, 4 * count))
        parts.append(sym.Reshape(sym.slice_like(given, net * 0, axes=(2, 3)), shape=(1, -1)))
    return sym.Reshape(sym.Concat(*parts, dim=1), shape=(1, -1, 4))


def best(rows: Symbol) -> Symbol:
    """Classes, scores and boxes of the hundred best rows, without those that overlap better ones."""
    rows = sym.contrib.box_nms(rows, overlap_thresh=0.45, valid_thresh=0.01, topk=400, coord_start=2, score_index=1,
                               id_index=0)
    rows = sym.slice_axis(rows, axis=1, begin=0, end=100)
    return sym.Group([sym.slice_axis(rows, axis=2, begin=a, end=b) for a, b in ((0, 1), (1, 2), (2, 6))])


def yolo3() -> Symbol:
    """J. Redmon and A. Farhadi 2018 on a MobileNet v1: boxes from three sizes of maps."""
    def leaky(net: Symbol, filters: int, kernel: int) -> Symbol:
        return sym.LeakyReLU(conv_norm(net, filters, kernel), act_type="leaky", slope=0.1)

    layers = mobile(sym.Variable("data"))
    net, found = layers[13], []
    for level, (filters, below) in enumerate(((512, layers[11]), (256, layers[5]), (128, None))):
        for _ in range(2):
            net = leaky(leaky(net, filters, 1), 2 * filters, 3)
        net = leaky(net, filters, 1)
        found.append(cells(leaky(net, 2 * filters, 3), level))
        if below is not None:
            net = sym.repeat(sym.repeat(leaky(net, filters // 2, 1), repeats=2, axis=-1), repeats=2, axis=-2)
            net = sym.Concat(sym.slice_like(net, below * 0, axes=(2, 3)), below, dim=1)
    return best(sym.Concat(*found, dim=1))


def cells(net: Symbol, level: int) -> Symbol:
    """Rows of a map: for each class and each of a place's three boxes its class, score and corners."""
    numbers = sym.Reshape(conv(net, 3 * (CLASSES + 5), 1, bias=True), shape=(0, 3 * (CLASSES + 5), -1))
    numbers = sym.Reshape(sym.transpose(numbers, axes=(0, 2, 1)), shape=(0, -1, 3, CLASSES + 5))
    centre, size, thing, classes = (sym.slice_axis(numbers, axis=-1, begin=a, end=b)
                                    for a, b in ((0, 2), (2, 4), (4, 5), (5, None)))
    scores = sym.transpose(sym.broadcast_mul(sym.sigmoid(classes), sym.sigmoid(thing)), axes=(3, 0, 1, 2))
    scores = sym.expand_dims(scores, axis=-1)
    which = sym.broadcast_add(scores * 0, sym.Reshape(sym.arange(CLASSES), shape=(0, 1, 1, 1, 1)))
    places = sym.slice_like(sym.Variable(f"places{level}", shape=(1, 1, 128, 128, 2)), net * 0, axes=(2, 3))
    centre = sym.broadcast_add(sym.sigmoid(centre), sym.Reshape(places, shape=(1, -1, 1, 2))) * (32 >> level)
    half = sym.broadcast_mul(sym.exp(size), sym.Variable(f"sizes{level}", shape=(1, 1, 3, 2))) / 2
    corners = sym.tile(sym.Concat(centre - half, centre + half, dim=-1), reps=(CLASSES, 1, 1, 1, 1))
    rows = sym.transpose(sym.Concat(which, scores, corners, dim=-1), axes=(1, 0, 2, 3, 4))
    return sym.Reshape(rows, shape=(0, -1, 6))
