"""Pictures per second that ImageRecordIter gives: mxc and MXNet, and torchvision's ImageFolder; and what of a step that
trains a network loading takes.

    python bench/images.py [--mxnet PYTHON] [--threads N ...] [--rounds N] [--cases rate torchvision step]

rate: batches of 64 pictures of 3 x 224 x 224, a random part of JPEGs whose shorter side is 256 (quality 95), mirrored
every second time, less a mean and over a deviation. mxc and MXNet run one program in processes of their own, by turns,
with as many threads that decode as `--threads` says; a number is the best pass over the pictures of all rounds, by the
clock, and by CPU seconds, which a machine that others use changes less.
torchvision: the same files in a folder for each class, by ImageFolder and a DataLoader of 2 workers, against mxc with 2
threads. step: seconds of a step that trains ResNet-18 with 16 such pictures, by a Module, from records and from memory.
"""
from __future__ import annotations

import tempfile
from pathlib import Path

import cv2
import numpy as np
from harness.environments import asked
from harness.programs import answer, arguments

import mxc as mx

PICTURES, CLASSES, QUALITY = 512, 8, 95
# Programs print JSON: the most pictures per second of a pass, or seconds of a step. `mx` is the module.
RATE = """
import json, time
made = mx.io.ImageRecordIter(
    path_imgrec=records + ".rec", path_imgidx=records + ".idx", data_shape=(3, 224, 224), batch_size=64, rand_crop=True,
    rand_mirror=True, preprocess_threads=count, mean_r=123.68, mean_g=116.28, mean_b=103.53, std_r=58.4, std_g=57.12,
    std_b=57.38)
best = [0.0, 0.0]
for _ in range(6):
    made.reset()
    wall, cpu, found = time.perf_counter(), time.process_time(), 0
    for batch in made:
        batch.data[0].wait_to_read()
        found += len(batch.data[0])
    best = [max(best[0], found / (time.perf_counter() - wall)), max(best[1], found / (time.process_time() - cpu))]
print(json.dumps(best))
"""
TORCHVISION = """
import json, time
from torchvision import datasets, transforms
mx.set_num_threads(1)
change = transforms.Compose([
    transforms.RandomCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
loader = mx.utils.data.DataLoader(datasets.ImageFolder(folder, change), 64, num_workers=count, persistent_workers=True)
best = 0.0
for _ in range(6):
    begin, found = time.perf_counter(), 0
    for pictures, _ in loader:
        found += len(pictures)
    best = max(best, found / (time.perf_counter() - begin))
print(json.dumps([best]))
"""
STEP = """
import importlib, json, time
import numpy as np
vision = importlib.import_module(mx.__name__ + ".gluon.model_zoo.vision")

made = mx.io.ImageRecordIter(
    path_imgrec=records + ".rec", path_imgidx=records + ".idx", data_shape=(3, 224, 224), batch_size=16, rand_crop=True,
    rand_mirror=True, preprocess_threads=count, scale=1 / 128, num_parts=parts)
net = mx.sym.SoftmaxOutput(vision.resnet18_v1(classes=classes)(mx.sym.var("data")), name="softmax")
module = mx.mod.Module(net)
module.bind(made.provide_data, made.provide_label)
module.init_params(mx.init.Xavier())
module.init_optimizer(optimizer_params={"learning_rate": 0.01})

def seconds(batches):
    cpu, wall, done = time.process_time(), time.perf_counter(), 0
    for batch in batches:
        module.forward_backward(batch)
        module.update()
        done += 1
    mx.nd.waitall()
    return (time.process_time() - cpu) / done, (time.perf_counter() - wall) / done

kept = [mx.io.DataBatch([array.copy() for array in each.data], [array.copy() for array in each.label]) for each in made]
seconds(kept)
found = {"records": [], "memory": []}
for _ in range(turns):
    made.reset()
    found["records"].append(seconds(made))
    found["memory"].append(seconds(kept))
print(json.dumps({name: list(map(min, zip(*times))) for name, times in found.items()}))
"""
CASES = ("rate", "torchvision", "step")


def picture(random: np.random.RandomState) -> np.ndarray:
    """A picture of 341 x 256 with shapes of all sizes, the large ones stronger, as photographs have them."""
    total = np.zeros((256, 341, 3), np.float32)
    for size in (3, 6, 12, 25, 50, 100, 200):
        coarse = random.standard_normal((size, size * 4 // 3, 3)).astype(np.float32)
        total += cv2.resize(coarse, (341, 256), interpolation=cv2.INTER_CUBIC) * 70 / size ** 0.45
    return np.clip(total + 128, 0, 255).astype(np.uint8)


def make(folder: Path) -> float:
    """Records of pictures, `all.rec` with its index, and the same files in folders of classes. Gives how many bytes a
    file has in the mean."""
    random, total = np.random.RandomState(0), 0
    with mx.recordio.MXIndexedRecordIO(str(folder / "all.idx"), str(folder / "all.rec"), "w") as file:
        for i in range(PICTURES):
            encoded = cv2.imencode(".jpg", picture(random), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1].tobytes()
            place = folder / "files" / str(i % CLASSES)
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{i}.jpg").write_bytes(encoded)
            file.write_idx(i, mx.recordio.pack((0, float(i % CLASSES), i, 0), encoded))
            total += len(encoded)
    return total / PICTURES


def main() -> None:
    args = arguments(__doc__, CASES, [1, 2])
    with tempfile.TemporaryDirectory() as name:
        print(f"{PICTURES} pictures of 341 x 256, {make(Path(name)) / 1024:.0f} KiB each")
        records, folder = str(Path(name, "all")), str(Path(name, "files"))
        if "rate" in args.cases:
            for count in args.threads:
                found: dict[str, list[list[float]]] = {peer: [] for peer in args.peers}
                for _ in range(args.rounds):
                    for peer, python in args.peers.items():
                        found[peer].append(answer(python, peer, RATE, count, records=records, count=count))
                report(f"rate, {count} threads", found)
        if "torchvision" in args.cases and (theirs := asked("torchvision")):
            found = {"mxc": [], "torchvision": []}
            for _ in range(args.rounds):
                found["mxc"].append(answer(args.peers["mxc"], "mxc", RATE, 2, records=records, count=2))
                found["torchvision"].append(answer(theirs, "torch", TORCHVISION, 2, folder=folder, count=2))
            report("torchvision, 2 workers", found)
        if "step" in args.cases:
            for count in args.threads:
                times = answer(args.peers["mxc"], "mxc", STEP, count, records=records, count=count, classes=CLASSES,
                               parts=8, turns=args.rounds)
                for i, kind in enumerate(("CPU seconds", "seconds")):
                    one, other = times["records"][i], times["memory"][i]
                    print(f"step, {count} threads: {one:.3f} {kind} from records, {other:.3f} from memory, "
                          f"{one / other - 1:+.1%}", flush=True)


def report(case: str, found: dict[str, list[list[float]]]) -> None:
    """A line for each kind of second: the most pictures in one of all rounds, and how many times as many mxc gives."""
    best = {peer: list(map(max, zip(*rounds, strict=True))) for peer, rounds in found.items()}
    for i, kind in enumerate(("second", "CPU second")):
        others = "".join(f"{peer:>14} {rates[i]:.0f}, x {best['mxc'][i] / rates[i]:.2f}" for peer, rates in best.items()
                         if peer != "mxc" and len(rates) > i)
        if others or len(best) == 1:
            print(f"{case:24}mxc {best['mxc'][i]:.0f} pictures a {kind}{others}", flush=True)


if __name__ == "__main__":
    main()
