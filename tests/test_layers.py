"""The layers: who imports whom, what reads the environment, how long a file is, and what a start imports."""
from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"frontend": "mxc", "runtime": "mxc.runtime", "compiler": "mxc.compiler"}
LINES = 500

# What an area may import besides itself. An area is a folder or file of the compiler, or one of the two layers above
# it; the files of operators are areas by what they are for, whatever their family. Operators name their rules by text
# only: `HOMES` in compiler/ops/rules.py.
ALLOWED = {
    "error": "",
    "system": "error",
    "transformation": "error system",
    "scalar_functions": "",
    "functions": "error system scalar_functions",
    "plan": "error functions",  # what is told of a function's errors
    "cache_files": "system",
    "cache": "system cache_files",
    "ops": "error system functions scalar_functions",
    "operators": "",  # the doors of the families
    "operators/shape": "error ops",
    # images are decoded and resized by system/opencv.py
    "operators/reference": "error system ops operators/shape scalar_functions",
    "operators/sparse": "error ops",
    "graph": "error system plan ops",
    "operators/graph": "ops graph operators/shape",
    "kernel": "error system ops scalar_functions",
    "operators/kernel": "ops kernel operators/shape",
    "lowering": "transformation plan ops graph kernel",
    # recompute asks which nodes share a kernel
    "passes": "error system transformation plan ops graph kernel lowering",
    "targets": "error system kernel",  # the protocol, by whose names targets are found, and the printers they share
    "targets/cpu": "error system cache_files cache functions ops kernel targets scalar_functions",
    # the second generator of targets/cpu, which knows it by its name alone
    "targets/numba": "error system functions ops kernel targets targets/cpu",
    "targets/cuda": "error system functions cache_files cache ops kernel targets scalar_functions",
    "targets/reference": "error ops graph",  # runs graphs, not kernels
    "planning": "system transformation plan graph kernel lowering passes",
    "stored_plans": "system transformation cache_files plan ops graph",
    "api": "system plan ops graph kernel planning stored_plans targets",
    "runtime": "operators/shape "  # of operators that a program defines
               "error system scalar_functions functions plan ops graph kernel lowering passes api targets "
               "targets/reference",
    # plan: the words for a step's layers
    "frontend": "runtime error system cache plan ops graph passes targets targets/reference",
}
# The circles of modules that import each other, imports inside of functions included, and why each is there. A circle
# is named by what its modules have in common.
CIRCLES = {
    "mxc.ndarray: creation functions methods ndarray":
        "methods of an NDArray stand for functions, which make NDArrays: a method finds its function when called",
    "mxc.runtime: array device_array":
        "Array.empty makes an array of the kind that lives on a device: on a GPU it is a DeviceArray",
    "mxc.symbol: arithmetic construct creation functions methods mixed symbol":
        "as of NDArray, and operators between symbols are applied by construct.py, which makes Symbols",
    "mxc.kvstore: allreduce base dist kvstore":
        "MXNet has create() beside the interface that the stores implement, and it makes one of them",
}
# The same with imports under TYPE_CHECKING, where a type is named and nothing is called: larger circles, and more.
CIRCLES_OF_TYPES = {
    "mxc: executor symbol.arithmetic symbol.binding symbol.construct symbol.creation symbol.functions symbol.inference "
    "symbol.methods symbol.mixed symbol.symbol": "what methods of a Symbol call names a Symbol in its signature",
    "mxc.ndarray: creation functions methods ndarray": CIRCLES["mxc.ndarray: creation functions methods ndarray"],
    "mxc.kvstore: allreduce base dist kvstore": CIRCLES["mxc.kvstore: allreduce base dist kvstore"],
    "mxc.compiler.ops: formula operator shapes": "what an Operator's reference() calls names Operator and Params",
    "mxc.compiler: graph.graph ops.infer": "a builder of graphs has infer_node find the shapes of its Nodes",
    "mxc.compiler.lowering: fuse stage": "a Program has the groups of fusion, and the stage fuse makes them of one",
    "mxc.compiler.targets: launch protocol": "the protocol speaks of LoadedKernels, and these of who launches them",
    "mxc.compiler.kernel: ir value_text": "a Value prints itself by a function that names a Value",
    "mxc.compiler.targets.cpu.emit: builder transpose": "the builder's transpose takes the builder",
    "mxc.runtime: context storage": "Context.empty_cache calls the pool of memory, which names a Context",
    "mxc.runtime: array device_array eager steady tape updates":
        "an array keeps its prepared update, and names its class",
}
# Imported under TYPE_CHECKING, where a type is named and nothing is called.
TYPES_ONLY = {("ops", "graph"), ("kernel", "functions"), ("passes", "functions"),
              # what graphs are compiled for, and the protocol of targets, which speaks of graphs and plans
              *((area, "targets") for area in ("graph", "kernel", "lowering", "planning", "stored_plans")),
              *(("targets", area) for area in ("cache", "graph", "ops", "plan")), ("targets/cpu", "plan"),
              ("targets/reference", "targets"),
              ("targets/cuda", "plan")}


