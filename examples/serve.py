"""A web service for a compiled model: POST a picture or arrays, get the classes with the highest scores.

    pip install starlette uvicorn opencv-python-headless        # besides mxc, of which it needs NumPy alone
    mxc compile net-symbol.json --shape data=1,3,224,224 -o net.mxc
    python serve.py net.mxc --labels labels.txt --mean 123.675,116.28,103.53 --std 58.395,57.12,57.375 --softmax

    curl --data-binary @cat.jpg -H 'Content-Type: image/jpeg' 'localhost:8000/predict?top=3'
    curl -d '{"data": [[0.1, 0.2]]}' -H 'Content-Type: application/json' localhost:8000/predict
    curl --data-binary @inputs.npz -H 'Content-Type: application/x-npz' 'localhost:8000/predict?outputs=true'
    curl localhost:8000/health

docs/serving.md has the rest.
"""
from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import queue
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(1 << 26))  # OpenCV refuses larger pictures
os.environ.setdefault("MXC_NUM_THREADS", "1")  # of each run: requests run beside each other
import cv2

import mxc
from mxc.base import MXNetError

BODY_SECONDS = 30.0  # in which a request must have come
NPZ = ("application/x-npz", "application/zip", "application/octet-stream")
UNREADABLE = (ValueError, OSError, EOFError, KeyError, NotImplementedError, MemoryError, RecursionError,
              zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Settings:
    """labels: the names of the classes; none: they have numbers alone. mean, std: of red, green and blue, from 0 to
    255: what is subtracted from a picture, and what it is divided by. softmax: turn scores into shares. clients:
    requests that are computed at the same time. waiting: further ones that may wait. most_bytes: of a request's body,
    and of what is in an archive."""

    labels: Sequence[str] = ()
    mean: Sequence[float] = (0.0, 0.0, 0.0)
    std: Sequence[float] = (1.0, 1.0, 1.0)
    softmax: bool = False
    clients: int = 2
    waiting: int = 32
    most_bytes: int = 16 << 20


class Service:
    """The model, once for each request that may be computed at the same time."""

    def __init__(self, path: str, settings: Settings):
        self.settings, self.model = settings, mxc.load(path)
        self.pending = 0
        self._limiter = anyio.CapacityLimiter(settings.clients)
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for number in range(settings.clients):
            predictor = self.model if number == 0 else self.model.clone()
            predictor.predict(**{name: np.zeros(shape) for name, shape in self.model.input_shapes[0].items()})
            self._free.put(predictor)

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok", "pending": self.pending})

    async def about(self, request: Request) -> Response:
        model = self.model
        return JSONResponse({"inputs": model.input_shapes, "outputs": model.output_shapes,
                             "dtypes": {**model.input_dtypes, **model.output_dtypes}})

    async def predict(self, request: Request) -> Response:
        if self.pending >= self.settings.clients + self.settings.waiting:
            raise HTTPException(503, "too many requests are waiting", {"Retry-After": "1"})
        self.pending += 1
        try:
            top, wants_outputs = whole_number(request, "top", 5), whole_number(request, "outputs", 0) > 0
            body = await self._body(request)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            found = await anyio.to_thread.run_sync(partial(self._answer, kind, body, top, wants_outputs),
                                                   limiter=self._limiter)
        finally:
            self.pending -= 1
        return JSONResponse(found)

    async def _body(self, request: Request) -> bytes:
        most = self.settings.most_bytes
        too_long = HTTPException(413, f"the body has more than {most} bytes")
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for piece in request.stream():
                    body += piece
                    if len(body) > most:
                        raise too_long
        except TimeoutError:
            raise HTTPException(408, f"the request took longer than {BODY_SECONDS:g} seconds") from None
        return bytes(body)

    def _answer(self, kind: str, body: bytes, top: int, wants_outputs: bool) -> dict[str, Any]:
        """The work of a request, in a thread of its own."""
        if kind.startswith("image/"):
            inputs = self._picture(body)
        elif kind in NPZ:
            inputs = self._archive(body)
        elif kind == "application/json":
            inputs = self._json(body)
        else:
            raise HTTPException(415, f"expected the content type image/*, application/json or {NPZ[0]}, got {kind!r}")
        predictor = self._free.get()
        try:
            outputs = predictor.predict(**inputs)
        except MXNetError as error:
            raise HTTPException(422, str(error)) from None
        finally:
            self._free.put(predictor)
        found: dict[str, Any] = {"classes": self._classes(next(iter(outputs.values())), top)}
        if wants_outputs:
            found["outputs"] = {name: plain(values) for name, values in outputs.items()}
        return found

    def _picture(self, body: bytes) -> dict[str, np.ndarray]:
        """A picture in the size and the layout of the model's input, stretched to it."""
        name, shape = self._picture_input()
        try:
            picture = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR)
        except cv2.error as error:  # it has too many pixels, or there are no bytes
            raise HTTPException(400, f"the picture cannot be read: {error.err}") from None
        if picture is None:
            raise HTTPException(400, "the picture cannot be read")
        first = shape[1] == 3
        height, width = shape[2:] if first else shape[1:3]
        way = cv2.INTER_AREA if picture.shape[0] > height else cv2.INTER_LINEAR
        picture = cv2.cvtColor(cv2.resize(picture, (width, height), interpolation=way), cv2.COLOR_BGR2RGB)
        pixels = (picture - np.asarray(self.settings.mean)) / np.asarray(self.settings.std)
        return {name: (pixels.transpose(2, 0, 1) if first else pixels)[None]}

    def _picture_input(self) -> tuple[str, Sequence[int]]:
        for shapes in self.model.input_shapes:
            ((name, shape), *others) = shapes.items()
            if not others and len(shape) == 4 and shape[0] == 1 and 3 in (shape[1], shape[3]):
                return name, shape
        raise HTTPException(422, "the model has no plan for one picture: send its inputs as arrays")

    def _archive(self, body: bytes) -> dict[str, np.ndarray]:
        try:
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                if sum(each.file_size for each in archive.infolist()) > self.settings.most_bytes:
                    raise HTTPException(413, f"the arrays have more than {self.settings.most_bytes} bytes")
            with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
                return dict(arrays)
        except UNREADABLE as error:
            raise HTTPException(400, f"the body is no .npz file: {error}") from None

    def _json(self, body: bytes) -> dict[str, Any]:
        try:
            inputs = json.loads(body)
        except UNREADABLE as error:
            raise HTTPException(400, f"the body is no JSON: {error}") from None
        if not isinstance(inputs, dict):
            raise HTTPException(400, "expected a JSON object: the values of each input by its name")
        return inputs

    def _classes(self, scores: np.ndarray, top: int) -> list[list[dict[str, Any]]]:
        """For each row of scores, its largest ones."""
        labels = self.settings.labels
        rows = scores.reshape(len(scores) if scores.ndim > 1 else 1, -1).astype(np.float64)
        if self.settings.softmax:
            with np.errstate(all="ignore"):
                shares = np.exp(rows - rows.max(axis=1, keepdims=True))
                rows = shares / shares.sum(axis=1, keepdims=True)
        return [[{"class": int(i), "score": plain(row[i])} | ({"label": labels[i]} if i < len(labels) else {})
                 for i in np.argsort(-row, kind="stable")[:top]] for row in rows]


