"""How help is laid out: one width for all of it, that of the terminal, and examples as they are."""
from __future__ import annotations

import argparse
import textwrap


class Help(argparse.HelpFormatter):
    """Fills paragraphs as wide as the options; lines that begin with two spaces, as examples do, stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = []
        for paragraph in text.strip("\n").split("\n\n"):
            lines: list[str] = []
            for line in paragraph.splitlines():
                if line.startswith("  ") or not lines or lines[-1].startswith("  ") or lines[-1].endswith(":"):
                    lines.append(line)
                else:
                    lines[-1] += f" {line}"
            parts.append("\n".join(line if line.startswith("  ") else textwrap.fill(line, width) for line in lines))
        return "\n\n".join(parts)
