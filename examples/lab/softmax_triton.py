"""A softmax of your own in Triton, as weft lab takes it: weft lab cuda examples/lab/softmax_triton.py --ops softmax"""

import triton
import triton.language as tl

FRAMEWORK = "triton"


@triton.jit
def rows(x, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * columns
    v = tl.load(x + row + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row + at, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=at < columns)


def softmax(x, out, axis=-1):
    if axis not in (-1, x.dim() - 1) or x.numel() == 0:
        raise NotImplementedError("the last axis, of rows that are not empty")
    columns = x.shape[-1]
    block = triton.next_power_of_2(columns)
    rows[(x.numel() // columns,)](x, out, columns, BLOCK=block, num_warps=min(max(block // 256, 1), 16))
