"""Softmax of rows: a block a row, which it holds whole."""
import tilelang.language as T


def softmax_rows(dtype, block, threads, aligned):
    rows = T.dynamic("rows")
    columns = T.dynamic("columns8") * 8 if aligned else T.dynamic("columns")

    @T.prim_func
    def kernel(x: T.Tensor((rows, columns), dtype), y: T.Tensor((rows, columns), dtype)):
        with T.Kernel(rows, threads=threads) as row:
            v = T.alloc_fragment((block,), "float32")
            most = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            for i in T.Parallel(block):
                v[i] = T.if_then_else(i < columns, T.cast(x[row, i], "float32"), -T.infinity("float32"))
            T.reduce_max(v, most, dim=0)
            for i in T.Parallel(block):
                v[i] = T.exp(v[i] - most[0])
            T.reduce_sum(v, total, dim=0)
            for i in T.Parallel(block):
                if i < columns:
                    y[row, i] = T.cast(v[i] / total[0], dtype)

    return kernel


def variants():
    for name, dtype in (("fp32", "float32"), ("fp16", "float16"), ("bf16", "bfloat16")):
        for block, threads in ((1024, 128), (4096, 256), (16384, 512)):
            for aligned in (True, False):
                yield dict(name=f"softmax_{name}_{block}", aligned=aligned, kernel=softmax_rows(dtype, block, threads, aligned))
