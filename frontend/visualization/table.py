"""A network's layers as a table, for people and as plain data."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.compiler.graph.summary import Layer, layers

Shape = tuple[int, ...]
COLUMNS = ("layer", "operator", "output", "parameters", "FLOPs", "previous layers")
NUMBERS = (3, 4)  # positions of the columns that hold numbers, which are aligned to the right
UNKNOWN = "?"
MOST = 3  # previous layers that a row of the table names at most


def shape_text(shape: Sequence[int] | None) -> str:
    """`1x64x56x56`; `1` for a scalar, `?` where it is not known."""
    return UNKNOWN if shape is None else "x".join(map(str, shape)) or "1"


def outputs_text(outputs: Sequence[Shape | None]) -> str:
    """The first output's shape, and how many more there are."""
    more = f" and {len(outputs) - 1} more" if len(outputs) > 1 else ""
    return shape_text(outputs[0] if outputs else None) + more


def totals(found: Sequence[Layer]) -> dict[str, int]:
    """Operators, learned parameters, elements of auxiliary states, FLOPs of a forward run; of what is known."""
    return {"layers": sum(layer.op != "null" for layer in found),
            "parameters": sum(layer.parameters or 0 for layer in found),
            "auxiliary_states": sum(layer.states or 0 for layer in found),
            "flops": sum(layer.flops or 0 for layer in found)}


def as_data(found: Sequence[Layer]) -> dict[str, Any]:
    """The layers and the totals for JSON; what is not known is null."""
    rows = [{"name": layer.name, "operator": layer.op, "outputs": [s and list(s) for s in layer.outputs],
             "parameters": layer.parameters, "auxiliary_states": layer.states, "flops": layer.flops,
             "previous": list(layer.previous)} for layer in found]
    return {"layers": rows, "totals": totals(found)}


def rows_of(found: Sequence[Layer]) -> list[tuple[str, ...]]:
    """A row of COLUMNS for each layer."""
    return [(layer.name, "(input)" if layer.op == "null" else layer.op, outputs_text(layer.outputs),
             _number(layer.parameters), _number(layer.flops), _listed(layer.previous)) for layer in found]


def totals_text(found: Sequence[Layer]) -> list[str]:
    """A line for each of the totals."""
    names = {"layers": "layers", "parameters": "parameters", "auxiliary_states": "auxiliary states", "flops": "FLOPs"}
    return [f"{names[key]}: {value:,}" for key, value in totals(found).items()]


def table_text(found: Sequence[Layer]) -> str:
    """A line for each layer, columns aligned, and the totals below."""
    rows = [COLUMNS, *rows_of(found)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = ["  ".join(text.rjust(w) if i in NUMBERS else text.ljust(w)
                       for i, (text, w) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
    lines.insert(1, "-" * min(max(map(len, lines)), 120))
    lines += ["", *totals_text(found)]
    return "\n".join(lines) + "\n"


def _listed(names: Sequence[str]) -> str:
    """The names, a few of them when they are many."""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def print_summary(symbol: Any, shape: dict[str, Shape] | None = None, line_length: int = 120,
                  positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0)) -> None:
    """Print a symbol's layers: name and operator, output shape without the batch, parameters, and what comes before.

    shape: of the inputs, by name; without it only what variables' `__shape__` attributes tell is known, the rest is
    `?`. line_length: characters of a line. positions: where the four columns end, as parts of the line or, where the
    last is above 1, as characters; longer texts are cut.

    Raises TypeError when `symbol` is no Symbol, ValueError when `shape` leaves an output's shape open, MXNetError for
    shapes that do not fit.

    >>> mx.viz.print_summary(net, shape={"data": (1, 3, 224, 224)})
    """
    from mxc.compiler.passes.infer_shape import infer_shape

    graph = symbol_graph(symbol)
    found = infer_shape(graph, shape or {}, partial=True)
    if shape is not None and any(s is None or 0 in s for entries in found for s in entries):
        raise ArgumentError("Input shape is incomplete: give the shape of every input")
    ends = [int(line_length * p) if positions[-1] <= 1 else int(p) for p in positions]
    first = graph.nodes[0].name
    print("_" * line_length)
    _print_row(("Layer (type)", "Output Shape", "Param #", "Previous Layer"), ends)
    print("=" * line_length)
    labels = {node.name for node in graph.variables if node.name.endswith("label")}
    rows = layers(graph, found, None if shape is None else {first, *shape, *labels})
    shown = [layer for layer in rows if layer.op != "null" or layer.name == first]
    hidden = {layer.name for layer in rows if layer not in shown}
    for number, layer in enumerate(shown):
        previous = [name for name in layer.previous if name not in hidden] or [""]
        batch = [s and s[1:] for s in layer.outputs]
        output = "" if batch[0] == () else outputs_text(batch)
        _print_row((f"{layer.name}({layer.op})", output, UNKNOWN if layer.parameters is None else
                    str(layer.parameters), previous[0]), ends)
        for name in previous[1:]:
            _print_row(("", "", "", name), ends)
        print(("=" if number == len(shown) - 1 else "_") * line_length)
    open_ones = sum(layer.parameters is None for layer in shown)
    more = f", and those of {open_ones} layers whose shapes are not known" if open_ones else ""
    print(f"Total params: {totals(rows)['parameters']}{more}")
    print("_" * line_length)


def _print_row(fields: Sequence[str], ends: Sequence[int]) -> None:
    """Print the fields, each cut or filled up to where its column ends."""
    line = ""
    for field, end in zip(fields, ends, strict=True):
        line = (line + field)[:end].ljust(end)
    print(line)


def symbol_graph(symbol: Any) -> Any:
    """The graph of a Symbol. Raises TypeError for anything else."""
    from mxc.symbol import Symbol

    if not isinstance(symbol, Symbol):
        raise ArgumentTypeError(f"symbol must be Symbol, got {type(symbol)}")
    return symbol.graph
