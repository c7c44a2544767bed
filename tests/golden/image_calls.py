"""Short programs with `mx.image` and `mx.gluon.data.vision`, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `image_calls.py` writes what MXNet 1.9.1 answers to image_calls.json, a line for each program;
tests/test_pictures.py compares mxc's.
"""
import base64
import json
import random
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import answers

PATH = Path(__file__).with_name("image_calls.json")
WIDE = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYnKSopGR8tMC0oMCUoKS
j/2wBDAQcHBwoIChMKChMoGhYaKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCj/wAARCAAYACEDASIAAhEBAxEB
/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2
JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5
usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBA
QAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0
dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAx
EAPwDbntBLbZx2rz3xJY+W7HFep2AEtqPpXKeLLL5WIFfVYfGRwEeU+D4aTp1uVnn+lTGG4Az3r1nwrdeZGozXj8imK5/GvQ/BVzlkGa/PeKsQ8a/dP1bE
ZcqlFTSPSdoopnmD1or4P6jUPH+pM53w7cCSBRntS+ILYSwsQKKK/S+J8RUp1mos+SwFONPErlPLNYsylwTjvW34QkKTID60UV5uBiq8b1NT9qwcFPC6no
/n+9FFFej9Spdji+rw7H//2Q==
""")
TALL = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk
//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAAoABYDASIAAhEBAxEB
/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2
JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5
usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBA
QAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0
dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAx
EAPwC48O6PpWDqEG1icV00GHirL1ODgnFerTrKgrHg5auWdjAifaSKKbIpVzRXn1cVzTbPsY4dNXOwsJNyClvotyGs/S5+AM1ssvmR1w5rieSpZHzdKh7O
pc5C6hxJ0orVvLb5+lFcsJuUbn1tGS5EZ+mzYYCursz5kYoorDMveqanlV6cU7iXNtuIOKKKK6qEV7NHTSk+RH//2Q==
""")
SMALL = base64.b64decode("""
iVBORw0KGgoAAAANSUhEUgAAAAoAAAAMCAIAAADUCbv3AAAAyklEQVQY003P0UoEMQyF4bZ/TjKj7D6zz+lDrCJeyO5Ma9pFEA4t9EtCWsv7m/pV96t+Lv
q+6OtVny/62HVz3dQYO3WHbUaBZ5ywFRaXjbZjGxYoTXhaI2ryRskBWRmYI6HZt7g0+uquOfyPHbzh9cnbGhDUfBZmeUyOgo/GudGD4jTRDMuabC0z0f9x
WZzLqqLkTpyNI+hOF8WSJltBY7JPdk4xkiE/0vJKnkYcjYdziNMY+V4XD6yjA3882cglRqUUalad2LH4/gs9+zlghK5ZigAAAABJRU5ErkJggg==
""")
GREY = base64.b64decode("""
iVBORw0KGgoAAAANSUhEUgAAAAwAAAAOCAAAAAA+1qIwAAAAbElEQVQI1zXMWw7CMAxE0WT82v/2WEQLiA/UJg52LPx3dK3pD7++n/fzPI7zhdWJRNXMVL
AamMW2Ah0sYnnw1onjT7P4KlkQ0xvAUiXQQCK5gOGRqBLGzD2qcqd22vjvaWL4/ouE655z9Zr4Ab7qLi1yBnXYAAAAAElFTkSuQmCC
""")
IMAGES = {"wide.jpg": WIDE, "tall.jpg": TALL, "small.png": SMALL, "grey.png": GREY, "again.jpg": WIDE}
BOXES = np.array([[0, 0.1, 0.1, 0.5, 0.6], [1, 0.4, 0.3, 0.9, 0.95], [2, 0.2, 0.5, 0.25, 0.55]], "float32")


