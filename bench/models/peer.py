"""A peer that runs a model which write.py wrote: onnxruntime, openvino (f32) or torch.compile.

    peer.py PEER NAME FOLDER THREADS

For each line "SECONDS" that comes in it runs the model for so long, at least 3 times, and answers with a JSON line: the seconds of
each run. Before that, a line with the seconds until the model was loaded and had run once, its version, and how far its outputs are
from PyTorch's.
"""
import json
import logging
import os
import pathlib
import sys
import time
import warnings

sys.dont_write_bytecode = True
PEER, NAME, FOLDER, THREADS = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
os.environ["OMP_NUM_THREADS"] = str(THREADS)
warnings.filterwarnings("ignore")
import numpy as np  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402


def in_order(file):
    ir = json.loads((FOLDER / "model_ir.json").read_text(encoding="utf-8"))
    tensors = load_file(FOLDER / f"{file}.safetensors")
    return [tensors[t["name"]] for t in ir["graph_" + file]]


def onnxruntime():
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    start = time.perf_counter()
    session = ort.InferenceSession(FOLDER / "model.onnx", options, providers=["CPUExecutionProvider"])
    feed = dict(zip([x.name for x in session.get_inputs()], in_order("inputs"), strict=True))
    return ort.__version__, start, lambda: session.run(None, feed)


def openvino():
    import openvino as ov
    core = ov.Core()
    start = time.perf_counter()
    model = core.compile_model(str(FOLDER / "model.onnx"), "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY",
        "EXECUTION_MODE_HINT": "ACCURACY", "NUM_STREAMS": 1})
    request = model.create_infer_request()
    for i, x in enumerate(in_order("inputs")):
        request.set_tensor(model.input(i), ov.Tensor(x))  # a copy

    def run():
        request.infer()
        return [request.get_output_tensor(i).data for i in range(len(model.outputs))]
    return ov.__version__, start, run


def torch_compile():
    logging.disable(logging.WARNING)
    import torch
    import torch._inductor.config as inductor
    from models import make
    torch.set_num_threads(THREADS)
    inductor.freezing = True  # packs the weights, as a model that only runs may
    inductor.force_disable_caches = True
    model, inputs = make(NAME)
    compiled = torch.compile(model)

    def run():
        with torch.no_grad():
            made = compiled(*inputs)
        return [y.numpy() for y in (made if isinstance(made, tuple) else (made,))]
    return torch.__version__, time.perf_counter(), run


def main():
    version, start, run = {"onnxruntime": onnxruntime, "openvino": openvino, "torch.compile": torch_compile}[PEER]()
    made = run()
    ready = time.perf_counter() - start
    off = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(made, in_order("outputs"), strict=True))
    print(json.dumps({"version": version, "ready_s": ready, "difference": off}), flush=True)
    for line in sys.stdin:
        end, times = time.perf_counter() + float(line), []
        while len(times) < 3 or time.perf_counter() < end:
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main()
