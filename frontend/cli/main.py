"""The command `mxc`. Exit codes: 0 ok, 2 usage, 3 bad model or file, 4 unsupported operator or
attribute, 5 target or driver missing, 70 internal."""
from __future__ import annotations

import argparse
import importlib
import os
import sys

OK, USAGE, BAD_FILE, UNSUPPORTED, NO_TARGET, INTERNAL = 0, 2, 3, 4, 5, 70
INTERRUPTED = 130  # as shells say it for SIGINT
COMMANDS = {"compile": "mxc.cli.compile", "run": "mxc.cli.run", "inspect": "mxc.cli.inspect"}
DESCRIPTION = """Compile, run and inspect models that Apache MXNet saved (NAME-symbol.json and NAME-0000.params).

  mxc compile net-symbol.json --shape data=1,3,224,224
  mxc run net-symbol.json --input data=image.npy
  mxc inspect net-symbol.json --shape data=1,3,224,224"""
CODES = """exit codes: 0 done, 2 wrong options, 3 a model or file that cannot be used, 4 the model has operators or
attributes that mxc does not know, 5 a device or driver is missing, 70 a fault of mxc itself"""
COMPILE = """Compile a model for inference on inputs of given shapes. The kernels are kept in the cache
(MXC_CACHE_DIR, default ~/.cache/mxc), from which later runs load them. Prints how many nodes became how many kernels,
the memory between them, and how many kernels the cache had."""
RUN = """Run a model once on arrays from .npy files, and print each output's shape and largest values. An input's
shape is its array's; its values are converted to the model's dtype."""

INSPECT = """Print a model's layers: operator, output shape, parameters, floating-point operations (a multiply-add is
two), and what each reads. With --groups, --plan or --memory, show what the compiler makes of it instead; these compile
the model (for inference, or with --train for a training step)."""
INSPECT_EXAMPLE = """examples:
  mxc inspect net-symbol.json --shape data=1,3,224,224
  mxc inspect net-symbol.json --shape data=1,3,224,224 --groups --plan
  mxc inspect net-symbol.json --shape data=8,3,224,224 --train --memory memory.svg

"""


def positive(text: str) -> int:
    """An option's number of at least 1."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parser() -> argparse.ArgumentParser:
    """The command line: one sub-command for each entry of COMMANDS; their modules are imported when they run."""
    top = argparse.ArgumentParser(prog="mxc", description=DESCRIPTION, epilog=CODES,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--debug", action="store_true", help="on an error, show the whole traceback")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    texts = {"compile": ("compile a model and keep its kernels in the cache", COMPILE),
             "run": ("run a model on arrays and print or save the outputs", RUN),
             "inspect": ("show a model's layers, fusion groups, plan or memory", INSPECT)}
    for name, (summary, description) in texts.items():
        shown = (INSPECT_EXAMPLE + CODES, argparse.RawDescriptionHelpFormatter) if name == "inspect" else \
            (CODES, argparse.HelpFormatter)
        command = commands.add_parser(name, help=summary, description=description, epilog=shown[0],
                                      formatter_class=shown[1])
        command.add_argument("symbol", metavar="SYMBOL.json", help="the model's graph (NAME-symbol.json)")
        command.add_argument("--params", metavar="FILE",
                             help="its parameters (default: the NAME-0000.params of the highest number beside it)")
        command.add_argument("--shape", action="append", default=[], metavar="NAME=D,D,...",
                             help="shape of an input, as data=1,3,224,224; may be repeated")
        command.add_argument("--dtype", action="append", default=[], metavar="NAME=DTYPE",
                             help="dtype of an input, as data=float16; may be repeated")
        command.add_argument("--json", action="store_true", help="print the result as JSON")
        if name == "run":
            command.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy",
                                 help="values of an input; one that has only a --shape is zeros; may be repeated")
            command.add_argument("--output", metavar="FILE.npz", help="save the outputs there, by name")
            command.add_argument("--top", type=positive, default=5, metavar="N",
                                 help="print the N largest values of each of an output's first rows (default 5)")
        if name == "inspect":
            command.add_argument("--train", action="store_true",
                                 help="compile a training step, with the gradients of all parameters")
            command.add_argument("--groups", action="store_true", help="show the fusion groups, a line each")
            command.add_argument("--plan", action="store_true",
                                 help="show the plan: each kernel's launch, what it reads and writes, and the memory")
            command.add_argument("--memory", metavar="FILE.svg",
                                 help="draw the memory plan: which buffer is alive when, and where")
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    options = parser().parse_args(arguments)
    from mxc.cli.model import UsageError
    from mxc.compiler import error as errors

    check_path = "check the path, its permissions and the space on its disk"
    kinds = {  # what an error's exit code and advice are; its own kind comes before those that it is one of
        UsageError: (USAGE, f"`mxc {options.command} --help` tells what each option is"),
        errors.SettingError: (USAGE, "correct or unset that environment variable"),
        errors.UnsupportedError: (UNSUPPORTED, "correct the model, or add to mxc what it lacks "
                                  "(docs/adding-an-operator.md)"),
        errors.TargetError: (NO_TARGET, "run it where that is there"),
        errors.FileAccessError: (BAD_FILE, check_path),
        errors.OutOfMemoryError: (BAD_FILE, "give smaller shapes, or run it where there is more memory"),
        errors.MXNetError: (BAD_FILE, "check that these files belong together, and that --shape gives the shapes "
                            "they were made for"),
    }
    try:
        code = importlib.import_module(COMMANDS[options.command]).run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except errors.MXNetError as error:
        if options.debug:
            raise
        code, advice = next(found for kind, found in kinds.items() if isinstance(error, kind))
        text = str(error)
        if "\n" not in text or code == UNSUPPORTED:  # else its last line says what to do, or lists what was given
            text += f"\n{advice}"
        return complain(options.command, text, code)
    except OSError as error:
        if options.debug:
            raise
        if sys.stdout is not None:  # what it still holds must not be tried again when Python ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # who read the output has enough of it
            return OK
        return complain(options.command, f"{error.filename or 'output'}: {error.strerror or error}\n{check_path}",
                        BAD_FILE)
    except KeyboardInterrupt:
        return complain(options.command, "interrupted", INTERRUPTED)
    except Exception as error:
        if options.debug:
            raise
        return complain(options.command, f"internal error: {type(error).__name__}: {error}\n"
                        f"run `mxc --debug {options.command} ...` for the traceback, and report it", INTERNAL)


def complain(command: str, text: str, code: int) -> int:
    """Say what is wrong on standard error; `code`."""
    print(f"mxc {command}: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
