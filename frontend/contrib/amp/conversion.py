"""Trained networks in mixed precision: symbols with their parameters, modules and blocks."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mxc.compiler.error import AssertedError
from mxc.compiler.ops.dtypes import MIXED
from mxc.compiler.passes.stated import attribute_dtype
from mxc.context import Context, gpu
from mxc.contrib.amp.casts import Casts, state_dtypes
from mxc.contrib.amp.choices import (
    Conditions,
    list_conditional_fp32_ops,
    list_fp32_ops,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_widest_type_cast,
    narrow_name,
)
from mxc.ndarray import NDArray
from mxc.symbol import Symbol

Names = Sequence[str] | None
Params = Mapping[str, NDArray]


def _strings(what: str, names: Any) -> None:
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise AssertedError(f"{what}: expected a list of strings, got {names!r}")


def _check_lists(dtype: str, narrow: Names, float32: Names, conditional: Conditions | None) -> None:
    """Raise AssertionError for an operator in two lists, or one that is in none of MXNet's."""
    _strings("target_dtype_ops", narrow)
    _strings("fp32_ops", float32)
    _check_conditions(conditional)
    lists = {"target_dtype_ops": set(list_lp16_ops(dtype) if narrow is None else narrow),
             "fp32_ops": set(list_fp32_ops(dtype) if float32 is None else float32),
             "conditional_fp32_ops": {op for op, _, _ in _conditions(dtype, conditional)}}
    names = list(lists)
    for i, first in enumerate(names):
        for second in names[i + 1:]:
            common = lists[first] & lists[second]
            if common:
                raise AssertedError(f"{', '.join(sorted(common))}: in both {first} and {second}; choose one for each")
    known = {*list_lp16_ops(dtype), *list_fp32_ops(dtype), *list_lp16_fp32_ops(dtype),
             *(op for op, *_ in list_conditional_fp32_ops(dtype))}
    unknown = sorted(set().union(*lists.values()) - known)
    if unknown:
        raise AssertedError(f"{', '.join(unknown)}: expected operators of amp.list_lp16_ops, list_fp32_ops, "
                            "list_lp16_fp32_ops or list_conditional_fp32_ops")


def _check_conditions(given: Any) -> None:
    """Raise AssertionError for what is no list of (operator, parameter, list of values)."""
    if given is None or (isinstance(given, list) and all(
            isinstance(each, (list, tuple)) and len(each) == 3 and isinstance(each[0], str) and
            isinstance(each[1], str) and isinstance(each[2], list) for each in given)):
        return
    raise AssertedError("conditional_fp32_ops: expected a list of (operator, parameter, list of values), got "
                        f"{given!r}")


def _conditions(dtype: str, given: Conditions | None) -> Conditions:
    return list_conditional_fp32_ops(dtype) if given is None else given


def convert_symbol(sym: Symbol, target_dtype: object = "float16", target_dtype_ops: Names = None,
                   fp32_ops: Names = None, conditional_fp32_ops: Conditions | None = None,
                   excluded_sym_names: Names = None, data_names: Names = None,
                   cast_optional_params: bool = False) -> Symbol:
    """The symbol in mixed precision, with outputs in float32.

    target_dtype: float16 or bfloat16. target_dtype_ops, fp32_ops, conditional_fp32_ops: the operators in it, in
    float32, and in float32 where a parameter has one of the values; default: amp's lists. excluded_sym_names: nodes
    that stay in float32. data_names: the variables that are no parameters; where they are given, the parameters'
    dtypes are stated. cast_optional_params: parameters may be of the narrow dtype themselves, instead of cast to it.

    Raises AssertionError for another dtype, for lists of other things, and for operators in two of them.
    """
    if not isinstance(sym, Symbol):
        raise AssertedError(f"sym: expected a Symbol, got {type(sym)}")
    dtype = narrow_name(target_dtype)
    _check_lists(dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops)
    _strings("excluded_sym_names", excluded_sym_names)
    _strings("data_names", data_names)
    conditions: dict[str, list[tuple[str, list[str]]]] = {}
    for op, parameter, values in _conditions(dtype, conditional_fp32_ops):
        conditions.setdefault(op, []).append((parameter, values))
    optional = {*sym.list_inputs()} - {*data_names} if cast_optional_params and data_names is not None else ()
    casts = Casts(dtype, {*(list_lp16_ops(dtype) if target_dtype_ops is None else target_dtype_ops)},
                  {*(list_fp32_ops(dtype) if fp32_ops is None else fp32_ops)}, {*list_widest_type_cast(dtype)},
                  conditions, {*(excluded_sym_names or ())}, optional)
    made = casts.graph(sym.graph)
    if data_names is not None:
        state_dtypes(made, data_names, casts)
    return Symbol(made.outputs)


