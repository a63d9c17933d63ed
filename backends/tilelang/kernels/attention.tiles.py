"""Attention without a matrix of scores, 16-bit: a block a tile of queries. Weights are rounded before they are multiplied."""
import tilelang.language as T


def attention_tiles(dtype, width, rows, keys, threads, causal):
    batch, heads, kv_heads = T.dynamic("batch"), T.dynamic("heads"), T.dynamic("kv_heads")
    seq_q, seq_k = T.dynamic("seq_q"), T.dynamic("seq_k")

    @T.prim_func
    def kernel(q: T.Tensor((batch, heads, seq_q, width), dtype), k: T.Tensor((batch, kv_heads, seq_k, width), dtype),
               v: T.Tensor((batch, kv_heads, seq_k, width), dtype), y: T.Tensor((batch, heads, seq_q, width), dtype),
               lse: T.Tensor((batch, heads, seq_q), "float32"), scale: T.float32):
        with T.Kernel(T.ceildiv(seq_q, rows), heads, batch, threads=threads) as (block, head, b):
            x = T.alloc_shared((rows, width), dtype)
            some_keys = T.alloc_shared((keys, width), dtype)
            values = T.alloc_shared((keys, width), dtype)
            scores = T.alloc_fragment((rows, keys), "float32")
            weights = T.alloc_fragment((rows, keys), dtype)
            sums = T.alloc_fragment((rows, width), "float32")
            most = T.alloc_fragment((rows,), "float32")
            before = T.alloc_fragment((rows,), "float32")
            old = T.alloc_fragment((rows,), "float32")
            part = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            shared = head // (heads // kv_heads)
            T.copy(q[b, head, block * rows, 0], x)
            T.clear(sums)
            T.clear(total)
            T.fill(most, -T.infinity("float32"))
            # The last query sees all keys, the one before it one less.
            end = T.min(seq_k, (block + 1) * rows + seq_k - seq_q) if causal else seq_k
            for step in T.Pipelined(T.ceildiv(end, keys), num_stages=0):
                T.copy(k[b, shared, step * keys, 0], some_keys)
                T.clear(scores)
                T.gemm(x, some_keys, scores, transpose_B=True)
                for i, j in T.Parallel(rows, keys):
                    seen = step * keys + j
                    limit = T.min(seq_k, block * rows + i + 1 + seq_k - seq_q) if causal else seq_k
                    scores[i, j] = T.if_then_else(seen < limit, scores[i, j] * scale * 1.4426950408889634, -T.infinity("float32"))
                T.copy(most, before)
                T.reduce_max(scores, most, dim=1, clear=False)
                for i in T.Parallel(rows):
                    old[i] = T.exp2(before[i] - most[i])
                for i, j in T.Parallel(rows, keys):
                    scores[i, j] = T.exp2(scores[i, j] - most[i])
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(rows):
                    total[i] = total[i] * old[i] + part[i]
                for i, j in T.Parallel(rows, width):
                    sums[i, j] = sums[i, j] * old[i]
                T.copy(scores, weights)
                T.copy(v[b, shared, step * keys, 0], values)
                T.gemm(weights, values, sums)
            for i, j in T.Parallel(rows, width):
                if block * rows + i < seq_q:
                    y[b, head, block * rows + i, j] = T.cast(sums[i, j] / total[i], dtype)
            for i in T.Parallel(rows):
                if block * rows + i < seq_q:
                    lse[b, head, block * rows + i] = (most[i] + T.log2(total[i])) * 0.6931471805599453

    return kernel


def variants():
    return ()  # no record of the plug-in starts it: python/weft/lab/providers/tilelang.py does
