"""Ask MXNet 1.9.1 for all that is recorded of it in tests/, and write it, or compare it with what is there.

    python tests/golden/make_golden.py [--check] [--python PYTHON] [NAME ...]

NAME: a file without its folder and ending, as `layers` or `rnn_cells` (default: all; one takes seconds, all of them
some minutes). What is asked stands in this folder: operators' cases in modules with `cases()`, questions on shapes in
those with `rows()`, programs in the scripts of SCRIPTS. Everything is made in a copy of the folders that it needs.

--check writes nothing. Numbers may differ in their last digits from one processor to another, as MXNet computes them by
other code; it ends with 1 where they differ by more, or anything else differs.

PYTHON has MXNet 1.9.1; without it mxnet_python.py makes an environment.
"""
from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from golden import cases as table  # noqa: E402
from golden import mxnet_python  # noqa: E402

# What a script here writes, by its command line. All run in MXNet's Python but OURS, which are given it.
SCRIPTS = {
    **{f"{name}.py": (f"{name}.json",) for name in (
        "amp_calls", "array_calls", "bfloat16", "callbacks", "contexts", "contrib_calls", "gluon_contrib", "gluon_data",
        "gluon_layers", "gluon_programs", "gluon_rnn", "gluon_zoo", "im2rec_calls", "image_calls", "image_records",
        "initializers", "io_calls", "kvstores", "metrics", "optimizer_states", "optimizers", "quantized_networks",
        "recordio_calls", "rnn_cells", "schedules", "scopes", "sparse_arrays", "sparse_training", "spellings",
        "training_calls", "updates")},
    **{f"make_{name}.py": (f"{name}.json",) for name in (
        "control_flow", "indexing", "losses", "monitors", "no_elements", "np_shape", "operator_arguments",
        "partial_shapes", "pooling_same", "signs")},
    "modules.py": ("modules.json", "lenet-symbol.json", "lenet-0003.params", "lenet-0003.states"),
    "make_symbols.py golden": ("symbols.json",), "make_symbols.py calls": ("symbol_calls.json",),
    "make_array_files.py": ("ndarray_dict.params", "ndarray_list.params"),
    "make_module_names.py": ("../module_names.json",),
    "make_api.py": tuple(f"../api/{path.name}" for path in sorted((HERE.parent / "api").glob("*.txt"))),
}
OURS = ("make_losses.py",)
# Last digits: units in the last place of an array's largest number, and a share of a number in JSON, where scripts
# round to three digits and more.
UNITS, SHARE = 64, 1e-3
AT_ONCE = 100  # cases that one process of MXNet answers


def answers(python: Path, asked: list[table.Case], scratch: Path, **environment: str) -> dict[str, np.ndarray]:
    """What ask.py answers to the cases. One that ends MXNet's process has the error "crash"."""
    source, target = scratch / "cases.json", scratch / "answers.npz"
    source.write_text(json.dumps([asdict(case) for case in asked]))
    done = subprocess.run([python, HERE / "ask.py", "cases", source, target], capture_output=True, text=True,
                          env=mxnet_python.environment(**environment))
    if done.returncode == 0:
        with np.load(target) as file:
            return dict(file)
    if len(asked) == 1:
        return {f"{asked[0].name}/error": np.array("crash")}
    if done.returncode > 0 and "Segmentation fault" not in done.stderr:  # it did not crash: ask.py failed
        raise RuntimeError(f"ask.py: {done.stderr}")
    half = len(asked) // 2
    return {**answers(python, asked[:half], scratch, **environment),
            **answers(python, asked[half:], scratch, **environment)}


def ask(python: Path, cases: list[table.Case], scratch: Path) -> dict[str, np.ndarray]:
    """The answers as they are stored. What only the oneDNN kernels of MXNet refuse is asked of its plain kernels."""
    found: dict[str, np.ndarray] = {}
    for first in range(0, len(cases), AT_ONCE):
        found |= answers(python, cases[first:first + AT_ONCE], scratch)
    refused = [case for case in cases if case.inputs and f"{case.name}/error" in found]
    again = answers(python, refused, scratch, MXNET_MKLDNN_ENABLED="0") if refused else {}
    for case in refused:
        del found[f"{case.name}/error"]
    of_case: dict[str, dict[str, np.ndarray]] = {case.name: {} for case in cases}
    for key, array in {**found, **again}.items():
        of_case[key.split("/")[0]][key] = array
    for name, kept in of_case.items():
        if f"{name}/error" in kept:
            message = str(kept[f"{name}/error"])[:200]
            of_case[name] = {f"{name}/error": np.frombuffer(message.encode(), np.uint8)}
    return {key: array for kept in of_case.values() for key, array in kept.items()}


def make_group(python: Path, name: str, to: Path) -> None:
    """Write <name>.npz, the answers to a group of cases."""
    table.store(to / f"{name}.npz", ask(python, table.tables()[name], to))


