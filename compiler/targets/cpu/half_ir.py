"""float16 conversions for CPUs without the instructions: what LLVM calls there, defined in the object itself.

Rounding is to nearest, ties to even; denormals, infinities and NaN are kept.
"""
from __future__ import annotations

CONVERSIONS = """
@llvm.used = appending global [2 x ptr] [ptr @__extendhfsf2, ptr @__truncsfhf2], section "llvm.metadata"

define weak_odr float @__extendhfsf2(half %x) nounwind {
  %h = bitcast half %x to i16
  %w = zext i16 %h to i32
  %s = and i32 %w, 32768
  %sign = shl i32 %s, 16
  %size = and i32 %w, 32767
  %moved = shl i32 %size, 13
  %small = bitcast i32 %moved to float
  %value = fmul float %small, 0x46F0000000000000     ; 2^112: denormals become normal, exactly
  %bits = bitcast float %value to i32
  %special = icmp uge i32 %size, 31744
  %top = select i1 %special, i32 2139095040, i32 0
  %all = or i32 %bits, %top
  %signed = or i32 %all, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}

define weak_odr half @__truncsfhf2(float %x) nounwind {
  %w = bitcast float %x to i32
  %size = and i32 %w, 2147483647
  %s = lshr i32 %w, 16
  %sign = and i32 %s, 32768
  %f = bitcast i32 %size to float
  %sum = fadd float %f, 5.000000e-01                 ; leaves a denormal's bits at the bottom, rounded
  %sumbits = bitcast float %sum to i32
  %denormal = sub i32 %sumbits, 1056964608
  %up = lshr i32 %size, 13
  %odd = and i32 %up, 1
  %half = add i32 %size, 4095
  %rounded = add i32 %half, %odd
  %rebiased = sub i32 %rounded, 939524096
  %normal = lshr i32 %rebiased, 13
  %istiny = icmp ult i32 %size, 947912704            ; below 2^-14
  %a = select i1 %istiny, i32 %denormal, i32 %normal
  %isbig = icmp uge i32 %size, 1199570944            ; from 65536 on: infinity
  %b = select i1 %isbig, i32 31744, i32 %a
  %isnan = icmp ugt i32 %size, 2139095040
  %c = select i1 %isnan, i32 32256, i32 %b
  %signed = or i32 %c, %sign
  %low = trunc i32 %signed to i16
  %result = bitcast i16 %low to half
  ret half %result
}
"""


def conversions_for(triple: str, features: str) -> str:
    """IR text that a module with float16 needs on this CPU: "" where it converts in hardware."""
    return CONVERSIONS if triple.startswith("x86_64") and "+f16c" not in features.split(",") else ""
