"""Files damaged with regard to their structure: `python fuzz_files.py KIND SEED COUNT`, KIND `json`, `params` or `mxc`.

Each try takes a good file, changes it in one to three places (numbers, names, counts and whole branches rather than
only bytes, so that what lies behind the first check is reached too), and loads it. Allowed is success or an MXNetError
with a message; not a crash, another exception, more than SECONDS, or more memory than FREE + 4 times the file. Run as a
process of its own. Prints each kind of finding with the number of its try, then how many tries came to what; the exit
code is the number of kinds.
"""
from __future__ import annotations

import copy
import json
import os
import random
import re
import shutil
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mxc as mx
from mxc.compiler.ops import table
from mxc.runtime import artifact_file

SECONDS, FREE = 20, 64 << 20
NUMBERS = [0, 1, 2, 3, 7, 8, 9, 255, -1, -2, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1, 10**30]
TEXTS = ["", "0", "-1", "(", "()", "(1,2", "(1, 1)", "(0,0)", "(3,3)", "(-1,)", "(99999999999999999999,)", "1e400",
         "nan", "None", "True", "float16", "int8", "null", "data", "relu", "2147483648", "1" * 5000, "\u00e9", "\0",
         "[[1],[2]]", "(" * 200, "1000000000", "(1000000,1000000)"]
OTHERS: list[Any] = [None, True, 0.5, 1e308, [], {}, [[]], [0, 0, 0], {"a": "b"}, [1, 2, 3, 4]]


class Slow(Exception):
    """A try took too long."""


# -- Symbol JSON

def networks() -> list[dict[str, Any]]:
    """Graphs with convolutions, auxiliary states, several outputs, a recurrence; one as old versions wrote it, with a
    graph inside a node."""
    data = mx.sym.Variable("data", shape=(0, 3, 8, 8), dtype="float32")
    net = mx.sym.Convolution(data, kernel=(3, 3), pad=(1, 1), num_filter=4, name="conv", attr={"__lr_mult__": "2"})
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn"), act_type="relu")
    parts = mx.sym.split(mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max"), num_outputs=2, axis=1)
    joined = mx.sym.concat(mx.sym.transpose(parts[0], axes=(0, 1, 3, 2)), parts[1] * 2 + 1, dim=1)
    net = mx.sym.FullyConnected(mx.sym.Dropout(mx.sym.reshape(joined, shape=(0, -1))), num_hidden=5, name="fc")
    vision = mx.sym.Group([mx.sym.SoftmaxOutput(net, name="softmax"), mx.sym.topk(net, k=2), mx.sym.mean(net, axis=1)])
    words = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=9, output_dim=4, name="embed")
    steps = mx.sym.SwapAxis(words, dim1=0, dim2=1)
    recurrent = mx.sym.RNN(steps, mx.sym.Variable("parameters"), mx.sym.Variable("begin"), mx.sym.Variable("cell"),
                           state_size=3, num_layers=1, mode="lstm", name="lstm")
    found = [json.loads(vision.tojson()), json.loads(recurrent.tojson())]
    old = copy.deepcopy(found[0])
    old["attrs"]["mxnet_version"] = ["int", 800]
    for node in old["nodes"]:
        node["param"] = node.pop("attrs", {})
        node["backward_source_id"] = -1
    old["nodes"][-1]["subgraphs"] = [copy.deepcopy(found[1])]
    return [*found, old]


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside a JSON document but itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way for key, inner in items for way in [(*here, key), *places(inner, (*here, key))]]


def at(document: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        document = document[key]
    return document


def change_value(document: Any, rng: random.Random, operators: list[str]) -> None:
    """One change of a JSON document in place: another value, a branch gone, doubled, moved, or another operator."""
    ways = places(document)
    if not ways:
        return
    way = rng.choice(ways)
    parent, key = at(document, way[:-1]), way[-1]
    value, kind = parent[key], rng.randrange(8)
    if kind == 0:
        del parent[key]
    elif kind == 1:
        parent[key] = copy.deepcopy(at(document, rng.choice(ways)))
    elif kind == 2 and isinstance(parent, list):
        parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(value))
    elif kind == 2:
        parent[rng.choice(TEXTS)] = copy.deepcopy(value)
    elif kind == 3:
        nodes = document.get("nodes")
        node = rng.choice(nodes) if isinstance(nodes, list) and nodes else None
        if isinstance(node, dict):
            node["op"] = rng.choice(operators)
    elif kind == 4 and isinstance(value, str):
        parent[key] = re.sub(r"-?\d+", lambda m: str(rng.choice(NUMBERS)), value, count=1)
    elif isinstance(value, str):
        parent[key] = rng.choice(TEXTS)
    elif isinstance(value, int):
        parent[key] = rng.choice(NUMBERS)
    else:
        parent[key] = rng.choice(OTHERS)


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    """Cut off, a piece removed, doubled or replaced by other bytes."""
    if not data:
        return data
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.choice([1, 1, 4, 8, 60]))
    flipped = bytes([data[start] ^ 1 << rng.randrange(8)])
    other = rng.choice([b"", data[start:end] * 2, rng.randbytes(end - start), flipped])
    return data[:start] if rng.random() < 0.25 else data[:start] + other + data[end:]


