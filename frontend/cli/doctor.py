"""`mxc doctor`: what works on this machine, what is missing, and what to do about it."""
from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from mxc.cli import machine, requirements
from mxc.cli.requirements import Declared, Requirement
from mxc.cli.tables import print_json, print_table
from mxc.compiler import targets
from mxc.compiler.error import SettingError
from mxc.compiler.system import env

DESCRIPTION = """Look at this machine and installation: versions, the CPU and what kernels use of it, threads, the
kernel cache, whether a model compiles and runs, optional packages, and CUDA. Each line says whether that works (ok),
works but could be better (note), is optional and not there or cannot be imported (missing), or does not work (failed);
below is what to do.
Exit code 1 when something that mxc needs failed: Python, a required package, the generator of code, or the model. Where
llvmlite and Numba are not installed, artifacts run and nothing is compiled: then all but NumPy counts as left out."""
EXAMPLES = """
  mxc doctor
  mxc doctor --json"""
LEFT_OUT = {  # required packages that artifacts run without, and what cannot be done then
    "llvmlite": "models are not compiled", "numba": "operators of a program's own are not compiled",
    "pyyaml": "graphs are not read, and there are no operators: no mx.sym, no mx.nd",
    "rich": "no colours, and no progress on terminals",
}
IMPORT_SECONDS = 60  # seconds after which an import is taken to hang; all of them together take less than 2
OK, NOTE, MISSING, FAILED = "ok", "note", "missing", "failed"
LIBRARIES = ("nvmath-python", "nvidia-cublas", "nvidia-cudnn-frontend", "nvidia-cudnn-cu13")  # of the extra `cuda`
EXTRAS = {  # name, what it is for, and the modules of it that mxc imports; a second word: a part of the extra
    "image": ("pictures as inputs, mx.image", ("cv2",)), "plot": ("mx.viz.plot_network", ("graphviz",)),
    "scipy": ("csr arrays as SciPy's", ("scipy.sparse",)),
    "s3": ("files at s3:// URLs", ("fsspec", "s3fs")), "hdfs": ("files at hdfs:// URLs", ("fsspec", "pyarrow.fs")),
    "onnx": ("ONNX models", ("onnx",)), "safetensors": ("parameters in .safetensors", ("safetensors",)),
    "dist": ("training in several processes", ("ray",)),
    "cuda": ("kernels for NVIDIA GPUs", ("numba_cuda", "cuda.core")),
    "cuda libraries": ("cuBLASLt and cuDNN where they are faster on GPUs", ("nvmath.bindings.cublasLt", "cudnn")),
    "nccl": ("sums over several GPUs", ("nccl.bindings.nccl",)),
}
# Imports the modules that it is given, and prints a line of JSON for each: its name, and why it cannot be imported.
IMPORTS = """import importlib, json, sys
sys.stdout = sys.stderr
for name in sys.argv[1:]:
    reason = ""
    try:
        importlib.import_module(name)
    except Exception as error:
        reason = str(error) or type(error).__name__
    print(json.dumps([name, reason]), file=sys.__stdout__, flush=True)
"""


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
    """All findings, in order. Each check is made whatever the others found."""
    import mxc

    folder = Path(mxc.__path__[0])
    declared = requirements.declared(folder)
    imported = imports(declared)
    yield python(declared)
    yield Finding(OK, "mxc", f"{mxc.VERSION}, {folder}")
    if declared is None:
        yield Finding(NOTE, "packages", "which are required is not known: there are no metadata of mxc-compiler",
                      "install mxc, as with `pip install .` in its checkout")
        declared = Declared("", ())
    whole = any(map(requirements.installed, ("llvmlite", "numba")))
    yield from (package(each, whole) for each in declared.of())
    checks = {"CPU": processor, "code generators": generators, "threads": threads, "cache": cache,
              "a model": compilation}
    if not whole:
        checks |= {"CPU": level, "code generators": no_generators, "a model": no_compilation}
    for what, check in checks.items():
        yield attempt(what, check)
    reasons = imported()
    for name, (use, modules) in EXTRAS.items():
        yield extra(name, use, wanted_by(name, declared), {each: reasons[each] for each in modules if each in reasons})
    yield attempt("GPUs", gpus)