def plain(values: np.ndarray) -> Any:
    """An array as JSON has it; null for what is no finite number."""
    values = np.asarray(values)
    return np.where(np.isfinite(values), values.astype(object), None).tolist()


def whole_number(request: Request, name: str, default: int) -> int:
    """A parameter of the URL; true is 1, and false 0."""
    text = request.query_params.get(name, str(default)).lower()
    text = {"true": "1", "false": "0"}.get(text, text)
    if not text.isdecimal() or len(text) > 9:
        raise HTTPException(400, f"{name}: expected a whole number, got {text!r}")
    return int(text)


async def refused(request: Request, error: Exception) -> Response:
    """Errors as JSON."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)
    return JSONResponse({"error": f"internal error: {type(error).__name__}"}, 500)


def application(path: str, settings: Settings) -> Starlette:
    """The service as an ASGI application. path: of the artifact."""
    service = Service(path, settings)
    return Starlette(routes=[Route("/predict", service.predict, methods=["POST"]), Route("/health", service.health),
                             Route("/model", service.about)],
                     exception_handlers={HTTPException: refused, Exception: refused})


def three_numbers(text: str) -> tuple[float, ...]:
    numbers = tuple(map(float, text.split(",")))
    if len(numbers) != 3:
        raise ValueError
    return numbers


def main() -> None:
    import uvicorn

    default = Settings()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the artifact, NAME.mxc")
    parser.add_argument("--labels", type=Path, help="a file with the name of a class in each line")
    parser.add_argument("--mean", type=three_numbers, default=default.mean, help="of red, green and blue, 0 to 255")
    parser.add_argument("--std", type=three_numbers, default=default.std, help="of red, green and blue, 0 to 255")
    parser.add_argument("--softmax", action="store_true", help="the model gives scores: turn them into shares")
    parser.add_argument("--clients", type=int, default=os.cpu_count() or 1, help="requests that run at the same time")
    parser.add_argument("--waiting", type=int, default=default.waiting, help="further requests that may wait")
    parser.add_argument("--most-bytes", type=int, default=default.most_bytes, help="of a request")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    labels = options.labels.read_text("utf-8").splitlines() if options.labels else ()
    settings = Settings(labels, options.mean, options.std, options.softmax, options.clients, options.waiting,
                        options.most_bytes)
    uvicorn.run(application(options.model, settings), host=options.host, port=options.port)


if __name__ == "__main__":
    main()