def damaged_json(rng: random.Random, sources: list[dict[str, Any]], operators: list[str]) -> bytes:
    document = copy.deepcopy(rng.choice(sources))
    for _ in range(rng.choice([1, 1, 2, 3])):
        change_value(document, rng, operators)
    data = json.dumps(document).encode()
    return change_bytes(data, rng) if rng.random() < 0.15 else data


def load_json(path: Path) -> str:
    symbol = mx.sym.load(str(path))
    mx.sym.load_json(symbol.tojson())
    symbol.infer_type_partial()
    symbol.infer_shape_partial(data=(2, 3, 8, 8))
    return "loaded"


# -- parameter files

Field = tuple[str, int]  # a code of struct, and its value; "s" with a length is written as bytes


def fields_of_array(rng: random.Random) -> list[Any]:
    """One array in a version and storage at random, as fields: (code, number), or bytes."""
    version = rng.choice(["V0", "V1", "V2", "V2", "V3", "rows", "csr"])
    shape = [rng.choice([1, 2, 3, 5]) for _ in range(rng.choice([1, 2, 2, 3]))]
    flag, width = rng.choice([(0, 4), (1, 8), (2, 2), (3, 1), (4, 4), (5, 1), (6, 8), (7, 1), (12, 2)])
    count = 1
    for extent in shape:
        count *= extent
    device = [("i", 1), ("i", 0), ("i", flag)]
    dims = [("q", extent) for extent in shape]
    if version == "V0":
        return [("I", len(shape)), *[("I", e) for e in shape], *device, rng.randbytes(count * width)]
    if version == "V1":
        return [("I", 0xF993FAC8), ("i", len(shape)), *dims, *device, rng.randbytes(count * width)]
    if version in ("V2", "V3"):
        return [("I", 0xF993FAC9 + (version == "V3")), ("i", 0), ("i", len(shape)), *dims, *device,
                rng.randbytes(count * width)]
    if version == "rows":
        return [("I", 0xF993FAC9), ("i", 1), ("i", 2), ("q", 2), ("q", 3), ("i", 2), ("q", 4), ("q", 3), ("i", 1),
                ("i", 0), ("i", 0), ("i", 6), ("i", 1), ("q", 2), bytes(24), ("q", 1), ("q", 3)]
    return [("I", 0xF993FAC9), ("i", 2), ("i", 1), ("q", 2), ("i", 2), ("q", 2), ("q", 3), ("i", 1), ("i", 0),
            ("i", 0), ("i", 6), ("i", 1), ("q", 3), ("i", 6), ("i", 1), ("q", 2), bytes(8), ("q", 0), ("q", 1),
            ("q", 2), ("q", 0), ("q", 2)]


def damaged_params(rng: random.Random) -> bytes:
    count = rng.randrange(4)
    fields: list[Any] = [("Q", 0x112), ("Q", 0), ("Q", count)]
    for _ in range(count):
        fields += fields_of_array(rng)
    names = rng.random() < 0.7
    fields.append(("Q", count if names else 0))
    for i in range(count if names else 0):
        fields += [("Q", 5), f"arg:{i}".encode()]
    for _ in range(rng.choice([1, 1, 2, 3])):
        place, kind = rng.randrange(len(fields)), rng.randrange(6)
        if kind == 0:
            del fields[place]
        elif kind == 1:
            fields.insert(place, fields[rng.randrange(len(fields))])
        elif isinstance(fields[place], tuple):
            fields[place] = (fields[place][0], rng.choice([*NUMBERS, 0xF993FAC8, 0xF993FAC9, 0xF993FACA, 2**20, 2**24]))
        else:
            fields[place] = rng.randbytes(rng.randrange(40))
        if not fields:
            break
    data = b"".join(f if isinstance(f, bytes) else f[1].to_bytes(40, "little", signed=f[1] < 0)[:struct.calcsize(f[0])]
                    for f in fields)
    return change_bytes(data, rng) if rng.random() < 0.15 else data


def load_params(path: Path) -> str:
    found = mx.nd.load(str(path))
    for array in found.values() if isinstance(found, dict) else found:
        if array is not None and array.stype != "default":
            array.check_format()
            array.data.asnumpy()
        elif array is not None:
            array.asnumpy()
    return "loaded"


