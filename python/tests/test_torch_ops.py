"""Ops whose import was wrong, refused for no reason, or told another way than PyTorch tells it."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import weft.torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from weft.torch import report  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(1)


def agrees(f, *inputs, gradient=False, left=()):
    """All of it by Weft but for the ops `left`, with eager's results; and their gradients."""
    ours, theirs = ([x.clone().requires_grad_(gradient and x.is_floating_point()) for x in inputs] for _ in range(2))
    with report.collected() as graphs:
        got = torch.compile(f, backend=weft.torch.backend)(*ours)
        if gradient:
            got.square().sum().backward()
    want = f(*theirs)
    assert [item for g in graphs for item in g.left if item[1] not in left] == []
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5, equal_nan=True)
    if gradient:
        want.square().sum().backward()
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_integer_division_at_the_ends_of_the_range(dtype):
    ends = torch.iinfo(dtype)
    x = torch.tensor([ends.min, ends.min + 1, -4, -3, -1, 0, 1, 3, 7, ends.max - 1, ends.max], dtype=dtype)
    for y in (3, -3, 2, torch.full_like(x, -7), torch.full_like(x, ends.max), torch.full_like(x, ends.min)):
        torch._dynamo.reset()  # or the number becomes a symbol
        agrees(lambda x: (x // y, torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y), x % y), x)


def test_an_integer_divided_by_zero():
    x, zero = torch.tensor([3, -3]), torch.tensor([0, 0])
    by = (lambda x, y: x // y, lambda x, y: x % y, torch.fmod, lambda x, y: torch.div(x, y, rounding_mode="trunc"))
    for f, want in zip(by, ([0, 0], [0, 0], [3, -3], [0, 0])):
        torch._dynamo.reset()
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            torch.compile(lambda x: f(x, 0), backend=weft.torch.backend)(x)
        assert torch.compile(f, backend=weft.torch.backend)(x, zero).tolist() == want  # docs/pytorch.md says so
    agrees(lambda x: (x.double() // 0, x.double() % 0), x)


@pytest.mark.parametrize("dtype, most", [(torch.float32, 9.1), (torch.float64, 26.0)])
def test_tails_keep_their_digits(dtype, most):
    eps = torch.finfo(dtype).eps
    x = torch.cat([torch.linspace(-7, most, 3001, dtype=dtype), torch.tensor([0.46875, 4.0, 0.0, -0.0], dtype=dtype)])
    got, want = torch.compile(torch.erfc, backend=weft.torch.backend)(x), torch.erfc(x)
    assert ((got - want).abs() <= 8 * eps * want).all()
    ends = torch.tensor([float("nan"), float("inf"), -float("inf"), 40.0], dtype=dtype)
    agrees(torch.erfc, ends)
    z = torch.linspace(-20, 8, 57, dtype=dtype)
    torch.testing.assert_close(torch.compile(torch.special.log_ndtr, backend=weft.torch.backend)(z), torch.special.log_ndtr(z), rtol=60 * eps, atol=0)


def test_acosh_below_one_is_not_a_number():
    agrees(torch.acosh, torch.tensor([-5000.0, -1e30, -1.0, -0.5, 0.5, 1.0, 1.0001, 3.0, 1e12, float("inf"), -float("inf"), float("nan")]))


def test_no_axis_to_flip_is_none():
    agrees(lambda x: torch.flip(x, ()) + 0, torch.randn(2, 3))


def test_linspace_in_integers_rounds_its_ends_first():
    agrees(lambda end: torch.linspace(4.3, end, 7, dtype=torch.int32), torch.tensor(-2.6), left=["aten.linspace.Scalar_Tensor"])


def test_linspace_of_one_step_is_its_start():
    agrees(lambda x: x + torch.linspace(4.0, 9.0, 1) + torch.linspace(1.0, 2.0, 3), torch.zeros(3))


def test_the_threshold_of_softplus():
    x = torch.linspace(-3, 3, 13)
    agrees(lambda x: F.softplus(x, 3, 0.2), x)
    agrees(lambda x: F.softplus(x), x * 20)
    agrees(lambda x: F.softplus(x), x.double() * 20)


def test_ranges_of_integers_are_counted_in_integers():
    agrees(lambda x: x + torch.arange(0.1, -7.9, -4.0, dtype=torch.int64), torch.zeros(2, dtype=torch.int64))


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_a_whole_number_by_a_half_is_a_half(half):
    agrees(lambda x, y: (x / y, y / x, x / 3, x.div(y, rounding_mode="floor")), torch.tensor([7, 2, 9]), torch.tensor([2, 4, 5], dtype=half))


def test_one_result_of_two():
    x = torch.randn(4, 6)
    agrees(lambda x: (x.max(1).values, x.min(0).indices, x.sort(1).values, x.topk(2).indices), x)
    agrees(lambda x: F.layer_norm(x, (6,)), x)
    agrees(lambda x: torch.split(x, 2, 1)[1] * 2, x)


def test_positions_that_a_pool_picks():
    x = torch.randn(2, 3, 9, 8)
    agrees(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), x)
    agrees(lambda x: F.max_pool2d(x, (2, 3), return_indices=True), x.round())  # the first of equal ones


@pytest.mark.parametrize("how", [
    dict(stride=2, padding=1), dict(dilation=2), dict(groups=2), dict(padding="same"), dict(stride=(2, 1), padding=(0, 2), groups=2),
], ids=str)
def test_gradients_of_convolutions(how):
    groups = how.get("groups", 1)
    agrees(lambda x, w, b: F.conv2d(x, w, b, **how), torch.randn(2, 4, 7, 8), torch.randn(6, 4 // groups, 3, 3), torch.randn(6), gradient=True)


def test_gradients_of_other_convolutions():
    agrees(lambda x, w: F.conv1d(x, w, stride=3), torch.randn(2, 3, 11), torch.randn(4, 3, 2), gradient=True)
    agrees(lambda x, w: F.conv3d(x, w, padding=1), torch.randn(1, 2, 4, 3, 5), torch.randn(3, 2, 2, 2, 2), gradient=True)
    agrees(lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, output_padding=1), torch.randn(1, 3, 4, 4), torch.randn(3, 2, 3, 3),
           torch.randn(2), gradient=True)


@pytest.mark.parametrize("pool", [
    lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 2), lambda x: F.avg_pool2d(x, 3, 2, 1),
    lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), lambda x: F.avg_pool2d(x, 2, divisor_override=3),
    lambda x: F.adaptive_avg_pool2d(x, (2, 4)), lambda x: F.adaptive_avg_pool2d(x, 1), lambda x: F.max_pool2d(x, 2, dilation=2),
], ids=range(8))
def test_gradients_of_pools(pool):
    agrees(pool, torch.randn(2, 3, 8, 8), gradient=True)


@pytest.mark.parametrize("scale", [0.3, 0.0])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_attention(causal, masked, scale):
    if causal and masked:
        pytest.skip("PyTorch takes one of them")
    if causal and scale == 0:
        pytest.skip("PyTorch's own result is NaN: 0 times the -inf of its mask")
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5 if causal else 7, 8), torch.randn(2, 3, 5 if causal else 7, 8)
    mask = torch.rand(2, 1, 5, 7) > 0.3 if masked else None
    agrees(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale), q, k, v, gradient=True)


def test_gradients_that_decompositions_write():
    x = torch.randn(4, 6)
    agrees(lambda x: F.group_norm(x.view(2, 4, 3), 2).view(4, 6), x, gradient=True)
    agrees(lambda x: torch.cat([F.gelu(x), F.silu(x), F.elu(x), F.hardswish(x), F.log_softmax(x, 1)], 1), x, gradient=True)
    agrees(lambda x: F.embedding(torch.tensor([1, 1, 3]), x), x, gradient=True)
    agrees(lambda x: x[[0, 2, 2]].cumsum(0) + x.gather(1, torch.tensor([[1, 1, 0, 5, 5, 2]] * 4))[:3], x, gradient=True)


def test_products_of_all_kinds():
    a, b, v = torch.randn(3, 4), torch.randn(4, 5), torch.randn(4)
    agrees(lambda a, b, v: (a @ b, torch.mm(a, b), a @ v, v @ b, torch.dot(v, v), torch.bmm(a[None], b[None]), torch.addmm(v[:1], a, b)), a, b, v)


def test_logspace_in_16_bits_rounds_its_ends_first():
    agrees(lambda end: torch.logspace(4.3, end, 4, dtype=torch.bfloat16), torch.tensor(-3.0), left=["aten.logspace.Scalar_Tensor"])
