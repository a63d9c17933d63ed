"""Products of 16-bit matrices on tensor cores: c = a b, a block a tile of c."""
import tilelang.language as T


def matmul_tiles(dtype, a_turned, b_turned, tile, threads, aligned):
    rows, columns, depth = tile
    batch, a_of, b_of = T.dynamic("batch"), T.dynamic("a_of"), T.dynamic("b_of")
    n, k = (T.dynamic(name + "8") * 8 if aligned else T.dynamic(name) for name in ("n", "k"))
    m = T.dynamic("m8") * 8 if aligned and a_turned else T.dynamic("m")

    @T.prim_func
    def kernel(a: T.Tensor((a_of, k, m) if a_turned else (a_of, m, k), dtype),
               b: T.Tensor((b_of, n, k) if b_turned else (b_of, k, n), dtype), c: T.Tensor((batch, m, n), dtype)):
        with T.Kernel(T.ceildiv(m, rows) * T.ceildiv(n, columns), batch, threads=threads) as (block, matrix):
            x = T.alloc_shared((depth, rows) if a_turned else (rows, depth), dtype)
            y = T.alloc_shared((columns, depth) if b_turned else (depth, columns), dtype)
            total = T.alloc_fragment((rows, columns), "float32")
            row = block // T.ceildiv(n, columns) * rows
            column = block % T.ceildiv(n, columns) * columns
            T.clear(total)
            for i in T.Pipelined(T.ceildiv(k, depth), num_stages=2 if aligned else 0):
                if a_turned:
                    T.copy(a[T.min(matrix, a_of - 1), i * depth, row], x)
                else:
                    T.copy(a[T.min(matrix, a_of - 1), row, i * depth], x)
                if b_turned:
                    T.copy(b[T.min(matrix, b_of - 1), column, i * depth], y)
                else:
                    T.copy(b[T.min(matrix, b_of - 1), i * depth, column], y)
                T.gemm(x, y, total, transpose_A=bool(a_turned), transpose_B=bool(b_turned))
            T.copy(total, c[matrix, row, column])

    return kernel


def variants():
    for name, dtype in (("fp16", "float16"), ("bf16", "bfloat16")):
        for a_turned in (0, 1):
            for b_turned in (0, 1):
                for size, aligned in (("large", True), ("large", False), ("small", True), ("small", False)):
                    # Loads of single elements are no better in large tiles, and their code is long.
                    tile, threads = ((128, 256, 64), 256) if size == "large" and aligned else ((64, 64, 64), 128)
                    yield dict(name=f"matmul_{name}_{a_turned}{b_turned}_{size}", aligned=aligned, tile=tile[:2],
                               kernel=matmul_tiles(dtype, a_turned, b_turned, tile, threads, aligned))
