"""What torch.compile(backend="weft") must keep of eager, the second part: strides, sizes that change, dtypes."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.nn import functional as F  # noqa: E402
from torch_calls import compiled, equal, fresh, same  # noqa: E402, F401
from weft.torch import report  # noqa: E402


# ---- layouts
@pytest.mark.parametrize("make", [
    lambda: torch.randn(4, 3).t(), lambda: torch.randn(6, 8)[::2, ::2], lambda: torch.randn(1, 4).expand(3, 4),
    lambda: torch.randn(3, 4, 1).permute(2, 1, 0)[0].t(), lambda: torch.randn(14)[2:].view(3, 4), lambda: torch.randn(30).as_strided((3, 4), (2, 1)),
], ids=range(6))
def test_inputs_with_strides(make):
    x = make()
    assert x.shape == (3, 4)
    same(lambda a: (a * 2, a @ a.t(), a.sum(0), a.relu() + a), x)


def test_strides_that_change_from_call_to_call():
    f = compiled(lambda a: a * 2 + a.sum(0))
    for x in (torch.randn(4, 4), torch.randn(4, 4).t(), torch.randn(8, 8)[::2, ::2], torch.randn(4, 1).expand(4, 4)):
        equal(f(x), x * 2 + x.sum(0))


def test_channels_last():
    conv = torch.nn.Conv2d(3, 8, 3, padding=1).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    with torch.no_grad():
        y = compiled(lambda x: F.relu(conv(x)))(x)
        equal(y, F.relu(conv(x)))
    assert y.is_contiguous(memory_format=torch.channels_last)


# ---- sizes
def test_dynamic_sizes():
    def f(x, y):
        return torch.cat([x.softmax(-1) @ y, x[:, : y.shape[1]] * x.shape[0]], 1), x.shape[0] + y.shape[1]

    with report.collected() as graphs:
        g = compiled(f, dynamic=True)
        for rows, inner, columns in ((3, 8, 4), (5, 8, 4), (2, 16, 8), (7, 33, 5)):
            x, y = torch.randn(rows, inner), torch.randn(inner, columns)
            equal(g(x, y), f(x, y))
    assert len(graphs) == 1, "one graph for all sizes"


def test_images_of_several_sizes():
    """Sizes that come out of one stride after another, and others than those that all rounding down makes the same."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 2, 1), torch.nn.MaxPool2d(3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(4, 5, 3, 2, 1))

    def f(x):
        y = torch.special.i0(net(x))  # PyTorch's, so what follows is a part that reads sizes of sizes, and the size itself
        return y * 2, y.sum() * y.new_ones(x.shape[2]).sum()

    with torch.no_grad(), report.collected() as graphs:
        g = compiled(f, dynamic=True)
        for size in ((2, 3, 33, 40), (2, 3, 30, 41), (5, 3, 64, 24)):
            x = torch.randn(size)
            equal(g(x), f(x))
    assert len(graphs) == 1 and not any("conv" in op for _, op, *_ in graphs[0].left)


def test_sizes_of_one_and_none_make_graphs_of_their_own():
    f = compiled(lambda x: (x * 2).sum(-1) / x.shape[-1], dynamic=True)
    for shape in ((3, 4), (1, 4), (3, 1), (0, 4), (5, 2)):
        x = torch.randn(shape)
        equal(f(x), (x * 2).sum(-1) / x.shape[-1])


def test_a_number_that_changes_is_an_input():
    f = compiled(lambda x, n: torch.arange(n, dtype=x.dtype) * x[:n] + n, dynamic=True)
    x = torch.randn(20)
    for n in (3, 7, 20):
        equal(f(x, n), torch.arange(n, dtype=x.dtype) * x[:n] + n)


def test_floats_and_sizes_among_the_results():
    f = compiled(lambda x, scale: (x * scale, x.shape[0] * 2, scale), dynamic=True)
    for n, scale in ((2, 0.5), (3, 1.5), (9, 2.5)):
        x = torch.randn(n)
        equal(f(x, scale), (x * scale, n * 2, scale))


def test_sizes_beyond_the_bounds_are_pytorchs():
    f = compiled(lambda x: x.to(torch.int8) + 1, dynamic=True)
    x = torch.zeros(3)
    f(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f(torch.zeros((1 << 20) + 5)).sum().item() == (1 << 20) + 5


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_empty(shape):
    same(lambda x: (x * 2, x.sum(), torch.cat([x, x], 0), x.reshape(-1)), torch.randn(shape))


# ---- dtypes
@pytest.mark.parametrize("a", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool])
@pytest.mark.parametrize("b", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_promotion(a, b):
    x, y = (torch.tensor([[0, 1, 3], [2, 5, 1]]).to(t) for t in (a, b))

    def f(x, y):
        return x * y, x + 1, y * 2.5, x / (y + 1), torch.where(x > y, x, y), x == y, y.sum(), x.float() + y[0, 0], torch.maximum(x, y)

    narrow = torch.uint8 in (a, b) or a == b == torch.bool  # arithmetic that Weft does not have
    same(f, x, y, left=None if narrow else 0)


def test_a_dtype_that_weft_has_not_is_pytorchs():
    x = torch.arange(4, dtype=torch.int16)
    with report.collected() as graphs:
        equal(compiled(lambda x, y: (x * 2, (y * 2).exp()))(x, torch.ones(2)), (x * 2, torch.ones(2).mul(2).exp()))
    left = [item for g in graphs for item in g.left]
    assert left and all("int16" in why for _, _, why, _ in left)


def test_complex_numbers_are_pytorchs():
    x = torch.randn(4, 8)
    f = compiled(lambda x: torch.fft.rfft(x * 2).abs() + 1)
    torch.testing.assert_close(f(x), torch.fft.rfft(x * 2).abs() + 1)
