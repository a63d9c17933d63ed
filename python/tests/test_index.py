"""x[...] and x[...] = y say what NumPy says."""

import random

import numpy as np
import pytest
from conftest import refused, same

import weft

CASES = [
    "0", "-1", "1:3", "::2", "::-1", "3:0:-2", "...", "None", "1, 2", "1, :, -1", "..., 0", "0, ...", ":, None, 1", "None, ..., None",
    "5:2", "-3:", ":, ::-1", "[0, 2]", "[-1, 0, 0]", "[[0, 1], [2, 3]]", "[]", "[0, 1], [1, 2]", ":, [0, 1]", ":, [0, 1], [2, 3]",
    "[0, 1], :, [2, 3]", "0, :, [1, 2]", "0, [1, 2]", "[[0], [1]], [[1, 2, 0]]", "None, [0, 1]", "[0, 1], None, 1", "1:, [0, 2], ::2",
    "(0, 1),", "np.array([1, 0])", "np.int64(1)", "np.array(2)", "m", "m0", "m0, 1", ":, m1", "m0, m0[:3]", "~m", "m & m",
]


def masks(x):
    return {"np": np, "m": x > 0, "m0": x[:, 0, 0] > 0, "m1": x[0, :, 0] > -0.5}


def key_of(case, names):
    return eval(f"np.index_exp[{case}]", names)  # noqa: S307


@pytest.mark.parametrize("case", [c for c in CASES if "m0[:3]" not in c])
def test_what_numpy_picks(case, rng):
    x = rng.standard_normal((4, 3, 5)).astype(np.float32)
    key = key_of(case, masks(x))
    same(weft.tensor(x)[key], x[key])
    tensors = tuple(weft.tensor(k) if isinstance(k, np.ndarray) and k.ndim else k for k in key)
    same(weft.tensor(x)[tensors], x[key])


@pytest.mark.parametrize("case", [c for c in CASES if "m0[:3]" not in c])
def test_what_numpy_writes(case, rng):
    x = rng.standard_normal((4, 3, 5)).astype(np.float32)
    key = key_of(case, masks(x))
    t = weft.tensor(x)
    y = x.copy()
    value = rng.standard_normal(x[key].shape).astype(np.float32)
    value = np.sort(value, axis=None).reshape(value.shape) if "-1, 0, 0" not in case else np.broadcast_to(value[:1], value.shape)
    if "0, 0" not in case:
        t[key], y[key] = weft.tensor(value), value
        same(t, y)
    t[key], y[key] = 2, 2
    same(t, y)


def test_random_indices(rng):
    random.seed(3)
    x = rng.standard_normal((4, 3, 5, 2)).astype(np.float32)
    t = weft.tensor(x)

    def part(n):
        kind = random.choice(["number", "slice", "slice", "list", "none", "mask"])
        if kind == "number":
            return random.randrange(-n, n)
        if kind == "slice":
            bounds = [random.choice([None, random.randrange(-n - 2, n + 2)]) for _ in "ab"]
            return slice(*bounds, random.choice([None, 1, 2, -1, -2]))
        if kind == "list":
            return [random.randrange(-n, n) for _ in range(3)]
        if kind == "mask":
            mask = [True] * min(3, n) + [False] * (n - min(3, n))
            return mask if sum(mask) == 3 else slice(None)
        return None

    for _ in range(200):
        key = tuple(part(n) for n in x.shape[: random.randrange(1, 5)])
        wanted = None
        taken = [k for k in key if k is not None]
        # An axis for each part that takes one.
        key = tuple(key)
        try:
            wanted = x[key]
        except IndexError:
            with pytest.raises(IndexError):
                t[key]
            continue
        assert len(taken) <= 4
        same(t[key], wanted)


def test_gradients_go_back_through_an_index():
    x = weft.tensor([[1.0, 2, 3], [4, 5, 6]], requires_grad=True)
    (x[:, [0, 0, 2]] * weft.tensor([1.0, 10, 100])).sum().backward()
    assert x.grad.tolist() == [[11, 0, 100], [11, 0, 100]]


def test_rows_and_length():
    x = weft.arange(6).reshape(3, 2)
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert [row.tolist() for row in reversed(x)] == [[4, 5], [2, 3], [0, 1]]
    assert list(reversed(weft.ones((0, 2)))) == []
    with pytest.raises(TypeError, match="rank 0 has no length"):
        reversed(weft.tensor(1.0))
    assert 4 in x and 9 not in x
    with pytest.raises(TypeError, match="rank 0"):
        len(weft.tensor(1))
    with pytest.raises(TypeError, match="rank 0"):
        iter(weft.tensor(1))


