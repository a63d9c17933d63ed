"""Products of matrices, of 16 bits on tensor cores: c = a b, a program a tile of c. Neighbouring programs share rows of a."""
import triton
import triton.language as tl


@triton.jit
def matmul_tiles(a, b, c, m, n, k, a_row, a_column, b_row, b_column, a_batch, b_batch, c_batch,
                 ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr,
                 PRECISION: tl.constexpr):
    matrix = tl.program_id(1).to(tl.int64)
    program = tl.program_id(0)
    down, across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    group = program // (GROUP * across)
    height = min(down - group * GROUP, GROUP)
    row = (group * GROUP + program % (GROUP * across) % height) * ROWS + tl.arange(0, ROWS)
    column = program % (GROUP * across) // height * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    a_at = a + matrix * a_batch + row[:, None].to(tl.int64) * a_row + depth[None, :] * a_column
    b_at = b + matrix * b_batch + depth[:, None] * b_row + column[None, :].to(tl.int64) * b_column
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, k, DEPTH):
        x = tl.load(a_at, mask=(row[:, None] < m) & (depth[None, :] < k - begin), other=0)
        y = tl.load(b_at, mask=(depth[:, None] < k - begin) & (column[None, :] < n), other=0)
        total = tl.dot(x, y, total, input_precision=PRECISION)
        a_at += DEPTH * a_column
        b_at += DEPTH * b_row
    at = c + matrix * c_batch + row[:, None].to(tl.int64) * n + column[None, :]
    tl.store(at, total.to(c.dtype.element_ty), mask=(row[:, None] < m) & (column[None, :] < n))


def variants():
    for dtype in ("fp16", "bf16"):
        for a_turned in (0, 1):
            for b_turned in (0, 1):
                # A stride of 1 is a constant, so that loads along it are wide.
                fixed = {"a_row" if a_turned else "a_column": 1, "b_column" if not b_turned else "b_row": 1}
                arguments = {"a": f"*{dtype}", "b": f"*{dtype}", "c": f"*{dtype}"}
                arguments |= {name: "i32" for name in ("m", "n", "k", "a_row", "a_column", "b_row", "b_column")
                              if name not in fixed}
                arguments |= {name: "i64" for name in ("a_batch", "b_batch", "c_batch")}
                for name, sizes, warps in (("large", (128, 256, 64), 8), ("small", (64, 64, 64), 4)):
                    constants = dict(zip(("ROWS", "COLUMNS", "DEPTH"), sizes), GROUP=8, PRECISION="ieee",
                                     **fixed)
                    yield dict(name=f"matmul_{dtype}_{a_turned}{b_turned}_{name}", kernel=matmul_tiles, warps=warps,
                               stages=3, constants=constants, arguments=arguments)
