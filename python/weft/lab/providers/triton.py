"""Kernels in Triton's language, those of backends/triton/kernels, compiled where they run."""

import torch
import triton

from weft.lab.providers._sources import source

FRAMEWORK = "triton"
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
LONGEST_ROW = 65536


def _row_options(x):
    """Blocks and warps for rows that a program holds whole."""
    if x.dtype not in FLOATS or x.dim() == 0 or x.numel() == 0 or x.shape[-1] > LONGEST_ROW:
        raise NotImplementedError(f"rows of f32, f16 or bf16, 1 to {LONGEST_ROW:,} long")
    block = max(triton.next_power_of_2(x.shape[-1]), 16)
    return (x.numel() // x.shape[-1],), {"BLOCK": block, "num_warps": min(max(block // 256, 4), 16)}


def softmax(x, out, axis=-1):
    if axis not in (-1, x.dim() - 1):
        raise NotImplementedError("the last axis")
    grid, options = _row_options(x)
    source("triton", "softmax.rows").softmax_rows[grid](x, out, x.shape[-1], **options)


def rms_norm(x, weight, out, epsilon=1e-5):
    grid, options = _row_options(x)
    source("triton", "rms_norm.rows").rms_norm_rows[grid](x, weight, out, x.shape[-1], epsilon, **options)


def layer_norm(x, weight=None, bias=None, *, out, trailing=1, epsilon=1e-5):
    if weight is None or bias is None or trailing != 1:
        raise NotImplementedError("one axis, with weight and bias")
    grid, options = _row_options(x)
    source("triton", "layer_norm.rows").layer_norm_rows[grid](x, weight, bias, out, x.shape[-1], epsilon, **options)


def _matrices(x, batch):
    """What lies between two matrices of x, of which there are `batch` or one."""
    if x.dim() == 2 or x.numel() == x.shape[-1] * x.shape[-2]:
        return 0
    if x.numel() != batch * x.shape[-1] * x.shape[-2]:
        raise NotImplementedError("leading axes that broadcast in part")
    return x.shape[-1] * x.shape[-2]


def matmul(a, b, out, transpose_a=0, transpose_b=0):
    if a.dtype not in FLOATS or out.numel() == 0 or a.numel() == 0:
        raise NotImplementedError("f32, f16 and bf16, with terms")
    m, n, k = out.shape[-2], out.shape[-1], a.shape[-2 if transpose_a else -1]
    batch = out.numel() // (m * n)
    a_strides, b_strides = (1, m) if transpose_a else (k, 1), (1, k) if transpose_b else (n, 1)
    wide = a.dtype == torch.float32
    large = not wide and m * n >= 1 << 21
    rows, columns, depth, warps = (128, 256, 64, 8) if large else (64, 64, 32 if wide else 64, 4)
    grid = triton.cdiv(m, rows) * triton.cdiv(n, columns), batch
    source("triton", "matmul.tiles").matmul_tiles[grid](
        a, b, out, m, n, k, *a_strides, *b_strides, _matrices(a, batch), _matrices(b, batch), m * n,
        ROWS=rows, COLUMNS=columns, DEPTH=depth, GROUP=8, PRECISION="ieee", num_warps=warps, num_stages=3)


def attention(q, k, v, mask=None, length=None, *, out, causal=0, scale=0.0, seq_first=0):
    y, lse = out
    width = q.shape[-1]
    if mask is not None or length is not None or v.shape[-1] != width or width not in (16, 32, 64, 128) or q.dtype not in FLOATS:
        raise NotImplementedError("f32, f16 and bf16, heads of 16, 32, 64 or 128, v as wide as k, no mask and no length")
    head, seq = (-2, -3) if seq_first else (-3, -2)
    heads, kv_heads, seq_q, seq_k = q.shape[head], k.shape[head], q.shape[seq], k.shape[seq]
    if q.numel() == 0 or seq_k == 0 or causal and seq_q > seq_k:
        raise NotImplementedError("a query that sees no key")
    q_strides, k_strides = ((n * width, width) if seq_first else (width, s * width) for n, s in ((heads, seq_q), (kv_heads, seq_k)))
    rows, keys = (64, 32) if q.dtype == torch.float32 else (128, 64)
    grid = triton.cdiv(seq_q, rows), q.numel() // (seq_q * width)
    source("triton", "attention.tiles").attention_tiles[grid](
        q, k, v, y, lse, heads, heads // kv_heads, seq_q, seq_k, *q_strides, *k_strides, scale or width**-0.5,
        DIM=width, ROWS=rows, KEYS=keys, CAUSAL=int(causal), PRECISION="ieee", num_warps=8 if width == 128 else 4, num_stages=2)
