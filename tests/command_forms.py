"""What each command prints, piped, on a terminal of 80 columns and as JSON, for tests/test_command_forms.py.

    python tests/command_forms.py --write     to be run after a change of what is printed, and its difference to be read

writes golden/commands/NAME.txt. Kernels are those of a CPU of the level x86-64-v3. What differs from run to run or from
machine to machine is masked: numbers with a decimal point, byte counts of caches, times, names of machines. Of JSON
only the keys and the kinds of values are kept.
"""
from __future__ import annotations

import json
import os
import re
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from commands import command, on_terminal

import mxc as mx

FOLDER = Path(__file__).parent / "golden" / "commands"
LEVEL, KEPT = "x86-64-v3", "-kept"
NET = ("net-symbol.json", "--shape", "data=2,4")
# name -> arguments of the command; the folder of `prepare` is the current one
CASES: dict[str, tuple[str, ...]] = {
    "compile": ("compile", *NET), "compile-sets": ("compile", *NET, "--shape", "data=3,4", "-o", "two.mxc"),
    "compile-batches": ("compile", *NET, "--batches", "1,8", "-o", "batches.mxc"),
    "compile-bare": ("compile", "bare-symbol.json", "--shape", "data=2,4", "-o", "bare.mxc"),
    "compile-float16": ("compile", *NET, "--precision", "float16", "-o", "net16.mxc"),
    "compile-int8": ("compile", *NET, "--precision", "int8", "--calibrate", "x.npz", "-o", "net8.mxc"),
    "run": ("run", "net-symbol.json", "--input", "data=x.npy", "--top", "2"),
    "run-labels": ("run", "net-symbol.json", "--input", "x.npz", "--labels", "names.txt"),
    "run-detections": ("run", "found-symbol.json", "--input", "found.npz", "--labels", "names.txt", "--top", "1"),
    "bench": ("bench", *NET, "--iterations", "5", "--threads", "1"),
    "bench-clients": ("bench", "net.mxc", "--iterations", "5", "--threads", "1", "--clients", "2"),
    "profile": ("profile", *NET, "--iterations", "2", "--threads", "1"),
    "profile-layers": ("profile", *NET, "--iterations", "2", "--threads", "1", "--by", "layer"),
    "verify": ("verify", "net-symbol.json", "--input", "data=x.npy"), "verify-nodes": ("verify", *NET, "--nodes"),
    "verify-nan": ("verify", "net-symbol.json", "--input", "data=nan.npy"),
    "reduce": ("reduce", *NET, "--check", "grep -q FullyConnected {}-symbol.json && exit 7", "-o", "small"),
    "inspect": ("inspect", "net-symbol.json"), "inspect-layers": ("inspect", *NET),
    "inspect-artifact": ("inspect", "net.mxc"), "inspect-groups": ("inspect", *NET, "--groups"),
    "inspect-plan": ("inspect", *NET, "--plan"), "inspect-diff": ("inspect", *NET, "--diff", "decompose"),
    "report": ("report", "net.mxc", "--params", "net-0000.params",
               "--threads", "1", "--seconds", "0.01", "-o", "net.html"),
    "convert": ("convert", "net-0000.params", "net.npz"),
    "convert-precision": ("convert", "net-symbol.json", "made", "--shape", "data=2,4", "--precision", "float16"),
    "cache-info": ("cache", "info"), "cache-ls": ("cache", "ls", "plan of 2"), "cache-dir": ("cache", "dir"),
    "cache-explain": ("cache", "explain", "plan of 2"), "cache-verify": ("cache", "verify"),
    "ops": ("ops", "broadcast_mul"), "im2rec": ("im2rec", "lists", "photos", "--list", "--recursive"),
    "rec-ls": ("rec", "ls", "some.rec"), "rec-verify": ("rec", "verify", "some.rec"),
    "error": ("run", "net-symbol.json", "--input", "data=wide.npy")}
WITHOUT_JSON = ("error",)
TIMED = ("profile", "profile-layers", "cache-ls")  # whose columns are as wide as what is masked in them
MASKS = (  # what is told of times and machines, and numbers that rounding makes
    (r"(?m)^note: (?:the machine|the median|\d+ threads share).*\n(?:(?!model|trace|note).+\n)*", ""),
    (r"(?m)^(machine: +|limits: +|a run: +|made for: +|runs here: +|sections: +|rate: +).*\n(?:  +.*\n)*", r"\1#\n"),
    (r"(?m)^(p50|p90|p99|min|mean): .*$", r"\1: #"), (r"(model: +net.mxc), .*", r"\1, #"),
    (r"(?m)(seconds:? +|bytes: +|limit: +|kernels: +)[\d,.]+$", r"\1#"), (r"\d+\.\d+e[-+]\d+", "#.##e##"),
    (r"/\S+/(cache-kept|net-symbol)", r"\1"), (r"\b[0-9a-f]{24}-[0-9a-f]{24}\b", "KEY"), (r"\d[\d,]*\.\d+( %)?", "#"),
    (r" +# (%|ms)", " #"), (r"in cache|# % (copy|multiply-add)|\d+ % (copy|multiply-add)", "LIMIT"),
    (r"with\s+Python\s+and\s+libraries\s+[\d,.]+", "with Python and libraries #"),
    (r"(plan of 2 operators +)[\d,]+", r"\1#"), (r"(artifact bytes +)[\d,]+", r"\1#"))


