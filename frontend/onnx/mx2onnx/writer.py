"""The ONNX graph that is being written, and the operator that is being said in it."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from mxc.compiler.error import UnsupportedError
from mxc.compiler.graph.compose import output_name
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.ops.dtypes import dtype_name
from mxc.compiler.passes.infer_dtype import infer_dtype
from mxc.compiler.passes.infer_shape import infer_shape
from mxc.onnx.extents import Extents, FreeDimensions, Shape, axes_of, is_fixed, reshape_codes
from mxc.onnx.package import onnx_package

OPSET = 17  # of ONNX's operators: the first with LayerNormalization
IR_VERSION = 8  # the format of files that goes with it
FUNCTIONS = "mxnet"  # the domain of functions that stand for MXNet's operators

Names = list[str]
Converter = Callable[["Call"], "str | Names"]


class GraphWriter:
    """Nodes, constants and functions of an ONNX graph, made for a symbol's graph whose shapes are known.

    parameters: values by name. shapes: of the inputs; a dimension that is a text is free. dtypes: of the inputs.
    """

    def __init__(self, graph: Graph, parameters: dict[str, np.ndarray], shapes: dict[str, tuple[int | str, ...]],
                 dtypes: dict[str, str]):
        self.onnx = onnx_package("export_model")
        self.graph, self.parameters, self.free = graph, parameters, FreeDimensions()
        self.inputs = {name: self.free.extents(shape) for name, shape in shapes.items()}
        known = {name: array.shape for name, array in parameters.items()}
        both = [infer_shape(graph, {**known, **{name: pair[i] for name, pair in self.inputs.items()}}) for i in (0, 1)]
        self._shapes = list(zip(*both, strict=True))
        stated = {**{name: dtype_name(array.dtype) for name, array in parameters.items()}, **dtypes}
        self._dtypes = infer_dtype(graph, stated)
        for node, of_outputs in zip(graph.nodes, self._dtypes, strict=True):
            if "bfloat16" in of_outputs:
                raise UnsupportedError(f"{node.name!r} is of bfloat16, which is not written to ONNX; write the model "
                                       "in float32 or float16")
        self.nodes: list[Any] = []
        self.initializers: dict[str, np.ndarray] = {}
        self.functions: dict[str, Any] = {}
        self.names: dict[Entry, str] = {}
        self._taken = {node.name for node in graph.variables}
        self._constants: dict[tuple[str, Shape, bytes], str] = {}

    def extents(self, entry: Entry) -> Extents:
        """Both shapes of an entry."""
        first, second = (shapes[entry.index] for shapes in self._shapes[self.graph.ids[entry.node]])
        return first, second

    def dtype(self, entry: Entry) -> str:
        """The dtype of an entry."""
        return str(self._dtypes[self.graph.ids[entry.node]][entry.index])

    def unused(self, name: str) -> str:
        """A name for a tensor or node that has none yet: `name`, or with a number behind it."""
        made, count = name, 0
        while made in self._taken:
            count += 1
            made = f"{name}_{count}"
        self._taken.add(made)
        return made

    def constant(self, array: np.ndarray, name: str = "constant") -> str:
        """The name of a constant tensor; equal ones are there once."""
        key = array.dtype.name, array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self.unused(name)
            self.initializers[self._constants[key]] = array
        return self._constants[key]

    def add(self, op_type: str, inputs: Sequence[str], count: int, stem: str, domain: str = "",
            **attributes: Any) -> Names:
        """A node; the names of its outputs. stem: what names of the node and of what it makes begin with."""
        name = self.unused(stem)
        outputs = [self.unused(f"{stem}_{op_type.lower()}") for _ in range(count)]
        self.nodes.append(self.onnx.helper.make_node(op_type, list(inputs), outputs, name, domain=domain, **attributes))
        return outputs

    def convert(self, node: Node, converter: Converter) -> None:
        """Say one operator of the symbol; its results are called as the symbol's outputs are."""
        first = len(self.nodes)
        made = converter(Call(self, node))
        renamed: dict[str, str] = {}
        new = {name for added in self.nodes[first:] for name in added.output}
        for index, name in enumerate([made] if isinstance(made, str) else made):
            entry = Entry(node, index)
            if name in new and name not in renamed:
                renamed[name] = self.unused(output_name(entry))
            self.names[entry] = renamed.get(name, name)
        for added in self.nodes[first:]:
            for names in (added.input, added.output):
                names[:] = [renamed.get(name, name) for name in names]

    def evaluated(self, entry: Entry) -> np.ndarray | None:
        """The value of an entry that depends on parameters alone; None where an input flows into it."""
        below = Graph([entry])
        if any(node.name not in self.parameters for node in below.variables):
            return None
        values: dict[Entry, np.ndarray] = {}
        for node in below.nodes:
            if node.op is None:
                values[Entry(node)] = self.parameters[node.name]
                continue
            shapes = [self.extents(Entry(node, i)) for i in range(node.num_outputs)]
            if not all(map(is_fixed, shapes)) or 0 in shapes[0][0]:
                return None
            with_shape = node.params
            if not node.inputs and "shape" in node.params:  # a shape may leave sizes to what reads the array
                with_shape = node.op.make_params({**node.params, "shape": shapes[0][0]})
            dtypes = [self.dtype(Entry(node, i)) for i in range(node.num_outputs)]
            results = node.op.reference(with_shape, [values[e] for e in node.inputs], dtypes)
            values.update({Entry(node, i): np.asarray(result) for i, result in enumerate(results)})
        return values[entry]

    def size(self, sizes: tuple[int, int], stem: str) -> str | None:
        """A tensor of one int64 with the size of an axis. None where no input has an axis of these sizes."""
        if sizes[0] == sizes[1]:
            return self.constant(np.array([sizes[0]], np.int64), "size")
        for name, extents in self.inputs.items():
            if sizes in axes_of(extents):
                (shape,) = self.add("Shape", [name], 1, stem)
                axis = self.constant(np.array([axes_of(extents).index(sizes)], np.int64), "axis")
                return self.add("Gather", [shape, axis], 1, stem, axis=0)[0]
        return None


