"""Root mean square normalization of rows: a program a row, which it holds whole."""
import triton
import triton.language as tl


@triton.jit
def rms_norm_rows(x, weight, y, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row + at, mask=inside, other=0).to(tl.float32)
    w = tl.load(weight + at, mask=inside, other=0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(v * v, 0) / columns + epsilon)
    tl.store(y + row + at, (v * scale * w).to(y.dtype.element_ty), mask=inside)


def variants():
    for dtype in ("fp32", "fp16", "bf16"):
        for block, warps in ((1024, 4), (4096, 8), (16384, 16)):
            yield dict(name=f"rms_norm_{dtype}_{block}", kernel=rms_norm_rows, warps=warps, constants={"BLOCK": block},
                       arguments={"x": f"*{dtype}", "weight": f"*{dtype}", "y": f"*{dtype}", "columns": "i32",
                                  "epsilon": "fp32"})
