"""A softmax of your own in TileLang, as weft lab takes it: weft lab cuda examples/lab/softmax_tilelang.py --ops softmax"""

import functools

import tilelang
import tilelang.language as T

FRAMEWORK = "tilelang"
BLOCK = 1024


@functools.cache
def rows(columns):
    count = T.dynamic("count")

    @T.prim_func
    def kernel(x: T.Tensor((count, columns), "float32"), y: T.Tensor((count, columns), "float32")):
        with T.Kernel(count, threads=128) as row:
            v = T.alloc_fragment((BLOCK,), "float32")
            most = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            for i in T.Parallel(BLOCK):
                v[i] = T.if_then_else(i < columns, x[row, i], -T.infinity("float32"))
            T.reduce_max(v, most, dim=0)
            for i in T.Parallel(BLOCK):
                v[i] = T.exp(v[i] - most[0])
            T.reduce_sum(v, total, dim=0)
            for i in T.Parallel(BLOCK):
                if i < columns:
                    y[row, i] = v[i] / total[0]

    return tilelang.compile(kernel, target="cuda")


def softmax(x, out, axis=-1):
    columns = x.shape[-1] if x.dim() else 0
    if axis not in (-1, x.dim() - 1) or x.numel() == 0 or columns > BLOCK or str(x.dtype) != "torch.float32":
        raise NotImplementedError(f"the last axis, of f32, rows of 1 to {BLOCK}")
    rows(columns)(x.view(-1, columns), out.view(-1, columns))
