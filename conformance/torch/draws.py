"""Random numbers, written anew: Philox, and what is made of it."""
import math

import torch

from common import DTYPES

PHILOX_WORDS = 0xFFFFFFFF


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., SC 2011): counter of four words, key of two."""
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & PHILOX_WORDS, (p0 >> 32) ^ c[3] ^ k1, p0 & PHILOX_WORDS]
        k0, k1 = (k0 + 0x9E3779B9) & PHILOX_WORDS, (k1 + 0xBB67AE85) & PHILOX_WORDS
    return c


# kat_vectors of Random123 1.14.
for counter, key, words in [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([PHILOX_WORDS] * 4, [PHILOX_WORDS] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
         [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])]:
    assert philox(counter, key) == words


def draw(state, shape):
    key, counter = state
    n, bits = math.prod(shape), []
    for block in range((n + 3) // 4):
        at = (counter + block) % 2**64
        bits += philox([at & PHILOX_WORDS, at >> 32, 0, 0], [key & PHILOX_WORDS, key >> 32])
    return bits[:n], [key, (counter + (n + 3) // 4) % 2**64]


def random_bits(x, a):
    bits, following = draw(x[0], a["shape"])
    return [("u32", a["shape"], bits), ("u64", [2], following)]


def dropout(x, a):
    p = a.get("p", 0.5)
    bits, following = draw(x[1], list(x[0].shape))
    mask = torch.tensor([b >= math.floor(p * 2**32) for b in bits]).reshape(x[0].shape)
    return [torch.where(mask, x[0] * (1 / (1 - p)), torch.zeros_like(x[0])), mask, ("u64", [2], following)]


def units(state, shape, dtype):
    """Numbers in [0, 1): PyTorch draws with another generator, so only what is made of them is its own."""
    if dtype == torch.float64:
        words, following = draw(state, shape + [2])
        u = [((p >> 6 << 27) + (q >> 5)) * 2**-53 for p, q in zip(words[::2], words[1::2])]
    else:
        words, following = draw(state, shape)
        u = [(w >> 8) * 2**-24 for w in words]
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return torch.tensor(u, dtype=wide).reshape(shape), ("u64", [2], following)


def uniform(x, a):
    dtype, low, high = DTYPES[a.get("dtype", "f32")], a.get("low", 0.0), a.get("high", 1.0)
    u, following = units(x[0], a.get("shape", []), dtype)
    y = (low + (high - low) * u).to(dtype)
    return [torch.where(y < high, y, torch.tensor(low, dtype=dtype)), following]


def normal(x, a):
    dtype = DTYPES[a.get("dtype", "f32")]
    u, following = units(x[0], a.get("shape", []) + [2], dtype)
    z = torch.sqrt(-2 * torch.log(1 - u[..., 0])) * torch.cos(2 * math.pi * u[..., 1])
    return [(a.get("mean", 0.0) + a.get("deviation", 1.0) * z).to(dtype), following]


ANSWERS = {
    "uniform": uniform,
    "normal": normal,
    "random_bits": random_bits,
    "dropout": dropout,
}

CASES = [
    ("random_bits", [("state", 0, 0)], {"shape": [4]}),
    ("random_bits", [("state", 2**63 + 12345, 2**32 - 2)], {"shape": [3, 7]}),
    ("dropout", [(4, 9), ("state", 7, 3)], {}), ("dropout", [(30,), ("state", 2**40 + 1, 3)], {"p": 0.1}),
    ("uniform", [("state", 7, 3)], {"shape": [3, 5]}),
    ("uniform", [("state", 7, 3)], {"shape": [9], "low": -2.0, "high": 3.0}),
    ("uniform", [("state", 7, 3)], {"shape": [3, 2], "low": -2.0, "high": 3.0, "dtype": "f64"}),
    ("uniform", [("state", 7, 3)], {"shape": [9], "dtype": "f16"}),
    ("normal", [("state", 7, 3)], {"shape": [3, 5]}),
    ("normal", [("state", 7, 3)], {"shape": [9], "mean": -2.0, "deviation": 3.0}),
    ("normal", [("state", 7, 3)], {"shape": [3, 2], "dtype": "f64"}),
    ("normal", [("state", 7, 3)], {"shape": [9], "dtype": "bf16"}),
]
