"""PyTorch's side of scripts/gpu: tokens a second of training a GPT with nanoGPT's layers, fused AdamW and clipping.

    gpt.py --layers 6 --heads 6 --width 384 --batch 16 --context 256 --vocabulary 65 --dtype bf16 --compile
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.qkv(self.norm1(x)).split(c, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(a.vocabulary, a.width), nn.Embedding(a.context, a.width)
        self.blocks = nn.ModuleList(Block(a.width, a.heads) for _ in range(a.layers))
        self.norm, self.head = nn.LayerNorm(a.width), nn.Linear(a.width, a.vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    p = argparse.ArgumentParser()
    for name in ("layers", "heads", "width", "batch", "context", "vocabulary"):
        p.add_argument("--" + name, type=int, required=True)
    p.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--seconds", type=float, default=5)
    a = p.parse_args()
    torch.manual_seed(1)
    model = GPT(a).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    run = torch.compile(model) if a.compile else model
    ids = torch.randint(a.vocabulary, (64, a.batch, a.context + 1), device="cuda")

    def step(i):
        with torch.autocast("cuda", torch.bfloat16, enabled=a.dtype == "bf16"):
            loss = run(ids[i % 64, :, :-1], ids[i % 64, :, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    begin = time.time()
    for i in range(12):
        step(i)
    torch.cuda.synchronize()
    warm = time.time() - begin
    times, i, stop = [], 12, time.time() + a.seconds
    while time.time() < stop or len(times) < 5:
        begin = time.time()
        for _ in range(10):
            loss = step(i)
            i += 1
        torch.cuda.synchronize()
        times.append((time.time() - begin) / 10)
    print(json.dumps({"peer": "torch " + torch.__version__, "dtype": a.dtype, "compiled": a.compile, "warm_up_seconds": round(warm, 1),
                      "loss": loss.item(), "tokens_per_second": a.batch * a.context / statistics.median(times)}))


if __name__ == "__main__":
    main()
