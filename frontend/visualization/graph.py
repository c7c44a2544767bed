"""A network as an SVG picture, without programs of others.

Operators that follow each other alone stand in one box, a line each with what it gives; arrows join boxes. Boxes that
do the same between the same boxes, as the work for each of many classes, are drawn once.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.sax.saxutils import escape

from mxc.visualization.network import COLOURS, INPUT, OTHER
from mxc.visualization.placing import Point, place
from mxc.visualization.svg import LETTER, picture
from mxc.visualization.svg import text as svg_text
from mxc.visualization.table import outputs_text

SIZE, LINE = 11, 17  # pixels: height of letters, and of a line of a box
LEFT, TOP, RIGHT, BOTTOM = 24, 66, 24, 20
MOST = 34  # letters that are shown of an operator with its parameters, at most
MANY = 4  # so many equal boxes or more are drawn as one
BEHIND = 4  # pixels by which a second frame is seen behind a box that stands for several
EDGE, FRAME = "#777777", "#555555"
FILTERS = {"Convolution": "num_filter", "Deconvolution": "num_filter", "FullyConnected": "num_hidden",
           "Activation": "act_type", "LeakyReLU": "act_type"}


@dataclass(frozen=True)
class Row:
    """A line of a box. kind: the words without what may differ between boxes that do the same. about: what pointing at
    it shows."""

    words: str
    kind: str
    shape: str
    colour: str
    about: str


@dataclass
class Box:
    """Rows from top to bottom. times: how many boxes it stands for."""

    rows: list[Row]
    times: int = 1

    @property
    def size(self) -> Point:
        """Width and height."""
        letters = max(len(row.words) + len(row.shape) + 3 for row in self.rows)
        return letters * SIZE * LETTER + 10.0, LINE * (len(self.rows) + (self.times > 1)) + 2.0


def graph_svg(symbol: Any, shapes: Mapping[str, Sequence[int]], title: str) -> str:
    """The picture of a Symbol as the text of an SVG file. Parameters and auxiliary states are left out.

    shapes: of all arguments and auxiliary states, by name; those of inputs are enough where the rest follows. title:
    what stands above it. Raises MXNetError for shapes that do not fit.
    """
    from mxc.compiler.passes.infer_shape import infer_shape

    found = infer_shape(symbol.graph, shapes, partial=True)
    chains, arrows = _chains(symbol.graph)
    boxes = [Box([_row(node, found[symbol.graph.ids[node]]) for node in chain]) for chain in chains]
    return "\n".join(_parts(*_merged(boxes, arrows), title)) + "\n"


def _chains(graph: Any) -> tuple[list[list[Any]], list[tuple[int, int]]]:
    """The boxes, each the nodes in it, in topological order; and the pairs (from, to) of boxes that arrows join."""
    states = {entry.node for node in graph.nodes for entry in node.states}
    learned = {entry.node for node in graph.nodes if node.op for name, entry in
               zip(node.op.input_names(node.params), node.inputs, strict=False) if name in node.op.parameters}
    shown = [node for node in graph.nodes if node.op is not None or node not in states | learned]
    users: dict[Any, list[Any]] = {node: [] for node in shown}
    reads = {node: list(dict.fromkeys(e.node for e in node.inputs if e.node in users)) for node in shown}
    for node in shown:
        for source in reads[node]:
            users[source].append(node)
    box: dict[Any, int] = {}
    chains: list[list[Any]] = []
    for node in shown:
        sources = reads[node]
        if len(sources) == 1 and len(users[sources[0]]) == 1 and sources[0].op is not None:
            box[node] = box[sources[0]]
            chains[box[node]].append(node)
        else:
            box[node] = len(chains)
            chains.append([node])
    arrows = dict.fromkeys((box[source], box[node]) for node in shown for source in reads[node]
                           if box[source] != box[node])
    return chains, list(arrows)


def _merged(boxes: list[Box], arrows: list[tuple[int, int]]) -> tuple[list[Box], list[tuple[int, int]]]:
    """The boxes and arrows with equal boxes merged: those of equal rows that join equal boxes, above and below."""
    ids: dict[Any, int] = {}
    kinds = [ids.setdefault(tuple((row.kind, row.shape) for row in box.rows), len(ids)) for box in boxes]
    count = 0
    while count < len(ids):
        count, ids = len(ids), {}
        above: list[set[int]] = [set() for _ in boxes]
        below: list[set[int]] = [set() for _ in boxes]
        for start, end in arrows:
            above[end].add(kinds[start])
            below[start].add(kinds[end])
        kinds = [ids.setdefault((kind, frozenset(a), frozenset(b)), len(ids))
                 for kind, a, b in zip(kinds, above, below, strict=True)]
    members: dict[int, list[int]] = {}
    for number, kind in enumerate(kinds):
        members.setdefault(kind, []).append(number)
    places: dict[int, int] = {}
    made: list[Box] = []
    for number, kind in enumerate(kinds):
        equal = members[kind]
        if len(equal) < MANY:
            made.append(boxes[number])
        elif number == equal[0]:
            rows = [row if len({boxes[i].rows[n].words for i in equal}) == 1 else replace(row, words=row.kind)
                    for n, row in enumerate(boxes[number].rows)]
            made.append(Box(rows, len(equal)))
        else:
            places[number] = places[equal[0]]
            continue
        places[number] = len(made) - 1
    return made, list(dict.fromkeys((places[start], places[end]) for start, end in arrows))


def _row(node: Any, shapes: Sequence[Any]) -> Row:
    """The line of a node whose outputs have these shapes (None, or with a 0: not known)."""
    if node.op is None:
        return Row(node.name, node.name, _shape(shapes[0]), INPUT, f"{node.name}: an input")
    attrs = ", ".join(f"{key}={value}" for key, value in node.op.attrs_of(node.params).items())
    visible = shapes[:node.op.num_visible(node.params)]
    about = f"{node.name}: {node.op.name}({attrs})"
    words = _words(node)
    kind = words if node.op.name in FILTERS or "kernel" in node.params else node.op.name
    return Row(words, kind, outputs_text([s if s and 0 not in s else None for s in visible]),
               COLOURS.get(node.op.name, OTHER), about)


def _shape(shape: Any) -> str:
    return outputs_text([shape if shape and 0 not in shape else None])


def _words(node: Any) -> str:
    """The operator and what matters of its parameters."""
    params, name = node.params, node.op.name
    details = [str(params[FILTERS[name]])] if name in FILTERS else []
    if params.get("kernel") and not params.get("global_pool"):
        details = ["x".join(map(str, params["kernel"])), *details]
        if set(params.get("stride") or (1,)) != {1}:
            details[0] += "/" + "x".join(map(str, params["stride"]))
        if params.get("num_group", 1) != 1:
            details.append(f"{params['num_group']} groups")
    elif params.get("global_pool"):
        details.append("global")
    if "pool_type" in params:
        details.append(str(params["pool_type"]))
    if not details and name not in ("BatchNorm", "RNN"):
        details = [f"{key}={value}" for key, value in node.op.attrs_of(node.params).items()
                   if key not in ("num_args", node.op.counter)]
    words = f"{name} {', '.join(details)}".rstrip()
    return words if len(words) <= MOST else words[:MOST - 1] + "…"


def _parts(boxes: list[Box], arrows: list[tuple[int, int]], title: str) -> Iterator[str]:
    placed = place([box.size for box in boxes], arrows)
    count, alone = sum(len(box.rows) * box.times for box in boxes), sum(box.times for box in boxes)
    about = f"{count} operators and inputs in {alone} boxes" + (f", {len(boxes)} of them drawn" if alone > len(boxes)
                                                                else "")
    width = max(placed.width, len(title) * 17 * LETTER, len(about) * 12 * LETTER)
    yield picture(LEFT + width + RIGHT, TOP + placed.height + BOTTOM)
    yield svg_text(LEFT, 26, title, size=17)
    yield svg_text(LEFT, 46, about, size=12)
    yield (f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
           f'orient="auto"><path d="M0 0.5L7.5 4L0 7.5z" fill="{EDGE}"/></marker></defs>')
    leaving, coming = _docks(boxes, arrows, placed, False), _docks(boxes, arrows, placed, True)
    for (start, end), line in zip(arrows, placed.arrows, strict=True):
        (_, bottom), (_, below), *inner, (_, top) = line
        out, into = leaving[start][line[2][0]], coming[end][line[-2][0]]
        yield _line(boxes[start].rows[-1].about, boxes[end].rows[0].about,
                    [(out, bottom), (out, below), *inner, (into, top)])
    for box, x, y in zip(boxes, placed.centres, placed.tops, strict=True):
        yield from _drawn(box, LEFT + x - box.size[0] / 2, TOP + y)
    yield "</svg>"


def _docks(boxes: list[Box], arrows: list[tuple[int, int]], placed: Any, inward: bool) -> list[dict[float, float]]:
    """The points of each box where arrows leave it (inward: where they end at it), by the x of the next (previous)
    corner of the arrow. The points are side by side in the order of these; arrows of one lane share a point."""
    found: list[set[float]] = [set() for _ in boxes]
    for arrow, line in zip(arrows, placed.arrows, strict=True):
        found[arrow[inward]].add(line[-2 if inward else 2][0])
    docks = []
    for box, centre, places in zip(boxes, placed.centres, map(sorted, found), strict=True):
        step = min(14.0, (box.size[0] - 16) / max(1, len(places)))
        docks.append({x: centre + (i - (len(places) - 1) / 2) * step for i, x in enumerate(places)})
    return docks


def _line(source: str, target: str, points: list[Point]) -> str:
    """Straight through layers, curves between them."""
    (x, y), rest = points[0], points[1:]
    path = f"M{LEFT + x:.1f} {TOP + y:.1f}"
    for number, (to_x, to_y) in enumerate(rest):
        if number % 2:  # from the lower end of a layer to the upper end of the next
            middle = TOP + (y + to_y) / 2
            path += f"C{LEFT + x:.1f} {middle:.1f} {LEFT + to_x:.1f} {middle:.1f} {LEFT + to_x:.1f} {TOP + to_y:.1f}"
        else:
            path += f"L{LEFT + to_x:.1f} {TOP + to_y:.1f}"
        x, y = to_x, to_y
    about = escape(f"{source.partition(':')[0]} to {target.partition(':')[0]}")
    return (f'<path class="arrow" d="{path}" stroke="{EDGE}" stroke-width="1.3" fill="none" marker-end="url(#tip)">'
            f"<title>{about}</title></path>")


def _drawn(box: Box, x: float, y: float) -> Iterator[str]:
    width, height = box.size
    place = f'width="{width:.1f}" height="{height:.1f}" rx="3" stroke="{FRAME}"'
    if box.times > 1:
        yield f'<rect x="{x + BEHIND:.1f}" y="{y + BEHIND:.1f}" {place} fill="#eeeeee"/>'
    yield f'<rect x="{x:.1f}" y="{y:.1f}" {place} fill="white"/>'
    if box.times > 1:
        yield svg_text(x + 6, y + 13.5, f"{box.times} times")
        y += LINE
    for number, row in enumerate(box.rows):
        top = y + 1 + LINE * number
        yield (f'<g><rect x="{x + 1:.1f}" y="{top:.1f}" width="{width - 2:.1f}" height="{LINE}" fill="{row.colour}" '
               f'stroke="white" stroke-width="0.7"/>' + svg_text(x + 6, top + 12.5, row.words)
               + svg_text(x + width - 6, top + 12.5, row.shape, anchor="end")
               + f"<title>{escape(row.about)}</title></g>")
