"""`import mxc.as_mxnet` makes `import mxnet` and every module below it give mxc's own modules, for programs that cannot
be edited. `python -m mxc.as_mxnet script.py ARGUMENTS` runs a script so, `-m MODULE ARGUMENTS` a module."""
from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys

import mxc

TYPE_CHECKING = False  # as typing.TYPE_CHECKING; importing typing would take longer than this module
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType, TracebackType

HELP = """usage: python -m mxc.as_mxnet SCRIPT [ARGUMENTS ...]
       python -m mxc.as_mxnet -m MODULE [ARGUMENTS ...]

Runs a Python script or module as `python SCRIPT` and `python -m MODULE` do, but
`import mxnet` in it, and in all that it imports, gives mxc. Arguments, exit code
and tracebacks are those of Python itself. SCRIPT may be a folder or zip file with
a __main__.py.

A program that can be edited says `import mxc as mx`, or `import mxc.as_mxnet`
before the first `import mxnet`.
"""
# Names that NumPy had when MXNet 1.9.1 was made, and by which names it has the same things now.
RENAMED = {"float": "builtins.float", "int": "builtins.int", "complex": "builtins.complex", "str": "builtins.str",
           "object": "builtins.object", "float_": "numpy.float64", "complex_": "numpy.complex128",
           "unicode_": "numpy.str_", "string_": "numpy.bytes_", "Inf": "numpy.inf", "Infinity": "numpy.inf",
           "infty": "numpy.inf", "PINF": "numpy.inf", "NaN": "numpy.nan", "NAN": "numpy.nan", "product": "numpy.prod",
           "cumproduct": "numpy.cumprod", "sometrue": "numpy.any", "alltrue": "numpy.all", "round_": "numpy.round"}
USAGE = 2  # the exit code of wrong options and of a script that cannot be opened, as Python has it


class _Finder:
    """Finds `mxnet` and the modules below it. It stands before Python's own finders, which would load mxc's files a
    second time under these names."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None,
                  ) -> importlib.machinery.ModuleSpec | None:
        """How to load a module; None for names that are neither mxnet's nor numpy, and where somebody only asks whether
        mxc has it. Raises ModuleNotFoundError where somebody imports what mxc does not have."""
        top, dot, rest = name.partition(".")
        if name == "numpy":
            return _named_again(importlib.machinery.PathFinder.find_spec(name, path, target))
        if top != "mxnet":
            return None
        original = importlib.util.find_spec(f"mxc{dot}{rest}")
        if original is None:
            # Python's own error would not say that mxnet is mxc here. The caller's caller tells an import from
            # importlib.util.find_spec, whose answer for a module that is not there is None.
            if sys._getframe(2).f_code.co_name == "find_spec":
                return None
            raise ModuleNotFoundError(
                f"No module named {name!r}: mxnet is mxc {mxc.VERSION} here, which has no mxc.{rest}; "
                f"dir(mxnet) lists its modules", name=name)
        spec = importlib.machinery.ModuleSpec(name, _Loader(original), origin=original.origin)  # type: ignore[arg-type]
        spec.submodule_search_locations = original.submodule_search_locations
        return spec


def _named_again(spec: importlib.machinery.ModuleSpec | None) -> importlib.machinery.ModuleSpec | None:
    """NumPy's own spec, whose loader adds the old names to the module when it has run."""
    if spec is not None and spec.loader is not None:
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            _name_again(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


class _Loader:
    """Gives the module of mxc that `original` describes, which is imported under its own name when it is not yet."""

    def __init__(self, original: importlib.machinery.ModuleSpec):
        self.original = original

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.original.name)
        self.original = module.__spec__ or self.original
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already. It gets its own spec back, which Python has replaced by mxnet's: by the name in
        it importlib.reload finds the module."""
        module.__spec__ = self.original

    def get_code(self, name: str) -> object:
        """The module's code object, for `python -m`."""
        return self.original.loader.get_code(self.original.name)  # type: ignore[union-attr]


