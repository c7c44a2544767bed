"""Several processes, threads and forks, killed writers, full disks and strange directories: the cache stays sound."""
from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mxc.compiler.cache import Cache
from mxc.compiler.cache_files import decode

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sends signals and reads /proc")

MODEL = """
import sys, numpy as np, mxc as mx

def bound():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    net = mx.sym.Activation(net, act_type="relu")
    executor = net.simple_bind(mx.cpu(), grad_req="null", data=(2, 4))
    executor.arg_dict["data"][:] = 1
    executor.arg_dict["fc_weight"][:] = 0.5
    return executor

def check(executor):
    out = executor.forward()[0].asnumpy()
    assert (out == 2).all(), out

executor = bound()
check(executor)
library = executor.compiled().library
"""
REPORT = MODEL + "print(library.hits, library.misses, 'mxc.compiler.targets.cpu.build.worker' in sys.modules)\n"
ALL_HITS = "2 0 False"
FILES = 5  # two kernels, the runner, the plan, and what LLVM calls the machine
KILLS = 50


def environment(cache: Path | str, **more: str) -> dict[str, str]:
    cleared = {k: v for k, v in os.environ.items() if not k.startswith(("MXC_", "XDG_"))}
    return {**cleared, "MXC_CACHE_DIR": str(cache), **more}