def attempt(what: str, check: Callable[[], Finding]) -> Finding:
    """What a check finds; a note when it cannot be made, as where a package is missing that it imports."""
    try:
        return check()
    except Exception as error:  # whatever it is, it is the finding
        return Finding(NOTE, what, f"not known: {type(error).__name__}: {' '.join(str(error).split())}")


def python(declared: Declared | None) -> Finding:
    """The version of Python, and whether it is among those that mxc runs on."""
    version, wanted = platform.python_version(), declared.python if declared else ""
    if requirements.meets(version, wanted):
        return Finding(OK, "Python", version)
    return Finding(FAILED, "Python", f"{version} (needs {wanted})", f"install mxc in a Python {wanted}")


def package(required: Requirement, whole: bool) -> Finding:
    """Whether a package that mxc needs is there, in a version that is enough, and can be imported. whole: else this
    environment runs artifacts alone, and may lack some."""
    if not whole and required.name in LEFT_OUT and requirements.installed(required.name) is None:
        return Finding(MISSING, required.name, f"left out{requirements.needs(required)}: {LEFT_OUT[required.name]}")
    fault = requirements.fault(required)
    if fault:
        return Finding(FAILED, required.name, *fault)
    return Finding(OK, required.name, f"{requirements.installed(required.name)}{requirements.needs(required)}")


def processor() -> Finding:
    """The CPU, and the instructions that kernels are made of."""
    from mxc.runtime.features import vector_form

    name, bits = vector_form()
    found = f"{machine.cpu_name()} ({platform.machine()}); kernels use {name}, vectors of {bits} bits"
    if name == "plain":
        return Finding(NOTE, "CPU", found, "a CPU with AVX2 and FMA, or an ARM one of 64 bits, is many times as fast")
    return Finding(OK, "CPU", found)


def level() -> Finding:
    """The CPU, and which artifacts it runs, without LLVM."""
    from mxc.runtime.features import cpu_level

    name, found = f"{machine.cpu_name()} ({platform.machine()})", cpu_level()
    return Finding(OK, "CPU", f"{name}; it runs what `mxc compile --target cpu:{found}` makes" if found else name)


def no_generators() -> Finding:
    """What makes kernels' code where what does was left out."""
    return Finding(MISSING, "code generators", "left out: kernels are those of artifacts")


def no_compilation() -> Finding:
    """Whether a model compiles where the compiler was left out."""
    return Finding(MISSING, "a model", "not compiled: artifacts (`mxc compile -o NAME.mxc`) run here, and nothing else",
                   "to compile models here, install mxc with all that it requires: pip install mxc-compiler")


def generators() -> Finding:
    """What makes kernels' code, which of them is in use, and whether Numba can be."""
    from mxc.runtime.features import code_generator, code_generators, numba_fault

    what, version = "code generators", requirements.installed("numba")
    try:
        used = code_generator()
    except SettingError as error:
        return Finding(FAILED, what, str(error), "set MXC_CODEGEN to one of these, or unset it")
    names = code_generators()
    found = ", ".join(f"{name} ({about}{f' {version}' if name == 'numba' and version else ''})"
                      for name, about in names.items())
    found = f"{found}; in use: {used}"
    fault, advice = numba_fault()
    if not fault:
        return Finding(OK, what, found)
    if used == "numba":
        return Finding(FAILED, what, f"{found}; {fault}", f"{advice}; or unset MXC_CODEGEN")
    return Finding(NOTE, what, f"{found}; {fault}", f"{advice}: some operators of a program's own need it")


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
    refused = opened.refusal() if opened.writable else ""
    found = f"{about.path}, {about.entries} kernels, {about.nbytes:,} bytes" + \
        ("" if opened.writable and not refused else ", cannot be written to")
    if refused:
        free = shutil.disk_usage(about.path).free
        full = (f"{about.path}: {refused} ({free:,} bytes are free): free some space, as with `mxc cache prune --size "
                "500M`, or set MXC_CACHE_DIR to a directory on another disk; kernels are compiled in each process")
        trouble = f"{trouble}; {full}" if trouble else full
    if about.refused:
        damaged = f"{about.refused} files were damaged; `mxc cache prune` removes them"
        trouble = f"{trouble}; {damaged}" if trouble else damaged
    return Finding(NOTE if trouble or not opened.writable else OK, "cache", found, trouble)


