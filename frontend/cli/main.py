"""The command `mxc`: finds the command's module, lets it read its options, runs it, and says what went wrong.

A command is a module of `add_arguments(parser)`, `run(options) -> exit code`, DESCRIPTION and EXAMPLES. It imports what
its work needs when it runs, so that help costs little.
"""
from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import NoReturn

import mxc
from mxc.cli.help import Help
from mxc.compiler.system import interrupts

OK, FAILED, USAGE, BAD_FILE, UNSUPPORTED, NO_TARGET, INTERNAL = 0, 1, 2, 3, 4, 5, 70
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
COMMANDS = {  # name, which is also its module's, and what it does
    "compile": "compile a model and keep its kernels in the cache",
    "run": "run a model on arrays and print or save the outputs",
    "bench": "measure how long a run of a model takes, and compare with before",
    "profile": "show where a run's time goes, kernel by kernel",
    "verify": "compare a compiled model with the reference interpreter",
    "reduce": "find the smallest part of a model that still fails, and write it as files",
    "inspect": "show a model's layers, graph, fusion groups, plan or memory",
    "report": "write a page on a model: layers, graph, memory, profile, verification, benchmark",
    "convert": "convert models from and to ONNX, and parameters to other kinds of files",
    "cache": "list, explain, check, prune or clear the kernels that are kept",
    "doctor": "tell what works on this machine, what is missing, and what to do",
    "ops": "list the operators, or show one",
    "im2rec": "make lists and files of records of the pictures in folders",
    "rec": "list, read, check or index a file of records, or draw its pictures",
    "launch": "run a training program as several workers, on this machine or a cluster",
    "completion": "print what makes bash, zsh or fish complete commands and options",
}
DESCRIPTION = """Compile, run, measure, check and inspect models that Apache MXNet saved (NAME-symbol.json and
NAME-0000.params), or that `mxc compile -o NAME.mxc` made of them.

  mxc compile net-symbol.json --shape data=1,3,224,224 -o net.mxc
  mxc run net.mxc --input data=@image.npy
  mxc bench net.mxc"""
CODES = """exit codes: 0 done, 1 a check or comparison failed, or something damaged was left out, 2 wrong options, 3 a
model or file that cannot be used, 4 the model has operators or attributes that mxc does not know, 5 a device, driver
or package is missing, 70 a fault of mxc itself, 130 interrupted"""
MORE_MEMORY = "give smaller shapes, or run it where there is more memory"
DEBUG = "on an error, show the whole traceback"


class Include(argparse.Action):
    """The option --include."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(Path(mxc.__path__[0]) / "include")
        parser.exit()


def parser(arguments: list[str]) -> argparse.ArgumentParser:
    """The command line. Only the command that `arguments` name has its options: other modules are not imported."""
    top = argparse.ArgumentParser(prog="mxc", description=DESCRIPTION, epilog=CODES, formatter_class=Help)
    version = f"mxc {mxc.VERSION}"
    top.add_argument("-V", "--version", action="version", version=version, help="print mxc's version and exit")
    top.add_argument("--include", action=Include, nargs=0, help="print where mxc.h is, for programs in C, and exit")
    top.add_argument("--debug", action="store_true", help=DEBUG)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = command_in(arguments)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, formatter_class=Help)
        if name == chosen:
            module = importlib.import_module(f"mxc.cli.{name}")
            command.description = module.DESCRIPTION
            command.epilog = f"examples:\n{module.EXAMPLES.strip(chr(10))}\n\n{CODES}"
            module.add_arguments(command)
            command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=DEBUG)
    return top


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The options. Ends the process with USAGE where there are some that the command does not have."""
    top = parser(arguments)
    options, unknown = top.parse_known_args(arguments)
    if unknown:
        from mxc.compiler.error import nearest

        command = commands_of(top)[options.command]
        there = [option for action in command._actions for option in action.option_strings if len(option) > 2]
        word = next((word for word in unknown if word.startswith("-")), unknown[0])
        command.error(f"unrecognized arguments: {' '.join(unknown)}{nearest(word.partition('=')[0], there)}")
    return options


