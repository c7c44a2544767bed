"""onnxruntime and OpenVINO: inference of the case's graph, which onnx_export writes as an ONNX model."""
from __future__ import annotations

import importlib
import os
from collections.abc import Callable

import numpy as np
from peers import onnx_export
from peers.graph import Case


def versions(peer: str) -> dict[str, str]:
    return {peer: importlib.import_module(peer).__version__}


def make(peer: str, case: Case) -> tuple[Callable[[], None], Callable[[], list[np.ndarray]]]:
    case.only("forward")
    model = onnx_export.model(case)
    arrays = case.arrays()
    feed = {name: arrays[name] for name in case.inputs}
    run = _onnxruntime(model) if peer == "onnxruntime" else _openvino(model)
    found: list[np.ndarray] = []

    def forward() -> None:
        found[:] = run(feed)

    return forward, lambda: found


def _onnxruntime(model: bytes) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)


def _openvino(model: bytes) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {
        "INFERENCE_NUM_THREADS": int(os.environ["OMP_NUM_THREADS"]), "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()

    def run(feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        request.infer(feed, share_inputs=True, share_outputs=True)
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return run
