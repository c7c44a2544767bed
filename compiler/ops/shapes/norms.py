"""Shape rules of normalisations by a sample's own statistics, and of the losses besides softmax."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.extent import counts
from mxc.compiler.ops.shapes.basic import Shape, Shapes, merge, merge_all, normal_axis, reduced_shape
from mxc.compiler.ops.shapes.pooling import pooled
from mxc.compiler.ops.table import Params


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


def svm_output(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; the label has it without the last axis, the classes."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    if len(data) < 2:
        raise MXNetError(f"expected data of at least 2 axes, got {data}")
    return [data, merge(data[:-1], ins[1])], [data]


def softmax_cross_entropy(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(1,) of data (rows, classes) and a label (rows,)."""
    data, label = (merge((0,) * rank, shape) for rank, shape in zip((2, 1), ins, strict=True))
    assert data is not None
    label = merge(data[:1], label)
    assert label is not None
    return [(*label, data[1]), label], [merge((1,), outs[0])]


def moments(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Both outputs have the data's shape without `axes`, or with 1 there."""
    if not params["axes"]:
        raise MXNetError("expected axes, got none: for moments of everything name all axes")
    if ins[0] is None:
        return ins, outs
    shape = reduced_shape(Params({"axis": params["axes"]}), ins[0], bool(params["keepdims"]))
    known = merge_all([shape, *outs])
    return ins, [known, known]


def argmax_channel(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape without axis 1."""
    data = ins[0]
    if data is None:
        return ins, outs
    if len(data) < 2:
        raise MXNetError(f"expected data of at least 2 axes, got {data}")
    out = merge((data[0], *data[2:]), outs[0])
    assert out is not None
    return [(out[0], data[1], *out[1:])], [out]


def eye(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, M), or (N, N) where M is not above 0."""
    rows, columns = params["N"], params["M"]
    assert isinstance(rows, int) and isinstance(columns, int)
    return ins, [merge(counts(rows, columns if columns > 0 else rows), outs[0])]


def linspace(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(num,)."""
    number = params["num"]
    assert isinstance(number, int)
    return ins, [merge(counts(number), outs[0])]


def pooling_v1(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As Pooling, of data with 4 axes."""
    data = ins[0]
    if data is None:
        return ins, outs
    if len(data) != 4:
        raise MXNetError(f"expected data of 4 axes, got {data}")
    return ins, [merge(pooled(params, data), outs[0])]
