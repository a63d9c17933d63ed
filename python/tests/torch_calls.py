"""What the tests of torch.compile share: a function compiled by Weft, and called both ways."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import weft.torch  # noqa: E402
from weft.torch import report  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(1)
    torch.set_num_threads(2)


def compiled(f, **how):
    return torch.compile(f, backend=weft.torch.backend, **how)


def same(f, *inputs, left=0, **how):
    """Both ways on copies of the inputs: results, strides, and what became of the inputs."""
    def copies():
        return [x.detach().clone(memory_format=torch.preserve_format).requires_grad_(x.requires_grad)
                if isinstance(x, torch.Tensor) and x.numel() == x.untyped_storage().nbytes() // x.itemsize else x for x in inputs]

    mine, theirs = copies(), copies()
    with report.collected() as graphs:
        function = compiled(f, **how)
        got = function(*mine)
    want = f(*theirs)
    assert left is None or sum(len(g.left) for g in graphs) == left, [g.left for g in graphs]
    equal(got, want)
    equal([x for x in mine if isinstance(x, torch.Tensor)], [x for x in theirs if isinstance(x, torch.Tensor)])
    return function, got


def equal(got, want):
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            equal(a, b)
    elif isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-6, check_stride=True, equal_nan=True)
    else:
        assert got == want and type(got) is type(want)
