"""Tensors that are other libraries' too: DLPack and Python's buffers, both ways, without a copy."""

import gc
import mmap
import pickle
import weakref

import numpy as np
import pytest
from conftest import refused, same

import weft


def test_numpy_sees_our_memory_and_we_see_numpys():
    t = weft.zeros((2, 3))
    a = t.numpy()
    a[1, 2] = 5
    assert t.tolist() == [[0, 0, 0], [0, 0, 5]]
    t += 1
    assert a[1, 2] == 6
    mine = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = weft.from_numpy(mine)
    mine[0, 0] = 9
    assert x[0, 0].item() == 9
    x += 1
    assert mine[0, 0] == 10


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "i32", "i64", "u32", "u64", "bool", "i8", "u8"])
def test_every_dtype_that_numpy_has(dtype):
    t = weft.tensor([[0, 1], [1, 0]], dtype=dtype)
    a = t.numpy()
    assert np.shares_memory(a, t.numpy())
    for back in (weft.from_numpy(a), weft.from_dlpack(a), weft.tensor(a), weft.from_dlpack(t), np.from_dlpack(t)):
        if not isinstance(back, np.ndarray):
            assert back.dtype == dtype
            back = back.numpy()
        same(t, back)


def test_an_array_outlives_the_tensor_and_the_other_way_round():
    t = weft.arange(1000, dtype="f32")
    a, d = t.numpy(), np.from_dlpack(t)
    del t
    gc.collect()
    assert a.sum() == d.sum() == 499500

    class Watched(np.ndarray):
        pass

    mine = np.arange(1000, dtype=np.float32).view(Watched)
    gone = weakref.ref(mine)
    for take in (weft.from_numpy, weft.from_dlpack):
        x = take(mine)
        view = x.numpy()
    del mine
    gc.collect()
    assert x.sum().item() == 499500
    del x
    assert gone() is not None and view.sum() == 499500
    del view
    gc.collect()
    assert gone() is None


def test_strides_and_offsets():
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (a[1:], a[:, 2:], a[::2], a[:, ::3], a.T, a[2], a[:, 1], np.broadcast_to(a[0], (3, 6)), a[1:3, 4:1:-1][:, ::-1]):
        for x in (weft.from_numpy(view), weft.from_dlpack(view) if view.flags.writeable else weft.from_numpy(view)):
            same(x, view)
            same(x + 1, view + 1)
            same(weft.from_dlpack(x), view)
    a[1, 2] = -1
    assert weft.from_numpy(a[1:, 2:])[0, 0].item() == -1


def test_negative_strides_are_refused_with_the_way_out():
    a = np.arange(6, dtype=np.float32)
    refused(lambda: weft.from_numpy(a[::-1]), "stride", "weft.tensor() copies")
    refused(lambda: weft.from_dlpack(a[::-1]), "negative")
    same(weft.tensor(a[::-1]), a[::-1])


def test_memory_for_reading_is_never_written():
    a = np.arange(4, dtype=np.float32)
    a.flags.writeable = False
    for x in (weft.from_numpy(a), weft.from_dlpack(a)):
        with pytest.raises(weft.InvalidArgument):
            x += 1
        assert not x.numpy().flags.writeable
        same(x + 1, a + 1)
    assert a.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "array, word",
    [
        (np.array([None, 1], dtype=object), "Python objects"),
        (np.array([1, 2], dtype=">f4"), "other machines"),
        (np.array([1, 2], dtype=np.complex64), "astype"),
        (np.array([1, 2], dtype=np.int16), "astype"),
    ],
)
def test_arrays_that_are_no_tensors(array, word):
    refused(lambda: weft.from_numpy(array), word)
    refused(lambda: weft.tensor(array), word)


def test_an_exporter_that_is_none():
    with pytest.raises(TypeError, match="__dlpack__"):
        weft.from_dlpack([1, 2])
    capsule = weft.ones(2).__dlpack__()
    weft.from_dlpack(capsule)
    refused(lambda: weft.from_dlpack(capsule), "taken before")


def test_capsules_that_nobody_took_free_their_memory():
    class Watched(np.ndarray):
        pass

    for versioned in (None, (1, 0)):
        mine = np.zeros(3, np.float32).view(Watched)
        gone = weakref.ref(mine)
        weft.from_numpy(mine).__dlpack__(max_version=versioned)
        del mine
        gc.collect()
        assert gone() is None, versioned


def test_what_requires_a_gradient_is_detached_first():
    x = weft.ones(2, requires_grad=True)
    with pytest.raises(BufferError, match="detach"):
        memoryview(x)
    refused(lambda: x.__dlpack__(), "detach()")
    same(x.detach(), np.ones(2, np.float32))
    assert x.numpy(force=True).tolist() == [1, 1]


