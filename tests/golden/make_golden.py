"""Ask the real MXNet for the answers to the case tables, and store them beside this file.

    python tests/golden/make_golden.py [--oracle FOLDER] [GROUP ...]

GROUP: a module of this folder with `cases()` or `rows()`. A question takes seconds, all of them some minutes.

FOLDER (default: `shared/oracle` beside the checkout) holds `oracle.py`, which answers cases, and `setup.sh`, which
prints the Python that MXNet 1.9.1 is installed in.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from golden import cases as table  # noqa: E402


def python_of(oracle: Path) -> str:
    """The Python that has the real MXNet."""
    return subprocess.run(["sh", str(oracle / "setup.sh")], check=True, capture_output=True, text=True).stdout.strip()


def answers(oracle: Path, cases: list[table.Case], **environment: str) -> dict[str, np.ndarray]:
    """The arrays of `oracle.py cases` for these cases, asked with these environment variables besides ours."""
    python = python_of(oracle)
    with tempfile.TemporaryDirectory() as scratch:
        asked, answered = Path(scratch, "cases.json"), Path(scratch, "answers.npz")
        asked.write_text(json.dumps([asdict(c) for c in cases]))
        command = ["env", *(f"{k}={v}" for k, v in environment.items()), python]
        if all(c.inputs for c in cases):
            command += [str(oracle / "oracle.py"), "cases", str(asked), "-o", str(answered)]
        else:
            command += [str(HERE / "ask.py"), "created", str(asked), str(answered)]
        subprocess.run(command, check=True, capture_output=True)
        with np.load(answered) as file:
            return dict(file)


def ask(oracle: Path, cases: list[table.Case]) -> dict[str, np.ndarray]:
    """The answers as they are stored, with the head gradients that were used as `<case>/head/<i>`.

    What only the oneDNN kernels of MXNet refuse is asked of its plain kernels.
    """
    found = answers(oracle, [c for c in cases if c.inputs])
    created = [c for c in cases if not c.inputs]
    found |= answers(oracle, created) if created else {}
    refused = [c for c in cases if c.inputs and f"{c.name}/error" in found]
    for key, value in answers(oracle, refused, MXNET_MKLDNN_ENABLED="0").items() if refused else ():
        found[key] = value
    for case in refused:
        if any(key.startswith(f"{case.name}/out/") for key in found):
            del found[f"{case.name}/error"]
    spec = importlib.util.spec_from_file_location("oracle", oracle / "oracle.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    arrays: dict[str, np.ndarray] = {}
    for case in cases:
        kept = {key: value for key, value in found.items() if key.startswith(case.name + "/")}
        if f"{case.name}/error" in kept:
            message = str(kept[f"{case.name}/error"])[:200]
            kept = {f"{case.name}/error": np.frombuffer(message.encode(), np.uint8)}
        elif case.train:
            for i in range(sum(key.startswith(case.name + "/out/") for key in kept)):
                out = kept[f"{case.name}/out/{i}"]
                kept[f"{case.name}/head/{i}"] = module.recipe(f"head{i}", out.shape, out.dtype)
        arrays.update(kept)
    return arrays


def ask_shapes(oracle: Path, group: str, rows: list[dict[str, object]]) -> None:
    """Write shapes/<group>.json: the group's rows of shape inference with MXNet's answers."""
    target = HERE / "shapes" / f"{group}.json"
    with tempfile.TemporaryDirectory() as scratch:
        asked = Path(scratch, "rows.json")
        asked.write_text(json.dumps(rows))
        subprocess.run([python_of(oracle), str(HERE / "ask.py"), "shapes", str(asked), str(target)], check=True,
                       capture_output=True)
    print(f"shapes/{target.name}: {len(rows)} rows, {target.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", type=Path, default=HERE.parents[2] / "shared" / "oracle")
    parser.add_argument("groups", nargs="*")
    options = parser.parse_args()
    for group, module in table.modules("rows").items():
        if not options.groups or group in options.groups:
            ask_shapes(options.oracle, group, module.rows())
    for group, cases in table.tables().items():
        if options.groups and group not in options.groups:
            continue
        arrays = ask(options.oracle, cases)
        path = HERE / f"{group}.npz"
        table.store(path, arrays)
        refused = sum(key.endswith("/error") for key in arrays)
        print(f"{path.name}: {len(cases)} cases ({refused} refused), {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
