"""What the wheel and the source distribution hold, and that the wheel works where the sources are not."""
from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from mxc.cli import requirements

pytest.importorskip("setuptools", minversion="77", reason="older ones do not know pyproject's licence field")

ROOT = Path(__file__).parents[1]
FOLDERS = {"frontend": "mxc", "runtime": "mxc/runtime", "compiler": "mxc/compiler"}
BESIDE = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "ops.yaml")
METADATA = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "licenses/LICENSE")
DATA = {"mxc/compiler/ops.yaml", "mxc/contrib/amp/lists/operators.yaml", "mxc/include/mxc.h", "mxc/py.typed"}
PROGRAM = """
import mxc as mx
executor = (mx.sym.exp(mx.sym.Variable("a")) + 1).simple_bind(mx.cpu(), a=(2, 3))
assert executor.forward()[0].asnumpy().tolist() == [[2, 2, 2]] * 2
print(mx.__file__)
"""


def call(command: list[object], folder: Path) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind: str, source: Path, to: Path) -> Path:
    """Build a "wheel" or "sdist" of `source` as installers do, without network."""
    name = call([sys.executable, "-c", "import sys\nfrom setuptools import build_meta\n"
                 f"print('\\n' + build_meta.build_{kind}(sys.argv[1]))", to], source).splitlines()[-1]
    return to / name


def link_requirements(name: str, site: Path) -> None:
    """Link into `site` what a distribution requires here, and what that requires, from this Python's environment."""
    todo, linked = [name], set()
    while todo:
        each = todo.pop()
        todo += [wanted.name for wanted in map(requirements.parse, metadata.requires(each) or ()) if wanted.applies()]
        if each == name or each in linked:
            continue
        linked.add(each)
        distribution = metadata.distribution(each)
        for part in {path.parts[0] for path in distribution.files or () if path.parts[0] != ".."}:
            if not (site / part).exists():
                (site / part).symlink_to(Path(str(distribution.locate_file(part))))


def examine(python: Path, folder: Path) -> dict[str, str]:
    """The states that `mxc doctor` finds, which ends with 0."""
    done = subprocess.run([str(python), "-m", "mxc", "doctor", "--json"], cwd=folder, capture_output=True, text=True,
                          timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return {each["what"]: each["state"] for each in json.loads(done.stdout)["findings"]}


def content(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the sources in `source`, the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("packaging")
    source = folder / "source"
    for name in (*FOLDERS, "include"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in BESIDE:
        shutil.copy(ROOT / name, source / name)
    (source / "tests").mkdir()
    (source / "tests" / "test_nothing.py").write_text("")
    build("sdist", source, folder)
    build("wheel", source, folder)
    return folder


def test_the_wheel_is_the_sources(built: Path):
    wheel = next(built.glob("*.whl"))
    modules = {f"{package}/{path.relative_to(ROOT / folder)}" for folder, package in FOLDERS.items()
               for path in (ROOT / folder).rglob("*.py")}
    name, version, *_ = wheel.name.split("-")
    assert content(wheel) == modules | DATA | {f"{name}-{version}.dist-info/{m}" for m in METADATA}
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("mxc/compiler/ops.yaml") == (ROOT / "ops.yaml").read_bytes()
        assert archive.read("mxc/include/mxc.h") == (ROOT / "include" / "mxc.h").read_bytes()


def test_the_source_distribution_gives_the_same_wheel(built: Path):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(built / "unpacked", filter="data")
    (unpacked,) = (built / "unpacked").iterdir()
    assert (unpacked / "compiler" / "ops.yaml").read_bytes() == (unpacked / "ops.yaml").read_bytes()
    assert (unpacked / "frontend/include/mxc.h").read_bytes() == (unpacked / "include/mxc.h").read_bytes()
    assert not (unpacked / "tests").exists()  # they need data that is in the repository alone
    again = built / "again"
    again.mkdir()
    assert content(build("wheel", unpacked, again)) == content(next(built.glob("*.whl")))


def test_doctor_finds_all_well_with_the_declared_requirements_alone(built: Path):
    place = built / "alone"
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/*/site-packages")
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        archive.extractall(site)
    link_requirements("mxc-compiler", site)
    python = next(place.glob("bin/python"))
    missing = "import importlib.util as u\nprint(*map(u.find_spec, ('numba_cuda', 'cv2', 'scipy', 'fsspec')))"
    assert call([python, "-c", missing], built).split() == ["None"] * 4
    states = examine(python, built)
    assert all(states[what] == "ok" for what in ("Python", "mxc", "numpy", "llvmlite", "numba", "pyyaml", "rich",
                                                 "a model"))
    assert states["extra cuda"] == states["extra image"] == "missing"


@pytest.mark.slow
def test_doctor_finds_all_well_after_a_plain_installation(built: Path):
    place = built / "installed"
    venv.create(place, with_pip=True)
    python = next(place.glob("bin/python"))
    done = subprocess.run([python, "-m", "pip", "install", "-q", "."], cwd=built / "source", capture_output=True,
                          text=True, timeout=600)
    if "No matching distribution" in done.stderr:
        pytest.skip("there is no index of packages")
    assert done.returncode == 0, done.stderr
    assert set(examine(python, built).values()) <= {"ok", "note", "missing"}


@pytest.mark.slow
def test_i02_the_wheel_works_where_the_sources_are_not(built: Path):
    place = built / "environment"
    venv.create(place, with_pip=True)
    python = next(place.glob("bin/python"))
    call([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", next(built.glob("*.whl"))], built)
    (site,) = place.glob("lib/*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    assert call([python, "-c", PROGRAM], built).strip() == str(site / "mxc" / "__init__.py")
    assert "usage: mxc" in call([place / "bin" / "mxc", "--help"], built)
