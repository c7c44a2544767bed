"""The networks whose plans are checked: those of networks.py, and saved ones where `../shared/models` has them."""
from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import networks
import pytest
from programs import Program, lowered

import mxc as mx
from mxc.compiler.targets.cpu.target import cpu_target

SHARED = Path(__file__).parents[1] / ".." / "shared" / "models"
SAVED = ("cifar_resnet20_v1", "mtcnn_det1", "mtcnn_det2", "mtcnn_det3", "resnet18_v1", "resnet50_v1",
         "mobilenetv2_1.0", "squeezenet1.1", "genderage")
BUILT = {
    "lenet": (networks.lenet, {"data": (64, 1, 8, 8), "softmax_label": (64,)}),
    "perceptron": (networks.perceptron, {"data": (64, 64), "softmax_label": (64,)}),
    "resnet20": (networks.cifar_resnet20, {"data": (4, 3, 32, 32)}),
}
NAMES = (*BUILT, *SAVED)


def network(name: str) -> tuple[mx.sym.Symbol, dict[str, tuple[int, ...]]]:
    """The symbol of that name and its inputs' shapes; the test is skipped where the file is missing."""
    if name in BUILT:
        make, shapes = BUILT[name]
        return make(), dict(shapes)
    if not (SHARED / "cases.json").exists():
        pytest.skip(f"{SHARED} is not there")
    case = json.loads((SHARED / "cases.json").read_text())[name]
    return mx.sym.load(str(SHARED / case["symbol"])), {n: tuple(s) for n, s in case["shapes"].items()}


@cache
def program(name: str, train: bool, batch: int | None = None) -> Program:
    """The lowered network, for this machine's tiles: inference, or training with every gradient written."""
    symbol, shapes = network(name)
    if batch is not None:
        shapes = {n: (batch, *s[1:]) for n, s in shapes.items()}
    inputs = {"data", "softmax_label"}
    requests = {n: "write" for n in symbol.list_arguments() if n not in inputs} if train else {}
    return lowered(symbol.graph, shapes, None, requests, train, cpu_target())
