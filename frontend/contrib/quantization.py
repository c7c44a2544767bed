"""Networks over numbers of 8 bits, made of trained networks in float32: `mx.contrib.quantization`.

`quantize_model` takes a symbol and its parameters, `quantize_net` a hybrid block. Ranges are stated beforehand, by the
results of examples (`calib_mode` naive or entropy), or found in each run (none). What the operators compute is said in
compiler/operators/quantization and quantized.
"""
from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from mxc import model, ndarray
from mxc.compiler.error import ArgumentError, MXNetError
from mxc.compiler.graph.graph import Graph
from mxc.context import Context, cpu
from mxc.contrib import fused_graph, quantized_graph
from mxc.contrib.calibration import (
    _get_optimal_threshold,
    _get_optimal_thresholds,
    _LayerHistogramCollector,
    _LayerOutputMinMaxCollector,
    collect,
    combine_histogram,
)
from mxc.io import DataBatch, DataDesc, DataIter
from mxc.ndarray import NDArray
from mxc.ndarray import load as nd_load
from mxc.ndarray import save as nd_save
from mxc.runtime.elsewhere import elsewhere
from mxc.symbol import Symbol
from mxc.symbol import load as sym_load

__getattr__, _names = elsewhere(__name__, {
    "": "ctypes np=numpy shutil", "mxc.module": "Module",
    "mxc.base": "NDArrayHandle SymbolHandle c_array c_str c_str_array check_call mx_uint py_str"}, {"mxc.base": "_LIB"})
__all__ = [*_names, "Context", "DataBatch", "DataDesc", "DataIter", "NDArray", "Symbol", "calib_graph",
           "combine_histogram", "cpu", "logging", "nd_load", "nd_save", "ndarray", "os", "quantize_graph",
           "quantize_model",
           "quantize_model_mkldnn", "quantize_net", "quantize_net_v2", "sym_load", "warnings"]
_THRESHOLDS = _get_optimal_threshold, _get_optimal_thresholds  # Programs import these names from this module.
Params = Mapping[str, NDArray]


def _check(quantized_dtype: str, quantize_mode: str, granularity: str, excluded_sym_names: Any, excluded_op_names: Any,
           ) -> tuple[list[str], list[str]]:
    """The names that are excluded. Raises ValueError, or MXNetError for an unknown mode."""
    for what, names in (("excluded_sym_names", excluded_sym_names), ("excluded_op_names", excluded_op_names)):
        if names is not None and not isinstance(names, list):
            raise ArgumentError(f"{what}: expected a list of strings, got {type(names)}")
    if quantized_dtype not in ("int8", "uint8", "auto"):
        raise ArgumentError(f"quantized_dtype: expected int8, uint8 or auto, got {quantized_dtype}")
    if granularity not in ("tensor-wise", "channel-wise"):
        raise ArgumentError(f"quantize_granularity: expected tensor-wise or channel-wise, got {granularity}")
    if quantize_mode not in ("full", "smart"):
        raise MXNetError(f"quantize_mode: expected full or smart, got {quantize_mode}")
    return list(excluded_sym_names or ()), list(excluded_op_names or ())


def _quantize_symbol(sym: Symbol, ctx: Context, excluded_symbols: Sequence[str] | None = None,
                     excluded_operators: Sequence[str] | None = None, offline_params: Sequence[str] | None = None,
                     quantized_dtype: str = "int8", quantize_mode: str = "smart",
                     quantize_granularity: str = "tensor-wise") -> tuple[Symbol, list[str]]:
    """The symbol over numbers of 8 bits, and the names of the results whose ranges it can be told."""
    made = quantized_graph.Quantization(excluded_symbols or (), excluded_operators or (), offline_params or (),
                                        quantized_dtype, quantize_mode == "smart",
                                        quantize_granularity == "channel-wise").graph(sym.graph)
    return Symbol(made.outputs), [name for _, name in quantized_graph.ranged(made)]


def _quantize_params(qsym: Symbol, params: Params, th_dict: Mapping[str, Any]) -> dict[str, NDArray]:
    """The parameters of a quantized symbol: those in 8 bits with their ranges, the others as they are."""
    found: dict[str, NDArray] = {}
    for name in qsym.list_arguments():
        original = name.removesuffix("_quantize")
        if original != name and original in params:
            values = params[original]
            made = ndarray.contrib.quantize(values, ndarray.min(values), ndarray.max(values), out_type="int8")
            found.update(zip((name, f"{name}_min", f"{name}_max"), made, strict=True))
        elif name in params:
            found[name] = params[name]
    return found


