"""The networks whose plans are checked, by name: the project's own, and saved ones where `../shared/models` has them.

Saved ones are other people's files and no part of the repository; SAME says which networks here are like them.
"""
from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import networks
import pytest
from programs import Program, lowered
from repository import vision
from zoo import classifiers, detectors, sequences

import mxc as mx
from mxc.compiler.targets.cpu.target import cpu_target

Shapes = dict[str, tuple[int, ...]]
SHARED = Path(__file__).parents[1] / ".." / "shared" / "models"
PICTURE: Shapes = {"data": (1, 3, 224, 224)}
BUILT: dict[str, tuple[Callable[[], mx.sym.Symbol], Shapes]] = {
    "lenet": (networks.lenet, {"data": (64, 1, 8, 8), "softmax_label": (64,)}),
    "perceptron": (networks.perceptron, {"data": (64, 64), "softmax_label": (64,)}),
    "resnet20": (networks.cifar_resnet20, {"data": (4, 3, 32, 32)}),
}
# Networks that tests of the stages of lowering look at closely.
CLOSELY: dict[str, tuple[Callable[[], mx.sym.Symbol], Shapes]] = {
    "face_proposals": (detectors.face_proposals, {"data": (2, 3, 120, 160)}),
    "face_refinement": (detectors.face_refinement, {"data": (5, 3, 24, 24)}),
    "face_landmarks": (detectors.face_landmarks, {"data": (3, 3, 48, 48)}),
    "resnet18": (vision.resnet18, PICTURE),
    "resnet50": (networks.resnet50, PICTURE),
    "mobilenet_v2": (classifiers.mobilenet_v2, PICTURE),
    "squeezenet": (vision.squeezenet, PICTURE),
    "gender_age": (classifiers.gender_age, {"data": (2, 3, 112, 112)}),
}
EVERY = {
    **BUILT, **CLOSELY,
    "alexnet": (classifiers.alexnet, PICTURE),
    "vgg16": (vision.vgg16, PICTURE),
    "densenet": (vision.densenet121, PICTURE),
    "resnet18_v2": (classifiers.resnet18_v2, PICTURE),
    "se_resnext50": (classifiers.se_resnext50, PICTURE),
    "mobilenet_v1": (classifiers.mobilenet_v1, PICTURE),
    "mobilenet_v3_small": (classifiers.mobilenet_v3_small, PICTURE),
    "shufflenet": (classifiers.shufflenet, PICTURE),
    "inception_v3": (classifiers.inception_v3, {"data": (1, 3, 299, 299)}),
    "face_embedding": (classifiers.face_embedding, {"data": (2, 3, 112, 112)}),
    "face_pyramid": (detectors.face_pyramid, {"data": (1, 3, 128, 160)}),
    "joints": (detectors.joints, {"data": (1, 3, 256, 192)}),
    "centres": (detectors.centres, {"data": (1, 3, 256, 256)}),
    "ssd": (detectors.ssd, {"data": (1, 3, 512, 512)}),
    "yolo3": (detectors.yolo3, {"data": (1, 3, 416, 416)}),
    "language_model": (sequences.language_model, {"data": (35, 4), "softmax_label": (35, 4)}),
    "encoder": (sequences.encoder, {"data": (2, 16), "segments": (2, 16), "lengths": (2,), "positions": (16, 64)}),
}
NAMES = (*BUILT, *CLOSELY)
# The saved networks beside CLOSELY's, of which printed.py tells where they are there.
SAVED = ("cifar_resnet20_v1", "mtcnn_det1", "mtcnn_det2", "mtcnn_det3", "resnet18_v1", "resnet50_v1",
         "mobilenetv2_1.0", "squeezenet1.1", "genderage")
# Saved networks whose graph is that of a network here but for the names, and in places the order, of its nodes.
SAME = {"cifar_resnet20_v1": "resnet20", "genderage": "gender_age", "inceptionv3": "inception_v3",
        "lstm_ptb": "language_model", "mobilenetv2_1.0": "mobilenet_v2", "mtcnn_det1": "face_proposals",
        "mtcnn_det2": "face_refinement", "mtcnn_det3": "face_landmarks", "resnet18_v1": "resnet18",
        "resnet50_v1": "resnet50", "retinaface_mnet25": "face_pyramid", "se_resnext50_32x4d": "se_resnext50",
        "shufflenet_v1": "shufflenet", "simple_pose_resnet18_v1b": "joints", "ssd_512_mobilenet1.0_voc": "ssd",
        "yolo3_mobilenet1.0_voc": "yolo3"}


def saved() -> dict[str, dict[str, Any]]:
    """The cases of `../shared/models` by name; none where the folder is not."""
    cases = SHARED / "cases.json"
    return json.loads(cases.read_text()) if cases.exists() else {}


def network(name: str) -> tuple[mx.sym.Symbol, Shapes]:
    """The symbol of that name and its inputs' shapes; the test is skipped where it is a saved one that is not there."""
    if name in EVERY:
        make, shapes = EVERY[name]
        return make(), dict(shapes)
    case = saved().get(name)
    if case is None:
        pytest.skip(f"{name} is saved by other people: the repository does not have it, nor has {SHARED}")
    return mx.sym.load(str(SHARED / case["symbol"])), {n: tuple(s) for n, s in case["shapes"].items()}


@cache
def program(name: str, train: bool, batch: int | None = None) -> Program:
    """The lowered network, for this machine's tiles: inference, or training with every gradient written."""
    symbol, shapes = network(name)
    if batch is not None:
        shapes = {n: (batch, *s[1:]) for n, s in shapes.items()}
    requests = {n: "write" for n in symbol.list_arguments() if n not in shapes} if train else {}
    return lowered(symbol.graph, shapes, None, requests, train, cpu_target())
