"""Package discovery for the three source folders that make up the one import package `mxc`."""
from setuptools import find_packages, setup

FOLDERS = {"mxc": "frontend", "mxc.compiler": "compiler", "mxc.runtime": "runtime"}

packages = [name for root, folder in FOLDERS.items()
            for name in [root, *(f"{root}.{inner}" for inner in find_packages(folder))]]
setup(packages=packages, package_dir=FOLDERS)