# MXNet's signature
def convert_model(sym: Symbol, arg_params: Params, aux_params: Params, target_dtype: object = "float16",
                  target_dtype_ops: Names = None, fp32_ops: Names = None,
                  conditional_fp32_ops: Conditions | None = None, excluded_sym_names: Names = None,
                  cast_optional_params: bool = False) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """A symbol, its parameters and auxiliary states in mixed precision; see `convert_symbol`. Variables without a
    parameter are data. Raises AssertionError as it does, and for what are no dicts."""
    for what, params in (("arg_params", arg_params), ("aux_params", aux_params)):
        if not isinstance(params, Mapping):
            raise AssertedError(f"{what}: expected a dict of arrays by name, got {type(params)}")
    if not isinstance(sym, Symbol):
        raise AssertedError(f"sym: expected a Symbol, got {type(sym)}")
    data_names = [name for name in sym.list_inputs() if name not in arg_params and name not in aux_params]
    made = convert_symbol(sym, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names,
                          data_names, cast_optional_params)
    dtypes = {node.name: attribute_dtype(node) for node in made.graph.variables}
    args, states = ({name: _in_dtype(array, dtypes.get(name)) for name, array in params.items()}
                    for params in (arg_params, aux_params))
    return made, args, states


def _in_dtype(array: NDArray, dtype: str | None) -> NDArray:
    return array if dtype is None or array._array.dtype not in MIXED else array.astype(dtype, copy=False)


def convert_hybrid_block(block: Any, target_dtype: object = "float16", target_dtype_ops: Names = None,
                         fp32_ops: Names = None, conditional_fp32_ops: Conditions | None = None,
                         excluded_sym_names: Names = None, ctx: Context = gpu(0),  # noqa: B008  a constant
                         cast_optional_params: bool = False) -> Any:
    """A SymbolBlock that computes what a hybridized block does, in mixed precision; see `convert_symbol`.

    ctx: the device of its parameters. Raises AssertionError as `convert_symbol` does, and for another block, and
    RuntimeError before the block has run.
    """
    from mxc.gluon import HybridBlock, SymbolBlock

    if not isinstance(block, HybridBlock):
        raise AssertedError(f"block: expected a HybridBlock, got {type(block).__name__}")
    if not block._cached_graph:
        raise RuntimeError(f"{block.name} has no graph yet: call hybridize(), and run it once on arrays")
    inputs, symbol = block._cached_graph
    made = convert_symbol(symbol, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names,
                          [each.name for each in inputs], cast_optional_params)
    result, given = SymbolBlock(made, inputs), block.collect_params()
    dtypes = {node.name: attribute_dtype(node) for node in made.graph.variables}
    for name, param in result.collect_params().items():
        param._load_init(_in_dtype(given[name]._reduce(), dtypes[name]), ctx, cast_dtype=True, dtype_source="saved")
    return result


def convert_bucketing_module(bucketing_mod: Any, target_dtype: object = "float16", target_dtype_ops: Names = None,
                             fp32_ops: Names = None, conditional_fp32_ops: Conditions | None = None,
                             excluded_sym_names: Names = None, cast_optional_params: bool = False) -> Any:
    """A BucketingModule of the same symbols in mixed precision, with the parameters of one; see `convert_symbol`.
    Raises AssertionError as it does, and for another module or one without parameters."""
    from mxc.module import BucketingModule

    if not isinstance(bucketing_mod, BucketingModule):
        raise AssertedError(f"bucketing_mod: expected a BucketingModule, got {type(bucketing_mod)}")
    if not bucketing_mod.params_initialized:
        raise AssertedError("bucketing_mod has no parameters yet: call init_params() or load them")
    generate, options = bucketing_mod._sym_gen, bucketing_mod._options
    arg_params, aux_params = bucketing_mod.get_params()
    key = bucketing_mod._default_bucket_key

    def convert(symbol: Symbol) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
        return convert_model(symbol, arg_params, aux_params, target_dtype, target_dtype_ops, fp32_ops,
                             conditional_fp32_ops, excluded_sym_names, cast_optional_params)

    def converted(key: Any) -> Any:
        symbol, data_names, label_names = generate(key)
        return convert(symbol)[0], data_names, label_names

    _, args, states = convert(generate(key)[0])
    return BucketingModule.load_dict(None, converted, key, args, states, logger=bucketing_mod.logger, **options)
