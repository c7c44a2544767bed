"""GluonCV 0.10.5 and GluonNLP 0.10.0 run unchanged under mxc.as_mxnet: a choice of their networks give what MXNet 1.9.1
does (package_networks.jsonl)."""
from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest
from installed import ROOT, package

NETWORKS = Path(__file__).with_name("package_networks.py")
REAL = dict(json.loads(line) for line in NETWORKS.with_suffix(".jsonl").read_text().splitlines())
PACKAGES = ("gluoncv==0.10.5", "gluonnlp==0.10.0")
# What they import; the setuptools have distutils, which Python itself has no more since 3.12, and build GluonNLP.
NEEDS = ("requests", "tqdm", "pillow", "scipy", "matplotlib", "opencv-python-headless", "pandas", "portalocker", "yacs",
         "autocfg", "packaging", "setuptools", "wheel", "cython")
AT_ONCE = 4  # networks of one process
TOLERANCE = 1e-4  # of the largest number: some networks are hundreds of layers deep
NO_INDEX = re.compile("No matching distribution|Could not find a version|Network is unreachable|connection")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packages"),
              pytest.mark.skipif(importlib.util.find_spec("mxc.image") is None, reason="GluonCV needs mx.image")]


def install(python: Path, *arguments: str) -> None:
    """Install packages in an environment. Skips where there is no index of packages."""
    done = subprocess.run([python, "-m", "pip", "install", "-q", *arguments], capture_output=True, text=True,
                          timeout=1200)
    if done.returncode and NO_INDEX.search(done.stderr):
        pytest.skip("there is no index of packages")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the packages and what mxc requires, which finds mxc where it is here."""
    place = tmp_path_factory.mktemp("packages") / "environment"
    venv.create(place, with_pip=True)
    found = place / "bin" / "python"
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    install(found, *requirements, *NEEDS)
    install(found, "--no-deps", "--no-build-isolation", *PACKAGES)
    (site,) = place.glob("lib/*/site-packages")
    here = package()
    assert here is not None
    (site / "mxc.pth").write_text(f"{here.parent}\n")
    return found


def run(python: Path, *arguments: object) -> str:
    """What a program prints, in which mxnet is mxc."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, "-m", "mxc.as_mxnet", *map(str, arguments)], capture_output=True, text=True,
                          timeout=1200, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def close(ours: list, theirs: list) -> bool:
    """An output is the same but for rounding, or only its shape is known."""
    if not isinstance(theirs[0], list):
        return ours == theirs
    scale = max(map(abs, theirs[1]))
    return ours[0] == theirs[0] and all(
        math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE * scale)
        for a, b in zip(ours[1], theirs[1], strict=True))


@pytest.mark.parametrize("names", [[*REAL][i:i + AT_ONCE] for i in range(0, len(REAL), AT_ONCE)], ids=" ".join)
def test_networks_give_what_mxnet_does(python: Path, names: list[str]) -> None:
    found = dict(json.loads(line) for line in run(python, NETWORKS, *names).splitlines() if line.startswith('["'))
    assert [*found] == names
    wrong = {name: (ours, REAL[name]) for name, ours in found.items()
             if len(ours) != len(REAL[name]) or not all(map(close, ours, REAL[name]))}
    assert not wrong


def test_their_modules_are_imported(python: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import gluoncv, gluonnlp, mxnet\n"
                       "print(gluoncv._found_mxnet, len(gluoncv.model_zoo.get_model_list()), mxnet.__name__)\n"
                       "print(gluonnlp.optimizer.BERTAdam, gluonnlp.model.get_model)")
    assert run(python, program).startswith("True 332 mxc\n")
