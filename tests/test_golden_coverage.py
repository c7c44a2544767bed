"""Every operator has golden cases: in two dtypes, of each value of its enumerated parameters, with gradients, in both
modes where they differ, and with something that MXNet refuses. What has none says why, or where else MXNet
was asked."""
from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden.cases import Answer, load
from test_golden import computed

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Operator

TESTS = Path(__file__).parent
LEAST = 3000  # cases in all
OPERATORS = [op for op in table.all_operators() if not op.name.startswith("_mxc_")]
CASES: dict[str, list[Answer]] = defaultdict(list)
for _answer in load():
    CASES[table.get(_answer.case.op).name].append(_answer)

DISTRIBUTIONS = ("uniform", "normal", "exponential", "gamma", "poisson", "negative_binomial",
                 "generalized_negative_binomial")
# Operators that MXNet was asked about in programs, or that are tested without it: the file, the word in it, and why.
IN_PROGRAMS: dict[str, tuple[str, str]] = {
    **{op.name: ("golden/updates.json", op.name) for op in OPERATORS if op.in_place},
    **{f"{prefix}{word}": ("golden/sparse_arrays.json", word) for prefix, word in (
        ("_", "square_sum"), ("_sparse_", "retain"), ("_contrib_", "getnnz"), ("_contrib_", "edge_id"))},
    "_onehot_encode": ("golden/array_calls.json", "onehot_encode"), "_copyto": ("golden/array_calls.json", "copyto"),
    "fill_element_0index": ("golden/array_calls.json", "fill_element_0index"),
    "_scatter_set_nd": ("golden/array_calls.json", "_scatter_set_nd"),
    "_cvimresize": ("golden/image_calls.json", "resized"), "_cvcopyMakeBorder": ("golden/image_calls.json", "borders"),
    "_contrib_quantized_rnn": ("golden/contrib_calls.json", "quantized_rnn"),
    "_sg_mkldnn_conv": ("golden/quantized_networks.json", "_sg_mkldnn_conv"),
    "_sg_mkldnn_fully_connected": ("golden/quantized_networks.json", "_sg_mkldnn_fully_connected"),
}
DRAWN = "it draws random numbers, which are others than MXNet's"
ELSEWHERE = "MXNet's CPU has no kernel for it"
WITHOUT_MXNET: dict[str, tuple[str, str, str]] = {
    **{f"_{kind}_{name}{like}": ("test_random.py", name, DRAWN) for name in DISTRIBUTIONS
       for kind, like in (("random", ""), ("random", "_like"), ("sample", ""))},
    "_random_randint": ("test_random.py", "randint", DRAWN), "_shuffle": ("test_random.py", "shuffle", DRAWN),
    "_sample_multinomial": ("test_random.py", "multinomial", DRAWN),
    "_sample_unique_zipfian": ("test_random.py", "sample_unique_zipfian", DRAWN),
    **{f"_image_random_{name}": ("test_pictures.py", f"random_{name}", DRAWN)
       for name in ("flip_left_right", "flip_top_bottom", "color_jitter")},
    **{f"_contrib_{name}": ("test_fourier.py", name, ELSEWHERE) for name in ("fft", "ifft", "count_sketch")},
    "_zeros_without_dtype": ("test_batch_rows.py", "_zeros_without_dtype",
                             "MXNet makes such nodes when it differentiates; no program calls it with a dtype"),
}

FLOAT32 = "MXNet takes float32 alone"
ONE_DTYPE = dict.fromkeys((
    "Crop", "GridGenerator", "SoftmaxActivation", "InstanceNorm", "LRN", "_contrib_SyncBatchNorm",
    "_contrib_BatchNormWithReLU", "multi_lars", "IdentityAttachKLSparseReg", "_contrib_MultiBoxPrior",
    "_contrib_MultiBoxDetection", "_contrib_MultiBoxTarget", "_contrib_Proposal", "_contrib_MultiProposal",
    "_contrib_quantize", "_contrib_quantize_asym", "_contrib_calibrate_entropy",
    *(f"_contrib_interleaved_matmul_{kind}" for kind in ("selfatt_qk", "selfatt_valatt", "encdec_qk",
                                                         "encdec_valatt"))), FLOAT32)
ONE_DTYPE["_random_pdf_dirichlet"] = "MXNet ends its process by another"

