"""What MXNet 1.9.1 makes of arrays in optimizers' updates, in updates.json: `updates.py`, run by MXNet's Python."""
import json
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_suffix(".json")
# operator: its arrays besides weight and gradient
STATES = {"sgd_update": "", "sgd_mom_update": "mom", "mp_sgd_update": "weight32", "mp_sgd_mom_update": "mom weight32",
          "nag_mom_update": "mom", "mp_nag_mom_update": "mom weight32", "adam_update": "mean var",
          "rmsprop_update": "n", "rmspropalex_update": "n g delta", "ftrl_update": "z n", "ftml_update": "d v z",
          "signsgd_update": "", "signum_update": "mom", "lamb_update_phase1": "mean var",
          "mp_lamb_update_phase1": "mean var weight32", "lamb_update_phase2": "r1 r2",
          "mp_lamb_update_phase2": "r1 r2 weight32", "_adamw_update": "mean var factor",
          "_mp_adamw_update": "mean var weight32 factor", "_sparse_adagrad_update": "history",
          "_contrib_group_adagrad_update": "history"}
SOME = {"rescale_grad": 0.5, "clip_gradient": 0.3, "wd": 0.1}
PARAMETERS = {
    "sgd_update": [{"lr": 0.1}, {"lr": 0.1, **SOME}, {"lr": 0.1, "clip_gradient": 0},
                   {"lr": 0.2, "lazy_update": False}],
    "ftml_update": [{"lr": 0.1, "t": t, "clip_grad": 0.3, "wd": 0.1} for t in (1, 7)],
    "lamb_update_phase1": [{"t": 1, "wd": 0.1}, {"t": 5, "beta1": 0.8, "beta2": 0.9, "epsilon": 0.01, **SOME},
                           {"t": 5, "wd": 0, "bias_correction": False}],
    "lamb_update_phase2": [{"lr": 0.1}, {"lr": 0.1, "lower_bound": 2}, {"lr": 0.1, "upper_bound": 0.1}],
    "signum_update": [{"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9, "wd_lh": 0.2, **SOME}],
    "rmsprop_update": [{"lr": 0.1}, {"lr": 0.1, "gamma1": 0.5, "epsilon": 0.01, "clip_weights": 0.4, **SOME}],
    "rmspropalex_update": [{"lr": 0.1}, {"lr": 0.1, "gamma1": 0.5, "gamma2": 0.3, "clip_weights": 0.4, **SOME}],
    "nag_mom_update": [{"lr": 0.1}, {"lr": 0.1, **SOME}, {"lr": 1, "wd": 0.5}],
    "ftrl_update": [{"lr": 0.1}, {"lr": 0.1, "lamda1": 0.2, "beta": 2, **SOME}],
    "_adamw_update": [{"lr": 0.1, "eta": 0.7},
                      {"lr": 0.1, "eta": 1, "beta1": 0.5, "beta2": 0.7, "epsilon": 0.01, "wd": 0.1,
                       "clip_gradient": 0.3}],
    "_sparse_adagrad_update": [{"lr": 0.1}, {"lr": 0.1, "epsilon": 0.5, "rescale_grad": 0.5, "clip_gradient": 0.3}],
    "_contrib_group_adagrad_update": [{"lr": 0.1}, {"lr": 0.1, "epsilon": 0.5, "rescale_grad": 0.5,
                                                    "clip_gradient": 0.3}],
    "adam_update": [{"lr": 0.1}, {"lr": 0.1, "beta1": 0.5, "beta2": 0.7, "epsilon": 0.01, **SOME}],
}
MANY = ("multi_sgd_update", "multi_sgd_mom_update", "multi_mp_sgd_update", "multi_mp_sgd_mom_update",
        "preloaded_multi_sgd_update", "preloaded_multi_sgd_mom_update", "preloaded_multi_mp_sgd_update",
        "preloaded_multi_mp_sgd_mom_update", "_multi_adamw_update", "_multi_mp_adamw_update", "_multi_lamb_update",
        "_multi_mp_lamb_update")
LAMB = {"learning_rates": [0.1, 0.2], "wds": [0, 0.1], "num_tensors": 2}
ONES = ("r1", "r2", "factor")  # arrays of one element


def questions():
    """[operator, parameters, dtype] of every question; dtype: of weight and gradient."""
    found = []
    for name in STATES:
        plain = name.replace("mp_", "")
        given = PARAMETERS.get(plain, [{"lr": 0.1}, {"lr": 0.1, **SOME}])
        if "mom" in plain and plain != "signum_update":
            given = [{**g, "momentum": 0.9} for g in given]
        for parameters in given:
            for dtype in ("float16",) if "mp_" in name else ("float32", "float64", "float16"):
                found.append([name, parameters, dtype])
    for name in MANY:
        if "lamb" in name:
            dtype = "float16" if "mp" in name else "float32"
            found += [[name, {**LAMB, "step_count": [1, 5]}, dtype],
                      [name, {**LAMB, "step_count": [3, 3], "beta1": 0.8, "beta2": 0.9, "epsilon": 0.01,
                              "lower_bound": 1.5, "rescale_grad": 0.5, "clip_gradient": 0.3}, dtype],
                      [name, {**LAMB, "step_count": [2, 3], "upper_bound": 0.1, "bias_correction": False}, dtype]]
            continue
        rates = {} if name.startswith("preloaded") else {"lrs": [0.1, 0.2], "wds": [0, 0.1]}
        if "adamw" in name:
            rates["etas"] = [0.5, 1]
        momentum = {"momentum": 0.9} if "mom" in name else {}
        found.append([name, {**rates, **momentum, "num_weights": 2, "clip_gradient": 0.3},
                      "float16" if "mp" in name else "float32"])
    found += [["reset_arrays", {"num_arrays": 2}, dtype] for dtype in ("float16", "float32", "float64")]
    return found


def arrays(mx, name, dtype, size=8, seed=1):
    """The arrays of an update: states of float32 beside a mixed one's weight, the same numbers for everybody."""
    rng = np.random.RandomState(seed)
    mixed, shape = "mp_" in name, (2, size // 2)
    made = []
    for key in ("weight", "g" if "phase2" in name else "grad", *STATES[name].split()):
        low = 0.5 if key in ("var", "v", "n", "history", *ONES) else -1
        values = rng.uniform(low, 1, (1,) if key in ONES else (2, 1) if "group" in name and key == "history" else shape)
        if key == "g" and "alex" in name:
            values *= 0.1
        if key in ("weight", "grad"):
            values.flat[:2] = 0
        kind = "float32" if key == "factor" or (mixed and key not in ("weight", "grad")) else dtype
        made.append(mx.nd.array(values.astype("float16") if dtype == "float16" else values, dtype=kind))
        if key == "weight32":
            made[-1][:] = made[0].astype("float32")
    return made


def function(mx, name):
    """The operator's function."""
    for space in ("sparse", "contrib"):
        if name.startswith(f"_{space}_"):
            return getattr(getattr(mx.nd, space), name[len(space) + 2:])
    return getattr(mx.nd._internal if name.startswith("_") else mx.nd, name)


def apply(mx, name, parameters, dtype, size=8):
    """The arrays after the update of the weights, which `out` names, as lists; lamb's direction as a new array."""
    if name == "reset_arrays":
        given = [mx.nd.ones((2, size), dtype=dtype), mx.nd.ones((3,), dtype="float32")]
        assert function(mx, name)(*given, **parameters) == []
        return given
    if name in MANY:
        one = name.replace("preloaded_", "").replace("multi_", "")
        one = f"{one.lstrip('_')}_phase1" if "lamb" in one else one
        groups = [arrays(mx, one, dtype, size, s) for s in (1, 2)]
        behind = [group.pop() for group in groups][:1] if "adamw" in name else []
        given = [a for group in groups for a in group] + behind
        rates = [mx.nd.array([0.1, 0.2]), mx.nd.array([0, 0.1])] if name.startswith("preloaded") else []
        function(mx, name)(*given, *rates, out=[g[0] for g in groups], **parameters)
        return given
    given = arrays(mx, name, dtype, size)
    if "adagrad" in name and hasattr(mx.nd.sparse, "RowSparseNDArray"):  # MXNet has it of sparse gradients alone
        function(mx, name)(given[0], given[1].tostype("row_sparse"), given[2], out=given[0], **parameters)
        return given
    if "phase1" in name:
        return [*given, function(mx, name)(*given, **parameters)]
    function(mx, name)(*given, out=given[0], **parameters)
    return given


def answer(mx, question):
    return [[str(np.dtype(a.dtype)), [float(x) for x in a.asnumpy().ravel()]] for a in apply(mx, *json.loads(question))]


if __name__ == "__main__":
    import answers

    answers.run(__file__, PATH, [json.dumps(q) for q in questions()], answer)
