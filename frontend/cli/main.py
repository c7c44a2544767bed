"""The command `mxc`. Exit codes: 0 ok, 1 comparison failed, 2 usage, 3 bad model or file, 4 unsupported operator or
attribute, 5 target or driver missing, 70 internal."""
from __future__ import annotations

import argparse
import importlib
import sys

OK, FAILED, USAGE, BAD_FILE, UNSUPPORTED, NO_TARGET, INTERNAL = 0, 1, 2, 3, 4, 5, 70
COMMANDS = {"compile": "mxc.cli.compile", "run": "mxc.cli.run"}


def parser() -> argparse.ArgumentParser:
    """The command line: one sub-command for each entry of COMMANDS; their modules are imported when they run."""
    top = argparse.ArgumentParser(prog="mxc", description="Compile and run Apache MXNet models.")
    top.add_argument("--debug", action="store_true", help="on an error, show the whole traceback")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    helps = {"compile": "compile a model and keep its kernels in the cache",
             "run": "run a model on an array and print or save the outputs"}
    for name, text in helps.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("symbol", metavar="SYMBOL.json", help="the model's graph (NAME-symbol.json)")
        command.add_argument("--params", metavar="FILE",
                             help="its parameters (default: the NAME-*.params of the last epoch beside the graph)")
        command.add_argument("--shape", action="append", default=[], metavar="NAME=D,D,...",
                             help="shape of an input, as data=1,3,224,224; may be repeated")
        command.add_argument("--dtype", action="append", default=[], metavar="NAME=DTYPE",
                             help="dtype of an input, as data=float16; may be repeated")
        command.add_argument("--json", action="store_true", help="print the result as JSON")
        if name == "run":
            command.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy",
                                 help="values of an input; inputs that are not given are zeros; may be repeated")
            command.add_argument("--output", metavar="FILE.npz", help="save the outputs there")
            command.add_argument("--top", type=int, default=5, metavar="N",
                                 help="print the N largest values of each row of the outputs (default 5)")
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    options = parser().parse_args(arguments)
    from mxc.compiler.error import ModelFileError, MXNetError, TargetError, UnsupportedError

    codes = {ModelFileError: BAD_FILE, UnsupportedError: UNSUPPORTED, TargetError: NO_TARGET, MXNetError: BAD_FILE}
    try:
        return importlib.import_module(COMMANDS[options.command]).run(options)
    except MXNetError as error:
        if options.debug:
            raise
        print(f"mxc {options.command}: {error}", file=sys.stderr)
        return next(code for kind, code in codes.items() if isinstance(error, kind))
    except BrokenPipeError:
        return OK
    except Exception as error:
        if options.debug:
            raise
        print(f"mxc {options.command}: internal error: {type(error).__name__}: {error}\n"
              "run it again with `mxc --debug` for the traceback, and report it", file=sys.stderr)
        return INTERNAL


if __name__ == "__main__":
    sys.exit(main())
