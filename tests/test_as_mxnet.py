"""`mxc.as_mxnet`: programs that say `import mxnet` get mxc's own modules, and run as Python itself runs them."""
from __future__ import annotations

import ast
import base64
import os
import re
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest
from documents import blocks

from mxc.compiler.error import ModuleConflictError

# A training program; MXNET_PRINTS is what MXNet 1.9.1 prints when it runs it.
TRAIN = """
import logging

import mxnet as mx
import mxnet.ndarray as nd
import numpy as np
from mxnet.module import Module

random = np.random.RandomState(5)
centres = random.normal(size=(4, 10))
labels = random.randint(4, size=400)
data = (centres[labels] + random.normal(scale=1.3, size=(400, 10))).astype("float32")
train = mx.io.NDArrayIter(data[:300], labels[:300], batch_size=20)
held = mx.io.NDArrayIter(data[300:], labels[300:], batch_size=20)

net = mx.sym.var("data")
net = mx.sym.FullyConnected(net, num_hidden=16, name="fc1")
net = mx.sym.Activation(net, act_type="relu")
net = mx.sym.FullyConnected(net, num_hidden=4, name="fc2")
net = mx.sym.SoftmaxOutput(net, name="softmax")
shapes = dict(zip(net.list_arguments(), net.infer_shape(data=(20, 10))[0]))
start = {name: nd.array(random.normal(scale=0.2, size=shape)) for name, shape in shapes.items()
         if name not in ("data", "softmax_label")}

logging.basicConfig(level=logging.INFO)
model = Module(net, context=mx.cpu())
schedule = mx.lr_scheduler.FactorScheduler(step=40, factor=0.7, base_lr=0.1)
model.fit(train, held, num_epoch=8, arg_params=start, kvstore=mx.kv.create("local"), optimizer="sgd",
          optimizer_params={"momentum": 0.9, "wd": 1e-4, "lr_scheduler": schedule},
          batch_end_callback=mx.callback.Speedometer(20, 5), eval_metric=["acc", "ce"])
found = dict(model.score(held, ["acc", "ce"]))
print("accuracy", found["accuracy"], "loss", round(float(found["cross-entropy"]), 4))
print("sum", round(float(abs(model.predict(held)).sum().asscalar()), 3), sorted(model.get_params()[0]))
"""
MXNET_PRINTS = """accuracy 0.79 loss 0.62
sum 100.0 ['fc1_bias', 'fc1_weight', 'fc2_bias', 'fc2_weight']
"""

