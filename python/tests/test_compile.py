"""weft.compile(): a program does what the function does, or says that it can't."""

import gc
import subprocess
import sys
import threading
import warnings
from collections import namedtuple

import numpy as np
import pytest
from conftest import refused, same

import weft
from weft import nn


def test_a_program_says_what_the_function_says(rng):
    def function(x, pair, scale=2, *, table):
        total = x @ pair[0] * scale
        return {"total": total, "all": [total.softmax(1), (table["a"], pair[1])], "note": "text"}

    x, y, z, a = (weft.tensor(rng.standard_normal((4, 4)).astype(np.float32)) for _ in range(4))
    compiled = weft.compile(function)
    for scale in (2, 3, 2.5):
        want, got = function(x, (y, z), scale, table={"a": a}), compiled(x, (y, z), scale, table={"a": a})
        np.testing.assert_allclose(got["total"].numpy(), want["total"].numpy(), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got["all"][0].numpy(), want["all"][0].numpy(), rtol=1e-5, atol=1e-5)
        same(got["all"][1][0], a.numpy())
        same(got["all"][1][1], z.numpy())
        assert got["note"] == "text" and list(got) == list(want)
    assert "3 programs" in repr(compiled) and compiled.__name__ == "function"
    assert "pair.0" in compiled.program.text() and "native." in compiled.program.schedule_text()


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [nn.Linear(2, 2), [nn.Linear(2, 2)]]
        self.by_name = {"a": nn.Linear(2, 2)}
        self.last = nn.Sequential(nn.Linear(2, 2))

    def forward(self, x):
        return self.last(self.by_name["a"](self.blocks[1][0](self.blocks[0](x))))


