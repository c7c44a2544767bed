"""The memory plan as an SVG picture.

x: the steps of a run in order. y: bytes of the arena. A rectangle for each buffer, from the step that makes it to the
last that uses it, at its offset. A result that takes the place of a dying input begins in the middle of the step. Above
them a bar has all that runs hold, to scale: parameters, what was prepared of them, the arena and the rest.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from mxc.compiler.plan import layers_text
from mxc.visualization.svg import INK, LETTER, picture
from mxc.visualization.svg import text as _text
from mxc.visualization.table import shape_text

ALIGNMENT = 64  # bytes: buffers in the arena begin and end at multiples of it
KINDS = {  # what made a buffer, or what it is for: colour and words of the legend
    "product": ("#9ecae1", "made by a product or a convolution"),
    "other": ("#b5dfa4", "made by another kernel"),
    "arguments": ("#d9c8a9", "made of arguments alone (packed weights)"),
    "kept": ("#fdc086", "made in forward, kept for backward"),
    "backward product": ("#c5b3e0", "backward: made by a product or a convolution"),
    "backward": ("#f4b6c8", "backward: made by another kernel"),
}
PARTS = {  # of what runs hold, as `Plan.memory` names them: colour and words
    "kept_bytes": ("#d9c8a9", "parameters as given"),
    "prepared_bytes": ("#e6b06f", "prepared"),
    "arena_bytes": ("#9ecae1", "arena"),
    "scratch_bytes": ("#b5dfa4", "scratch of the threads"),
    "arrays_bytes": ("#c8c8c8", "inputs, outputs and gradients"),
}
LEFT, RIGHT, TOP, PLOT, LINE = 86, 24, 148, 560, 16  # pixels; PLOT: height of the arena, LINE: of a line of text
WIDEST, NARROWEST, ROTATED = 26.0, 3.5, 11.0  # pixels of a step's width; from ROTATED on each step has a label
LABEL, ROTATED_HEIGHT = 30, 204  # characters of a step's label at most, and pixels that rotated labels take
FAINT, LIVE, PEAK = "#dddddd", "#111111", "#c0392b"


@dataclass(frozen=True)
class Box:
    """A buffer in time and space: alive over steps begin <= x < end (halves: within a step, in place of another)."""

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    first: int
    last: int
    begin: float
    end: float
    offset: int
    nbytes: int


def run_steps(plan: Any) -> Sequence[Any]:
    """The steps of a run; those that prepare parameters are left out unless they use the arena."""
    first = sum(step.phase == "prepare" for step in plan.steps)
    if any(plan.buffers[i].pool == "arena" for step in plan.steps[:first] for i in (*step.reads, *step.writes)):
        first = 0
    return plan.steps[first:]


def boxes(plan: Any, names: Sequence[str]) -> list[Box]:
    """The arena's buffers of a compiler.plan.Plan. No two overlap in both time and space. names: of the nodes of the
    graph that the passes made, by id."""
    steps = run_steps(plan)
    uses: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        for i in dict.fromkeys((*step.reads, *step.writes)):
            if plan.buffers[i].pool == "arena":
                uses.setdefault(i, []).append(number)
    begin = {i: float(used[0]) for i, used in uses.items()}
    end = {i: used[-1] + 1.0 for i, used in uses.items()}
    making: dict[int, list[int]] = {}
    for i, used in uses.items():
        making.setdefault(used[0], []).append(i)
    for old, used in uses.items():  # those whose place a result takes while they are read for the last time
        for new in making.get(used[-1], ()):
            if new != old and _meet(plan.buffers[old], plan.buffers[new]):
                end[old] = begin[new] = used[-1] + 0.5
    made = []
    for i, used in uses.items():
        b = plan.buffers[i]
        kind = _kind(plan, steps[used[0]], steps[used[-1]])
        made.append(Box(b.name if b.node is None else names[b.node], kind, b.dtype, b.shape, used[0], used[-1],
                        begin[i], end[i], b.offset, _whole(b.nbytes)))
    return made


def live_bytes(found: Sequence[Box], count: int) -> list[int]:
    """Bytes alive during each of `count` steps; what shares a place within a step counts once."""
    change = [0] * (count + 1)
    for box in found:
        change[box.first if box.begin == box.first else box.first + 1] += box.nbytes
        change[box.last + 1] -= box.nbytes
    alive, total = [], 0
    for delta in change[:-1]:
        total += delta
        alive.append(total)
    return alive


def _whole(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _meet(a: Any, b: Any) -> bool:
    return a.offset < b.offset + _whole(b.nbytes) and b.offset < a.offset + _whole(a.nbytes)


def _kind(plan: Any, maker: Any, last: Any) -> str:
    if not maker.flops and maker.reads and all(plan.buffers[i].pool in ("argument", "aux") for i in maker.reads):
        return "arguments"
    if maker.phase == "backward":
        return "backward product" if maker.flops else "backward"
    if last.phase == "backward":
        return "kept"
    return "product" if maker.flops else "other"


def bytes_text(nbytes: int) -> str:
    """Bytes for people: `512 B`, `1.5 MiB`."""
    size, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.4g} {unit}"


def memory_svg(plan: Any, names: Sequence[str], model: Sequence[str], title: str, held: Mapping[str, int]) -> str:
    """The picture of a compiler.plan.Plan as the text of an SVG file. names: as for `boxes`. model: the names of the
    nodes of the model's graph, by id. title: what the plan is of. held: what `Plan.memory` tells of it."""
    return "\n".join(_Picture(plan, names, model, title, held).parts()) + "\n"


