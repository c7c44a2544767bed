"""Programs of the repository that belong to no package, as modules: examples, and the networks of bench/cases."""
from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def load(place: str) -> ModuleType:
    """A file of the repository as a module. place: its path from the root."""
    spec = importlib.util.spec_from_file_location(Path(place).stem, ROOT / place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


vision, others = load("bench/cases/vision.py"), load("bench/cases/others.py")
