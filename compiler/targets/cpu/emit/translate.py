"""From the typed source of kernels (loops.py, routines.py) to LLVM IR.

The source is a part of Python: constants, then one function of assignments, `for` over range, `while` and `if` on typed
scalars and buffers, whose other words vocabulary.py defines. Integers have 64 bits unless they are cast; `//` and `%`
are Python's, but give 0 for a zero divisor; floats are contracted and otherwise computed as written. A name has one
dtype in the whole function: that of its first value, or one that holds all the values that it is given.
"""
from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import functions
from mxc.compiler.system import syntax
from mxc.compiler.targets.cpu.build.jobs import Job
from mxc.compiler.targets.cpu.emit.builder import Value
from mxc.compiler.targets.cpu.emit.typed import Buffer, Steps, Typed, promoted
from mxc.compiler.targets.cpu.emit.vocabulary import buffer_at, operation, scratch_at, words
from mxc.compiler.targets.cpu.library.arithmetic import register_type
from mxc.compiler.targets.cpu.library.product import with_products
from mxc.compiler.targets.cpu.machine.isa import Isa, fitting

PARAMETERS = "ptr noundef args, i64 noundef first, i64 noundef last, ptr noundef scratch"
BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
          ast.BitAnd: "bitand", ast.BitOr: "bitor", ast.BitXor: "bitxor", ast.LShift: "shl", ast.RShift: "shr"}
COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}


def translated(job: Job, features: str) -> str:
    """LLVM IR of a job in typed source, not optimised, that defines its symbol for CPUs with `features` (LLVM's names).
    Raises MXNetError naming the kernel for what is not of the language."""
    module = syntax.parse(job.text)
    isa = fitting(features)
    dtypes: dict[str, str] = {}
    while True:
        function = _Function(job, isa, dtypes)
        try:
            function.module(module)
            break
        except _Widened as again:
            dtypes[again.name] = again.dtype
        except (MXNetError, TypeError, ValueError, KeyError) as error:
            raise MXNetError(f"kernel {job.name}, line {function.line}: {error}\n{job.text}") from error
    return with_products(function.steps.b.module() + function.steps.metadata(), isa, function.steps.products)


class _Widened(Exception):
    """`name` needs another dtype than it was first given."""

    def __init__(self, name: str, dtype: str):
        super().__init__(name)
        self.name, self.dtype = name, dtype


