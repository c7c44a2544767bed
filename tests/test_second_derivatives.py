"""The derivative of the gradient of every differentiable operator, by autograd, against differences of the gradient:
it is right, or refused by the name of the part that has none."""
from __future__ import annotations

from math import prod

import numpy as np
import pytest
from op_cases import Case, cases

from mxc import autograd, nd, operator
from mxc.base import MXNetError
from mxc.compiler.ops import table
from mxc.runtime import backward, invoke, random, tape
from mxc.runtime.array import Array

STEP = 1e-5
LARGEST = 80  # elements of an input, of the cases that run by default
# What of the gradients of these operators has no derivative.
REFUSED = {"RNN": "_mxc_rnn_layer_grad", "ROIPooling": "_mxc_roi_pooling",
           "BilinearSampler": "_mxc_bilinear_sampler_grad", "SpatialTransformer": "_mxc_bilinear_sampler_grad",
           "CTCLoss": "_mxc_ctc_loss_grad", "Correlation": "_mxc_correlation_grad",
           "_contrib_hawkesll": "_mxc_hawkesll_slopes",
           "_contrib_DeformablePSROIPooling": "_mxc_deformable_ps_roi_pooling_grad",
           "_contrib_DeformableConvolution": "_mxc_deformable_columns_grad",
           "_contrib_ModulatedDeformableConvolution": "_mxc_deformable_columns_grad"}
DISCRETE = ("_random_pdf_poisson", "_random_pdf_negative_binomial", "_random_pdf_generalized_negative_binomial")


def more(op: str, *shapes: tuple[int, ...], low: float = -1, **params: object) -> Case:
    return Case(table.get(op), table.get(op).make_params(params), shapes, low)


NORM = (2, 3, 2), (3,), (3,), (3,), (3,)
MORE = [
    more("BatchNorm", *NORM, low=0.5), more("BatchNorm", *NORM, low=0.5, use_global_stats=True, fix_gamma=False),
    more("BatchNorm", *NORM, low=0.5, output_mean_var=True, fix_gamma=False),
    more("_contrib_SyncBatchNorm", *NORM, low=0.5, fix_gamma=False, key="k"),
    more("SoftmaxOutput", (2, 3), (2,), low=0, out_grad=True),
    more("SoftmaxOutput", (2, 3, 2), (2, 2), low=0, multi_output=True, use_ignore=True, normalization="valid"),
    more("SoftmaxOutput", (2, 3), (2, 3), low=0, grad_scale=2, normalization="batch"),
    more("SVMOutput", (4, 3), (4,), low=0, use_linear=True),
    *(more("LeakyReLU", (2, 3, 2), act_type=kind) for kind in ("selu", "gelu", "elu", "rrelu")),
    more("LeakyReLU", (2, 3, 2), (3,), act_type="prelu"), more("Dropout", (3, 4), p=0.3, axes=(0,)),
    *(more("Pooling", (1, 2, 5), kernel=(3,), stride=(2,), pad=(1,), pool_type="lp", p_value=p, low=0.2)
      for p in (1, 2, 3)),
    more("Pooling", (1, 2, 5, 4), kernel=(3, 2), stride=(2, 1), pad=(1, 1), pooling_convention="full"),
    more("Pooling", (1, 4, 4), kernel=(2,), stride=(2,)), more("Pooling", (1, 2, 3, 2), global_pool=True),
    more("Pooling", (1, 2, 2, 2, 2), kernel=(2, 2, 2), pad=(1, 1, 1)),
    more("Pooling", (1, 2, 5), kernel=(3,), stride=(2,), pad=(1,), pool_type="avg", count_include_pad=False),
    more("Convolution", (1, 2, 4), (2, 1, 2), kernel=(2,), num_filter=2, num_group=2, no_bias=True),
    more("Deconvolution", (1, 2, 3), (2, 1, 3), kernel=(3,), stride=(2,), adj=(1,), num_filter=1),
    more("dot", (3, 2), (4, 3), transpose_a=True, transpose_b=True), more("norm", (2, 3), ord=1),
]


def differentiable() -> list:
    """The cases of every operator that a program can call and that has a gradient, the large ones marked slow."""
    found = list(MORE)
    for op in table.all_operators():
        if op.inputs and op.differentiable and not op.name.startswith("_mxc_"):
            found += cases(op)
    return [pytest.param(c, marks=[pytest.mark.slow] if max(map(prod, c.shapes)) > LARGEST else [], id=str(c))
            for c in found]


def gradients(case: Case, values: list[np.ndarray], heads: list[np.ndarray], is_train: bool,
              create: bool = False) -> tuple[list[Array], list[Array]]:
    """The inputs and head gradients as marked arrays, and the gradients with respect to the inputs."""
    arrays, flows = ([Array.of(v.copy()) for v in each] for each in (values, heads))
    inputs = arrays[:len(case.op.input_names(case.params))]
    for array in (*inputs, *flows):
        tape.mark(array, Array.of(np.zeros(array.shape)), "write")
    random.seed(1)
    with tape.mode(True, is_train):
        outs = invoke.invoke(case.op.name, arrays, dict(case.params))
        return [*inputs, *flows], backward.grad(outs, inputs, flows, True, create, is_train)


