"""What torch.compile(backend="weft") must keep of eager: memory, strides, sizes, dtypes, and what Weft does not have."""

import copy
import os
import pathlib
import subprocess
import sys
import threading
import tomllib
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import weft  # noqa: E402
import weft.torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch_calls import compiled, equal, fresh, same  # noqa: E402, F401
from weft.torch import report  # noqa: E402


# ---- memory
def in_process_of_its_own(code, *paths):
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join([*map(str, paths), *sys.path])})
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_where_it_is_installed_its_name_is_enough(tmp_path, monkeypatch):
    from torch._dynamo.backends import registry

    project = tomllib.loads((pathlib.Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "weft-0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: weft\nVersion: 0\n")
    (folder / "entry_points.txt").write_text("".join(
        f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in points.items()) for group, points in project["entry-points"].items()))
    monkeypatch.syspath_prepend(tmp_path)
    for kept in (registry._lazy_import, registry._discover_entrypoint_backends):
        kept.cache_clear()
    assert "weft" in torch._dynamo.list_backends()
    with report.collected() as graphs:
        assert torch.compile(lambda x: x * 2, backend="weft")(torch.ones(3)).tolist() == [2, 2, 2]
    assert len(graphs) == 1


def test_results_and_inputs_are_not_copied():
    """By the most memory that a process ever has: results of 128 MiB need as much, inputs of as much need nothing."""
    said = in_process_of_its_own("""
import resource, torch, weft.torch
most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
f, g = (torch.compile(h, backend=weft.torch.backend) for h in (lambda x: x.sum(1), lambda x: x.expand(1 << 20, 32) * 2))
f(torch.ones(9, 32))
x = torch.ones(1 << 20, 32)
before = most(); f(x); read = most() - before
before = most(); y = g(x[:1]); written = most() - before
assert y[-1, -1] == 2
print(read, written)
""")
    read, written = map(int, said.split())
    assert read < 64 < written < 192, said


def test_inputs_are_read_where_they_lie():
    x = torch.zeros(4)
    g = compiled(lambda a: a + 1)
    assert g(x).tolist() == [1] * 4
    x.fill_(5)
    assert g(x).tolist() == [6] * 4


def test_results_outlive_the_function():
    f = compiled(lambda a: (a.exp(), a.sum(0)))
    y, z = f(torch.zeros(3, 4))
    del f
    torch._dynamo.reset()
    assert y.sum().item() == 12 and z.shape == (4,)
    y += 1  # PyTorch may write to it
    assert y.sum().item() == 24


def test_weights_are_read_where_they_lie():
    layer = torch.nn.Linear(4, 3)
    f, x = compiled(layer), torch.randn(2, 4)
    with torch.no_grad():
        f(x)
        layer.weight.zero_()
        layer.bias.fill_(2)
        assert f(x).unique().tolist() == [2]
        layer.weight.data = torch.eye(3, 4)  # other memory
        torch.testing.assert_close(f(x), x[:, :3] + 2)


# ---- mutation and aliasing
def test_mutated_inputs():
    def f(x, y):
        x.add_(1)
        y[:, 1:3].mul_(x[:, 1:3])
        return x * y

    same(f, torch.randn(3, 5), torch.randn(3, 5))


def test_a_view_of_an_input_that_is_mutated():
    def f(x):
        y = x.view(-1)
        y[2:4] = 7
        return x + 1, y

    _, (_, y) = same(f, torch.randn(2, 3))
    assert y.shape == (6,)


def test_buffers_that_a_module_writes():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            self.seen += x.sum(0)
            return x * self.seen

    ours, theirs = Counter(), Counter()
    f = compiled(ours)
    for _ in range(3):
        x = torch.randn(2, 3)
        equal(f(x), theirs(x))
    equal(ours.seen, theirs.seen)


@pytest.mark.parametrize("f", [
    lambda x: x.t(), lambda x: x, lambda x: (x, x), lambda x: x[1:], lambda x: (x * 2).t(), lambda x: x.expand(4, *x.shape),
    lambda x: (x.exp(), x.exp().view(-1)), lambda x: x.unsqueeze(0).transpose(0, 2), lambda x: (x + 1)[:, ::2], lambda x: x.detach(),
    lambda x: torch.split(x * 2, 2, 1), lambda x: (x * 2).unbind(0), lambda x: (x + 1).diagonal(), lambda x: x.sum(0).expand(5, -1),
], ids=range(14))
def test_views_as_results(f):
    x = torch.randn(3, 6)
    function, got = same(f, x)
    flat = list(got) if isinstance(got, (list, tuple)) else [got]
    want = f(x)
    mine = function(x)
    for a, b in zip(mine if isinstance(mine, (list, tuple)) else [mine], want if isinstance(want, (list, tuple)) else [want]):
        assert (a.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()) == \
            (b.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()), "shares memory with the input, or does not"
    assert flat


def test_two_results_that_share_memory():
    def f(x):
        y = x * 2
        return y, y.view(-1)

    _, (a, b) = same(f, torch.randn(2, 3))
    a.zero_()
    assert b.tolist() == [0] * 6


def test_inputs_that_are_one_tensor():
    x = torch.randn(4)
    equal(compiled(lambda a, b: a + b)(x, x), x + x)
    equal(compiled(lambda a, b: a + b.sum())(x[1:], x[:3]), x[1:] + x[:3].sum())


