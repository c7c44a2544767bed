"""What ranges the results of layers have: collected while a network in float32 runs over examples."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mxc import ndarray
from mxc.base import py_str
from mxc.compiler.error import ArgumentError, MXNetError
from mxc.context import Context
from mxc.ndarray import NDArray
from mxc.symbol import Group, Symbol

Histogram = tuple[np.ndarray, np.ndarray, float, float, float]
QUANTIZED_BINS = 255  # of a distribution over int8; one of uint8 has twice as many and one more


def combine_histogram(old_hist: Histogram, arr: np.ndarray, new_min: float, new_max: float, new_th: float) -> Histogram:
    """A histogram (counts, edges, least, most, the largest absolute number) with more numbers. Where these are wider
    it gets bins of the same width on both sides."""
    counts, edges, least, most, reach = old_hist
    if new_th <= reach:
        more, _ = np.histogram(arr, bins=len(counts), range=(-reach, reach))
        return counts + more, edges, min(least, new_min), max(most, new_max), reach
    width = 2 * reach / len(counts)
    wider = int((new_th - reach) // width + 1)
    reach = wider * width + reach
    found, edges = np.histogram(arr, bins=2 * wider + len(counts), range=(-reach, reach))
    found[wider:len(found) - wider] += counts
    return found, edges, min(least, new_min), max(most, new_max), reach


class _Collector:
    """Collects numbers of layers' results. include_layer: the names that count; None: all."""

    include_layer: Collection[str] | None

    def collect(self, name: str | bytes, arr: NDArray) -> None:
        """Take in an array. Raises MXNetError, naming the result, where numbers are not finite: no range holds them."""
        name = name if isinstance(name, str) else py_str(name)
        if self.include_layer is not None and name not in self.include_layer:
            return
        values = arr.asnumpy()
        if not np.isfinite(values).all():
            raise MXNetError(f"calibration: {name} has numbers that are not finite; look for NaN and infinity in the "
                             "examples and in the parameters")
        self._take(name, values)

    def _take(self, name: str, values: np.ndarray) -> None:
        raise NotImplementedError


class _LayerHistogramCollector(_Collector):
    """Histograms of layers' results, `hist_dict` by the results' names.

    include_layer: the names that count; None: all. num_bins: of the first array of each; it grows with the range.
    """

    def __init__(self, num_bins: int = 8001, include_layer: Collection[str] | None = None, logger: Any = None) -> None:
        self.hist_dict: dict[str, Histogram] = {}
        self.num_bins, self.include_layer, self.logger = num_bins, include_layer, logger

    def _take(self, name: str, values: np.ndarray) -> None:
        least, most = values.min(), values.max()
        reach = max(abs(least), abs(most))
        if name in self.hist_dict:
            self.hist_dict[name] = combine_histogram(self.hist_dict[name], values, least, most, reach)
        else:
            counts, edges = np.histogram(values, bins=self.num_bins, range=(-reach, reach))
            self.hist_dict[name] = counts, edges, least, most, reach


class _LayerOutputMinMaxCollector(_Collector):
    """The least and the largest number of layers' results, `min_max_dict` by the results' names.

    include_layer: the names that count; None: all. quantized_dtype: what it is collected for.
    """

    def __init__(self, quantized_dtype: str, include_layer: Collection[str] | None = None, logger: Any = None) -> None:
        self.min_max_dict: dict[str, tuple[float, float]] = {}
        self.quantized_dtype, self.include_layer, self.logger = quantized_dtype, include_layer, logger

    def _take(self, name: str, values: np.ndarray) -> None:
        least, most = self.min_max_dict.get(name, (np.inf, -np.inf))
        self.min_max_dict[name] = float(min(least, values.min())), float(max(most, values.max()))


def _get_optimal_threshold(hist_data: Histogram, quantized_dtype: str, num_quantized_bins: int = QUANTIZED_BINS,
                           ) -> tuple[float, float, float, float]:
    """Of a histogram the least and the largest number, where it is best cut off for `quantized_dtype` (see the operator
    `calibrate_entropy`), and how much that changes it."""
    counts, edges, least, most, _ = hist_data
    if least >= 0 and quantized_dtype in ("auto", "uint8"):
        num_quantized_bins = num_quantized_bins * 2 + 1
    found = ndarray.contrib.calibrate_entropy(ndarray.array(counts), ndarray.array(edges),
                                              num_quantized_bins=num_quantized_bins)
    threshold, divergence = (float(array.asscalar()) for array in found)
    return least, most, threshold, divergence


def _get_optimal_thresholds(hist_dict: Mapping[str, Histogram], quantized_dtype: str,
                            num_quantized_bins: int = QUANTIZED_BINS, logger: Any = None,
                            ) -> dict[str, tuple[float, float]]:
    """The range of each histogram's numbers that is worth the bits: from 0 on for uint8 where none is below."""
    found = {}
    for name, hist in hist_dict.items():
        least, most, threshold, divergence = _get_optimal_threshold(hist, quantized_dtype, num_quantized_bins)
        positive = least >= 0 and quantized_dtype in ("auto", "uint8")
        found[name] = (0.0 if positive else -threshold, threshold)
        if logger:
            logger.info(f"layer={name}, min_val={least}, max_val={most}, th={threshold}, divergence={divergence}")
    return found


def collect(sym: Symbol, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray], ctx: Context,
            batches: Iterable[Any], data_names: Sequence[str], collector: Any, most: int | None = None) -> int:
    """Give a collector the results of the layers that it includes, for each batch; how many examples there were.

    most: no more batches than give so many examples. Raises ValueError where the batches have no data.
    """
    inside = sym.get_internals()
    included = collector.include_layer
    names = [name for name in inside.list_outputs() if included is None or name in included]
    told = [name for name in names if name in data_names]  # what is given needs not be computed
    made = [name for name in names if name not in sym.list_inputs()]
    executor, examples = None, 0
    for batch in batches:
        given = dict(zip(data_names, batch.data, strict=False))
        if executor is None and made:
            group = Group([inside[name] for name in made])
            used, aux = group.list_arguments(), group.list_auxiliary_states()
            shapes = {name: array.shape for name, array in given.items() if name in used}
            executor = group.simple_bind(ctx, grad_req="null", **shapes)
            executor.copy_params_from({k: v for k, v in arg_params.items() if k in used},
                                      {k: v for k, v in aux_params.items() if k in aux})
        for name in told:
            collector.collect(name, given[name])
        if executor is not None:
            outputs = executor.forward(is_train=False, **{k: v for k, v in given.items() if k in executor.arg_dict})
            for name, array in zip(made, outputs, strict=True):
                collector.collect(name, array)
        examples += batch.data[0].shape[0] - (batch.pad or 0)
        if most is not None and examples >= most:
            break
    if not examples:
        raise ArgumentError("calib_data has no examples")
    return examples
