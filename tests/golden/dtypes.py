"""Golden cases of other modules in float64, of operators that these have in float32 alone."""
from __future__ import annotations

from dataclasses import replace

from golden.cases import Case, modules

DERIVED = ("dtypes", "unknown")  # modules that ask others' cases in another way
MOST = 4  # cases of an operator
OPERATORS = (
    "_identity_with_attr_like_rhs", "_contrib_div_sqrt_dim", "_contrib_quadratic", "_contrib_round_ste",
    "_contrib_sign_ste", "shape_array", "_contrib_index_array", "SwapAxis", "squeeze", "depth_to_space",
    "space_to_depth", "_split_v2", "_slice_assign", "_rnn_param_concat", "khatri_rao", "broadcast_to", "batch_dot",
    "broadcast_axis", "slice_axis", "amp_multicast", "im2col", "col2im", "Pooling_v1", "_image_random_lighting",
    "SpatialTransformer", "_contrib_MultiBoxPrior", "_contrib_MultiBoxDetection", "_contrib_MultiBoxTarget",
    "_contrib_Proposal", "_contrib_MultiProposal", "_contrib_quantize", "_contrib_quantize_asym",
    "_random_pdf_dirichlet")


def in_float64(case: Case) -> Case:
    inputs = tuple(replace(i, dtype="float64") if i.dtype == "float32" else i for i in case.inputs)
    return replace(case, name=f"{case.name}-float64", inputs=inputs)


def cases() -> list[Case]:
    others = [case for name, module in modules("cases").items() if name not in DERIVED
              for case in module.cases()]
    return [in_float64(case) for op in OPERATORS
            for case in [c for c in others if c.op == op and {i.dtype for i in c.inputs} == {"float32"}][:MOST]]
