"""Models of Llama's and Qwen's shapes with random weights, and PyTorch's side of scripts/gpu's decoding: one sequence, a token a step.

    decode.py make SHAPE FOLDER      writes a folder as Hugging Face's libraries do; SHAPE is llama-1b, qwen-8b or tiny
    decode.py run FOLDER --context 512 --tokens 32 [--compile]      microseconds a token
"""
import argparse
import json
import pathlib
import statistics
import time

import torch
import torch.nn.functional as F

SHAPES = {
    "llama-1b": {"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
                 "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "rope_theta": 500000.0, "tie_word_embeddings": True},
    "qwen-8b": {"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
                "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "rope_theta": 1000000.0, "tie_word_embeddings": False},
    "tiny": {"model_type": "qwen3", "vocab_size": 51000, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
             "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "rope_theta": 10000.0, "tie_word_embeddings": True},
}


def names(c):
    """Each weight's name and shape."""
    width, head = c["hidden_size"], c["head_dim"]
    q, kv, hidden = c["num_attention_heads"] * head, c["num_key_value_heads"] * head, c["intermediate_size"]
    yield "model.embed_tokens.weight", (c["vocab_size"], width)
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", (width,)
        yield at + "post_attention_layernorm.weight", (width,)
        for name, rows, columns in (("q", q, width), ("k", kv, width), ("v", kv, width), ("o", width, q)):
            yield at + f"self_attn.{name}_proj.weight", (rows, columns)
        if c["model_type"] == "qwen3":
            yield at + "self_attn.q_norm.weight", (head,)
            yield at + "self_attn.k_norm.weight", (head,)
        yield at + "mlp.gate_proj.weight", (hidden, width)
        yield at + "mlp.up_proj.weight", (hidden, width)
        yield at + "mlp.down_proj.weight", (width, hidden)
    yield "model.norm.weight", (width,)
    if not c["tie_word_embeddings"]:
        yield "lm_head.weight", (c["vocab_size"], width)


def make(shape, folder):
    c = SHAPES[shape]
    folder.mkdir(parents=True, exist_ok=True)
    config = c | {"hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "attention_bias": False,
                  "torch_dtype": "bfloat16", "architectures": ["LlamaForCausalLM" if c["model_type"] == "llama" else "Qwen3ForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    header, at, shapes = {}, 0, list(names(c))
    for name, size in shapes:
        n = 2 * torch.Size(size).numel()
        header[name] = {"dtype": "BF16", "shape": list(size), "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for name, size in shapes:
            w = torch.randn(size, device=device) * 0.02 if len(size) > 1 else 1 + 0.1 * torch.randn(size, device=device)
            f.write(w.to(torch.bfloat16).view(torch.int16).cpu().numpy().tobytes())


class Decoder:
    """A token a step; keys and values are written in place, and the position lies on the device, so that a step is one graph."""

    def __init__(self, folder, capacity):
        from safetensors.torch import load_file
        self.c = c = json.loads((folder / "config.json").read_text())
        self.w = {k: v.cuda() for k, v in load_file(folder / "model.safetensors").items()}
        self.w["head"] = self.w["model.embed_tokens.weight"] if c["tie_word_embeddings"] else self.w["lm_head.weight"]
        shape = (c["num_hidden_layers"], 2, 1, c["num_key_value_heads"], capacity, c["head_dim"])
        self.cache = torch.zeros(shape, dtype=torch.bfloat16, device="cuda")
        # One product for q, k and v, and one for gate and up, as serving systems have it.
        for i in range(c["num_hidden_layers"]):
            at = f"model.layers.{i}."
            self.w[f"{i}.qkv"] = torch.cat([self.w.pop(at + f"self_attn.{n}_proj.weight") for n in "qkv"])
            self.w[f"{i}.up"] = torch.cat([self.w.pop(at + f"mlp.{n}_proj.weight") for n in ("gate", "up")])
        half = c["head_dim"] // 2
        angles = torch.arange(capacity, device="cuda")[:, None] * c["rope_theta"] ** (-torch.arange(half, device="cuda") / half)
        self.cos, self.sin = angles.cos().bfloat16(), angles.sin().bfloat16()
        self.places = torch.arange(capacity, device="cuda")

    def norm(self, x, name):
        return F.rms_norm(x, (x.shape[-1],), self.w[name], self.c["rms_norm_eps"])

    def step(self, token, position):
        c, w = self.c, self.w
        heads, kv, head = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        cos, sin = self.cos[position], self.sin[position]
        mask = (self.places <= position)[None, None, None]

        def turned(x):
            a, b = x.chunk(2, -1)
            return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

        x = w["model.embed_tokens.weight"][token]
        for i in range(c["num_hidden_layers"]):
            at = f"model.layers.{i}."
            q, k, v = F.linear(self.norm(x, at + "input_layernorm.weight"), w[f"{i}.qkv"]).split((heads * head, kv * head, kv * head), -1)
            q, k = q.view(1, heads, 1, head), k.view(1, kv, 1, head)
            if c["model_type"] == "qwen3":
                q, k = self.norm(q, at + "self_attn.q_norm.weight"), self.norm(k, at + "self_attn.k_norm.weight")
            keys, values = self.cache[i]
            keys.index_copy_(2, position, turned(k))
            values.index_copy_(2, position, v.view(1, kv, 1, head))
            y = F.scaled_dot_product_attention(turned(q), keys, values, attn_mask=mask, enable_gqa=True)
            x = x + F.linear(y.view(1, -1), w[at + "self_attn.o_proj.weight"])
            gate, up = F.linear(self.norm(x, at + "post_attention_layernorm.weight"), w[f"{i}.up"]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, w[at + "mlp.down_proj.weight"])
        return F.linear(self.norm(x, "model.norm.weight"), w["head"]).argmax(-1)


@torch.inference_mode()
def run(a):
    d = Decoder(a.folder, a.context + a.tokens)
    torch.manual_seed(2)
    d.cache.normal_()
    token, position = torch.zeros(1, dtype=torch.long, device="cuda"), torch.full((1,), a.context, device="cuda")
    step = torch.compile(d.step, fullgraph=True) if a.compile else d.step
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step(token, position)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        token.copy_(step(token, position))
        position.add_(1)
    times = []
    for _ in range(a.rounds):
        position.fill_(a.context)
        torch.cuda.synchronize()
        begin = time.time()
        for _ in range(a.tokens):
            graph.replay()
        torch.cuda.synchronize()
        times.append((time.time() - begin) / a.tokens)
    print(json.dumps({"peer": "torch " + torch.__version__ + (" compiled" if a.compile else ""), "graph": True, "context": a.context,
                      "microseconds": round(1e6 * statistics.median(times), 1)}))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(dest="what", required=True)
    m = sub.add_parser("make")
    m.add_argument("shape", choices=SHAPES)
    m.add_argument("folder", type=pathlib.Path)
    r = sub.add_parser("run")
    r.add_argument("folder", type=pathlib.Path)
    r.add_argument("--context", type=int, default=512)
    r.add_argument("--tokens", type=int, default=32)
    r.add_argument("--rounds", type=int, default=9)
    r.add_argument("--compile", action="store_true")
    a = p.parse_args()
    make(a.shape, a.folder) if a.what == "make" else run(a)


if __name__ == "__main__":
    main()
