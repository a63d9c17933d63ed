"""PyTorch's answers for attention and what belongs to it."""
import math

import torch
from torch.nn import functional as F

from common import DTYPES


def scale_of(q, a):
    return a.get("scale", 0.0) or 1 / math.sqrt(q.shape[-1])


def mask_of(q, k, mask, length, causal):
    """One mask to add to the scores: the given one, the length, and `causal` with the queries at the end."""
    seq_q, seq_k = q.shape[-2], k.shape[-2]
    added = torch.zeros((), dtype=q.dtype)
    if mask is not None:
        added = mask if mask.is_floating_point() else added.masked_fill(~mask, -math.inf)
    n = torch.tensor(seq_k) if length is None else length
    n = n[..., None, None, None] if n.dim() else n
    limit = n - seq_q + 1 + torch.arange(seq_q)[:, None] if causal else n
    return added.masked_fill(torch.arange(seq_k) >= limit, -math.inf)


def scores_of(q, k, mask, length, a):
    k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
    return q @ k.transpose(-1, -2) * scale_of(q, a) + mask_of(q, k, mask, length, a.get("causal", 0))


def turned(t, a):
    return t.transpose(-3, -2) if a.get("seq_first") else t


def attention(x, a):
    q, k, v = (turned(t, a) for t in x[:3])
    mask, length = (*x[3:], None, None)[:2]
    added = mask_of(q, k, mask, length, a.get("causal", 0))
    added = added.broadcast_to(*q.shape[:-1], k.shape[-2])
    y = F.scaled_dot_product_attention(q, k, v, added, scale=scale_of(q, a), enable_gqa=True)
    return [turned(y, a), torch.logsumexp(scores_of(q, k, mask, length, a), -1)]


def attention_grad(x, a):
    """From lse and y as they are given; with those that belong to q, k and v, autograd must say the same."""
    q, k, v, y, lse, dy = (t if i == 4 else turned(t, a) for i, t in enumerate(x[:6]))
    mask, length = (*x[6:], None, None)[:2]
    group = q.shape[-3] // k.shape[-3]
    wide = v.repeat_interleave(group, -3)
    p = torch.exp(scores_of(q, k, mask, length, a) - lse.unsqueeze(-1))
    ds = p * (dy @ wide.transpose(-1, -2) - (dy * y).sum(-1, keepdim=True)) * scale_of(q, a)
    shared = lambda t: t.unflatten(-3, (k.shape[-3], group)).sum(-3)
    grads = ds @ k.repeat_interleave(group, -3), shared(ds.transpose(-1, -2) @ q), shared(p.transpose(-1, -2) @ dy)
    return [turned(t, a) for t in grads]


def self_attention_1h(x, a):
    q, k, v = (x[0] @ x[1]).chunk(3, -1)
    y = F.scaled_dot_product_attention(q.unsqueeze(-3), k.unsqueeze(-3), v.unsqueeze(-3),
                                       is_causal=bool(a.get("causal", 1)), scale=scale_of(q, a))
    return [y.squeeze(-3) @ x[2]]


def rope(x, a):
    """As complex numbers."""
    angle = torch.complex(x[1], x[2])
    if a.get("interleaved"):
        return [torch.view_as_real(torch.view_as_complex(x[0].unflatten(-1, (-1, 2)).contiguous()) * angle).flatten(-2)]
    first, second = x[0].chunk(2, -1)
    y = torch.complex(first, second) * angle
    return [torch.cat([y.real, y.imag], -1)]


def rope_tables(x, a):
    dtype, dim = DTYPES[a.get("dtype", "f32")], a.get("dim", 64)
    frequency = torch.exp(torch.arange(dim // 2, dtype=dtype) * (-2 * math.log(a.get("base", 10000.0)) / dim))
    angle = x[0].to(dtype).unsqueeze(-1) * frequency
    return [torch.cos(angle), torch.sin(angle)]


def cache_append(x, a):
    """A copy of slices, sequence by sequence."""
    cache, rows, length = x[0].clone(), x[1], x[2]
    flat, new = cache.flatten(0, -4) if cache.dim() > 3 else cache[None], rows.reshape(-1, *rows.shape[-3:])
    for i, n in enumerate(length.expand(cache.shape[:-3]).reshape(-1).tolist()):
        end = min(flat.shape[-2], n + new.shape[-2])
        flat[i, :, n:end] = new[i, :, :end - n]
    return [flat.reshape(cache.shape).detach()]


ANSWERS = {
    "cache_append": cache_append,
    "attention": attention,
    "attention_grad": attention_grad,
    "self_attention_1h": self_attention_1h,
    "rope": rope,
    "rope_tables": rope_tables,
}

ALL = ("bool", [True])
SOME = ("bool", [[True, False, True, True], [True, True, False, False], [False, True, True, False]])
CASES = [
    ("attention", [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 4)], {}),
    ("attention", [(2, 5, 3), (2, 5, 3), (2, 5, 3)], {"causal": 1}),
    ("attention", [(1, 2, 3), (1, 5, 3), (1, 5, 2)], {"causal": 1}),
    ("attention", [(4, 3, 4), (2, 5, 4), (2, 5, 3)], {"scale": 0.3}),
    ("attention", [(2, 3, 2), (1, 4, 2), (1, 4, 2), SOME], {}),
    ("attention", [(2, 3, 2), (2, 4, 2), (2, 4, 2), (2, 1, 4)], {}),
    ("attention", [(2, 2, 2, 3), (2, 1, 6, 3), (2, 1, 6, 2), ALL, ("i64", [5, 3])], {"causal": 1}),
    ("attention", [(2, 3, 4, 5), (2, 6, 2, 5), (2, 6, 2, 4)], {"causal": 1, "seq_first": 1}),
    ("attention", [(2, 5, 4, 3), (2, 6, 2, 3), (2, 6, 2, 2), ALL, ("i64", [6, 5])], {"causal": 1, "seq_first": 1}),
    ("attention_grad", [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 4), (2, 3, 4, 4), (2, 3, 4), (2, 3, 4, 4)], {}),
    ("attention_grad", [(4, 3, 4), (2, 5, 4), (2, 5, 3), (4, 3, 3), (4, 3), (4, 3, 3), ALL, ("i32", 4)],
     {"scale": 0.3, "causal": 1}),
    ("attention_grad", [(2, 3, 4, 5), (2, 6, 2, 5), (2, 6, 2, 4), (2, 3, 4, 4), (2, 4, 3), (2, 3, 4, 4)],
      {"seq_first": 1}),
    ("cache_append", [(2, 6, 3), (2, 2, 3), ("i32", 3)], {}),
    ("cache_append", [(2, 3, 2, 5, 4), (2, 3, 2, 2, 4), ("i64", [[0, 1, 3], [4, 5, 2]])], {}),
    ("self_attention_1h", [(4, 3), (3, 6), (2, 3)], {}),
    ("self_attention_1h", [(2, 3, 4), (4, 12), (4, 2)], {"causal": 0, "scale": 0.25}),
    ("rope", [(2, 3, 8), (3, 4), (3, 4)], {}), ("rope", [(2, 3, 8), (3, 4), (3, 4)], {"interleaved": 1}),
    ("rope_tables", [("i32", [0, 1, 2, 30])], {"dim": 8, "base": 100.0}),
    ("rope_tables", [("i64", [[3, 1], [0, 7]])], {"dim": 6, "base": 50.0, "dtype": "f64"}),
]
