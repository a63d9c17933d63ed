"""Attention without a matrix of scores: a program a tile of queries. Weights are rounded to the values' dtype before they are multiplied."""
import triton
import triton.language as tl


@triton.jit
def attention_tiles(q, k, v, y, lse, heads, shared_by, seq_q, seq_k, q_row, q_head, k_row, k_head, scale,
                    DIM: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, CAUSAL: tl.constexpr,
                    PRECISION: tl.constexpr):
    head = tl.program_id(1) % heads
    sequence = (tl.program_id(1) // heads).to(tl.int64)
    q_base = sequence * heads * seq_q * DIM + head * q_head
    k_base = sequence * (heads // shared_by) * seq_k * DIM + head // shared_by * k_head
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, DIM)
    key = tl.arange(0, KEYS)
    x = tl.load(q + q_base + row[:, None] * q_row + column[None, :], mask=row[:, None] < seq_q, other=0)
    most = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, DIM), tl.float32)
    # The last query sees all keys, the one before it one less.
    end = min(seq_k, (tl.program_id(0) + 1) * ROWS + seq_k - seq_q) if CAUSAL else seq_k
    for begin in range(0, end, KEYS):
        seen = begin + key
        keys = tl.load(k + k_base + seen[None, :] * k_row + column[:, None], mask=seen[None, :] < seq_k, other=0)
        scores = tl.dot(x, keys, input_precision=PRECISION) * (scale * 1.4426950408889634)
        sees = seen[None, :] < seq_k
        if CAUSAL:
            sees = sees & (seen[None, :] <= row[:, None] + seq_k - seq_q)
        scores = tl.where(sees, scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, 1))
        e = tl.exp2(scores - new[:, None])
        old = tl.exp2(most - new)
        total = total * old + tl.sum(e, 1)
        values = tl.load(v + k_base + seen[:, None] * k_row + column[None, :], mask=seen[:, None] < seq_k, other=0)
        sums = tl.dot(e.to(values.dtype), values, sums * old[:, None], input_precision=PRECISION)
        most = new
    at = q_base + row[:, None] * q_row + column[None, :]
    tl.store(y + at, (sums / total[:, None]).to(y.dtype.element_ty), mask=row[:, None] < seq_q)
    rows = (sequence * heads + head) * seq_q + row
    tl.store(lse + rows, (most + tl.log2(total)) * 0.6931471805599453, mask=row < seq_q)


def variants():
    for dtype in ("fp16", "bf16"):
        for dim in (64, 128):
            for causal in (0, 1):
                arguments = {name: f"*{dtype}" for name in "qkvy"} | {"lse": "*fp32"}
                arguments |= {name: "i32" for name in ("heads", "shared_by", "seq_q", "seq_k", "q_row", "q_head", "k_row",
                                                       "k_head")}
                yield dict(name=f"attention_{dtype}_{dim}_{causal}", kernel=attention_tiles, warps=8 if dim == 128 else 4,
                           stages=3 if dim == 64 else 2, arguments=arguments | {"scale": "fp32"},
                           constants={"DIM": dim, "ROWS": 128, "KEYS": 64, "CAUSAL": causal, "PRECISION": "ieee"})
