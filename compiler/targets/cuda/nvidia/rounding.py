"""What NVIDIA's libraries may do beyond the rounding of each dtype."""
from __future__ import annotations

from dataclasses import dataclass

from mxc.compiler.system import env


@dataclass(frozen=True)
class Rounding:
    """tf32: float32 may be rounded to TF32 for tensor cores. strict: convolutions are direct ones."""

    tf32: bool = False
    strict: bool = False

    @classmethod
    def asked_for(cls) -> Rounding:
        """What the environment asks for."""
        return cls(env.tf32(), env.flag("MXC_STRICT"))
