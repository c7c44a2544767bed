"""Initializers, which give parameters their first values: `mx.init`. Programs make them by name, as
`mx.init.create("xavier")`, and variables carry them as JSON text (`init=` of `mx.sym.Variable`)."""
from __future__ import annotations

import json
import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mxc import random, registry
from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.ndarray import NDArray, load
from mxc.runtime.elsewhere import elsewhere
from mxc.util import is_np_array

__getattr__, _names = elsewhere(__name__, {
    "": "ndarray=mxc.ndarray", "math": "sqrt", "mxc.base": "string_types"})
__all__ = ["Bilinear", "Constant", "FusedRNN", "InitDesc", "Initializer", "LSTMBias", "Load", "MSRAPrelu", "Mixed",
           "NDArray", "Normal", "One", "Orthogonal", "Uniform", "Xavier", "Zero", "alias", "create", "is_np_array",
           "json", "load", "logging", "np", "random", "re", "register", "registry", "warnings", *_names]

# How names end, and the method that then gives the values.
_ENDINGS = {"weight": "_init_weight", "bias": "_init_bias", "gamma": "_init_gamma", "beta": "_init_beta",
            "min": "_init_zero", "max": "_init_one"}
_QUANTIZED = {"weight_quantize": "_init_quantized_weight", "bias_quantize": "_init_quantized_bias"}
_STATES = {"moving_mean": "_init_zero", "moving_var": "_init_one", "moving_inv_var": "_init_zero",
           "moving_avg": "_init_zero"}  # auxiliary ones, by their name alone


class InitDesc(str):
    """A parameter's name with what initializers look at: its variable's attributes, and the initializer of all
    parameters, for one that does a part of them."""

    attrs: Mapping[str, str]
    global_init: Any

    def __new__(cls, name, attrs=None, global_init=None):
        made = super().__new__(cls, name)
        made.attrs, made.global_init = attrs or {}, global_init
        return made


