"""A web server of a test's own, which gives one content, and fails as it is told to."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server:
    """content: what it gives. has_parts: whether it gives parts of it. tag: its ETag, "" for none. plans: what it does
    with the next requests, one after the other: a status to answer, or after how many bytes the connection ends.
    asked: of each request its Range and If-Range."""

    def __init__(self, content: bytes):
        self.content, self.has_parts, self.tag = content, True, '"one"'
        self.plans: list[tuple[str, int]] = []
        self.asked: list[tuple[str | None, str | None]] = []
        self.url = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        part, version = request.headers.get("Range"), request.headers.get("If-Range")
        self.asked.append((part, version))
        plan, number = self.plans.pop(0) if self.plans else ("all", 0)
        begin = int(part.removeprefix("bytes=").rstrip("-")) if part and self.has_parts else 0
        if version is not None and version != self.tag:
            begin = 0
        if plan == "status" or begin >= len(self.content):
            request.send_error(number or 416)
            return
        request.send_response(206 if begin else 200)
        if begin:
            request.send_header("Content-Range", f"bytes {begin}-{len(self.content) - 1}/{len(self.content)}")
        if self.tag:
            request.send_header("ETag", self.tag)
        request.send_header("Content-Length", str(len(self.content) - begin))
        request.end_headers()
        request.wfile.write(self.content[begin:] if plan == "all" else self.content[begin:begin + number])
        request.close_connection = True


@contextlib.contextmanager
def serving(content: bytes) -> Iterator[Server]:
    """A server on this machine, while the block runs."""
    made = Server(content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_address[1]}/folder/numbers.bin"
        yield made
        server.shutdown()
        thread.join()
