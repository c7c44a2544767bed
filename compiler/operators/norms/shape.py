"""Shapes and dtypes of normalisations."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import NARROW, Dtypes, merge_dtypes, require_kind
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, merge_all, normal_axis, reduced_shape


def batch_norm(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; (channels,) for everything else, channels being the data's size along `axis`."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    axis = params.get("axis", 1)
    assert isinstance(axis, int)
    axis = normal_axis(axis, len(data))
    channels = merge_all([(data[axis],), *ins[1:], *outs[1:]])
    assert channels is not None
    data = (*data[:axis], *channels, *data[axis + 1:])
    return [data, *[channels] * (len(ins) - 1)], [data, *[channels] * (len(outs) - 1)]


def _vectors(length: int, ins: Shapes) -> Shape:
    """(length,), completed from what is known of gamma and beta."""
    known = merge_all([(length,), *ins[1:]])
    assert known is not None
    return known


def layer_norm(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; gamma and beta (length,) of `axis`; mean and std the data's shape with 1 along it."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    axis = params["axis"]
    assert isinstance(axis, int)
    axis = normal_axis(axis, len(data))
    vector = _vectors(data[axis], ins)
    data = (*data[:axis], *vector, *data[axis + 1:])
    kept = (*data[:axis], 1, *data[axis + 1:])
    return [data, vector, vector], [data, *(merge(kept, o) for o in outs[1:])]


def instance_norm(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape, of at least 3 axes; gamma and beta (channels,); mean and std (N, channels)."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    if len(data) < 3:
        raise MXNetError(f"expected data of at least 3 axes, got {data}")
    vector = _vectors(data[1], ins)
    data = (data[0], *vector, *data[2:])
    return [data, vector, vector], [data, *(merge(data[:2], o) for o in outs[1:])]


def group_norm(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape, of at least 3 axes, whose channels `num_groups` divides; gamma and beta (num_groups,); mean and
    std (N, num_groups)."""
    data, groups = merge(ins[0], outs[0]), params["num_groups"]
    assert isinstance(groups, int)
    vector = _vectors(groups, ins)
    if data is None:
        return [None, vector, vector], outs
    if len(data) < 3 or data[1] % groups:
        raise MXNetError(f"expected data of at least 3 axes with a multiple of {groups} (num_groups) channels, "
                         f"got {data}")
    return [data, vector, vector], [data, *(merge((data[0], groups), o) for o in outs[1:])]


def l2_normalization(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape, of at least 3 axes for the modes channel and spatial; the divisor has it without the axes that
    are summed over."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    if params["mode"] != "instance" and len(data) < 3:
        raise MXNetError(f"expected data of at least 3 axes for mode={params['mode']}, got {data}")
    norm = {"instance": data[:1], "channel": (data[0], *data[2:]), "spatial": data[:2]}[str(params["mode"])]
    return [data], [data, merge(norm, outs[1])]


def lrn(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape, of 4 axes or of the first two of them, for both outputs."""
    data = merge_all([*ins, *outs])
    if data is not None and len(data) not in (2, 4):
        raise MXNetError(f"expected data of 2 or 4 axes, got {data}")
    return [data], [data, data]


def moments(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Both outputs have the data's shape without `axes`, or with 1 there."""
    if not params["axes"]:
        raise MXNetError("expected axes, got none: for moments of everything name all axes")
    if ins[0] is None:
        return ins, outs
    shape = reduced_shape(Params({"axis": params["axes"]}), ins[0], bool(params["keepdims"]))
    known = merge_all([shape, *outs])
    return ins, [known, known]


def batch_norm_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Data and output agree; the statistics and parameters have that dtype too, or float32 where it is narrower."""
    data = merge_dtypes([ins[0], outs[0]])
    require_kind(data, "float", "data")
    other = "float32" if data in NARROW else data
    rest = merge_dtypes([other, *ins[1:], *outs[1:]])
    return [data, *[rest] * (len(ins) - 1)], [data, *[rest] * (len(outs) - 1)]