def test_another_part_in_a_list_makes_a_new_program():
    model = Tower().build(seed=1)
    f, x = weft.compile(model), weft.ones((1, 2))

    def agrees():
        with weft.no_grad():
            np.testing.assert_allclose(f(x).numpy(), model(x).numpy(), rtol=1e-6)
        return f.program

    first = agrees()
    assert agrees() is first
    fresh = iter([nn.Linear(2, 2).build(seed=n) for n in range(2, 6)])
    model.blocks[0] = next(fresh)
    assert agrees() is not first
    model.blocks[1][0] = next(fresh)
    agrees()
    model.by_name["a"] = next(fresh)
    agrees()
    model.last.append(next(fresh))
    last = agrees()
    assert agrees() is last


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales, self.arrays, self.parts = [], [], {"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)}
        self.scales.append(weft.ones(2))
        self.arrays.append(np.ones(2, np.float32))

    def forward(self, x):
        for part in self.parts.values():
            x = part(x)
        return x * self.scales[0] + weft.tensor(self.arrays[0])


def test_lists_are_compared_by_what_they_hold_not_by_its_value():
    model = Scaled().build(seed=1)
    f, x = weft.compile(model), weft.ones((1, 2)) * -1

    def agrees():
        with weft.no_grad():
            np.testing.assert_allclose(f(x).numpy(), model(x).numpy(), rtol=1e-6)

    agrees()
    model.scales[0] = weft.ones(2) * 3
    agrees()
    model.arrays[0] = np.full(2, 5, np.float32)
    agrees()
    model.parts["a"] = model.parts.pop("a")  # in another order
    agrees()


def test_it_runs_once_for_each_set_of_types():
    ran = []

    @weft.compile
    def twice(x):
        ran.append(x.shape)
        return x * 2

    for shape in ((2,), (2,), (3,), (2,)):
        assert twice(weft.ones(shape)).tolist() == [2.0] * shape[0]
    twice(weft.ones(2, dtype="f64"))
    with weft.no_grad():
        twice(weft.ones(2))
    with weft.Policy(determinism="batch"):
        twice(weft.ones(2))
    assert ran == [(2,), (3,), (2,), (2,), (2,)]
    assert twice(weft.ones(2, backend="reference")).backend == "reference"
    refused(lambda: twice(weft.ones(2, requires_grad=True)), "requires a gradient")
    constant = weft.compile(lambda x, c: c)
    for c in (1, 1.0, True):
        assert type(constant(weft.ones(1), c)) is type(c)


def test_a_program_follows_the_policy_under_which_it_was_made():
    f, x = weft.compile(lambda x: x @ x), weft.ones((64, 64), backend="native")
    said = set()
    for level in ("any", "threads"):
        with weft.Policy(determinism=level):
            weft.reset_ledger()
            x @ x
            kernel = next(row["kernel"] for row in weft.ledger() if row["op"] == "matmul")
            f(x)
            assert kernel in f.program.schedule_text(), level
            said.add(kernel)
    assert len(said) == 2


def test_sizes_that_are_symbols():
    ran = []

    @weft.compile(dynamic_shapes={"x": {0: "rows"}, "y": (weft.Dim.symbol("rows"), None)})
    def joined(x, y):
        ran.append(x.shape[0])
        return weft.concat([x, y], 1).sum(0)

    for n in (1, 7, 64):
        assert joined(weft.ones((n, 2)), weft.ones((n, 1))).tolist() == [n, n, n]
    assert ran == [weft.Dim.symbol("rows")]
    refused(lambda: joined(weft.ones((2, 2)), weft.ones((3, 1))), "rows")
    bounded = weft.compile(lambda x: x + 1, dynamic_shapes={"x": [weft.Dim.symbol("few", 1, 4)]})
    assert bounded(weft.ones(4)).shape == (4,)
    refused(lambda: bounded(weft.ones(5)), "few", "5")
    with pytest.raises(TypeError, match="dynamic_shapes names z"):
        weft.compile(lambda x: x, dynamic_shapes={"z": {0: "n"}})(weft.ones(1))
    with pytest.raises(TypeError, match="names of Linear's arguments are not known"):
        weft.compile(nn.Linear(2, 2).build(), dynamic_shapes={"x": {0: "n"}})(weft.ones((1, 2)))
    with pytest.raises(ValueError, match="x has no axis 3"):
        weft.compile(lambda x: x, dynamic_shapes={"x": {3: "n"}})(weft.ones(1))


def step_of(model, optimizer):
    def step(x):
        loss = (model(x) - 1).square().mean()
        loss.backward()
        optimizer.step(0.1)
        return loss

    return step


def test_a_step_that_trains_and_what_reads_the_same_weights():
    x = weft.tensor([[1.0, 2, 3], [0, 1, 0]])
    eager, model = nn.Linear(3, 2).build(seed=1), nn.Linear(3, 2).build(seed=1)
    plain, step = step_of(eager, nn.AdamW(eager.parameters())), weft.compile(step_of(model, nn.AdamW(model.parameters())))
    early, late = weft.compile(model), weft.compile(model)
    with weft.no_grad():
        early(x)  # made before the weights are trained, and must not keep what it packed of them
    for _ in range(6):
        assert abs(plain(x).item() - step(x).item()) < 1e-6
        with weft.no_grad():
            want = eager(x).numpy()
            for what in (early, late, model):
                np.testing.assert_allclose(what(x).numpy(), want, rtol=1e-5, atol=1e-6)
    assert "1 programs" in repr(early)


def test_a_language_model_with_dropout_learns_the_same():
    tokens = weft.tensor(np.random.default_rng(1).integers(0, 16, (4, 9)), dtype="i32")
    losses = []
    for make in (lambda f: f, weft.compile):
        model = nn.GPT(vocabulary=16, context=8, layers=2, heads=2, width=16, dropout=0.1).build(seed=1).train()
        optimizer = nn.AdamW(model.parameters(), clip=1.0)

        def step(x, y, rate):
            loss = nn.token_loss(model(x), y)
            loss.backward()
            optimizer.step(rate)
            return loss

        step = make(step)
        losses.append([step(tokens[:, :-1], tokens[:, 1:], weft.tensor(0.01 / (i + 1))).item() for i in range(8)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    assert losses[1][-1] < losses[1][0] - 0.1 and "1 programs" in repr(step)


def test_programs_that_are_forgotten_leave_no_memory():
    model, x = nn.Linear(32, 32).build(), weft.ones((4, 32))

    def once():
        step = weft.compile(step_of(model, nn.SGD(model.parameters())))
        predict = weft.compile(lambda x: model(x).detach())
        for _ in range(2):
            step(x), predict(x)

    once()
    gc.collect()
    weft.release_memory()
    before = weft.device_memory()
    for _ in range(20):
        once()
    gc.collect()
    weft.release_memory()
    assert weft.device_memory() == before


def test_two_steps_that_train_each_others_weights():
    x = weft.ones((2, 2))
    a, b = nn.Linear(2, 2).build(seed=1), nn.Linear(2, 2).build(seed=2)
    c, d = nn.Linear(2, 2).build(seed=1), nn.Linear(2, 2).build(seed=2)
    ran = []

    def pair(a, b, compiled):
        first, second = nn.SGD(a.parameters()), nn.SGD(b.parameters())

        def one(x):
            ran.append(1)
            loss = b(a(x)).square().mean()
            loss.backward()
            first.step(0.1)
            second.clear_gradients()
            return loss

        def two(x):
            ran.append(2)
            loss = (a(b(x)) - 1).square().mean()
            loss.backward()
            second.step(0.1)
            first.clear_gradients()
            return loss

        return (weft.compile(one), weft.compile(two)) if compiled else (one, two)

    plain, made = pair(a, b, False), pair(c, d, True)
    for _ in range(5):
        for f, g in zip(plain, made):
            assert abs(f(x).item() - g(x).item()) < 1e-6
    assert len(ran) == 10 + 3  # one() is made again once, when two() has written


def test_memory_that_a_program_works_in_is_locked_until_it_is_forgotten():
    weight = weft.ones(3)
    f = weft.compile(lambda x: x * weight)
    assert f(weft.ones(3)).tolist() == [1, 1, 1]

    def change():
        nonlocal weight
        weight += 1

    refused(change, "compiled program (of weft.compile, until clear() of the function")
    f.clear()
    change()
    assert f(weft.ones(3)).tolist() == [2, 2, 2] and f.program is not None
    del f
    change()
    assert weight.tolist() == [3, 3, 3]


def test_a_module_with_other_tensors_is_compiled_again():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(3, nn.Initial.constant(1))
            self.n = nn.State(3, "f32", nn.Initial.constant(2))

        def forward(self, x):
            return x * self.w + self.n

    net, other = Scale().build(seed=1), nn.Linear(3, 3).build()
    ran = []

    def predict(x):
        ran.append(1)
        return net(x)

    x = weft.ones(3)
    with weft.no_grad():
        f = weft.compile(predict)
        assert f(x).tolist() == [3, 3, 3]
        net.w = weft.ones(3) * 5
        assert f(x).tolist() == [7, 7, 7]
        net.n = weft.ones(3)
        assert f(x).tolist() == [6, 6, 6]
        net.build(seed=9)
        assert f(x).tolist() == [3, 3, 3] and len(ran) == 4
        other.weight = weft.ones((3, 3))  # which f does not read
        other.build()
        assert f(x).tolist() == [3, 3, 3] and len(ran) == 4
    layer = nn.Linear(3, 3).build(seed=1)
    with weft.no_grad():
        g = weft.compile(lambda x: layer(x))
        assert g(x).tolist() == layer(x).tolist()
        layer.weight = layer.weight * 2
        assert g(x).tolist() == layer(x).tolist()


def test_a_module_with_other_parts_is_compiled_again():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.more = nn.Linear(3, 3), [nn.Linear(3, 3)]

        def forward(self, x):
            return self.more[0](self.one(x))

    net, x = Net().build(seed=1), weft.ones(3)
    with weft.no_grad():
        f = weft.compile(lambda x: net(x))
        assert f(x).tolist() == net(x).tolist()
        net.one = nn.Linear(3, 3).build(seed=2)
        assert f(x).tolist() == net(x).tolist()
        net.more = [nn.Linear(3, 3).build(seed=3)]
        assert f(x).tolist() == net(x).tolist()


def test_random_numbers_go_on():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(x)

    a, b = Net().build(seed=3), Net().build(seed=3)
    compiled, x = weft.compile(b), weft.ones(64)
    for mode in (a.train, b.train):
        mode()
    for _ in range(3):
        same(compiled(x), a(x).numpy())
    b.eval()
    assert compiled(x).tolist() == x.tolist()


def test_methods_modules_and_functions_inside_of_others():
    class Doubler:
        def __init__(self, by):
            self.by = by

        @weft.compile
        def run(self, x):
            return x * self.by

    assert Doubler(2).run(weft.ones(1)).item() == 2 and Doubler(5).run(weft.ones(1)).item() == 5
    inner = weft.compile(lambda x: x + 1)
    outer = weft.compile(lambda x: inner(x) * inner(x * 2))
    assert outer(weft.ones(2)).tolist() == [6, 6]
    Point = namedtuple("Point", "x y")
    made = weft.compile(lambda p: Point(p.y, p.x))(Point(weft.ones(1), weft.zeros(2)))
    assert type(made) is Point and made.x.shape == (2,) and made.y.shape == (1,)


def test_memory_of_others_goes_in_and_out_without_a_copy():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    f = weft.compile(lambda x: x + 1)
    weft.reset_ledger()
    for _ in range(3):
        same(f(weft.from_numpy(a)), a + 1)
        a += 1
    assert sum(row["bytes"] for row in weft.ledger()) == 0
    same(f(weft.from_numpy(a[:, ::-1][:, ::-1])), a + 1)
    same(f(weft.from_numpy(np.asfortranarray(a))), a + 1)
    constant = np.ones(3, np.float32)
    constant.flags.writeable = False
    held = weft.from_numpy(constant)
    same(weft.compile(lambda x: x + held)(weft.from_numpy(a)), a + 1)

    def writes(x):
        nonlocal held
        held += x
        return held

    refused(lambda: weft.compile(writes)(weft.ones(3)))
    assert constant.tolist() == [1, 1, 1]


def test_what_a_program_can_not_do():
    x = weft.tensor([[1.0, 2]], requires_grad=True)
    model = nn.Linear(2, 1).build()
    compile = weft.compile
    refused(lambda: compile(lambda x: x * 2)(x), "requires a gradient", "no_grad()")
    refused(lambda: compile(model)(weft.ones((1, 2))), "requires a gradient", "no_grad()")
    refused(lambda: compile(lambda x: x.sum().item())(weft.ones(2)), "can't be read inside a trace")
    refused(lambda: compile(lambda x: x.__iadd__(1))(weft.ones(2)), "writes to its argument 'x'")
    refused(lambda: compile(lambda x: (x.sum().backward(), x.grad)[1])(x), "gradient at the argument 'x'", "detach()")
    refused(lambda: compile(lambda x: (model(x).sum().backward(), x)[1])(weft.ones((1, 2))), "left gradients at 'weight', 'bias'")
    strided = weft.from_numpy(np.ones((3, 2), np.float32).T)
    refused(lambda: compile(lambda x: x + strided)(weft.ones((2, 3))), "has strides", "clone()")
    assert model.weight.grad is None and x.grad is None
    for call, words in [
        (lambda: compile(3), "wants a function, got int"),
        (lambda: compile(lambda x: x)(np.ones(2)), "numpy.ndarray; weft.from_dlpack"),
        (lambda: compile(lambda x: x)({1, 2}), "hashable, got set"),
        (lambda: compile(lambda x: np.ones(2))(weft.ones(1)), "a result is of numpy.ndarray"),
    ]:
        with pytest.raises(TypeError, match=words.replace("(", r"\(")):
            call()


def test_exceptions_come_through_and_leave_nothing_behind():
    hope = []

    @weft.compile
    def fails(x):
        if not hope:
            raise KeyError("mine")
        return x + 1

    for _ in range(3):
        with pytest.raises(KeyError, match="mine"):
            fails(weft.ones(2))
    with pytest.raises(weft.InvalidArgument, match="f32"):
        weft.compile(lambda x: x @ weft.ones((9, 9)))(weft.ones((2, 2)))
    assert not weft._weft._is_tracing() and (weft.ones(2) + 1).tolist() == [2, 2]
    hope.append(1)
    assert fails(weft.ones(2)).tolist() == [2, 2]


def test_threads_share_programs():
    weight = weft.tensor(np.eye(16, dtype=np.float32))
    f = weft.compile(lambda x: (x @ weight).softmax(1))
    wrong = []

    def work(seed):
        x = weft.tensor(np.random.default_rng(seed).standard_normal((4, 16)).astype(np.float32))
        want = x.softmax(1).numpy()
        try:
            for _ in range(50):
                if not np.allclose(f(x).numpy(), want, atol=1e-5):
                    wrong.append(seed)
        except Exception as e:
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_forks_beside_threads_that_run_programs():
    code = """
import os, threading, weft
f = weft.compile(lambda x: x @ x)
x, done = weft.ones((300, 300)), []
def work():
    while not done: f(x)
t = threading.Thread(target=work); t.start()
for _ in range(10):
    child = os.fork()
    if child == 0: os._exit(0 if weft.compile(lambda x: x + 1)(weft.ones(2)).tolist() == [2, 2] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
done.append(1); t.join()
"""
    made = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stderr


def test_many_programs_are_said():
    f = weft.compile(lambda x, by: x * by)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(31):
            f(weft.ones(1), n)
    with pytest.warns(UserWarning, match="compiled 32 times, the last time for x: f32"):
        f(weft.ones(1), 31)


def test_constants_that_are_equal_but_not_the_same():
    x = weft.ones(2)
    times = weft.compile(lambda x, n: x * n)
    assert [(1 / times(x, zero))[0].item() for zero in (0.0, -0.0)] == [float("inf"), float("-inf")]
    plus = weft.compile(lambda x, n: x + n)
    for _ in range(3):
        assert np.isnan(plus(x, float("nan")).numpy()).all()
    assert "1 programs" in repr(plus) and "2 programs" in repr(times)


def test_a_step_is_seen_by_a_backward_that_kept_what_it_writes():
    w = weft.tensor([1.0, 2.0])
    x = weft.ones(2, requires_grad=True)

    @weft.compile
    def step(by):
        nonlocal w
        w += by
        return by * 1

    loss = (x * w).sum()
    step(weft.ones(2))
    assert w.tolist() == [2, 3]
    refused(loss.backward, "overwritten in place")


def test_a_symbol_is_not_compared_with_a_number_that_it_may_be():
    shapes = {"x": {0: weft.Dim.symbol("n", 2, 8)}}
    refused(lambda: weft.compile(lambda x: x * 0 if x.shape[0] != 3 else x, dynamic_shapes=shapes)(weft.ones(3)), "from 2 to 8")
    refused(lambda: weft.compile(lambda x: x if x.shape == (3,) else x * 0, dynamic_shapes=shapes)(weft.ones(3)), "whether the size n is 3")
    known = weft.compile(lambda x: x if x.shape[0] == 1 or x.shape[0] == 2**70 else x * 2, dynamic_shapes=shapes)
    assert known(weft.ones(3)).tolist() == [2, 2, 2]
