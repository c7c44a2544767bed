"""`mxc ops`: the list and one operator, in a process of its own."""
from __future__ import annotations

import json

from commands import command

from mxc.cli.main import OK, USAGE
from mxc.compiler.ops import table
from mxc.compiler.ops.rules import families


def test_the_list():
    done = command("ops")
    assert (done.returncode, done.stderr) == (OK, "")
    head, *rows = done.stdout.splitlines()
    assert head.split()[:3] == ["operator", "kind", "inputs"]
    names = [row.split()[0] for row in rows]
    assert names == sorted(names, key=str.lower) and "Convolution" in names
    assert set(names) == {op.name for op in table.all_operators() if not op.name.startswith("_mxc_")}


# Families whose operators all have kernels.
NATIVE = ("activation", "arrange", "attention", "basic", "boxes", "convolution", "correlation", "creation",
          "deformable", "densities", "dropout", "fourier", "fused", "gather", "linear", "losses", "norms", "optimizer",
          "order", "point_processes", "pooling", "position_sensitive", "precision", "proposals", "quantized", "random",
          "reduction", "regions", "resize", "rnn", "sampling", "sequence", "slices", "softmax", "storage")


def test_operators_without_kernels():
    """They are of few families, and say by what they are computed; what linalg has there are factorisations."""
    found = json.loads(command("ops", "--fallback", "--json").stdout)
    assert found and all(each["host"] in ("NumPy", "LAPACK", "OpenCV") for each in found)
    assert {each["family"] for each in found}.isdisjoint(NATIVE)
    assert {*NATIVE, *(each["family"] for each in found)} == set(families())
    assert {each["name"] for each in found if each["family"] == "linalg"} == {
        "_linalg_potrf", "_linalg_potri", "_linalg_gelqf", "_linalg_syevd", "_linalg_inverse", "_linalg_det",
        "_linalg_slogdet", "_mxc_turned_inverse"}
    rows = command("ops", "--fallback").stdout.splitlines()
    assert rows[0].split()[:3] == ["operator", "family", "by"] and len(rows) == len(found) + 1
    assert command("ops", "Convolution", "--fallback").returncode == USAGE


def test_one_operator_by_its_alias():
    done = command("ops", "Convolution_v1")
    assert (done.returncode, done.stderr) == (OK, "")
    assert done.stdout.startswith("Convolution: ")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["kind:", "anchor"] in lines and ["inputs:", "data,", "weight,", "bias", "unless", "no_bias"] in lines
    assert ["num_group", "int", "in", "1..", "1"] in lines and ["kernel", "shape", "in", "1..", "(required)"] in lines


def test_one_operator_as_json():
    found = json.loads(command("ops", "mean", "--json").stdout)
    assert (found["kind"], found["formula"], found["gradient"]) == (
        "reduction", "sum of data, then acc / count", "data: og / count")
    assert found["parameters"]["keepdims"] == {"type": "bool", "required": False, "default": "False"}


def test_a_name_that_is_none():
    done = command("ops", "Convolutoin")
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr.splitlines() == [
        "mxc ops: there is no operator 'Convolutoin'; did you mean 'Convolution'?", "`mxc ops` lists them"]
