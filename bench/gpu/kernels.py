"""PyTorch's side of bench/gpu/kernels.cpp: the same ops and sizes, each as a replayed CUDA graph; and copies.

    kernels.py rows [--compile]
    kernels.py skinny
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

RUNS, ROUNDS = 4, 11


def seconds(step):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.time()
        for _ in range(RUNS):
            graph.replay()
        torch.cuda.synchronize()
        times.append((time.time() - begin) / RUNS)
    return statistics.median(times)


def show(op, rows, columns, taken, moved):
    print(json.dumps({"peer": op, "rows": rows, "columns": columns, "microseconds": round(taken * 1e6, 2),
                      "gigabytes_per_second": round(moved / taken / 1e9)}), flush=True)


def rows(compile_too):
    elements, calls = 1 << 26, 4
    for columns in (1024, 4096, 16384, 32768, 131072):
        count = elements // columns
        x = [torch.rand(count, columns, device="cuda", dtype=torch.bfloat16) * 2 - 1 for _ in range(calls)]
        weight, bias = (torch.rand(columns, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        target = torch.randint(1000, (count,), device="cuda")
        y = torch.empty_like(x[0])
        show("copy", count, columns, seconds(lambda: [y.copy_(v) for v in x]) / calls, 4 * elements)
        ops = {"softmax": (2, lambda v: F.softmax(v, -1)), "layer_norm": (2, lambda v: F.layer_norm(v, (columns,), weight, bias)),
               "rms_norm": (2, lambda v: F.rms_norm(v, (columns,), weight)), "cross_entropy": (1, lambda v: F.cross_entropy(v, target))}
        for name, (passes, f) in ops.items():
            show(name, count, columns, seconds(lambda: [f(v) for v in x]) / calls, passes * 2 * elements)
            if compile_too:
                g = torch.compile(f, fullgraph=True, dynamic=False)
                show(name + " compiled", count, columns, seconds(lambda: [g(v) for v in x]) / calls, passes * 2 * elements)


def skinny():
    for n in (1, 2, 4, 8, 16):
        for wide, narrow in ((4096, 4096), (4096, 1024), (4096, 12288)):
            weights = []
            for _ in range((1 << 29) // (4 * wide * narrow) + 1):
                weights.append(torch.randn(narrow, wide, device="cuda", dtype=torch.bfloat16) * 0.03)
                weights.append(torch.randn(wide, narrow, device="cuda", dtype=torch.bfloat16) * 0.03)
            x = torch.randn(n, wide, device="cuda", dtype=torch.bfloat16)

            def chain():
                y = x
                for w in weights:
                    y = F.linear(y, w)

            show(f"linear {wide}-{narrow}", n, wide, seconds(chain) / len(weights), 2 * wide * narrow)


with torch.inference_mode():
    rows("--compile" in sys.argv) if sys.argv[1] == "rows" else skinny()