def second_derivatives(case: Case, values: list[np.ndarray], heads: list[np.ndarray], along: list[np.ndarray],
                       is_train: bool) -> list[np.ndarray]:
    """Of the sum of the gradients times `along`, with respect to inputs and heads."""
    leaves, found = gradients(case, values, heads, is_train, create=True)
    return [backward.grad(found, [leaf], [Array.of(v) for v in along], True, False, is_train)[0].numpy()
            for leaf in leaves]


def second_derivative_is_right(case: Case, is_train: bool) -> None:
    """In float64, along random directions of each input and each head gradient."""
    op, rng = case.op, np.random.default_rng(1)
    values, names = case.arrays(), case.op.input_names(case.params)
    outs = invoke.invoke(op.name, [Array.of(v.copy()) for v in values], dict(case.params), is_train=is_train)
    if any(o.dtype != "float64" for o in outs):
        pytest.skip("the output is not float64")
    heads = [rng.uniform(-1, 1, o.shape) for o in outs]
    along = [rng.uniform(-1, 1, v.shape) for v in values[:len(names)]]
    found = second_derivatives(case, values, heads, along, is_train)

    def total(position: int, moved: np.ndarray) -> float:
        given = [*values[:len(names)], *heads]
        given[position] = moved
        inputs = [*given[:len(names)], *values[len(names):]]
        _, there = gradients(case, inputs, given[len(names):], is_train)
        return sum(float((g.numpy() * v).sum()) for g, v in zip(there, along, strict=True))

    for i, (name, value) in enumerate(zip([*names, *["head"] * len(heads)], [*values[:len(names)], *heads],
                                          strict=True)):
        if name in ("rois", "s") or (name == "sample" and op.name in DISCRETE):
            assert not found[i].any(), name  # as in MXNet nothing flows into them
            continue
        for direction in rng.uniform(-1, 1, (2, *value.shape)):
            expected = (total(i, value + STEP * direction) - total(i, value - STEP * direction)) / (2 * STEP)
            np.testing.assert_allclose((found[i] * direction).sum(), expected, 2e-5, 1e-6, err_msg=name)


@pytest.mark.parametrize("case", differentiable())
def test_second_derivative(case: Case):
    if case.op.name in REFUSED:
        with pytest.raises(MXNetError, match=f"{REFUSED[case.op.name]} .*create_graph"):
            second_derivative_is_right(case, is_train=True)
    else:
        second_derivative_is_right(case, is_train=True)


@pytest.mark.parametrize("case", [c for c in MORE if c.op.name in ("BatchNorm", "Dropout", "LeakyReLU")], ids=str)
def test_second_derivative_in_inference_mode(case: Case):
    second_derivative_is_right(case, is_train=False)


def test_a_third_derivative_of_batch_norm():
    def gradient(values: np.ndarray, order: int) -> nd.NDArray:
        x = nd.NDArray(Array.of(values))
        x.attach_grad()
        with autograd.record():
            value = nd.sin(nd.BatchNorm(x, *(nd.ones(2, dtype="float64") for _ in range(4)), fix_gamma=False))
            for _ in range(order):
                value, = autograd.grad((value * weights).sum(), [x], create_graph=True)
        return value.asnumpy()

    rng = np.random.default_rng(0)
    values, direction = rng.uniform(-1, 1, (2, 4, 2))
    weights = nd.array(rng.uniform(-1, 1, (4, 2)), dtype="float64")
    wanted = sum(s * (gradient(values + s * STEP * direction, 2) * weights.asnumpy()).sum() for s in (1, -1))
    found = (gradient(values, 3) * direction).sum()
    np.testing.assert_allclose(found, wanted / (2 * STEP), rtol=1e-5)


class Cube(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x ** 3

    def backward(self, dy):
        return dy * 3 * self.saved_tensors[0] ** 2


def test_a_function_of_python_is_refused():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        gradient, = autograd.grad(Cube()(x) + x ** 2, [x], create_graph=True)
        total = (gradient * x).sum()
    np.testing.assert_array_equal(gradient.asnumpy(), [5, 16])
    with pytest.raises(MXNetError, match=r"_backward_Cube .*create_graph"):
        total.backward()


class CubeOp(operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] ** 3)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 3 * in_data[0] ** 2 * out_grad[0])


@operator.register("second_derivatives_cube")
class CubeProp(operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return CubeOp()


def test_a_custom_operator_is_refused():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="second_derivatives_cube") + x ** 2
        gradient, = autograd.grad(y, [x], create_graph=True)
        total = (gradient * x).sum()
    np.testing.assert_array_equal(gradient.asnumpy(), [5, 16])
    with pytest.raises(MXNetError, match=r"_backward_Custom .*create_graph"):
        total.backward()
