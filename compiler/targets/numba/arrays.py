"""Functions over whole arrays (functions/arrays.py) to LLVM IR of the kernels' ABI, by Numba.

Numba checks every index. What the function raises is a status instead of an exception (functions/faults.py). Equal
extents are one run-time integer, so that LLVM sees that a loop over one array's extent stays within another array, and
leaves the checks out.
"""
from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from llvmlite import ir as llvm
from numba import njit
from numba.core import callconv, cgutils, compiler, errors, lowering, types
from numba.core import ir as numba_ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.registry import cpu_target
from numba.core.runtime.context import NRTContext
from numba.core.typed_passes import NativeLowering

from mxc.compiler.error import MXNetError
from mxc.compiler.functions import array_words, faults
from mxc.compiler.kernel.ir import FunctionKernel, bits_of
from mxc.compiler.targets.numba import settings
from mxc.compiler.targets.numba.lowering import _context, flags
from mxc.compiler.targets.numba.messages import MAKES, short

_LAST_LINE = re.compile(r'File "<[^>]*>", line (\d+)')
_NAME = re.compile(r'@"?([\w.$]+)"?')
_DATA = 4  # the place of `data` in what Numba passes of an array: owner, parent, elements, item size, data, shape, ...


class Text(NamedTuple):
    """LLVM IR that defines a kernel. calls: for each function that it calls, the number of the statement that does."""

    ir: str
    calls: dict[str, int]

    def statement_of(self, name: str) -> int:
        """The number of the statement that needs a function, itself or by way of others."""
        used = {head[1]: set(_NAME.findall(body)) for body in re.split(r"^define ", self.ir, flags=re.MULTILINE)[1:]
                if (head := _NAME.search(body)) is not None}
        for called, number in self.calls.items():
            seen, waiting = set[str](), [called]
            while waiting:
                if (found := waiting.pop()) not in seen:
                    seen.add(found)
                    waiting += used.get(found, ())
            if name in seen:
                return number
        return 1


class _Place:
    """Where a lowering is. number: that of the statement. declared: the first statement that needs each function."""

    def __init__(self) -> None:
        self.number = 1
        self.declared: dict[str, int] = {}


class _Convention(callconv.CPUCallConv):
    """Numba's calling convention, with a status in place of the pointer to what an exception is made of."""

    def set_static_user_exc(self, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None,
                            func_name: Any = None) -> None:
        kind = faults.INDEX if exc is IndexError and loc is None else faults.kind_of(exc or Exception)
        self._write(builder, kind)

    def set_dynamic_user_exc(self, *args: Any, **kwargs: Any) -> None:
        raise errors.UnsupportedError("it raises an error whose arguments are computed; expected constants")

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        self._write(builder, faults.OTHER)
        with builder.if_then(builder.not_(self.check_try_status(builder).in_try)):
            self._return_errcode_raw(builder, status.code)

    def _write(self, builder: Any, kind: int) -> None:
        place = self._get_excinfo_argument(builder.function)
        status = llvm.Constant(llvm.IntType(64), (kind << faults.SHIFT) + self.context.place.number)
        builder.store(builder.inttoptr(status, place.type.pointee), place)