def make_shapes(python: Path, name: str, to: Path) -> None:
    """Write shapes/<name>.json: a group's rows of shape inference with MXNet's answers."""
    source = to / "rows.json"
    source.write_text(json.dumps(table.modules("rows")[name].rows()))
    call(python, HERE / "ask.py", "shapes", source, to / "shapes" / f"{name}.json")


def run_script(python: Path, line: str, to: Path) -> None:
    """Run the copy of a script of SCRIPTS."""
    script, *arguments = line.split()
    if script in OURS:
        call(sys.executable, to / script, python)
    else:
        call(python, to / script, *arguments)


def call(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env=mxnet_python.environment())
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr[-2000:]}")


Maker = Callable[[Path, str, Path], None]  # given MXNet's Python, what to ask, and a copy of this folder to write to


def makers() -> Iterator[tuple[Maker, str, tuple[str, ...]]]:
    """What makes the recorded files, what it is told to ask, and the files' places from this folder."""
    for name in table.modules("rows"):
        yield make_shapes, name, (f"shapes/{name}.json",)
    for name in table.modules("cases"):
        yield make_group, name, (f"{name}.npz",)
    for line, files in SCRIPTS.items():
        yield run_script, line, files


def copied(to: Path) -> Path:
    """A copy, below `to`, of this folder and of what its scripts read elsewhere; this folder's."""
    shutil.copytree(HERE.parents[1] / "examples", to / "examples")
    folder = Path(shutil.copytree(HERE, to / "tests" / "golden", ignore=shutil.ignore_patterns("__pycache__")))
    shutil.copy(HERE.parent / "module_names.json", folder.parent)
    shutil.copytree(HERE.parent / "api", folder.parent / "api")
    return folder


def parsed(path: Path) -> object:
    """The values of a file; its bytes where nothing more is known of it."""
    if path.suffix == ".json":
        return json.loads(path.read_text())
    if path.suffix != ".npz":
        return path.read_bytes()
    return {key: array.tobytes().decode() if key.endswith("/error") else array
            for key, array in table.fetch(path).items()}


def timeless(text: str) -> str:
    """A message with another time of day than MXNet put there."""
    return re.sub(r"\[\d\d:\d\d:\d\d\]", "[00:00:00]", text)


def differences(old: object, new: object, place: str = "") -> Iterator[tuple[str, bool]]:
    """(where and how two recorded values differ, whether in their last digits alone)."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key in old and key in new:
                yield from differences(old[key], new[key], f"{place}/{key}")
            else:
                yield f"{place}/{key} is in one of the two", False
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{place}/{i}")
    elif isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        if old.dtype != new.dtype or old.shape != new.shape:
            yield f"{place}: {old.dtype} {old.shape}, now {new.dtype} {new.shape}", False
        elif old.tobytes() != new.tobytes():
            share = np.finfo(old.dtype).eps * UNITS if old.dtype.kind == "f" else 0.0
            most = np.max(np.abs(old), initial=0, where=np.isfinite(old)) * share
            yield f"{place}: numbers differ", np.allclose(new, old, rtol=0, atol=most, equal_nan=True)
    elif isinstance(old, float) and isinstance(new, float):
        if old != new and not (math.isnan(old) and math.isnan(new)):
            yield f"{place}: {old!r}, now {new!r}", math.isclose(old, new, rel_tol=SHARE)
    elif isinstance(old, str) and isinstance(new, str):
        if timeless(old) != timeless(new):
            yield f"{place}: {old[:80]!r}, now {new[:80]!r}", False
    elif type(old) is not type(new) or old != new:
        yield f"{place}: {str(old)[:80]}, now {str(new)[:80]}", False


def compared(old: Path, new: Path) -> tuple[str, bool]:
    """(how a file that was made differs from the recorded one, whether it will do)."""
    if not old.exists():
        return "is not there", False
    if old.read_bytes() == new.read_bytes():
        return "the same bytes", True
    found = list(differences(parsed(old), parsed(new)))
    wrong = [text for text, is_close in found if not is_close]
    if wrong:
        return f"{len(wrong)} differences: " + "; ".join(wrong[:3]), False
    return f"the same but for last digits at {len(found)} places: {found[0][0]}" if found else "the same values", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--python", type=Path, help="a Python that has MXNet 1.9.1")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    every = {Path(file).stem for _, _, files in makers() for file in files}
    unknown = sorted(set(options.names) - every)
    if unknown:
        parser.error(f"nothing makes {', '.join(unknown)}; there are {', '.join(sorted(every))}")
    try:
        python = options.python or mxnet_python.python()
    except mxnet_python.Unavailable as reason:
        sys.exit(str(reason))
    fine = True
    with tempfile.TemporaryDirectory() as scratch:
        folder = copied(Path(scratch))
        for make, asked, files in makers():
            if options.names and not {Path(file).stem for file in files} & set(options.names):
                continue
            make(python, asked, folder)
            for file in files:
                said, will_do = compared(HERE / file, folder / file)
                fine &= will_do
                print(f"{file}: {said}", flush=True)
                if not options.check:
                    shutil.copyfile(folder / file, HERE / file)
    return 0 if fine or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
