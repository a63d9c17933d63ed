"""Tensors as Python's programs see them: making, operators, values, words."""

import copy
import copyreg
import inspect
import pickle

import numpy as np
import pytest
from conftest import refused, same

import weft


def test_making():
    assert weft.tensor([1.5, 2]).dtype == weft.f32 and weft.tensor([1, 2]).dtype == weft.i64
    assert weft.tensor(True).dtype == weft.bool and weft.tensor([]).shape == (0,)
    assert weft.tensor([[1, 2], [3, 4]], dtype="u8").tolist() == [[1, 2], [3, 4]]
    assert weft.tensor(range(3)).tolist() == [0, 1, 2]
    assert weft.tensor([weft.tensor([1.0, 2]), weft.tensor([3.0, 4])]).shape == (2, 2)
    assert weft.zeros(3).tolist() == [0, 0, 0] and weft.ones((2, 1), dtype=weft.f64).dtype == weft.f64
    assert weft.arange(3).tolist() == [0, 1, 2] and weft.arange(1, 2, 0.25).tolist() == [1, 1.25, 1.5, 1.75]
    assert weft.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert weft.tensor([2**63 - 1, -(2**63)]).tolist() == [2**63 - 1, -(2**63)]
    assert weft.tensor(2**62).item() == 2**62 and weft.tensor(2**64 - 1, dtype="u64").item() == 2**64 - 1


@pytest.mark.parametrize(
    "data, dtype, words",
    [
        ([[1, 2], [3]], None, "1 elements, and the one before it 2"),
        ([1, [2]], None, "numbers and others are lists"),
        ([300], "u8", "can't hold 300"),
        ([0.5], "i32", "can't hold 0.5"),
        ([2**70], None, "64 bits"),
        ([-1], "u64", "can't hold -1"),
    ],
)
def test_numbers_that_are_no_tensor(data, dtype, words):
    refused(lambda: weft.tensor(data, dtype=dtype), words)


def test_what_is_no_number():
    with pytest.raises(TypeError, match="must be a number, got str"):
        weft.tensor(["a"])
    with pytest.raises(TypeError, match="'f7' is no dtype; there are f64"):
        weft.tensor([1], dtype="f7")
    loop = []
    loop.append(loop)
    refused(lambda: weft.tensor(loop), "nested deeper than 8")


