"""Lists of pictures, and records of files packed as they are, made once by MXNet and by `mxc im2rec`.

With MXNet's Python, `im2rec_calls.py` writes what MXNet 1.9.1 makes to im2rec_calls.json; tests/test_cli_im2rec.py
compares mxc's. MXNet's lists are those of its own tool, which is run; its records are those of `mx.recordio`.
"""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import answers

PATH = Path(__file__).with_name("im2rec_calls.json")
# Pictures by their folders: names with spaces, other letters, capitals, several endings; folders without a picture.
NAMES = ["b/x 1.jpg", "b/a.JPG", "a/ü.png", "a/z.jpeg", "a/deep/q.jpg", "top.jpg", "Z/k.png", "a/skip.gif", "a.jpg",
         "a/none.txt", "b.d/1.jpg", "empty/none.txt", *(f"many/{i:02}.jpg" for i in range(13))]
LISTS = ["", "--no-shuffle", "--recursive", "--recursive --no-shuffle", "--recursive --chunks 3",
         "--recursive --train-ratio 0.7 --test-ratio 0.2", "--recursive --train-ratio 0.8",
         "--recursive --train-ratio 0.5 --test-ratio 0.5 --chunks 2", "--chunks 5 --train-ratio 0.5",
         "--recursive --exts .gif .jpg", "--recursive --exts .gif .png --no-shuffle"]
# A list made by hand, with the content of each file: one has the word that begins a record.
ROWS = [(7, [1.5], "a b.jpg", b"first"), (3, [2, 5, -1, 0.25, 1e30], "ü.png", b"\0"),
        (0, [0], "x/c.bin", bytes(range(256))), (12, [0, 1], "e", b"a" * 1001),
        (2**63, [4], "d", bytes.fromhex("0a23d7ce") * 3 + b"xyz")]
PACKED = {"the first label": False, "all labels": True}


def tree(root):
    """Make the files of NAMES."""
    for name in NAMES:
        place = Path(root, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


def made(folder, endings):
    """The files of a folder with these endings, by name."""
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.suffix in endings}


def _listed(mx, options):
    """What MXNet's tool writes and prints. It imports cv2, of which lists have no need."""
    tree("pictures")
    Path("nothing").mkdir()
    Path("nothing/cv2.py").touch()
    tool = Path(mx.__file__).with_name("tools") / "im2rec.py"
    done = subprocess.run([sys.executable, tool, "out", "pictures", "--list", *options], check=True, text=True,
                          stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "nothing", "PYTHONUTF8": "1"})
    return [{name: text.decode() for name, text in made(".", [".lst"]).items()},
            [line.rsplit(" ", 1) for line in done.stdout.splitlines()]]


def _packed(mx, with_all):
    """The bytes of a file of records and its index, as programs make them."""
    writer = mx.recordio.MXIndexedRecordIO("hand.idx", "hand.rec", "w")
    for key, labels, _, content in ROWS:
        label = labels if with_all and len(labels) > 1 else labels[0]
        writer.write_idx(key, mx.recordio.pack(mx.recordio.IRHeader(0, label, key, 0), content))
    writer.close()
    return {name: content.hex() for name, content in made(".", [".rec", ".idx"]).items()}


def answer(mx, case):
    """What a case gives, in an empty folder of its own."""
    with answers.empty_folder():
        return _packed(mx, PACKED[case]) if case in PACKED else _listed(mx, case.split())


if __name__ == "__main__":
    answers.run(__file__, PATH, [*LISTS, *PACKED], answer)