class Initializer:
    """What gives a parameter its first values, as its name says: `init(desc, array)`.

    Names that end in weight go to `_init_weight`, which derived classes have; biases, betas and names that end in min
    become 0, gammas and those that end in max 1. The attribute `__init__` of a variable, JSON text or a name, goes
    before all of this. kwargs: the arguments of a derived class's constructor, for `dumps`.
    """

    def __init__(self, **kwargs: Any):
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[NDArray], str] | None = None

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[NDArray], str] | None = None) -> Initializer:
        """Log each parameter that is initialized, with what `print_func` says of it: by default the root of the mean
        square. Returns the initializer."""
        self._verbose = verbose
        self._print_func = print_func or _size
        return self

    def _verbose_print(self, desc: str, init: str, arr: NDArray) -> None:
        if self._verbose and self._print_func:
            logging.info("Initialized %s as %s: %s", desc, init, self._print_func(arr))

    def dumps(self) -> str:
        """JSON text of which `create` makes such an initializer: ["name", {arguments}]."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._kwargs == other._kwargs  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, desc: InitDesc | str, arr: NDArray) -> None:
        """Give an array its first values.

        desc: the parameter's name, with attributes; a plain name is deprecated. Raises ArgumentError for a name that
        says nothing, unless a derived class has `_init_default`; ArgumentTypeError for what is no name.
        """
        if not isinstance(desc, InitDesc):
            self._legacy_init(desc, arr)
            return
        if desc.global_init is None:
            desc.global_init = self
        wanted = desc.attrs.get("__init__", "")
        if wanted:
            create(wanted)._init_weight(desc, arr)
            self._verbose_print(desc, wanted, arr)
            return
        for endings in (_ENDINGS, _QUANTIZED):
            for ending, method in endings.items():
                if desc.endswith(ending):
                    getattr(self, method)(desc, arr)
                    self._verbose_print(desc, ending, arr)
                    return
        self._init_default(desc, arr)

    def _legacy_init(self, name: str, arr: NDArray) -> None:
        """Give an array its first values by its plain name, which is deprecated. Some beginnings of names, such as
        upsampling, count here as well."""
        warnings.warn("init(name, array) is deprecated: give mx.init.InitDesc(name) in place of the name",
                      DeprecationWarning, stacklevel=3)
        if not isinstance(name, str):
            raise ArgumentTypeError(f"an initializer takes an InitDesc or a name, got {name!r}")
        if name.startswith("upsampling"):
            self._init_bilinear(name, arr)
        elif name.startswith("stn_loc") and name.endswith("weight"):
            self._init_zero(name, arr)
        elif name.startswith("stn_loc") and name.endswith("bias"):
            self._init_loc_bias(name, arr)
        else:
            method = next((m for ending, m in (_ENDINGS | _STATES).items() if name.endswith(ending)), "_init_default")
            getattr(self, method)(name, arr)

    # -- what derived classes may have others of

    def _init_bilinear(self, _: str, arr: NDArray) -> None:
        arr[:] = _bilinear(arr.shape)

    def _init_loc_bias(self, _: str, arr: NDArray) -> None:
        if arr.shape != (6,):
            raise ArgumentError(f"the bias of a localization network is an affine map of 6 numbers, got {arr.shape}")
        arr[:] = np.array([1.0, 0, 0, 0, 1.0, 0])

    def _init_zero(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_one(self, _: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_bias(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_quantized_bias(self, _: str, arr: NDArray) -> None:
        arr[:] = 0

    def _init_gamma(self, _: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_beta(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_weight(self, name: str, arr: NDArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _init_weight, which {name} needs")

    def _init_quantized_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = random.randint(-127, 127, shape=arr.shape, dtype="int32")

    def _init_default(self, name: str, arr: NDArray) -> None:
        raise ArgumentError(
            f"the name {name!r} does not say how to initialize it: it ends in none of {', '.join(_ENDINGS)}. Name the "
            "variable so, or give it an initializer, as in mx.sym.Variable(name, init=mx.init.Zero())")


def _size(array: NDArray) -> str:
    values = array.asnumpy()
    return str(np.sqrt(np.square(values).mean(dtype="float64")).astype("float32"))


_register = registry.get_register_func(Initializer, "initializer")
alias = registry.get_alias_func(Initializer, "initializer")
create = registry.get_create_func(Initializer, "initializer")


def register(klass: type) -> type:
    """Register an initializer's class by its own name, for `create` and the attributes of variables; the class."""
    return _register(klass)


class Load:
    """Values from a file of arrays or from a dict, by the parameters' names, without their `arg:` and `aux:`.

    default_init: for parameters that are not there. verbose: log which way each went. Raises ArgumentError for
    anything but a dict or a file of one, and at a call for a shape that differs, or a parameter for which there is
    nothing.
    """

    def __init__(self, param: str | Mapping[str, NDArray], default_init: Callable[[Any, NDArray], None] | None = None,
                 verbose: bool = False):
        found = load(param) if isinstance(param, str) else param
        if not isinstance(found, Mapping):
            raise ArgumentError(f"Load takes arrays by name, or a file of these, got {type(found).__name__}")
        self.param = {re.sub("^(arg|aux):", "", name): array for name, array in found.items()}
        self.default_init, self.verbose = default_init, verbose

    def __call__(self, name: str, arr: NDArray) -> None:
        """Give the parameter its values."""
        if name in self.param:
            given = self.param[name]
            if given.shape != arr.shape:
                raise ArgumentError(f"parameter {name} has the shape {arr.shape}, the loaded one {given.shape}")
            arr[:] = given
        elif self.default_init is None:
            raise ArgumentError(f"parameter {name} is not among those loaded, and there is no default_init")
        else:
            self.default_init(name, arr)
        if self.verbose:
            logging.info("Initialized %s by %s", name, "loading" if name in self.param else "default")


