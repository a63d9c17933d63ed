"""PyTorch's answers for sequences of different lengths, each taken out and done by itself."""
import torch
from torch.nn import functional as F


def sequences(length, offsets):
    return zip(length.tolist(), offsets[:-1].tolist(), offsets[1:].tolist())


def ragged_cache_append(x, a):
    cache, rows = x[0].clone(), x[1]
    for i, (n, begin, end) in enumerate(sequences(*x[2:])):
        there = min(end - begin, cache.shape[2] - n)
        cache[i, :, n:n + there] = rows[begin:begin + there].transpose(0, 1)
    return [cache.detach()]


def ragged_attention(x, a):
    q, k, v = x[:3]
    y = torch.zeros(*q.shape[:2], v.shape[-1], dtype=q.dtype)
    for i, (n, begin, end) in enumerate(sequences(*x[3:])):
        own = min(n + end - begin, k.shape[2])
        sees = torch.arange(own) <= n + torch.arange(end - begin)[:, None]
        y[begin:end] = F.scaled_dot_product_attention(
            q[begin:end].transpose(0, 1), k[i, :, :own], v[i, :, :own], sees, scale=a.get("scale") or None,
            enable_gqa=True).transpose(0, 1)
    return [y.detach()]


ANSWERS = {"ragged_cache_append": ragged_cache_append, "ragged_attention": ragged_attention}

THREE = (("i32", [0, 2, 1]), ("i32", [0, 1, 6, 9]))
CASES = [
    ("ragged_cache_append", [(3, 2, 7, 2), (9, 2, 2), *THREE], {}),
    ("ragged_cache_append", [(2, 1, 4, 3), (6, 1, 3), ("i64", [2, 4]), ("i64", [0, 4, 6])], {}),
    ("ragged_attention", [(9, 4, 4), (3, 2, 7, 4), (3, 2, 7, 3), *THREE], {}),
    ("ragged_attention", [(5, 2, 4), (3, 2, 6, 4), (3, 2, 6, 4), ("i64", [1, 5, 0]), ("i64", [0, 4, 4, 5])],
     {"scale": 0.3}),
    ("ragged_attention", [(5, 2, 3), (1, 1, 8, 3), (1, 1, 8, 2), ("i32", [3]), ("i32", [0, 5])], {}),
]