class _Memory(NRTContext):  # type: ignore[misc]
    """Numba's memory, which makes no arrays here: all that it gives is what a copy of overlapping parts needs."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("meminfo_") and name != "meminfo_data":
            raise errors.UnsupportedError(MAKES)
        return super().__getattribute__(name)


class _Lower(lowering.Lower):  # type: ignore[misc]
    """Numba's lowering, which says at which statement it is."""

    def lower_inst(self, inst: Any) -> None:
        place = self.context.place
        place.number = self.loc.line  # type: ignore[attr-defined]
        made: Any = getattr(inst, "value", None)
        operation = made.op if isinstance(made, numba_ir.Expr) else ""
        if operation == "call":
            self._check_call(made)
        elif operation == "inplace_binop":
            self._check_extents(made)
        index = inst.index if isinstance(inst, numba_ir.SetItem) else made.index if operation == "getitem" else None
        if index is not None and not _is_plain(self.typeof(index.name)):
            raise errors.UnsupportedError("an array is an index; expected a loop over its elements")
        super().lower_inst(inst)
        for name, value in self.module.globals.items():
            if isinstance(value, llvm.Function) and value.is_declaration:
                place.declared.setdefault(name, place.number)

    def _check_call(self, call: Any) -> None:
        """Refuse calls whose accesses to memory nobody checks. The program's own functions stand inline by now: one
        that does not is called by way of a variable, and would be compiled elsewhere, without checks. NumPy's functions
        write to arrays that they are given, and Numba trusts the extents of these."""
        function = self.typeof(call.func.name)
        if isinstance(function, (types.Dispatcher, types.FunctionType)):
            raise errors.UnsupportedError("it calls a function by way of a variable; expected the function's own name")
        variables = [*call.args, *dict(call.kws).values(), *([call.vararg] if call.vararg else [])]
        given = [self.typeof(v.name) for v in variables]
        is_known = isinstance(function, types.BoundFunction) or (
            isinstance(function, types.Function) and function.typing_key in array_words.TAKE_ARRAYS)
        if not is_known and not all(_is_plain(kind) for kind in given):
            raise errors.UnsupportedError(
                f"it calls {getattr(getattr(function, 'typing_key', function), '__name__', function)} with arrays; "
                f"expected numbers, or one of {', '.join(sorted(array_words.OF_ARRAYS))}")

    def _check_extents(self, expression: Any) -> None:
        """Make code that fails where the arrays of `whole += part` have extents that do not fit: Numba trusts them."""
        whole, part = self.typeof(expression.lhs.name), self.typeof(expression.rhs.name)
        if _is_plain(part) and (_is_plain(whole) or isinstance(whole, types.Array)):
            return
        if not (isinstance(whole, types.Array) and isinstance(part, types.Array)):
            raise errors.UnsupportedError("an array is changed in place that may be None; expected an array")
        if part.ndim > whole.ndim:
            raise errors.UnsupportedError(f"an array of {whole.ndim} axes is changed by one of {part.ndim}")
        builder = self.builder  # type: ignore[attr-defined]
        extents = []
        for variable, kind in ((expression.lhs, whole), (expression.rhs, part)):
            array = self.context.make_array(kind)(self.context, builder, self.loadvar(variable.name))
            extents.append(cgutils.unpack_tuple(builder, array.shape))
        for wanted, found in zip(reversed(extents[0]), reversed(extents[1]), strict=False):
            is_one = builder.icmp_signed("==", found, found.type(1))
            fits = builder.or_(is_one, builder.icmp_signed("==", wanted, found))
            with builder.if_then(builder.not_(fits), likely=False):
                self.context.call_conv.return_user_exc(builder, ValueError, ("",), loc=self.loc)


def _is_plain(kind: Any) -> bool:
    """Whether values of a Numba type have no arrays in them."""
    if isinstance(kind, (types.UniTuple, types.Tuple)):
        return all(_is_plain(part) for part in kind.types)
    if isinstance(kind, types.Optional):
        return _is_plain(kind.type)
    return isinstance(kind, (types.Number, types.Boolean, types.NoneType, types.Omitted, types.Literal, types.DType,
                             types.NumberClass, types.UnicodeType, types.RangeType, types.SliceType,
                             types.EllipsisType))


@register_pass(mutates_CFG=True, analysis_only=False)
class _NativeLowering(NativeLowering):  # type: ignore[misc]
    _name = "mxc_native_lowering"
    lowering_class = _Lower