class Mixed:
    """Several initializers: that of the first pattern, a regular expression, which the beginning of the name matches.

    Raises ArgumentError when patterns and initializers are not equally many, and at a call when none matches.
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Callable[[Any, NDArray], None]]):
        if len(patterns) != len(initializers):
            raise ArgumentError(f"each pattern needs an initializer: there are {len(patterns)} and {len(initializers)}")
        self.map = [(re.compile(pattern), init) for pattern, init in zip(patterns, initializers, strict=True)]

    def __call__(self, name: str, arr: NDArray) -> None:
        """Give the parameter its values."""
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise ArgumentError(f"no pattern matches the parameter {name!r}: add \".*\" at the end, for all others")


@register
@alias("zeros")
class Zero(Initializer):
    """0 everywhere."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = 0


@register
@alias("ones")
class One(Initializer):
    """1 everywhere."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = 1


@register
class Constant(Initializer):
    """A number everywhere, or an array that broadcasts."""

    def __init__(self, value: Any):
        plain = value.asnumpy() if isinstance(value, NDArray) else value
        super().__init__(value=plain.tolist() if isinstance(plain, (np.ndarray, np.generic)) else plain)
        self.value = value

    def _init_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = self.value


@register
class Uniform(Initializer):
    """Uniformly from -scale to scale."""

    def __init__(self, scale: float = 0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, _: str, arr: NDArray) -> None:
        random.uniform(-self.scale, self.scale, out=arr)


@register
class Normal(Initializer):
    """Normally distributed around 0, with the standard deviation sigma."""

    def __init__(self, sigma: float = 0.01):
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, _: str, arr: NDArray) -> None:
        random.normal(0, self.sigma, out=arr)


@register
class Orthogonal(Initializer):
    """Rows, or columns where these are fewer, that are orthogonal to each other and of length `scale`.

    rand_type: "uniform" or "normal", of the numbers that are made orthogonal. The array counts as a matrix of its first
    axis by all others.
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform"):
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale, self.rand_type = scale, rand_type

    def _init_weight(self, name: str, arr: NDArray) -> None:
        if arr.ndim < 2:
            raise ArgumentError(f"Orthogonal needs two axes or more; {name} has the shape {arr.shape}")
        shape = arr.shape[0], arr.size // arr.shape[0]
        drawn: Any
        if self.rand_type == "uniform":
            drawn = random.uniform(-1.0, 1.0, shape=shape)
        elif self.rand_type == "normal":
            drawn = random.normal(0.0, 1.0, shape=shape)
        else:
            raise ArgumentError(f"rand_type must be 'uniform' or 'normal', got {self.rand_type!r}")
        left, _, right = np.linalg.svd(drawn.asnumpy(), full_matrices=False)
        arr[:] = (self.scale * (left if left.shape == shape else right)).reshape(arr.shape)


@register
class Xavier(Initializer):
    """Random numbers whose spread keeps that of a layer's values: sqrt(magnitude / n) is the edge of `uniform` ones,
    the standard deviation of `gaussian` ones.

    factor_type: what n is: the number of inputs ("in") or outputs ("out") of a neuron, or their mean ("avg").
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3):
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, float(magnitude)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        if arr.ndim < 2:
            raise ArgumentError(f"Xavier needs two axes or more, for outputs and inputs; {name} has the shape "
                                f"{arr.shape}")
        pixels = math.prod(arr.shape[2:])
        numbers: dict[str, float] = {"in": arr.shape[1] * pixels, "out": arr.shape[0] * pixels}
        numbers["avg"] = (numbers["in"] + numbers["out"]) / 2.0
        if self.factor_type not in numbers:
            raise ArgumentError(f"factor_type must be one of {', '.join(numbers)}, got {self.factor_type!r}")
        if self.magnitude < 0:
            raise ArgumentError(f"magnitude must not be negative, got {self.magnitude}")
        scale = math.sqrt(self.magnitude / numbers[self.factor_type])
        if self.rnd_type == "uniform":
            random.uniform(-scale, scale, out=arr)
        elif self.rnd_type == "gaussian":
            random.normal(0, scale, out=arr)
        else:
            raise ArgumentError(f"rnd_type must be 'uniform' or 'gaussian', got {self.rnd_type!r}")


@register
class MSRAPrelu(Xavier):
    """Xavier with normally distributed numbers, for layers behind a PReLU or leaky ReLU of that slope."""

    def __init__(self, factor_type: str = "avg", slope: float = 0.25):
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope ** 2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


def _bilinear(shape: tuple[int, ...]) -> np.ndarray:
    """Weights that interpolate between pixels, for the last two axes."""
    if len(shape) != 4:
        raise ArgumentError(f"a filter that interpolates has the shape (filters, channels, height, width), got {shape}")
    half = math.ceil(shape[3] / 2.0)
    center = (2 * half - 1 - half % 2) / (2.0 * half)
    rows, columns = (1 - np.abs(np.arange(n) / half - center) for n in shape[2:])
    return np.broadcast_to(rows[:, None] * columns, shape).astype("float32")


@register
class Bilinear(Initializer):
    """The weights of a Deconvolution that interpolates between pixels."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = _bilinear(arr.shape)


