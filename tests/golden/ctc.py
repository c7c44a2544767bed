"""Golden cases of CTC's loss."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Row, row

Shape = tuple[int, ...]
LENGTHS = {"use_data_lengths": True, "use_label_lengths": True}


def one(label: str, data: Shape = (6, 3, 5), most: int = 3, span: tuple[float, float] = (1, 5), batch: int = 0,
        lengths: tuple[str, ...] = (), kind: str = "float32", train: bool = True, **attrs: object) -> Case:
    """A case of labels within `span`, and of lengths by their inputs' names."""
    names = [f"{name}_lengths" for name in lengths]
    rows = batch or data[1]
    shapes: dict[str, Shape] = {"data": data, "label": (rows, most), **dict.fromkeys(names, (rows,))}
    spans = {"data": (-3, 3), "label": span, "data_lengths": (3, data[0] + 1), "label_lengths": (0, most + 1)}
    given = {f"use_{name}": True for name in names}
    return case("CTCLoss", label, shapes, {**given, **attrs}, dtypes={"label": kind},
                spans={name: spans[name] for name in shapes},
                integer=names if label == "rounded" else ["label", *names], no_grad=["label", *names], train=train)


def cases() -> list[Case]:
    return [one("first"), one("padded", (6, 5, 5), span=(0, 5)), one("one_class", (5, 2, 2), span=(1, 2)),
            one("last", span=(0, 4), blank_label="last"),
            one("last_padded", (6, 5, 5), span=(-1, 4), blank_label="last"),
            one("repeats", (9, 4, 3), 5, span=(1, 3)), one("too_short", (5, 4, 3), 5, span=(1, 3), train=False),
            one("long", (40, 2, 12), 15, span=(1, 12)),
            one("rounded", (7, 3, 5), span=(0.6, 4.4)), one("int_label", kind="int32"),
            one("data_lengths", lengths=("data",)), one("label_lengths", lengths=("label",)),
            one("lengths", (8, 5, 6), 4, (0, 5), lengths=("data", "label"), train=False,
                blank_label="last"),
            one("bad_batch", batch=2), one("bad_label", most=7),
            case("CTCLoss", "bad_rank", {"data": (6, 3), "label": (3, 2)}),
            case("CTCLoss", "bad_label_rank", {"data": (6, 3, 5), "label": (3,)})]


def rows() -> list[Row]:
    return [row("CTCLoss", {"data": (5, 2, 4), "label": (2, 3)}), row("CTCLoss", {"data": (5, 2, 4), "label": (2, 7)}),
            row("CTCLoss", {"data": (5, 2, 4), "label": (3, 3)}),
            row("CTCLoss", {"data": (5, 2, 4), "label": (2, 3), "data_lengths": (2,), "label_lengths": (2,)}, LENGTHS),
            row("CTCLoss", {"data": (5, 2, 4), "label": (2, 3), "data_lengths": (3,), "label_lengths": (2,)}, LENGTHS)]