def module_of(path: Path) -> str:
    """The dotted name under which a source file is imported."""
    folder, *rest = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS[folder], *(part for part in rest if part != "__init__")])


SOURCES = {module_of(path): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))}
OTHERS = [path for folder in ("tests", "bench", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]


def area_of(module: str) -> str:
    """The key of ALLOWED that a module belongs to."""
    if not module.startswith("mxc.compiler."):
        return "runtime" if module.startswith("mxc.runtime") else "frontend"
    first, *rest = module.split(".")[2:]
    if first == "operators" and len(rest) == 2:
        return f"operators/{rest[1]}"
    is_target = first == "targets" and rest and (ROOT / "compiler/targets" / rest[0]).is_dir()
    return f"targets/{rest[0]}" if is_target else first


def is_type_check(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports_of(node: ast.AST, typed: bool = False) -> Iterator[tuple[str, int, bool]]:
    """(module, line, whether for types only) of every import below `node`, those inside of functions too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, child.lineno, typed) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: a relative import"
            for alias in child.names:
                inner = f"{child.module}.{alias.name}"
                yield inner if inner in SOURCES else str(child.module), child.lineno, typed
        else:
            yield from imports_of(child, typed or is_type_check(child))


def test_imports_point_down():
    wrong = []
    for module, path in SOURCES.items():
        area = area_of(module)
        for name, line, typed in imports_of(ast.parse(path.read_text())):
            if name.split(".")[0] != "mxc":
                continue
            other = area_of(name)
            fine = other == area or other in ALLOWED[area].split() or (typed and (area, other) in TYPES_ONLY)
            if not fine:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {area} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_nobody_but_its_own_parts_imports_the_cpu_target_by_name():
    """Targets are found by name (compiler/targets/__init__.py), so that another one can stand in the CPU's place."""
    own = {area for area, allowed in ALLOWED.items() if "targets/cpu" in allowed.split()}
    assert own == {"targets/numba"}
    texts = {path for module, path in SOURCES.items() if area_of(module) not in ("targets/cpu", "targets/numba")
             and "targets.cpu" in path.read_text()}
    assert texts == {ROOT / "compiler" / "targets" / "__init__.py"}


def test_the_table_of_layers_has_no_cycle():
    order = list(ALLOWED)
    for area, allowed in ALLOWED.items():
        assert all(order.index(other) < order.index(area) for other in allowed.split()), area
    assert set(order) >= {area_of(module) for module in SOURCES if module.count(".") > 1}


def circles(typed: bool) -> set[str]:
    """The sets of modules that reach each other by imports (`typed`: those for types too), as keys of CIRCLES."""
    imports = {module: {name for name, _, types_only in imports_of(ast.parse(path.read_text()))
                        if name in SOURCES and name != module and (typed or not types_only)}
               for module, path in SOURCES.items()}
    reached = {module: set(names) for module, names in imports.items()}
    for middle in reached:  # Warshall's algorithm
        for names in reached.values():
            if middle in names:
                names |= reached[middle]
    found = {frozenset(other for other in names if module in reached[other])
             for module, names in reached.items() if module in names}
    return {circle_text(sorted(modules)) for modules in found}


def circle_text(modules: list[str]) -> str:
    """What sorted names of modules have in common, then the rest of each."""
    common = modules[0].split(".")
    while not all(module.startswith(".".join(common) + ".") for module in modules):
        common.pop()
    first = ".".join(common)
    return f"{first}: {' '.join(module.removeprefix(f'{first}.') for module in modules)}"


@pytest.mark.parametrize("typed, listed", [(False, CIRCLES), (True, CIRCLES_OF_TYPES)], ids=["calls", "types"])
def test_modules_import_each_other_in_the_listed_circles_alone(typed: bool, listed: dict[str, str]):
    found = circles(typed)
    assert found == set(listed), f"new: {sorted(found - set(listed))}, gone: {sorted(set(listed) - found)}"


def test_files_are_short():
    assert not [path for path in (*SOURCES.values(), *OTHERS) if path.read_text().count("\n") > LINES]


# Where the name of an operator stands as text besides the table, its family's folder, and the tables of ONNX's
# counterparts, which name every operator that has one.
ELSEWHERE = {"hard_sigmoid": "", "box_nms": "",
             "softsign": "frontend/gluon/rnn/rnn_cell.py",  # an activation that recurrent cells take
             "LayerNorm": "frontend/gluon/nn/basic_layers.py frontend/gluon/nn/norms.py",  # Gluon's layer of that name
             "topk": "frontend/operator_calls.py"}  # MXNet has it as a method too


@pytest.mark.parametrize("name, places", ELSEWHERE.items())
def test_an_operator_is_in_the_table_and_one_folder(name: str, places: str):
    files = [str(path.relative_to(ROOT)) for path in SOURCES.values()
             if any(isinstance(node, ast.Constant) and node.value == name
                    for node in ast.walk(ast.parse(path.read_text())))]
    tables = ("compiler/operators/", "frontend/onnx/")
    assert " ".join(file for file in files if not file.startswith(tables)) == places


def test_nobody_imports_the_folders_by_their_bare_names():
    for path in (*SOURCES.values(), *OTHERS):
        for name, line, _ in imports_of(ast.parse(path.read_text())):
            assert name.split(".")[0] not in FOLDERS, f"{path}:{line}: `import {name}` makes a second copy of it"


def test_only_env_reads_environment_variables():
    for path in SOURCES.values():
        reads = [node.lineno for node in ast.walk(ast.parse(path.read_text()))
                 if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")]
        assert not reads or path == ROOT / "compiler" / "system" / "env.py", f"{path}: lines {reads}"


def test_no_file_names_a_place_of_one_machine():
    place = re.compile(r"(?<![\w.}])/(?:work|root|tmp|home)/\w")
    texts = [*SOURCES.values(), *OTHERS, ROOT / "Makefile", ROOT / "ops.yaml", *ROOT.glob("*.md"), *ROOT.glob("*.toml"),
             *(ROOT / "docs").glob("*.md"), *(ROOT / "tests").rglob("*.json")]
    found = [f"{path.relative_to(ROOT)}: {match.group()}" for path in texts if path.name != Path(__file__).name
             for match in place.finditer(path.read_text())]
    assert not found, "\n".join(found)


def modules_after(program: str) -> set[str]:
    """The top-level packages, and mxc's own modules, that a fresh process has loaded after `program`."""
    program += "\nimport sys\nprint('\\n' + ' '.join(sys.modules), end='')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


HELP = "import contextlib\nfrom mxc.cli.main import main\nwith contextlib.suppress(SystemExit):\n    main(['--help'])"
RUN = """
import mxc as mx
a = mx.sym.Variable("a")
executor = mx.sym.exp(a * 3 + 1).simple_bind(mx.cpu(), a=(4, 5))
executor.forward(is_train=True)
executor.backward([mx.nd.ones((4, 5))])
executor.outputs[0].asnumpy()
"""


EAGER = """
import mxc as mx
mx.nd.softmax(mx.nd.ones((2, 3))).asnumpy()
"""
TAKE = """
import mxc as mx
executor = mx.sym.take(mx.sym.Variable("a"), mx.sym.Variable("b")).simple_bind(mx.cpu(), a=(4, 5), b=(3,))
executor.forward(is_train=True)
executor.backward([mx.nd.ones((3, 5))])
"""
FILES = [(EAGER, "basic.shape creation.shape reduction.shape softmax.graph softmax.reference softmax.shape"),
         (TAKE, "arrange.shape basic.shape creation.shape gather.graph gather.kernel gather.shape")]


@pytest.mark.parametrize("program, files", FILES, ids=["eager", "compiled"])
def test_a_program_imports_the_files_of_its_operators_alone(program: str, files: str, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MXC_CACHE_DIR", str(tmp_path / "cache"))
    below = "mxc.compiler.operators."
    loaded = {m.removeprefix(below) for m in modules_after(program) if m.startswith(below) and m.count(".") == 4}
    assert sorted(loaded) == files.split()


@pytest.mark.parametrize("program", ["import mxc", HELP], ids=["import", "help"])
def test_a_start_imports_little(program: str):
    loaded = modules_after(program)
    assert not loaded & {"numba", "llvmlite", "yaml", "rich", "numpy", "mxc.compiler.api"}


def test_a_warm_start_does_not_import_the_compiler_of_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MXC_CACHE_DIR", str(tmp_path / "cache"))
    modules_after(RUN)
    warm = modules_after(RUN)
    assert not warm & {"numba", "llvmlite.binding", "mxc.compiler.targets.cpu.emit.translate", "mxc.compiler.kernel.ir",
                       "mxc.compiler.targets.cpu.build.worker", "mxc.compiler.targets.cpu.build.jobs",
                       "mxc.compiler.targets.protocol", "mxc.compiler.targets.preferences"}
    assert "difflib" not in warm  # no message of an error is made, where names are compared with hundreds
