"""A web service for a compiled model: POST pictures or arrays, get the classes with the highest scores, or what a
detector found.

    pip install starlette uvicorn opencv-python-headless        # besides mxc, of which it needs NumPy alone
    mxc compile net-symbol.json --shape data=1,3,224,224 --batches 1,8 -o net.mxc
    python serve.py net.mxc --labels labels.txt --mean 123.675,116.28,103.53 --std 58.395,57.12,57.375 --softmax

    curl --data-binary @cat.jpg -H 'Content-Type: image/jpeg' 'localhost:8000/predict?top=3'
    curl -F a=@cat.jpg -F b=@dog.png localhost:8000/predict
    curl -d '{"data": [[0.1, 0.2]]}' -H 'Content-Type: application/json' localhost:8000/predict
    curl --data-binary @inputs.npz -H 'Content-Type: application/x-npz' 'localhost:8000/predict?outputs=all'
    curl localhost:8000/health

docs/serving.md has the rest.
"""
from __future__ import annotations

import argparse
import asyncio
import io
import json
import math
import os
import queue
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from functools import partial
from typing import Any, NoReturn

import anyio
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(1 << 26))  # OpenCV refuses larger pictures
os.environ.setdefault("OPENCV_LOG_LEVEL", "FATAL")  # what is wrong with a picture is told to who sent it
os.environ.setdefault("MXC_NUM_THREADS", "1")  # of each run: requests run beside each other
import mxc
from mxc import class_names, detections, picture_inputs
from mxc.base import MXNetError
from mxc.compiler.system import opencv
from mxc.runtime.picture_heads import is_cut_off, picture_head

