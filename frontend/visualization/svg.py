"""Pieces of SVG pictures that several have in common."""
from __future__ import annotations

from xml.sax.saxutils import escape

INK = "#222222"
LETTER = 0.6  # width of a letter over its height, at most


def picture(width: float, height: float) -> str:
    """The start of a picture of that size in pixels, and its white ground. `</svg>` ends it."""
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="DejaVu Sans, Verdana, sans-serif" '
            f'font-size="11" fill="{INK}">\n<rect width="100%" height="100%" fill="white"/>')


def text(x: float, y: float, words: str, anchor: str = "start", size: float = 11) -> str:
    """Words at a place. anchor: "start", "middle" or "end": which part of them is there."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'
