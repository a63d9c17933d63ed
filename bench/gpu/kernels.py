"""PyTorch's side of bench/gpu/kernels: the same ops and sizes, each as a replayed CUDA graph; and copies.

    kernels.py rows [--compile]
    kernels.py skinny
    kernels.py f8|adamw|add
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


def layer(n):
    """The products of a layer of Qwen3-8B's shape, those of one input joined; not what lies between them."""
    wide, keys, hidden, count = 4096, 1024, 12288, 3
    shapes = ((wide + 2 * keys, wide), (wide, wide), (2 * hidden, wide), (wide, hidden))
    layers = [[torch.randn(s, device="cuda", dtype=torch.bfloat16) * 0.03 for s in shapes] for _ in range(count)]
    x = torch.randn(n, wide, device="cuda", dtype=torch.bfloat16)

    def step():
        y = x
        for qkv, o, gate_up, down in layers:
            y = F.linear(F.linear(y, qkv)[:, :wide], o)
            y = F.linear(F.linear(y, gate_up)[:, :hidden], down)

    show("layer 8b", n, wide, seconds(step) / count, 2 * sum(a * b for a, b in shapes))


def skinny():
    for n in (1, 2, 4, 8, 16):
        layer(n)
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


def f8():
    one = torch.ones((), device="cuda")
    for n in (4096, 8192):
        a, b = (torch.rand(n, n, device="cuda").mul(896).sub(448).to(torch.float8_e4m3fn) for _ in range(2))
        rows, columns = torch.rand(n, 1, device="cuda"), torch.rand(1, n, device="cuda")
        for name, scales in (("", (one, one)), (" rows", (rows, columns))):
            for fast in (False, True):
                taken = seconds(lambda: torch._scaled_mm(a, b.t(), *scales, out_dtype=torch.bfloat16, use_fast_accum=fast))
                print(json.dumps({"peer": f"_scaled_mm{name} {n}{' fast' if fast else ''}", "microseconds": round(taken * 1e6, 1),
                                  "tflops": round(2 * n ** 3 / taken / 1e12, 1)}), flush=True)


def adamw():
    shapes = [(50304, 768), (1024, 768), (768,), (768,)]
    for _ in range(12):
        shapes += [(768, 768)] * 4 + [(3072, 768), (768, 3072), (3072,)] + [(768,)] * 9
    weights = [torch.randn(s, device="cuda", requires_grad=True) for s in shapes]
    for w in weights:
        w.grad = torch.randn_like(w)
    optimizer = torch.optim.AdamW(weights, lr=1e-3, fused=True)
    times = []
    for _ in range(ROUNDS + 2):
        torch.cuda.synchronize()
        begin = time.time()
        for _ in range(RUNS):
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
        torch.cuda.synchronize()
        times.append((time.time() - begin) / RUNS)
    count = sum(w.numel() for w in weights)
    show("adamw", len(shapes), count, statistics.median(times[2:]), 28 * count)


def add():
    a, b, count = torch.rand(64, device="cuda"), torch.rand(64, device="cuda"), 2000
    of_host, of_all = [], []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin, y = time.time(), a
        for _ in range(count):
            y = y + b
        of_host.append((time.time() - begin) / count)
        torch.cuda.synchronize()
        of_all.append((time.time() - begin) / count)
    print(json.dumps({"peer": "eager add of 64", "host_microseconds": round(statistics.median(of_host) * 1e6, 2),
                      "microseconds": round(statistics.median(of_all) * 1e6, 2)}), flush=True)


if sys.argv[1] == "adamw":
    adamw()
else:
    with torch.inference_mode():
        if sys.argv[1] == "rows":
            rows("--compile" in sys.argv)
        else:
            {"skinny": skinny, "f8": f8, "add": add}[sys.argv[1]]()
