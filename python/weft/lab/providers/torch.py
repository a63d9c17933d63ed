"""Kernels of PyTorch, eagerly: what its users call."""

import math

import torch
from torch.nn import functional as F

FRAMEWORK = "torch"


def add(a, b, out):
    torch.add(a, b, out=out)


def mul(a, b, out):
    torch.mul(a, b, out=out)


def gelu(x, approximate=0):
    return F.gelu(x, approximate="tanh" if approximate else "none")


def silu(x):
    return F.silu(x)


def silu_gate(a, b):
    return F.silu(a) * b


def relu(x, out):
    torch.clamp_min(x, 0, out=out)


def softmax(x, out, axis=-1):
    torch.softmax(x, axis, out=out)


def layer_norm(x, weight=None, bias=None, *, trailing=1, epsilon=1e-5):
    return F.layer_norm(x, x.shape[-trailing:], weight, bias, epsilon)


def rms_norm(x, weight, epsilon=1e-5):
    return F.rms_norm(x, x.shape[-1:], weight, epsilon)


def sum(x, out, axes=(), keep=0):
    torch.sum(x, axes or tuple(range(x.dim())), bool(keep), out=out)


def transpose(x, out, axis_a=-2, axis_b=-1):
    out.copy_(x.transpose(axis_a, axis_b))


def permute(x, out, axes):
    out.copy_(x.permute(axes))


def argmax(x, axis=-1, keep=0):
    return torch.argmax(x, axis, bool(keep)).int()


def matmul(a, b, out, transpose_a=0, transpose_b=0):
    torch.matmul(a.mT if transpose_a else a, b.mT if transpose_b else b, out=out)


def scaled_matmul(a, b, a_scale, b_scale, bias=None, dtype="f32"):
    """8-bit integers; the sums are integers, too, and are scaled in f32."""
    if a.dtype != torch.int8:
        raise NotImplementedError("8-bit integers")
    if a.shape[-1] == 1:
        raise NotImplementedError("torch._int_mm of PyTorch 2.13 reads beside a transposed matrix of one row")
    y = torch._int_mm(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), b.t()) * a_scale.reshape(-1, 1)
    y *= b_scale
    if bias is not None:
        y += bias
    return y.to({"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]).reshape(*a.shape[:-1], b.shape[0])


def attention(q, k, v, mask=None, length=None, *, causal=0, scale=0.0, seq_first=0):
    """Fused where PyTorch gives the rows' log-sum-exp, too, which is a result of the op."""
    if mask is not None or length is not None:
        raise NotImplementedError("no mask and no length")
    if seq_first:
        q, k, v = (t.transpose(-3, -2) for t in (q, k, v))
    seq_q, seq_k = q.shape[-2], k.shape[-2]
    if q.numel() == 0 or seq_k == 0 or causal and seq_q > seq_k:
        raise NotImplementedError("a query that sees no key")
    if q.dim() != 4 or k.shape[1] != q.shape[1] or v.shape[-1] != q.shape[-1] or causal and seq_q != seq_k:
        y, lse = _attention_in_steps(q, k, v, causal, scale)
    elif q.device.type == "cpu":
        y, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, bool(causal), scale=scale or None)
    else:
        y, lse = torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, bool(causal), scale=scale or None)[:2]
        lse = lse[..., :seq_q]
    return y.transpose(-3, -2) if seq_first else y, lse


def _attention_in_steps(q, k, v, causal, scale):
    half, (q, k, v) = v.dtype, (t.float() if t.dtype.itemsize < 4 else t for t in (q, k, v))
    shared, seq_q, seq_k = q.shape[-3] // k.shape[-3], q.shape[-2], k.shape[-2]
    k, v = (t.repeat_interleave(shared, -3) if shared > 1 else t for t in (k, v))
    scores = q @ k.mT * (scale or q.shape[-1] ** -0.5)
    if causal:
        scores.masked_fill_(torch.ones(seq_q, seq_k, dtype=torch.bool, device=q.device).triu_(seq_k - seq_q + 1), -torch.inf)
    return (torch.softmax(scores, -1) @ v).to(half), torch.logsumexp(scores, -1)


def rope(x, cos, sin, interleaved=0):
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    turned = a * cos - b * sin, b * cos + a * sin
    return torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)


def embedding(table, ids):
    return F.embedding(ids, table) if table.dim() == 2 else table[ids.long()]


def conv(x, w, stride=(), padding=(), dilation=(), groups=1):
    axes = x.dim() - 2
    before, after = (padding[0::2], padding[1::2]) if padding else ((0,) * axes,) * 2
    if before != after:
        x = F.pad(x, [n for pair in zip(reversed(before), reversed(after)) for n in pair])
        before = (0,) * axes
    one = (1,) * axes
    return (F.conv1d, F.conv2d, F.conv3d)[axes - 1](x, w, None, stride or one, before, dilation or one, groups)


def cross_entropy(logits, target, weight=None, *, ignore_index=-100, label_smoothing=0.0, summed=0, wide=0):
    if wide:
        logits = logits.float()
    target = target if target.is_floating_point() else target.long()
    return F.cross_entropy(logits, target, weight, ignore_index=ignore_index, label_smoothing=label_smoothing,
                           reduction="sum" if summed else "mean")
