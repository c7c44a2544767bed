"""Short programs with `mx.io.ImageRecordIter` and its kin, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `image_records.py` writes what MXNet 1.9.1 answers to image_records.json, a line for each program;
tests/test_image_records.py compares mxc's. What MXNet draws at random cannot be compared, so nothing is random here.
"""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import answers
import image_calls

PATH = Path(__file__).with_name("image_records.json")
USUAL = {"path_imgrec": "plain.rec", "data_shape": (3, 9, 8), "batch_size": 2, "preprocess_threads": 1,
         "verbose": False}
MEANS = {"mean_r": 10, "mean_g": 20, "mean_b": 30, "std_r": 2, "std_g": 3, "std_b": 4, "scale": 0.5}


def epochs(mx, name, more, times=2):
    """Descriptions, then labels, pad, dtype and pixels of the batches of some epochs."""
    image_calls.files(mx)
    made = getattr(mx.io, name)(**{**USUAL, **more})
    found = [[[str(d), str(np.dtype(d.dtype))] for d in (*made.provide_data, *made.provide_label)]]
    for _ in range(times):
        found.append([])
        for batch in made:
            data = batch.data[0].asnumpy()
            found[-1].append([batch.label[0].asnumpy().tolist(), batch.pad, str(data.dtype),
                              image_calls.shown(data.astype("float64"))])
        made.reset()
    return found


def of(name="ImageRecordIter", **more):
    return lambda mx: epochs(mx, name, more)


def with_a_mean_image(mx):
    first = epochs(mx, "ImageRecordIter", {"mean_img": "mean.nd"}, 1)
    (name, mean), = mx.nd.load("mean.nd").items()
    again = epochs(mx, "ImageRecordIter", {"mean_img": "mean.nd", "scale": 2}, 1)
    return [first, name, image_calls.shown(mean), again]


def in_parts(more):
    """The labels of the records in each part of 1 to 4 of a file with 23."""
    def said(mx):
        file = mx.recordio.MXIndexedRecordIO("many.idx", "many.rec", "w")
        for i in range(23):
            encoded = list(image_calls.IMAGES.values())[i * i % 5]
            file.write_idx(i, mx.recordio.pack((0, float(i), i, 0), encoded))
        file.close()
        found = []
        for parts in range(1, 5):
            for part in range(parts):
                made = mx.io.ImageRecordIter(**{**USUAL, "path_imgrec": "many.rec", "batch_size": 1, "num_parts": parts,
                                                "part_index": part, **more})
                found.append([float(batch.label[0].asnumpy()[0]) for batch in made])
        return found

    return said


CASES = {
    "in parts": in_parts({}), "in parts by an index": in_parts({"path_imgidx": "many.idx"}),
    "usual": of(), "another batch": of(batch_size=4), "with an index": of(path_imgidx="plain.idx"),
    "bytes": of("ImageRecordUInt8Iter"), "small bytes": of("ImageRecordInt8Iter"), "older": of("ImageRecordIter_v1"),
    "older bytes": of("ImageRecordUInt8Iter_v1", resize=11), "bytes by dtype": of(dtype="uint8"),
    "names": of(data_name="x", label_name="y"), "grey": of(data_shape=(1, 9, 8), mean_r=5, std_r=2),
    "larger": of(data_shape=(3, 30, 20)), "wider": of(data_shape=(3, 9, 40)), "higher": of(data_shape=(3, 50, 8)),
    **{f"resized by {i}": of(resize=13, inter_method=i) for i in (0, 1, 2, 3, 4, 9)},
    "border": of(pad=20, fill_value=7, data_shape=(3, 40, 40)), "rotated": of(rotate=30, fill_value=9),
    "rotated back": of(rotate=-30), "scaled": of(max_random_scale=0.9, min_random_scale=0.9),
    "largest": of(max_img_size=11), "smallest": of(min_img_size=45), "crop size": of(max_crop_size=9, min_crop_size=9),
    "normalized": of(**MEANS), "mirrored": of(mirror=True, **MEANS), "a mean image": with_a_mean_image,
    "first part": of(num_parts=2, part_index=0), "second part": of(num_parts=2, part_index=1),
    "a part by the index": of(num_parts=2, part_index=1, path_imgidx="plain.idx"),
    "listed": of(path_imglist="one.lst"), "two labels": of(path_imglist="two.lst", label_width=2),
    "labels of records": of(path_imgrec="boxes.rec", label_width=7, batch_size=1, num_parts=5),
    **{f"boxes {name}": of("ImageDetRecordIter", **{"path_imgrec": "boxes.rec", **more}) for name, more in {
        "usual": {}, "wide": {"label_pad_width": 20, "label_pad_value": -2}, "mirrored": {"rand_mirror_prob": 1},
        "fitting": {"resize_mode": "fit", "mean_r": 10, "std_r": 2, "std_g": 3, "std_b": 4},
        "shrunk": {"resize_mode": "shrink", "data_shape": (3, 30, 28)}, "resized": {"resize": 15},
        "normalized": MEANS, "narrow": {"label_pad_width": 3}, "of one length": {"label_width": 7},
        "without boxes": {"path_imgrec": "plain.rec"},
        "samplers": {"num_crop_sampler": 2, "min_crop_scales": (1, 2, 3)},
    }.items()},
    "too few labels": of(label_width=2), "conflict": of(random_resized_crop=True, rand_crop=True),
    "too large a crop": of(max_crop_size=30, min_crop_size=30), "not there": of(path_imgrec="none.rec"),
    "no name": of(path_imgrec=""), "no such part": of(num_parts=2, part_index=5), "another dtype": of(dtype="float64"),
}


def answer(mx, case):
    """What a case gives or raises, in an empty folder of its own."""
    with answers.empty_folder():
        return image_calls.raised(lambda: CASES[case](mx))


def ask(case):
    """What a process of its own answers: after an error MXNet's iterators may end it."""
    asked = subprocess.run([sys.executable, __file__, case], capture_output=True, check=True)
    return json.loads(asked.stdout.splitlines()[-1])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import mxnet

        print(json.dumps(answer(mxnet, sys.argv[1])), flush=True)
        os._exit(0)
    with ThreadPoolExecutor(2) as pool:
        lines = [f"{json.dumps(case)}: {json.dumps(said)}" for case, said in
                 zip(CASES, pool.map(ask, CASES))]  # noqa: B905
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
