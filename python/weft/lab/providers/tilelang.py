"""Kernels in TileLang's language, those of backends/tilelang/kernels, compiled where they run."""

import functools

import tilelang
import torch

from weft.lab.providers._sources import source

FRAMEWORK = "tilelang"
NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}
LONGEST_ROW = 16384
# As backends/tilelang/compile.py: for operands that begin anywhere, of any size.
OPTIONS = {"tl.disable_tma_lower": True, "tl.disable_warp_specialized": True, "tirx.disable_vectorize": True}


@functools.cache
def compiled(op, name, *parameters):
    """A kernel of a file, compiled for these parameters."""
    return tilelang.compile(getattr(source("tilelang", op), name)(*parameters), target="cuda", pass_configs=OPTIONS)


def _row_kernel(op, x):
    """A kernel of rows that a block holds whole, and x as such rows."""
    if x.dtype not in NAMES or x.dim() == 0 or x.numel() == 0 or x.shape[-1] > LONGEST_ROW:
        raise NotImplementedError(f"rows of f32, f16 or bf16, 1 to {LONGEST_ROW:,} long")
    block, threads = next(sizes for sizes in ((1024, 128), (4096, 256), (16384, 512)) if x.shape[-1] <= sizes[0])
    return compiled(f"{op}.rows", f"{op}_rows", NAMES[x.dtype], block, threads, False), x.view(-1, x.shape[-1])


def softmax(x, out, axis=-1):
    if axis not in (-1, x.dim() - 1):
        raise NotImplementedError("the last axis")
    kernel, rows = _row_kernel("softmax", x)
    kernel(rows, out.view(rows.shape))


def rms_norm(x, weight, out, epsilon=1e-5):
    kernel, rows = _row_kernel("rms_norm", x)
    kernel(rows, weight, out.view(rows.shape), epsilon)


def layer_norm(x, weight=None, bias=None, *, out, trailing=1, epsilon=1e-5):
    if weight is None or bias is None or trailing != 1:
        raise NotImplementedError("one axis, with weight and bias")
    kernel, rows = _row_kernel("layer_norm", x)
    kernel(rows, weight, bias, out.view(rows.shape), epsilon)


def matmul(a, b, out, transpose_a=0, transpose_b=0):
    if a.dtype not in (torch.float16, torch.bfloat16) or out.numel() == 0 or a.numel() == 0:
        raise NotImplementedError("f16 and bf16, with terms")
    a, b, c = (t.view(-1, *t.shape[-2:]) for t in (a, b, out))
    if a.shape[0] not in (1, c.shape[0]) or b.shape[0] not in (1, c.shape[0]):
        raise NotImplementedError("leading axes that broadcast in part")
    tile, threads = ((64, 64, 64), 128)
    compiled("matmul.tiles", "matmul_tiles", NAMES[a.dtype], int(transpose_a), int(transpose_b), tile, threads, False)(a, b, c)


def attention(q, k, v, mask=None, length=None, *, out, causal=0, scale=0.0, seq_first=0):
    width = q.shape[-1]
    if mask is not None or length is not None or seq_first or v.shape[-1] != width or width not in (64, 128):
        raise NotImplementedError("heads of 64 or 128 before the sequence, v as wide as k, no mask and no length")
    if q.dtype not in (torch.float16, torch.bfloat16) or q.numel() == 0 or k.numel() == 0 or causal and q.shape[-2] > k.shape[-2]:
        raise NotImplementedError("f16 and bf16, where each query sees a key")
    q, k, v, y = (t.view(-1, *t.shape[-3:]) for t in (q, k, v, out[0]))
    kernel = compiled("attention.tiles", "attention_tiles", NAMES[q.dtype], width, 64, 64, 128, bool(causal))
    kernel(q, k, v, y, out[1].view(y.shape[:-1]), scale or width**-0.5)
