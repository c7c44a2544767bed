"""What a page of HTML is made of, and how a browser shows it."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = {"meta", "br", "wbr", "hr", "img", "input", "link", "base"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--hide-scrollbars")


@dataclass
class Page(HTMLParser):
    """The parts of a page. tags: how many of each there are. attributes: of all elements. faults: tags that do not
    match. sections: the text of each section by its id."""

    text: str
    tags: Counter[str] = field(default_factory=Counter)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    sections: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self._section = ""
        self.feed(self.text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "section":
            self._section = dict(attrs)["id"] or ""
            self.sections[self._section] = ""
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")
        if tag == "section":
            self._section = ""

    def handle_data(self, data: str) -> None:
        if self._section:
            self.sections[self._section] += data

    def values(self, name: str) -> list[str]:
        """Of all attributes of this name."""
        return [value for _, each, value in self.attributes if each == name]

    def elsewhere(self) -> list[str]:
        """What the page would fetch: all that a browser loads for a page that is not in it."""
        found = [f"<{tag}>" for tag in ("script", "link", "iframe", "img", "object", "embed", "base") if self.tags[tag]]
        found += [f"{name}={value}" for _, name, value in self.attributes
                  if name in ("src", "srcset", "data", "poster", "background") or name.startswith("on")
                  or (name in ("href", "xlink:href") and not value.startswith("#"))]
        styles = [self.text, *self.values("style")]
        found += [each for style in styles for each in re.findall(r"url\((?!#)[^)]*\)|@import[^;]*", style)]
        return found


def browse(page: Path, width: int, expression: str, folder: Path) -> Any:
    """The JSON value that an expression of JavaScript has in a page that is that wide (a window may not be so narrow,
    so the page is in a frame)."""
    frame = folder / f"frame-{width}.html"
    frame.write_text(f"""<!DOCTYPE html><meta charset="utf-8"><body>
        <iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{escape(page.read_text())}"></iframe><script>
        addEventListener('load', () => {{
            const found = document.querySelector('iframe').contentWindow.eval({json.dumps(f"({expression})")});
            document.body.textContent = JSON.stringify(found);
            document.body.id = 'found'; }});</script></body>""")
    done = chromium(folder, f"--window-size={width + 100},1000", "--dump-dom", frame.as_uri())
    found = re.search(r'<body id="found">(.*)</body>', done, re.S)
    assert found, done[:2000]
    return json.loads(unescape(found[1]))


def chromium(folder: Path, *arguments: str) -> str:
    """What the browser prints."""
    assert CHROMIUM is not None
    done = subprocess.run([CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
