"""Kernels of Intel's MKL: products by its BLAS, functions of elements by its vector mathematics, in its most accurate mode."""

import ctypes

import numpy as np

from weft.lab.frameworks import mkl_library

FRAMEWORK = "mkl"
MKL = mkl_library()
ROWS_FIRST, AS_IT_IS, TRANSPOSED = 101, 111, 112  # as cblas.h numbers them
LETTERS = {np.dtype("float32"): "s", np.dtype("float64"): "d"}
LONGEST = 2**31 - 1


def _of(name, x):
    """MKL's function for elements of x, as "s" of cblas_sgemm says."""
    if x.dtype not in LETTERS:
        raise NotImplementedError("MKL takes f32 and f64 alone")
    if x.size > LONGEST:
        raise NotImplementedError("MKL takes at most 2^31 - 1 elements")
    return getattr(MKL, name.format(LETTERS[x.dtype]))


def _address(x):
    return ctypes.c_void_p(x.ctypes.data)


def _vector(name, out, *operands):
    """out = f(operands), element by element; MKL takes operands of one shape, row by row."""
    operands = [np.ascontiguousarray(np.broadcast_to(o, out.shape)) for o in operands]
    _of(name, out)(ctypes.c_int(out.size), *map(_address, operands), _address(out))


def add(a, b, out):
    _vector("v{}Add", out, a, b)


def mul(a, b, out):
    _vector("v{}Mul", out, a, b)


def gelu(x, out, approximate=0):
    if approximate:
        raise NotImplementedError("MKL has the exact gelu alone")
    _vector("v{}CdfNorm", out, x)
    out *= x


def silu(x, out):
    _vector("v{}Exp", out, -x)
    np.divide(x, 1 + out, out=out)


def silu_gate(a, b, out):
    silu(a, out)
    out *= b


def softmax(x, out, axis=-1):
    _vector("v{}Exp", out, x - x.max(axis, keepdims=True, initial=-np.inf))
    out /= out.sum(axis, keepdims=True)


def matmul(a, b, out, transpose_a=0, transpose_b=0):
    gemm, real = _of("cblas_{}gemm", out), ctypes.c_float if out.dtype == np.float32 else ctypes.c_double
    if a.dtype != out.dtype or b.dtype != out.dtype or not all(t.flags.c_contiguous for t in (a, b, out)):
        raise NotImplementedError("MKL takes operands of one type that lie row by row")
    rows, columns = out.shape[-2:]
    terms = a.shape[-2 if transpose_a else -1]
    if out.size == 0 or terms == 0:
        out[...] = 0
        return
    for at in np.ndindex(out.shape[:-2]):
        left, right = (np.broadcast_to(t, out.shape[:-2] + t.shape[-2:])[at] for t in (a, b))
        gemm(ROWS_FIRST, TRANSPOSED if transpose_a else AS_IT_IS, TRANSPOSED if transpose_b else AS_IT_IS, rows, columns, terms,
             real(1), _address(left), max(1, a.shape[-1]), _address(right), max(1, b.shape[-1]), real(0), _address(out[at]), columns)  # fmt: skip
