"""Checkpoints of recurrent networks, whose weights are stored for each gate, so that other cells can read them."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from mxc import symbol
from mxc.rnn.rnn_cell import Arrays, BaseRNNCell, Inputs, States
from mxc.symbol import Symbol

Cells = BaseRNNCell | Sequence[BaseRNNCell]


def rnn_unroll(cell: BaseRNNCell, length: int, inputs: Inputs | None = None, begin_state: States | None = None,
               input_prefix: str = "", layout: str = "NTC") -> tuple[Any, States]:
    """The same as `cell.unroll`, which new programs should call. Without inputs, variables are made for them:
    INPUT_PREFIXt0_data and so on."""
    warnings.warn("rnn_unroll is deprecated; call the cell's unroll instead", stacklevel=2)
    if inputs is None:
        inputs = [symbol.Variable(f"{input_prefix}t{i}_data") for i in range(length)]
    return cell.unroll(length, inputs, begin_state=begin_state, layout=layout)


def _listed(cells: Cells) -> list[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else list(cells)


def save_rnn_checkpoint(cells: Cells, prefix: str, epoch: int, symbol: Symbol, arg_params: Arrays,
                        aux_params: Arrays) -> None:
    """`mx.model.save_checkpoint` with the weights of these cells unpacked (`unpack_weights`)."""
    from mxc.model import save_checkpoint

    for cell in _listed(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells: Cells, prefix: str, epoch: int) -> tuple[Symbol, Arrays, Arrays]:
    """What `save_rnn_checkpoint` wrote: the symbol, and parameters and auxiliary states, with the weights packed as
    these cells have them."""
    from mxc.model import load_checkpoint

    network, args, aux = load_checkpoint(prefix, epoch)
    for cell in _listed(cells):
        args = cell.pack_weights(args)
    return network, args, aux


def do_rnn_checkpoint(cells: Cells, prefix: str, period: int = 1) -> Callable[..., None]:
    """A callback for the end of an epoch, which saves a checkpoint each `period` epochs."""
    period = max(1, int(period))

    def save(epoch: int, network: Symbol, arg_params: Arrays, aux_params: Arrays) -> None:
        if (epoch + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, epoch + 1, network, arg_params, aux_params)

    return save