def install() -> None:
    """Make `mxnet` name mxc in this process; nothing more when it does already. Says so on stderr when an MXNet is
    installed, which is hidden from now on.

    Raises MXNetError, which is an ImportError too, when another mxnet has been imported: its objects are in use.
    """
    there = sys.modules.get("mxnet")
    if there is mxc:
        return
    if there is not None:
        from mxc.compiler.error import ModuleConflictError

        raise ModuleConflictError(
            f"mxc.as_mxnet: another mxnet has been imported already, {there!r}; import mxc.as_mxnet before the first "
            f"`import mxnet`, or run the program by `python -m mxc.as_mxnet`")
    for name in [name for name in sys.modules if name.startswith("mxnet.")]:
        del sys.modules[name]  # what an import of MXNet that failed has left
    sys.modules.pop("mxnet", None)  # None, by which importing it is forbidden
    installed = importlib.util.find_spec("mxnet")
    if installed is not None and installed.origin is not None:  # no origin: a folder of this name without Python
        print(f"mxc.as_mxnet: `import mxnet` gives mxc {mxc.VERSION}; the MXNet installed in "
              f"{os.path.dirname(installed.origin)} is not used", file=sys.stderr)
    sys.meta_path.insert(0, _Finder)
    sys.modules["mxnet"] = mxc
    if "numpy" in sys.modules:
        _name_again(sys.modules["numpy"])


def _name_again(numpy: ModuleType) -> None:
    """Give NumPy the names back under which programs for MXNet know what it still has, such as np.float."""
    for old, name in RENAMED.items():
        if old not in vars(numpy):
            home, _, now = name.partition(".")
            setattr(numpy, old, getattr(importlib.import_module(home), now))


def run(arguments: list[str]) -> None:
    """Run what the command line names, in place of the program that runs: as `__main__`, with its sys.argv. An error
    leaves as Python shows it, without the frames of this module. Raises SystemExit when nothing can be run."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(HELP, end="")
        return
    as_module = arguments[:1] == ["-m"]
    if len(arguments) < 1 + as_module or (not as_module and arguments[0].startswith("-")):
        print(f"python -m mxc.as_mxnet: expected SCRIPT or -m MODULE, got {' '.join(arguments) or 'nothing'}\n{HELP}",
              end="", file=sys.stderr)
        sys.exit(USAGE)
    try:
        if as_module:
            _run_module(arguments[1], ["-m", *arguments[2:]])
        else:
            _run_script(arguments[0], arguments)
    except BaseException as error:
        _hide_own_frames(error)
        raise


def _empty_main() -> dict[str, object]:
    """The variables of `__main__`: those that Python gives every program, none of them set yet."""
    space = sys.modules["__main__"].__dict__
    given: dict[str, object] = {name: None for name in space if name.startswith("__")}
    given.update(__name__="__main__", __builtins__=space["__builtins__"])
    if "__annotations__" in given:
        given["__annotations__"] = {}
    space.clear()
    space.update(given)
    return space


def _run_module(name: str, argv: list[str], names_argv: bool = True) -> None:
    """Run a module, or the package of that name, as Python's own -m does. names_argv: its file is to become
    sys.argv[0]."""
    import runpy

    sys.argv = argv
    _empty_main()
    runpy._run_module_as_main(name, names_argv)  # type: ignore[attr-defined]


def _run_script(script: str, argv: list[str]) -> None:
    """Run a file, or the `__main__.py` of a folder or zip file. Raises SystemExit for one that cannot be read."""
    import pkgutil

    path = os.path.join(os.getcwd(), script)
    packed = pkgutil.get_importer(script) is not None
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, which `python -m` put there
    if packed:
        sys.path.insert(0, path)
        _run_module("__main__", argv, names_argv=False)
        return
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    try:
        text = loader.get_data(path)
    except OSError as error:
        print(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        sys.exit(USAGE)
    code = compile(text, path, "exec", dont_inherit=True)
    sys.argv = argv
    space = _empty_main()
    space.update(__file__=path, __loader__=loader)
    exec(code, space)


def _hide_own_frames(error: BaseException) -> None:
    """Let what shows the uncaught `error` see its traceback from the program's first frame on."""
    shows = sys.excepthook

    def show(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        rest = traceback
        while value is error and rest is not None:
            own = rest.tb_frame.f_code in (_run_module.__code__, _run_script.__code__)
            rest = rest.tb_next
            if own:
                traceback = rest
        shows(kind, value.with_traceback(traceback), traceback)

    sys.excepthook = show


if __name__ == "__main__":
    from mxc import as_mxnet  # this file runs under another name: what stays is the module of its own name

    as_mxnet.run(sys.argv[1:])
else:
    install()