OPERATORS = ["a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "a ** b", "a < b", "a <= b", "a > b", "a >= b", "a == b", "a != b"]


@pytest.mark.parametrize("what", OPERATORS)
def test_operators_say_what_numpy_says(what, rng):
    a, b = (rng.integers(1, 9, (3, 4)).astype(np.float32) for _ in "ab")
    want = eval(what)
    same(eval(what, {"a": weft.tensor(a), "b": weft.tensor(b)}), want)
    same(eval(what, {"a": weft.tensor(a), "b": 3}), eval(what, {"a": a, "b": np.float32(3)}))
    same(eval(what, {"a": 3, "b": weft.tensor(b)}), eval(what, {"a": np.float32(3), "b": b}))


@pytest.mark.parametrize("what", ["a + b", "a - b", "a * b", "a // b", "a % b", "a & b", "a | b", "a ^ b", "a << b", "a >> b", "a == b"])
def test_operators_on_integers(what, rng):
    a, b = rng.integers(-40, 40, (3, 4)).astype(np.int32), rng.integers(1, 9, (3, 4)).astype(np.int32)
    same(eval(what, {"a": weft.tensor(a), "b": weft.tensor(b)}), eval(what, {"a": a, "b": b}))
    same(eval(what, {"a": weft.tensor(a), "b": 3}), eval(what, {"a": a, "b": np.int32(3)}))
    assert (weft.tensor([7]) / 2).tolist() == [3.5]
    same(~weft.tensor(a), ~a)


def test_operators_of_one_operand_and_of_bools():
    x = weft.tensor([-1.5, 2.0])
    assert (-x).tolist() == [1.5, -2] and abs(x).tolist() == [1.5, 2] and (+x).tolist() == x.tolist() and (x**2).tolist() == [2.25, 4]
    p, q = weft.tensor([True, True, False]), weft.tensor([True, False, False])
    assert (p & q).tolist() == [True, False, False] and (p | q).tolist() == [True, True, False]
    assert (p ^ q).tolist() == [False, True, False] and (~p).tolist() == [False, False, True]
    assert (weft.ones((2, 3)) @ weft.ones((3, 4))).tolist() == [[3] * 4] * 2


def test_in_place_writes_the_memory():
    x = weft.ones(3)
    y = x
    x += 1
    x *= 3
    x -= 1
    x /= 5
    assert y.tolist() == [1, 1, 1] and y is x
    leaf = weft.ones(3, requires_grad=True)

    def change():
        nonlocal leaf
        leaf += 1

    refused(change, "no_grad()")
    with weft.no_grad():
        change()
    assert leaf.tolist() == [2, 2, 2]
    z = leaf * 2
    z += 1
    z.sum().backward()
    assert z.tolist() == [5, 5, 5] and leaf.grad.tolist() == [2, 2, 2]
    small = weft.ones(3)

    def grow():
        nonlocal small
        small += weft.ones((2, 3))

    refused(grow, "f32[2, 3]", "write x = x +")


def test_values():
    x = weft.tensor([[1.0, 2], [3, 4]])
    assert (x.shape, x.ndim, x.size, x.nbytes, len(x)) == ((2, 2), 2, 4, 16, 2)
    assert x.T.tolist() == [[1, 3], [2, 4]] and x.reshape(4).tolist() == [1, 2, 3, 4] and x.reshape((1, -1)).shape == (1, 4)
    assert x.permute(1, 0).tolist() == x.T.tolist() and x.sum(0).tolist() == [4, 6] and x.mean().item() == 2.5
    assert float(weft.tensor(2)) == 2.0 and int(weft.tensor(2.7)) == 2 and [10, 20][weft.tensor(1)] == 20
    assert weft.tensor(1.5).item() == 1.5 and type(weft.tensor(1).item()) is int and weft.tensor(True).item() is True
    assert bool(weft.tensor(1)) and not weft.tensor([0.0])
    assert f"{weft.tensor(1.25):.1f}" == "1.2" and weft.tensor([0, 1]).any().item() and not weft.tensor([0, 1]).all().item()
    refused(lambda: bool(x), "one element")
    refused(lambda: x.item(), "f32[2, 2] has 4")
    assert {x: 1}[x] == 1 and (x == None) is False and (x != "a") is True  # noqa: E711


def test_words():
    assert repr(weft.tensor([[1.5, -2.0]])) == "[[ 1.5000, -2.0000]]  f32[1, 2]"
    assert repr(weft.f32) == "weft.f32" and weft.f32 == "f32" and weft.f32 == "float32" and weft.f32 != weft.f64
    assert weft.dtype_named(np.float32) == weft.dtype_named(np.dtype("float32")) == weft.f32 and hash(weft.f32) == hash("f32")


def test_ops_document_themselves():
    assert inspect.signature(weft.softmax) == inspect.signature(lambda x, axis=-1: 0)
    assert "sums to one" in weft.softmax.__doc__ and "Errors   weft.InvalidArgument" in weft.softmax.__doc__
    assert str(inspect.signature(weft.Tensor.softmax)) == "(self, /, axis=-1)" and weft.softmax.__module__ == "weft"
    for name in dir(weft):
        if type(getattr(weft, name)).__name__ == "builtin_function_or_method":
            assert inspect.signature(getattr(weft, name)), name
            assert len(getattr(weft, name).__doc__) > 20, name


def test_calls_that_do_not_fit():
    x = weft.ones(3)
    for call, words in [
        (lambda: weft.softmax(x, axs=1), "no parameter 'axs'; it has x, axis"),
        (lambda: weft.softmax(x, x=x), "'x' twice"),
        (lambda: weft.softmax(), "wants 'x'"),
        (lambda: weft.softmax(x, 1, 2), "takes 2 arguments, got 3"),
        (lambda: weft.softmax([1.0]), "'x' must be a Tensor, got list; weft.tensor() makes one"),
        (lambda: weft.softmax(x, 0.5), "axis must be an int, got float"),
        (lambda: weft.einsum(3, x), "must be str, got an int"),
        (lambda: weft.concat([1]), "wants tensors, got int"),
    ]:
        with pytest.raises(TypeError) as caught:
            call()
        assert words in str(caught.value), str(caught.value)


def test_errors_have_kinds():
    with pytest.raises(ValueError) as caught:
        weft.ones((2, 3)) @ weft.ones((2, 3))
    assert isinstance(caught.value, weft.InvalidArgument) and isinstance(caught.value, weft.Error)
    assert caught.value.code == "invalid argument" and "matmul" in str(caught.value) and "f32[2, 3]" in str(caught.value)
    with pytest.raises(NotImplementedError):
        weft.assign(weft.ones(2, requires_grad=True), weft.ones(2))
    with pytest.raises(OSError):
        weft.load_program("/nowhere/at/all.weft")
    assert issubclass(weft.OutOfMemory, MemoryError)


def test_moving():
    x = weft.ones(2)
    assert x.to("f16").dtype == weft.f16 and x.to(weft.i32).tolist() == [1, 1] and x.to("reference").backend == "reference"
    with pytest.raises(ValueError, match="nowhere"):
        x.to("nowhere")


def test_lists_of_tensors():
    a, b = weft.ones((2, 3)), weft.zeros((2, 3))
    assert weft.concat([a, b]).shape == (4, 3) and weft.stack([a, b], 1).shape == (2, 2, 3)
    assert [p.shape for p in weft.split(a, [1, 2], 1)] == [(2, 1), (2, 2)]
    assert weft.einsum("ij,kj->ik", a, a).tolist() == [[3, 3], [3, 3]]
    (clipped,), norm = weft.clip_global_norm([a], 1)
    assert abs(norm.item() - 6**0.5) < 1e-6 and abs(clipped.square().sum().item() - 1) < 1e-4


def test_stubs_say_what_the_functions_say():
    import ast
    import pathlib

    stub = pathlib.Path(weft.__file__).parent / "_weft" / "__init__.pyi"
    functions = {f.name: f for f in ast.parse(stub.read_text()).body if isinstance(f, ast.FunctionDef)}
    ops = [name for name in dir(weft) if type(getattr(weft, name)).__name__ == "builtin_function_or_method"]
    for name in ops:
        parameters = inspect.signature(getattr(weft, name)).parameters
        assert [a.arg for a in functions[name].args.args] == list(parameters), name
        assert ast.get_docstring(functions[name]).split("\n")[0] == getattr(weft, name).__doc__.split("\n")[0], name
        assert functions[name].returns is not None and all(a.annotation is not None for a in functions[name].args.args), name
    assert len(ops) >= 120


def test_any_and_all_of_no_elements():
    empty = weft.zeros((0,))
    assert not empty.any().item() and empty.all().item() and 3 not in empty and None not in weft.ones(2)
    assert weft.tensor([0, 2], dtype="u8").any().item() and not weft.tensor([0, 2], dtype="i8").all().item()
    assert weft.tensor([float("nan")]).any().item() and not weft.tensor([0.5, -0.0]).all().item()


def test_ranges():
    for args in ((5,), (2**60, 2**60 + 3), (2**53 + 1, 2**53 + 4), (5, 0, -2), (0, 7, 3), (3, 3), (-(2**63), 2**63 - 1, 2**63 - 1)):
        assert weft.arange(*args).tolist() == list(range(*args)), args
    assert weft.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75] and weft.arange(np.float32(2)).dtype == weft.f32
    assert weft.arange(0.0, 3.0, dtype="i32").tolist() == [0, 1, 2]
    refused(lambda: weft.arange(0, 3, 0.5, dtype="i64"), "i64 wants whole numbers")
    refused(lambda: weft.arange(float("nan")), "can't have nan elements")
    refused(lambda: weft.arange(0, 1, 0), "step")


