"""examples/serve.py: what it answers, and what it refuses."""
from __future__ import annotations

import asyncio
import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
import warnings
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from documents import ROOT
from test_artifact import bound

import mxc as mx
from mxc import artifact

pytest.importorskip("starlette", reason="the service needs starlette")
httpx = pytest.importorskip("httpx", reason="starlette's TestClient needs httpx")
cv2 = pytest.importorskip("cv2", reason="the service decodes pictures with OpenCV")
with warnings.catch_warnings():  # newer ones of starlette say that they would rather have httpx2
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

PROGRAM = ROOT / "examples" / "serve.py"
LABELS = [f"kind {i}" for i in range(10)]
JSON, NPZ = {"content-type": "application/json"}, {"content-type": "application/x-npz"}


@pytest.fixture(scope="module")
def serve() -> Any:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("serve", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["serve"] = module  # where dataclasses look for it
    with pytest.MonkeyPatch.context() as patch:  # the program sets what is for a process of its own
        patch.setenv("MXC_NUM_THREADS", os.environ.get("MXC_NUM_THREADS", ""))
        patch.setenv("OPENCV_IO_MAX_IMAGE_PIXELS", "67108864")
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network over one picture of 32 x 32, or over two."""
    path = tmp_path_factory.mktemp("serve") / "net.mxc"
    first = bound(networks.small_resnet(), data=(1, 3, 32, 32))
    artifact.save(path, [first, first.reshape(partial_shaping=True, allow_up_sizing=True, data=(2, 3, 32, 32))],
                  ["data"])
    return path


@pytest.fixture
def client(serve: Any, path: Path) -> Iterator[TestClient]:
    settings = serve.Settings(labels=LABELS, mean=(120, 110, 100), std=(50, 60, 70), most_bytes=200_000)
    with TestClient(serve.application(str(path), settings)) as client:
        yield client


def npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_health_and_model(client: TestClient):
    assert client.get("/health").json() == {"status": "ok", "pending": 0}
    about = client.get("/model").json()
    assert about["inputs"] == [{"data": [1, 3, 32, 32]}, {"data": [2, 3, 32, 32]}]
    assert [list(each.values()) for each in about["outputs"]] == [[[1, 10]], [[2, 10]]]
    assert about["dtypes"]["data"] == "float32"


@pytest.mark.parametrize("ending", [".png", ".jpg"])
def test_a_picture(ending: str, client: TestClient, path: Path):
    picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    encoded = cv2.imencode(ending, picture)[1]
    found = client.post("/predict?top=3", content=encoded.tobytes(), headers={"content-type": "image/any"})
    assert found.status_code == 200
    decoded = cv2.imdecode(encoded, cv2.IMREAD_COLOR)[:, :, ::-1]
    data = ((decoded - np.array([120, 110, 100])) / np.array([50, 60, 70])).transpose(2, 0, 1)[None]
    (scores,) = next(iter(mx.load(path).predict(data=data).values()))
    (classes,) = found.json()["classes"]
    assert [each["class"] for each in classes] == np.argsort(-scores)[:3].tolist()
    assert [each["score"] for each in classes] == pytest.approx(np.sort(scores)[:-4:-1].tolist())
    assert [each["label"] for each in classes] == [LABELS[each["class"]] for each in classes]


def test_a_picture_of_another_size(client: TestClient):
    encoded = cv2.imencode(".png", np.full((50, 70, 3), 90, np.uint8))[1].tobytes()
    small = cv2.imencode(".png", np.full((5, 7, 3), 90, np.uint8))[1].tobytes()
    one, other = (client.post("/predict", content=each, headers={"content-type": "image/png"}).json()
                  for each in (encoded, small))
    assert one == other and len(one["classes"][0]) == 5


def test_arrays(client: TestClient, path: Path):
    data = np.random.default_rng(1).standard_normal((2, 3, 32, 32)).astype("float32")
    (name, wanted), = mx.load(path).predict(data=data).items()
    of_npz = client.post("/predict?outputs=true", content=npz(data=data), headers=NPZ)
    of_json = client.post("/predict?outputs=1", content=json.dumps({"data": data.tolist()}), headers=JSON)
    for found in (of_npz, of_json):
        assert found.status_code == 200
        np.testing.assert_array_equal(np.array(found.json()["outputs"][name], "float32"), wanted)
        assert [row[0]["class"] for row in found.json()["classes"]] == wanted.argmax(axis=1).tolist()
    assert "outputs" not in client.post("/predict", content=npz(data=data), headers=NPZ).json()


def test_shares_and_what_is_not_finite(serve: Any, path: Path):
    with TestClient(serve.application(str(path), serve.Settings(softmax=True))) as client:
        data = np.zeros((1, 3, 32, 32), np.float32)
        (row,) = client.post("/predict?top=10", content=npz(data=data), headers=NPZ).json()["classes"]
        assert sum(each["score"] for each in row) == pytest.approx(1) and "label" not in row[0]
        answer = client.post("/predict?outputs=true", content=npz(data=data * np.nan), headers=NPZ)
        assert answer.status_code == 200 and answer.json()["classes"][0][0]["score"] is None
        assert next(iter(answer.json()["outputs"].values()))[0] == [None] * 10


def bomb() -> bytes:
    """A small archive of much."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", bytes(50 << 20))
    return file.getvalue()