def start(script: str, cache: Path | str, **more: Any) -> subprocess.Popen[str]:
    given = {k: more.pop(k) for k in list(more) if k.isupper()}
    return subprocess.Popen([sys.executable, "-c", script], env=environment(cache, **given), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def finish(process: subprocess.Popen[str], seconds: float = 120) -> tuple[str, str]:
    """What a process that ended well printed to its two outputs."""
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, (process.returncode, err[-2000:])
    return out.strip(), err


def warm(cache: Path) -> str:
    return finish(start(REPORT, cache))[0]


def entries(cache: Path) -> list[Path]:
    return sorted(cache.glob("*.mxk"))


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds MODEL's kernels."""
    path = tmp_path_factory.mktemp("filled") / "cache"
    assert finish(start(REPORT, path))[0] == "0 2 True"
    return path


@pytest.fixture
def own(filled: Path, empty: Path) -> Path:
    """A copy of the filled cache, to be damaged."""
    for entry in entries(filled):
        (empty / entry.name).write_bytes(entry.read_bytes())
        os.chmod(empty / entry.name, 0o600)
    return empty


def test_p06_a_second_process_compiles_nothing_and_loads_no_compiler(filled: Path) -> None:
    began = time.monotonic()
    assert warm(filled) == ALL_HITS
    assert time.monotonic() - began < 30


@pytest.mark.slow
def test_p07_processes_that_start_at_once_share_an_empty_cache_and_the_work(empty: Path) -> None:
    reports = [finish(process, 300)[0].split() for process in [start(REPORT, empty) for _ in range(8)]]
    assert sum(int(misses) for _, misses, _ in reports) == 2, reports  # what one process would compile
    assert len(entries(empty)) == FILES and not list(empty.glob(".mxc-*")) and not list(empty.glob("*.bad"))
    assert warm(empty) == ALL_HITS


@pytest.mark.slow
def test_p07_writers_killed_anywhere_leave_a_sound_cache(empty: Path) -> None:
    """Each starts with what the ones before have left, but for one entry: there is always something to write."""
    chosen = random.Random(0)
    for _ in range(KILLS):
        process = start(REPORT, empty)
        wait_for(lambda process=process: "llvmlite" in maps(process.pid) or process.poll() is not None)
        time.sleep(chosen.uniform(0, 0.8))
        process.kill()
        process.communicate()
        assert Cache(empty).verify() == []
        for entry in chosen.sample(entries(empty), min(1, len(entries(empty)))):
            entry.unlink()
    finish(start(REPORT, empty))
    assert warm(empty) == ALL_HITS and Cache(empty).verify() == []


def test_what_killed_writers_leave_is_removed_later(own: Path) -> None:
    old, new = own / ".mxc-old.tmp", own / ".mxc-new.tmp"
    for path in (old, new):
        path.write_bytes(b"half an entry")
    os.utime(old, (0, 0))
    assert warm(own) == ALL_HITS
    assert not old.exists() and new.exists()


def spoil_cut(place: Path) -> None:
    place.write_bytes(place.read_bytes()[:-1])


def spoil_empty(place: Path) -> None:
    place.write_bytes(b"")


def spoil_flip(place: Path) -> None:
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(bytes(data))


def spoil_directory(place: Path) -> None:
    place.unlink()
    (place / "below").mkdir(parents=True)


def spoil_pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def spoil_link(place: Path) -> None:
    place.unlink()
    place.symlink_to("/dev/zero")


@pytest.mark.parametrize("spoil", [spoil_cut, spoil_empty, spoil_flip, spoil_directory, spoil_pipe, spoil_link],
                         ids=lambda f: f.__name__.removeprefix("spoil_"))
def test_p07_a_bad_entry_is_refused_with_its_reason(own: Path, spoil: Any) -> None:
    place = entries(own)[0]
    good = place.read_bytes()
    cache = Cache(own)
    spoil(place)
    with pytest.warns(RuntimeWarning, match="is not used and is built anew"):
        assert cache.get(place.stem) is None
    assert cache.refused == 1 and not place.exists()
    cache.put(place.stem, *decode(good, place.stem))
    assert cache.get(place.stem) == decode(good)[1]


@pytest.mark.slow
def test_p07_a_process_builds_bad_entries_anew(own: Path) -> None:
    for place in entries(own):
        spoil_flip(place)
    out, err = finish(start(REPORT, own))
    assert out == "0 2 True" and err.count("is not used and is built anew") == FILES
    assert warm(own) == ALL_HITS


# -- directories that cannot be used


SMALL = """
import warnings
from mxc.compiler import cache, cache_files
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    opened = [cache.open_cache() for _ in range(3)]
print(opened[0] and opened[0].path)
print(len(seen), *[str(w.message) for w in seen])
"""


def opened_in(cache: Path | str, temporary: Path | str, **more: str) -> tuple[str, str]:
    out, _ = finish(start(SMALL, cache, TMPDIR=str(temporary), **more))
    where, said = out.split("\n", 1)
    return where, said


def test_p01_a_directory_that_others_can_write_to_is_refused_once(empty: Path, tmp_path: Path) -> None:
    os.chmod(empty, 0o777)
    where, said = opened_in(empty, tmp_path)
    assert where.startswith(str(tmp_path / "mxc-")) and said.startswith("1 ") and "others can write to it" in said
    assert not entries(empty)


def test_p01_no_home_and_no_temporary_directory_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    script = SMALL.replace("import warnings", "import os, tempfile, warnings\ntempfile.tempdir = '/proc/none'\n"
                           "del os.environ['MXC_CACHE_DIR']", 1)
    out, _ = finish(start(script, "", HOME="/proc/nonexistent"))
    assert out.startswith("None\n1 ") and "compiled but not cached" in out


@pytest.mark.slow
def test_p01_programs_run_without_a_cache() -> None:
    script = "import tempfile; tempfile.tempdir = '/proc/none'\n" + REPORT
    out, err = finish(start(script, "/proc/nonexistent/cache"))
    assert out == "0 2 True" and err.count("RuntimeWarning") == 1, err


def test_p01_a_read_only_directory_is_not_used(tmp_path: Path) -> None:
    script = SMALL.replace("import warnings", f"""
import os, warnings
os.chmod({str(tmp_path)!r}, 0o755)
os.mkdir({str(tmp_path / "readonly")!r}, 0o555)
os.mkdir({str(tmp_path / "temporary")!r}, 0o777)
os.chmod({str(tmp_path / "temporary")!r}, 0o777)
from mxc.compiler import cache, cache_files
if os.geteuid() == 0:  # root may write anywhere
    os.seteuid(65534)
""", 1)
    out, _ = finish(start(script, tmp_path / "readonly", TMPDIR=str(tmp_path / "temporary")))
    where, said = out.split("\n", 1)
    assert "readonly" not in where and said.startswith("1 ") and "readonly" in said, out


@pytest.mark.slow
def test_a_full_disk_is_one_warning(empty: Path) -> None:
    script = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n" + REPORT
    out, err = finish(start(script, empty))
    assert out == "0 2 True" and err.count("compiled but not cached") == 1, err
    assert not entries(empty) and not list(empty.glob(".mxc-*"))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stdin", "exec", "optimised"])
def test_p01_any_way_to_start_a_program(filled: Path, how: str) -> None:
    script = f"exec({REPORT!r}, {{}})" if how == "exec" else REPORT
    given = ["-"] if how == "stdin" else ["-O", "-c", script] if how == "optimised" else ["-c", script]
    done = subprocess.run([sys.executable, *given], input=script, env=environment(filled), text=True,
                          capture_output=True, timeout=120)
    assert done.stdout.strip() == ALL_HITS, done.stderr


# -- workers that compile


MANY = """
import os, sys, signal
from mxc.compiler.targets.cpu.build import worker
worker.SHARE = 1
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
import mxc as mx
names = ("erf", "gamma", "erfinv", "gammaln", "sin", "cos", "tan", "arcsin", "sinh", "cosh", "log", "exp", "tanh",
         "cbrt",
         "sum", "max", "min", "prod", "nansum", "softmax", "log_softmax", "arccosh", "arcsinh", "sigmoid")
pairs = [(outer, inner) for outer in ("sin", "cos", "tan", "cbrt", "erf") for inner in names]
net = mx.sym.Group([getattr(mx.sym, f)(getattr(mx.sym, g)(mx.sym.Variable(f + g))) for f, g in pairs])
executor = net.simple_bind(mx.cpu(), grad_req="null", **{f + g: (10 + i, 3) for i, (f, g) in enumerate(pairs)})
try:
    executor.forward()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.read()
"""


def children(pid: int) -> list[int]:
    try:
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def maps(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(what: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def compiling(empty: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process that compiles with four workers, which have started."""
    process = start(MANY, empty, MXC_NUM_THREADS="4", stdin=subprocess.PIPE)
    wait_for(lambda: len(children(process.pid)) == 4 or process.poll() is not None)
    workers = children(process.pid)
    yield process, workers
    process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 1.0])
def test_an_interrupt_leaves_no_workers(compiling: Any, delay: float) -> None:
    process, workers = compiling
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: not any(map(alive, workers)), 10)
    out, err = process.communicate("", timeout=60)
    assert process.returncode == 0 and out.strip() == "interrupted", err[-2000:]


@pytest.mark.slow
def test_a_killed_process_leaves_no_workers(compiling: Any) -> None:
    process, workers = compiling
    process.kill()
    wait_for(lambda: not any(map(alive, workers)), 60)


# -- threads, forks and the end of a process


TOGETHER = MODEL + """
import os, threading, time
other, busy = bound(), []
check(other)
stop = threading.Event()

def work(executor):
    while not stop.is_set():
        check(executor)
        busy.append(1)

threads = [threading.Thread(target=work, args=(e,)) for e in (executor, other)]
for thread in threads:
    thread.start()
while len(busy) < 20:
    time.sleep(0.001)
for number in range(20):
    child = os.fork()
    if child == 0:  # the threads are not there, nor are they holding anything
        for one in (executor, other):
            check(one)
        if number % 10 == 0:
            check(bound())
        os._exit(7)
    status, end = 0, time.monotonic() + 60
    while not status:
        done, status = os.waitpid(child, os.WNOHANG)
        if time.monotonic() > end:
            os.kill(child, 9)
            print(f"child {number} hangs", file=sys.stderr)
            os._exit(1)
        time.sleep(0.001)
    assert os.waitstatus_to_exitcode(status) == 7, status
stop.set()
for thread in threads:
    thread.join()
check(bound())
"""


def test_threads_and_forked_children_run_plans(filled: Path) -> None:
    finish(start(TOGETHER, filled, MXC_NUM_THREADS="3", PYTHONWARNINGS="ignore::DeprecationWarning"))


ENDINGS = {
    "plain": "", "exit": "sys.exit(0)", "backward": "executor.backward()", "global": "keep = [executor] * 3",
    "thread": "import threading; threading.Thread(target=lambda: [check(executor) for _ in range(100)]).start()",
    "daemon": ("import threading\ndef forever():\n    while True: executor.forward()\n"
               "threading.Thread(target=forever, daemon=True).start()"),
    "atexit": "import atexit; atexit.register(lambda: check(executor))",
    "cycle": "executor.self = executor", "fork": "import os\nif os.fork() == 0: check(executor)",
    "import": "del executor, bound, check",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize("threads", ["1", "4"])
def test_e06_a_process_may_end_right_after_a_run(filled: Path, name: str, threads: str) -> None:
    began = time.monotonic()
    _, err = finish(start(MODEL + ENDINGS[name], filled, MXC_NUM_THREADS=threads), 30)
    assert time.monotonic() - began < 20
    assert not [line for line in err.splitlines() if "Warning" not in line and "os.fork" not in line], err


def test_e06_a_process_ends_while_another_thread_runs(filled: Path) -> None:
    finish(start(MODEL + ENDINGS["daemon"], filled, MXC_NUM_THREADS="3"), 30)


# -- the machine


@pytest.mark.slow
def test_p03_another_cpu_is_a_miss_and_is_explained(filled: Path) -> None:
    script = REPORT.replace("import sys,", """
import llvmlite.binding as llvm
real = llvm.get_host_cpu_name
llvm.get_host_cpu_name = lambda: "x86-64" if real() != "x86-64" else "nocona"
from mxc.compiler.targets.cpu.machine import host
host._boot = lambda: "of the other machine"
host._names_apart = lambda: None  # which would ask the real one
import sys,""", 1)
    before = entries(filled)
    out, err = finish(start(script, filled, MXC_DEBUG="5"))
    assert out == "0 2 True" and "cpu was" in err
    for entry in set(entries(filled)) - set(before):
        entry.unlink()
    assert warm(filled) == ALL_HITS