@register
class LSTMBias(Initializer):
    """0, but for the forget gates of an LSTM's bias, its second quarter."""

    def __init__(self, forget_bias: float = 1.0):
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0
        quarter = arr.shape[0] // 4
        arr[quarter:2 * quarter] = self.forget_bias


_GATES = {"lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o"), "rnn_tanh": ("",), "rnn_relu": ("",)}


@register
class FusedRNN(Initializer):
    """The parameters of the operator RNN, which are one vector: each gate's weight and bias by `init`.

    init: an initializer, its name or JSON text, or None for that of all parameters. It sees names such as
    l0_i2h_f_weight: direction l or r, layer, input or hidden state, gate. num_hidden, num_layers, mode, bidirectional:
    as of the operator. forget_bias: what an LSTM's biases of forget gates become.
    """

    def __init__(self, init: Any, num_hidden: int, num_layers: int, mode: str, bidirectional: bool = False,
                 forget_bias: float = 1.0):
        if mode not in _GATES:
            raise ArgumentError(f"mode must be one of {', '.join(_GATES)}, got {mode!r}")
        if isinstance(init, str):
            init = create(init)
        super().__init__(init=None if init is None else init.dumps(), num_hidden=num_hidden, num_layers=num_layers,
                         mode=mode, bidirectional=bidirectional, forget_bias=forget_bias)
        self._init, self._num_hidden, self._num_layers = init, num_hidden, num_layers
        self._mode, self._bidirectional, self._forget_bias = mode, bidirectional, forget_bias

    def _init_weight(self, desc: Any, arr: NDArray) -> None:
        place = 0
        for name, shape in self._parts(desc, arr.size):
            count = math.prod(shape)
            part = arr[place:place + count].reshape(shape)
            place += count
            if self._mode == "lstm" and name.endswith("_f_bias"):
                part[:] = self._forget_bias
            elif self._init is not None:
                self._init(InitDesc(name, global_init=desc.global_init), part)
            else:
                desc.global_init(InitDesc(name, global_init=desc.global_init), part)

    def _parts(self, desc: str, size: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Names and shapes of the weights and biases, in the order in which they lie."""
        hidden, gates, ways = self._num_hidden, _GATES[self._mode], "lr" if self._bidirectional else "l"
        rows = hidden * len(gates) * len(ways)
        deeper = hidden * len(ways) + hidden + 2  # numbers of each row of a layer behind the first
        inputs = size // rows - (self._num_layers - 1) * deeper - hidden - 2
        if inputs < 1 or rows * (inputs + hidden + 2 + (self._num_layers - 1) * deeper) != size:
            raise ArgumentError(f"{desc}: no {self._mode} of {self._num_layers} layers of {hidden} hidden states in "
                                f"{len(ways)} directions has {size} parameters")
        for kind in ("weight", "bias"):
            for layer in range(self._num_layers):
                for way in ways:
                    for source in ("i2h", "h2h"):
                        width = hidden if source == "h2h" else inputs if layer == 0 else hidden * len(ways)
                        for gate in gates:
                            yield (f"{way}{layer}_{source}{gate}_{kind}",
                                   (hidden, width) if kind == "weight" else (hidden,))
