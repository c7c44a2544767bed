"""Blocks of graphs that exist: of files, or of outputs inside of another network."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mxc import symbol
from mxc.compiler.error import AssertedError
from mxc.context import Context
from mxc.gluon import nested
from mxc.gluon.hybrid_block import HybridBlock, _Cached
from mxc.gluon.parameter import Parameter
from mxc.gluon.parameter_dict import ParameterDict
from mxc.symbol import Symbol

__all__ = ["SymbolBlock"]


class SymbolBlock(HybridBlock):
    """A block that computes `outputs` of the variables `inputs`; the graph's other variables are its parameters.

    outputs: a symbol, or a list of them. inputs: a variable, or a list of them. params: parameters to share.
    Raises ArgumentError when an input is no variable.
    """

    def __init__(self, outputs: Any, inputs: Any, params: ParameterDict | None = None):
        super().__init__(prefix=None, params=params)
        self._prefix = self._name = ""
        self._params = ParameterDict("", params)
        given = [inputs] if isinstance(inputs, Symbol) and len(inputs) == 1 else list(inputs)
        flat, form = nested.flatten(given, "input")
        for each in flat:
            if len(each.entries) != 1 or not each.entries[0].node.is_variable:
                raise AssertedError(f"an input of a SymbolBlock is a variable, got {each!r}")
        made, out_form = nested.flatten(
            [outputs[0] if isinstance(outputs, (list, tuple)) and len(outputs) == 1 else outputs], "output")
        whole, names = symbol.Group(made), [each.name for each in flat]
        states = {*whole.list_auxiliary_states()}
        for node in whole.graph.variables:
            if node.name not in names:
                self._own(node, node.name in states)
        # As in MXNet's files of parameters: the names without what all of them begin with.
        common = len(os.path.commonprefix([*self._params]))  # noqa: RUF071 - characters are meant
        self._reg_params = {name[common:]: param for name, param in self._params.items()}
        self._graph = _Cached(names, whole, form, out_form)
        self._cached = self._graph
        self._active = True

    def _own(self, node: Any, is_state: bool) -> None:
        """Make the graph's variable a parameter of the block."""
        shape = node.attrs.get("__shape__")
        known: dict[str, Any] = {}
        if shape is not None:
            known["shape"] = tuple(int(e) for e in shape.strip("()[] ").split(",") if e.strip())
        if is_state:
            known["grad_req"] = "null"
        self._params.get(node.name, allow_deferred_init=True, **known)

    @staticmethod
    def imports(symbol_file: str | os.PathLike[str], input_names: str | Sequence[str],
                param_file: str | os.PathLike[str] | None = None, ctx: Context | Sequence[Context] | None = None,
                allow_missing: bool = False, ignore_extra: bool = False) -> SymbolBlock:
        """The block of a saved graph, as `export` and `save_checkpoint` write it, with the parameters of a file.

        input_names: the variables that are its inputs. Raises AssertionError for a file of other parameters.
        """
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        made = SymbolBlock(symbol.load(os.fspath(symbol_file)), [symbol.var(name) for name in names])
        if param_file is not None:
            made.collect_params().load(param_file, ctx, allow_missing, ignore_extra, cast_dtype=True,
                                       dtype_source="saved")
        return made

    def __repr__(self) -> str:
        found = self._graph.symbol
        lines = f"{found!r} : {len(self._graph.inputs)} input{'s'[:len(self._graph.inputs) > 1]}"
        return f"{type(self).__name__}(\n  {lines}\n)"

    def _clear_cached_op(self) -> None:
        if "_graph" in self.__dict__:
            old = self._graph
            self._cached = _Cached(old.inputs, old.symbol, old.form, old.out_form)

    def _own_parameters(self) -> list[Parameter]:
        return [*self._params.values()]

    def _symbolic(self, inputs: Sequence[Any], params: dict[str, Symbol]) -> Any:
        return self.forward(*inputs)

    def cast(self, dtype: Any) -> None:
        """Cast all parameters."""
        self._clear_cached_op()
        super().cast(dtype)

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move all parameters to other devices."""
        self.collect_params().reset_ctx(ctx)

    def forward(self, x: Any, *args: Any) -> Any:
        """The outputs for arrays, or for symbols."""
        flat, form = nested.flatten((x, *args), "input")
        if not isinstance(flat[0], Symbol):
            with flat[0].context as ctx:
                return self._call_cached((x, *args), flat, form, ctx)
        if form != self._graph.form:
            raise ValueError(f"SymbolBlock takes inputs of the structure {self._graph.form}, got {form}")
        composed = self._graph.symbol(**dict(zip(self._graph.inputs, flat, strict=True)))
        return nested.regroup([*composed], self._graph.out_form)[0]

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Raises NotImplementedError: its graph is there."""
        raise NotImplementedError
