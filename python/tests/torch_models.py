"""Small models in plain PyTorch, of the kinds that people compile. Each function returns (model, inputs)."""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x, mask=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k, v = (t.view(*t.shape[:2], self.heads, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Encoder(nn.Module):
    """A block of BERT's (norms after) or of GPT-2's and ViT's (norms before)."""

    def __init__(self, width, heads, causal=False, before=True):
        super().__init__()
        self.attention = Attention(width, heads, causal)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.before = before

    def forward(self, x, mask=None):
        if self.before:
            x = x + self.attention(self.norms[0](x), mask)
            return x + self.mlp(self.norms[1](x))
        x = self.norms[0](x + self.attention(x, mask))
        return self.norms[1](x + self.mlp(x))


class MiniLM(nn.Module):
    """An encoder of texts with a mask, whose vectors are means of unit length."""

    def __init__(self, words=97, width=32, heads=4, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Encoder(width, heads, before=False) for _ in range(layers))

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device)))
        for block in self.blocks:
            x = block(x, mask[:, None, None, :].bool())
        weights = mask[..., None].to(x.dtype)
        return F.normalize((x * weights).sum(1) / weights.sum(1).clamp(min=1e-9), dim=-1)


class GPT2(nn.Module):
    """Its last layer is its table of words."""

    def __init__(self, words=97, width=32, heads=4, layers=2, context=64):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Encoder(width, heads, causal=True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Shortcut(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.down = nn.Identity()
        if stride != 1 or channels != out:
            self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        y += self.down(x)
        return F.relu(y, inplace=True)


class ResNet18(nn.Module):
    """All of its blocks, with fewer channels."""

    def __init__(self, width=8, classes=10):
        super().__init__()
        self.conv1, self.bn1, self.pool = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.MaxPool2d(3, 2, 1)
        blocks, channels = [], width
        for i in range(4):
            out = width << i
            blocks += [Shortcut(channels, out, 1 if i == 0 else 2), Shortcut(out, out, 1)]
            channels = out
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, classes)

    def forward(self, x):
        x = self.blocks(self.pool(F.relu(self.bn1(self.conv1(x)))))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class ViT(nn.Module):
    def __init__(self, width=32, heads=4, layers=2, patch=4, size=16, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(Encoder(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups, inner):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * groups * self.size, bias=False)
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)
        self.norms = nn.ModuleList(nn.RMSNorm(width, 1e-6) for _ in range(2))

    @staticmethod
    def turned(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, x, cos, sin):
        y, (n, t, _) = self.norms[0](x), x.shape
        q = self.turned(self.q(y).view(n, t, self.heads, self.size).transpose(1, 2), cos, sin)
        k, v = self.kv(y).view(n, t, 2, self.groups, self.size).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, self.turned(k, cos, sin), v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, -1))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, words=97, width=32, heads=4, groups=2, layers=2):
        super().__init__()
        self.words, self.norm = nn.Embedding(words, width), nn.RMSNorm(width, 1e-6)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, groups, 3 * width) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)
        size = width // heads
        self.register_buffer("rates", 1e4 ** (-torch.arange(0, size, 2) / size), persistent=False)

    def forward(self, ids):
        angles = torch.outer(torch.arange(ids.shape[1], device=ids.device).to(self.rates.dtype), self.rates)
        cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


def ids(*shape):
    return torch.randint(97, shape)


MODELS = {
    "minilm": lambda: (MiniLM(), (ids(2, 9), torch.tensor([[1] * 9, [1] * 5 + [0] * 4]))),
    "gpt2": lambda: (GPT2(), (ids(2, 9),)),
    "resnet18": lambda: (ResNet18(), (torch.randn(4, 3, 64, 64),)),
    "vit": lambda: (ViT(), (torch.randn(2, 3, 16, 16),)),
    "llama": lambda: (Llama(), (ids(2, 9),)),
}