def compilation() -> Finding:
    """Whether a small model compiles, runs and is right."""
    try:
        import mxc as mx

        x = mx.sym.Variable("x")
        executor = mx.sym.dot(mx.sym.tanh(x * 2 + 1), x).simple_bind(mx.cpu(), grad_req="null", x=(3, 3))
        executor.arg_dict["x"][:] = 0.5
        (output,) = executor.forward()
        right = abs(float(output.asnumpy().sum()) - 9 * 3 * 0.5 * 0.9640275800758169) < 1e-4
        library = executor.compiled().library
    except Exception as error:  # whatever it is, it is the finding
        return Finding(FAILED, "a model", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
                       "mend what is above first; else `mxc --debug` with any model shows the traceback: report it")
    if not right:
        return Finding(FAILED, "a model", "it computes wrong numbers", "`mxc verify` any model with --nodes; report it")
    how = f"{library.misses} kernels compiled" if library.misses else "kernels from the cache"
    return Finding(OK, "a model", f"compiles and runs ({how})")


def imports(declared: Declared | None) -> Callable[[], dict[str, str]]:
    """Starts to import the modules of the extras that are there, in a process of its own while doctor looks at other
    things: together they take as long as all else. What it returns waits for that, and tells by the module why it
    cannot be imported."""
    there = [modules for name, (_, modules) in EXTRAS.items()
             if declared and not any(reason for each in wanted_by(name, declared)
                                     for reason in requirements.lacking(each))]
    wanted = list(dict.fromkeys(module for modules in there for module in modules))
    process = subprocess.Popen([sys.executable, "-P", "-c", IMPORTS, *wanted], text=True, stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def done() -> dict[str, str]:
        try:
            printed, _ = process.communicate(timeout=IMPORT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
        said = dict(json.loads(line) for line in printed.splitlines())
        ended = next((name for name in wanted if name not in said), None)
        if ended:  # those after it were not tried
            said[ended] = "Python ends, or waits, in its import"
        return {name: requirements.in_a_line(reason) for name, reason in said.items() if reason}

    return done


def wanted_by(name: str, declared: Declared) -> list[Requirement]:
    """The requirements of an extra, or of a part of one."""
    extra, *part = name.split()
    return [each for each in declared.of(extra) if (each.name in LIBRARIES) == bool(part)]


def extra(name: str, use: str, wanted: list[Requirement], broken: dict[str, str]) -> Finding:
    """Optional packages, by the extra that installs them. use: what they are for. broken: modules of it that cannot be
    imported, and why."""
    reasons = [reason for each in wanted for reason in requirements.lacking(each)]
    package = f"'mxc-compiler[{name.split()[0]}]'"
    if reasons or not wanted:
        found = "; ".join(reasons) or "its packages are not known"
        return Finding(MISSING, f"extra {name}", f"{found}: {use}", f"pip install {package}")
    there = ", ".join(f"{each.name} {requirements.installed(each.name)}" for each in wanted)
    if broken:
        found = "; ".join(f"{module} cannot be imported: {reason}" for module, reason in broken.items())
        return Finding(MISSING, f"extra {name}", f"{there}; {found}: {use}",
                       f"pip install --force-reinstall {package}")
    return Finding(OK, f"extra {name}", f"{there}: {use}")


def gpus() -> Finding:
    """GPUs and their driver."""
    import ctypes.util

    from mxc.runtime.context import num_gpus

    driver, count = ctypes.util.find_library("cuda"), num_gpus()
    found = f"{f'driver {driver}' if driver else 'no driver'}, {count} that arrays can be put on"
    if count > 1:
        nccl = targets.gpus().collectives()
        fault = nccl.fault()
        found += f", their sums by {f'copies, for {fault}' if fault else f'NCCL {nccl.version()}'}"
    return Finding(OK if count else MISSING, "GPUs", found, "" if count else "models run on CPUs: use mx.cpu()")
