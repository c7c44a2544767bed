"""Reports of users about arrays in several processes, and about machines without a GPU."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WORKERS = """
import multiprocessing
import mxc as mx

def work(index):
    # large enough for the engine's threads and for a compiled product
    batch = mx.nd.ones((256, 1024)) * index
    return index, mx.nd.dot(batch, batch.T), batch.asnumpy()

if __name__ == "__main__":
    ahead = mx.nd.ones((256, 1024))
    product = mx.nd.dot(ahead, ahead.T)  # under way when the workers start
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            seen = []
            for index, result, batch in pool.imap(work, range(4)):
                assert result.shape == (256, 256) and batch.shape == (256, 1024)
                assert (result == 1024 * index ** 2).asnumpy().all() and (batch == index).all()
                seen.append(index)
        assert seen == [0, 1, 2, 3]
        assert (product == 1024).asnumpy().all()
    print("done")
"""


def test_e03_large_arrays_from_worker_processes(tmp_path: Path) -> None:
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


ALONE = """
import pathlib
import mxc as mx
assert mx.nd.relu(mx.nd.array([-1, 2])).asnumpy().tolist() == [0, 2]
maps = pathlib.Path("/proc/self/maps")
loaded = maps.read_text() if maps.exists() else ""
assert not [name for name in ("libcuda", "libnccl", "libcudnn", "libnvrtc") if name in loaded]
assert mx.context.num_gpus() == 0
try:
    mx.nd.zeros((1,), ctx=mx.gpu())
except mx.MXNetError as error:
    assert "gpu(0)" in str(error), error
    print("refused")
"""


def test_i03_without_cuda() -> None:
    """Neither the import nor work on the CPU loads a library of CUDA's; asking for a GPU says that there is none."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused\n", "")
