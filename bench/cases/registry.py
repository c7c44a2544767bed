"""The cases by name: what they compute, in which mode, on which shapes, and which peers are asked."""
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cases import others, saved, vision
from harness.measure import TOLERANCE
from peers.graph import Case, Shape

from mxc.symbol import Symbol

INFERENCE = ("mxnet", "onnxruntime", "openvino", "torch", "torch.compile", "jax")
EVERY = (*INFERENCE, "numpy", "numexpr")
# Of gradients far from the loss: where rounding takes a relu or a maximum to its other side, they jump.
DEEP = 3e-2
SIZE, SMALL, ROWS, COLUMNS = 1 << 24, 1 << 16, 1 << 14, 1 << 10


@dataclass(frozen=True)
class Entry:
    """A case before its graph is built. `quick`: part of a quick run; there it is asked of the peers `main` alone."""

    name: str
    family: str
    build: Callable[[], Symbol]
    shapes: dict[str, Shape]
    mode: str = "forward"
    peers: tuple[str, ...] = INFERENCE
    main: tuple[str, ...] = ()
    compare: tuple[int, ...] | None = None
    ordered: bool = True
    tolerance: float = TOLERANCE
    file: Path | None = None  # a saved model that the case needs

    @property
    def quick(self) -> bool:
        return bool(self.main)

    def case(self) -> Case:
        """The case with the shapes of every argument, state and output."""
        symbol = self.build()
        arguments, outputs, states = symbol.infer_shape(**self.shapes)
        shapes = dict(zip(symbol.list_arguments(), arguments, strict=True))
        fixed = {n for n in self.shapes if n.endswith("label") or self.mode == "step" or n.startswith("state")}
        wrt = [] if self.mode == "forward" else [n for n in shapes if n not in fixed]
        return Case(self.name, self.mode, json.loads(symbol.tojson()), shapes,
                    dict(zip(symbol.list_auxiliary_states(), states, strict=True)), list(self.shapes), wrt, outputs,
                    None if self.compare is None else list(self.compare), self.ordered)


def _products() -> list[Entry]:
    sizes = {(1024, 1024, 1024): True, (128, 768, 3072): True, (256, 256, 256): False, (512, 512, 512): False,
             (2048, 2048, 2048): False, (64, 784, 512): False, (16, 2048, 1000): False, (3136, 576, 64): False,
             (1, 4096, 4096): False}
    return [Entry(f"sgemm {m}x{k}x{n}", "sgemm", others.sgemm, {"left": (m, k), "right": (k, n)},
                  peers=("numpy", "mxnet", "torch", "openvino", "onnxruntime"),
                  main=("numpy", "mxnet") if quick else ())
            for (m, k, n), quick in sizes.items()]


