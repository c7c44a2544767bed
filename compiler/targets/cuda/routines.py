"""Routines as numba.cuda source: `def kernel(arrays..., values, scratch...)`, a thread for each unit of work.

values: the routine's integers, then how many threads work. Every thread has a part of each scratch array. Arrays hold
float16 as such, and truth values as bytes; both are converted where they are read and written.
"""
from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mxc.compiler.kernel.ir import RoutineKernel, computing_dtype
from mxc.compiler.kernel.routines import spec
from mxc.compiler.system import syntax
from mxc.compiler.targets.cuda.blocks import Blocks
from mxc.compiler.targets.routine_body import body

STORED = {"float16": "float16", "bool": "uint8"}  # what converts a value to what arrays hold


class _Array(NamedTuple):
    """dtype: of the elements. base: the name of the thread's first place, "" for arrays that all threads share."""

    dtype: str
    base: str


class _Accesses(ast.NodeTransformer):
    """Reads and writes of arrays: converted, and those of scratch arrays at the thread's own places."""

    def __init__(self, arrays: Mapping[str, _Array]):
        self.arrays = arrays

    def _place(self, node: ast.Subscript) -> tuple[_Array, ast.Subscript] | None:
        array = self.arrays.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if array is None:
            return None
        index = self.visit(node.slice)
        if array.base:
            index = ast.BinOp(ast.Name(array.base, ast.Load()), ast.Add(), index)
        return array, ast.Subscript(node.value, index, node.ctx)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        found = self._place(node)
        if found is None:
            self.generic_visit(node)
            return node
        array, place = found
        if isinstance(node.ctx, ast.Store) or array.dtype not in STORED:
            return place
        if array.dtype == "float16":
            return ast.Call(ast.Name("float32", ast.Load()), [place], [])
        return ast.Compare(place, [ast.NotEq()], [ast.Call(ast.Name("uint8", ast.Load()), [ast.Constant(0)], [])])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if isinstance(node.target, ast.Subscript):
            here = ast.Subscript(node.target.value, node.target.slice, ast.Load())
            changed = ast.Assign([node.target], ast.BinOp(here, node.op, node.value))
            return self.visit_Assign(ast.copy_location(changed, node))
        self.generic_visit(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        value = self.visit(node.value)
        target = node.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            array = self.arrays.get(target.value.id)
            if array is not None and array.dtype in STORED:
                value = ast.Call(ast.Name(STORED[array.dtype], ast.Load()), [value], [])
        return ast.copy_location(ast.Assign([self.visit(t) for t in node.targets], value), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "product_":
            node.args = self._product(node.args)
        return node

    def _product(self, arguments: list[ast.expr]) -> list[ast.expr]:
        """The arguments of the word `product_`, where places in arrays are those of the thread; that of the packed
        matrix, which the word has not, comes last."""
        to, at, rows, left, start, depth, packed, columns = arguments

        def moved(array: ast.expr, place: ast.expr) -> ast.expr:
            base = self.arrays[array.id].base if isinstance(array, ast.Name) else ""
            return ast.BinOp(ast.Name(base, ast.Load()), ast.Add(), place) if base else place

        return [to, moved(to, at), rows, left, moved(left, start), depth, packed, columns,
                moved(packed, ast.Constant(0))]


def routine_source(kernel: RoutineKernel) -> str:
    """The source of a routine's kernel: its constants, then the function."""
    declared = spec.find(kernel.routine)
    names = (*declared.inputs, *declared.outputs)
    arrays = {name: _Array(dtype, "") for name, dtype in zip(names, kernel.buffers, strict=True)}
    arrays |= {name: _Array(dtype, f"{name}_at") for name, dtype, _ in spec.scratch(kernel)}
    tree = syntax.parse(textwrap.dedent(body(declared.function, dict(kernel.constants))))
    text = ast.unparse(ast.fix_missing_locations(_Accesses(arrays).visit(tree)))
    lines = [f"{name} = {computing_dtype(str(value)) if value in spec.DTYPES else repr(value)}"
             for name, value in kernel.constants]
    scratch = [name for name, _, _ in declared.scratch]
    lines += ["", f"def kernel({', '.join([*names, 'values', *scratch])}):"]
    lines += [f"    {name} = values[{i}]" for i, name in enumerate(declared.integers)]
    lines += [f"    threads = values[{len(declared.integers)}]", "    thread = cuda.grid(1)"]
    lines += [f"    {name}_at = thread * ({count})" for name, _, count in declared.scratch]
    lines += ["    if thread < threads:", f"        for unit in range(thread, {declared.units}, threads):",
              "            first = unit", "            last = unit + 1"]
    return "\n".join([*lines, *(f"            {line}" for line in text.splitlines()), ""])


def threads_of(kernel: RoutineKernel, blocks: Blocks) -> int:
    """How many threads work: at most one for each unit, and no more than have room for their scratch arrays."""
    each = sum(count * np.dtype(dtype).itemsize for _, dtype, count in spec.scratch(kernel))
    room = blocks.scratch // each if each else blocks.most_threads
    return max(1, min(spec.units(kernel), blocks.most_threads, room))


def scratch_sizes(kernel: RoutineKernel, blocks: Blocks) -> list[int]:
    """The bytes of each scratch array for all threads, as multiples of 256."""
    threads = threads_of(kernel, blocks)
    return [-(-threads * count * np.dtype(dtype).itemsize // 256) * 256 for _, dtype, count in spec.scratch(kernel)]