def _calibrate_quantized_sym(qsym: Symbol, th_dict: Mapping[str, Any]) -> Symbol:
    """The symbol with ranges by the results' names."""
    return Symbol(quantized_graph.calibrate(qsym.graph, {k: (float(a), float(b)) for k, (a, b) in th_dict.items()}
                                            ).outputs)


def _collector(calib_mode: str, quantized_dtype: str, layers: Sequence[str], given: Any, logger: Any) -> Any:
    if calib_mode == "entropy":
        return _LayerHistogramCollector(include_layer=layers, logger=logger)
    if calib_mode == "naive":
        return _LayerOutputMinMaxCollector(quantized_dtype, include_layer=layers, logger=logger)
    if calib_mode == "customize" and given is not None:
        given.include_layer = layers
        return given
    raise ArgumentError(f"calib_mode: expected none, naive, entropy or customize with a LayerOutputCollector, got "
                        f"{calib_mode}")


def _ranges(collector: Any, calib_mode: str, quantized_dtype: str, logger: Any) -> Mapping[str, tuple[float, float]]:
    if calib_mode == "entropy":
        return _get_optimal_thresholds(collector.hist_dict, quantized_dtype, logger=logger)
    if calib_mode == "customize" and hasattr(collector, "post_collect"):
        return collector.post_collect()
    return collector.min_max_dict


def _is_calibrated(calib_mode: str | None) -> bool:
    return calib_mode is not None and calib_mode != "none"


def _check_data(calib_mode: str | None, calib_data: Any, ctx: Any) -> None:
    if not isinstance(ctx, Context):
        raise ArgumentError(f"ctx: expected one device, got {ctx}")
    if calib_data is None:
        raise ArgumentError(f"calib_data must be provided when calib_mode={calib_mode}")
    if not isinstance(calib_data, DataIter):
        raise ArgumentError(f"calib_data: expected a DataIter when calib_mode={calib_mode}, got {type(calib_data)}")


# MXNet's signature
def quantize_model(sym: Symbol, arg_params: Params, aux_params: Params, data_names: Sequence[str] = ("data",),
                   label_names: Sequence[str] = ("softmax_label",), ctx: Context = cpu(),  # noqa: B008 (MXNet's)
                   excluded_sym_names: list[str] | None = None, excluded_op_names: list[str] | None = None,
                   calib_mode: str | None = "entropy", calib_data: DataIter | None = None,
                   num_calib_examples: int | None = None, quantized_dtype: str = "int8", quantize_mode: str = "smart",
                   quantize_granularity: str = "tensor-wise", logger: Any = None,
                   ) -> tuple[Symbol, dict[str, NDArray], Params]:
    """The symbol, arguments and auxiliary states of a network over numbers of 8 bits.

    excluded_sym_names, excluded_op_names: nodes and operators that stay in float32. calib_mode: naive (ranges from the
    least to the largest number of the examples), entropy (what the operator calibrate_entropy finds), none. calib_data:
    the examples, num_calib_examples: no more of them. quantized_dtype: of data, int8, uint8, or auto for uint8 where no
    number is below 0. quantize_mode: full, or smart: only products and convolutions, and what lies between them.
    quantize_granularity: tensor-wise, or channel-wise: a range for each row of a fused product's weight.

    Raises ValueError for other values, MXNetError for another mode.
    """
    _check(quantized_dtype, quantize_mode, quantize_granularity, excluded_sym_names, excluded_op_names)
    if _is_calibrated(calib_mode):
        _check_data(calib_mode, calib_data, ctx)
    qsym, params, aux, collector = quantize_graph(sym, arg_params, aux_params, ctx, excluded_sym_names,
                                                  excluded_op_names, calib_mode, quantized_dtype, quantize_mode,
                                                  quantize_granularity, logger=logger)
    if not _is_calibrated(calib_mode):
        return qsym, params, aux
    assert calib_data is not None
    collect(sym, arg_params, aux_params, ctx, calib_data, data_names, collector, num_calib_examples)
    return calib_graph(qsym, arg_params, aux_params, collector, calib_mode, quantized_dtype, logger)


