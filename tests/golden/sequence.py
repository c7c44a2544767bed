"""Golden cases of operators on batches of sequences of different lengths."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Known, Row, row

OPERATORS = ("SequenceMask", "SequenceLast", "SequenceReverse")
Shape = tuple[int, ...]


def one(op: str, label: str, data: Shape = (4, 3, 2), lengths: int = 3, dtype: str = "float32",
        kind: str = "float32", span: tuple[float, float] = (1, 5), train: bool = False, **attrs: object) -> Case:
    """A case with lengths, within the data unless `span` says otherwise."""
    shapes: dict[str, Shape] = {"data": data, "sequence_length": (lengths,)}
    return case(op, label, shapes, {"use_sequence_length": True, **attrs}, dtype, {"sequence_length": kind},
                spans={"sequence_length": span}, integer=["data"] if "int" in dtype else [],
                no_grad=["sequence_length"], train=train)


def cases() -> list[Case]:
    made = []
    for op in OPERATORS:
        made += [one(op, "train", train=True), one(op, "int_lengths", kind="int32", train=True),
                 one(op, "matrix", (4, 3), train=True), one(op, "wide", (3, 2, 2, 3), 2, span=(1, 4)),
                 one(op, "half", dtype="float16", train=True), one(op, "plain", dtype="float64", kind="float64"),
                 one(op, "whole", dtype="int32", kind="int64"),
                 case(op, "none", {"data": (4, 3, 2)}),
                 case(op, "none_told", {"data": (3, 2)}, {"axis": 0}, train=False),
                 one(op, "bad_lengths", lengths=4), one(op, "bad_rank", (3,), 3), one(op, "bad_axis", axis=2),
                 case(op, "bad_axis_none", {"data": (3, 2)}, {"axis": -1})]
    for op in OPERATORS[:2]:
        made += [one(op, "batch_first", (3, 4, 2), train=True, axis=1),
                 one(op, "batch_matrix", (3, 4), train=True, axis=1),
                 case(op, "batch_none", {"data": (3, 4, 2)}, {"axis": 1})]
    made += [one("SequenceMask", "value", value=-1.5, train=True), one("SequenceMask", "empty", span=(0, 2)),
             one("SequenceMask", "beyond", span=(2, 9)), one("SequenceMask", "whole_value", dtype="int32", value=2.7),
             one("SequenceReverse", "bad_time", (3, 4), axis=1)]
    return made


def rows() -> list[Row]:
    made = []
    data: Known
    for op in OPERATORS:
        for data in ((3, 4, 5), (0, 4), (3, 4), (3,)):
            made.append(row(op, {"data": data, "sequence_length": None}, {"use_sequence_length": True}))
        made += [row(op, {"data": (3, 4), "sequence_length": (3,)}, {"use_sequence_length": True}),
                 row(op, {"data": (3, 4)}), row(op, {"data": (3,)}),
                 row(op, {"data": (3, 4), "sequence_length": None}, {"use_sequence_length": True, "axis": 1})]
    return made
