"""The models that scripts/bench models measures: their real shapes, random weights. NAME -> Case."""
import dataclasses
from typing import Callable

import torch
import transformers
from torch import nn
from torch.nn import functional as F

TOKENS, LAYERS, HEADS, DIM = 128, 12, 12, 64


class MiniLM(nn.Module):
    """all-MiniLM-L6-v2: the mean of the last hidden states that the mask keeps, of length 1."""

    def __init__(self):
        super().__init__()
        self.bert = transformers.BertModel(transformers.BertConfig(
            hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536), add_pooling_layer=False)

    def forward(self, ids, mask):
        y = self.bert(ids, mask, return_dict=False)[0]
        kept = mask.unsqueeze(-1).to(y.dtype)
        return F.normalize((y * kept).sum(1) / kept.sum(1), dim=1)


class Bottleneck(nn.Module):
    def __init__(self, channels, inner, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, 4 * inner, 1, bias=False), nn.BatchNorm2d(4 * inner)
        self.down = None
        if stride != 1 or channels != 4 * inner:
            self.down = nn.Sequential(nn.Conv2d(channels, 4 * inner, 1, stride, bias=False), nn.BatchNorm2d(4 * inner))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        blocks, channels = [], 64
        for stage, count in enumerate([3, 4, 6, 3]):
            inner = 64 << stage
            for i in range(count):
                blocks.append(Bottleneck(channels, inner, 2 if i == 0 and stage > 0 else 1))
                channels = 4 * inner
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(2048, 1000)
        for m in self.modules():  # running statistics as of a trained model, so that values stay in range
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            if isinstance(m, nn.BatchNorm2d):
                nn.init.uniform_(m.weight, 0.2, 0.6)
                nn.init.normal_(m.bias, 0, 0.1)
                nn.init.normal_(m.running_mean, 0, 0.1)
                nn.init.uniform_(m.running_var, 0.5, 1.5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.blocks(x), 1), 1))


class GPT2(nn.Module):
    """GPT-2 124M. With keys and values of earlier tokens it reads one token, and gives its own key and value beside the scores."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(768), "qkv": nn.Linear(768, 2304), "out": nn.Linear(768, 768),
            "norm2": nn.LayerNorm(768), "up": nn.Linear(768, 3072), "down": nn.Linear(3072, 768)}) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(768)

    def forward(self, ids, keys=None, values=None):
        batch, seq = ids.shape
        before = 0 if keys is None else keys.shape[3]
        x = self.tokens(ids) + self.places.weight[before:before + seq]
        made = []
        for i, layer in enumerate(self.layers):
            q, k, v = (t.view(batch, seq, HEADS, DIM).transpose(1, 2) for t in layer["qkv"](layer["norm1"](x)).split(768, 2))
            made.append(torch.stack([k, v]))
            if before:
                k, v = torch.cat([keys[i], k], 2), torch.cat([values[i], v], 2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=not before)
            x = x + layer["out"](y.transpose(1, 2).reshape(batch, seq, 768))
            x = x + layer["down"](F.gelu(layer["up"](layer["norm2"](x)), approximate="tanh"))
        scores = F.linear(self.norm(x)[:, -1], self.tokens.weight)
        return (scores, torch.stack(made)) if before else scores


@dataclasses.dataclass
class Case:
    model: Callable[[], nn.Module]
    inputs: Callable[[], tuple]
    reach: float  # least ratio to the fastest peer


def minilm(batch):
    def inputs():
        mask = torch.ones(batch, TOKENS, dtype=torch.int64)
        for i in range(1, batch):  # texts have many lengths
            mask[i, TOKENS - i % 64:] = 0
        return torch.randint(30522, (batch, TOKENS)), mask
    return Case(MiniLM, inputs, 1.0)


def resnet(batch):
    return Case(ResNet50, lambda: (torch.randn(batch, 3, 224, 224),), 0.9)


def cache():
    return torch.randn(LAYERS, 1, HEADS, TOKENS - 1, DIM)


CASES = {
    "minilm-1": minilm(1),
    "minilm-32": minilm(32),
    "resnet50-1": resnet(1),
    "resnet50-16": resnet(16),
    "gpt2-prefill": Case(GPT2, lambda: (torch.randint(50257, (1, TOKENS)),), 1.0),
    "gpt2-decode": Case(GPT2, lambda: (torch.randint(50257, (1, 1)), cache(), cache()), 1.0),
}


def make(name):
    """The model in evaluation mode and its inputs, the same each time."""
    torch.manual_seed(1)
    case = CASES[name]
    model = case.model().eval()
    return model, case.inputs()
