"""Decoders of transformers as one graph for prompts and single tokens: `weft generate FILE` goes on with a text by its program.

    Cached(model, capacity), export_cached(cached) -> dict, for json.dump

The graph reads `input_ids` [1, length] and `position` [length], for every length, and gives the scores [1, length, vocabulary].
Keys and values are buffers of `capacity` positions that it writes to: states of the program.

    write(kind, folder, save, randomised), write_far(kind, folder, save, randomised)

write data for tests: a text, and scores of tokens behind many others.
"""
import copy
import json

import torch
import transformers

from model_ir import export

CAPACITY, GENERATED = 160, 128
LETTERS = [chr(ord("A") + i) for i in range(47)]  # of the ids 1 to 47; 0 is U+FFFD
SIZES = {"vocab_size": 48, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 24, "max_position_embeddings": CAPACITY, "initializer_range": 0.4, "pad_token_id": None,
         "bos_token_id": None, "eos_token_id": None}
KINDS = {"llama": transformers.LlamaConfig(**SIZES), "qwen2": transformers.Qwen2Config(**SIZES, tie_word_embeddings=True)}
PROMPT = "HEAD"
FAR = 32768  # positions
FAR_KINDS = {
    "llama": transformers.LlamaConfig(**SIZES | {"num_hidden_layers": 1, "max_position_embeddings": FAR}, rope_parameters={
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}),
    "qwen2": transformers.Qwen2Config(**SIZES | {"num_hidden_layers": 1, "max_position_embeddings": FAR}, tie_word_embeddings=True,
                                      rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}),
}
FAR_TOKENS = {16383: [40], FAR - 2: [5, 17]}  # by the position of the first


class Cache(transformers.Cache):
    """What the layers write to are the buffers of a Cached, at its positions."""

    def __init__(self, held, position):
        self.held, self.position, self.layers = held, position, []

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        keys, values = getattr(self.held, f"keys_{layer_idx}"), getattr(self.held, f"values_{layer_idx}")
        return keys.index_copy_(2, self.position, key_states), values.index_copy_(2, self.position, value_states)

    def get_seq_length(self, layer_idx=0):
        return 0


class Cached(torch.nn.Module):
    def __init__(self, model, capacity):
        super().__init__()
        self.model, self.capacity = model, capacity
        config = model.config
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        for i in range(config.num_hidden_layers):
            for name in ("keys", "values"):
                self.register_buffer(f"{name}_{i}", torch.zeros(1, config.num_key_value_heads, capacity, width))

    def forward(self, input_ids, position):
        seen = torch.arange(self.capacity)[None] <= position[:, None]
        return self.model(input_ids, position_ids=position[None], attention_mask=seen[None, None], use_cache=True,
                          past_key_values=Cache(self, position), return_dict=False)[0]


def export_cached(cached):
    length = torch.export.Dim("length", min=1, max=cached.capacity)
    return export(cached, (torch.ones(1, 5, dtype=torch.int64), torch.arange(5)), {"input_ids": {1: length}, "position": {0: length}})


def greedy(model):
    """What transformers appends to the prompt, and by how much each choice was ahead of the next."""
    ids = torch.tensor([[LETTERS.index(c) + 1 for c in PROMPT]])
    made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=GENERATED, output_scores=True,
                          return_dict_in_generate=True)
    best = torch.cat(made.scores).topk(2).values
    text = "".join("\ufffd" if i == 0 else LETTERS[i - 1] for i in made.sequences[0, ids.shape[1]:].tolist())
    return text, (best[:, 0] - best[:, 1]).min().item()


def write(kind, folder, save, randomised):
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(100):  # the first whose choices rounding can't change, and that does not soon repeat itself
        torch.manual_seed(seed)
        model = randomised(transformers.AutoModelForCausalLM.from_config(KINDS[kind]))
        text, ahead = greedy(model)
        if ahead > 1e-3 and len(set(text[-32:])) > 6:
            break
    else:
        raise SystemExit(f"{kind}: every seed has a close choice")
    cached = Cached(model, CAPACITY)
    ir = export_cached(cached)
    held = {**dict(cached.named_parameters(remove_duplicate=False)), **dict(cached.named_buffers())}
    ir["constants"] = {}
    save({k: v.detach().clone().contiguous() for k, v in held.items() if k in set(ir["weight_name_mapping"].values())},
         folder / "model.safetensors")
    (folder / "model_ir.json").write_text(json.dumps(ir, separators=(",", ":")) + "\n", encoding="utf-8")
    answers = {"letters": "".join(LETTERS), "prompt": PROMPT, "text": text, "ahead": ahead}
    (folder / "answers.json").write_text(json.dumps(answers, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"decoders/{kind}: seed {seed}, {len(ir['nodes'])} nodes, {text}")


def far_cache(layer_of, shape):
    """Numbers that tests make again: of element i of keys (0) and values (1), exact in every float."""
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    return [((((i + 1) * 2654435761 + 97 * (2 * layer_of + which)) % 2**32 >> 16) / 32768 - 1).reshape(shape) for which in (0, 1)]


def far_scores(model, first, tokens):
    """By transformers' own cache, in f64."""
    config, cache = model.config, transformers.DynamicCache()
    shape = [1, config.num_key_value_heads, FAR, config.hidden_size // config.num_attention_heads]
    for layer in range(config.num_hidden_layers):
        cache.update(*(t[:, :, :first].double() for t in far_cache(layer, shape)), layer)
    positions = torch.arange(first, first + len(tokens))
    with torch.no_grad():
        return model(torch.tensor([tokens]), position_ids=positions[None], past_key_values=cache, use_cache=True).logits


def write_far(kind, folder, save, randomised, f64_for_f32):
    """Tokens at positions up to 32,767, behind keys and values by far_cache()."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    model = randomised(transformers.AutoModelForCausalLM.from_config(FAR_KINDS[kind]))
    cached = Cached(model, FAR)
    ir = export_cached(cached)
    ir["constants"] = {}
    held = {**dict(cached.named_parameters(remove_duplicate=False)), **dict(cached.named_buffers())}
    caches = {name for name, _ in cached.named_buffers(recurse=False)}
    save({k: v.detach().clone().contiguous() for k, v in held.items() if k in set(ir["weight_name_mapping"].values()) - caches},
         folder / "model.safetensors")
    answers = {}
    with f64_for_f32():
        wide = copy.deepcopy(model).double()
        for first, tokens in FAR_TOKENS.items():
            answers[f"tokens.{first}"] = torch.tensor([tokens])
            answers[f"scores.{first}"] = far_scores(wide, first, tokens).contiguous()
    save(answers, folder / "answers.safetensors")
    (folder / "model_ir.json").write_text(json.dumps(ir, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"far/{kind}: {len(ir['nodes'])} nodes, {sum(f.stat().st_size for f in folder.iterdir()):,} bytes")
