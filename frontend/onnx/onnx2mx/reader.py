"""The symbol that is made of an ONNX graph, and the node that is being read."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from mxc.compiler.error import MXNetError, UnsupportedError
from mxc.compiler.graph.graph import Entry
from mxc.compiler.ops import table
from mxc.compiler.ops.infer import infer_node
from mxc.onnx.extents import Extents, FreeDimensions, Shape, Sizes, axes_of, is_fixed, reshape_codes
from mxc.onnx.package import onnx_package
from mxc.symbol import Symbol, Variable
from mxc.symbol.construct import apply

Arrays = tuple[np.ndarray, np.ndarray]
Converter = Callable[["Call"], "Tensor | list[Tensor]"]
# MXNet's arrays have these dtypes; values of others have to be constants, which are kept in the one behind.
OTHER_DTYPES = {"bfloat16": "float32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}


@dataclass(eq=False)
class Tensor:
    """A tensor of the ONNX graph: an entry of the symbol, or constants, one for each size of free dimensions.

    extents: both shapes. A tensor without axes has one element here, as an array of MXNet has; constants keep theirs.
    """

    name: str
    extents: Extents
    dtype: str
    symbol: Symbol | None = None
    arrays: Arrays | None = None

    @property
    def shape(self) -> Shape:
        """The shape for the first size of free dimensions."""
        return self.extents[0]

    @property
    def rank(self) -> int:
        return len(self.extents[0])

    @property
    def value(self) -> np.ndarray | None:
        """The value of a constant that depends on no free dimension, else None."""
        if self.arrays is None:
            return None
        first, second = self.arrays
        return first if first is second or (first.shape == second.shape and np.array_equal(first, second)) else None


class Reader:
    """What has been made of an ONNX graph so far: tensors by name, and parameters."""

    def __init__(self, free: FreeDimensions):
        self.free = free
        self.tensors: dict[str, Tensor] = {}
        self.inputs: list[Tensor] = []
        self.parameters: dict[str, np.ndarray] = {}
        self.states: set[str] = set()  # parameters that are auxiliary states
        self._taken: set[str] = set()
        self._made: dict[tuple[str, str], Tensor] = {}

    def unused(self, name: str) -> str:
        """A name that no node has yet: `name`, or with a number behind it."""
        stem = name.strip("/").replace("/", "_") or "tensor"
        made, count = stem, 0
        while made in self._taken:
            count += 1
            made = f"{stem}_{count}"
        self._taken.add(made)
        return made

    def add_input(self, name: str, shape: Sequence[int | str], dtype: str) -> None:
        """An input of the graph; a dimension that is a text is free. One without axes has one element here."""
        shape = shape or (1,)
        extents = self.free.extents(shape)
        known = tuple(d if isinstance(d, int) else 0 for d in shape)
        made = Variable(self.unused(name), shape=known, dtype=None if dtype == "float32" else dtype)
        tensor = Tensor(name, extents, dtype, made)
        self.tensors[name] = tensor
        self.inputs.append(tensor)

    def add_constant(self, name: str, arrays: Arrays) -> Tensor:
        """A tensor of known values."""
        pair = [np.asarray(a, OTHER_DTYPES.get(a.dtype.name, a.dtype)) for a in arrays]
        first, second = pair[0], (pair[0] if arrays[1] is arrays[0] else pair[1])
        tensor = Tensor(name, (first.shape or (1,), second.shape or (1,)), first.dtype.name, None, (first, second))
        self.tensors[name] = tensor
        return tensor

    def state(self, name: str, value: np.ndarray, dtype: str) -> Tensor:
        """An auxiliary state of one operator alone, whatever else reads the constant that it begins with."""
        array = value.astype(dtype)
        variable = self.unused(name)
        self.parameters[variable] = array
        self.states.add(variable)
        return Tensor(name, (array.shape, array.shape), dtype, Variable(variable), (array, array))

    def symbol(self, tensor: Tensor) -> Symbol:
        """A tensor as a symbol: a constant becomes a parameter of a stated shape, since nothing else says it of many.

        Raises UnsupportedError for constants that depend on a free dimension in another way than by being repeated.
        """
        if tensor.symbol is None:
            value = tensor.value
            if value is None:
                tensor.symbol = self._repeated(tensor)
            else:
                name = self.unused(tensor.name)
                self.parameters[name] = value.reshape(tensor.shape)
                tensor.symbol = Variable(name, shape=tensor.shape,
                                         dtype=None if tensor.dtype == "float32" else tensor.dtype)
        return tensor.symbol

    def _repeated(self, tensor: Tensor) -> Symbol:
        """A constant that is one array, repeated along axes of free size."""
        assert tensor.arrays is not None
        axes = [axis for axis, (a, b) in enumerate(axes_of(tensor.extents)) if a != b]
        once = [np.asarray(each) for each in tensor.arrays]
        for axis in axes:
            once = [array.take([0], axis) if (array.take([0], axis) == array).all() else array for array in once]
        if once[0].shape != once[1].shape or not np.array_equal(once[0], once[1]):
            raise UnsupportedError(f"tensor {tensor.name!r} depends on {self.free_names()}: give all sizes as numbers")
        made = self.add_constant(f"{tensor.name}_once", (once[0], once[0]))
        return self.symbol(self.spread(made, tensor.extents, tensor.name))

    def spread(self, tensor: Tensor, target: Extents, name: str) -> Tensor:
        """A tensor whose axes of length 1 are spread to a shape of as many axes.

        Raises UnsupportedError for a free size that no input has as an axis.
        """
        for axis, (there, wanted) in enumerate(zip(axes_of(tensor.extents), axes_of(target), strict=True)):
            if there == wanted or wanted[0] == wanted[1]:
                continue
            source, place = self.axis_of(wanted)
            (tensor,) = self.make("broadcast_like", [tensor, source], name, lhs_axes=(axis,), rhs_axes=(place,))
        fixed = tuple(wanted[0] if wanted[0] == wanted[1] else 0 for wanted in axes_of(target))
        if any(wanted and wanted != there for wanted, there in zip(fixed, tensor.shape, strict=True)):
            (tensor,) = self.make("broadcast_to", [tensor], name, shape=fixed)
        return tensor

    def axis_of(self, sizes: Sizes) -> tuple[Tensor, int]:
        """An input and its axis that has these sizes. Raises UnsupportedError where there is none."""
        for tensor in self.inputs:
            if sizes in axes_of(tensor.extents):
                return tensor, axes_of(tensor.extents).index(sizes)
        raise UnsupportedError(f"a size that is computed of {self.free_names()}: give all sizes as numbers")

    def sizes_text(self) -> str:
        """What an error says of the sizes that free dimensions were given; nothing without any."""
        sizes = ", ".join(f"{name} as {first} and {second}" for name, (first, second) in self.free.sizes.items())
        return f"\nfree dimensions were tried, {sizes}: give all sizes as numbers if it takes no others" * bool(sizes)

    def free_names(self) -> str:
        """The free dimensions, for messages."""
        return f"the free dimension{'s' * (len(self.free.sizes) > 1)} {', '.join(self.free.sizes)}"

    def make(self, op_name: str, inputs: Sequence[Tensor], name: str, states: Sequence[Tensor] = (),
             **params: Any) -> list[Tensor]:
        """An operator of the symbol; its visible outputs. states: of `state`, which come last."""
        op = table.get(op_name)
        given = [self.symbol(tensor) for tensor in (*inputs, *states)]
        if "num_args" in op.params and "num_args" not in params:
            params["num_args"] = len(given)
        made = apply(op, op_name.strip("_").lower(), given, params, self.unused(name))
        node = made.entries[0].node
        every = [*inputs, *states]
        both = [infer_node(node, [tensor.extents[i] for tensor in every], [tensor.dtype for tensor in every])
                for i in (0, 1)]
        return [Tensor(name, (both[0][0][i], both[1][0][i]), both[0][1][i], Symbol([Entry(node, i)]))
                for i in range(len(made.entries))]


class Call:
    """One node of the ONNX graph: what a converter is given.

    name: of the node, or of its first output. inputs: None for one that is left out.
    """

    def __init__(self, reader: Reader, node: Any, attributes: dict[str, Any], opset: int):
        self.reader, self.node, self.attributes, self.opset = reader, node, attributes, opset
        self.op_type = node.op_type
        self.name = node.name or (node.output[0] if node.output else node.op_type)
        self.inputs: list[Tensor | None] = [reader.tensors[name] if name else None for name in node.input]
        self.read: set[str] = set()

    # -- what is said of the node

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute, or what it is when it is left out."""
        self.read.add(name)
        return self.attributes.get(name, default)

    def attributes_read(self) -> None:
        """Raise UnsupportedError for attributes that the converter has not looked at, unless they have the values that
        they have when they are left out."""
        onnx = onnx_package("import_model")
        known = onnx.defs.get_schema(self.op_type, self.opset).attributes
        unread = [each.name for each in self.node.attribute if each.name not in self.read and not (
            each.name in known and onnx.helper.get_attribute_value(each) == onnx.helper.get_attribute_value(
                known[each.name].default_value))]
        if unread:
            self.refuse(f"the attribute{'s' * (len(unread) > 1)} {', '.join(unread)}")

    def refuse(self, what: str) -> NoReturn:
        """Raise UnsupportedError: there is no counterpart of `what`."""
        raise UnsupportedError(f"{self.op_type} {self.name!r}: there is no counterpart of {what}")

    def refuse_unless(self, fine: bool, what: str) -> None:
        """Raise UnsupportedError unless an attribute is `fine`."""
        if not fine:
            self.refuse(f"{what}={self.attributes.get(what)!r}")

    def has(self, i: int) -> bool:
        """Whether input i is given."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def tensor(self, i: int = 0) -> Tensor:
        """Input i. Raises MXNetError when it is left out."""
        found = self.inputs[i] if i < len(self.inputs) else None
        if found is None:
            raise MXNetError(f"{self.op_type} {self.name!r}: input {i} is missing")
        return found

    def tensors(self) -> list[Tensor]:
        """All inputs. Raises MXNetError where one is left out."""
        return [self.tensor(i) for i in range(len(self.inputs))]

    def known(self, i: int, what: str) -> np.ndarray:
        """The value of input i, a constant. Raises UnsupportedError, naming the input `what`, for any other."""
        value = self.tensor(i).value
        if value is None:
            self.refuse(f"an input {what} that is computed, or depends on a free dimension")
        return value

    def known_both(self, i: int, what: str) -> Arrays:
        """The values of input i, for both sizes of free dimensions."""
        arrays = self.tensor(i).arrays
        if arrays is None:
            self.refuse(f"an input {what} that is computed")
        return arrays

    def axes(self, default: Any = None) -> list[int] | None:
        """The axes, an attribute or (in later opsets) the second input; None where they are left out."""
        given = self.known(1, "axes").reshape(-1).tolist() if self.has(1) else self.attr("axes", default)
        return None if given is None else [int(axis) for axis in given]

    def axis(self, axis: int, i: int = 0) -> int:
        """An axis of input i, counted from the first."""
        return axis % self.tensor(i).rank

    def fixed(self, sizes: Sizes, what: str) -> int:
        """A size that is not free. Raises UnsupportedError for one that is."""
        if sizes[0] != sizes[1]:
            self.refuse(f"a free size of {what}; give all sizes as numbers")
        return sizes[0]

    # -- making nodes

    def many(self, op_name: str, *inputs: Tensor, states: Sequence[Tensor] = (), **params: Any) -> list[Tensor]:
        """An operator of the symbol; its outputs."""
        return self.reader.make(op_name, inputs, self.name, states, **params)

    def op(self, op_name: str, *inputs: Tensor, **params: Any) -> Tensor:
        """An operator of the symbol; its first output."""
        return self.many(op_name, *inputs, **params)[0]

    def constant(self, array: np.ndarray, what: str = "constant") -> Tensor:
        """A constant of the converter's own."""
        array = np.asarray(array)
        return self.reader.add_constant(f"{self.name}_{what}", (array, array))

    def cast(self, tensor: Tensor, dtype: str) -> Tensor:
        """A tensor in another dtype."""
        if tensor.dtype == dtype:
            return tensor
        if tensor.value is not None:
            return self.constant(tensor.value.astype(dtype), "cast")
        if dtype == "bool":
            tensor = self.op("_not_equal_scalar", tensor, scalar=0)
        return self.op("Cast", tensor, dtype=dtype)

    def reshape(self, tensor: Tensor, target: Extents) -> Tensor:
        """A tensor in another shape. Raises UnsupportedError where several sizes are free and none can be told."""
        target = target[0] or (1,), target[1] or (1,)
        if tensor.extents == target:
            return tensor
        if tensor.value is not None and is_fixed(target):
            return self.constant(tensor.value.reshape(target[0]), "reshaped")
        codes = reshape_codes(tensor.extents, target)
        if codes is None:
            self.refuse(f"a reshape of {tensor.shape} to {target[0]}, of which several dimensions are free; give all "
                        "sizes as numbers")
        return self.op("Reshape", tensor, shape=codes)

    def transpose(self, tensor: Tensor, axes: Sequence[int]) -> Tensor:
        """A tensor with its axes in another order."""
        if list(axes) == [*range(tensor.rank)]:
            return tensor
        if tensor.value is not None and tensor.value.ndim == len(axes):
            return self.constant(tensor.value.transpose(axes), "transposed")
        return self.op("transpose", tensor, axes=tuple(axes))

    def move_last(self, tensor: Tensor, axis: int) -> tuple[Tensor, list[int]]:
        """A tensor with one axis moved to the end, and the order of axes that moves it back."""
        axis %= tensor.rank
        order = [i for i in range(tensor.rank) if i != axis] + [axis]
        return self.transpose(tensor, order), [order.index(i) for i in range(tensor.rank)]

    def aligned(self, tensor: Tensor, rank: int) -> Tensor:
        """A tensor with axes of length 1 before its own, so that it has `rank` axes."""
        more = (1,) * (rank - tensor.rank)
        return self.reshape(tensor, (more + tensor.extents[0], more + tensor.extents[1])) if more else tensor

    def spread(self, tensor: Tensor, target: Extents) -> Tensor:
        """A tensor broadcast to a shape."""
        return self.reader.spread(self.aligned(tensor, len(target[0])), target, self.name)


def broadcast(tensors: Sequence[Tensor]) -> Extents:
    """Both shapes of the result of an operator that broadcasts its inputs."""
    first, second = (np.broadcast_shapes(*(tensor.extents[i] for tensor in tensors)) for i in (0, 1))
    return first, second


def elements(shape: Shape) -> int:
    """The number of elements of a shape."""
    return math.prod(shape)