def test_a_number_beside_a_mask_and_a_tensor_is_of_the_tensors_dtype():
    x = weft.tensor([1.0, 2.0, 3.0])
    assert weft.where(x > 1, x, 0).tolist() == [0, 2, 3] and weft.where(x > 1, 0.5, x).dtype == weft.f32


def test_a_list_that_changes_while_it_is_read():
    numbers = [1, 2, 3]

    class Evil:
        @property
        def tolist(self):
            numbers.clear()
            return lambda: 1

    numbers[0] = Evil()
    refused(lambda: weft.tensor(numbers), "changed its length")


class Made(weft.Tensor):
    def __init__(self):
        pass


@pytest.mark.parametrize("make", [weft.Tensor, lambda: weft.Tensor(3), lambda: weft.Tensor.__new__(weft.Tensor), lambda: Made(), lambda: Made.__new__(Made)])
def test_only_functions_make_tensors(make):
    with pytest.raises(TypeError, match=r"can't be made by its class: weft.tensor\(data\) makes"):
        make()


def test_no_other_way_makes_one():
    with pytest.raises(TypeError, match="not safe"):
        object.__new__(weft.Tensor)
    with pytest.raises(TypeError):
        copyreg.__newobj__(weft.Tensor)
    with pytest.raises(TypeError, match="layout differs|object layout"):
        weft.ones(2).__class__ = Made
    assert copy.copy(weft.ones(2)).tolist() == [1, 1] and pickle.loads(pickle.dumps(weft.ones(2))).tolist() == [1, 1]


