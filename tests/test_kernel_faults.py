"""Faults of operators that are functions over whole arrays, and such operators in other processes and artifacts."""
from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError


@mx.operator.kernel("t_checked")
def checked(x, out):
    for i in range(x.shape[0]):
        assert x[i, 0] != 3, "three"
        if x[i, 0] < 0:
            raise ValueError("it must not be negative")
        out[i, int(x[i, 0])] = 1


def fault(call) -> str:
    with pytest.raises(MXNetError) as caught:
        call()
    return str(caught.value)


def test_faults_come_where_a_result_is_waited_for():
    x = mx.nd.zeros((2, 4))
    good = mx.nd.t_checked(x)
    x[1, 0] = -1
    bad = mx.nd.t_checked(x) + 1
    assert "it raised ValueError\n    raise ValueError(" in fault(bad.asnumpy)
    x[1, 0] = 3
    assert "it raised AssertionError\n    assert x[i, 0] != 3" in fault(mx.nd.t_checked(x).asnumpy)
    x[1, 0] = 4
    text = fault(mx.nd.t_checked(x).asnumpy)
    assert "an index is out of bounds (x has the shape (2, 4), out has the shape (2, 4))\n    out[i, int(" in text
    assert good.asnumpy().tolist() == [[1, 0, 0, 0]] * 2


def test_parts_that_do_not_fit():
    @mx.operator.kernel("t_parts")
    def parts(x, out):
        if x[0] > 0:
            out[:2] = x[:3]
        out[0] = np.argmax(x[3:])

    for first in (0, 1):
        message = fault(mx.nd.t_parts(mx.nd.array([first, 0, 0])).asnumpy)
        assert "parts of arrays do not fit each other, or one has no elements" in message


def test_an_executor_runs_on_after_a_fault():
    symbol = mx.sym.t_checked(mx.sym.Variable("x") * 1) + 1
    bound = symbol.simple_bind(mx.cpu(), grad_req="null", x=(2, 4))
    for wrong in (-1, 3, 4):
        bound.arg_dict["x"][:] = wrong
        assert f"{Path(__file__).name}, line" in fault(lambda: bound.forward()[0].asnumpy())
        bound.arg_dict["x"][:] = 2
        assert bound.forward()[0].asnumpy().tolist() == [[1, 1, 2, 1]] * 2


def test_threads_do_not_mix_their_faults():
    symbol = mx.sym.t_checked(mx.sym.Variable("x"))
    found: dict[int, set] = {0: set(), -1: set()}

    def work(value: int) -> None:
        bound = symbol.simple_bind(mx.cpu(), grad_req="null", x=(2, 4))
        bound.arg_dict["x"][:] = value
        for _ in range(50):
            try:
                found[value].add(str(bound.forward()[0].asnumpy().tolist()))
            except MXNetError:
                found[value].add("error")

    threads = [threading.Thread(target=work, args=(value,)) for value in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: {str([[1.0, 0, 0, 0]] * 2).replace(" 0", " 0.0")}, -1: {"error"}}


# -- other processes

PROGRAM = '''
import sys
BLOCK
import numpy as np
import mxc as mx

def gradient(x, scale, grad_out, grad_x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            grad_x[i, j] = grad_out[i, j] * scale[i]

@mx.operator.kernel("rowscale", shapes=lambda x, scale: x, gradient=gradient)
def rowscale(x, scale, out, *, bias=0.5):
    for i in range(x.shape[0]):
        if scale[i] < 0:
            raise ValueError("a negative scale")
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * scale[i] + bias

data, weight = mx.sym.Variable("data"), mx.sym.Variable("weight")
net = mx.sym.FullyConnected(data, weight, no_bias=True, num_hidden=5)
net = mx.sym.relu(mx.sym.rowscale(mx.sym.relu(net), mx.sym.Variable("scale"), bias=0.25) - 0.1)
bound = net.simple_bind(mx.cpu(), data=(4, 3), weight=(5, 3), scale=(4,))
for name, array in bound.arg_dict.items():
    array[:] = np.random.RandomState(len(name)).rand(*array.shape)
total = bound.forward(is_train=True)[0].asnumpy().sum()
bound.backward([mx.nd.ones((4, 5))])
print(total, bound.grad_dict["weight"].asnumpy().sum(), bool(sys.modules.get("numba")))
'''


def start(tmp_path: Path, text: str, *args: str) -> subprocess.Popen:
    path = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"
    path.write_text(text)
    environment = {**os.environ, "MXC_CACHE_DIR": str(tmp_path / "cache")}
    return subprocess.Popen([sys.executable, str(path), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=environment)


def output(process: subprocess.Popen) -> str:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


def test_a_second_process_needs_no_numba(tmp_path):
    first = [start(tmp_path, PROGRAM.replace("BLOCK", "")) for _ in range(2)]  # at once
    values = {" ".join(output(process).split()[:2]) for process in first}  # the later one may find all there
    assert len(values) == 1
    value = values.pop().split()
    moved = PROGRAM.replace("BLOCK", "sys.modules['numba'] = None").replace(
        "        if scale", "        # a comment, and a line more\n\n        if scale")
    assert output(start(tmp_path, moved)).split() == [*value[:2], "False"]
    other = PROGRAM.replace("BLOCK", "").replace("* scale[i] + bias", "* scale[i] - bias")
    assert output(start(tmp_path, other)).split()[0] != value[0]  # another definition has code of its own


def test_without_numba_and_without_its_code(tmp_path):
    process = start(tmp_path, PROGRAM.replace("BLOCK", "sys.modules['numba'] = None"))
    errors = process.communicate()[1]
    assert process.returncode and "Numba cannot be imported" in errors
    assert "operator rowscale is compiled by it" in errors


def test_an_artifact_runs_without_numba_and_without_the_operator(tmp_path):
    saving = PROGRAM.replace("BLOCK", "") + textwrap.dedent('''
        forward = bound.forward(is_train=False)[0].asnumpy().sum()
        mx.artifact.save(sys.argv[1], [bound], ["data", "scale"])
        print(forward)
    ''')
    loading = textwrap.dedent('''
        import sys
        sys.modules["numba"] = sys.modules["llvmlite"] = None
        import numpy as np
        import mxc as mx
        model = mx.load(sys.argv[1])
        inputs = {n: np.random.RandomState(len(n)).rand(*s) for n, s in (("data", (4, 3)), ("scale", (4,)))}
        wanted = model.predict(**inputs)
        try:
            model.predict(data=inputs["data"], scale=-inputs["scale"])
        except mx.MXNetError as error:
            print(error)
        (value,), (again,) = wanted.values(), model.predict(**inputs).values()
        print((value == again).all(), value.sum())
    ''')
    path = str(tmp_path / "model.mxc")
    forward = output(start(tmp_path, saving, path)).split()[-1]
    lines = output(start(tmp_path, loading, path)).splitlines()
    assert lines[0].startswith("node 'rowscale0': operator rowscale: its function (")
    assert lines[0].endswith("it raised ValueError")
    assert lines[1] == '    raise ValueError("a negative scale")'
    assert lines[2].split() == ["True", forward]


def test_a_forked_process_runs_kernels(tmp_path):
    forking = PROGRAM.replace("BLOCK", "import os") + textwrap.dedent('''
        child = os.fork()
        if not child:
            x = mx.nd.rowscale(mx.nd.ones((2, 3)), mx.nd.ones((2,)), bias=2)
            os._exit(int(x.asnumpy().sum()))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    ''')
    assert output(start(tmp_path, forking)).split()[-1] == "18"
