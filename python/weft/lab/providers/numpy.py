"""Kernels of NumPy, as one would write them with it."""

import numpy as np

FRAMEWORK = "numpy"


def add(a, b, out):
    np.add(a, b, out=out)


def mul(a, b, out):
    np.multiply(a, b, out=out)


def silu(x, out):
    np.divide(x, 1 + np.exp(-x), out=out)


def silu_gate(a, b, out):
    silu(a, out)
    out *= b


def softmax(x, out, axis=-1):
    np.exp(x - x.max(axis, keepdims=True, initial=-np.inf), out=out)
    out /= out.sum(axis, keepdims=True)


def layer_norm(x, weight=None, bias=None, *, out, trailing=1, epsilon=1e-5):
    axes = tuple(range(-trailing, 0))
    np.subtract(x, x.mean(axes, keepdims=True), out=out)
    out /= np.sqrt(np.square(out).mean(axes, keepdims=True) + x.dtype.type(epsilon))
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias


def rms_norm(x, weight, out, epsilon=1e-5):
    np.divide(x, np.sqrt(np.square(x).mean(-1, keepdims=True) + x.dtype.type(epsilon)), out=out)
    out *= weight


def sum(x, out, axes=(), keep=0):
    np.sum(x, tuple(axes) or None, out=out, keepdims=bool(keep))


def transpose(x, out, axis_a=-2, axis_b=-1):
    np.copyto(out, np.swapaxes(x, axis_a, axis_b))


def permute(x, out, axes):
    np.copyto(out, np.transpose(x, axes))


def argmax(x, out, axis=-1, keep=0):
    out[...] = np.argmax(x, axis, keepdims=bool(keep))


def matmul(a, b, out, transpose_a=0, transpose_b=0):
    a, b = np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b
    np.matmul(a, b, out=out)


def attention(q, k, v, mask=None, length=None, *, out, causal=0, scale=0.0, seq_first=0):
    y, lse = out
    if mask is not None or length is not None or seq_first:
        raise NotImplementedError("no mask, no length, and the heads before the sequence")
    shared, (seq_q, seq_k) = q.shape[-3] // k.shape[-3], (q.shape[-2], k.shape[-2])
    if seq_k == 0 or causal and seq_q > seq_k:
        raise NotImplementedError("a query that sees no key")
    k, v = np.repeat(k, shared, -3), np.repeat(v, shared, -3)
    scores = q @ np.swapaxes(k, -1, -2) * q.dtype.type(scale or q.shape[-1] ** -0.5)
    if causal:
        scores[..., np.arange(seq_k) > np.arange(seq_q)[:, None] + seq_k - seq_q] = -np.inf
    most = scores.max(-1, keepdims=True)
    np.exp(scores - most, out=scores)
    total = scores.sum(-1, keepdims=True)
    np.divide(scores @ v, total, out=y)
    np.copyto(lse, (most + np.log(total))[..., 0])


def rope(x, cos, sin, out, interleaved=0):
    half = x.shape[-1] // 2
    first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, half), slice(half, None))
    a, b = x[..., first], x[..., second]
    np.subtract(a * cos, b * sin, out=out[..., first])
    np.add(b * cos, a * sin, out=out[..., second])


def embedding(table, ids, out):
    np.take(table, ids, axis=0, out=out)


def cross_entropy(logits, target, weight=None, *, out, ignore_index=-100):
    if weight is not None or target.dtype.kind not in "iu" or (target == ignore_index).any():
        raise NotImplementedError("no weights, and a class for each row")
    x = logits - logits.max(-1, keepdims=True)
    rows = np.log(np.exp(x).sum(-1)) - np.take_along_axis(x, target[:, None], -1)[:, 0]
    np.mean(rows, out=out)
