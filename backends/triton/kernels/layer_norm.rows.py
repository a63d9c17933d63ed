"""Layer normalization of rows: a program a row, which it holds whole. The variance is taken in a second pass over it."""
import triton
import triton.language as tl


@triton.jit
def layer_norm_rows(x, weight, bias, y, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row + at, mask=inside, other=0).to(tl.float32)
    w = tl.load(weight + at, mask=inside, other=0).to(tl.float32)
    b = tl.load(bias + at, mask=inside, other=0).to(tl.float32)
    h = tl.where(inside, v - tl.sum(v, 0) / columns, 0)
    scale = 1 / tl.sqrt(tl.sum(h * h, 0) / columns + epsilon)
    tl.store(y + row + at, (h * scale * w + b).to(y.dtype.element_ty), mask=inside)


def variants():
    return ()  # no record of the plug-in starts it: python/weft/lab/providers/triton.py does