class _Compiler(compiler.CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        found = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        found.passes = [(_NativeLowering if p is NativeLowering else p, text) for p, text in found.passes]
        found.finalize()
        return [found]


@functools.cache
def _checked_context() -> Any:
    """Numba's context of the CPU with the convention, the memory and the place of these functions."""
    plain = _context()

    class Context(type(plain)):  # type: ignore[misc]
        call_conv = property(_Convention)
        enable_boundscheck = True  # which no setting of Numba's overrides

        def _compile_subroutine_no_cache(self, *args: Any, **given: Any) -> Any:
            """Compiles parts of operations that Numba has in Python; a division by 0 raises nothing in these either."""
            return super()._compile_subroutine_no_cache(*args, **{**given, "flags": given.get("flags") or flags()})

    made = plain.subtarget()
    made.__class__ = Context
    made.cached_internal_func, made.place = {}, _Place()
    made.nrt = _Memory(made, True)
    return made


def _type_of(dtype: str) -> Any:
    return types.boolean if dtype == "bool" else getattr(types, dtype)


def kernel_text(kernel: FunctionKernel, symbol: str) -> Text:
    """The kernel as the function `symbol`, not optimised. Raises MXNetError quoting a line for a function that Numba
    has no types or no code for."""
    function, ranks = kernel.function, [len(shape) for shape in kernel.shapes]
    arrays = {name: types.Array(_type_of(dtype), rank, "C", readonly=i < kernel.inputs)
              for i, (name, dtype, rank) in enumerate(zip(kernel.arrays, kernel.buffers, ranks, strict=False))}
    numbers = [types.boolean if isinstance(n, bool) else types.float64 if isinstance(n, float) else types.int64
               for n in kernel.numbers]
    with global_compiler_lock, settings.fixed():
        context = _checked_context()
        place = context.place
        place.number, place.declared = 1, {}
        try:
            made = function.made(njit(inline="always"))
            result = compiler.compile_extra(cpu_target.typing_context, context, made,
                                            [*(arrays[name] for name in function.arrays), *numbers], types.none,
                                            flags(), {}, pipeline_class=_Compiler)
            result.library.finalize()  # links what Numba itself has in Python
            text = result.library.get_llvm_str()
        except Exception as error:  # Numba's own, and what goes wrong in it
            raise _refusal(kernel, error, place.number) from None
    name = result.fndesc.llvm_func_name
    return Text(_internal(text, name) + _wrapper(kernel, name, symbol), place.declared)


def _refusal(kernel: FunctionKernel, error: Exception, number: int) -> MXNetError:
    text = str(error)
    found = _LAST_LINE.findall(text)
    shapes = ", ".join(f"{name} has the shape {shape}" for name, shape in zip(kernel.arrays, kernel.shapes,
                                                                              strict=True))
    what = short(text) if isinstance(error, errors.NumbaError) else f"Numba fails on it: {type(error).__name__}, {text}"
    return kernel.function.error(f"it cannot be compiled: {what} ({shapes})",
                                 int(found[-1]) if found else number)


def _internal(text: str, name: str) -> str:
    """Numba's module with functions that only this kernel uses, arrays that do not overlap, and C's memory."""
    text = re.sub(r"= common (dso_local )?global ", "= internal global ", text)
    text = re.sub(r"^define (linkonce_odr |dso_local |hidden )*", "define internal ", text, flags=re.MULTILINE)
    text = re.sub(r"store ptr @\.const\.picklebuf[^,]*,", "store ptr null,", text)  # of functions of Numba's own
    text = re.sub(r'"target-(cpu|features)"="[^"]*"', "", text)  # of functions of Numba's own, which are for this CPU
    text = re.sub(r"@numba_(gamma|frexp|ldexp|nextafter)(f?)\b", lambda m: f"@{_OF_C.get(m[1], m[1])}{m[2]}", text)
    # The function that would put the shapes that do not fit into a text just fails: the status says where.
    text = _replaced(text, r"\w*raise_with_shape_context\w*", r"\1  ret i32 1\n}")
    head = re.search(rf"^define internal i32 @{re.escape(name)}\(.*$", text, re.MULTILINE)
    assert head is not None, name
    line = re.sub(rf"ptr (%arg\.\w+\.{_DATA})\b", r"ptr noalias \1", head[0])
    line = re.sub(r"\)([^)]*)\{$", r") alwaysinline \1{", line)
    text = text[:head.start()] + line + text[head.end():]
    for declared, body in _MEMORY.items():
        if f"@{declared}(" in text:
            text = re.sub(rf"^declare [^\n]*@{declared}\([^\n]*$", "", text, flags=re.MULTILINE)
            text = _replaced(text, declared, "") + body
    return text if "@llvm.memset.p0.i64(" in text else f"{text}\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"


def _replaced(text: str, name: str, by: str) -> str:
    """The text with other definitions of the functions of that name (a regular expression); \\1 is the first line."""
    return re.sub(rf"(^define [^\n]*@{name}\([^\n]*\{{\n).*?^\}}", by, text, flags=re.MULTILINE | re.DOTALL)


_OF_C = {"gamma": "tgamma"}  # the others have C's names
_MEMORY = {  # a kernel owns no arrays, so counts of who refers to them are never read
    "NRT_incref": "\ndefine internal void @NRT_incref(ptr %p) alwaysinline {\n  ret void\n}\n",
    "NRT_decref": "\ndefine internal void @NRT_decref(ptr %p) alwaysinline {\n  ret void\n}\n",
    "NRT_Allocate": "\ndeclare noalias ptr @malloc(i64)\ndefine internal noalias ptr @NRT_Allocate(i64 %n) "
                    "alwaysinline {\n  %p = call ptr @malloc(i64 %n)\n  ret ptr %p\n}\n",
    # numpy.max and numpy.min look at one element as an array of one axis
    "numba_attempt_nocopy_reshape":
        "\ndefine internal i32 @numba_attempt_nocopy_reshape(i64 %nd, ptr %dims, ptr %strides, i64 %newnd, "
        "ptr %newdims, ptr %newstrides, i64 %itemsize, i32 %fortran) alwaysinline {\n"
        "  %element = icmp eq i64 %nd, 0\n  %line = icmp eq i64 %newnd, 1\n  %is = and i1 %element, %line\n"
        "  br i1 %is, label %yes, label %no\nyes:\n  store i64 %itemsize, ptr %newstrides\n  ret i32 1\n"
        "no:\n  ret i32 0\n}\n",
    "NRT_Free": "\ndeclare void @free(ptr)\ndefine internal void @NRT_Free(ptr %p) alwaysinline {\n"
                "  call void @free(ptr %p)\n  ret void\n}\n",
}


def _wrapper(kernel: FunctionKernel, name: str, symbol: str) -> str:
    """The kernel `symbol`: it makes the outputs zeros, calls the function, and writes the status. Its usual numbers
    have code of their own."""
    lines: list[str] = []

    def argument(position: int, kind: str, to: str) -> str:
        lines.append(f"  {to}.at = getelementptr i64, ptr %args, i64 {position}")
        lines.append(f"  {to} = load {kind}, ptr {to}.at")
        return to

    count = len(kernel.buffers)
    data = [argument(i, "ptr", f"%b{i}") for i in range(count)]
    extents = [argument(count + i, "i64", f"%e{i}") for i in range(len(kernel.extents()))]
    bits = [argument(count + len(extents) + i, "i64", f"%n{i}") for i in range(len(kernel.numbers))]
    given: dict[str, list[str]] = {}
    for i, (array, places) in enumerate(zip(kernel.arrays, kernel.pattern(), strict=True)):
        size = _type_of(kernel.buffers[i]).bitwidth // 8 if kernel.buffers[i] != "bool" else 1
        strides = [str(size)]
        for axis, place in enumerate(reversed(places)):
            lines.append(f"  %s{i}.{axis} = mul nsw i64 {strides[0]}, {extents[place]}")
            strides.insert(0, f"%s{i}.{axis}")
        lines.append(f"  %c{i} = sdiv exact i64 {strides[0]}, {size}")
        if i >= kernel.inputs:
            lines.append(f"  call void @llvm.memset.p0.i64(ptr {data[i]}, i8 0, i64 {strides[0]}, i1 false)")
        given[array] = ["ptr null", "ptr null", f"i64 %c{i}", f"i64 {size}", f"ptr {data[i]}",
                        *(f"i64 {extents[p]}" for p in places), *(f"i64 {s}" for s in strides[1:])]
    arrays = [text for array in kernel.function.arrays for text in given[array]]
    kinds = ["i8" if isinstance(n, bool) else "double" if isinstance(n, float) else "i64" for n in kernel.numbers]
    for i, kind in enumerate(kinds):
        how = {"i8": f"trunc i64 {bits[i]} to i8", "double": f"bitcast i64 {bits[i]} to double"}
        lines.append(f"  %v{i} = {how.get(kind, f'add i64 {bits[i]}, 0')}")
    same, usual = _usual_numbers(kernel, kinds, bits, lines)
    other = [f"{kind} %v{i}" for i, kind in enumerate(kinds)]
    body = "\n".join(lines)
    return f"""
define void @{symbol}(ptr noundef %args, i64 noundef %first, i64 noundef %last, ptr noundef %scratch) {{
  %result = alloca ptr
  %exception = alloca ptr
  store ptr null, ptr %exception
{body}
  br i1 {same}, label %usual, label %other
usual:
  %r1 = call i32 @{name}(ptr %result, ptr %exception, {', '.join([*arrays, *usual])})
  br label %end
other:
  %r2 = call i32 @{name}(ptr %result, ptr %exception, {', '.join([*arrays, *other])})
  br label %end
end:
  %r = phi i32 [%r1, %usual], [%r2, %other]
  %raised = icmp ne i32 %r, 0
  %what = load i64, ptr %exception
  %status = select i1 %raised, i64 %what, i64 0
  store i64 %status, ptr {data[-1]}
  ret void
}}
"""


def _usual_numbers(kernel: FunctionKernel, kinds: list[str], bits: list[str],
                   lines: list[str]) -> tuple[str, list[str]]:
    """The condition, made by `lines`, that the numbers given (their `bits`) are the kernel's usual ones, and the
    arguments that these are; "false" where there are none."""
    if not kernel.usual:
        return "false", [f"{kind} undef" for kind in kinds]
    same, usual = "true", []
    for i, (kind, number) in enumerate(zip(kinds, kernel.usual, strict=True)):
        lines += [f"  %q{i} = icmp eq i64 {bits[i]}, {bits_of(number)}", f"  %a{i} = and i1 {same}, %q{i}"]
        same = f"%a{i}"
        hexadecimal = f"0x{bits_of(number) & (1 << 64) - 1:016X}"
        usual.append(f"{kind} {hexadecimal if kind == 'double' else int(number)}")
    return same, usual