# (operator, parameter): the values without a case, and why.
VALUES: dict[tuple[str, str], tuple[set[str], str]] = {
    ("all_finite", "init_output"): ({"False"}, "MXNet multiplies with what the output held"),
    ("multi_all_finite", "init_output"): ({"False"}, "MXNet multiplies with what the output held"),
    ("_contrib_ROIAlign", "aligned"): ({"True"}, "MXNet's process ends"),
    ("LeakyReLU", "act_type"): ({"rrelu"}, DRAWN),
    ("softmin", "use_length"): ({"True"}, "MXNet has no such input"),
    ("log_softmax", "use_length"): ({"True"}, "MXNet has no such input"),
    ("_contrib_quantized_pooling", "pooling_convention"): ({"same"}, "MXNet passes it over"),
    ("_contrib_quantized_pooling", "layout"): ({"NWC", "NHWC", "NDHWC"}, "MXNet refuses them, and they are taken here"),
}

# Operators that have a gradient here, and none in MXNet on a CPU.
NO_GRADIENT = ("_contrib_ModulatedDeformableConvolution", "_slice_assign")
NO_REFUSAL = {"_contrib_quantized_flatten": "it takes whatever comes"}


def elsewhere(op: Operator) -> bool:
    return op.name in IN_PROGRAMS or op.name in WITHOUT_MXNET


RECORDED = [op for op in OPERATORS if not elsewhere(op)]


def answered(op: Operator) -> list[Answer]:
    return [answer for answer in CASES[op.name] if answer.error is None]


def of_each(operators: list[Operator]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("op", operators, ids=lambda op: op.name)


def test_how_many_cases_there_are() -> None:
    count = sum(map(len, CASES.values()))
    print(f"{count} golden cases of {len(RECORDED)} operators, {sum(len(answered(op)) for op in RECORDED)} answered")
    assert count >= LEAST


@of_each(RECORDED)
def test_an_operator_has_cases(op: Operator) -> None:
    assert answered(op)


@pytest.mark.parametrize("name", [*IN_PROGRAMS, *WITHOUT_MXNET])
def test_others_are_where_it_is_said(name: str) -> None:
    file, word = (IN_PROGRAMS.get(name) or WITHOUT_MXNET[name])[:2]
    assert word in (TESTS / file).read_text()
    assert not answered(table.get(name)), "it has cases: it needs no line here"


@of_each(RECORDED)
def test_two_dtypes(op: Operator) -> None:
    seen = {item.dtype for answer in answered(op) for item in answer.case.inputs}
    if not op.listed_inputs:
        seen = {str(array.dtype) for answer in answered(op) for array in answer.outputs}
    assert (len(seen) < 2) == (op.name in ONE_DTYPE), seen


@of_each([op for op in RECORDED if any(kind.base in ("enum", "bool") for kind in op.params.values())])
def test_every_value_of_enumerated_parameters(op: Operator) -> None:
    """Whether MXNet takes it or refuses it."""
    for name, kind in op.params.items():
        if kind.base in ("enum", "bool"):
            wanted = {str(choice) for choice in kind.choices} if kind.base == "enum" else {"True", "False"}
            seen = {answer.case.attrs.get(name, kind.text(kind.default) if not kind.required else "")
                    for answer in CASES[op.name]}
            assert wanted - seen == VALUES.get((op.name, name), (set(), ""))[0], name


@of_each([op for op in RECORDED if op.differentiable and op.listed_inputs])
def test_gradients(op: Operator) -> None:
    assert any(answer.grads for answer in answered(op)) != (op.name in NO_GRADIENT)


@of_each(RECORDED)
def test_both_modes_where_they_differ(op: Operator) -> None:
    def outputs(answer: Answer, train: bool) -> list[np.ndarray] | None:
        try:
            return computed(replace(answer, case=replace(answer.case, train=train)))
        except MXNetError:
            return None

    for answer in answered(op)[:6]:
        training, inference = outputs(answer, True), outputs(answer, False)
        if training is not None and inference is not None and any(
                not np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
                for a, b in zip(training, inference, strict=True)):
            assert {one.case.train for one in answered(op)} == {True, False}


@of_each([op for op in RECORDED if op.params or len(op.listed_inputs) > 1])
def test_refusals(op: Operator) -> None:
    """What has a parameter, or two inputs whose shapes may not fit."""
    assert any(answer.error for answer in CASES[op.name]) != (op.name in NO_REFUSAL)
