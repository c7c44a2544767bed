"""Write ../module_names.json, the names that MXNet 1.9.1's modules give: with MXNet's Python.

`star` is what `from MODULE import *` binds, `others` what lives there too; the modules are those of the file.
"""
import importlib
import json
import warnings
from pathlib import Path

PATH = Path(__file__).parents[1] / "module_names.json"


def names(module):
    """(what the star import binds, what else the module has), without the names that Python gives to every module."""
    bound = {}
    exec(f"from {module} import *", bound)
    star = sorted(name for name in bound if not name.startswith("__"))
    others = sorted(name for name in dir(importlib.import_module(module)) if not name.startswith("__"))
    return star, [name for name in others if name not in bound]


def main():
    warnings.simplefilter("ignore")
    rows = []
    for module in json.loads(PATH.read_text()):
        star, others = names(module)
        rows.append(f'{json.dumps(module)}:{{"star":{json.dumps(" ".join(star))},\n'
                    f'"others":{json.dumps(" ".join(others))}}}')
    PATH.write_text("{" + ",\n".join(rows) + "}\n")


if __name__ == "__main__":
    main()
