"""Short programs with `mx.recordio`, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `recordio_calls.py` writes what MXNet 1.9.1 answers to recordio_calls.json, a line for each
program; tests/test_recordio.py compares mxc's. The bytes of files are part of the answers.
"""
import os
import pickle
import struct
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import answers

PATH = Path(__file__).with_name("recordio_calls.json")
WORD = struct.pack("<I", 0xCED7230A)
RECORDS = [b"", b"a", b"abcd", WORD, b"xx" + WORD, b"abcd" + WORD + WORD + b"yy", WORD + WORD + b"z",
           b"abcdefgh" + WORD, b"abc" + WORD + b"d", WORD * 4, bytes(range(256))]


def shown(value):
    """A value as JSON has it: bytes as their digits, tuples and arrays as lists."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, (tuple, list)):
        return [shown(each) for each in value]
    return value


def raised(call):
    """What a call gives, shown, or the classes of what it raises."""
    return answers.raised(lambda: shown(call()))


def written(mx):
    """The file of all records, in the current folder."""
    with_all = mx.recordio.MXRecordIO("all.rec", "w")
    for record in RECORDS:
        with_all.write(record)
    with_all.close()
    return Path("all.rec").read_bytes()


def everything(reader):
    found = []
    while (record := reader.read()) is not None:
        found.append(record)
    return found


def indexed(mx):
    """An indexed file in the current folder; what its writer says of itself."""
    writer = mx.recordio.MXIndexedRecordIO("some.idx", "some.rec", "w")
    places = []
    for i in range(4):
        places.append(writer.tell())
        writer.write_idx(3 * i, b"r%d" % i * i)
    said = [places, sorted(writer.idx.items()), writer.keys, writer.key_type is int, writer.writable]
    writer.close()
    return said


def _bytes_of_a_file(mx):
    return [written(mx), indexed(mx), Path("some.rec").read_bytes(), Path("some.idx").read_text()]


def _read(mx):
    written(mx)
    reader = mx.recordio.MXRecordIO("all.rec", "r")
    found = [everything(reader), reader.read(), reader.read()]
    reader.reset()
    found += [reader.read(), reader.read(), reader.is_open, reader.writable]
    reader.close()
    reader.close()
    return [*found, reader.is_open]


def _wrong_use(mx):
    recordio = mx.recordio
    written(mx)
    reader, writer = recordio.MXRecordIO("all.rec", "r"), recordio.MXRecordIO("w.rec", "w")
    calls = [lambda: reader.write(b"a"), lambda: writer.read(), lambda: writer.write("text"),
             lambda: writer.write(bytearray(b"a")), lambda: recordio.MXRecordIO("all.rec", "x")]
    return [raised(call) for call in calls]


def _indexed(mx):
    indexed(mx)
    reader = mx.recordio.MXIndexedRecordIO("some.idx", "some.rec", "r")
    found = [reader.keys, sorted(reader.idx.items()), reader.read_idx(9), reader.read_idx(3), reader.read(),
             reader.read()]
    reader.seek(6)
    found += [reader.read(), raised(lambda: reader.read_idx(77)), raised(lambda: reader.tell()),
              raised(lambda: reader.write_idx(5, b""))]
    reader.reset()
    return [*found, reader.read(), reader.keys]


def _index_of_text(mx):
    writer = mx.recordio.MXIndexedRecordIO("t.idx", "t.rec", "w", str)
    writer.write_idx("a b", b"one")
    writer.write_idx("a b", b"two")
    writer.write_idx(7, b"three")
    found = [writer.keys, sorted(writer.idx), raised(lambda: writer.seek("7")), raised(lambda: writer.read_idx("7"))]
    writer.close()
    reader = mx.recordio.MXIndexedRecordIO("t.idx", "t.rec", "r", str)
    found += [Path("t.idx").read_text(), reader.read_idx("a b"), reader.read_idx("7")]
    Path("t.idx").write_text("1\t0\tmore\n2\t12\n")
    return [*found, mx.recordio.MXIndexedRecordIO("t.idx", "t.rec", "r").idx[2]]


def _pickled(mx):
    indexed(mx)
    reader = mx.recordio.MXIndexedRecordIO("some.idx", "some.rec", "r")
    reader.read_idx(6)
    again = pickle.loads(pickle.dumps(reader))
    return [again.keys, again.is_open, again.read(), again.read_idx(9), reader.read_idx(3)]


def _forked(mx):
    """What a child process reads from the parent's file, and whether the parent's position stays."""
    indexed(mx)
    reader = mx.recordio.MXIndexedRecordIO("some.idx", "some.rec", "r")
    reader.seek(6)
    output, child_output = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(child_output, repr([reader.read_idx(3), reader.read(), reader.read_idx(9)]).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(child_output)
    return [os.read(output, 1000).decode(), reader.read()]


def _packed(mx):
    recordio = mx.recordio
    header = recordio.IRHeader
    found = []
    for given in (header(0, 4.0, 7, 2), header(5, 1, 7, 2), (1, [1, 2, 3], 1, 0), header(0, np.arange(4), 1, 0),
                  header(0, np.float32(3), 1, 1), header(0, np.array(3.5), 2, 0), header(0, [], 1, 0),
                  header(9, True, 2**63, 2**64 - 1), header(0, "3", 1, 0)):
        packed = recordio.pack(given, b"data")
        unpacked, content = recordio.unpack(packed)
        found.append([packed, list(unpacked), content])
    return [found, repr(header(0, 1.5, 2, 3)), header._fields]


def _wrong_packs(mx):
    pack, unpack = mx.recordio.pack, mx.recordio.unpack
    calls = [lambda: pack((0, 1, -1, 0), b""), lambda: pack((0, 1, 1, 0), "text"), lambda: pack((0, 1, 1), b""),
             lambda: unpack(b"abc"), lambda: unpack(struct.pack("<IfQQ", 5, 0, 1, 0) + b"abcd")]
    return [raised(call) for call in calls]


def damaged():
    """Files that are no files of records, by what is wrong."""
    whole = WORD + struct.pack("<I", 6) + b"abcdef\0\0"
    return {"cut": whole[:-2], "cut in the head": whole + WORD, "another magic": b"\0" + whole[1:],
            "long": WORD + struct.pack("<I", 1 << 28) + b"abc", "longer": WORD + struct.pack("<I", (1 << 29) - 1)}


def _damaged(mx):
    found = []
    for name, content in damaged().items():
        Path("damaged.rec").write_bytes(content)
        reader = mx.recordio.MXRecordIO("damaged.rec", "r")
        found.append([name, raised(lambda reader=reader: everything(reader))])
    return found


CASES = {"bytes of a file": _bytes_of_a_file, "read": _read, "wrong use": _wrong_use, "indexed": _indexed,
         "an index of text": _index_of_text, "pickled": _pickled, "forked": _forked, "packed": _packed,
         "wrong packs": _wrong_packs, "damaged": _damaged,
         "not there": lambda mx: [raised(lambda flag=flag: mx.recordio.MXRecordIO("none/none.rec", flag))
                                   for flag in "rw"]}


def answer(mx, case):
    """What a case gives, in an empty folder of its own."""
    with answers.empty_folder():
        return shown(CASES[case](mx))


if __name__ == "__main__":
    answers.run(__file__, PATH, CASES, answer)
