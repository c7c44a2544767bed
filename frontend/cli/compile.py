"""`mxc compile`: compile a model's kernels into the cache, or with all else that it needs into an artifact."""
from __future__ import annotations

import argparse
import json
import os
from typing import Any

from mxc.cli.main import tell
from mxc.cli.model import (
    Read,
    UsageError,
    add_model_arguments,
    bind_read,
    is_artifact,
    parameter_file,
    parse_dtypes,
    positive,
    progress,
    read_model,
    stem_of,
)
from mxc.cli.output_files import check_apart, check_kind
from mxc.cli.precisions import add_precision_arguments, check_options, converted
from mxc.cli.shape_sets import batches, shape_sets
from mxc.cli.tables import keys_of, on_terminal
from mxc.compiler.system import env

CPU, LEVEL, CUDA = "cpu", "cpu:", "cuda:"
DESCRIPTION = """Compile a model for inputs of given shapes. The kernels are kept in the cache (MXC_CACHE_DIR, default
~/.cache/mxc), from which later runs load them. With -o, also write an artifact: one file with the graph, the plans, the
kernels and the parameters as these read them, which mxc.load and `mxc run` start without a compiler. A --shape that
names an input again begins another set of shapes, which shares kernels and parameters with the first; --batches makes a
set of each size of a batch. A batch of another size is cut over those that there are, and filled up, if the model keeps
its rows apart. Prints how many nodes became how many kernels, the memory between them, and how many kernels the cache
had.

An artifact is a program: who loads it runs its code."""
EXAMPLES = """
  mxc compile net-symbol.json --shape data=1,3,224,224
  mxc compile net-symbol.json --shape data=1,3,224,224 --dtype data=float16 --json
  mxc compile net-symbol.json --shape data=1,3,224,224 --shape data=16,3,224,224 -o net.mxc
  mxc compile net-symbol.json --shape data=1,3,224,224 --batches 1,8,64 -o net.mxc
  mxc compile lstm-symbol.json --shape data=35,batch --batches 1,16 -o lstm.mxc
  mxc compile net-symbol.json --shape data=32,784 --params net-0007.params --train -o net.mxc
  mxc compile net-symbol.json --shape data=1,3,224,224 --target cpu:x86-64-v3 -o net-any.mxc
  mxc compile net-symbol.json --shape data=1,3,224,224 --precision float16 -o net16.mxc
  mxc compile net-symbol.json --shape data=1,3,224,224 --precision int8 --calibrate photos --resize 256 -o net8.mxc
  mxc compile net-symbol.json --shape data=1,3,224,224 --codegen numba
  mxc compile net-symbol.json --shape data=1,3,224,224 --target cuda:sm_90 -o net-sm_90.mxc"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc compile`."""
    add_model_arguments(parser, artifacts=False)
    parser.add_argument("-o", "--output", metavar="NAME.mxc", help="write an artifact there")
    parser.add_argument("--batches", type=batches, metavar="N,N,...",
                        help="compile for batches of these sizes: in a --shape the word batch stands for the size, as "
                             "data=35,batch; without it, that is the first extent of all inputs that begin as the "
                             "first one")
    parser.add_argument("--train", action="store_true",
                        help="compile a training step too, with the gradients of all parameters")
    parser.add_argument("--keep-params", action="store_true",
                        help="have the parameters in the artifact as they were given, too, and not only as its plans "
                             "read them: for other CPUs and versions of mxc, other values of some, executors, verify "
                             "and convert")
    parser.add_argument("--target", default=CPU, metavar="cpu|cpu:x86-64-v3|cuda:sm_90",
                        help="what it is to run on: this CPU (default), every CPU of that level (x86-64-v2, -v3, -v4), "
                             "or NVIDIA GPUs of that architecture, which need not be there (extra cuda)")
    parser.add_argument("--codegen", metavar="llvm|numba",
                        help="what makes the code of loop kernels and routines: mxc's own translator to LLVM, or "
                             "Numba, which takes longer and makes code as fast (default: MXC_CODEGEN, else llvm)")
    add_precision_arguments(parser)
    parser.add_argument("--jobs", type=positive, metavar="N",
                        help="how many processes compile (default: MXC_NUM_THREADS, else the CPUs)")


