"""A ResNet-18 learns from a file of records: by a Module from ImageRecordIter, and in Gluon from ImageRecordDataset."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc import autograd, gluon
from mxc.compiler.system import opencv
from mxc.gluon.data.vision import ImageRecordDataset, transforms
from mxc.gluon.model_zoo import vision

pytest.importorskip("cv2")
CLASSES, COUNT, BATCH, SIDE = 3, 96, 16, 32
GOOD = 0.9  # of pictures that it was not trained with; by chance it is a third


@pytest.fixture
def records(tmp_path: Path) -> tuple[str, str]:
    """Files for training and for tests: JPEGs of 40 x 36 with stripes across, stripes down, or checks, in noise."""
    random = np.random.RandomState(3)
    rows, columns = np.indices((36, 40)) // 4 % 2
    shapes = [rows, columns, rows ^ columns]
    paths = []
    for name, count in (("train", COUNT), ("test", COUNT // 2)):
        paths.append(str(tmp_path / name))
        with mx.recordio.MXIndexedRecordIO(f"{paths[-1]}.idx", f"{paths[-1]}.rec", "w") as file:
            for i in range(count):
                colours = random.randint(60, 200, 3) + 80 * (shapes[i % CLASSES][..., None] - 0.5)
                pixels = np.clip(colours + random.normal(0, 20, (36, 40, 3)), 0, 255).astype(np.uint8)
                file.write_idx(i, mx.recordio.pack((0, float(i % CLASSES), i, 0), opencv.encoded(pixels, 90, ".jpg")))
    mx.random.seed(4)
    np.random.seed(4)
    return paths[0], paths[1]


def test_by_a_module(records: tuple[str, str]) -> None:
    usual = {"data_shape": (3, SIDE, SIDE), "batch_size": BATCH, "mean_r": 128, "mean_g": 128, "mean_b": 128,
             "scale": 1 / 64}
    train, test = (mx.io.ImageRecordIter(path_imgrec=f"{path}.rec", path_imgidx=f"{path}.idx", **usual, **more)
                   for path, more in zip(records, ({"rand_crop": True, "rand_mirror": True, "shuffle": True, "seed": 1},
                                                   {}), strict=True))
    net = mx.sym.SoftmaxOutput(vision.resnet18_v1(classes=CLASSES)(mx.sym.var("data")), name="softmax")
    module = mx.mod.Module(net)
    before = {}

    def seen(epoch: int, *_: object) -> None:
        before[epoch] = module.score(test, "acc")[0][1]

    module.fit(train, num_epoch=6, optimizer="adam", optimizer_params={"learning_rate": 1e-3},
               initializer=mx.init.Xavier(), epoch_end_callback=seen)
    assert max(before.values()) > GOOD, before


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_in_gluon(workers: int, records: tuple[str, str]) -> None:
    change = transforms.Compose([transforms.RandomFlipLeftRight(), transforms.Resize(SIDE), transforms.ToTensor(),
                                 transforms.Normalize((0.5,) * 3, (0.25,) * 3)])
    train, test = (gluon.data.DataLoader(ImageRecordDataset(f"{path}.rec").transform_first(change), BATCH,
                                         shuffle=path is records[0], num_workers=workers) for path in records)
    net = vision.resnet18_v1(classes=CLASSES)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer, loss = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-3}), \
        gluon.loss.SoftmaxCrossEntropyLoss()
    best = 0.0
    for _ in range(6):
        for data, label in train:
            with autograd.record():
                error = loss(net(data), label)
            error.backward()
            trainer.step(BATCH)
        metric = mx.metric.Accuracy()
        for data, label in test:
            metric.update([label], [net(data)])
        best = max(best, metric.get()[1])
    assert best > GOOD
