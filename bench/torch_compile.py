#!/usr/bin/env python3
"""torch.compile(backend="weft") beside inductor and eager: inference of MiniLM and GPT-2 124M, random weights, on 2 threads.

    bench/torch_compile.py [--rounds 15] [MODEL...]

Runs take turns, so that all see the same machine; a line for each model has the medians, and their ratio to inductor's (above 1 is
faster). Inductor wants a C++ compiler.
"""

import argparse
import statistics
import time
import warnings

import torch
import transformers

import weft.torch
from weft.torch import report

MODELS = {
    "MiniLM, batch 1, length 128": lambda: (transformers.BertModel(transformers.BertConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)), 30522),
    "GPT-2 124M, prefill 128": lambda: (transformers.GPT2LMHeadModel(transformers.GPT2Config()), 50257),
}


def measure(model, words, rounds):
    ids = torch.randint(words, (1, 128))
    given = {"input_ids": ids} if isinstance(model, transformers.GPT2LMHeadModel) else \
        {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if isinstance(model, transformers.GPT2LMHeadModel):
        given["use_cache"] = False
    ways = {}
    for name, backend in (("eager", None), ("inductor", "inductor"), ("weft", weft.torch.backend)):
        torch._dynamo.reset()
        began = time.perf_counter()
        ways[name] = model if backend is None else torch.compile(model, backend=backend)
        for _ in range(3):
            out = ways[name](**given)[0]
        print(f"  {name}: compiled and run 3 times in {time.perf_counter() - began:.1f} s, sum {out.double().sum().item():.6f}")
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, f in ways.items():
            began = time.perf_counter()
            f(**given)
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("models", nargs="*")
    o = parser.parse_args()
    torch.set_num_threads(2)
    warnings.simplefilter("ignore")
    for name, make in MODELS.items():
        if o.models and not any(m in name for m in o.models):
            continue
        torch.manual_seed(1)
        model, words = make()
        with torch.no_grad(), report.collected() as graphs:
            t = measure(model.eval(), words, o.rounds)
        left = sum(len(g.left) for g in graphs)
        print(f"{name}: " + ", ".join(f"{k} {v * 1e3:.1f} ms" for k, v in t.items())
              + f"; weft is {t['inductor'] / t['weft']:.2f} of inductor, {t['eager'] / t['weft']:.2f} of eager; {left} nodes left")


if __name__ == "__main__":
    main()