class Call:
    """One operator of the symbol, with its inputs as tensors of the ONNX graph: what a converter is given."""

    def __init__(self, writer: GraphWriter, node: Node):
        assert node.op is not None
        self.writer, self.node = writer, node
        self.params: Any = node.params  # of types that only the operator's entry knows
        self.entries = list(node.inputs)
        self.inputs = [writer.names[entry] for entry in node.inputs]

    def refuse(self, what: str) -> NoReturn:
        """Raise UnsupportedError: ONNX has no counterpart of `what`."""
        assert self.node.op is not None
        raise UnsupportedError(f"{self.node.op.name} {self.node.name!r}: ONNX has no counterpart of {what}")

    def refuse_unless(self, fine: bool, name: str) -> None:
        """Raise UnsupportedError for the value of the parameter `name` unless it is `fine`."""
        if not fine:
            self.refuse(f"{name}={self.params[name]}")

    # -- facts

    def extents(self, i: int = 0) -> Extents:
        """Both shapes of input i."""
        return self.writer.extents(self.entries[i])

    def out_extents(self, i: int = 0) -> Extents:
        """Both shapes of output i."""
        return self.writer.extents(Entry(self.node, i))

    def rank(self, i: int = 0) -> int:
        """The number of axes of input i."""
        return len(self.extents(i)[0])

    def axis(self, axis: int, i: int = 0) -> int:
        """An axis of input i, counted from the first."""
        return axis % self.rank(i)

    def fixed_axis(self, axis: int, i: int = 0) -> int:
        """The size of an axis of input i. Raises UnsupportedError when it is free."""
        first, second = axes_of(self.extents(i))[axis]
        if first != second:
            self.refuse(f"a free size of axis {axis} of input {i}")
        return first

    def fixed_shape(self, extents: Extents) -> Shape:
        """A shape that has no free dimension. Raises UnsupportedError when it has."""
        if not is_fixed(extents):
            self.refuse("a free dimension here; give all sizes as numbers")
        return extents[0]

    def dtype(self, i: int = 0) -> str:
        """The dtype of input i."""
        return self.writer.dtype(self.entries[i])

    def out_dtype(self, i: int = 0) -> str:
        """The dtype of output i."""
        return self.writer.dtype(Entry(self.node, i))

    def value(self, i: int) -> np.ndarray | None:
        """The value of input i where it depends on parameters alone, else None."""
        return self.writer.evaluated(self.entries[i])

    def known(self, i: int) -> np.ndarray:
        """The value of input i. Raises UnsupportedError where it is not of parameters alone."""
        value = self.value(i)
        if value is None:
            self.refuse(f"values of {self.inputs[i]} that are computed")
        return value

    # -- making nodes

    def emit(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """A node of one output; the output."""
        return self.writer.add(op_type, inputs, 1, self.node.name, **attributes)[0]

    def emit_many(self, count: int, op_type: str, *inputs: str, **attributes: Any) -> Names:
        """A node of several outputs."""
        return self.writer.add(op_type, inputs, count, self.node.name, **attributes)

    def ints(self, *values: int) -> str:
        """A constant vector of int64."""
        return self.writer.constant(np.array(values, np.int64), "numbers")

    def number(self, value: float, dtype: str | None = None) -> str:
        """A constant of one element, of `dtype` (default: that of the first input).

        Raises UnsupportedError where an integer dtype lacks the value.
        """
        made = np.array([value]).astype(dtype or self.dtype())
        if made.dtype.kind in "iu" and made[0] != value:
            self.refuse(f"the number {value} with values of dtype {made.dtype}")
        return self.writer.constant(made, "number")

    def constant(self, array: np.ndarray) -> str:
        """A constant tensor."""
        return self.writer.constant(array, f"{self.node.name}_constant")

    def cast(self, tensor: str, dtype: str) -> str:
        """A tensor in another dtype."""
        return self.emit("Cast", tensor, to=self.writer.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def boolean(self, tensor: str, dtype: str) -> str:
        """What elements are other than zero, as ONNX's bool."""
        return tensor if dtype == "bool" else self.cast(tensor, "bool")

    def reshape(self, tensor: str, source: Extents, target: Extents) -> str:
        """A tensor in another shape, for every size of free dimensions. Raises UnsupportedError when it cannot be."""
        codes = reshape_codes(source, target)
        if codes is None:
            self.refuse(f"a reshape of {source[0]} to {target[0]}, of which several dimensions are free")
        return self.emit("Reshape", tensor, self.ints(*codes))

    def shape_tensor(self, extents: Extents) -> str:
        """A shape as a tensor of int64. Raises UnsupportedError for a free dimension that no input has as an axis."""
        if is_fixed(extents):
            return self.ints(*extents[0])
        parts = []
        for sizes in axes_of(extents):
            part = self.writer.size(sizes, self.node.name)
            if part is None:
                self.refuse("a size that is computed of free dimensions; give all sizes as numbers")
            parts.append(part)
        return self.emit("Concat", *parts, axis=0)

