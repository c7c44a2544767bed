"""Golden cases of recurrent layers."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Row, row

from mxc.compiler.operators.rnn.shape import pieces
from mxc.compiler.ops import table

Shape = tuple[int, ...]
MODES = ("rnn_relu", "rnn_tanh", "gru", "lstm")
STEPS, BATCH, INPUTS, SIZE = 3, 2, 4, 3


def cases() -> list[Case]:
    made = []
    for mode in MODES:
        for count in (1, 2):
            for both in (False, True):
                label = f"{mode}{count}{'both' if both else ''}"
                train = both == (count == 2)
                made.append(rnn(label, mode, count, train=train, bidirectional=both, state_outputs=True))
        made.append(rnn(f"{mode}_inference", mode, 2, train=False, bidirectional=True, state_outputs=True, p=0.5))
        made.append(rnn(f"{mode}_output_alone", mode, 1, p=0.3))
    for mode in ("lstm", "gru"):
        made.append(rnn(f"{mode}_double", mode, 2, "float64", bidirectional=True, state_outputs=True))
    for count in (1, 2):
        made.append(rnn(f"projection{count}", "lstm", count, train=False, projection_size=2, state_outputs=True))
    made.append(rnn("larger_projection", "lstm", 1, train=False, projection_size=5, state_outputs=True))
    return made + _refused()


def _refused() -> list[Case]:
    made = [rnn("int", "lstm", 1, "int32", train=False),
            rnn("p", "lstm", 1, p=1.5, train=False),
            rnn("mode", "LSTM", 1, train=False),
            rnn("no_layers", "gru", 1, train=False, num_layers=0),
            rnn("size", "gru", 1, train=False, state_size=0)]
    for label, shapes in (("vector", {"parameters": (7,)}), ("rows", {"state": (1, 1, SIZE)}),
                          ("flat", {"data": (STEPS, BATCH)}), ("layers", {"state": (2, BATCH, SIZE)})):
        made.append(rnn(f"bad_{label}", "gru", 1, train=False, shapes=shapes))
    return made


def rnn(label: str, mode: str, count: int, dtype: str = "float32", train: bool = True,
        shapes: dict[str, Shape] | None = None, **more: object) -> Case:
    """A case of `count` layers over a batch of small arrays."""
    attrs = {"mode": mode, "num_layers": count, "state_size": SIZE, **more}
    spelled = {"mode": mode.lower(), "num_layers": count, "state_size": SIZE, "projection_size": None}
    spelled |= {k: v for k, v in more.items() if k in ("bidirectional", "projection_size")}
    params = table.get("RNN").make_params(spelled)
    places = count * (2 if params.bidirectional else 1)
    outputs = params.projection_size or SIZE
    assert isinstance(outputs, int)
    inputs: dict[str, Shape] = {"data": (STEPS, BATCH, INPUTS), "parameters": (pieces(params, INPUTS)[-1].stop,),
                                "state": (places, BATCH, outputs)}
    if mode.lower() == "lstm":
        inputs["state_cell"] = (places, BATCH, SIZE)
    return case("RNN", label, {**inputs, **(shapes or {})}, attrs, dtype, train=train,
                integer=inputs if dtype == "int32" else ())


def rows() -> list[Row]:
    made = []

    def ask(mode: str = "lstm", out: Shape | None = None, data: Shape | None = None, parameters: Shape | None = None,
            state: Shape | None = None, state_cell: Shape | None = None, **more: object) -> None:
        inputs = {"data": data, "parameters": parameters, "state": state}
        if mode == "lstm":
            inputs["state_cell"] = state_cell
        if more.get("use_sequence_length"):
            inputs["sequence_length"] = None
        made.append(row("RNN", inputs, {"state_size": 3, "num_layers": 2, "mode": mode, **more}, out))

    for mode in MODES:
        for both in (False, True):
            ask(mode, data=(3, 2, 4), state_outputs=True, bidirectional=both)
    ask(data=(3, 2, 4))
    ask(data=(3, 0, 4), state_outputs=True)
    ask(data=(0, 2, 4))
    ask(data=(0, 0, 4), out=(5, 2, 3))
    ask(data=(3, 0, 4), state=(2, 2, 3), state_outputs=True)
    ask(data=(3, 2, 4), state=(2, 0, 3), state_cell=(0, 0, 0))
    ask(state=(2, 2, 3))
    ask()
    ask(data=(3, 2, 4), projection_size=2, state_outputs=True, bidirectional=True)
    ask(data=(3, 2, 4), use_sequence_length=True)
    ask(data=(3, 2, 4), state=(2, 1, 3))
    ask(data=(3, 2, 4), state=(1, 2, 3))
    ask(data=(3, 2, 4), state_cell=(2, 2, 4))
    ask(data=(3, 2, 4), parameters=(7,))
    ask(data=(3, 2))
    ask(data=(3, 2, 4), out=(3, 2, 4))
    return made