OPERATORS = ["x + n", "n + x", "x - n", "n - x", "x * n", "x / n", "n / x", "x // n", "n // x", "x % n", "n % x", "x < n", "n <= x", "x == n", "x != n"]


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("n", [1.5, -0.75, 2.0, np.float32(2.5), np.float64(0.5)])
@pytest.mark.parametrize("dtype", ["i32", "i64", "u8", "i8", "u64", "bool"])
def test_floats_beside_integers(dtype, n):
    x = weft.tensor([1, 0, 1] if dtype == "bool" else [1, 2, 7], dtype=dtype)
    a = x.numpy().astype(np.float32)
    for how in OPERATORS:
        same(eval(how), np.asarray(eval(how, {"x": a, "n": np.float32(n)})))
    same(weft.tensor([4, 9]) ** 0.5, np.array([2, 3], np.float32))


def test_ints_beside_masks_and_what_compares_exactly():
    mask = weft.tensor([True, False])
    assert (mask + 1).tolist() == [2, 1] and (mask * 3).dtype == weft.i64 and (2 - mask).tolist() == [1, 2]
    assert (mask & True).dtype == weft.bool and (mask == True).dtype == weft.bool and (mask & np.True_).dtype == weft.bool  # noqa: E712
    assert (mask == 1).tolist() == [True, False] and (mask < 2).tolist() == [True, True] and (mask * 2.5).tolist() == [2.5, 0]
    large = weft.tensor([2**53 + 1, 2**24 + 1])
    assert (large == 2.0**53).tolist() == [False, False] and (large > 2.0**24).tolist() == [True, True]
    x = weft.tensor([1, 2])
    assert (x * 2).dtype == weft.i64 and (x < 1.5).tolist() == [True, False] and (x == float("nan")).tolist() == [False, False]
    refused(lambda: x.__iadd__(0.5), "the result is f32[2], and the tensor is i64[2]", "x = x + value")
    assert x.tolist() == [1, 2] and (x + 1.5).requires_grad is False
    y = weft.tensor([0.5, 1.0], dtype="f64")
    assert (y * 2).dtype == (y * 1.5).dtype == weft.f64