def prepare() -> tuple[int, dict[str, str]]:
    """Make a model with parameters, inputs, an artifact, a folder of files and a file of records here. The exit code of
    compiling, and the environment for `forms`."""
    body = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="body_fc")
    mx.sym.tanh(body, name="body_tanh").save("net-symbol.json")
    mx.sym.softmax(body, axis=0, name="over_rows").save("bare-symbol.json")
    mx.nd.save("net-0000.params", {"arg:body_fc_weight": mx.nd.ones((3, 4)), "arg:body_fc_bias": mx.nd.zeros((3,))})
    found = [mx.sym.BlockGrad(mx.sym.Variable(name), name=f"found_{name}") for name in ("ids", "scores", "boxes")]
    mx.sym.Group(found).save("found-symbol.json")
    np.savez("found.npz", ids=np.array([[[2], [0], [-1]]], np.float32), scores=np.array([[[0.5], [0.75], [-1]]]),
             boxes=np.arange(12, dtype=np.float32).reshape(1, 3, 4) * 31)
    Path("names.txt").write_text("cat\ndog\nbird of paradise\n")
    np.savez("x.npz", data=np.array([[1, 2, 3, -6.5]], np.float32))
    np.save("x.npy", np.array([[1, 2, 3, -6.5], [0, 0, 0, 0.25]], np.float32))
    np.save("nan.npy", np.full((1, 4), np.nan, np.float32))
    np.save("wide.npy", np.ones((2, 5), np.float32))
    for name in ("photos/cats/one.jpg", "photos/dogs/two.png"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b"\xff\xd8\xff")
    record = mx.recordio.MXIndexedRecordIO("some.idx", "some.rec", "w")
    for key in range(2):
        record.write_idx(key, mx.recordio.pack(mx.recordio.IRHeader(0, float(key), key, 0), struct.pack("<I", key)))
    record.close()
    variables = {"MXC_CPU": LEVEL, "MXC_CACHE_DIR": str(Path.cwd() / "cache"), "MXC_NUM_THREADS": "1"}
    command("compile", *NET, **{**variables, "MXC_CACHE_DIR": variables["MXC_CACHE_DIR"] + KEPT})
    return command("compile", *NET, "-o", "net.mxc", **variables).returncode, variables


def kinds(data: Any) -> Any:
    """The keys and the kinds of values of JSON data; of a list the first element's. Advice is there or not, as the
    machine is busy or not."""
    if isinstance(data, dict):
        return {name: "list" if name == "advice" else kinds(value) for name, value in data.items()}
    if isinstance(data, list):
        return [kinds(data[0])] if data else []
    return "number" if isinstance(data, int | float) and not isinstance(data, bool) else type(data).__name__


def masked(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, instead in MASKS:
        text = re.sub(pattern, instead, text)
    return "".join(f"{re.sub(r'(?<=#) +| +(?=#)', ' ', line).rstrip()}\n" for line in text.splitlines())


def forms(name: str, **variables: str) -> str:
    """The three forms of a case, one after the other."""
    arguments = CASES[name]
    if arguments[0] == "cache":  # which nothing but `prepare` fills
        variables = {**variables, "MXC_CACHE_DIR": variables["MXC_CACHE_DIR"] + KEPT}
    piped = command(*arguments, **variables)
    code, shown = on_terminal(*arguments, **variables)
    assert code == piped.returncode, (name, code, piped)
    parts = {"piped": masked(piped.stdout + piped.stderr), "80 columns": masked(shown)}
    if name in TIMED:
        parts = {"piped": re.sub("  +", "  ", parts["piped"])}
    if name not in WITHOUT_JSON:
        made = command(*arguments, "--json", **variables)
        parts["json"] = json.dumps(kinds(json.loads(made.stdout)), indent=1) + "\n"
    return "".join(f"-- {title}\n{text}" for title, text in parts.items())


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    os.chdir(tempfile.mkdtemp())
    _, variables = prepare()
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for name in CASES:
        (FOLDER / f"{name}.txt").write_text(forms(name, **variables))


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    main()