MOST_PIXELS = int(os.environ["OPENCV_IO_MAX_IMAGE_PIXELS"])
BODY_SECONDS = 30.0  # in which a request must have come
PAUSE_SECONDS = 5.0  # that may pass between two pieces of it
MOST_UPLOADS = 1024  # requests that may be on their way at the same time
MOST_PICTURES = 64  # in one request
MULTIPART, JSON, NPZ = "multipart/form-data", "application/json", "application/x-npz"
UNREADABLE = (ValueError, OSError, EOFError, KeyError, NotImplementedError, MemoryError, RecursionError,
              zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Settings:
    """labels: the names of the classes; none: they have numbers alone. mean, std: of red, green and blue, from 0 to
    255: what is subtracted from a picture, and what it is divided by. softmax: turn scores into shares. clients:
    requests that are computed at the same time. waiting: further ones that may wait. most_bytes: of a request's body,
    and of what is in an archive. Raises ValueError for what cannot be."""

    labels: Sequence[str] = ()
    mean: Sequence[float] = (0.0, 0.0, 0.0)
    std: Sequence[float] = (1.0, 1.0, 1.0)
    softmax: bool = False
    clients: int = 2
    waiting: int = 32
    most_bytes: int = 16 << 20

    def __post_init__(self) -> None:
        for name, least in (("clients", 1), ("waiting", 0), ("most_bytes", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}: expected {least} or more, got {getattr(self, name)}")
        for name, numbers in (("mean", self.mean), ("std", self.std)):
            if len(numbers) != 3 or not all(map(math.isfinite, numbers)) or (name == "std" and min(numbers) <= 0):
                raise ValueError(f"{name}: expected three numbers{' above 0' * (name == 'std')}, of red, green and "
                                 f"blue, got {','.join(f'{number:g}' for number in numbers)}")


class Service:
    """The model, once for each request that may be computed at the same time.

    pending: requests that are computed or wait for that. uploads: those whose bodies are on their way; held: the bytes
    of these. Raises MXNetError for what is no artifact that runs here, ValueError for labels that do not fit it.
    """

    def __init__(self, path: str, settings: Settings):
        opencv.library()  # which says what to install where it is not there
        self.settings, self.model = settings, mxc.load(path)
        self.operators = self.model.operators
        self.pending = self.uploads = self.held = 0
        self._most_held = settings.most_bytes * (settings.clients + settings.waiting)
        self._limiter = anyio.CapacityLimiter(settings.clients)
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for number in range(settings.clients):
            predictor = self.model if number == 0 else self.model.clone()
            outputs = predictor.predict(**{name: np.zeros(shape) for name, shape in self.model.input_shapes[0].items()})
            self._free.put(predictor)
        if settings.labels and detections.of_outputs(outputs, self.operators) is None \
                and scores_among(outputs, len(settings.labels)) is None:
            shapes = ", ".join(f"{name} {values.shape}" for name, values in outputs.items())
            raise ValueError(f"labels: got {len(settings.labels)}, and no output has as many values in a row: "
                             f"{shapes}")

    @property
    def is_full(self) -> bool:
        """Whether no further request can wait."""
        return self.pending >= self.settings.clients + self.settings.waiting

    async def health(self, request: Request) -> Response:
        is_busy = self.is_full or self.uploads >= MOST_UPLOADS or self.held >= self._most_held
        return JSONResponse({"status": "busy" if is_busy else "ok", "pending": self.pending, "uploads": self.uploads})

    async def about(self, request: Request) -> Response:
        model = self.model
        return JSONResponse({"inputs": model.input_shapes, "outputs": model.output_shapes,
                             "dtypes": {**model.input_dtypes, **model.output_dtypes}})

    async def predict(self, request: Request) -> Response:
        top, wants_outputs = whole_number(request, "top", 5), choice(request, "outputs", "none", "all") == "all"
        body = await self._body(request)
        if self.is_full:  # only what can be computed at once takes a place
            raise busy("too many requests are waiting")
        self.pending += 1
        try:
            return await anyio.to_thread.run_sync(
                partial(self._answer, request.headers.get("content-type", ""), body, top, wants_outputs),
                limiter=self._limiter)
        finally:
            self.pending -= 1

    async def _body(self, request: Request) -> bytes:
        """What a request sends. All of them together hold as much as the largest that may run and wait."""
        most = self.settings.most_bytes
        too_long = HTTPException(413, f"the body has more than {most} bytes")
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise too_long
        if self.uploads >= MOST_UPLOADS:
            raise busy("too many requests are being sent")
        self.uploads += 1
        body, clock = bytearray(), asyncio.get_running_loop().time
        end = clock() + BODY_SECONDS
        try:
            async with asyncio.timeout(PAUSE_SECONDS) as limit:
                async for piece in request.stream():
                    limit.reschedule(min(end, clock() + PAUSE_SECONDS))
                    body += piece
                    self.held += len(piece)
                    if len(body) > most:
                        raise too_long
                    if self.held > self._most_held:
                        raise busy("the requests that are being sent are too long together")
        except TimeoutError:
            raise HTTPException(408, f"the request took longer than {BODY_SECONDS:g} seconds, or stopped for "
                                f"{PAUSE_SECONDS:g}") from None
        except ClientDisconnect:
            raise HTTPException(400, "the request ended before its body did") from None
        finally:
            self.uploads -= 1
            self.held -= len(body)
        return bytes(body)

    def _answer(self, content_type: str, body: bytes, top: int, wants_outputs: bool) -> Response:
        """The work of a request, in a thread of its own."""
        kind = content_type.partition(";")[0].strip().lower()
        if kind.startswith("image/"):
            inputs = self._pictures([body])
        elif kind == MULTIPART:
            inputs = self._pictures(parts_of(content_type, body))
        elif kind == NPZ:
            inputs = self._archive(body)
        elif kind == JSON:
            inputs = self._json(body)
        else:
            raise HTTPException(415, f"expected the content type image/*, {MULTIPART}, {JSON} or {NPZ}, got {kind!r}")
        predictor = self._free.get()
        try:
            outputs = predictor.predict(**inputs)
        except MXNetError as error:
            raise HTTPException(422, told(error)) from None
        finally:
            self._free.put(predictor)
        found = self._found(outputs, top)
        if wants_outputs:
            found["outputs"] = {name: plain(values) for name, values in outputs.items()}
        return JSONResponse(found)

    def _pictures(self, encoded: Sequence[bytes]) -> dict[str, np.ndarray]:
        """Pictures in the size and the layout of the model's input, stretched to it."""
        name, shape, axis = self._picture_input(len(encoded))
        height, width = shape[2:] if axis == 1 else shape[1:3]
        pictures = [self._picture(each, shape[axis], height, width) for each in encoded]
        return {name: np.stack([each.transpose(2, 0, 1) if axis == 1 else each for each in pictures])}

    def _picture(self, encoded: bytes, channels: int, height: int, width: int) -> np.ndarray:
        head = picture_head(encoded)
        if head is not None and head.width * head.height > MOST_PIXELS:
            raise HTTPException(413, f"the picture has {head.width} x {head.height} pixels, more than {MOST_PIXELS}")
        try:
            pixels = picture_inputs.decoded(encoded, channels)
        except MXNetError:
            raise HTTPException(400, picture_inputs.CUT_OFF if is_cut_off(encoded) else
                                f"expected a picture of at most {MOST_PIXELS} pixels, got {len(encoded)} bytes that "
                                "cannot be read as one") from None
        values = picture_inputs.resized(pixels, height, width).astype(np.float32)
        mean, std = (np.asarray(each[:channels], np.float32) for each in (self.settings.mean, self.settings.std))
        return (values - mean) / std

    def _picture_input(self, rows: int) -> tuple[str, Sequence[int], int]:
        """The input that takes so many pictures, its shape, the first of those that the model was compiled for, and the
        axis of its channels."""
        counts = []
        for shapes in self.model.input_shapes:
            name, shape = next(iter(shapes.items())) if len(shapes) == 1 else ("", ())
            axis = picture_inputs.channel_axis(shape)
            if axis is None:
                continue
            if self.model.shapes_for({name: (rows, *shape[1:])}) is not None:
                return name, shape, axis
            counts.append(str(shape[0]))
        raise HTTPException(422, f"the model takes {' or '.join(counts)} pictures at once, got {rows}" if counts else
                            "the model does not take pictures: send its inputs as arrays")

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

    def _found(self, outputs: Mapping[str, np.ndarray], top: int) -> dict[str, Any]:
        """What the outputs say: detections, classes, or nothing that is known here."""
        labels = self.settings.labels
        objects = detections.of_outputs(outputs, self.operators)
        if objects is not None:
            return {"detections": detections.as_data(objects, top, labels or None, ())}
        scores = scores_among(outputs, len(labels))
        if scores is not None:
            return {"classes": self._classes(scores, top)}
        return {"arrays": {name: {"shape": list(values.shape), "dtype": str(values.dtype)}
                           for name, values in outputs.items()},
                "hint": "the outputs are neither scores of classes nor detections; ask for their values: ?outputs=all"}

    def _classes(self, rows: np.ndarray, top: int) -> list[list[dict[str, Any]]]:
        """For each row of scores, its largest ones."""
        labels = self.settings.labels
        if self.settings.softmax:
            with np.errstate(all="ignore"):
                shares = np.exp(rows - rows.max(axis=1, keepdims=True))
                rows = shares / shares.sum(axis=1, keepdims=True)
        return [[{"class": int(i), **({"name": labels[i]} if labels else {}), "score": plain(row[i])}
                 for i in np.argsort(-row, kind="stable")[:top]] for row in rows]


def scores_among(outputs: Mapping[str, np.ndarray], names: int) -> np.ndarray | None:
    """The scores of classes, float64 (N, C), among a model's outputs: with names of classes the first one that has as
    many values in a row, else the only output; None where there is none, as where these are grids."""
    rows = [values.reshape(values.shape[:2]).astype(np.float64) for values in outputs.values()
            if values.ndim > 1 and math.prod(values.shape[2:]) == 1]
    if names:
        return next((each for each in rows if each.shape[1] == names), None)
    return rows[0] if rows and len(outputs) == 1 else None


def parts_of(content_type: str, body: bytes) -> list[bytes]:
    """The files of a form (RFC 7578), in order."""
    header = Message()
    header["Content-Type"] = content_type
    mark = header.get_boundary("")
    pieces = (b"\r\n" + body).split(f"\r\n--{mark}".encode("latin-1", "replace"))
    if not mark or len(pieces) < 3 or not pieces[-1].startswith(b"--"):
        raise HTTPException(400, f"the body is no {MULTIPART} with files")
    if len(pieces) - 2 > MOST_PICTURES:
        raise HTTPException(413, f"the body has {len(pieces) - 2} pictures, more than {MOST_PICTURES}")
    return [piece.partition(b"\r\n\r\n")[2] for piece in pieces[1:-1]]


def plain(values: np.ndarray) -> Any:
    """An array as JSON has it; null for what is no finite number."""
    values = np.asarray(values)
    return np.where(np.isfinite(values), values.astype(object), None).tolist()


def told(error: Exception) -> str:
    """What an error of mxc says to who sent the request: its last line is for who compiles the model."""
    return str(error).partition("\n")[0]


def whole_number(request: Request, name: str, default: int) -> int:
    """A parameter of the URL."""
    text = request.query_params.get(name, str(default))
    if not text.isdecimal() or len(text) > 9:
        raise HTTPException(400, f"{name}: expected a whole number, got {text[:80]!r}")
    return int(text)


def choice(request: Request, name: str, *words: str) -> str:
    """A parameter of the URL; the first word where it is not there."""
    text = request.query_params.get(name, words[0])
    if text not in words:
        raise HTTPException(400, f"{name}: expected {' or '.join(words)}, got {text[:80]!r}")
    return text


def busy(reason: str) -> HTTPException:
    """Why a request is sent away that may come again."""
    return HTTPException(503, reason, {"Retry-After": "1"})


async def refused(request: Request, error: Exception) -> Response:
    """Errors as JSON."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)
    return JSONResponse({"error": f"internal error: {type(error).__name__}"}, 500)


def application(path: str, settings: Settings) -> Starlette:
    """The service as an ASGI application. path: of the artifact. Raises as Service."""
    service = Service(path, settings)
    return Starlette(routes=[Route("/predict", service.predict, methods=["POST"]), Route("/health", service.health),
                             Route("/model", service.about)],
                     exception_handlers={HTTPException: refused, Exception: refused})


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the command."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def three_numbers(text: str) -> tuple[float, ...]:
    """R,G,B as numbers; Settings looks at how many there are, and which."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected three numbers, of red, green and blue, got {text!r}") from None


def port(text: str) -> int:
    """A port of TCP."""
    if not text.isdecimal() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected 0 (any that is free) to 65535, got {text!r}")
    return int(text)


def main() -> None:
    import uvicorn

    default = Settings()
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the artifact, NAME.mxc")
    parser.add_argument("--labels", help="a file with the names of classes: a text with a line each, or JSON")
    parser.add_argument("--mean", type=three_numbers, default=default.mean, help="of red, green and blue, 0 to 255")
    parser.add_argument("--std", type=three_numbers, default=default.std, help="of red, green and blue, 0 to 255")
    parser.add_argument("--softmax", action="store_true", help="the model gives scores: turn them into shares")
    parser.add_argument("--clients", type=int, default=os.cpu_count() or 1, help="requests that run at the same time")
    parser.add_argument("--waiting", type=int, default=default.waiting, help="further requests that may wait")
    parser.add_argument("--most-bytes", type=int, default=default.most_bytes, help="of a request")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=port, default=8000)
    options = parser.parse_args()
    try:
        labels = class_names.read(options.labels) if options.labels else ()
        settings = Settings(labels, options.mean, options.std, options.softmax, options.clients, options.waiting,
                            options.most_bytes)
        app = application(options.model, settings)
    except (MXNetError, ValueError) as error:
        parser.error("; ".join(str(error).splitlines()))
    uvicorn.run(app, host=options.host, port=options.port)


if __name__ == "__main__":
    main()
