"""Kvstores of several processes: each test starts a cluster of Ray's, so most of them are slow."""
from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dist_kills
import numpy as np
import pytest

import mxc as mx
from mxc.kvstore import parts

HERE = Path(__file__).parent
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None or sys.platform != "linux",
                               reason="the package ray is not there")


needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="the package torch is not there")


def launched(*options: str, program: list[str]) -> Any:
    command = [sys.executable, "-m", "mxc", "launch", "--store", "150M", "--cpus", "0.5", *options, sys.executable,
               *program]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def parameters(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return dict(file)


def trained(tmp_path: Path, workers: int, servers: int, kind: str, *options: str) -> list[dict[str, np.ndarray]]:
    """The parameters of each worker."""
    folder = tmp_path / f"{workers}-{servers}-{kind}-{'-'.join(options)}"
    program = [str(HERE / "dist_training.py"), str(folder), "--kind", kind, *options]
    if workers:
        found = launched("-n", str(workers), "-s", str(servers), "--env", f"{parts.BOUND}=1000", program=program)
        assert found.returncode == 0, found.stdout + found.stderr
    else:
        subprocess.run([sys.executable, *program], check=True, capture_output=True, timeout=600)
    return [parameters(folder / f"{rank}.npz") for rank in range(max(workers, 1))]


def assert_same(found: list[dict[str, np.ndarray]], wanted: dict[str, np.ndarray]) -> None:
    for each in found:
        assert each.keys() == wanted.keys()
        for name in wanted:
            np.testing.assert_allclose(each[name], wanted[name], atol=1e-5)


@needs_ray
def test_two_workers_train_as_one_with_the_whole_batch(tmp_path: Path) -> None:
    wanted = trained(tmp_path, 0, 0, "none", "--network", "lenet")[0]
    assert_same(trained(tmp_path, 2, 2, "dist_sync", "--network", "lenet"), wanted)


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize("options", [("--network", "mlp"), ("--network", "lenet", "--optimizer", "adam"),
                                     ("--api", "bucketing"), ("--api", "gluon"), ("--api", "gluon", "--own-updates"),
                                     ("--api", "rows"), ("--api", "rows", "--optimizer", "adam"),
                                     ("--api", "rows", "--own-updates"), ("--api", "csr"),
                                     ("--optimizer", "lamb")], ids=" ".join)
def test_workers_train_as_one(tmp_path: Path, options: tuple[str, ...]) -> None:
    wanted = trained(tmp_path, 0, 0, "none", *options)[0]
    one, three = (trained(tmp_path, 4, servers, "dist_sync", *options) for servers in (1, 3))
    assert_same(one + three, wanted)
    for name in wanted:
        np.testing.assert_array_equal(one[0][name], three[0][name])


@needs_ray
@pytest.mark.slow
def test_asynchronous_workers_learn(tmp_path: Path) -> None:
    program = [str(HERE / "dist_training.py"), str(tmp_path), "--kind", "dist_async", "--epochs", "30"]
    found = launched("-n", "2", "-s", "2", program=program)
    assert found.returncode == 0 and found.stdout.count("accuracy 1.0") == 2, found.stdout + found.stderr


STORES = """
import mxc as mx
kv = mx.kv.create("dist_sync")
out, rank = mx.nd.zeros((3, 2)), kv.rank
def tell(*what): print("TOLD", *what, flush=True)
def refused(call):
    try:
        call()
    except mx.MXNetError as error:
        tell("refused", error)
    else:
        tell("taken")
kv.init("a", mx.nd.ones((3, 2)) * (5 + rank))
kv.pull("a", out=out)
tell("first", out.asnumpy().ravel().tolist())
kv.push("a", mx.nd.ones((3, 2)) * (rank + 1))
kv.pull("a", out=out)
tell("sum", out.asnumpy().ravel().tolist())
kv._set_updater(lambda key, given, value: tell("updater"))
value = mx.nd.ones((3, 2)) * (rank + 1)
kv.pushpull("a", value, out=value)
tell("pushpull", value.asnumpy()[0, 0])
kv.row_sparse_pull("a", out=out, row_ids=mx.nd.array([2]))
tell("rows", out.asnumpy().ravel().tolist())
sparse = mx.kv.create("dist_sync")
sparse.init("s", mx.nd.ones((3, 2)).tostype("row_sparse"))
sparse.push("s", mx.nd.sparse.row_sparse_array((mx.nd.ones((1, 2)), [rank]), shape=(3, 2)))
some = mx.nd.sparse.zeros("row_sparse", (3, 2))
sparse.row_sparse_pull("s", out=some, row_ids=mx.nd.array([2, 1, 1]))
tell("some", some.indices.asnumpy().tolist(), some.asnumpy().ravel().tolist())
sparse.pull("s", out=some, ignore_sparse=False)
tell("stored", some.indices.asnumpy().tolist())
if rank == 1:
    refused(lambda: kv.init("other", mx.nd.ones((2,))))
    refused(lambda: kv.push("a", mx.nd.ones((4,))))
    refused(lambda: kv.push("a", mx.nd.ones((3, 2), dtype="float16")))
    refused(lambda: kv.push("a", mx.nd.ones((3, 2)).tostype("csr")))
    refused(lambda: kv.push("never", mx.nd.ones((3, 2))))
    kv.init("c", mx.nd.ones((3,)))
else:
    kv.init("c", mx.nd.zeros((3,)))
kv.barrier()
compressed = mx.kv.create("dist_sync")
compressed.set_gradient_compression({"type": "2bit", "threshold": 0.5})
compressed.init("c", mx.nd.zeros((3,)))
c = mx.nd.zeros((3,))
for _ in range(3):
    compressed.push("c", mx.nd.array([0.3, -0.7, 1.2]))
    compressed.pull("c", out=c)
    tell("2bit", c.asnumpy().tolist())
adam = mx.optimizer.create("adam", learning_rate=0.1)
stepped = mx.kv.create("dist")
stepped.set_optimizer(adam)
stepped.init("w", mx.nd.ones((3, 2)))
stepped.pushpull("w", mx.nd.ones((3, 2)), out=out)
if rank == 0:
    stepped.save_optimizer_states("STATES", dump_optimizer=True)
stepped.barrier()
stepped.load_optimizer_states("STATES")
adam.set_learning_rate(0.0)
stepped.pushpull("w", mx.nd.ones((3, 2)), out=value)
tell("adam", [round(float(x), 5) for x in (out.asnumpy()[0, 0], value.asnumpy()[0, 0])], type(kv).__name__, kv.type)
"""


@needs_ray
@pytest.mark.slow
def test_stores_do_what_mxnets_do(tmp_path: Path) -> None:
    program = tmp_path / "stores.py"
    program.write_text(STORES.replace("STATES", str(tmp_path / "states")))
    found = launched("-n", "2", "-s", "2", "--env", f"{parts.BOUND}=4", program=[str(program)])
    assert found.returncode == 0, found.stdout + found.stderr
    for rank in range(2):
        told = [line.partition("TOLD ")[2] for line in found.stdout.splitlines() if line.startswith(f"[worker {rank}]")]
        refused = [line for line in told if line.startswith("refused")]
        assert [line for line in told if not line.startswith("refused")] == [
            "first [5.0, 5.0, 5.0, 5.0, 5.0, 5.0]", "sum [3.0, 3.0, 3.0, 3.0, 3.0, 3.0]", "pushpull 3.0",
            "rows [0.0, 0.0, 0.0, 0.0, 3.0, 3.0]", "some [1, 2] [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]", "stored [0, 1]",
            "2bit [0.0, -1.0, 1.0]", "2bit [1.0, -1.0, 1.0]",
            "2bit [0.0, -1.0, 1.0]", "adam [0.9, 0.9] DistKVStore dist_sync"]
        assert len(refused) == 5 * rank
    assert "initializes the key 'other', where worker 0 initialized 'c'" in found.stdout
    assert "has a value of dtype float32; what is pushed has float16" in found.stdout
    states = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    states.set_states((tmp_path / "states").read_bytes())
    assert [each.shape for each in states.states["w"]] == [(3, 2), (3, 2)]


@needs_ray
@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("api", ["module", "gluon"])
def test_workers_without_servers_train_as_one(tmp_path: Path, api: str) -> None:
    found = trained(tmp_path, 2, 0, "dist_allreduce", "--api", api)
    assert_same(found, trained(tmp_path, 0, 0, "none", "--api", api)[0])
    for name in found[0]:
        np.testing.assert_array_equal(found[0][name], found[1][name])


SUMS = """
import os, time
import mxc as mx
kv = mx.kv.create("dist_allreduce")
outs, rank = [mx.nd.zeros((3,)), mx.nd.zeros((3,))], kv.rank
def tell(*what): print("TOLD", *what, flush=True)
kv.broadcast(7, mx.nd.ones((3,)) * (5 + rank), out=outs)
tell("first", *[out.asnumpy().tolist() for out in outs])
values = [mx.nd.ones((3,)) * (rank + 1), mx.nd.array([rank], dtype="int32")]
kv.pushpull([7, 8], values)
kv.pushpull(7, [values[0], values[0]], out=outs)
tell("sums", values[0].asnumpy().tolist(), values[1].asnumpy().tolist(), outs[1].asnumpy().tolist())
try:
    kv.pushpull(7, mx.nd.sparse.zeros("row_sparse", (3, 2)))
except mx.MXNetError as error:
    tell("refused", error)
kv.barrier()
many = [mx.nd.ones((1000, rank + 2)) for rank in range(9)]
for i, each in enumerate(many):
    if rank == 0:
        time.sleep(0.01)
    kv.pushpull(i, each)
tell("many", *{float(each.asnumpy().mean()) for each in many})
other = mx.kv.create("dist_allreduce")
wrong = mx.nd.ones((3 + rank,))
try:
    other.pushpull("a", wrong)
    wrong.asnumpy()
except mx.MXNetError as error:
    tell("different", error)
if rank == 1:
    os._exit(3)
try:
    kv.pushpull(7, values[0])
    values[0].asnumpy()
except mx.MXNetError as error:
    tell("failed", error)
"""


@needs_ray
@needs_torch
@pytest.mark.slow
def test_workers_sum_without_servers_and_a_lost_one_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "sums.py"
    program.write_text(SUMS)
    found = launched("-n", "2", "-s", "0", program=[str(program)])
    assert found.returncode == 3, found.stdout + found.stderr
    for rank in range(2):
        told = [line.partition("TOLD ")[2] for line in found.stdout.splitlines() if line.startswith(f"[worker {rank}]")]
        assert told[:2] == ["first [5.0, 5.0, 5.0] [5.0, 5.0, 5.0]", "sums [3.0, 3.0, 3.0] [1] [12.0, 12.0, 12.0]"]
        assert told[2].startswith("refused") and "dist_allreduce sums dense arrays" in told[2]
        assert told[3] == "many 2.0" and f"this one for those of 'a' (float32 ({3 + rank},))" in told[4]
    assert "kvstore: the workers cannot sum any more: one of them has been killed" in found.stdout


@needs_ray
@pytest.mark.parametrize("target", ["worker", *(pytest.param(each, marks=pytest.mark.slow) for each in
                                                dist_kills.TARGETS[1:])])
def test_what_is_killed_ends_as_promised(target: str) -> None:
    found = dist_kills.run(dist_kills.Case(target, 0.5), patience=4)  # dist_kills.py itself looks at the time
    assert found["wrong"] == "", "\n".join(line for _, line in found["lines"])


@pytest.fixture
def two_nodes() -> Iterator[Any]:
    """A cluster that runs already, see dist_nodes.py: its address, and a function that kills one of its two nodes."""
    running = subprocess.Popen([sys.executable, str(HERE / "dist_nodes.py")], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    assert running.stdin is not None and running.stdout is not None
    orders = running.stdin

    def kill() -> None:
        orders.write("kill\n")
        orders.flush()

    try:
        yield running.stdout.readline().strip(), kill
    finally:
        orders.close()
        running.wait(60)


@needs_ray
@pytest.mark.slow
def test_workers_on_several_nodes_train_and_end_when_a_node_is_killed(tmp_path: Path, two_nodes: Any) -> None:
    address, kill = two_nodes
    program = [sys.executable, str(HERE / "dist_training.py"), str(tmp_path / "found"), "--kind", "dist_sync", "--tell"]
    command = [sys.executable, "-m", "mxc", "launch", "--address", address, "-n", "2", "-s", "2", *program]
    subprocess.run(command, check=True, capture_output=True, timeout=240)  # a node has one CPU, so each has a worker
    assert_same([parameters(tmp_path / f"found/{rank}.npz") for rank in range(2)],
                trained(tmp_path, 0, 0, "none")[0])
    running = subprocess.Popen([*command, "--epochs", "1000000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True)
    try:
        assert running.stdout is not None
        told: list[str] = []
        for line in running.stdout:
            told.append(line)
            if sum("] training" in each for each in told) == 2:
                break
        kill()
        told += running.communicate(timeout=240)[0].splitlines(keepends=True)
    finally:
        running.kill()
    text = "".join(told)
    assert running.returncode == 137, text
    assert len(re.findall(r"^\[worker \d\] \S*MXNetError: kvstore: .* the (workers|others) cannot go on", text,
                          re.MULTILINE)) == 1, text


@needs_ray
@pytest.mark.slow
def test_programs_that_mxnets_launcher_starts_run(tmp_path: Path) -> None:
    port, folder = 20000 + os.getpid() % 10000, tmp_path / "found"
    variables = {**os.environ, "HOME": str(tmp_path), "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": str(port),
                 "DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "1", "RAY_AUTH_TOKEN": "0123456789" * 4}
    program = [sys.executable, str(HERE / "dist_training.py"), str(folder), "--kind", "dist_sync"]
    roles = ["scheduler", "server", "worker", "worker"]
    running = [subprocess.Popen(program, env={**variables, "DMLC_ROLE": role}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True) for role in roles]
    try:
        told = [each.communicate(timeout=180)[0] for each in running]
    finally:
        for each in running:
            each.kill()
    assert [each.returncode for each in running] == [0] * 4, told
    assert_same([parameters(folder / f"{rank}.npz") for rank in range(2)], trained(tmp_path, 0, 0, "none")[0])
