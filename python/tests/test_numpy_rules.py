"""Operators beside NumPy's: division, vectors, masks, arrays of other libraries."""

import threading

import numpy as np
import pytest
import weft


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_floor_division_of_floats_goes_with_the_remainder(dtype):
    kind = {"f32": np.float32, "f64": np.float64}[dtype]
    a = np.array([1.0, -0.3, 7.5, -7.5, 0.0, 5.0, -5.0, np.inf, 3.0, -3.0, 2.0], kind)
    b = np.array([0.1, 0.1, 2.0, 2.0, 3.0, 0.0, 0.0, 2.0, np.inf, np.inf, -np.inf], kind)
    with np.errstate(all="ignore"):
        wanted = a // b
    got = (weft.from_numpy(a) // weft.from_numpy(b)).numpy()
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype, kind", [("i32", np.int32), ("i64", np.int64)])
@pytest.mark.parametrize("divisor", [3, -3, 2, -2, 1, 7])
def test_floor_division_of_integers_at_the_ends_of_their_range(dtype, kind, divisor):
    ends = np.iinfo(kind)
    a = np.array([ends.min, ends.min + 1, -1, 0, 1, ends.max - 1, ends.max], kind)
    np.testing.assert_array_equal((weft.from_numpy(a) // divisor).numpy(), a // kind(divisor))


def test_products_of_vectors():
    rng = np.random.default_rng(1)
    m, t = rng.standard_normal((3, 4), np.float32), rng.standard_normal((2, 4, 3), np.float32)
    v, u = rng.standard_normal(4, np.float32), rng.standard_normal(4, np.float32)
    for a, b in [(m, v), (v, m.T.copy()), (v, u), (t, u[:3].copy()), (v, t)]:
        got = weft.from_numpy(a) @ weft.from_numpy(b)
        assert tuple(got.shape) == (a @ b).shape
        np.testing.assert_allclose(got.numpy(), a @ b, rtol=1e-5, atol=1e-5)


def test_numbers_of_where_keep_their_dtypes():
    mask = weft.tensor([True, False])
    assert weft.where(mask, 2.5, 0.0).numpy().tolist() == [2.5, 0.0]
    assert weft.where(mask, 2, 3).numpy().tolist() == [2, 3]
    assert weft.where(mask, 2, 3).dtype == weft.i64
    assert weft.where(mask, True, False).dtype == weft.bool
    assert weft.where(mask, weft.tensor([1, 2], dtype="i32"), 0).dtype == weft.i32


def test_how_many_are_true():
    x = weft.tensor([[True, False, True], [True, True, True]])
    assert x.sum().item() == 5
    assert x.mean(axis=1).tolist() == pytest.approx([2 / 3, 1]) and x.mean().dtype == weft.f32
    assert x.sum(axis=1).numpy().tolist() == [2, 3]
    assert np.sum(weft.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0).numpy().tolist() == [4.0, 6.0]
    assert tuple(x.sum(axis=1, keepdims=True).shape) == (2, 1)
    with pytest.raises(TypeError, match="no parameter 'axes'"):
        weft.softmax(weft.tensor([1.0]), axes=0)


def test_pytorch_s_names_of_axes():
    x = weft.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert x.sum(dim=1).tolist() == [3, 8] and x.mean(dim=(0, 1), keepdim=True).shape == (1, 1)
    assert weft.max(x, dim=0, keepdim=True).tolist() == [[3, 5]] and x.argmax(dim=0).tolist() == [1, 1]
    assert x.softmax(dim=0).tolist() == x.softmax(axis=0).tolist() != x.softmax(axis=1).tolist()
    assert weft.rope_tables(weft.tensor([0], dtype="i32"), dim=4)[0].shape[-1] == 2  # where it is a parameter, it means that
    with pytest.raises(TypeError, match="'dim' twice"):
        x.softmax(1, dim=0)
    with pytest.raises(TypeError, match="no parameter 'dim'"):
        x.exp(dim=0)


def test_powers_of_integers():
    x = weft.tensor([-3, 0, 5], dtype="i32")
    assert (x**3).numpy().tolist() == [-27, 0, 125]
    assert (x**3).dtype == weft.i32
    assert (x**1).numpy().tolist() == [-3, 0, 5]


@pytest.mark.parametrize("how", ["__eq__", "__ne__", "__lt__", "__add__", "__truediv__", "__matmul__"])
def test_an_array_beside_a_tensor_says_what_to_do(how):
    import operator

    function = getattr(operator, how)
    x, a = weft.tensor([1.0, 2.0]), np.ones(2, np.float32)
    for left, right in [(x, a), (a, x)]:
        with pytest.raises(TypeError, match=r"weft.Tensor and a numpy.ndarray: weft.from_dlpack\(x\)"):
            function(left, right)
    assert (x == None) is False  # noqa: E711 - objects that are no arrays compare as objects
    assert (x != "two") is True


def test_two_threads_take_a_capsule_once():
    for _ in range(200):
        capsule, taken, refused = np.zeros(64, np.float32).__dlpack__(), [], []
        begin = threading.Barrier(2)

        def take():
            begin.wait()
            try:
                taken.append(weft.from_dlpack(capsule))
            except weft.InvalidArgument:
                refused.append(1)

        threads = [threading.Thread(target=take) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert (len(taken), len(refused)) == (1, 1)
        assert taken[0].numpy().sum() == 0


def test_a_refused_capsule_is_its_exporters_again():
    capsule = np.zeros(4, np.complex64).__dlpack__()
    for _ in range(2):
        with pytest.raises(weft.InvalidArgument, match="no dtype"):
            weft.from_dlpack(capsule)


def test_threads_are_counted_in_bounds():
    before = weft.thread_count()
    for wrong in (-1, 10**9):
        with pytest.raises(weft.InvalidArgument, match="1024"):
            weft.set_thread_count(wrong)
    assert weft.thread_count() == before


def test_names_of_the_package():
    assert weft.__version__.count(".") == 2
    assert "bool" not in weft.__all__ and "softmax" in weft.__all__
    assert {"bool", "abs", "softmax", "lab"} <= set(dir(weft))
    assert not {"compiled", "gradients", "TYPE_CHECKING"} & set(dir(weft))


@pytest.mark.parametrize("dtype, kind", [("i32", np.int32), ("i64", np.int64)])
def test_powers_of_integers_to_powers_of_tensors(dtype, kind):
    for base, power in [([2, -2, 3, 0, 0, 1, -1, -1], [5, 5, 19, 0, 70, 99, 64, 127]), ([2, 3, 7, 10], [30, 19, 11, 9])]:
        b, p = np.array(base, kind), np.array(power, kind)
        got = (weft.tensor(b) ** weft.tensor(p)).numpy()
        assert got.dtype == kind
        np.testing.assert_array_equal(got, b**p)
    x = weft.tensor([0, 1, 10], dtype=dtype)
    assert (2**x).tolist() == [1, 2, 1024]
    assert (x**0).tolist() == [1, 1, 1]
    # Below 0 as integers divide: only 1 and -1 have a power that is whole.
    least = np.iinfo(kind).min
    assert (weft.tensor([2, 1, -1, -1, 0, np.iinfo(kind).max], dtype=dtype) ** weft.tensor([-1, -3, -3, -2, -1, -2], dtype=dtype)).tolist() == [
        0, 1, -1, 1, 0, 0]
    assert (weft.tensor([2, -1, 1], dtype=dtype) ** weft.tensor([least] * 3, dtype=dtype)).tolist() == [0, 1, 1]
    assert (weft.tensor([2, 3], dtype="u32") ** weft.tensor([31, 20], dtype="u32")).tolist() == [2**31, 3**20]


def test_an_axis_that_is_none_is_no_axis():
    x = weft.tensor([[1.0, 2.0]])
    with pytest.raises(TypeError, match="axis must be an int, got None; left out, it is -1"):
        weft.softmax(x, axis=None)
    assert x.sum(axes=None).item() == 3


def test_shifts_beyond_the_bits_leave_the_sign():
    x = weft.tensor([1, -1])
    for n in (64, 70, -1):
        assert (x << n).tolist() == [0, 0] and (x >> n).tolist() == [0, -1]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floor_division_of_floats_of_all_sizes(kind, rng):
    n = 20000
    a, b = (rng.standard_normal(n) * 10.0 ** rng.integers(-e, e, n) for e in (30, 5))
    tenths = [rng.integers(-50, 50, n) / 10 for _ in "ab"]
    for x, y in ((a, b), tenths, ([3.3e38, 1e-20, -1e-20, -0.0], [-2e38, 1, 1, -1])):
        x, y = np.array(x, kind), np.array(y, kind)
        with np.errstate(all="ignore"):
            wanted = x // y
        np.testing.assert_array_equal((weft.from_numpy(x) // weft.from_numpy(y)).numpy(), wanted)
