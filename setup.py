"""Package discovery for the three source folders that make up the one import package `mxc`.

An editable installation (`pip install -e .`, what `make` does) is strict: `build/` gets a folder `mxc` with a link to
each source file, so that type checkers and editors, which run no import hooks, find the package where Python finds it.
A file that comes, goes or is renamed needs a new installation; `make` sees that.
"""
from setuptools import find_packages, setup

FOLDERS = {"mxc": "frontend", "mxc.compiler": "compiler", "mxc.runtime": "runtime"}

packages = [name for root, folder in FOLDERS.items()
            for name in [root, *(f"{root}.{inner}" for inner in find_packages(folder))]]
setup(packages=packages, package_dir=FOLDERS, options={"editable_wheel": {"mode": "strict"}})