class _Function:
    """One translation. dtypes: those of names that were found to need another one than that of their first value."""

    def __init__(self, job: Job, isa: Isa, dtypes: Mapping[str, str]):
        self.job, self.dtypes, self.line = job, dtypes, 0
        self.steps = Steps(isa, len(job.buffers) + len(job.scratch))
        self.b = self.steps.b
        self.names: dict[str, Any] = dict(words())  # words, buffers and constants
        self.slots: dict[str, tuple[Value, str]] = {}  # variables: memory, which LLVM makes registers of
        for i, dtype in enumerate(job.buffers):
            self.names[f"buffer{i}"] = buffer_at(dtype, i)
        for i, (dtype, _) in enumerate(job.scratch):
            self.names[f"scratch{i}"] = scratch_at(dtype, len(job.buffers) + i)

    def module(self, tree: ast.Module) -> None:
        for node in tree.body:
            self.line = node.lineno
            if isinstance(node, ast.FunctionDef):
                with self.b.function(self.job.symbol, PARAMETERS) as (args, first, last, scratch):
                    self.names |= {"args": Typed(args, "args"), "scratch": Typed(scratch, "scratch"),
                                   "first": Typed(first, "int64"), "last": Typed(last, "int64")}
                    self.block(node.body)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.names[node.targets[0].id] = self.constant(node.value)
            else:
                raise MXNetError(f"{ast.unparse(node)} is not of the language")

    def constant(self, node: ast.expr) -> Any:
        """The value of a constant: a typed number, or a word."""
        if isinstance(node, ast.Call):  # a dtype called with a number, or with the text of one that has no literal
            number = float(node.args[0].value) if isinstance(node.args[0], ast.Constant) and isinstance(
                node.args[0].value, str) else ast.literal_eval(node.args[0])
            return self.steps.number(number, ast.unparse(node.func))
        if isinstance(node, ast.Name):
            return self.names[node.id]
        return self.literal(ast.literal_eval(node))

    def literal(self, number: bool | float) -> Typed:
        dtype = {bool: "bool", int: "int64", float: "float64"}[type(number)]
        return self.steps.number(number, dtype)

    # --- statements

    def block(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            self.line = node.lineno
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            self.assign(node.targets[0], node.value)
        elif isinstance(node, ast.AugAssign):
            old = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)  # type: ignore[arg-type]
            self.assign(node.target, old)
        elif isinstance(node, ast.For):
            self.loop(node)
        elif isinstance(node, ast.While):
            self.b.repeat(lambda: self.truth(node.test), lambda: self.block(node.body))
        elif isinstance(node, ast.If):
            if node.orelse:
                self.b.either(self.truth(node.test), lambda: self.block(node.body), lambda: self.block(node.orelse))
            else:
                with self.b.when(self.truth(node.test)):
                    self.block(node.body)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.call(node.value)
        elif not isinstance(node, ast.Pass):
            raise MXNetError(f"{ast.unparse(node)} is not of the language")

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            assert isinstance(value, ast.Tuple)
            found = [self.expression(v) for v in value.elts]
            for name, one in zip(target.elts, found, strict=True):
                self.put(name, one)
        else:
            self.put(target, self.expression(value))

    def put(self, target: ast.expr, x: Any) -> None:
        if isinstance(target, ast.Subscript):
            buffer, index = self.element(target)
            self.steps.store(buffer, index, x)
            return
        assert isinstance(target, ast.Name)
        if isinstance(x, Typed):
            self.keep(target.id, x)
        else:
            self.names[target.id] = x

    def keep(self, name: str, x: Typed) -> None:
        if name not in self.slots:
            dtype = self.dtypes.get(name, x.dtype)
            self.slots[name] = self.b.local(register_type(dtype)), dtype
        slot, dtype = self.slots[name]
        if x.dtype != dtype and name not in self.dtypes:
            raise _Widened(name, promoted(x.dtype, dtype))
        value = self.steps.cast(x, dtype).value
        self.b.raw(f"store {value.type} {value.text}, ptr {slot.text}")

    def loop(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)
        bounds = [self.steps.whole(self.expression(a)) for a in node.iter.args]
        start, stop = bounds[:2] if len(bounds) > 1 else (self.b.number(0), bounds[0])
        for counter in self.b.range(start, stop, bounds[2] if len(bounds) > 2 else 1):
            self.keep(node.target.id, Typed(counter, "int64"))
            self.block(node.body)

    # --- expressions

    def truth(self, node: ast.expr) -> Value:
        return self.steps.truth(self.expression(node))

    def expression(self, node: ast.expr) -> Any:
        """A Typed, or a word, or a buffer."""
        method = getattr(self, "of_" + type(node).__name__, None)
        if method is None:
            raise MXNetError(f"{ast.unparse(node)} is not of the language")
        return method(node)

    def of_Constant(self, node: ast.Constant) -> Typed:
        return self.literal(node.value)  # type: ignore[arg-type]

    def of_Name(self, node: ast.Name) -> Any:
        if node.id in self.slots:
            return self.variable(node.id)
        if functions.find(node.id.removesuffix("_")) is not None:
            return operation(node.id.removesuffix("_"))
        if node.id not in self.names:
            raise MXNetError(f"{node.id} is no word of the language and was given no value")
        return self.names[node.id]

    def variable(self, name: str) -> Typed:
        slot, dtype = self.slots[name]
        kind = register_type(dtype)
        return Typed(self.b.emit(kind, f"load {kind}, ptr {slot.text}"), dtype)

    def of_BinOp(self, node: ast.BinOp) -> Typed:
        if isinstance(node.op, ast.Pow):  # of numbers
            return self.literal(ast.literal_eval(node.left) ** ast.literal_eval(node.right))
        return self.steps.binary(BINARY[type(node.op)], self.expression(node.left), self.expression(node.right))

    def of_UnaryOp(self, node: ast.UnaryOp) -> Typed:
        if isinstance(node.op, ast.Not):
            return Typed(self.b.negate(self.truth(node.operand)), "bool")
        if isinstance(node.operand, ast.Constant):
            return self.literal(ast.literal_eval(node))
        return self.steps.negative(self.expression(node.operand))

    def of_Compare(self, node: ast.Compare) -> Typed:
        values = [self.expression(v) for v in (node.left, *node.comparators)]
        results = [self.steps.compare(COMPARE[type(op)], x, y).value
                   for op, x, y in zip(node.ops, values, values[1:], strict=False)]
        total = results[0]
        for result in results[1:]:
            total = total & result
        return Typed(total, "bool")

    def of_BoolOp(self, node: ast.BoolOp) -> Typed:
        """The right side runs only where it decides, if it may read memory."""
        total = self.truth(node.values[0])
        for right in node.values[1:]:
            total = self.joined(isinstance(node.op, ast.And), total, right)
        return Typed(total, "bool")

    def joined(self, is_and: bool, left: Value, right: ast.expr) -> Value:
        def known() -> Value:
            return self.b.number(not is_and, "i1")

        def rest() -> Value:
            return self.truth(right)

        if not _reads(right):
            return self.b.binary("and" if is_and else "or", left, rest())
        return self.b.choose(left, rest, known) if is_and else self.b.choose(left, known, rest)

    def of_IfExp(self, node: ast.IfExp) -> Typed:
        condition = self.truth(node.test)
        if not _reads(node.body) and not _reads(node.orelse):
            x, y = self.expression(node.body), self.expression(node.orelse)
            x, y, dtype = self.steps.both(x, y, x.dtype if x.dtype == y.dtype else "")
            return Typed(self.b.select(condition, x, y), dtype)
        name = f"value of node {id(node)}"  # a variable of its own, so that both sides get one dtype
        self.b.either(condition, lambda: self.keep(name, self.expression(node.body)),
                      lambda: self.keep(name, self.expression(node.orelse)))
        return self.variable(name)

    def of_Subscript(self, node: ast.Subscript) -> Typed:
        return self.steps.load(*self.element(node))

    def element(self, node: ast.Subscript) -> tuple[Buffer, Value]:
        buffer = self.expression(node.value)
        if not isinstance(buffer, Buffer):
            raise MXNetError(f"{ast.unparse(node.value)} is no buffer")
        return buffer, self.steps.whole(self.expression(node.slice))

    def of_Call(self, node: ast.Call) -> Any:
        return self.call(node)

    def call(self, node: ast.Call) -> Any:
        word = self.expression(node.func)
        if not callable(word):
            raise MXNetError(f"{ast.unparse(node.func)} cannot be called")
        return word(self.steps, *[self.expression(a) for a in node.args])


def _reads(node: ast.expr) -> bool:
    """Whether an expression may read memory."""
    return any(isinstance(n, ast.Subscript) for n in ast.walk(node))
