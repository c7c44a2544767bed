"""Golden cases of other modules with a parameter that there is not: one of every operator that has parameters."""
from __future__ import annotations

from dataclasses import replace

from golden.cases import Case, modules
from golden.dtypes import DERIVED


def cases() -> list[Case]:
    first: dict[str, Case] = {}
    for name, module in modules("cases").items():
        for case in module.cases() if name not in DERIVED else ():
            if case.attrs:
                first.setdefault(case.op, case)
    return [replace(case, name=f"{case.op}-unknown_parameter", attrs={**case.attrs, "no_such_parameter": "1"})
            for case in first.values()]
