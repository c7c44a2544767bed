"""`mxc doctor`: what works on this machine, what is missing, and what to do about it."""
from __future__ import annotations

import argparse
import platform
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata, util

from mxc.cli import machine
from mxc.cli.tables import print_json, print_table
from mxc.compiler import env

DESCRIPTION = """Look at this machine and installation: versions, the CPU and what kernels use of it, threads, the
kernel cache, whether a model compiles and runs, optional packages, and CUDA. Each line says whether that works (ok),
works but could be better (note), is optional and not there (missing) or does not work (failed); below is what to do.
Exit code 1 when something failed."""
EXAMPLES = """
  mxc doctor
  mxc doctor --json"""
OK, NOTE, MISSING, FAILED = "ok", "note", "missing", "failed"
NEEDED = {"numpy": "numpy", "llvmlite": "llvmlite", "numba": "numba", "pyyaml": "yaml", "rich": "rich"}
EXTRAS = {"image": ("pillow", "pictures as inputs, mx.nd.imdecode"), "plot": ("graphviz", "mx.viz.plot_network"),
          "s3": ("s3fs", "files at s3:// URLs"), "hdfs": ("pyarrow", "files at hdfs:// URLs")}
LEAST = (3, 11)


@dataclass(frozen=True)
class Finding:
    """state: OK, NOTE, MISSING or FAILED. found: what is there. advice: what to do, if anything."""

    state: str
    what: str
    found: str
    advice: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc doctor`."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    """Print all findings; 1 when one failed."""
    findings = list(look())
    if options.json:
        print_json({"machine": machine.facts(), "findings": [asdict(each) for each in findings]})
    else:
        print_table(("", "what", "found"), [(each.state, each.what, each.found) for each in findings])
        for each in findings:
            if each.advice:
                print(f"{each.what}: {each.advice}")
    return int(any(each.state == FAILED for each in findings))


def look() -> Iterator[Finding]:
    """All findings, in order."""
    import mxc

    version = platform.python_version()
    enough = sys.version_info[:2] >= LEAST
    yield Finding(OK if enough else FAILED, "Python", version, "" if enough else "install Python 3.11 or later")
    yield Finding(OK, "mxc", f"{mxc.__version__}, {mxc.__path__[0]}")
    packages = [package(name, module) for name, module in NEEDED.items()]
    yield from packages
    works = all(each.state == OK for each in packages)
    if works:
        yield processor()
        yield threads()
        yield cache()
        yield compilation()
    yield from extras()
    yield from cuda(works)


def package(name: str, module: str) -> Finding:
    """Whether a package that mxc needs can be imported."""
    try:
        import_module(module)
        return Finding(OK, name, metadata.version(name))
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == module
        there = "not installed" if absent else f"cannot be imported: {' '.join(str(error).split())}"
        return Finding(FAILED, name, there, f"pip install --upgrade {name}")


def processor() -> Finding:
    """The CPU, and the instructions that kernels are made of."""
    from mxc.runtime.features import vector_form

    name, bits = vector_form()
    found = f"{machine.cpu_name()} ({platform.machine()}); kernels use {name}, vectors of {bits} bits"
    if name == "plain":
        return Finding(NOTE, "CPU", found, "a CPU with AVX2 and FMA, or an ARM one of 64 bits, is many times as fast")
    return Finding(OK, "CPU", found)


def threads() -> Finding:
    """Threads that run models, and what runs them."""
    from mxc.runtime import runner

    facts = machine.facts()
    variable = next((name for name in ("MXC_NUM_THREADS", "OMP_NUM_THREADS") if env.text(name)), "")
    found = f"{facts['threads']} on {facts['cpus']} CPUs" + (f" ({variable})" if variable else "")
    native = runner.is_native() and env.text("MXC_RUNNER") != "portable"
    load = "unknown" if facts["load_average"] is None else f"{facts['load_average']:.2f}"
    found += f", {'native' if native else 'portable'} runner, load average {load}"
    advice = machine.advice(facts)
    if not native:
        advice.append("the native runner, which hands work to threads faster, is there on Linux; unset MXC_RUNNER")
    return Finding(NOTE if advice else OK, "threads", found, "; ".join(advice))


def cache() -> Finding:
    """The kernel cache, and what is wrong with its directory."""
    from mxc.compiler.cache import open_cache

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        opened = open_cache()
    trouble = "; ".join(str(each.message).removeprefix("mxc: ") for each in said)
    if opened is None:
        return Finding(NOTE, "cache", "none: each process compiles anew",
                       trouble or "MXC_CACHE_DIR is empty; set it to a directory of your own, or unset it")
    about = opened.info()
    found = f"{about.path}, {about.entries} kernels, {about.nbytes:,} bytes" + \
        ("" if opened.writable else ", cannot be written to")
    if about.refused:
        damaged = f"{about.refused} files were damaged; `mxc cache prune` removes them"
        trouble = f"{trouble}; {damaged}" if trouble else damaged
    return Finding(NOTE if trouble or not opened.writable else OK, "cache", found, trouble)


def compilation() -> Finding:
    """Whether a small model compiles, runs and is right."""
    import mxc as mx

    try:
        x = mx.sym.Variable("x")
        executor = mx.sym.dot(mx.sym.tanh(x * 2 + 1), x).simple_bind(mx.cpu(), grad_req="null", x=(3, 3))
        executor.arg_dict["x"][:] = 0.5
        (output,) = executor.forward()
        right = abs(float(output.asnumpy().sum()) - 9 * 3 * 0.5 * 0.9640275800758169) < 1e-4
        library = executor.compiled().library
    except Exception as error:  # whatever it is, it is the finding
        return Finding(FAILED, "a model", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
                       "`mxc --debug` with any model shows the traceback; report it")
    if not right:
        return Finding(FAILED, "a model", "it computes wrong numbers", "`mxc verify` any model with --nodes; report it")
    how = f"{library.misses} kernels compiled" if library.misses else "kernels from the cache"
    return Finding(OK, "a model", f"compiles and runs ({how})")


def extras() -> Iterator[Finding]:
    """Optional packages, by the extra that installs them."""
    for extra, (name, use) in EXTRAS.items():
        try:
            yield Finding(OK, f"extra {extra}", f"{name} {metadata.version(name)}: {use}")
        except metadata.PackageNotFoundError:
            yield Finding(MISSING, f"extra {extra}", f"{name} is not installed: {use}",
                          f"pip install 'mxc-compiler[{extra}]'")


def cuda(works: bool) -> Iterator[Finding]:
    """What there is of CUDA. works: whether the rest of mxc does."""
    import ctypes.util

    try:
        version = metadata.version("numba-cuda") if util.find_spec("cuda.core") else ""
    except (ImportError, metadata.PackageNotFoundError):
        version = ""
    found = f"numba-cuda {version}" if version else "numba-cuda is not installed"
    yield Finding(OK if version else MISSING, "extra cuda", f"{found}: kernels for NVIDIA GPUs",
                  "" if version else "pip install 'mxc-compiler[cuda]'")
    driver, count = ctypes.util.find_library("cuda"), 0
    if works:
        from mxc.runtime.context import num_gpus

        count = num_gpus()
    found = f"{f'driver {driver}' if driver else 'no driver'}, {count} that arrays can be put on"
    yield Finding(OK if count else MISSING, "GPUs", found, "" if count else "models run on CPUs: use mx.cpu()")