# MXNet's signature
def quantize_model_mkldnn(sym: Symbol, arg_params: Params, aux_params: Params, data_names: Sequence[str] = ("data",),
                          label_names: Sequence[str] = ("softmax_label",), ctx: Context = cpu(),  # noqa: B008
                          excluded_sym_names: list[str] | None = None, excluded_op_names: list[str] | None = None,
                          calib_mode: str | None = "entropy", calib_data: DataIter | None = None,
                          num_calib_examples: int | None = None, quantized_dtype: str = "int8",
                          quantize_mode: str = "smart", quantize_granularity: str = "tensor-wise", logger: Any = None,
                          ) -> tuple[Symbol, dict[str, NDArray], Params]:
    """As quantize_model, with layers and what follows them in one operator each. Raises ValueError for a device that
    is no CPU."""
    if not isinstance(ctx, Context) or ctx.device_type != "cpu":
        raise ArgumentError(f"quantize_model_mkldnn: expected the device cpu, got {ctx}")
    fused = Symbol(fused_graph.fuse(sym.graph).outputs)
    qsym, params, aux = quantize_model(fused, arg_params, aux_params, data_names, label_names, ctx, excluded_sym_names,
                                       excluded_op_names, calib_mode, calib_data, num_calib_examples, quantized_dtype,
                                       quantize_mode, quantize_granularity, logger)
    return Symbol(fused_graph.absorb(qsym.graph).outputs), params, aux


# MXNet's signature
def quantize_graph(sym: Symbol, arg_params: Params, aux_params: Params, ctx: Context = cpu(),  # noqa: B008
                   excluded_sym_names: list[str] | None = None, excluded_op_names: list[str] | None = None,
                   calib_mode: str | None = "entropy", quantized_dtype: str = "int8", quantize_mode: str = "full",
                   quantize_granularity: str = "tensor-wise", LayerOutputCollector: Any = None, logger: Any = None,
                   ) -> tuple[Symbol, dict[str, NDArray], Params, Any]:
    """As quantize_model without examples: also gives the collector whose `collect(name, array)` is to be told the
    results of the layers `collector.include_layer` of `sym`; then `calib_graph`. calib_mode: also customize, with a
    LayerOutputCollector that has the ranges in `min_max_dict`."""
    names, operators = _check(quantized_dtype, quantize_mode, quantize_granularity, excluded_sym_names,
                              excluded_op_names)
    if not isinstance(ctx, Context):
        raise ArgumentError(f"ctx: expected one device, got {ctx}")
    qsym, layers = _quantize_symbol(sym, ctx, names, operators, list(arg_params), quantized_dtype, quantize_mode,
                                    quantize_granularity)
    collector = None
    if _is_calibrated(calib_mode):
        assert calib_mode is not None
        collector = _collector(calib_mode, quantized_dtype, layers, LayerOutputCollector, logger)
    return qsym, _quantize_params(qsym, arg_params, {}), aux_params, collector


def calib_graph(qsym: Symbol, arg_params: Params, aux_params: Params, collector: Any,
                calib_mode: str | None = "entropy", quantized_dtype: str = "int8", logger: Any = logging,
                ) -> tuple[Symbol, dict[str, NDArray], Params]:
    """A symbol of quantize_graph with the ranges that its collector has seen, and its parameters; arg_params are those
    in float32. Raises ValueError for a mode without ranges."""
    if not _is_calibrated(calib_mode):
        raise ArgumentError("calib_mode: expected naive or entropy, got " + str(calib_mode))
    assert calib_mode is not None
    ranges = _ranges(collector, calib_mode, quantized_dtype, None if logger is logging else logger)
    made = _calibrate_quantized_sym(qsym, ranges)
    return made, _quantize_params(made, arg_params, ranges), aux_params


class _DataIterWrapper(DataIter):
    """The batches of a gluon DataLoader, of which what is not the last array is data."""

    def __init__(self, calib_data: Any) -> None:
        self._data = calib_data
        first = self._arrays(next(iter(calib_data)))
        super().__init__(first[0].shape[0])
        self.provide_data = [DataDesc("data" if len(first) == 1 else f"data{i}", array.shape)
                             for i, array in enumerate(first)]
        self.provide_label: list[DataDesc] = []
        self.reset()

    @staticmethod
    def _arrays(batch: Any) -> list[NDArray]:
        parts = list(batch) if isinstance(batch, (list, tuple)) else [batch]
        return parts if len(parts) == 1 else parts[:-1]

    def reset(self) -> None:
        self._iter = iter(self._data)

    def next(self) -> DataBatch:
        return DataBatch(self._arrays(next(self._iter)), pad=0)


