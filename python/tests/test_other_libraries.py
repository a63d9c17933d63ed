"""Memory shared with PyTorch, JAX and CuPy, each where it is installed: both ways, without a copy, whoever goes first."""

import gc

import numpy as np
import pytest
from conftest import refused, same

import weft


def test_pytorch():
    torch = pytest.importorskip("torch")
    t = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    x = weft.from_dlpack(t)
    t[0, 0] = 9
    assert x[0, 0].item() == 9
    x += 1
    assert t[0, 0].item() == 10 and x.shape == (3, 4)
    for view in (t[1:], t[:, 2:], t[::2], t.T, t[1], t[:, 3], t.expand(2, 3, 4), t[:, None], t[0:0], t.permute(1, 0)[1:]):
        same(weft.from_dlpack(view), view.numpy())
        same(weft.from_dlpack(view) * 2, view.numpy() * 2)
    y = weft.zeros((2, 3))
    u = torch.from_dlpack(y)
    u[1, 2] = 5
    assert y[1, 2].item() == 5 and u.data_ptr() == torch.from_dlpack(y).data_ptr()
    del y, t
    gc.collect()
    assert u.sum().item() == 5 and x.sum().item() == 87
    for dtype in ("float64", "float32", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool"):
        t = torch.tensor([0, 1], dtype=getattr(torch, dtype))
        x = weft.from_dlpack(t)
        assert x.dtype == dtype and torch.equal(torch.from_dlpack(x), t) and weft.dtype_named(t.dtype) == x.dtype
    with pytest.raises(BufferError):
        weft.from_dlpack(torch.ones(2, requires_grad=True))
    refused(lambda: weft.from_dlpack(torch.ones(2, dtype=torch.complex64)), "dtype")
    assert torch.from_dlpack(weft.from_numpy(np.zeros(3, np.float32))).tolist() == [0, 0, 0]


def test_jax():
    jax = pytest.importorskip("jax")
    a = jax.numpy.arange(6, dtype="float32").reshape(2, 3)
    x = weft.from_dlpack(a)
    same(x, np.asarray(a))
    same(x[:, 1] + 1, np.asarray(a)[:, 1] + 1)
    with pytest.raises(weft.InvalidArgument):  # JAX's arrays do not change
        x += 1
    del a
    gc.collect()
    assert x.sum().item() == 15
    y = weft.tensor(np.random.default_rng(1).standard_normal((64, 8)).astype(np.float32))
    b = jax.dlpack.from_dlpack(y)
    want = y.numpy().copy()
    del y
    gc.collect()
    np.testing.assert_array_equal(np.asarray(b), want)


def test_cupy():
    cupy = pytest.importorskip("cupy")
    if not weft.is_backend_available("cuda"):
        pytest.skip("the backend cuda is not here")
    a = cupy.arange(6, dtype="float32").reshape(2, 3)
    x = weft.from_dlpack(a, backend="cuda")
    a += 1
    assert x.to("reference").tolist() == [[1, 2, 3], [4, 5, 6]]
    b = cupy.from_dlpack(x)
    b += 1
    assert x.to("reference").tolist() == [[2, 3, 4], [5, 6, 7]]
