"""Write golden/groups/*.txt: the fusion groups of LeNet and CIFAR ResNet-20, as tests/test_fuse.py compares them.

    python tests/groups.py --write     to be run after a change of the passes, and its difference to be read
"""
from __future__ import annotations

import sys
from pathlib import Path

import networks
from programs import lowered

from mxc.compiler.lowering.fuse import group_text

FOLDER = Path(__file__).parent / "golden" / "groups"
NETWORKS = {
    "lenet": (networks.lenet, {"data": (64, 1, 8, 8), "softmax_label": (64,)}),
    "resnet20": (networks.cifar_resnet20, {"data": (4, 3, 32, 32)}),
}


def text_of(name: str, train: bool) -> str:
    """The groups for a target with tiles of 3 x 5, whatever the machine."""
    make, shapes = NETWORKS[name]
    symbol = make()
    requests = {n: "write" for n in symbol.list_arguments() if n not in shapes} if train else {}
    program = lowered(symbol.graph, shapes, None, requests, train)
    return group_text(program.graph, program.groups)


def path_of(name: str, train: bool) -> Path:
    return FOLDER / f"{name}-{'training' if train else 'inference'}.txt"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    FOLDER.mkdir(exist_ok=True)
    for each in NETWORKS:
        for mode in (False, True):
            path_of(each, mode).write_text(text_of(each, mode))
