"""Everything recorded of MXNet has what makes it again, and a comparison with it sees what differs."""
from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from golden import make_golden, mxnet_python
from golden.cases import store

FOLDER = Path(make_golden.__file__).parent
# Tables of mxc's own, by plans.py, groups.py, command_forms.py and cuda_listing.py.
OWN = {"plans.txt", "saved_plans.txt", "cuda_product.txt", "cuda_library_sites.txt",
       *(f"{folder}/{path.name}" for folder in ("groups", "commands") for path in (FOLDER / folder).iterdir())}


def test_every_recorded_file_has_one_maker() -> None:
    made = Counter(file for _, _, files in make_golden.makers() for file in files)
    there = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*")
             if path.is_file() and path.suffix not in (".py", ".pyc")}
    lists = {f"../api/{path.name}" for path in (FOLDER.parent / "api").glob("*.txt")}
    assert set(made) == there - OWN | lists | {"../module_names.json"}
    assert set(made.values()) == {1}


def test_every_script_is_there() -> None:
    for _, line, _ in make_golden.makers():
        script = line.split()[0]
        assert not script.endswith(".py") or (FOLDER / script).exists()


@pytest.mark.parametrize(("old", "new", "will_do", "said"), [
    ({"a": [1, 2.5]}, {"a": [1, 2.5]}, True, "the same bytes"),
    ({"a": 3.808, "b": 1}, {"b": 1, "a": 3.807}, True,
     "the same but for last digits at 1 places: /a: 3.808, now 3.807"),
    ({"a": 3.8}, {"a": 3.9}, False, "1 differences: /a: 3.8, now 3.9"),
    ({"a": 1}, {"a": 1.0}, False, "1 differences: /a: 1, now 1.0"),
    ({"a": 1}, {"b": 1}, False, "2 differences: /a is in one of the two; /b is in one of the two"),
    ([1, 2], [1], False, "1 differences: : [1, 2], now [1]"),
    (["x [01:02:03] y"], ["x [23:59:59] y"], True, "the same values"),
    (["x"], ["y"], False, "1 differences: /0: 'x', now 'y'"),
    ({"a": [1, 2], "b": 1}, {"b": 1, "a": [1, 2]}, True, "the same values")])
def test_comparisons_of_json(tmp_path: Path, old: object, new: object, will_do: bool, said: str) -> None:
    paths = tmp_path / "old.json", tmp_path / "new.json"
    for path, value in zip(paths, (old, new), strict=True):
        path.write_text(json.dumps(value))
    assert make_golden.compared(*paths) == (said, will_do)


ONES = np.ones(3, "float32")
DIGIT = ONES + np.array([0, 0, 1e-6], "float32")


@pytest.mark.parametrize(("new", "will_do"), [
    (ONES, True), (DIGIT, True), (ONES + DIGIT * 1e-3, False), (ONES.astype("float64"), False), (ONES[:2], False),
    (np.array([1, 1, np.nan], "float32"), False)], ids=["same", "digit", "more", "dtype", "shape", "nan"])
def test_comparisons_of_arrays(tmp_path: Path, new: np.ndarray, will_do: bool) -> None:
    paths = tmp_path / "old.npz", tmp_path / "new.npz"
    store(paths[0], {"case/out/0": ONES})
    store(paths[1], {"case/out/0": new})
    assert make_golden.compared(*paths)[1] is will_do


def test_a_file_that_is_not_there_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text("{}")
    assert make_golden.compared(tmp_path / "old.json", tmp_path / "new.json") == ("is not there", False)


def test_what_nothing_makes_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["make_golden.py", "layer"])
    with pytest.raises(SystemExit):
        make_golden.main()
    assert "nothing makes layer; there are amp_calls, " in capsys.readouterr().err


def test_without_a_python_for_mxnet_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mxnet_python.Unavailable, match=r"needs one of python3\.11, .*, and none of them runs"):
        mxnet_python.python(tmp_path / "environment")


def test_the_environment_is_in_the_folder_of_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert mxnet_python.default_folder() == tmp_path / "mxc-mxnet-1.9.1"