def _as_data_iter(calib_data: Any) -> tuple[DataIter, list[Any]]:
    """An iterator over a DataLoader's batches, and the shapes of their data. Raises TypeError for what is no such."""
    try:
        made = _DataIterWrapper(calib_data)
    except Exception as error:
        raise TypeError(f"calib_data: expected a DataIter or a DataLoader, got {type(calib_data)}: {error}") from None
    return made, made.provide_data


# MXNet's signature
def quantize_net_v2(network: Any, quantized_dtype: str = "auto", quantize_mode: str = "full",
                    quantize_granularity: str = "tensor-wise", exclude_layers: list[str] | None = None,
                    exclude_layers_match: list[str] | None = None, exclude_operators: list[str] | None = None,
                    calib_data: Any = None, data_shapes: Sequence[Any] | None = None, calib_mode: str | None = "none",
                    num_calib_examples: int | None = None, ctx: Context = cpu(),  # noqa: B008 (MXNet's)
                    LayerOutputCollector: Any = None, logger: Any = None) -> Any:
    """A SymbolBlock over numbers of 8 bits, of a hybrid block; on the CPU a layer and what follows it are one operator.

    exclude_layers: names of nodes, exclude_layers_match: parts of their names, exclude_operators: names of operators
    that stay in float32. calib_data: a DataIter or a DataLoader. data_shapes: (name, shape) pairs or DataDescs of the
    inputs, where there are no examples. Other arguments are as those of quantize_model, and so are the errors;
    ValueError where nothing tells the inputs' shapes.
    """
    from mxc.gluon import SymbolBlock

    if calib_data is not None:
        if isinstance(calib_data, DataIter):
            shapes: Sequence[Any] = calib_data.provide_data  # type: ignore[attr-defined]
        else:
            calib_data, shapes = _as_data_iter(calib_data)
        data_shapes = data_shapes or shapes
    if not data_shapes:
        raise ArgumentError("data_shapes required: (name, shape) of each input, or calib_data")
    pairs = [(each[0], tuple(each[1])) for each in data_shapes]
    network.hybridize()
    network(*[ndarray.zeros(shape) for _, shape in pairs])
    with tempfile.TemporaryDirectory() as folder:
        network.export(os.path.join(folder, "net"), epoch=0)
        sym, args, auxs = model.load_checkpoint(os.path.join(folder, "net"), 0)
    names = [pair[0] for pair in pairs]
    excluded = [*(exclude_layers or ()), *(node.name for node in sym.graph.nodes
                                           for part in exclude_layers_match or () if part in node.name)]
    fused = Symbol(fused_graph.fuse(sym.graph).outputs) if ctx.device_type == "cpu" else sym
    qsym, params, states, collector = quantize_graph(fused, args, auxs, ctx, excluded, list(exclude_operators or ()),
                                                   calib_mode, quantized_dtype, quantize_mode, quantize_granularity,
                                                   LayerOutputCollector, logger)
    if _is_calibrated(calib_mode):
        assert calib_mode is not None
        _check_data(calib_mode, calib_data, ctx)
        collect(fused, args, auxs, ctx, calib_data, names, collector, num_calib_examples)
        qsym, params, states = calib_graph(qsym, args, auxs, collector, calib_mode, quantized_dtype, logger)
    graph: Graph = fused_graph.absorb(qsym.graph) if ctx.device_type == "cpu" else qsym.graph
    made = SymbolBlock(Symbol(graph.outputs), [Symbol([e]) for e in _variables(graph, names)])
    made.collect_params().load_dict({**params, **states}, ctx, cast_dtype=True, dtype_source="saved")
    return made


def _variables(graph: Graph, names: Sequence[str]) -> list[Any]:
    from mxc.compiler.graph.graph import Entry

    found = {node.name: Entry(node) for node in graph.variables}
    return [found[name] for name in names]


# MXNet's signature
def quantize_net(network: Any, quantized_dtype: str = "auto", quantize_mode: str = "full",
                 exclude_layers: list[str] | None = None, exclude_layers_match: list[str] | None = None,
                 exclude_operators: list[str] | None = None, calib_data: Any = None,
                 data_shapes: Sequence[Any] | None = None, calib_mode: str | None = "none",
                 num_calib_examples: int | None = None, ctx: Context = cpu(), logger: Any = None) -> Any:  # noqa: B008
    """As quantize_net_v2, tensor-wise."""
    return quantize_net_v2(network, quantized_dtype, quantize_mode, "tensor-wise", exclude_layers,
                           exclude_layers_match, exclude_operators, calib_data, data_shapes, calib_mode,
                           num_calib_examples, ctx, None, logger)
