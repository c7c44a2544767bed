"""How often runs took how long, as an SVG picture."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mxc.visualization.svg import INK, picture, text

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 600, 150, 52, 24, 34, 40  # pixels: of the plot, and around it
BINS = 60
FILL, MARK = "#9ecae1", "#c0392b"


def histogram_svg(times: Sequence[float], marks: Mapping[str, float], unit: str) -> str:
    """The picture of times, which are not empty, as the text of an SVG file. marks: times that get a line and a name.
    unit: of all of them. What is longer than the longest mark is counted beside the plot."""
    return "\n".join(_parts(times, marks, unit)) + "\n"


def _parts(times: Sequence[float], marks: Mapping[str, float], unit: str) -> Iterator[str]:
    first, last = min(times), max([*marks.values(), min(times)])
    room = (last - first) or first or 1.0
    counts, beyond = [0] * BINS, 0
    for time in times:
        place = int((time - first) / room * BINS)
        if time > last:
            beyond += 1
        else:
            counts[min(place, BINS - 1)] += 1
    most, bar, bottom = max(counts), WIDTH / BINS, TOP + HEIGHT
    yield picture(LEFT + WIDTH + RIGHT, bottom + BOTTOM)
    for i, count in enumerate(counts):
        if count:
            high = HEIGHT * count / most
            yield (f'<rect x="{LEFT + i * bar:.1f}" y="{bottom - high:.1f}" width="{bar - 1:.1f}" height="{high:.1f}" '
                   f'fill="{FILL}"><title>{count} of {first + i * room / BINS:.4g} to '
                   f'{first + (i + 1) * room / BINS:.4g} {unit}</title></rect>')
    yield f'<path d="M{LEFT} {TOP}V{bottom}H{LEFT + WIDTH}" stroke="{INK}" fill="none"/>'
    yield text(LEFT - 6, TOP + 8, f"{most}", anchor="end")
    yield text(LEFT - 6, bottom, "0", anchor="end")
    for i in range(7):
        x = LEFT + WIDTH * i / 6
        yield f'<path d="M{x:.1f} {bottom}v4" stroke="{INK}"/>' + text(x, bottom + 16, f"{first + room * i / 6:.4g}",
                                                                       anchor="middle")
    longer = f"; {beyond} took longer, up to {max(times):.4g}" if beyond else ""
    yield text(LEFT + WIDTH / 2, bottom + 33, f"{unit}{longer}", anchor="middle", size=12)
    free = -1e9  # to the right of the last name
    for name, time in sorted(marks.items(), key=lambda mark: mark[1]):
        x = LEFT + WIDTH * (time - first) / room
        at = max(x, free)
        free = at + 7.5 * len(name)
        yield f'<path d="M{x:.1f} {TOP - 6}V{bottom}" stroke="{MARK}" stroke-dasharray="4 3"/>'
        yield text(at, TOP - 12, name, anchor="middle")
    yield "</svg>"