def pickled() -> bytes:
    file = io.BytesIO()
    np.savez(file, data=np.array([{}], object))
    return file.getvalue()


REFUSED: dict[str, tuple[int, str, Any, dict[str, str], str]] = {
    "no such page": (404, "/nothing", b"", {}, "Not Found"),
    "another kind": (415, "/predict", b"x", {"content-type": "text/plain"}, "got 'text/plain'"),
    "no kind": (415, "/predict", b"x", {}, "got ''"),
    "no picture": (400, "/predict", b"<html>", {"content-type": "image/png"}, "the picture cannot be read"),
    "no bytes": (400, "/predict", b"", {"content-type": "image/png"}, "the picture cannot be read"),
    "no JSON": (400, "/predict", b"{", JSON, "the body is no JSON"),
    "deep JSON": (400, "/predict", b"[" * 90_000, JSON, "the body is no JSON"),
    "a list": (400, "/predict", b"[1]", JSON, "expected a JSON object"),
    "words": (422, "/predict", b'{"data": "cat"}', JSON, "needs numbers"),
    "uneven rows": (422, "/predict", b'{"data": [[1], [1, 2]]}', JSON, "is no array"),
    "no archive": (400, "/predict", b"PK\3\4", NPZ, "the body is no .npz file"),
    "objects of Python": (400, "/predict", pickled(), NPZ, "the body is no .npz file"),
    "an archive of much": (413, "/predict", bomb(), NPZ, "the arrays have more than 200000 bytes"),
    "another shape": (422, "/predict", npz(data=np.zeros((1, 3, 32, 33))), NPZ, "has no plan for data=1,3,32,33"),
    "another input": (422, "/predict", npz(dta=np.zeros((1, 3, 32, 32))), NPZ, "did you mean 'data'"),
    "no input": (422, "/predict", b"{}", JSON, "missing: data"),
    "much": (413, "/predict", bytes(200_001), NPZ, "the body has more than 200000 bytes"),
    "no number": (400, "/predict?top=many", b"{}", JSON, "top: expected a whole number, got 'many'"),
}


@pytest.mark.parametrize(("code", "url", "body", "headers", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(code: int, url: str, body: bytes, headers: dict[str, str], text: str, client: TestClient):
    answer = client.post(url, content=body, headers=headers)
    assert answer.status_code == code and list(answer.json()) == ["error"] and text in answer.json()["error"]
    assert client.get("/health").json()["pending"] == 0


def test_what_is_sent_in_pieces_is_counted(client: TestClient):
    answer = client.post("/predict", content=iter([bytes(150_000)] * 3), headers=NPZ)
    assert answer.status_code == 413


def test_only_some_methods_are_there(client: TestClient):
    answer = client.get("/predict")
    assert answer.status_code == 405 and answer.json() == {"error": "Method Not Allowed"}


def test_a_picture_of_too_many_pixels(serve: Any, path: Path):
    """In a process of its own: OpenCV reads the limit once."""
    text = (f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r})\nimport serve, cv2, numpy as np\n"
            "from starlette.testclient import TestClient\n"
            "large = cv2.imencode('.png', np.zeros((9000, 9000), np.uint8))[1].tobytes()\n"
            f"client = TestClient(serve.application({str(path)!r}, serve.Settings()))\n"
            "answer = client.post('/predict', content=large, headers={'content-type': 'image/png'})\n"
            "print(answer.status_code, answer.json())")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("400 {'error': 'the picture cannot be read"), done


