"""Errors that are raised far from where an op was called say the line of the call."""

import inspect
import threading

import pytest
from conftest import refused

import weft
from weft import nn


def line(function, text):
    """FILE:LINE of the one line of a function that has this text."""
    lines, first = inspect.getsourcelines(function)
    (place,) = [i for i, words in enumerate(lines) if text in words]
    return f"{inspect.getsourcefile(function)}:{first + place}"


def ids(*numbers):
    return weft.tensor(list(numbers), dtype="i64")


def two_tables(x, i, j):
    first = weft.embedding(x, i)
    second = weft.embedding(x.exp(), j)
    return first + second


def test_a_node_that_fails_says_its_line():
    f = weft.compile(two_tables)
    x = weft.ones((4, 3))
    for _ in range(3):  # later runs take other ways through the schedule
        f(x, ids(0, 3), ids(1, 2))
        refused(lambda: f(x, ids(0, 9), ids(1, 2)), 'embedding"', f", from {line(two_tables, 'first = ')})", "index 9")
        refused(lambda: f(x, ids(0, 3), ids(7, 2)), f", from {line(two_tables, 'second = ')})", "index 7")


def test_a_refused_node_says_its_line():
    def f(x):
        y = x * 2
        return weft.adaptive_avg_pool(y, [2])

    with weft.Policy(decompose=False):  # which has no kernel of its own
        refused(lambda: weft.compile(f)(weft.ones((1, 2, 6))), 'node "adaptive_avg_pool"', f", from {line(f, 'return weft.adaptive')}\n")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 4)
        self.rest = nn.Sequential(nn.Linear(4, 4), weft.relu)

    def forward(self, i):
        x = self.table(i)
        return self.rest(x)


def test_layers_are_called_from_the_users_line():
    f = weft.compile(Net().build())
    with weft.no_grad():
        f(ids(1, 2))
        refused(lambda: f(ids(1, 12)), 'node "table.embedding"', f"from {line(Net.forward, 'x = self.table')}")


def test_the_package_s_own_lines_are_passed_over():
    """nn.Sequential is Python, too: the line is that which calls it."""
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)).build()

    def f(i):
        return model(i)

    compiled = weft.compile(f)
    with weft.no_grad():
        compiled(ids(1))
        refused(lambda: compiled(ids(8)), f"from {line(f, 'model(i)')}")


def test_gradients_in_a_program_are_from_the_line_of_the_op():
    table = weft.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def step(i, j):
        picked = weft.gather(table.exp(), i, axis=0)
        picked.sum().backward()
        grad = table.grad
        table.grad = None
        return weft.gather(grad, j, axis=0)

    f = weft.compile(step, fuse=False)
    f(ids(0, 1), ids(0))
    refused(lambda: f(ids(0, 1), ids(5)), f"from {line(step, 'return weft.gather')}")
    refused(lambda: f(ids(0, 4), ids(0)), f"from {line(step, 'picked = ')}")


def test_backward_says_the_line_of_the_op():
    x = weft.tensor([1.0, 2.0], requires_grad=True)

    def forward():
        y = x * 3
        z = y.exp()
        return z.sum()

    total = forward()
    total.backward()
    refused(total.backward, "earlier backward()", "\n  in the gradient of sum, called from " + line(forward, "z.sum()"))

    w = weft.tensor([1.0, 2.0], requires_grad=True)

    def squared():
        return (w * w).sum()

    made = squared()
    with weft.no_grad():
        w += 1
    refused(made.backward, "overwritten in place", "in the gradient of mul, called from " + line(squared, "w * w"))


def test_backward_of_large_tensors_and_of_other_threads():
    x = weft.ones(5000)
    x.requires_grad_()
    said = []

    def work():
        y = x * 3
        y = y.sum()
        y.backward()
        try:
            y.backward()
        except weft.Error as e:
            said.append(str(e))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(said) == 4 and all("called from " + line(work, "y = y.sum()") in s for s in said), said


def test_a_part_that_runs_again_keeps_its_lines():
    x = weft.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    rows = [ids(0, 1)]

    def part(x):
        return weft.embedding(x, rows[0])

    y = weft.recompute(part, x).sum()
    rows[0] = ids(0, 6)
    with pytest.raises(weft.Error) as caught:
        y.backward()
    assert "index 6" in str(caught.value)
    assert any(frame.name == "part" for frame in caught.traceback), "Python's own traceback has the line"


def test_the_program_is_the_same_from_any_line(tmp_path):
    source = "def f(x):\n    return (x * 2).exp().sum()\n"
    made = []
    for i, blank in enumerate(("", "\n\n\n")):
        space = {}
        exec(compile(blank + source, f"/some/where/model{i}.py", "exec"), space)
        f = weft.compile(space["f"])
        f(weft.ones(3))
        f.program.save(str(tmp_path / "model.weft"))
        made.append((tmp_path / "model.weft").read_bytes())
        assert "model" not in f.program.text() and "/some/where" not in f.program.schedule_text()
    assert made[0] == made[1]