def commands_of(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the commands, by name."""
    return next(dict(action.choices) for action in top._actions if isinstance(action, argparse._SubParsersAction))


def command_in(arguments: list[str]) -> str:
    """The word that names the command; empty when there is none."""
    return next((word for word in arguments if not word.startswith("-")), "")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name may have characters that the output's encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with interrupts.noticed() as came:
            return perform(parsed(given), came)
    except KeyboardInterrupt:
        exec("")  # else `python -m` ends by a signal when the interrupt came inside of an exec of text
        return complain(command_in(given), "interrupted", INTERRUPTED)


def perform(options: argparse.Namespace, came: list[int]) -> int:
    """Run the command of parsed options; say what is wrong if something is. The exit code.

    came: interrupts. Raises KeyboardInterrupt when an error may be what came of one.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: tell(options.command, str(message).removeprefix("mxc: "))
            code = int(importlib.import_module(f"mxc.cli.{options.command}").run(options))
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except Exception as error:
        if came:
            raise KeyboardInterrupt from None
        if isinstance(error, OSError) and sys.stdout is not None:
            # what it still holds must not be tried again when Python ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # who read the output has enough of it
            return OK
        if options.debug:
            with contextlib.suppress(OSError):
                traceback.print_exc()
        return complain(options.command, *explained(error, options.command))


def explained(error: Exception, command: str) -> tuple[str, int]:
    """What is wrong and what to do about it, a line each, and the exit code."""
    from mxc.cli.model import UsageError
    from mxc.compiler import error as errors

    written = "check the path, its permissions and the space on its disk"
    kinds: dict[type[Exception], tuple[int, str]] = {  # its own kind comes before those that it is one of
        UsageError: (USAGE, f"`mxc {command} --help` tells what each option is"),
        errors.SettingError: (USAGE, "correct or unset that environment variable"),
        errors.UnsupportedError: (UNSUPPORTED, "correct the model, or add to mxc what it lacks "
                                  "(docs/adding-an-operator.md)"),
        errors.TargetError: (NO_TARGET, "run it where that is there; `mxc doctor` tells what is"),
        errors.FileAccessError: (BAD_FILE, "check the path and its permissions"
                                 if getattr(error, "done", "") == "read" else written),
        errors.OutOfMemoryError: (BAD_FILE, MORE_MEMORY),
        errors.ModelFileError: (BAD_FILE, "give another file, or get this one again: it is damaged, or something else"),
        errors.MXNetError: (BAD_FILE, "check that these files belong together, and that --shape gives the shapes "
                            "they were made for"),
    }
    if isinstance(error, errors.MXNetError):
        code, advice = next(found for kind, found in kinds.items() if isinstance(error, kind))
        text = str(error)
        if "\n" not in text or code == UNSUPPORTED:  # else its last line says what to do, or lists what was given
            text += f"\n{advice}"
        return text, code
    if isinstance(error, MemoryError) or "can't start new thread" in str(error):
        return f"out of memory\n{MORE_MEMORY}", BAD_FILE
    if isinstance(error, OSError):
        return f"{error.filename or 'output'}: {error.strerror or error}\n{written}", BAD_FILE
    if isinstance(error, ImportError):
        from mxc.cli import requirements

        declared = requirements.declared(Path(mxc.__path__[0]))
        for required in declared.of() if declared else ():
            fault = requirements.fault(required)
            if fault:
                return (f"the required package {required.name}: {fault[0]}\n"
                        f"{fault[1]}; `mxc doctor` tells what else is missing", NO_TARGET)
    return (f"internal error: {type(error).__name__}: {error}\n"
            f"run `mxc --debug {command} ...` for the traceback, and report it", INTERNAL)


def complain(command: str, text: str, code: int) -> int:
    """Say what is wrong on standard error; `code`."""
    tell(command, text)
    return code


def tell(command: str, text: str) -> None:
    """Say something on standard error, where there is one that can be written to."""
    if sys.stderr is not None:  # else print() would take standard output
        with contextlib.suppress(OSError):
            print(f"mxc {command}: {text}", file=sys.stderr)