def run(options: argparse.Namespace) -> int:
    """Compile; print nodes, kernels, bytes, cache hits and time for each set of shapes, and what was written."""
    if is_artifact(options.model):
        raise UsageError(f"{options.model} is compiled already; give the SYMBOL.json that it was made of")
    check_kind("--output", options.output)
    check_apart(options, options.output)
    if options.keep_params and (options.output is None or options.target.startswith(CUDA)):
        raise UsageError("--keep-params: it is for artifacts for CPUs: give -o NAME.mxc, without --target cuda:...")
    (sets, axes), dtypes = shape_sets(options.shape, options.batches), parse_dtypes(options.dtype)
    choose_target(options)
    check_options(options)
    if options.precision is not None and (options.train or options.target != CPU or dtypes):
        raise UsageError(f"--precision {options.precision}: it is for inference on a CPU, and says the dtypes: leave "
                         "out --train, --target cuda and --dtype")
    if options.jobs:
        env.set("MXC_NUM_THREADS", str(options.jobs))
    with progress(f"compiling {options.model}"):
        model, precision = read_model(options, sets[0]), dict[str, Any]()
        if options.precision is not None:
            model, precision = converted(options, model, sets[0], axes)
        executors = bind_all(options, model, sets, dtypes)
        if options.target == CPU:
            made = [executor.compiled(options.train) for executor in executors]
        else:
            made = for_gpu(options, executors)
        found = [(shapes, plan_facts(compiled, options.target != CPU))
                 for shapes, compiled in zip(sets, made, strict=True)]
    written = precision
    if options.output is not None:
        with progress(f"writing {options.output}"):
            from mxc.artifact import save

            path = parameter_file(options)
            mixed = save(options.output, executors, list(sets[0]), path is not None, options.train, axes,
                         options.keep_params, None if options.target == CPU else options.target)
            written["other batches"] = f"no: {mixed}" if mixed else "cut and filled up"
            if path is None:
                tell("compile", f"note: there is no {stem_of(options.model)}-0000.params (or of another number) "
                     f"beside {options.model}, so {options.output} has no parameters: give them with --params, or to "
                     "mxc.load")
        written = {"artifact": options.output, "artifact bytes": os.path.getsize(options.output), **written}
    if options.json:
        plans = [keys_of(facts) for _, facts in found]
        listed = plans[0] if len(sets) == 1 else {"sets": [{"shapes": shapes, **plan} for shapes, plan in
                                                           zip(sets, plans, strict=True)]}
        print(json.dumps({**listed, **keys_of(written)}))
        return 0
    for shapes, facts in found:
        text = " ".join(f"{name}={','.join(map(str, shape))}" for name, shape in shapes.items())
        show(options.model, {**({"shapes": text} if len(sets) > 1 else {}), **facts})
    if written:
        show(options.model, written)
    return 0


def choose_target(options: argparse.Namespace) -> None:
    """Set what --target cpu:LEVEL and --codegen name; options.target is cpu or begins with cuda: then.

    Raises UsageError for a target, level or code generator that is not there.
    """
    from mxc.compiler.error import nearest
    from mxc.runtime.features import code_generators, cpu_levels

    if options.target.startswith(LEVEL):
        level = options.target.removeprefix(LEVEL)
        if level not in cpu_levels():
            raise UsageError(f"--target {options.target}: there is no level {level!r}; expected one of "
                             f"{', '.join(cpu_levels())}, or cpu alone for this machine's CPU"
                             f"{nearest(level, cpu_levels())}")
        env.set("MXC_CPU", level)
        options.target = CPU
    if options.target != CPU and not options.target.startswith(CUDA):
        raise UsageError(f"--target {options.target}: expected cpu, cpu: and a level, as cpu:x86-64-v3, or cuda: and "
                         "an architecture, as cuda:sm_90")
    if options.codegen is not None:
        if options.codegen not in code_generators():
            raise UsageError(f"--codegen {options.codegen}: there is no code generator {options.codegen!r}; "
                             f"expected {' or '.join(code_generators())}"
                             f"{nearest(options.codegen, code_generators())}")
        if options.target != CPU:
            raise UsageError(f"--codegen {options.codegen}: it is for CPUs: leave it out with --target "
                             f"{options.target}")
        env.set("MXC_CODEGEN", options.codegen)


def bind_all(options: argparse.Namespace, model: Read, sets: list[dict[str, tuple[int, ...]]],
             dtypes: dict[str, str]) -> list[Any]:
    """An executor for each set of shapes, on the same parameters."""
    _, first = bind_read(options, model, sets[0], dtypes, needs_values=False, train=options.train)
    return [first, *(first.reshape(partial_shaping=True, allow_up_sizing=True, **shapes) for shapes in sets[1:])]


def for_gpu(options: argparse.Namespace, executors: list[Any]) -> list[Any]:
    """What the compiler makes for `--target cuda:...` of each executor's model."""
    from mxc.compiler.targets import kernel_target

    target = kernel_target(options.target)
    return [executor.compiled_for(target, options.train) for executor in executors]


def plan_facts(compiled: Any, may_lack: bool) -> dict[str, Any]:
    """What there is to say of a compiled plan. may_lack: for a target that has not code for all kernels."""
    plan, missing = compiled.plan, compiled.library.missing
    kernels = [step for step in plan.steps if step.phase != "prepare"]
    return {
        "nodes": plan.nodes,
        "kernels": len(kernels),
        "distinct kernels": len({s.kernel for s in kernels}),
        "prepare steps": len(plan.steps_of("prepare")),
        "host steps": sum(s.host is not None for s in plan.steps),
        "arena bytes": plan.arena_bytes,
        "arena bytes before planning": plan.unplanned_bytes,
        "packed parameter bytes": plan.prepared_bytes,
        "cache hits": compiled.library.hits,
        "cache misses": compiled.library.misses,
        "seconds": round(compiled.seconds, 3),
        **({"no code for": ", ".join(sorted(set(missing.values()))) or "nothing"} if may_lack else {}),
    }


def show(model: str, facts: dict[str, Any]) -> None:
    """Facts as a table on a terminal, else a line each."""
    if not on_terminal():
        for name, value in facts.items():
            print(f"{name}: {value}")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("", model, box=None)
    table.columns[1].justify = "right"
    for name, value in facts.items():
        table.add_row(name, value if isinstance(value, str) else f"{value:,}")
    Console().print(table)
