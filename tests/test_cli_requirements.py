"""What metadata declare is read as installers read it: requirements, markers, versions, extras."""
from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path

import pytest

from mxc.cli import requirements

PARSED = [
    ("numpy>=2.0", ("numpy", (), ">=2.0", "")), ("numpy", ("numpy", (), "", "")), ("a.b-c_d", ("a.b-c_d", (), "", "")),
    ("numba-cuda[cu13]>=0.20; sys_platform == 'linux' and extra == \"test\"",
     ("numba-cuda", ("cu13",), ">=0.20", "sys_platform == 'linux' and extra == \"test\"")),
    ("x [a, b] (>= 1.0, <2) ; os_name=='nt'", ("x", ("a", "b"), ">=1.0,<2", "os_name=='nt'")),
    ("x @ https://host/x-1.0.whl ; extra == 'y'", ("x", (), "", "extra == 'y'")), ("x[]", ("x", (), "", "")),
]


@pytest.mark.parametrize(("text", "parts"), PARSED)
def test_requirements_are_read(text: str, parts: tuple[object, ...]):
    assert requirements.parse(text) == requirements.Requirement(*parts)  # type: ignore[arg-type]


def test_what_is_no_requirement():
    with pytest.raises(ValueError, match="not a requirement"):
        requirements.parse("; extra == 'x'")


VERSIONS = [
    ("2.4.6", ">=2.0", True), ("1.26.4", ">=2.0", False), ("2.0", ">=2.0.0", True), ("2.0.0", "==2", True),
    ("10.0", ">=9", True), ("0.9", ">=0.10", False), ("2.0.0rc1", ">=2.0", False), ("2.0.0.dev3", "<2", True),
    ("2.0.post1", ">=2.0", True), ("2.1.0+cpu", "==2.1", True), ("2.1", ">=2.0,<2.1", False),
    ("2.1", ">=2.0,!=2.1", False), ("2.1", "", True), ("2.1.3", "==2.1.*", True), ("2.2", "==2.1.*", False),
    ("2.2", "!=2.1.*", True), ("2.1.9", "~=2.1.3", True), ("2.2", "~=2.1.3", False), ("2.2", "~=2.1", True),
    ("2.1.2", "~=2.1.3", False), ("2.1", "===2.1", True), ("2.1.0", "===2.1", False),
    ("2.1", "2.1", False), ("3.14.0", ">=3.11", True),
]


@pytest.mark.parametrize(("version", "wanted", "enough"), VERSIONS)
def test_versions_are_compared(version: str, wanted: str, enough: bool):
    assert requirements.meets(version, wanted) is enough


MARKERS = [
    (f"sys_platform == {sys.platform!r}", True), ("sys_platform == 'other'", False), ("sys_platform != 'other'", True),
    ("python_version >= '3.9'", True), ("python_version < '3.9'", False), ("'3.9' <= python_version", True),
    (f"python_full_version == '{platform.python_version()}'", True), ("python_version in '2.7 3.0'", False),
    ("python_version not in '2.7 3.0'", True), (f"implementation_name == '{sys.implementation.name}'", True),
    ("extra == 'plot'", False), ("python_version >= '3.9' and extra == 'plot'", False),
    ("python_version >= '3.9' or extra == 'plot'", True),
    ("(python_version < '3.9' or sys_platform != 'other') and os_name != 'other'", True),
    ("python_version ~= '3.9'", True), ("nonsense == 'x'", True), ("open('x')", True), ("", True),
]


@pytest.mark.parametrize(("marker", "holds"), MARKERS)
def test_markers_hold(marker: str, holds: bool):
    assert requirements.Requirement("x", (), "", marker).applies() is holds


def test_markers_of_extras():
    of_extra = requirements.Requirement("x", (), "", "extra == 'Some_Name'")
    assert of_extra.applies("some-name") and not of_extra.applies() and not of_extra.applies("other")
    always, plot = requirements.parse("a"), requirements.parse("b; extra == 'plot'")
    declared = requirements.Declared("", (always, plot))
    assert declared.of() == [always] and declared.of("plot") == [plot] and declared.of("other") == []


def test_metadata_and_the_checkout_declare_the_same(monkeypatch: pytest.MonkeyPatch):
    package = Path(requirements.__file__).parents[1]
    from_metadata = requirements.declared(package)

    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    from_checkout = requirements.declared(package)
    assert from_metadata is not None and from_checkout is not None
    assert from_metadata.python == from_checkout.python == ">=3.11"
    for extra in ("", "plot", "image", "s3", "hdfs", "cuda"):
        assert set(map(str, from_metadata.of(extra))) == set(map(str, from_checkout.of(extra)))
        assert from_checkout.of(extra)
    assert requirements.declared(package.parent / "docs" / "nowhere") is None


def test_what_an_extra_lacks(monkeypatch: pytest.MonkeyPatch):
    there = {"a": ("1.0", ["b>=2; extra == 'fast'", "c; extra == 'slow'"]), "b": ("1.5", ["a[fast]"])}

    def version(name: str) -> str:
        if name not in there:
            raise metadata.PackageNotFoundError(name)
        return there[name][0]

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(metadata, "requires", lambda name: there[name][1])
    asked = ("a", "a>1", "a[fast]", "a[slow]", "d")
    lacking = {text: list(requirements.lacking(requirements.parse(text))) for text in asked}
    assert lacking == {"a": [], "a>1": ["a 1.0 (needs >1)"], "a[fast]": ["b 1.5 (needs >=2)"],
                       "a[slow]": ["c is not installed"], "d": ["d is not installed"]}