@pytest.mark.parametrize(
    "key, words",
    [
        ((4,), "index 4 is outside of axis 0"),
        ((0, 0, 0), "too many indices"),
        ((..., ...), "one '...'"),
        (([0, 7],), "index 7 is outside of axis 0"),
        ((np.array([0.5]),), "integers or bools"),
        ((np.array([True, False]),), "a mask bool[2] does not fit"),
        ((True,), "True and False"),
        (("a",), "str is no index"),
    ],
)
def test_what_is_no_index(key, words):
    with pytest.raises(IndexError) as caught:
        weft.zeros((3, 4))[key]
    assert words in str(caught.value), str(caught.value)


def test_a_step_of_zero():
    with pytest.raises(ValueError, match="step"):
        weft.zeros(3)[::0]


def test_lists_of_other_lengths():
    with pytest.raises(weft.InvalidArgument):
        weft.zeros((3, 4))[[0, 1], [0, 1, 2]]


def test_what_a_gradient_may_need_is_not_overwritten():
    x = weft.zeros(3, requires_grad=True)
    refused(lambda: x.__setitem__(0, 1), "no_grad()")
    with weft.no_grad():
        x[0] = 1
    assert x.tolist() == [1, 0, 0]


def test_dots_that_stand_for_no_axis_keep_lists_apart():
    x = np.arange(6, dtype=np.float32).reshape(2, 3, 1)
    for key in ((slice(None), [1, 2], ..., 0), (None, [1, 0], ..., [[1], [2]], 0)):
        same(weft.tensor(x)[key], x[key])


@pytest.mark.parametrize("backend", ["native", "openmp", "reference"])
def test_tensors_of_numbers_outside_of_an_axis(backend):
    with weft.on_backend(backend):
        x, three = weft.arange(12).reshape(3, 4), weft.tensor([0, 3])
        for key, words in [
            (three, r"index 3 is outside of axis 0 of i64\[3, 4\]: it must be in \[-3, 3\)"),
            (weft.tensor([-4], dtype="i32"), "index -4 is outside of axis 0"),
            (weft.tensor(7), "index 7 is outside of axis 0"),
            ((slice(None), weft.tensor([-5])), r"index -5 is outside of axis 1 of i64\[3, 4\]: it must be in \[-4, 4\)"),
            ((three, weft.tensor([1, 1])), "index 3 is outside of axis 0"),
            ((weft.tensor([1, 1]), weft.tensor([0, 4])), "index 4 is outside of axis 1"),
            ((1, weft.tensor([9])), "index 9 is outside of axis 1"),
            ((weft.tensor(0), weft.tensor(4)), "index 4 is outside of axis 1"),
            ((weft.tensor([0]), None, weft.tensor([5])), "index 5 is outside of axis 1"),
            ((None, ..., weft.tensor([9])), "index 9 is outside of axis 1"),
        ]:
            with pytest.raises(IndexError, match=words):
                x[key]
            with pytest.raises(IndexError, match=words):
                x[key] = 0
        assert x.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


class Foreign:
    """As PyTorch's tensors: neither a sequence nor a buffer, and an int where it has one element."""

    def __init__(self, array):
        self.array = array

    def __index__(self):
        return self.array.__index__()

    def __dlpack__(self, **how):
        return self.array.__dlpack__()


@pytest.mark.parametrize("key", [np.array([2, 0]), np.array([[1], [-1]]), np.array([True, False, True]), np.array(1)])
def test_tensors_of_other_libraries_are_indices(key):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    t = weft.tensor(x)
    same(t[Foreign(key)], x[key])
    x[key], t[Foreign(key)] = 7, 7
    same(t, x)


def test_an_index_documents_itself():
    assert weft.Tensor.__getitem__.__doc__.startswith("x[key], as in NumPy")
    assert weft.Tensor.__getitem__(weft.tensor([1, 2]), 1).item() == 2


@pytest.mark.parametrize("backend", ["native", "openmp", "reference"])
def test_what_a_kernel_says_of_an_index_is_an_index_error(backend):
    with weft.on_backend(backend):
        for pick in (
            lambda at: weft.gather(weft.ones((3, 4)), at, 0),
            lambda at: weft.embedding(weft.ones((3, 4)), at),
            lambda at: weft.scatter(weft.ones((3, 4)), at, weft.ones((1, 4))),
        ):
            with pytest.raises(IndexError, match="index 7 outside") as caught:
                pick(weft.tensor([7]))
            assert isinstance(caught.value, weft.DeviceError) and caught.value.code == "device error"
