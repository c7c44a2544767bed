"""examples/serve.py as a program: its command, its limits of the process, and the guide to it."""
from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from artifact_cases import changed
from documents import ROOT
from service_cases import LABELS, NPZ, PROGRAM, npz, program, saved


@pytest.fixture(scope="module")
def serve() -> Any:
    """The program as a module."""
    return program()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network over one picture of 32 x 32, or over two."""
    return saved(tmp_path_factory.mktemp("serve"))


def test_a_picture_of_too_many_pixels(serve: Any, path: Path):
    """In a process of its own: OpenCV reads the limit once."""
    text = (f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r})\nimport serve, cv2, numpy as np\n"
            "from starlette.testclient import TestClient\n"
            "large = cv2.imencode('.bmp', np.zeros((9000, 9000), np.uint8))[1].tobytes()\n"
            f"client = TestClient(serve.application({str(path)!r}, serve.Settings(most_bytes=1 << 30)))\n"
            "answer = client.post('/predict', content=large, headers={'content-type': 'image/bmp'})\n"
            "print(answer.status_code, answer.json())")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("400 {'error': 'expected a picture of at most 67108864 pixels"), done


WRONG: dict[str, tuple[list[str], str]] = {
    "no clients": (["--clients", "0"], "clients: expected 1 or more, got 0"),
    "fewer than no clients": (["--clients", "-1"], "clients: expected 1 or more, got -1"),
    "fewer than none wait": (["--waiting", "-5"], "waiting: expected 0 or more, got -5"),
    "bodies without bytes": (["--most-bytes", "0"], "most_bytes: expected 1 or more, got 0"),
    "division by zero": (["--std", "0,0,0"], "std: expected three numbers above 0, of red, green and blue, got 0,0,0"),
    "two numbers": (["--mean", "1,2"], "mean: expected three numbers, of red, green and blue, got 1,2"),
    "words": (["--mean", "a,b,c"], "--mean: expected three numbers, of red, green and blue, got 'a,b,c'"),
    "infinity": (["--mean", "1,2,inf"], "mean: expected three numbers, of red, green and blue, got 1,2,inf"),
    "no such port": (["--port", "99999999"], "--port: expected 0 (any that is free) to 65535, got '99999999'"),
    "no labels": (["--labels", "none.txt"], "none.txt: cannot be read: No such file"),
    "bytes as labels": (["--labels", "bytes"], "bytes: expected names of classes, a line each; it is no UTF-8 text"),
    "one label": (["--labels", "one.txt"], "labels: got 1, and no output has as many values in a row: dense_output (1"),
}


@pytest.mark.parametrize(("arguments", "text"), WRONG.values(), ids=WRONG)
def test_a_wrong_command_is_told_in_a_line(arguments: list[str], text: str, serve: Any, path: Path, tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("uvicorn")
    monkeypatch.chdir(tmp_path)
    Path("one.txt").write_text("cat\n")
    Path("bytes").write_bytes(b"\xff\xfe\0")
    monkeypatch.setattr("sys.argv", ["serve.py", str(path), *arguments])
    with pytest.raises(SystemExit) as stop:
        serve.main()
    printed = capsys.readouterr().err
    assert stop.value.code == 2 and text in printed and len(printed.splitlines()) == 1


@pytest.mark.parametrize("kind", ["missing", "empty", "for another CPU"])
def test_an_artifact_that_cannot_run_is_told_in_a_line(kind: str, path: Path, tmp_path: Path):
    """The last one where there is no compiler."""
    place = tmp_path / "net.mxc"
    if kind == "empty":
        place.write_bytes(b"")
    elif kind != "missing":
        changed(path, place, lambda manifest: manifest["parts"].update(cpu="another CPU"))
    text = (f"import sys; sys.argv = ['serve.py', {str(place)!r}]; sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
            "for name in ('llvmlite', 'numba', 'yaml', 'rich'):\n    sys.modules[name] = None\n"
            "import serve; serve.main()")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    wanted = {"missing": "net.mxc: cannot be read: No such file", "empty": "but it has only 0 bytes",
              "for another CPU": "'another CPU' then"}[kind]
    assert done.returncode == 2 and wanted in done.stderr and len(done.stderr.splitlines()) == 1
    assert kind != "for another CPU" or "no compiler (llvmlite and pyyaml are not installed); compile it" in done.stderr


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
            assert json.load(answer)["classes"][0][0]["name"] in LABELS
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM)


def test_the_guide_names_what_the_program_has():
    guide = (ROOT / "docs" / "serving.md").read_text()
    shown = subprocess.run([sys.executable, str(PROGRAM), "--help"], capture_output=True, text=True, timeout=60).stdout
    options = set(re.findall(r"--[a-z][a-z-]+", shown)) - {"--help", "--port"}
    assert len(options) >= 8 and [option for option in sorted(options) if option not in guide] == []
    assert set(re.findall(r"HTTPException\((\d+)", PROGRAM.read_text())) <= set(re.findall(r"\b[45]\d\d\b", guide))
    copied = set(re.findall(r"^COPY (.*) \./$", guide, re.M))
    assert "serve.py net.mxc labels.txt*" in copied
    first = re.search(r"^python serve.py net.mxc (--labels .*)$", guide, re.M)
    started = re.search(r"^CMD (\[.*?\])$", guide, re.M | re.S)
    assert first and started
    assert json.loads(started[1].replace("\\\n", ""))[:-2] == first[1].split()  # but for --clients
