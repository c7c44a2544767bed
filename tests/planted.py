"""A fault planted in one kernel of the compiler: a constant of the kernel that makes a node's value is another one.

    PYTHONPATH=tests python -c 'import planted; planted.plant("act", {0.0: 0.05}); ...'

It stays for the whole process. Plans that are made with it must not get into the cache of right ones.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mxc.compiler.kernel.ir import INDEX, CallKernel, LoopKernel, Store, Value, make
from mxc.compiler.lowering.lower_group import GroupLowering


def changed(value: Value, constants: Mapping[float, float], known: dict[Value, Value]) -> Value:
    """The value with other constants."""
    if value not in known:
        if value.op == "const" and value.dtype != INDEX and value.data in constants:
            known[value] = make("const", (), value.dtype, constants[value.data])
        else:
            known[value] = make(value.op, [changed(v, constants, known) for v in value.args], value.dtype, value.data)
    return known[value]


def plant(node: str, constants: Mapping[float, float]) -> None:
    """Each kernel that is made from now on of that node and others has these constants in place of others. node: its
    name behind the passes."""
    real = GroupLowering.kernel

    def kernel(self: GroupLowering, targets: Any) -> LoopKernel | CallKernel:
        made = real(self, targets)
        if "+" not in self.group.label or all(each.name != node for each in self.group.nodes):
            return made
        known: dict[Value, Value] = {}
        stores = tuple(Store(s.buffer, s.index, changed(s.value, constants, known), s.mode) for s in made.stores)
        return replace(made, stores=stores)

    GroupLowering.kernel = kernel  # type: ignore[method-assign]
