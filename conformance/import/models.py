"""Small models of random weights, for scripts/import_oracle: name -> a function that makes (module, inputs)."""
import torch
import transformers
from torch import nn
from torch.nn import functional as F

from zoo import Scores, zoo

WIDE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 5)

    def forward(self, x):
        return F.softmax(self.second(F.gelu(F.relu(self.first(x)) - 0.5)), -1)


class Block(nn.Module):
    """Two convolutions of ResNet-18, and a shortcut that is added in place."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if stride != 1 or channels != out:
            self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.layers = nn.Sequential(Block(8, 8, 1), Block(8, 12, 2))
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x)), inplace=True))
        x = F.adaptive_avg_pool2d(self.layers(x), (1, 1))
        return self.head(torch.flatten(x, 1))


class Symbols(nn.Module):
    """Any number of rows and of columns, which views, slices, arange and cat carry on."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 6)

    def forward(self, x):
        rows, columns, _ = x.shape
        y = self.inner(x).view(rows, columns, 2, -1).transpose(1, 2)
        weights = (y @ y.transpose(-1, -2)).masked_fill(torch.ones(columns, columns, dtype=torch.bool).triu(1), float("-inf"))
        y = (weights.softmax(-1) @ y).reshape(rows, -1)
        place = torch.arange(columns, dtype=x.dtype).expand(rows, -1)
        return torch.cat([y, x[:, -1], place], 1)


def randomised(model):
    """Nothing stays at 0 or 1, as norms, biases and running statistics begin."""
    with torch.no_grad():
        for name, t in [*model.named_parameters(), *model.named_buffers()]:
            if t.is_floating_point() and t.dim() == 1 and "inv_freq" not in name:
                t.add_(torch.rand_like(t) * 0.5)
    return model.eval()


def ids(*shape):
    return torch.randint(48, shape)


def models():
    t = transformers
    positions = {"vocab_size": 48, "max_position_embeddings": 16}
    mask = torch.tensor([[1] * 7, [1, 1, 1, 1, 0, 0, 0]])
    return {
        "mlp": lambda: (Mlp(), (torch.randn(3, 8),)),
        "resnet": lambda: (ResNet(), (torch.randn(2, 3, 32, 32),)),
        "bert": lambda: (Scores(t.BertModel(t.BertConfig(**WIDE, **positions))), (ids(2, 7), mask)),
        "gpt2": lambda: (Scores(t.GPT2LMHeadModel(t.GPT2Config(vocab_size=48, n_positions=16, n_embd=16, n_layer=2, n_head=4)),
                                use_cache=False), (ids(2, 7),)),
        "llama": lambda: (Scores(t.LlamaForCausalLM(t.LlamaConfig(**WIDE, **positions, num_key_value_heads=2)), use_cache=False),
                          (ids(2, 7),)),
        "vit": lambda: (Scores(t.ViTModel(t.ViTConfig(**WIDE, image_size=16, patch_size=4))), (torch.randn(2, 3, 16, 16),)),
        **zoo(),
    }
