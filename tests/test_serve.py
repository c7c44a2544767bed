"""examples/serve.py: what it answers, and what it refuses."""
from __future__ import annotations

import asyncio
import io
import json
import threading
import zipfile
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from artifact_cases import bound
from service_cases import JSON, LABELS, NPZ, PNG, TestClient, cv2, httpx, npz, program, saved

import mxc as mx
from mxc import artifact
from mxc.cli.main import main


@pytest.fixture(scope="module")
def serve() -> Any:
    """The program as a module."""
    return program()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network over one picture of 32 x 32, or over two."""
    return saved(tmp_path_factory.mktemp("serve"))


@pytest.fixture
def client(serve: Any, path: Path) -> Iterator[TestClient]:
    settings = serve.Settings(labels=LABELS, mean=(120, 110, 100), std=(50, 60, 70), most_bytes=200_000)
    with TestClient(serve.application(str(path), settings)) as client:
        yield client


def test_health_and_model(client: TestClient):
    assert client.get("/health").json() == {"status": "ok", "pending": 0, "uploads": 0}
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
    assert [each["name"] for each in classes] == [LABELS[each["class"]] for each in classes]


def test_a_picture_of_another_size(client: TestClient):
    encoded = cv2.imencode(".png", np.full((50, 70, 3), 90, np.uint8))[1].tobytes()
    small = cv2.imencode(".png", np.full((5, 7, 3), 90, np.uint8))[1].tobytes()
    one, other = (client.post("/predict", content=each, headers={"content-type": "image/png"}).json()
                  for each in (encoded, small))
    assert one == other and len(one["classes"][0]) == 5


@pytest.mark.parametrize("size", [(60, 50), (20, 50), (10, 12)], ids=str)
def test_a_picture_is_that_of_mxc_run(size: tuple[int, int], serve: Any, path: Path, tmp_path: Path,
                                      capsys: pytest.CaptureFixture[str]):
    """Whether both sides shrink, one does, or both grow."""
    file = tmp_path / "a.png"
    cv2.imwrite(str(file), np.random.default_rng(3).integers(0, 256, (*size, 3), np.uint8))
    assert main(["run", str(path), "--input", str(file), "--mean", "120,110,100", "--print", "--json"]) == 0
    (wanted,) = json.loads(capsys.readouterr().out).values()
    with TestClient(serve.application(str(path), serve.Settings(mean=(120, 110, 100)))) as client:
        found = client.post("/predict?outputs=all", content=file.read_bytes(), headers={"content-type": "image/png"})
    assert list(found.json()["outputs"].values()) == [wanted["values"]]


def pictures(count: int) -> list[bytes]:
    rng = np.random.default_rng(4)
    return [cv2.imencode(".png", rng.integers(0, 256, (32, 32, 3), np.uint8))[1].tobytes() for _ in range(count)]


def form(files: list[bytes]) -> dict[str, Any]:
    return {"files": [("picture", (f"{i}.png", content, "image/png")) for i, content in enumerate(files)]}


def test_pictures_on_a_plan_for_two(serve: Any, tmp_path: Path):
    """A batch is cut and filled up for pictures as for arrays; those of one request are rows in their order."""
    artifact.save(tmp_path / "net.mxc", [bound(networks.small_resnet(), data=(2, 3, 32, 32))], ["data"])
    with TestClient(serve.application(str(tmp_path / "net.mxc"), serve.Settings())) as client:
        alone = [client.post("/predict", content=each, headers={"content-type": "image/png"}) for each in pictures(5)]
        together = client.post("/predict", **form(pictures(5)))
        assert [each.status_code for each in (*alone, together)] == [200] * 6
        rows = together.json()["classes"]
        assert len(rows) == 5 and len({json.dumps(row) for row in rows}) == 5
        for row, (wanted,) in zip(rows, (each.json()["classes"] for each in alone), strict=True):
            assert [each["class"] for each in row] == [each["class"] for each in wanted]
            assert [each["score"] for each in row] == pytest.approx([each["score"] for each in wanted], rel=1e-5)


def test_pictures_where_batches_are_not_cut(serve: Any, tmp_path: Path):
    """And the first size is taken of those that have so many rows."""
    mixing = mx.sym.BlockGrad(mx.sym.softmax(mx.sym.mean(mx.sym.Variable("data"), axis=(2, 3)), axis=0), name="mixed")
    artifact.save(tmp_path / "net.mxc", [bound(mixing, data=shape) for shape in ((2, 3, 8, 8), (3, 3, 6, 6))], ["data"])
    with TestClient(serve.application(str(tmp_path / "net.mxc"), serve.Settings())) as client:
        assert client.post("/predict", **form(pictures(2))).status_code == 200
        assert len(client.post("/predict", **form(pictures(3))).json()["classes"]) == 3
        answer = client.post("/predict", **form(pictures(1)))
        assert answer.status_code == 422
        assert answer.json() == {"error": "the model takes 2 or 3 pictures at once, got 1"}


def test_grey_pictures_and_channels_that_come_last(serve: Any, tmp_path: Path):
    same = mx.sym.BlockGrad(mx.sym.Variable("data"), name="same")
    content = pictures(1)[0]
    image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
    grey = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_GRAYSCALE)
    for shape, wanted in (((1, 32, 32, 3), image[None]), ((1, 1, 32, 32), grey[None, None])):
        artifact.save(tmp_path / "net.mxc", [bound(same, data=shape)], ["data"])
        with TestClient(serve.application(str(tmp_path / "net.mxc"), serve.Settings(mean=(9, 9, 9)))) as client:
            found = client.post("/predict?outputs=all", content=content, headers={"content-type": "image/png"}).json()
        np.testing.assert_array_equal(np.array(found["outputs"]["same_output"]), wanted.astype("float32") - 9)
        assert "classes" not in found and found["arrays"] == {
            "same_output": {"shape": list(shape), "dtype": "float32"}} and "?outputs=all" in found["hint"]


def detector() -> mx.sym.Symbol:
    """Classes, scores and boxes of four objects, out of 24 numbers."""
    data = mx.sym.Variable("data")
    parts = {"ids": (0, 4, (0, 4, 1)), "scores": (4, 8, (0, 4, 1)), "boxes": (8, 24, (0, 4, 4))}
    return mx.sym.Group([mx.sym.Reshape(mx.sym.slice_axis(data, axis=1, begin=begin, end=end), shape=shape, name=name)
                         for name, (begin, end, shape) in parts.items()])


def test_what_a_detector_found(serve: Any, tmp_path: Path):
    """In the words of `mxc run --json`; what are no detections are arrays, not classes."""
    artifact.save(tmp_path / "net.mxc", [bound(detector(), data=(1, 24))], ["data"])
    rows = np.concatenate([[2, 0, -1, -1], [0.25, 0.75, -1, -1], np.arange(16)])[None]
    with TestClient(serve.application(str(tmp_path / "net.mxc"), serve.Settings(labels=["cat"]))) as client:
        found = client.post("/predict", content=npz(data=rows), headers=NPZ).json()
        assert found == {"detections": [{"found": 2, "best": [
            {"class": 0, "name": "cat", "score": 0.75, "box": [4, 5, 6, 7]},
            {"class": 2, "name": "2", "score": 0.25, "box": [0, 1, 2, 3]}]}]}
        best = client.post("/predict?top=1", content=npz(data=rows), headers=NPZ).json()["detections"][0]["best"]
        assert best == [found["detections"][0]["best"][0]]
        raw = client.post("/predict", content=npz(data=rows + 0.5), headers=NPZ).json()
        assert list(raw) == ["arrays", "hint"] and raw["arrays"]["boxes_output"]["shape"] == [1, 4, 4]


def test_of_several_outputs_the_names_tell_which_has_the_classes(serve: Any, tmp_path: Path):
    data = mx.sym.Variable("data")
    several = mx.sym.Group([mx.sym.BlockGrad(mx.sym.slice_axis(data, axis=1, begin=0, end=end)) for end in (4, 3)])
    artifact.save(tmp_path / "net.mxc", [bound(several, data=(1, 4))], ["data"])
    body = npz(data=np.array([[9, 7, 8, 10]]))
    for labels, wanted in (((), None), ("abc", [0, 2, 1]), ("abcd", [3, 0, 2, 1])):
        with TestClient(serve.application(str(tmp_path / "net.mxc"), serve.Settings(labels=labels))) as client:
            found = client.post("/predict", content=body, headers=NPZ).json()
            assert (["arrays", "hint"] if wanted is None else ["classes"]) == list(found)
            assert wanted is None or [each["class"] for each in found["classes"][0]] == wanted


def test_arrays(client: TestClient, path: Path):
    data = np.random.default_rng(1).standard_normal((2, 3, 32, 32)).astype("float32")
    (name, wanted), = mx.load(path).predict(data=data).items()
    of_npz = client.post("/predict?outputs=all", content=npz(data=data), headers=NPZ)
    of_json = client.post("/predict?outputs=all", content=json.dumps({"data": data.tolist()}), headers=JSON)
    for found in (of_npz, of_json):
        assert found.status_code == 200
        np.testing.assert_array_equal(np.array(found.json()["outputs"][name], "float32"), wanted)
        assert [row[0]["class"] for row in found.json()["classes"]] == wanted.argmax(axis=1).tolist()
    assert "outputs" not in client.post("/predict", content=npz(data=data), headers=NPZ).json()


def test_shares_and_what_is_not_finite(serve: Any, path: Path):
    with TestClient(serve.application(str(path), serve.Settings(softmax=True))) as client:
        data = np.zeros((1, 3, 32, 32), np.float32)
        (row,) = client.post("/predict?top=10", content=npz(data=data), headers=NPZ).json()["classes"]
        assert sum(each["score"] for each in row) == pytest.approx(1) and "name" not in row[0]
        answer = client.post("/predict?outputs=all", content=npz(data=data * np.nan), headers=NPZ)
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
    "no picture": (400, "/predict", b"<html>", PNG, "expected a picture of at most 67108864 pixels, got 6 bytes that"),
    "no bytes": (400, "/predict", b"", PNG, "expected a picture of at most 67108864 pixels, got 0 bytes that cannot"),
    "half a picture": (400, "/predict", b"\xff\xd8\xff\xda\0\2half", PNG, "the picture is cut off: its end is missing"),
    "many pixels": (413, "/predict", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\0\0\1\0\0IEND\xaeB`\x82", PNG,
                    "the picture has 65536 x 65536 pixels, more than 67108864"),
    "no form": (400, "/predict", b"x", {"content-type": "multipart/form-data; boundary=a"}, "no multipart/form-data"),
    "no boundary": (400, "/predict", b"x", {"content-type": "multipart/form-data"}, "is no multipart/form-data"),
    "an odd form": (400, "/predict", b"x", {"content-type": b"multipart/form-data; boundary=\xe9"}, "no multipart"),
    "an empty form": (400, "/predict", b"--a--\r\n", {"content-type": "multipart/form-data; boundary=a"}, "with files"),
    "many pictures": (413, "/predict", b"--a\r\n\r\nx\r\n" * 65 + b"--a--\r\n",
                      {"content-type": "multipart/form-data; boundary=a"}, "the body has 65 pictures, more than 64"),
    "any bytes": (415, "/predict", b"x", {"content-type": "application/octet-stream"}, "application/x-npz, got 'appl"),
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
    "a single number": (422, "/predict", b'{"data": 1}', JSON, "has no plan for data=(); it has plans for data="),
    "no input": (422, "/predict", b"{}", JSON, "missing: data"),
    "much": (413, "/predict", bytes(200_001), NPZ, "the body has more than 200000 bytes"),
    "no number": (400, "/predict?top=many", b"{}", JSON, "top: expected a whole number, got 'many'"),
    "no such outputs": (400, "/predict?outputs=banana", b"{}", JSON, "outputs: expected none or all, got 'banana'"),
}


@pytest.mark.parametrize(("code", "url", "body", "headers", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(code: int, url: str, body: bytes, headers: dict[str, str], text: str, client: TestClient):
    answer = client.post(url, content=body, headers=headers)
    assert answer.status_code == code and list(answer.json()) == ["error"] and text in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert client.get("/health").json() == {"status": "ok", "pending": 0, "uploads": 0}


def test_what_is_sent_in_pieces_is_counted(client: TestClient):
    answer = client.post("/predict", content=iter([bytes(150_000)] * 3), headers=NPZ)
    assert answer.status_code == 413


def test_only_some_methods_are_there(client: TestClient):
    answer = client.get("/predict")
    assert answer.status_code == 405 and answer.json() == {"error": "Method Not Allowed"}


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
        return client.post("/predict?outputs=all", content=npz(data=data), headers=NPZ).json()

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
            assert (await client.get("/health")).json()["status"] == "busy"
            third = await client.post("/predict", content=body, headers=NPZ)
            assert third.status_code == 503 and third.headers["retry-after"] == "1"
            assert third.json() == {"error": "too many requests are waiting"}
            go_on.set()
            assert [(await post).status_code for post in posts] == [200, 200]
            assert (await client.post("/predict", content=body, headers=NPZ)).status_code == 200
            assert (await client.get("/health")).json()["status"] == "ok"

    asyncio.run(check())


@pytest.mark.parametrize(("limit", "value", "code"), [
    ("PAUSE_SECONDS", 0.2, 408), ("BODY_SECONDS", 0.2, 408), ("", 0, 0)], ids=["paused", "long", "neither"])
def test_who_stops_in_mid_body_takes_no_place(limit: str, value: float, code: int, serve: Any, path: Path,
                                              monkeypatch: pytest.MonkeyPatch):
    """More clients than there are places: others are answered meanwhile, and the slow ones end after a time."""
    if limit:
        monkeypatch.setattr(serve, limit, value)
    app = serve.application(str(path), serve.Settings(clients=1, waiting=1))
    body = npz(data=np.zeros((1, 3, 32, 32), np.float32))
    go_on = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield body[:100]
        await go_on.wait()
        yield body[100:]

    async def check() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service", timeout=60) as client:
            posts = [asyncio.create_task(client.post("/predict", content=slow(), headers=NPZ)) for _ in range(9)]
            if code:
                assert {(await post).status_code for post in posts} == {code}
            else:
                while (await client.get("/health")).json()["uploads"] < 9:
                    await asyncio.sleep(0.01)
                assert (await client.get("/health")).json() == {"status": "ok", "pending": 0, "uploads": 9}
                assert (await client.post("/predict", content=body, headers=NPZ)).status_code == 200
                for post in posts:
                    post.cancel()
                await asyncio.gather(*posts, return_exceptions=True)
            assert (await client.get("/health")).json() == {"status": "ok", "pending": 0, "uploads": 0}

    asyncio.run(check())


def test_uploads_are_bounded(serve: Any, path: Path, monkeypatch: pytest.MonkeyPatch):
    """In their number, and in the bytes of all together."""
    app = serve.application(str(path), serve.Settings(clients=1, waiting=1, most_bytes=1000))
    monkeypatch.setattr(serve, "MOST_UPLOADS", 3)

    async def part(count: int) -> AsyncIterator[bytes]:
        yield bytes(count)
        await asyncio.Event().wait()

    async def check(count: int, most: int, words: str) -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            posts = []
            for number in range(most):
                posts.append(asyncio.create_task(client.post("/predict", content=part(count), headers=NPZ)))
                while (await client.get("/health")).json()["uploads"] <= number:
                    await asyncio.sleep(0.01)
            assert (await client.get("/health")).json()["status"] == ("busy" if most == 3 else "ok")
            answer = await client.post("/predict", content=bytes(count), headers=NPZ)
            assert answer.status_code == 503 and words in answer.json()["error"] and "retry-after" in answer.headers
            for post in posts:
                post.cancel()
            await asyncio.gather(*posts, return_exceptions=True)

    asyncio.run(check(10, 3, "too many requests are being sent"))
    asyncio.run(check(900, 2, "too long together"))
    assert app.routes[0].endpoint.__self__.held == 0