def shown(value):
    """A value as JSON has it: of an image its shape, dtype, some pixels and the mean."""
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if isinstance(value, np.ndarray):
        numbers = value.astype("float64")
        some = numbers.ravel()[::max(1, numbers.size // 12)] if numbers.ndim > 2 else numbers.ravel()
        return [list(value.shape), str(value.dtype), rounded(some), round(float(numbers.mean()), 3)]
    if isinstance(value, (tuple, list)):
        return [shown(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def rounded(numbers):
    return [round(float(n), 3) for n in numbers]


def raised(call):
    """What a call gives, shown, or the classes of what it raises."""
    return answers.raised(lambda: shown(call()))


def each(*calls):
    """A program of several calls, under one seed."""
    def program(mx):
        random.seed(7)
        np.random.seed(7)
        return [raised(lambda call=call: call(mx)) for call in calls]

    return program


def wide(mx):
    return mx.image.imdecode(WIDE)


def real(mx):
    return wide(mx).astype("float32")


def on_wide(name, *args, **kwargs):
    """A call of a function of `mx.image` with an image."""
    return lambda mx: getattr(mx.image, name)(wide(mx), *args, **kwargs)


def rotated(*args, name="imrotate", count=0, **kwargs):
    def call(mx):
        image = real(mx).transpose((2, 0, 1))
        return getattr(mx.image, name)(mx.nd.stack(*[image] * count) if count else image, *args, **kwargs)

    return call


def augmented(name, *args, times=2, **kwargs):
    """An augmenter, several times, and what it says of itself."""
    def call(mx):
        augment = getattr(mx.image, name)(*args, **kwargs)
        return [augment.dumps(), *(augment(real(mx)) for _ in range(times))]

    return call


def boxed(name, *args, times=4, **kwargs):
    """An augmenter of images with boxes, several times, and what it says of itself."""
    def call(mx):
        augment = getattr(mx.image, name)(*args, **kwargs)
        said = augment.dumps()
        return [said if isinstance(said, list) else json.loads(said),
                *(augment(real(mx), BOXES.copy()) for _ in range(times))]

    return call


def borrowed(mx):
    return boxed("DetBorrowAug", mx.image.ForceResizeAug((9, 7)))(mx)


def selected(mx):
    flip = mx.image.DetHorizontalFlipAug(1)
    return boxed("DetRandomSelectAug", [flip, mx.image.DetBorrowAug(mx.image.CastAug())], 0.4, times=6)(mx)


def created(name, **kwargs):
    return lambda mx: [a.dumps() for a in getattr(mx.image, name)((3, 20, 24), **kwargs)]


def files(mx):
    """All images in the current folder, by themselves, in records, and in lists."""
    for name, content in IMAGES.items():
        Path(name).write_bytes(content)
    of = mx.recordio
    for path in ("plain", "boxes"):
        writer = of.MXIndexedRecordIO(f"{path}.idx", f"{path}.rec", "w")
        for i, content in enumerate(IMAGES.values()):
            label = float(i) if path == "plain" else [2, 5, *BOXES[:1 + i % 3].ravel().tolist()]
            writer.write_idx(i, of.pack(of.IRHeader(0, label, i, 0), content))
        writer.close()
    Path("one.lst").write_text("".join(f"{i}\t{10 + i}\t{name}\n" for i, name in enumerate(IMAGES)))
    Path("two.lst").write_text("".join(f"{i}\t{10 + i}\t{20 + i}\t{name}\n" for i, name in enumerate(IMAGES)))


def epochs(kind, *args, times=2, **kwargs):
    """Labels, pad and the mean of the images of the batches of some epochs."""
    def call(mx):
        files(mx)
        iterator = getattr(mx.image, kind)(*args, **kwargs)
        found = []
        for _ in range(times):
            found.append([[batch.label[0], batch.pad, round(float(batch.data[0].asnumpy().mean()), 2)]
                          for batch in iterator])
            iterator.reset()
        return found

    return call


RECORDS = {"path_imgrec": "plain.rec", "path_imgidx": "plain.idx"}
WITH_BOXES = {"path_imgrec": "boxes.rec", "path_imgidx": "boxes.idx"}
EVERYTHING = {"resize": 30, "rand_crop": True, "rand_mirror": True, "mean": True, "std": True, "brightness": 0.3,
              "contrast": 0.2, "saturation": 0.2, "hue": 0.1, "pca_noise": 0.1, "rand_gray": 0.2}
WITH_EVERYTHING = {**EVERYTHING, "resize": 50, "rand_crop": 0.7, "rand_pad": 0.5}


def described(mx):
    files(mx)
    one = mx.image.ImageIter(2, (3, 20, 24), label_width=2, data_name="x", label_name="y", **RECORDS)
    two = mx.image.ImageDetIter(2, (3, 20, 24), **WITH_BOXES)
    found = [one.provide_data, one.provide_label, one.batch_size, two.provide_data, two.provide_label, two.label_shape]
    two.reshape((3, 16, 16), (5, 5))
    other = mx.image.ImageDetIter(2, (3, 20, 24), **WITH_BOXES)
    found += [two.provide_data, two.provide_label, two.sync_label_shape(other) is other, other.label_shape]
    return [*found, *(raised(lambda shape=shape: two.reshape(label_shape=shape)) for shape in ((2, 5), (9, 6), (9,)))]


def _iterators():
    sizes = (2, (3, 20, 24))
    for tail in ("pad", "discard", "roll_over"):
        yield f"tail {tail}", each(epochs("ImageIter", *sizes, times=3, last_batch_handle=tail, **RECORDS),
                                   epochs("ImageIter", 3, (3, 20, 24), last_batch_handle=tail, path_imgrec="plain.rec"),
                                   epochs("ImageDetIter", *sizes, last_batch_handle=tail, **WITH_BOXES))
    yield "augmented", each(epochs("ImageIter", *sizes, **EVERYTHING, **RECORDS),
                            epochs("ImageIter", *sizes, rand_resize=True, rand_crop=True, inter_method=10, **RECORDS),
                            epochs("ImageDetIter", *sizes, **WITH_EVERYTHING, **WITH_BOXES))
    yield "shuffled", each(epochs("ImageIter", *sizes, shuffle=True, **RECORDS),
                           epochs("ImageIter", *sizes, shuffle=True, path_imgrec="plain.rec"),
                           epochs("ImageDetIter", *sizes, shuffle=True, **WITH_BOXES))
    yield "parts", each(epochs("ImageIter", *sizes, part_index=1, num_parts=2, **RECORDS),
                        epochs("ImageIter", *sizes, part_index=2, num_parts=2, **RECORDS),
                        epochs("ImageIter", *sizes, part_index=1, num_parts=2, path_imgrec="plain.rec"))
    yield "lists", each(
        epochs("ImageIter", *sizes, path_imglist="one.lst", path_root="."),
        epochs("ImageIter", *sizes, label_width=2, path_imglist="two.lst", path_root="."),
        epochs("ImageIter", *sizes, path_imglist="one.lst", **RECORDS),
        epochs("ImageIter", *sizes, path_imglist="one.lst", path_imgrec="plain.rec"),
        epochs("ImageIter", *sizes, imglist=[[1, "wide.jpg"], [2.5, "small.png"]], path_root="."),
        epochs("ImageIter", *sizes, label_width=2, imglist=[[1, 3, "wide.jpg"], [[2, 4], "small.png"]], path_root="."),
        epochs("ImageDetIter", *sizes, imglist=[[2, 5, *BOXES[0].tolist(), "wide.jpg"]], path_root="."))
    yield "described", described
    yield "wrong iterators", each(
        *(epochs("ImageIter", **{"batch_size": 2, "data_shape": (3, 20, 24), **RECORDS, **wrong}) for wrong in (
            {"dtype": "uint8"}, {"data_shape": (1, 20, 24)}, {"data_shape": (3, 20)}, {"path_imgrec": None}, {"foo": 1},
            {"rand_resize": True}, {"mean": np.ones(2)}, {"mean": 3})),
        *(epochs("ImageDetIter", *sizes, imglist=[[*label, "wide.jpg"]], path_root=".") for label in (
            [1], [2, 5, 0, 0.1, 0.1, 0.5, 0.6, 0.7], [2, 5, 0, 0.5, 0.1, 0.1, 0.6])))


# ---- mx.gluon.data.vision

def transformed(name, *args, tensor=False, times=1, several=False):
    """What a transform makes of an image, or of a tensor; of those that draw numbers of MXNet's the shape alone."""
    def call(mx):
        transforms = mx.gluon.data.vision.transforms
        block = getattr(transforms, name)(*args)
        x = transforms.ToTensor()(wide(mx)) if tensor else wide(mx)
        found = [block(mx.nd.stack(x, x) if several else x) for _ in range(times)]
        return [(y.shape, str(np.dtype(y.dtype))) for y in found] if name in DRAWING else found

    return call


DRAWING = ("RandomBrightness", "RandomContrast", "RandomSaturation", "RandomHue", "RandomLighting",
           "RandomColorJitter", "RandomFlipLeftRight", "RandomFlipTopBottom")


def composed(mx):
    of = mx.gluon.data.vision.transforms
    block = of.Compose([of.Resize(30), of.ToTensor(), of.CenterCrop(4), of.Cast("float64"), of.Normalize(0.5, 0.2)])
    whole = of.Compose([of.Resize((12, 10)), of.ToTensor(), of.Normalize((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))])
    return [[type(each).__name__ for each in block], [type(each).__name__ for each in whole], len(whole[0]),
            whole(wide(mx)), of.Compose([])(wide(mx)).shape]


def perhaps(mx):
    of = mx.gluon.data.vision.transforms
    return [of.RandomApply(of.Cast(), 0.5)(wide(mx)) for _ in range(6)]


def folders(mx):
    files(mx)
    for name, content in (("b/one.jpg", WIDE), ("a/two.PNG", SMALL), ("b/grey.png", GREY), ("a/no.txt", b"")):
        Path("root", name).parent.mkdir(parents=True, exist_ok=True)
        Path("root", name).write_bytes(content)
    Path("root/file").write_bytes(b"")
    vision = mx.gluon.data.vision
    found = vision.ImageFolderDataset("root")
    grey = vision.ImageFolderDataset("root", 0, transform=lambda image, label: (image.shape, label))
    return [found.synsets, found.items, len(found), found[0], found[2], grey[1]]


def recorded(mx):
    files(mx)
    data = mx.gluon.data
    raw, images, boxes = (data.RecordFileDataset("plain.rec"), data.vision.ImageRecordDataset("plain.rec"),
                          data.vision.ImageRecordDataset("boxes.rec", flag=0, transform=lambda x, y: (x.shape, y)))
    small = images.transform_first(data.vision.transforms.Compose([
        data.vision.transforms.Resize((6, 5)), data.vision.transforms.ToTensor()]))
    batches = [[(x, y) for x, y in data.DataLoader(small, 2, num_workers=workers)] for workers in (0, 2)]
    return [len(raw), len(raw[0]), len(raw[-1]), raised(lambda: raw[9]), len(images), images[1], boxes[1], batches,
            raised(lambda: data.RecordFileDataset("none.rec"))]


def _vision():
    yield "transforms", each(
        transformed("Cast"), transformed("Cast", "float16"), transformed("ToTensor"),
        transformed("ToTensor", several=True), transformed("Normalize", tensor=True),
        transformed("Normalize", (0.1, 0.2, 0.3), 0.5, tensor=True),
        transformed("Normalize", 0.1, [0.1, 0.2, 0.3], tensor=True),
        *(transformed("Resize", *args) for args in (
            (20,), ((20, 30),), ((20, 30), True), (20, True), (60, True, 2), (15, False, 3))),
        transformed("Resize", 20, several=True),
        *(transformed("CenterCrop", *args) for args in ((20,), ((20, 15),), ((60, 15),), ((20, 60), 0))),
        *(transformed("CropResize", *args) for args in (
            (1, 2, 20, 10), (1, 2, 20, 10, (5, 6), 2), (1, 2, 20, 10, 7, 1), (30, 2, 20, 10))),
        transformed("CropResize", 1, 2, 20, 10, (5, 6), 1, several=True))
    numbers = (0.3,), (0.3,), (0.3,), (0.3,), (0.1,), (0.1, 0.2, 0.3, 0.4), (), ()
    yield "random transforms", each(
        *(transformed("RandomResizedCrop", *args, times=2) for args in (
            (20,), ((20, 30),), ((20, 30), (0.1, 0.2)), ((20, 30), 0.5), ((20, 30), (0.1, 0.5), (0.5, 2), 2))),
        *(transformed("Rotate", *args, tensor=True) for args in ((30,), (30, True), (30, False, True))),
        transformed("Rotate", 30), transformed("RandomRotation", (-10, 10)),
        *(transformed("RandomRotation", *args, tensor=True, times=3) for args in (
            ((-10, 10),), ((-10, 10), True), ((-10, 10), False, False, 0.5), ((-10, 10), False, False, 2), ((9, -9),))),
        perhaps, composed,
        *(transformed(name, *args) for name, args in ((DRAWING[i], numbers[i]) for i in range(len(DRAWING)))))
    yield "folders", folders
    yield "records as datasets", recorded


INTERPS = (0, 1, 2, 3, 4, 9, 10)
CASES = {
    "decoded": each(wide, *(lambda mx, name=name: mx.image.imdecode(IMAGES[name]) for name in IMAGES),
                    lambda mx: mx.image.imdecode(WIDE, 0), lambda mx: mx.image.imdecode(WIDE, to_rgb=0),
                    lambda mx: mx.image.imdecode(bytearray(WIDE), flag=1, to_rgb=True),
                    lambda mx: mx.image.imdecode(np.frombuffer(WIDE, "uint8")),
                    lambda mx: mx.image.imdecode(mx.nd.array(np.frombuffer(WIDE, "uint8"), dtype="uint8"))),
    "read": each(lambda mx: [files(mx), mx.image.imread("wide.jpg"), mx.image.imread("tall.jpg", flag=0),
                             mx.image.imread("small.png", 1, 0)]),
    "not decoded": each(*(lambda mx, b=b: mx.image.imdecode(b) for b in ("text", b"", b"abcd", np.zeros(0, "uint8"))),
                        lambda mx: mx.image.imdecode(mx.nd.ones(4)), lambda mx: mx.image.imdecode(WIDE, flag=-1),
                        lambda mx: mx.image.imread("none.jpg")),
    "resized": each(*(on_wide("imresize", 20, 15, interp=i) for i in range(5)), on_wide("imresize", 40, 50),
                    on_wide("imresize", w=20, h=30), on_wide("imresize", 0, 3), on_wide("imresize", 3, 4, 9),
                    lambda mx: mx.image.imresize(wide(mx).asnumpy(), 3, 4)),
    "resized short": each(*(on_wide("resize_short", size, i) for i in INTERPS for size in (15, 50)),
                          on_wide("resize_short", 15, 5), lambda mx: mx.image.resize_short(mx.image.imdecode(TALL), 9)),
    "scaled down": each(*(lambda mx, a=a: list(mx.image.scale_down(*a)) for a in (
        ((640, 480), (720, 120)), ((360, 1000), (480, 500)), ((10, 10), (5, 5)), ((3, 4), (9, 9))))),
    "cropped": each(on_wide("fixed_crop", 3, 4, 20, 10), on_wide("fixed_crop", 3, 4, 20, 10, (40, 30), 9),
                    on_wide("fixed_crop", 28, 4, 20, 10), on_wide("fixed_crop", -3, 4, 20, 10),
                    on_wide("center_crop", (20, 15)), on_wide("center_crop", (60, 50))),
    "random crops": each(*[on_wide("random_crop", (20, 15))] * 3, on_wide("random_crop", (60, 10), 1),
                         *(on_wide("random_size_crop", (20, 15), area, (0.8, 1.2)) for area in (
                             (0.1, 0.5), 0.5, (3, 4), 0.08)),
                         on_wide("random_size_crop", (20, 15), 0.5, (0.8, 1.2), foo=1)),
    "interpolations": each(*(lambda mx, a=a: mx.image.image._get_interp_method(*a) for a in (
        *((i,) for i in INTERPS), (9, (1, 1, 2, 2)), (9, (2, 2, 1, 1)), (9, (1, 2, 2, 1)), (11,), (9, (3,))))),
    "normalized": each(
        lambda mx: mx.image.color_normalize(real(mx), mx.nd.array([1, 2, 3]), mx.nd.array([2, 3, 4])),
        lambda mx: mx.image.color_normalize(real(mx), None, None),
        lambda mx: mx.image.color_normalize(real(mx), mx.nd.array([1, 2, 3]))),
    "borders": each(*(on_wide("copyMakeBorder", 1, 2, 3, 4, kind) for kind in (0, 1, 2, 3, 4)),
                    on_wide("copyMakeBorder", 1, 2, 3, 4, 0, values=(1, 2, 3)), on_wide("copyMakeBorder", -1, 0, 0, 0)),
    "rotated": each(*(rotated(**kwargs) for kwargs in (
        {"rotation_degrees": 30}, {"rotation_degrees": 30, "zoom_in": True}, {"rotation_degrees": 30, "zoom_out": True},
        {"rotation_degrees": 30, "zoom_in": True, "zoom_out": True}, {"rotation_degrees": 0},
        {"rotation_degrees": -100})), rotated(10, count=2), rotated((-10, 10), name="random_rotate"),
        rotated((-10, 10), name="random_rotate", count=2), lambda mx: mx.image.imrotate(wide(mx), 30),
        lambda mx: mx.image.imrotate(real(mx)[0], 30), lambda mx: mx.image.imrotate(real(mx), mx.nd.array([1]))),
    "augmenters": each(
        augmented("ResizeAug", 15), augmented("ForceResizeAug", (9, 7), 9), augmented("RandomCropAug", (9, 7)),
        augmented("RandomSizedCropAug", (9, 7), (0.1, 0.9), (0.5, 2)), augmented("CenterCropAug", (9, 7)),
        augmented("HorizontalFlipAug", 0.5, times=4), augmented("CastAug", "float64")),
    "colours": each(
        augmented("BrightnessJitterAug", 0.4), augmented("ContrastJitterAug", 0.4),
        augmented("SaturationJitterAug", 0.4), augmented("HueJitterAug", 0.4),
        augmented("ColorJitterAug", 0.4, 0.3, 0.2), augmented("ColorJitterAug", 0.4, 0, 0),
        augmented("LightingAug", 0.2, np.array([1.0, 2, 3]), np.arange(9.0).reshape(3, 3)),
        augmented("ColorNormalizeAug", np.array([1.0, 2, 3]), None), augmented("RandomGrayAug", 0.5, times=4)),
    "of several": each(
        lambda mx: augmented("SequentialAug", [mx.image.CastAug(), mx.image.ForceResizeAug((2, 3))])(mx),
        lambda mx: augmented("RandomOrderAug", [mx.image.CastAug(), mx.image.HorizontalFlipAug(0.5)])(mx),
        lambda mx: mx.image.Augmenter(a=mx.nd.ones(2), b=np.ones(2), c=3).dumps(),
        lambda mx: mx.image.Augmenter()(wide(mx))),
    "created": each(created("CreateAugmenter"), created("CreateAugmenter", **EVERYTHING),
                    created("CreateAugmenter", rand_resize=True, rand_crop=True, mean=np.array([1.0, 2, 3])),
                    created("CreateDetAugmenter"), created("CreateDetAugmenter", **WITH_EVERYTHING)),
    "boxes": each(
        *(boxed("DetRandomCropAug", **kwargs) for kwargs in (
            {}, {"min_object_covered": 0.5}, {"area_range": (0.3, 0.9), "aspect_ratio_range": (0.5, 2)},
            {"min_object_covered": 0.95, "max_attempts": 5}, {"area_range": 0.5}, {"area_range": "a"})),
        *(boxed("DetRandomPadAug", **kwargs) for kwargs in (
            {}, {"area_range": (1.5, 2.5), "aspect_ratio_range": (0.5, 2)}, {"pad_val": (7, 8, 9)}, {"area_range": 2})),
        boxed("DetHorizontalFlipAug", 0.5), borrowed, selected, boxed("DetBorrowAug", 3),
        boxed("DetRandomSelectAug", [3]),
        boxed("CreateMultiRandCropAugmenter", [0.1, 0.3], (0.5, 2), [(0.1, 1), (0.2, 1)], 0.3, [3, 4]),
        boxed("CreateMultiRandCropAugmenter", [0.1, 0.3], max_attempts=[1, 2, 3])),
    **dict(_iterators()),
    **dict(_vision()),
}


def answer(mx, case):
    """What a case gives, in an empty folder of its own."""
    with answers.empty_folder(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return shown(CASES[case](mx))


if __name__ == "__main__":
    answers.run(__file__, PATH, CASES, answer)
