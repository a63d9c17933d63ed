"""Kinds of models that people run, each as small as shows what is its own: name -> a function that makes (module, inputs)."""
import math

import torch
import transformers
from torch import nn
from torch.nn import functional as F

WIDE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 24, "initializer_range": 0.3}
DECODER = {**WIDE, "vocab_size": 48, "max_position_embeddings": 16, "num_key_value_heads": 2, "pad_token_id": 0}


class Scores(nn.Module):
    """The first result of a model of transformers."""

    def __init__(self, model, **fixed):
        super().__init__()
        self.model, self.fixed = model, fixed

    def forward(self, *inputs):
        return self.model(*inputs, **self.fixed, return_dict=False)[0]


class Speech(nn.Module):
    """Whisper: what the encoder makes of sound, and the decoder's scores."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, features, tokens):
        heard = self.model.get_encoder()(features, return_dict=False)[0]
        return heard, self.model(encoder_outputs=(heard,), decoder_input_ids=tokens, use_cache=False, return_dict=False)[0]


class Residual(nn.Module):
    """The block of a diffusion model: two convolutions, between which it is told the time."""

    def __init__(self, channels, out, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(2, channels), nn.Conv2d(channels, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.norm2, self.conv2 = nn.GroupNorm(2, out), nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class Attention(nn.Module):
    """Every pixel looks at every other."""

    def __init__(self, channels, heads):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(2, channels)
        self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, 3, self.heads, c // self.heads, h * w).transpose(-1, -2).unbind(1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(-1, -2).reshape(n, c, h, w))


class UNet(nn.Module):
    """A diffusion model: what the noise in a picture is, at a time."""

    def __init__(self, channels=8, time=16):
        super().__init__()
        self.waves = time // 2
        self.embed = nn.Sequential(nn.Linear(time, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(3, channels, 3, padding=1)
        self.down1, self.smaller = Residual(channels, channels, time), nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.down2, self.look = Residual(channels, 2 * channels, time), Attention(2 * channels, 2)
        self.up2, self.larger = Residual(2 * channels, channels, time), nn.Conv2d(channels, channels, 3, padding=1)
        self.up1, self.norm = Residual(2 * channels, channels, time), nn.GroupNorm(2, channels)
        self.last = nn.Conv2d(channels, 3, 3, padding=1)

    def forward(self, x, t):
        angles = t[:, None] * torch.exp(torch.arange(self.waves, dtype=x.dtype) * (-math.log(10000.0) / self.waves))[None]
        t = self.embed(torch.cat([angles.cos(), angles.sin()], -1))
        kept = self.down1(self.first(x), t)
        y = self.up2(self.look(self.down2(self.smaller(kept), t)), t)
        y = self.larger(F.interpolate(y, scale_factor=2.0, mode="nearest"))
        return self.last(F.silu(self.norm(self.up1(torch.cat([y, kept], 1), t))))


class Lstm(nn.Module):
    """Two layers in both directions, from a state that is given."""

    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(5, 6, num_layers=2, batch_first=True, bidirectional=True), nn.Linear(12, 3)

    def forward(self, x, h, c):
        y, (h, c) = self.lstm(x, (h, c))
        return self.head(y), h, c


def ids(*shape):
    return torch.randint(1, 48, shape)


def decoder(config):
    return Scores(transformers.AutoModelForCausalLM.from_config(config), use_cache=False), (ids(2, 7),)


def experts():
    """Two of four experts a token; `batched_mm` picks their weights, where the default loops over data."""
    config = transformers.MixtralConfig(**DECODER, num_local_experts=4, num_experts_per_tok=2)
    config._experts_implementation = "batched_mm"
    return decoder(config)


def resnet(kind, depths, widths):
    config = transformers.ResNetConfig(embedding_size=4, hidden_sizes=widths, depths=depths, layer_type=kind, num_labels=5)
    return Scores(transformers.ResNetForImageClassification(config)), (torch.randn(2, 3, 32, 32),)


def efficientnet():
    config = transformers.EfficientNetConfig(
        image_size=16, width_coefficient=0.1, depth_coefficient=1.0, depth_divisor=4, hidden_dim=128, num_labels=5, dropout_rate=0.0,
        kernel_sizes=[3, 3, 5], in_channels=[32, 16, 24], out_channels=[16, 24, 60], depthwise_padding=[], strides=[1, 2, 2],
        num_block_repeats=[1, 2, 2], expand_ratios=[1, 6, 6])
    return Scores(transformers.EfficientNetForImageClassification(config)), (torch.randn(2, 3, 16, 16),)


def whisper():
    size = {"d_model": 16, **{f"{part}_{what}": n for part in ("encoder", "decoder")
                              for what, n in (("layers", 1), ("attention_heads", 4), ("ffn_dim", 24))}}
    config = transformers.WhisperConfig(**size, vocab_size=48, num_mel_bins=8, max_source_positions=10, max_target_positions=12,
                                        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, init_std=0.3)
    return Speech(transformers.WhisperForConditionalGeneration(config)), (torch.randn(2, 8, 20), ids(2, 7))


def zoo():
    t = transformers
    two = {**DECODER, "num_hidden_layers": 2}
    return {
        "qwen2": lambda: decoder(t.Qwen2Config(**DECODER)),
        "qwen3": lambda: decoder(t.Qwen3Config(**DECODER, head_dim=8)),
        "mistral": lambda: decoder(t.MistralConfig(**DECODER, sliding_window=3, head_dim=6)),
        "gemma3": lambda: decoder(t.Gemma3TextConfig(**two, head_dim=8, sliding_window=3,
                                                     layer_types=["sliding_attention", "full_attention"])),
        "phi3": lambda: decoder(t.Phi3Config(**DECODER)),
        "mixtral": experts,
        "resnet18": lambda: resnet("basic", [2, 2, 2, 2], [4, 4, 6, 8]),
        "resnet50": lambda: resnet("bottleneck", [3, 4, 6, 3], [4, 8, 8, 12]),
        "efficientnet": efficientnet,
        "whisper": whisper,
        "unet": lambda: (UNet(), (torch.randn(2, 3, 8, 8), torch.tensor([3.0, 250.0]))),
        "lstm": lambda: (Lstm(), (torch.randn(2, 7, 5), torch.randn(4, 2, 6), torch.randn(4, 2, 6))),
    }