# zlib.compress(pickle.dumps(values, 2)) by MXNet 1.9.1. values: an int32 array [[1, 2], [3, 4]], var("x") * 2, cpu(1),
# SGD(learning_rate=0.25, momentum=0.5, param_idx2name={0: "w"}), FactorScheduler(10, 0.5, base_lr=0.2), Accuracy(),
# RNNCell(5), DataDesc("data", (2, 3)), Constant(3).
PICKLED = """
c-qxgS(g(<6wb^rEX^)1xW|Z^(GfF)8;FcB13_9N&H&R2V^Q5*NtJZE`*v4P62?|g;V|cTeDO*Di9X7cZ~g<9U*JE`Th*0CK_8F@%}KgC-(Bn8Tl
dzL@f9dly>>Tba)0R4B%!_jYBd&)>J`Qs*I;}RCUV%|Y%G;ZoQ8hDVA3PR%|swYNQmY3BrD`#qer~RXI^TtP`y~N$vKR2H`i}|_x)Elzs1+mxcQY
v)-khgFz*VVF#ln*HXTs3HUnF(gS7}-ufeuO*q*v(18J}AMuAzZrDA~{=>5(`*p<U>KIvRQ#cNi%TnW*!v~s9?9{-ffYx;?B6eCs%vmmHUm-}Ey+
f2dT5ln<}CbfbU4dsUP7fqy{1tj%oK$F`jRMdi48=+Du6Qy~rVg!+Mwvyk@_W9a$S$$WG6Zl-wd=;9s$Y75(11f+dQHR7b(fD+EX1Y9UsGL#1&^p
uCYIF@8(t#$cEJ;NaDpvGGqU$rYgSDBJ+{)peK{~uBl&mYQd9%WvsjF~r4);}^?U+iRtqPA3*^8O*;eLC}*)l{Cc>s~kh>$4oi6^_Tw~_T#N3j%b
ahWB<H*2ZBV8MfE;-MTKt~%RLG+`=$jI<K!!z1;%--`Ouv>?H>aOP(LOW@IlGp;dstUmXn;ZjJ)hsW!tEKAO&LJpHAp`61L8tC{1P|4v*N0n^{_6
<Z*XBR$Q*1|IqW^IziK9vlfvP+JIgc0azg!ZcK(jXur^jX(X@GNDaOyQXvs&*-dsnpq{_-^HaXZe&4trv(`Z(1-!pKCZf5mZhJ5+}?PDtR!yu6b#
zm9Uo5fzH75_68kv;df_Mk;48QUa(7iU#ej|T4=W!L2b&}p@f3~iz$qWKKU@SuDRM#8||XD+4|hiCUjf%;l14JZ}-5BK{7`(VV$6!jFP3ne|Qly`
ce)rS9P#mnlgfEdZj-1!`JHbjZS8VChaUHsbp~quVN&34#B1fX`o~d4rNBjMQ)IM$S%AzcpHxjyjC<F5n^kD!;Wf1$_Bh{Tbk0;-olaLK6hxA2+e
AeQao2ba=iEDueC1@Ig=_mI#qAjr9lANOeVs!j(T2}P!AjEQQY&f9OkRqqRzvDjx04Sa9nRY$|N=dq8L&*(J(=FSzw@g!`ZD$h0~O@g2=@<q>^GS
oxGu=NiN}LTPeJm!zpcwc0~%dJyv8}Ri_A332&KlO%W)Zg|~;NLIu-kA4oJ%V)qaq5qxJL$kEUs21yvIAMscaSc{FuyjtNj2IAcu7OQ$|B<h4DrU
`AQu(V$60PDFax^PCjuN1&pLn!#p{f++9nry)`T5xiBugcHxv;15R?^ksW6|b1(q{BpuOE}MWa2z5Ra#+D3@=NJo43R%;{-=p@2hIGJPF}n7PX0m
a7G2ah><XF!DFSgZ2a19C>23r<>HQCf!NoB2D}oOz!Ycyd=fLhpMezSaMKnh$g7+(;RRn_PAnry*@c({Ae3-gf=IZN;8WW-^m=BkVaf<Cv$YLDhy
&^dEJAR65Odo3(m~LpQUvlC5EQHXWEHIoKVim8sIHDun)g%o$#Lk4)z6`)GnD=9l@QcMeUxt+X=KUB*&Ig@UMEJE9sH6*c9kL+PN^uBNShdIPiR;
k04&AHJ%i(fWPbgpA$zaVx@8X`-3?eEI%v$h~xq<g^>_D!yH0Dn(!^cBYxOYJVeI3JFAI_Q(uYI3ji@lP=)hfq1^QpG5N`s8SXZA!fXjHV_C}r^Z
dJ%&-!I+a~7J6{4!I3X>+5SHOk^rfK
"""

# Shows what a program sees of the way it was started, then does what its first argument says.
PROBE = """'A text.'
import atexit
import sys

print({name: str(value).partition(" object at ")[0] for name, value in sorted(globals().items())})
print(sys.argv, sys.path[:2], sys.modules["__main__"].__dict__ is globals())
atexit.register(lambda: print("at exit", __name__, sys.modules["__main__"].__dict__ is globals()))


def fail():
    raise ValueError("no")


match sys.argv[1:]:
    case ["exit"]:
        sys.exit(3)
    case ["text"]:
        sys.exit("a text")
    case ["error"]:
        fail()
    case ["interrupt"]:
        raise KeyboardInterrupt
    case ["chain"]:
        try:
            fail()
        except ValueError:
            1 / 0
    case ["hook"]:
        sys.excepthook = lambda kind, value, traceback: print(kind, value, traceback.tb_lineno)
        fail()
"""


