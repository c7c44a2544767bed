"""A network over numbers of 8 bits, or in float32, in a process of its own: `quantized.py KIND CASE`.

KIND: `mxc`, `mxc-int8` (mx.contrib.quantization, ranges from the one example, oneDNN's fused form), `onnxruntime` or
`onnxruntime-int8` (its own static quantization with the same example: QDQ, data uint8, a range for each filter). It
prints its version and waits: for each line with a number it runs the network so often, and prints the CPU seconds of
one run and the index of the largest output.
"""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.graph import Case


def mxc(case: Case, eight_bits: bool) -> tuple[str, Callable[[], np.ndarray]]:
    """mxc's version, and the run of the network."""
    import json

    import mxc as mx
    from mxc.contrib import quantization

    arrays = {name: mx.nd.array(value) for name, value in case.arrays().items()}
    data = arrays.pop("data")
    symbol = mx.sym.load_json(json.dumps(case.graph))
    args = {name: value for name, value in arrays.items() if name not in case.aux}
    aux = {name: arrays[name] for name in case.aux}
    if eight_bits:
        symbol, args, aux = quantization.quantize_model_mkldnn(
            symbol, args, aux, calib_mode="naive", calib_data=mx.io.NDArrayIter(data, None, len(data)),
            quantized_dtype="auto", quantize_mode="full")
    bound = symbol.bind(mx.cpu(), {**args, "data": data}, aux_states=aux, grad_req="null")
    return mx.__version__, lambda: bound.forward(is_train=False)[0].asnumpy()


def onnxruntime(case: Case, eight_bits: bool) -> tuple[str, Callable[[], np.ndarray]]:
    """onnxruntime's version, and the run of the network."""
    import onnxruntime as ort
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    from peers import onnx_export

    feed = {"data": case.arrays()["data"]}

    class Example(CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [feed]

        def get_next(self) -> dict[str, np.ndarray] | None:
            return self.left.pop() if self.left else None

    folder = Path(sys.argv[2]).parent
    model = folder / "float.onnx"
    model.write_bytes(onnx_export.model(case))
    if eight_bits:
        quant_pre_process(str(model), str(folder / "ready.onnx"), skip_symbolic_shape=True)
        quantize_static(str(folder / "ready.onnx"), str(folder / "int8.onnx"), Example(), quant_format=QuantFormat.QDQ,
                        per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        model = folder / "int8.onnx"
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = int(os.environ["OMP_NUM_THREADS"]), 1
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return ort.__version__, lambda: session.run(None, feed)[0]


def main() -> None:
    kind, eight_bits = sys.argv[1].removesuffix("-int8"), sys.argv[1].endswith("-int8")
    version, run = {"mxc": mxc, "onnxruntime": onnxruntime}[kind](Case.load(sys.argv[2]), eight_bits)
    run()
    print(version, flush=True)
    for line in sys.stdin:
        begun = time.process_time()
        for _ in range(int(line)):
            found = run()
        print((time.process_time() - begun) / int(line), int(found.argmax()), flush=True)


if __name__ == "__main__":
    main()
