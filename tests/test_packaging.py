"""What the wheel and the source distribution hold, and that the wheel works where the sources are not."""
from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("setuptools", minversion="77", reason="older ones do not know pyproject's licence field")

ROOT = Path(__file__).parents[1]
FOLDERS = {"frontend": "mxc", "runtime": "mxc/runtime", "compiler": "mxc/compiler"}
BESIDE = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "ops.yaml")
METADATA = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "licenses/LICENSE")
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


def content(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the sources in `source`, the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("packaging")
    source = folder / "source"
    for name in FOLDERS:
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
    assert content(wheel) == modules | {"mxc/compiler/ops.yaml"} | {f"{name}-{version}.dist-info/{m}" for m in METADATA}
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("mxc/compiler/ops.yaml") == (ROOT / "ops.yaml").read_bytes()


def test_the_source_distribution_gives_the_same_wheel(built: Path):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(built / "unpacked", filter="data")
    (unpacked,) = (built / "unpacked").iterdir()
    assert (unpacked / "compiler" / "ops.yaml").read_bytes() == (unpacked / "ops.yaml").read_bytes()
    assert not (unpacked / "tests").exists()  # they need data that is in the repository alone
    again = built / "again"
    again.mkdir()
    assert content(build("wheel", unpacked, again)) == content(next(built.glob("*.whl")))


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