def python(*arguments: str, cwd: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in a folder. path: PYTHONPATH."""
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True,
                          timeout=300)


def printed(program: str, cwd: Path, path: str = "") -> str:
    """What a program prints that ends well, with nothing on stderr."""
    done = python("-c", program, cwd=cwd, path=path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.fixture
def mxnet(tmp_path: Path) -> str:
    """A folder in which something is installed under the name mxnet."""
    (tmp_path / "site" / "mxnet").mkdir(parents=True)
    (tmp_path / "site" / "mxnet" / "__init__.py").write_text("import mxnet.base\nORIGINAL = 1\n")
    (tmp_path / "site" / "mxnet" / "base.py").write_text("ORIGINAL = 1\n")
    return str(tmp_path / "site")


def test_a_training_program_runs_unchanged(tmp_path: Path):
    (tmp_path / "train.py").write_text(TRAIN)
    done = python("-m", "mxc.as_mxnet", "train.py", cwd=tmp_path)
    assert done.stdout == MXNET_PRINTS, done.stderr
    assert re.findall(r"^INFO:root:Epoch\[7\] Validation-accuracy=(.*)$", done.stderr, re.M) == ["0.790000"]


def test_every_import_gives_the_modules_of_mxc(tmp_path: Path):
    program = """
import importlib, importlib.util, pkgutil, sys
import mxc.as_mxnet
import mxnet
import mxnet.ndarray as nd
import mxnet.rnn.rnn_cell
from mxnet import io, symbol as sym
from mxnet.module import Module
from mxnet.optimizer.optimizer import SGD

import mxc
assert mxnet is mxc and nd is mxc.nd and io is mxc.io and sym is mxc.sym
assert Module is mxc.mod.Module and SGD is mxc.optimizer.SGD and mxnet.rnn.rnn_cell is mxc.rnn.rnn_cell
names = [info.name for info in pkgutil.walk_packages(mxnet.__path__, "mxnet.") if "__main__" not in info.name
         and not info.name.startswith(("mxnet.compiler.", "mxnet.cli.", "mxnet.as_mxnet"))]
assert {"mxnet.module.module", "mxnet.io.io", "mxnet.lr_scheduler"} <= set(names)
for name in names:
    own = name.replace("mxnet", "mxc", 1)
    module = importlib.import_module(name)
    assert module is sys.modules[own] is pkgutil.resolve_name(name), name
    assert (module.__name__, module.__spec__.name, module.__loader__) == (own, own, module.__spec__.loader)
    assert importlib.util.find_spec(name).origin == module.__file__
assert importlib.reload(mxnet.engine) is mxc.engine
namespace = {}
exec("from mxnet import *", namespace)
assert namespace["mod"] is mxc.mod and "as_mxnet" not in namespace and "as_mxnet" not in dir(mxc)
"""
    assert printed(program, tmp_path) == ""


def test_a_spec_is_found_without_loading(tmp_path: Path):
    program = """
import importlib.util, sys
import mxc.as_mxnet
spec = importlib.util.find_spec("mxnet.visualization")
own = importlib.util.find_spec("mxc.visualization")
print("mxc.visualization" in sys.modules, spec.name, spec.origin == own.origin)
print(importlib.util.find_spec("mxnet").name, importlib.util.find_spec("mxnet.notebook"))
del sys.modules["mxnet"]
print(importlib.util.find_spec("mxnet").name, importlib.import_module("mxnet").__spec__.name)
"""
    assert printed(program, tmp_path).splitlines() == [
        "False mxnet.visualization True", "mxc None", "mxnet mxc"]


@pytest.mark.parametrize("name", ["mxnet.notebook", "mxnet.notebook.callback"])
def test_what_is_not_there_says_that_mxnet_is_mxc(name: str, tmp_path: Path):
    for statement in (f"import {name}", f"importlib.import_module({name!r})", f"from {name} import nothing"):
        done = python("-c", f"import importlib, mxc.as_mxnet\n{statement}", cwd=tmp_path)
        assert re.search(r"^ModuleNotFoundError: No module named 'mxnet\.notebook': mxnet is mxc [\d.]+ here, which "
                         r"has no mxc\.notebook; dir\(mxnet\) lists its modules$", done.stderr, re.M), done.stderr


def test_importing_it_again_does_nothing(mxnet: str, tmp_path: Path):
    program = """
import importlib, sys
import mxc.as_mxnet
before = list(sys.meta_path)
import mxc.as_mxnet
importlib.reload(mxc.as_mxnet)
assert sys.meta_path == before
"""
    done = python("-c", program, cwd=tmp_path, path=mxnet)
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1, done.stderr


def test_an_installed_mxnet_is_hidden_and_named(mxnet: str, tmp_path: Path):
    done = python("-c", "import mxc.as_mxnet, mxnet.base\nprint(hasattr(mxnet, 'ORIGINAL'), mxnet.base.__name__)",
                  cwd=tmp_path, path=mxnet)
    assert done.stdout == "False mxc.base\n"
    assert re.fullmatch(r"mxc\.as_mxnet: `import mxnet` gives mxc [\d.]+; the MXNet installed in "
                        rf"{re.escape(mxnet)}/mxnet is not used\n", done.stderr)


def test_a_folder_of_that_name_is_no_mxnet(tmp_path: Path):
    (tmp_path / "mxnet").mkdir()
    assert printed("import mxc.as_mxnet, mxnet\nprint(mxnet.__name__)", tmp_path) == "mxc\n"


def test_another_mxnet_in_use_is_refused(mxnet: str, tmp_path: Path):
    program = """
import mxnet
from mxc.base import MXNetError
try:
    import mxc.as_mxnet
except ImportError as error:
    print(isinstance(error, MXNetError), type(error).__name__, error)
import mxnet.base
print(mxnet.ORIGINAL, mxnet.base.ORIGINAL)
"""
    first, second = printed(program, tmp_path, mxnet).splitlines()
    assert first.startswith(f"True {ModuleConflictError.__name__} mxc.as_mxnet: another mxnet has been imported "
                            f"already, <module 'mxnet' from '{mxnet}/mxnet/__init__.py'>; import mxc.as_mxnet before")
    assert second == "1 1"


def test_a_failed_import_of_mxnet_leaves_nothing(mxnet: str, tmp_path: Path):
    Path(mxnet, "mxnet", "__init__.py").write_text("import mxnet.base\nraise OSError('libmxnet.so')\n")
    program = """
try:
    import mxnet
except OSError:
    import mxc.as_mxnet, mxnet
import mxnet.base
print(mxnet.base.__name__)
"""
    done = python("-c", program, cwd=tmp_path, path=mxnet)
    assert done.stdout == "mxc.base\n", done.stderr


def test_threads_get_one_copy(tmp_path: Path):
    program = """
import importlib, sys, threading
import mxc.as_mxnet
sys.setswitchinterval(1e-6)
names = ["mxnet.module.module", "mxnet.rnn.rnn_cell", "mxnet.metric", "mxnet.optimizer.optimizer", "mxnet.io.io"]
barrier, found = threading.Barrier(6), []

def work():
    barrier.wait()
    found.extend((name, importlib.import_module(name)) for name in names)

threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(found) == 30
for name, module in found:
    assert module is sys.modules[name.replace("mxnet", "mxc")] and module.__spec__.name == module.__name__
"""
    assert printed(program, tmp_path) == ""


def test_pickles_of_mxnet_are_read(tmp_path: Path):
    (tmp_path / "values.pickle").write_bytes(zlib.decompress(base64.b85decode("".join(PICKLED.split()))))
    program = """
import pickle
import mxc.as_mxnet
with open("values.pickle", "rb") as file:
    array, symbol, context, sgd, schedule, accuracy, cell, data, constant = pickle.load(file)

import mxc as mx
assert array.asnumpy().dtype == "int32" and array.asnumpy().tolist() == [[1, 2], [3, 4]]
array[:] = 5
assert symbol.eval(x=mx.nd.ones(2))[0].asnumpy().tolist() == [2, 2] and context == mx.cpu(1)
weight = mx.nd.ones(2)
sgd.update(0, weight, mx.nd.ones(2), sgd.create_state(0, weight))
assert weight.asnumpy().tolist() == [0.75, 0.75] and sgd.momentum == 0.5 and sgd.idx2name == {0: "w"}
assert (schedule(5), schedule(11)) == (0.2, 0.1)
accuracy.update([mx.nd.array([0, 1])], [mx.nd.array([[0.9, 0.1], [0.8, 0.2]])])
assert accuracy.get() == ("accuracy", 0.5)
assert cell.unroll(1, [mx.sym.var("x")])[0][0].list_arguments()[1:] == [
    "rnn_i2h_weight", "rnn_i2h_bias", "rnn_h2h_weight", "rnn_h2h_bias"]
assert data == mx.io.DataDesc("data", (2, 3))
constant(mx.init.InitDesc("w_weight"), weight)
assert weight.asnumpy().tolist() == [3, 3]
print([type(value).__module__.partition(".")[0] for value in (array, sgd, cell)])
"""
    assert ast.literal_eval(printed(program, tmp_path)) == ["mxc"] * 3


@pytest.fixture
def probes(tmp_path: Path) -> Path:
    """A folder with the probe as a script, a link to it, a folder, a zip file and a package, and a script that is no
    Python."""
    for path in ("probe.py", "folder/__main__.py", "package/__main__.py", "package/inner.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(PROBE)
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "folder" / "link.py").symlink_to(tmp_path / "probe.py")
    (tmp_path / "bad.py").write_text("def f(:\n")
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as file:
        file.writestr("__main__.py", PROBE)
    return tmp_path


@pytest.mark.parametrize("command", [
    "probe.py", "./probe.py -m --help", "probe.py exit", "probe.py text", "probe.py error", "probe.py interrupt",
    "probe.py chain", "probe.py hook", "folder/link.py", "folder error", "./zipped.zip error", "-m package error",
    "-m package.inner chain", "-m package.inner exit", "-m nothing", "bad.py", "-m bad", "nothing.py"])
def test_it_runs_programs_as_python_does(command: str, probes: Path):
    expected = python(*command.split(), cwd=probes)
    found = python("-m", "mxc.as_mxnet", *command.split(), cwd=probes)
    assert (found.stdout, found.stderr) == (expected.stdout, expected.stderr)
    assert found.returncode == expected.returncode


def test_safe_path_is_kept(probes: Path):
    for command in ("probe.py", "folder"):
        found, expected = python("-P", "-m", "mxc.as_mxnet", command, cwd=probes), python("-P", command, cwd=probes)
        assert found.stdout == expected.stdout != ""


def test_packages_that_a_script_imports_get_mxc_too(probes: Path):
    (probes / "package" / "uses.py").write_text("from mxnet import nd\ntotal = lambda x: nd.sum(nd.array(x))\n")
    (probes / "main.py").write_text("import sys\nfrom package.uses import total\nprint(total([1, 2, 3]).asscalar())\n")
    done = python("-m", "mxc.as_mxnet", "main.py", cwd=probes)
    assert (done.stdout, done.stderr) == ("6.0\n", "")
    assert python("-m", "mxc.as_mxnet", "-m", "mxnet", "--version", cwd=probes).stdout.startswith("mxc ")


def test_help_and_wrong_options(tmp_path: Path):
    usage = "usage: python -m mxc.as_mxnet SCRIPT [ARGUMENTS ...]\n"
    for option in ("-h", "--help"):
        done = python("-m", "mxc.as_mxnet", option, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(usage)
    for options, got in (((), "nothing"), (("-m",), "-m"), (("--fast", "x.py"), "--fast x.py")):
        done = python("-m", "mxc.as_mxnet", *options, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"python -m mxc.as_mxnet: expected SCRIPT or -m MODULE, got {got}\n{usage}")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_that_a_program_starts(method: str, tmp_path: Path):
    """Forked ones have it from `python -m mxc.as_mxnet`, those started anew from a sitecustomize.py."""
    (tmp_path / "sitecustomize.py").write_text("import mxc.as_mxnet\n")
    (tmp_path / "main.py").write_text(f"""
import multiprocessing
import mxnet

def name(_):
    return mxnet.__name__

if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        print(pool.map(name, [1]))
""")
    if method == "fork":
        done = python("-m", "mxc.as_mxnet", "main.py", cwd=tmp_path)
    else:
        done = python("main.py", cwd=tmp_path, path=str(tmp_path))
    assert done.stdout == "['mxc']\n", done.stderr


def test_it_imports_little(tmp_path: Path):
    loaded = printed("import mxc.as_mxnet, mxnet, sys\nprint(*sys.modules)", tmp_path).split()
    assert not {"numpy", "numba", "llvmlite", "runpy", "argparse"} & set(loaded)
    assert {name for name in loaded if name.startswith("mxc.compiler.")} == {
        "mxc.compiler.system", "mxc.compiler.system.env"}  # which tells whether MXNet's launcher started this process


def test_the_guide_shows_how(tmp_path: Path):
    (block,) = blocks("docs/as-mxnet.md", "python")
    (tmp_path / "package_that_needs_mxnet.py").write_text("import mxnet.io\nprint(mxnet.io.__name__)\n")
    assert printed(block, tmp_path) == "mxc.io\n"


@pytest.mark.parametrize("first", ["import numpy, mxc.as_mxnet", "import mxc.as_mxnet, numpy"])
def test_names_that_numpy_had(first: str, tmp_path: Path):
    text = f"{first}\nimport numpy as np\nprint(np.float, np.int, np.object, np.float_, np.Inf, np.product([2, 3]))"
    assert printed(text, tmp_path) == "<class 'float'> <class 'int'> <class 'object'> <class 'numpy.float64'> inf 6\n"


def test_numpys_names_are_things_that_it_has(tmp_path: Path):
    text = "import mxc.as_mxnet, numpy\nprint([name for name in mxc.as_mxnet.RENAMED if not hasattr(numpy, name)])"
    assert printed(text, tmp_path) == "[]\n"