class _Picture:
    """Places and pieces of one picture. Its width follows from the number of steps."""

    def __init__(self, plan: Any, names: Sequence[str], model: Sequence[str], title: str, held: Mapping[str, int]):
        self.plan, self.title, self.held = plan, title, held
        self.steps = run_steps(plan)
        self.layers = [layers_text(step.layers(model)) for step in self.steps]
        self.boxes = boxes(plan, names)
        self.live = live_bytes(self.boxes, len(self.steps))
        count = max(len(self.steps), 1)
        self.step = min(WIDEST, max(NARROWEST, 1500 / count))
        self.plot_width = max(self.step * count, 560.0)
        self.top = max(plan.arena_bytes, 1) * 1.04
        self.rotated = self.step >= ROTATED
        self.kinds = [k for k in KINDS if any(b.kind == k for b in self.boxes)]

    def x(self, step: float) -> float:
        return LEFT + step * self.step

    def y(self, nbytes: float) -> float:
        return TOP + PLOT * (1 - nbytes / self.top)

    def parts(self) -> Iterator[str]:
        below = TOP + PLOT + (ROTATED_HEIGHT + 6 if self.rotated else 46)
        width, height = LEFT + self.plot_width + RIGHT, below + LINE * (len(self.kinds) + 2) + 8
        yield picture(width, height)
        yield _text(LEFT, 26, self.title, size=17)
        plan = self.plan
        yield _text(LEFT, 46, f"{len(self.steps)} steps, {len(self.boxes)} buffers in an arena of "
                    f"{bytes_text(plan.arena_bytes)}; each in memory of its own would need "
                    f"{bytes_text(plan.unplanned_bytes)}", size=12)
        yield from self.bar()
        yield from self.axes()
        for box in self.boxes:
            yield from self.rectangle(box)
        yield from self.lines()
        for box in self.boxes:
            yield from self.label(box)
        yield from self.legend(below)
        yield "</svg>"

    def bar(self) -> Iterator[str]:
        """All that runs hold, as parts of a bar, and what they are."""
        whole, x = self.held["resident_bytes"], float(LEFT)
        yield _text(LEFT, 68, f"resident: {bytes_text(whole)}, for parameters of "
                    f"{bytes_text(self.held['parameters_bytes'])}", size=12)
        words_x = float(LEFT)
        for name, (colour, words) in PARTS.items():
            nbytes = self.held[name]
            if not nbytes:
                continue
            width, about = self.plot_width * nbytes / whole, f"{words} {bytes_text(nbytes)}"
            yield (f'<rect class="held" x="{x:.2f}" y="76" width="{width:.2f}" height="16" fill="{colour}">'
                   f"<title>{escape(about)}</title></rect>")
            yield f'<rect x="{words_x:.1f}" y="98" width="10" height="10" fill="{colour}"/>'
            yield _text(words_x + 14, 107, about, size=10)
            x, words_x = x + width, words_x + 14 + len(about) * 10 * LETTER + 12

    def place(self, box: Box) -> tuple[float, float, float, float]:
        """Left, top, width and height."""
        x, y = self.x(box.begin), self.y(box.offset + box.nbytes)
        return x, y, self.x(box.end) - x, self.y(box.offset) - y

    def rectangle(self, box: Box) -> Iterator[str]:
        x, y, width, height = self.place(box)
        numbers = f"step {box.first}" + (f" to {box.last}" if box.last > box.first else "")
        maker = f"{self.steps[box.first].label} of {self.layers[box.first]}"
        instead = "" if box.begin == box.first else ", in place of an input"
        about = (f"{box.name}: {box.dtype} {shape_text(box.shape)}\n{bytes_text(box.nbytes)} at {box.offset:,}\n"
                 f"{numbers}\nmade by {maker}{instead}")
        yield (f'<rect class="buffer" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
               f'fill="{KINDS[box.kind][0]}" stroke="white" stroke-width="{0.6 if min(width, height) > 3 else 0.1}">'
               f"<title>{escape(about)}</title></rect>")

    def label(self, box: Box) -> Iterator[str]:
        """Name and shape in the middle, along the longer side; what does not fit is left to the tooltip."""
        x, y, width, height = self.place(box)
        along, across = max(width, height), min(width, height)
        size = 10 if across >= 12 else 8
        shape = shape_text(box.shape)
        fitting = [t for t in (f"{box.name} {shape}".strip(), box.name, shape) if len(t) * size * LETTER + 4 <= along]
        if fitting and across >= size + 1:
            middle_x, middle_y = x + width / 2, y + height / 2
            turn = "" if width >= height else f' transform="rotate(-90 {middle_x:.1f} {middle_y:.1f})"'
            yield from _outlined(f'x="{middle_x:.1f}" y="{middle_y:.1f}" dy="0.35em" text-anchor="middle" '
                                 f'font-size="{size}"{turn}', fitting[0], KINDS[box.kind][0])

    def axes(self) -> Iterator[str]:
        right, bottom = LEFT + self.plot_width, TOP + PLOT
        unit, name = _unit(self.plan.arena_bytes)
        tick = _tick(self.top / unit / 8)
        value = 0.0
        while value * unit <= self.top:
            y = self.y(value * unit)
            yield f'<path d="M{LEFT} {y:.1f}H{right:.1f}" stroke="{FAINT}"/>'
            yield _text(LEFT - 8, y + 4, f"{value:g}", anchor="end")
            value = round(value + tick, 6)
        middle = TOP + PLOT / 2
        yield (f'<text x="20" y="{middle}" text-anchor="middle" font-size="12" transform="rotate(-90 20 {middle})">'
               f"bytes of the arena ({name})</text>")
        yield f'<path d="M{LEFT} {TOP}V{bottom}H{right:.1f}" stroke="{INK}" fill="none"/>'
        every = max(1, round(_tick(36 / self.step)))
        for i, step in enumerate(self.steps):
            x, about = self.x(i + 0.5), f"{i}: {step.label} of {self.layers[i]}"
            if i % every == 0:
                yield f'<path d="M{x:.1f} {bottom}v4" stroke="{INK}"/>'
                yield _text(x, bottom + 16, str(i), anchor="middle")
            if self.rotated:
                layers = self.layers[i]
                short = layers if len(layers) <= LABEL else layers[:LABEL - 1] + "…"
                yield (f'<text x="{x:.1f}" y="{bottom + 24}" text-anchor="end" font-size="8.5" '
                       f'transform="rotate(-90 {x:.1f} {bottom + 24})" dy="0.35em">{escape(short)}'
                       f"<title>{escape(about)}</title></text>")
        below = bottom + (ROTATED_HEIGHT if self.rotated else 38)
        yield _text(LEFT + self.plot_width / 2, below, "step (launch of a kernel) and its layers", anchor="middle",
                    size=12)
        for phase in dict.fromkeys(step.phase for step in self.steps):
            numbers = [i for i, step in enumerate(self.steps) if step.phase == phase]
            x = self.x(numbers[0])
            yield f'<path d="M{x:.1f} {TOP - 22}V{bottom}" stroke="#888888" stroke-dasharray="2 3"/>'
            yield _text(x + 5, TOP - 12, phase, size=12)

    def lines(self) -> Iterator[str]:
        """What is alive at each step, and the peak: the most of it, and the arena where that is more."""
        if not self.live:
            return
        path = f"M{self.x(0):.1f} {self.y(self.live[0]):.1f}" + "".join(
            f"V{self.y(n):.1f}H{self.x(i + 1):.1f}" for i, n in enumerate(self.live))
        yield f'<path class="live" d="{path}" stroke="white" stroke-width="3" fill="none" stroke-opacity="0.7"/>'
        yield f'<path class="live" d="{path}" stroke="{LIVE}" stroke-width="1.3" fill="none"/>'
        right = LEFT + self.plot_width
        levels = {f"peak of what is alive {bytes_text(self.plan.live_bytes)}": self.plan.live_bytes}
        if self.plan.arena_bytes > self.plan.live_bytes:
            levels[f"arena {bytes_text(self.plan.arena_bytes)}"] = self.plan.arena_bytes
        else:
            levels = {f"peak and arena {bytes_text(self.plan.arena_bytes)}": self.plan.arena_bytes}
        for words, level in levels.items():
            y = self.y(level)
            yield f'<path d="M{LEFT} {y:.1f}H{right:.1f}" stroke="{PEAK}" stroke-width="1.2" stroke-dasharray="6 4"/>'
            above = level == max(levels.values())
            yield from _outlined(f'x="{right:.1f}" y="{y - 5 if above else y + 13:.1f}" text-anchor="end" '
                                 f'fill="{PEAK}"', words, "white")

    def legend(self, y: float) -> Iterator[str]:
        for row, kind in enumerate(self.kinds):
            top, own = y + LINE * row, [b for b in self.boxes if b.kind == kind]
            yield f'<rect x="{LEFT}" y="{top + 2:.1f}" width="22" height="11" fill="{KINDS[kind][0]}"/>'
            yield _text(LEFT + 30, top + 12, f"{KINDS[kind][1]}: {len(own)}")
        top = y + LINE * len(self.kinds)
        yield f'<path d="M{LEFT} {top + 8:.1f}h22" stroke="{LIVE}" stroke-width="1.3"/>'
        yield _text(LEFT + 30, top + 12, "bytes alive at each step")
        yield f'<path d="M{LEFT} {top + LINE + 8:.1f}h22" stroke="{PEAK}" stroke-width="1.2" stroke-dasharray="6 4"/>'
        yield _text(LEFT + 30, top + LINE + 12, "their peak, and the size of the arena")


def _outlined(attributes: str, words: str, colour: str) -> Iterator[str]:
    """Text with an outline of the background's colour, so that lines below do not cross it."""
    outline = f'stroke="{colour}" stroke-width="3" stroke-linejoin="round"'
    for extra in (outline, ""):
        yield f'<text {attributes} pointer-events="none" {extra}>{escape(words)}</text>'


def _unit(nbytes: int) -> tuple[int, str]:
    """The largest unit of which there is at least one."""
    units = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
    return next(((size, name) for size, name in units if nbytes >= size), (1, "B"))


def _tick(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... and their parts that is at least `least`."""
    power = 1.0
    while power > least:
        power /= 10
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                return factor * power
        power *= 10