# -- artifacts

def artifact_source(folder: Path) -> tuple[bytes, Any]:
    """An artifact of a small layer: its bytes, and its parts. Too small for changes to be costly to check."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    executor = net.simple_bind(mx.cpu(), grad_req="null", data=(2, 4))
    path = folder / "source.mxc"
    mx.artifact.save(path, [executor], ["data"])
    data, contents = path.read_bytes(), artifact_file.read(path)
    parts = contents.manifest, {name: bytes(section) for name, section in contents.sections.items()}
    path.unlink()
    return data, parts


def damaged_artifact(rng: random.Random, source: tuple[bytes, Any], scratch: Path) -> bytes:
    """Bytes or numbers changed so that checksums must tell; or the manifest or graph changed, with checksums right."""
    data, (manifest, sections) = source
    kind = rng.randrange(4)
    if kind == 0:
        return change_bytes(data, rng)
    if kind == 1:
        place, width = 4 * rng.randrange(len(data) // 4 if rng.random() < 0.5 else 16), rng.choice([1, 2, 4, 8])
        number = rng.choice(NUMBERS).to_bytes(40, "little", signed=True)[:width]
        return data[:place] + number + data[place + width:]
    manifest, sections = copy.deepcopy({k: v for k, v in manifest.items() if k != "sections"}), dict(sections)
    document = manifest if kind == 2 else json.loads(sections["graph"].rstrip(b"\0"))
    for _ in range(rng.choice([1, 1, 2, 3])):
        change_value(document, rng, ["FullyConnected", "Activation", "null"])
    if kind == 3:
        sections["graph"] = json.dumps(document).encode()
    elif rng.random() < 0.2:
        del sections[rng.choice(list(sections))]
    artifact_file.write(scratch, manifest, {name: [section] for name, section in sections.items()})
    return scratch.read_bytes()


def load_artifact(path: Path) -> str:
    """Reads all that a file says of itself, and its graph. It is not run: who can make checksums right can make code
    wrong."""
    model = mx.load(path)
    what = [model.input_shapes, model.output_shapes, model.input_dtypes, model.output_dtypes, model.trains, repr(model)]
    for array in model.params.values():
        array.sum()
    model.symbol.tojson()
    return "loaded" if all(part is not None for part in what) else "nothing"


# -- one try

def resident(field: str) -> int:
    """VmRSS or VmHWM (the highest since it was reset) of this process, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) << 10


def attempt(load: Callable[[Path], str], path: Path) -> str:
    """Load a file: what came of it. Raises what is a finding."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the highest
    before = resident("VmRSS")
    try:
        result = load(path)
    except mx.base.MXNetError as error:
        if not str(error).strip():
            raise AssertionError("an error without a message") from None
        result = type(error).__name__
    used = resident("VmHWM") - before
    if used > FREE + 4 * path.stat().st_size:
        raise AssertionError(f"{used >> 20} MB for a file of {path.stat().st_size} bytes")
    return result


def maker(kind: str, folder: Path) -> tuple[Callable[[random.Random], bytes], Callable[[Path], str]]:
    """What makes a damaged file of that kind, and what loads it."""
    if kind == "params":
        return damaged_params, load_params
    if kind == "mxc":
        source = artifact_source(folder)
        return lambda rng: damaged_artifact(rng, source, folder / "scratch.mxc"), load_artifact
    sources, operators = networks(), [name for name in table.names() if not name.startswith("_mxc_")]
    return lambda rng: damaged_json(rng, sources, operators), load_json


def main() -> None:
    kind, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    folder = Path(tempfile.mkdtemp())
    make, load = maker(kind, folder)
    warnings.simplefilter("ignore")  # that an artifact was compiled for something else

    def slow(number: int, frame: Any) -> None:
        raise Slow(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, slow)
    results: Counter[str] = Counter()
    findings: dict[str, str] = {}
    path = folder / f"file.{kind}"
    for number in range(count):
        path.write_bytes(make(random.Random(f"{kind} {seed} {number}")))
        signal.alarm(SECONDS)
        try:
            results[attempt(load, path)] += 1
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            results["finding"] += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            findings.setdefault(f"{type(error).__name__} {place.filename}:{place.lineno}", f"try {number}\n  " +
                                "\n  ".join(traceback.format_exception(error)[-5:]))
        finally:
            signal.alarm(0)
    for what, text in findings.items():
        print(f"FINDING {what}\n  {text}\n")
    print(dict(results))
    shutil.rmtree(folder)
    sys.stdout.flush()
    os._exit(min(len(findings), 100))  # without tidying up: what a finding left behind must not hide it


if __name__ == "__main__":
    main()