def _chains() -> list[Entry]:
    """Each far larger than the last cache, and within a core's."""
    every = tuple(p for p in EVERY if p not in ("numpy", "numexpr"))
    # torch has the approximate gelu as one operator: written out it would be no fair peer without its compiler
    written = tuple(p for p in EVERY if p != "torch")
    compiled = ("mxnet", "torch.compile", "jax")
    made = []
    for mark, size, rows in (("", SIZE, ROWS), (" small", SMALL, SMALL // COLUMNS)):
        flat, matrix = (size,), {"rows": (rows, COLUMNS)}
        norm = {**matrix, "norm_gamma": (COLUMNS,), "norm_beta": (COLUMNS,)}
        made += [
            Entry(f"chain{mark}", "chains", others.chain, dict.fromkeys("axbcd", flat), peers=EVERY,
                  main=("numexpr", *compiled)),
            Entry(f"gelu{mark}", "chains", others.gelu, {"x": flat}, peers=every, main=compiled),
            Entry(f"gelu tanh{mark}", "chains", others.gelu_tanh, {"x": flat}, peers=written),
            Entry(f"softmax{mark}", "chains", others.softmax, matrix, peers=(*every, "numpy"), main=compiled),
            Entry(f"layernorm{mark}", "chains", others.layernorm, norm, peers=(*every, "numpy"), main=compiled),
        ]
    return made


def _networks(models: Path) -> list[Entry]:
    made: list[Entry] = []
    compiled = ("mxnet", "onnxruntime", "openvino", "torch.compile")
    main = {("resnet50", 1): compiled, ("resnet50", 16): ("mxnet", "openvino"),
            ("mobilenet_v2", 1): ("mxnet", "onnxruntime", "openvino")}
    for build in (vision.resnet50, vision.mobilenet_v2, vision.vgg16, vision.densenet121, vision.squeezenet):
        for batch in (1, 16):
            name = build.__name__
            made.append(Entry(f"{name} b{batch}", "networks", build, {"data": (batch, 3, 224, 224)},
                              main=main.get((name, batch), ())))
    for name, size in (("ssd_512_mobilenet1.0_voc", 512), ("yolo3_mobilenet1.0_voc", 416)):
        file = models / f"{name}-symbol.json"
        short = name.replace("1.0_voc", "")
        for batch in (1, 16):
            shapes = {"data": (batch, 3, size, size)}
            made.append(Entry(f"{short} b{batch}", "networks", partial(saved.whole, file), shapes, file=file,
                              compare=(1,), ordered=False))
            made.append(Entry(f"{short} heads b{batch}", "networks", partial(saved.heads, file), shapes, file=file))
    return made


def _training() -> list[Entry]:
    label = {"softmax_label": (64,)}
    frameworks = ("mxnet", "torch", "torch.compile", "jax")
    bert = others.bert_layer
    made = [
        Entry("mlp step", "training", vision.mlp, {"data": (64, 784), **label}, "step", frameworks,
              ("mxnet", "torch", "jax")),
        Entry("lenet step", "training", vision.lenet, {"data": (64, 1, 28, 28), **label}, "step", frameworks),
        Entry("resnet18 step", "training", vision.resnet18_loss, {"data": (8, 3, 64, 64), "softmax_label": (8,)},
              "step", frameworks, ("mxnet", "torch"), tolerance=DEEP),
        Entry("lstm forward", "training", others.lstm,
              {"data": (35, 32, 200), "state": (1, 32, 200), "state_cell": (1, 32, 200)}, "forward",
              ("mxnet", "torch")),
        Entry("lstm", "training", others.lstm,
              {"data": (35, 32, 200), "state": (1, 32, 200), "state_cell": (1, 32, 200)}, "backward",
              ("mxnet", "torch"), ("mxnet", "torch")),
    ]
    for batch in (1, 8):
        shapes, quick = {"data": (batch, others.TOKENS, others.WIDTH)}, batch == 1
        made.append(Entry(f"bert forward b{batch}", "training", bert, shapes,
                          main=("mxnet", "onnxruntime") if quick else ()))
        made.append(Entry(f"bert b{batch}", "training", bert, shapes, "backward", frameworks,
                          ("torch",) if quick else ()))
    return made


def _convolutions() -> list[Entry]:
    """Every distinct convolution of ResNet-50 and MobileNet-v2."""
    import mxc as mx

    made: dict[tuple, Entry] = {}
    for build, short in ((vision.resnet50, "r50"), (vision.mobilenet_v2, "mb2")):
        symbol = build()
        internals = symbol.get_internals()
        _, outputs, _ = internals.infer_shape(data=(1, 3, 224, 224))
        shapes = dict(zip(internals.list_outputs(), outputs, strict=True))
        names = [n["name"] for n in json.loads(symbol.tojson())["nodes"]]
        for node in json.loads(symbol.tojson())["nodes"]:
            if node["op"] != "Convolution":
                continue
            source = names[node["inputs"][0][0]]
            inside = shapes.get(f"{source}_output", shapes.get(source))
            attrs = {k: v for k, v in node["attrs"].items() if k in ("kernel", "stride", "pad", "num_group")}
            filters = int(node["attrs"]["num_filter"])
            assert inside is not None
            key = (inside, filters, *attrs.values())
            if key in made:
                continue
            kernel, group = attrs["kernel"].strip("()").split(",")[0], int(attrs.get("num_group", "1"))
            kind = f"{kernel}x{kernel}" + (" depthwise" if group > 1 else "")
            stride = "/2" if "2" in attrs["stride"] else ""
            text = f"conv {short} {kind} {inside[1]}->{filters} {inside[2]}px{stride}"
            graph = partial(mx.sym.Convolution, mx.sym.Variable("data"), name="conv", num_filter=filters, no_bias=True,
                            **attrs)
            made[key] = Entry(text, "convolutions", graph, {"data": inside},
                              peers=("mxnet", "onnxruntime", "openvino", "torch"))
    return [Entry(f"{e.name} b{batch}", e.family, e.build, {"data": (batch, *e.shapes["data"][1:])}, peers=e.peers)
            for batch in (1, 16) for e in made.values()]


def entries(models: Path) -> list[Entry]:
    """All cases; `models`: the folder of saved models."""
    tiny = Entry("tiny", "tiny", others.tiny, {"x": (8, 8), "y": (8, 8)}, main=("mxnet", "jax"))
    return [*_networks(models), *_training(), *_products(), *_chains(), tiny, *_convolutions()]


def chosen(models: Path, words: list[str], quick: bool) -> list[Entry]:
    """The cases of those families, those of that name, and where no case has it, those with such a word's beginning in
    their names; without words all, or in a quick run its own."""
    found = entries(models)
    names = {e.name for e in found}

    def meant(entry: Entry, word: str) -> bool:
        if word in names:
            return word == entry.name
        return word == entry.family or f" {word}" in f" {entry.name}"

    if words:
        return [e for e in found if any(meant(e, word) for word in words)]
    return [e for e in found if e.quick or not quick]
