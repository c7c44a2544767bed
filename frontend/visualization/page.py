"""Pages of HTML that are whole in one file: no script, no font or picture from elsewhere, legible on a screen, on a
phone and on paper."""
from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from math import ceil
from typing import NamedTuple

from mxc.visualization.page_style import STYLE

# A picture on paper, in pixels: how wide it may be on an upright page, and how high a piece of it.
PAPER_WIDTH, PAPER_HEIGHT, OVERLAP = 690.0, 900.0, 20.0
WIDE = 1.3  # a picture so many times wider than the paper, and than it is high, lies on a page of its own
LEAST = 0.55  # of a picture's own size: smaller, its letters cannot be read on paper
SHORT = 24  # letters: a column of no longer words has each in one line


class Section(NamedTuple):
    """name: its place in the page, a word. body: HTML."""

    name: str
    title: str
    body: str


def page(title: str, lead: str, sections: Sequence[Section], foot: str) -> str:
    """The text of an HTML file. title, lead, foot: words."""
    links = "".join(f'<a href="#{each.name}">{escape(each.title)}</a>' for each in sections)
    parts = "\n".join(f'<section id="{each.name}">\n<h2>{escape(each.title)}</h2>\n{each.body}\n</section>'
                      for each in sections)
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
            f'<style>{STYLE}</style>\n</head>\n<body>\n<header><h1>{escape(title)}</h1><p>{escape(lead)}</p></header>\n'
            f'<nav aria-label="sections">{links}</nav>\n<main>\n{parts}\n</main>\n<footer>{escape(foot)}</footer>\n'
            f'</body>\n</html>\n')


def tiles(values: Mapping[str, str], bad: Collection[str] = ()) -> str:
    """Values in large letters, side by side, by what they are. bad: those that are to catch the eye."""
    return '<dl class="tiles">' + "".join(
        f'<div{" class=bad" * (name in bad)}><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>'
        for name, value in values.items()) + "</dl>"


def facts(values: Mapping[str, str]) -> str:
    """Values below each other, each behind what it is."""
    return '<dl class="facts">' + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
                                          for name, value in values.items()) + "</dl>"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = (),
          bars: Mapping[int, Sequence[float]] | None = None, about: str = "") -> str:
    """A table. right: positions of columns of numbers. bars: for columns with a bar behind their words, how long it is
    in each row, of 1. about: what the table is of."""
    bars = bars or {}
    kinds = []
    for i in range(len(columns)):
        is_short = i > 0 and max((len(row[i]) for row in rows), default=0) <= SHORT
        names = ["number"] * (i in right) + ["short"] * is_short + ["bar"] * (i in bars)
        kinds.append(f' class="{" ".join(names)}"' if names else "")
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(columns, kinds, strict=True))
    lines = []
    for number, row in enumerate(rows):
        cells = [f'<th scope="row"{kinds[0]}>{_words(row[0])}</th>']
        for i, words in enumerate(row[1:], 1):
            bar = f' style="--part:{bars[i][number] * 100:.1f}%"' if i in bars else ""
            cells.append(f"<td{kinds[i]}{bar}>{escape(words) if 'short' in kinds[i] else _words(words)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(about)}"><table>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody></table></div>")


def _words(text: str) -> str:
    """Words that may be broken behind the signs that join names."""
    return re.sub(r"(?<=[+_/,])(?=\w)", "<wbr>", escape(text))


def note(text: str, bad: bool = False) -> str:
    """A remark. bad: it is to catch the eye."""
    return f'<p class="note{" bad" * bad}">{escape(text)}</p>'


def figure(name: str, svg: str, about: str) -> str:
    """A picture, the text of an SVG file. name: a word that no other picture of the page has.

    On a screen it has its own size, in a window that scrolls. Paper cannot scroll: see `_pieces`.
    """
    text = svg[svg.index("<svg "):].replace("<svg ", f'<svg id="{name}" role="img" aria-label="{escape(about)}" ', 1)
    width, height = (float(number) for number in re.findall(r'(?:width|height)="([\d.]+)"', text)[:2])
    lying = width > WIDE * max(PAPER_WIDTH, height)
    room = (PAPER_HEIGHT, PAPER_WIDTH - 60) if lying else (PAPER_WIDTH, PAPER_HEIGHT)
    pieces = "".join(f'<svg viewBox="{x:.1f} {y:.1f} {across:.1f} {down:.1f}" width="{across * scale:.1f}" '
                     f'height="{down * scale:.1f}"><use href="#{name}"/></svg>'
                     for x, y, across, down, scale in _pieces((width, height), room, _shapes(text)))
    return (f'<figure class="{"lying" if lying else "upright"}"><div class="scroll" tabindex="0" role="group" '
            f'aria-label="{escape(about)}">{text.rstrip()}</div><div class="pieces" aria-hidden="true">{pieces}</div>'
            f"<figcaption>{escape(about)}</figcaption></figure>")


def _shapes(svg: str) -> list[tuple[float, ...]]:
    """Left, top, width and height of the rectangles in a picture."""
    found = re.findall(r'<rect [^>]*?x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', svg)
    return [tuple(map(float, each)) for each in found]


def _pieces(size: tuple[float, float], room: tuple[float, float],
            shapes: Sequence[tuple[float, ...]]) -> Iterator[tuple[float, ...]]:
    """What of a picture of this width and height is on each page with this room: left, top, width, height, scale.

    It is as wide as the page at most, and cut where it is higher than one. What could not be read so is on one page as
    a whole first, and then cut both ways, but for pieces without any of the `shapes`. Pieces begin with the last lines
    of those before them.
    """
    width, height = size
    scale = min(1.0, room[0] / width)
    if scale < LEAST:
        yield 0.0, 0.0, width, height, min(scale, room[1] / height)
        count = ceil(width * LEAST / room[0])
        scale = room[0] * count / (width + (count - 1) * OVERLAP)  # with which all pieces are of one width
    across, down = room[0] / scale, room[1] / scale
    for y in _cuts(height, down):
        for x in _cuts(width, across):
            if scale == 1 or any(left < x + across and x < left + wide and top < y + down and y < top + high
                                 for left, top, wide, high in shapes):
                yield x, y, min(across, width - x), min(down, height - y), scale


def _cuts(length: float, piece: float) -> list[float]:
    """Where pieces begin."""
    count = 1 if length <= piece + 1 else ceil((length - OVERLAP) / (piece - OVERLAP))
    return [number * (piece - OVERLAP) for number in range(count)]