def test_a_model_that_takes_no_picture(serve: Any, tmp_path: Path):
    artifact.save(tmp_path / "net.mxc", [bound(networks.perceptron(), data=(2, 64))], ["data"])
    picture = cv2.imencode(".png", np.zeros((8, 8, 3), np.uint8))[1].tobytes()
    with TestClient(serve.application(str(tmp_path / "net.mxc"), serve.Settings())) as client:
        answer = client.post("/predict", content=picture, headers={"content-type": "image/png"})
        assert answer.status_code == 422 and "send its inputs as arrays" in answer.json()["error"]


def test_a_fault_is_told_without_its_words(serve: Any, path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serve.Service, "_json", lambda self, body: 1 / 0)
    with TestClient(serve.application(str(path), serve.Settings()), raise_server_exceptions=False) as client:
        answer = client.post("/predict", content=b"{}", headers=JSON)
        assert (answer.status_code, answer.json()) == (500, {"error": "internal error: ZeroDivisionError"})


def test_requests_at_the_same_time_get_their_own_answers(client: TestClient, path: Path):
    rng = np.random.default_rng(2)
    batches = [rng.standard_normal((1, 3, 32, 32)).astype("float32") for _ in range(24)]
    loaded = mx.load(path)
    wanted = [next(iter(loaded.predict(data=data).values())) for data in batches]

    def post(data: np.ndarray) -> Any:
        return client.post("/predict?outputs=true", content=npz(data=data), headers=NPZ).json()

    with ThreadPoolExecutor(8) as pool:
        for answer, values in zip(pool.map(post, batches), wanted, strict=True):
            np.testing.assert_array_equal(np.array(next(iter(answer["outputs"].values())), "float32"), values)


def test_too_many_requests_are_sent_away(serve: Any, path: Path, monkeypatch: pytest.MonkeyPatch):
    """One is computed, one waits, and the third is told to come again; then all goes on."""
    app = serve.application(str(path), serve.Settings(clients=1, waiting=1))
    begun, go_on = threading.Event(), threading.Event()
    answer = serve.Service._answer

    def slow(self: Any, *arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return answer(self, *arguments)

    monkeypatch.setattr(serve.Service, "_answer", slow)
    body = npz(data=np.zeros((1, 3, 32, 32), np.float32))

    async def check() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            posts = [asyncio.create_task(client.post("/predict", content=body, headers=NPZ)) for _ in range(2)]
            while not begun.is_set() or (await client.get("/health")).json()["pending"] < 2:
                await asyncio.sleep(0.01)
            third = await client.post("/predict", content=body, headers=NPZ)
            assert third.status_code == 503 and third.headers["retry-after"] == "1"
            assert third.json() == {"error": "too many requests are waiting"}
            go_on.set()
            assert [(await post).status_code for post in posts] == [200, 200]
            assert (await client.post("/predict", content=body, headers=NPZ)).status_code == 200

    asyncio.run(check())


def test_as_a_program(path: Path, tmp_path: Path):
    pytest.importorskip("uvicorn")
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    process = subprocess.Popen([sys.executable, str(PROGRAM), str(path), "--labels", str(tmp_path / "labels.txt"),
                                "--port", "0", "--clients", "2"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        address = next(found[0] for line in process.stderr if (found := re.search(r"http://[\d.]+:\d+", line)))
        with urllib.request.urlopen(f"{address}/health", timeout=30) as answer:
            assert json.load(answer)["status"] == "ok"
        request = urllib.request.Request(f"{address}/predict", npz(data=np.zeros((1, 3, 32, 32))), NPZ)
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer)["classes"][0][0]["label"] in LABELS
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM)


def test_the_guide_names_what_the_program_has():
    guide = (ROOT / "docs" / "serving.md").read_text()
    shown = subprocess.run([sys.executable, str(PROGRAM), "--help"], capture_output=True, text=True, timeout=60).stdout
    options = set(re.findall(r"--[a-z][a-z-]+", shown)) - {"--help", "--port", "--data-binary", "--shape"}
    assert len(options) >= 8 and [option for option in sorted(options) if option not in guide] == []
    assert set(re.findall(r"HTTPException\((\d+)", PROGRAM.read_text())) <= set(re.findall(r"\b[45]\d\d\b", guide))
    copied = set(re.findall(r"^COPY (.*) \./$", guide, re.M))
    assert "serve.py net.mxc labels.txt" in copied
