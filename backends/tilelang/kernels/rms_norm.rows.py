"""Root mean square normalization of rows: a block a row, which it holds whole."""
import tilelang.language as T


def rms_norm_rows(dtype, block, threads, aligned):
    rows = T.dynamic("rows")
    columns = T.dynamic("columns8") * 8 if aligned else T.dynamic("columns")

    @T.prim_func
    def kernel(x: T.Tensor((rows, columns), dtype), weight: T.Tensor((columns,), dtype),
               y: T.Tensor((rows, columns), dtype), epsilon: T.float32):
        with T.Kernel(rows, threads=threads) as row:
            v = T.alloc_fragment((block,), "float32")
            squares = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((1,), "float32")
            for i in T.Parallel(block):
                v[i] = T.if_then_else(i < columns, T.cast(x[row, i], "float32"), 0)
            for i in T.Parallel(block):
                squares[i] = v[i] * v[i]
            T.reduce_sum(squares, total, dim=0)
            total[0] = 1 / T.sqrt(total[0] / T.cast(columns, "float32") + epsilon)
            for i in T.Parallel(block):
                if i < columns:
                    y[row, i] = T.cast(v[i] * total[0] * T.cast(weight[i], "float32"), dtype)

    return kernel


def variants():
    for name, dtype in (("fp32", "float32"), ("fp16", "float16"), ("bf16", "bfloat16")):
        for block, threads in ((1024, 128), (4096, 256), (16384, 512)):
            for aligned in (True, False):
                yield dict(name=f"rms_norm_{name}_{block}", aligned=aligned,
                           kernel=rms_norm_rows(dtype, block, threads, aligned))
