"""One start of one peer: a process that reads a saved network, runs it, and tells how long everything took.

    first.py PEER FOLDER           prints {"numpy": seconds of its import, "first": from there to the first result,
                                   "network": of a run then, "outputs": [[shape, largest, samples]]}
    first.py onnx FOLDER           writes the network as ONNX there, for those that read it

FOLDER holds what each peer would be given: net-symbol.json and net-0000.params (MXNet), net.onnx, net.mxc, values.npz
and case.json (torch), and the input, x.npy.
"""
from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

START = time.perf_counter()
import numpy as np  # noqa: E402

NUMPY = time.perf_counter() - START
RUNS = 7


def mxc(folder: Path, x: np.ndarray) -> Any:
    import mxc

    model = mxc.load(folder / "net.mxc")
    return lambda: next(iter(model.predict(data=x).values()))


def mxnet(folder: Path, x: np.ndarray) -> Any:
    import mxnet as mx

    symbol = mx.sym.load(str(folder / "net-symbol.json"))
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", data=x.shape)
    loaded = mx.nd.load(str(folder / "net-0000.params"))
    executor.copy_params_from({k[4:]: v for k, v in loaded.items() if k.startswith("arg:")},
                              {k[4:]: v for k, v in loaded.items() if k.startswith("aux:")})
    executor.arg_dict["data"][:] = x
    return lambda: executor.forward(is_train=False)[0].asnumpy()


def onnxruntime(folder: Path, x: np.ndarray) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    session = onnxruntime.InferenceSession(str(folder / "net.onnx"), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"data": x})[0]


def openvino(folder: Path, x: np.ndarray) -> Any:
    import openvino

    compiled = openvino.Core().compile_model(str(folder / "net.onnx"), "CPU", {
        "INFERENCE_NUM_THREADS": int(os.environ["OMP_NUM_THREADS"]), "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    return lambda: request.infer({"data": x})[0]


def torch(folder: Path, x: np.ndarray, peer: str = "torch") -> Any:
    from peers import torch_peer
    from peers.graph import Case

    case = Case.load(folder / "case.json")
    arrays = dict(np.load(folder / "values.npz"))
    case.arrays = lambda: {**arrays, "data": x}  # type: ignore[method-assign]
    run, fetch = torch_peer.make(peer, case)

    def forward() -> np.ndarray:
        run()
        return fetch()[0]

    return forward


def torch_compile(folder: Path, x: np.ndarray) -> Any:
    return torch(folder, x, "torch.compile")


PEERS = {"mxc": mxc, "mxnet": mxnet, "onnxruntime": onnxruntime, "openvino": openvino, "torch": torch,
         "torch.compile": torch_compile}


def main(peer: str, folder: Path) -> None:
    sys.path[0] = str(Path(__file__).parents[1])
    x = np.load(folder / "x.npy")
    begun = time.perf_counter()
    run = PEERS[peer](folder, x)
    output = np.array(run())
    first = time.perf_counter() - begun
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    import json

    from peers.serve import sample

    print(json.dumps({"numpy": NUMPY, "first": first, "network": min(times), "outputs": [sample(output, True)]}))


def write_onnx(folder: Path) -> None:
    sys.path[0] = str(Path(__file__).parents[1])
    from peers import onnx_export
    from peers.graph import Case

    case = Case.load(folder / "case.json")
    arrays = dict(np.load(folder / "values.npz"))
    case.arrays = lambda: {**arrays, "data": np.load(folder / "x.npy")}  # type: ignore[method-assign]
    (folder / "net.onnx").write_bytes(onnx_export.model(case))


if __name__ == "__main__":
    if sys.argv[1] == "onnx":
        write_onnx(Path(sys.argv[2]))
    else:
        main(sys.argv[1], Path(sys.argv[2]))