def test_bf16_has_no_array():
    x = weft.ones(2, dtype="bf16")
    with pytest.raises(BufferError, match="bf16"):
        x.numpy()
    assert x.numpy(force=True).dtype == np.float32
    assert weft.from_dlpack(x).dtype == weft.bf16


def test_devices_whose_memory_is_not_the_hosts():
    x = weft.tensor([1.0, 2.0], backend="opencl") if weft.is_backend_available("opencl") else weft.tensor([1.0, 2.0])
    assert (x + 1).numpy().tolist() == [2, 3]
    assert x.__dlpack_device__()[1] >= 0


def test_buffers_of_ctypes():
    import ctypes

    class Point(ctypes.Structure):
        _fields_ = [("x", ctypes.c_float)]

    right = (ctypes.c_float * 3)(1, 2, 3)
    assert weft.from_numpy(right).tolist() == [1, 2, 3]
    refused(lambda: weft.from_numpy((Point * 2)()), "can't be a tensor")


def test_numpy_leaves_operators_to_tensors():
    with pytest.raises(TypeError):
        np.ones(2, np.float32) + weft.ones(2)
    assert (np.float32(2) * weft.ones(2)).tolist() == [2, 2]
    assert np.asarray(weft.ones(2)).tolist() == [1, 1]
    assert np.array(weft.ones(2), dtype=np.float64).dtype == np.float64


def test_pickle_and_copies():
    import copy

    x = weft.tensor([[1.5, 2]], requires_grad=True)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.tolist() == x.tolist() and y.requires_grad and y.dtype == x.dtype
    y = weft.zeros(2)
    z = copy.deepcopy(y)
    z += 1
    assert y.tolist() == [0, 0] and copy.copy(y) is not None
    assert pickle.loads(pickle.dumps(weft.bf16)) == weft.bf16


TIMES = np.array(["2020-01-01", "2021-01-01"], "M8[s]")
RECORDS = np.array([(1, 2.0)], [("a", "i4"), ("b", "f4")])


@pytest.mark.parametrize(
    "data, words",
    [
        (TIMES, r"dtype datetime64\[s\] are no numbers, they are times; astype\("),
        (TIMES[0], "datetime64"),
        (TIMES - TIMES[0], "timedelta64"),
        (np.timedelta64(3, "s"), "timedelta64"),
        (RECORDS, r"records or raw bytes; take a field of them, as in array\["),
        (RECORDS.view(np.recarray), "records"),
        (np.zeros(2, "V4"), "records or raw bytes"),
        (np.array(["1", "22"]), "dtype <U2 are no numbers, they are texts; astype"),
        (np.array([b"a"]), "dtype .S1 are no numbers"),
        (np.array(["a", "b"], dtype=np.dtypes.StringDType()), "StringDType.* are no numbers"),
    ],
)
def test_arrays_of_what_is_no_number(data, words):
    for make in (weft.tensor, weft.from_numpy, lambda a: weft.ones(2).__setitem__(slice(None), a)):
        with pytest.raises(TypeError, match=words):
            make(data)
    with pytest.raises(TypeError, match="are no numbers"):
        weft.tensor([data])
    with pytest.raises(TypeError):
        weft.ones(2) + data
    assert weft.tensor(TIMES.astype("int64")).dtype == weft.i64 and weft.tensor(RECORDS["b"]).tolist() == [2]


def test_a_column_is_read_without_what_is_beside_it():
    a = np.arange(6000, dtype=np.float32).reshape(60, 100)
    same(weft.from_numpy(a[:, 7]) + 1, a[:, 7] + 1)
    same(weft.from_numpy(a[::3, 5:50:2]) + 1, a[::3, 5:50:2] + 1)
    # Memory that ends with the last element: one more byte would be another's.
    thin = np.lib.stride_tricks.as_strided(a, (2, 2), (400, 8))
    same(weft.from_numpy(thin) * 2, thin * 2)
    # Of a terabyte of addresses, three pages are there: no copy holds what is between them.
    unreserved = getattr(mmap, "MAP_NORESERVE", 0x4000)  # which Python 3.11 has no name for
    space = mmap.mmap(-1, 2**40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | unreserved)
    far = np.frombuffer(space, np.float32)[:: 2**36][:3]
    far[:] = [1, 2, 3]
    same(weft.from_numpy(far) + 1, far + 1)


def test_strides_that_no_memory_has():
    a = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (2,), (2**60,))
    for take in (weft.from_dlpack, weft.from_numpy):
        refused(lambda: take(a), "strides")