# ---- what is PyTorch's
def test_graph_breaks():
    def f(x):
        y = x.relu() + 1
        torch._dynamo.graph_break()
        if y.sum().item() > 0:
            y = y * 2
        return y.exp()

    with report.collected() as graphs:
        x = torch.randn(3, 4)
        equal(compiled(f)(x), f(x))
    assert len(graphs) >= 2


def test_ops_that_weft_has_not_are_named_once():
    def f(x):
        y = torch.linalg.inv(x * 2 + torch.eye(3))
        return y.relu() + torch.linalg.inv(y)

    x = torch.randn(3, 3)
    report._said.clear()
    with pytest.warns(RuntimeWarning, match="linalg_inv") as said:
        torch.testing.assert_close(compiled(f)(x), f(x), rtol=1e-3, atol=1e-3)
    assert len([w for w in said if "weft leaves" in str(w.message)]) == 1
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(f)(x)
    told = weft.torch.explain(f, x)
    assert "linalg_inv" in str(told) and len(told.graphs) == 1


def test_random_numbers_are_pytorchs():
    torch.manual_seed(5)
    want = F.dropout(torch.ones(100), 0.5) * 2
    torch.manual_seed(5)
    equal(compiled(lambda x: F.dropout(x, 0.5) * 2)(torch.ones(100)), want)


def test_results_whose_size_depends_on_data():
    x = torch.tensor([1.0, -1, 2, 0])
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    try:
        equal(compiled(lambda x: (x * 2)[x > 0].exp())(x), (x * 2)[x > 0].exp())
    finally:
        torch._dynamo.config.capture_dynamic_output_shape_ops = False


def test_unknown_options_are_refused():
    with pytest.raises(Exception, match="knows the option 'backend', got 'speed'"):
        compiled(torch.sin, options={"speed": 1})(torch.ones(2))
    with pytest.raises(Exception, match="no backend named 'nowhere'"):
        compiled(torch.sin, options={"backend": "native,nowhere"})(torch.ones(2))
    equal(compiled(torch.sin, options={"backend": "reference"})(torch.ones(2)), torch.ones(2).sin())


def test_an_error_of_pytorchs_stays_one():
    f = compiled(lambda a, b: a @ b)
    with pytest.raises(Exception, match="size|shape"):
        f(torch.randn(2, 3), torch.randn(4, 5))


# ---- gradients
def test_gradients_through_what_is_left_to_pytorch():
    def f(x, w):
        return (torch.linalg.inv(x @ w + 4 * torch.eye(3)).tanh() ** 2).sum()

    x, w = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
    f(x, w).backward()
    want = x.grad.clone(), w.grad.clone()
    x.grad = w.grad = None
    compiled(f)(x, w).backward()
    torch.testing.assert_close((x.grad, w.grad), want, rtol=1e-4, atol=1e-5)


def test_gradients_of_views_and_of_inputs_that_are_written():
    def f(x, b):
        b.add_(1)
        y = x.t()[1:] * b
        y[0] = 0
        return y.reshape(-1).cumsum(0), y.sum()

    x, b = torch.randn(3, 4, requires_grad=True), torch.randn(3)
    out = f(x, b.clone())
    (out[0].sum() + out[1]).backward()
    want, x.grad = x.grad, None
    out = compiled(f)(x, b.clone())
    (out[0].sum() + out[1]).backward()
    torch.testing.assert_close(x.grad, want)


def test_second_call_with_gradients_after_one_without():
    layer = torch.nn.Linear(3, 2)
    f, x = compiled(layer), torch.randn(4, 3)
    with torch.no_grad():
        assert not f(x).requires_grad
    y = f(x)
    y.sum().backward()
    torch.testing.assert_close(layer.weight.grad, x.sum(0).expand(2, -1))


def test_gradients_of_batches_that_change():
    """A norm over a batch divides by the batch's size, which is a number that is not whole."""
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(48, 2))
    ours = copy.deepcopy(net)
    x = torch.randn(4, 2, 6, 6)
    torch._dynamo.mark_dynamic(x, 0)
    with report.collected() as graphs:
        f = compiled(ours)
        for inputs in (x, torch.randn(7, 2, 6, 6), torch.randn(3, 2, 6, 6)):
            for model, function in ((ours, f), (net, net)):
                model.zero_grad()
                function(inputs).square().mean().backward()
            for a, b in zip(ours.parameters(), net.parameters()):
                torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)
            equal(list(ours.buffers()), list(net.buffers()))
    assert len(graphs) == 2 and [item for g in graphs for item in g.left] == []


# ---- threads
def test_threads_share_a_compiled_function():
    f = compiled(lambda x: (x @ x.t()).softmax(-1))
    x = torch.randn(32, 32)
    want = f(x)
    wrong = []

    def run():
        for _ in range(50):
            if not torch.equal(f(x), want):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---- lines
def rows_of(table, ids):
    scaled = table * 2
    return F.embedding(ids, scaled).sigmoid() + 1


def test_a_node_that_fails_says_its_line():
    f = compiled(rows_of)
    f(torch.ones(4, 3), torch.tensor([1, 2]))
    with pytest.raises(weft.IndexOutOfRange) as caught:
        f(torch.ones(4, 3), torch.tensor([1, 9]))
    line = rows_of.__code__.co_firstlineno + 2
    assert f", from {__file__}:{line})" in str(caught.value), str(caught.value)


def test_what_is_left_says_its_line():
    def f(x):
        return torch.linalg.inv_ex(x).inverse + 1

    said = str(weft.torch.explain(f, torch.eye(3)))
    assert f", from {__file__}:{f.__code__.co_firstlineno + 1}: aten.linalg_inv_ex" in said, said
