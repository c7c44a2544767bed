"""Whether the package that tests import has every source file of the checkout: `make` installs links to them."""
from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = {"frontend": ".", "compiler": "compiler", "runtime": "runtime"}  # folders of the package by the checkout's


def package() -> Path | None:
    """The folder that `import mxc` finds, or None; mxc is not imported."""
    spec = importlib.util.find_spec("mxc")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def complaint(found: Path | None, root: Path = ROOT) -> str:
    """What is wrong with the package in that folder, "" if nothing is: no link to a source file, or no package.

    Of a package that was not made of this checkout, such as a wheel's, there is nothing to say, nor of the folders
    themselves, which are imported where an installation is not strict.
    """
    if found is None:
        return "mxc is not installed in this Python: run make, and use the Python in the environment that it makes"
    if found == root / "frontend" or (found / "__init__.py").resolve() != root / "frontend" / "__init__.py":
        return ""
    missing = [path for folder, place in PLACES.items() for path in sorted((root / folder).rglob("*.py"))
               if not (found / place / path.relative_to(root / folder)).exists()]
    if not missing:
        return ""
    names = ", ".join(str(path.relative_to(root)) for path in missing[:3])
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    return f"{names}{more}: cannot be imported as mxc yet, since the list of source files changed: run make"
