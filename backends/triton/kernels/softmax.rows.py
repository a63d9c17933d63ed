"""Softmax of rows: a program a row, which it holds whole."""
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row + at, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row + at, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=inside)


def variants():
    for dtype in ("fp32", "fp16", "bf16"):
        for block, warps in ((1024, 4), (4096, 8), (16384, 16)):
            yield dict(name=f"softmax_{dtype}_{block}", kernel=softmax_rows, warps=warps, constants={"BLOCK": block},
                       arguments={"x": f"*{dtype}", "y": f"*{dtype}", "columns": "i32"})
