"""Layer normalization of rows: a block a row, which it holds whole. The variance is taken in a second pass over it."""
import tilelang.language as T


def layer_norm_rows(dtype, block, threads, aligned):
    rows = T.dynamic("rows")
    columns = T.dynamic("columns8") * 8 if aligned else T.dynamic("columns")

    @T.prim_func
    def kernel(x: T.Tensor((rows, columns), dtype), weight: T.Tensor((columns,), dtype), bias: T.Tensor((columns,), dtype),
               y: T.Tensor((rows, columns), dtype), epsilon: T.float32):
        with T.Kernel(rows, threads=threads) as row:
            v = T.alloc_fragment((block,), "float32")
            squares = T.alloc_fragment((block,), "float32")
            mean = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            for i in T.Parallel(block):
                v[i] = T.if_then_else(i < columns, T.cast(x[row, i], "float32"), 0)
            T.reduce_sum(v, mean, dim=0)
            mean[0] = mean[0] / T.cast(columns, "float32")
            for i in T.Parallel(block):
                squares[i] = T.if_then_else(i < columns, (v[i] - mean[0]) * (v[i] - mean[0]), 0)
            T.reduce_sum(squares, total, dim=0)
            total[0] = 1 / T.sqrt(total[0] / T.cast(columns, "float32") + epsilon)
            for i in T.Parallel(block):
                if i < columns:
                    y[row, i] = T.cast((v[i] - mean[0]) * total[0] * T.cast(weight[i], "float32") + T.cast(bias[i], "float32"), dtype)

    return kernel


def variants():
    return ()  # no record of the plug-in starts it: python/weft/lab/providers/tilelang.py does
