#!/usr/bin/env python3
"""torch.compile(backend="weft") beside inductor and eager: inference of MiniLM and GPT-2 124M, random weights, on 2 threads.

    bench/torch_compile.py [--rounds 15] [MODEL...]

Wants PyTorch, transformers, a C++ compiler for inductor, and weft on PYTHONPATH. Runs take turns, so that all see the same machine,
with a pause between them: OpenMP's threads spin for some milliseconds after a call, which would slow the next one's. A line for each
model has the medians by the clock and in CPU time, and the medians of each round's ratio of inductor's time to weft's (above 1, weft is
faster). Threads that spin slow inductor on a machine that has other work: compare with OMP_WAIT_POLICY=passive, too. "active" is no
comparison: inductor's threads then spin for as long as the process lives, and take a core from weft's.
"""

import argparse
import os
import statistics
import time
import warnings

import torch
import transformers

import weft.torch
from weft.torch import report

PAUSE_SECONDS = 0.05
WAYS = {"eager": None, "inductor": "inductor", "weft": weft.torch.backend}
MODELS = {
    "MiniLM, batch 1, length 128": lambda: (transformers.BertModel(transformers.BertConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)), 30522),
    "GPT-2 124M, prefill 128": lambda: (transformers.GPT2LMHeadModel(transformers.GPT2Config()), 50257),
}


def inputs_of(model, words):
    ids = torch.randint(words, (1, 128))
    if isinstance(model, transformers.GPT2LMHeadModel):
        return {"input_ids": ids, "use_cache": False}
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def compiled(model, given):
    """name -> function; each has run, and says what eager says."""
    functions, want = {}, model(**given)[0]
    for name, backend in WAYS.items():
        torch._dynamo.reset()
        began = time.perf_counter()
        functions[name] = model if backend is None else torch.compile(model, backend=backend)
        for _ in range(3):
            out = functions[name](**given)[0]
        off = (out - want).abs().max().item() / want.abs().max().item()
        print(f"  {name}: compiled and run 3 times in {time.perf_counter() - began:.1f} s, off from eager by {off:.1e}")
        if off > 1e-4:
            raise SystemExit(f"{name} is wrong")
    return functions


def measure(functions, given, rounds):
    """name -> the seconds of each round, by the clock and in CPU time."""
    times, cpu = {n: [] for n in functions}, {n: [] for n in functions}
    for _ in range(rounds):
        for name, f in functions.items():
            time.sleep(PAUSE_SECONDS)
            began, cpu_began = time.perf_counter(), time.process_time()
            f(**given)
            times[name].append(time.perf_counter() - began)
            cpu[name].append(time.process_time() - cpu_began)
    return times, cpu


def line(times, cpu):
    def ratio(of):
        return statistics.median(a / b for a, b in zip(of["inductor"], of["weft"]))

    each = (f"{n} {statistics.median(t) * 1e3:.1f} ms (least {min(t) * 1e3:.1f}, CPU {statistics.median(cpu[n]) * 1e3:.1f})"
            for n, t in times.items())
    least = min(times["inductor"]) / min(times["weft"])
    return (", ".join(each) + f"; inductor's time by weft's: median {ratio(times):.2f}, of the least {least:.2f}, "
            f"of CPU time {ratio(cpu):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("models", nargs="*")
    o = parser.parse_args()
    torch.set_num_threads(2)
    warnings.simplefilter("ignore")
    print(f"PyTorch {torch.__version__}, OMP_WAIT_POLICY={os.environ.get('OMP_WAIT_POLICY', '')}, load {os.getloadavg()[0]:.1f}")
    for name, make in MODELS.items():
        if o.models and not any(m in name for m in o.models):
            continue
        torch.manual_seed(1)
        model, words = make()
        given = inputs_of(model, words)
        with torch.no_grad(), report.collected() as graphs:
            functions = compiled(model.eval(), given)
            print(f"{name}: {line(*measure(functions, given, o.rounds))}; {sum(len(g.left) for g in graphs)} nodes left")


if __name__ == "__main__":
    main()
