"""Gradients, where they are recorded, and functions that have one of their own."""

import gc
import threading
import weakref

import pytest
from conftest import refused

import weft


class Cube(weft.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * x * factor

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 3 * ctx.factor * x * x * dy, None


def test_backward_adds_up():
    x = weft.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5, 7] and x.is_leaf and not (x * 2).is_leaf
    x.grad = None
    assert x.grad is None
    y = x * x
    y.backward(weft.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 40]
    refused(lambda: y.backward(weft.ones(2)), "earlier backward()")
    refused(lambda: (x * 1).backward(), "one element or a seed")
    refused(lambda: weft.ones(1).backward(), "does not depend")


def test_no_grad_as_context_and_as_decorator():
    x = weft.ones(2, requires_grad=True)
    with weft.no_grad():
        assert not (x * 2).requires_grad and not weft.is_grad_enabled()
        with weft.enable_grad():
            assert (x * 2).requires_grad
    assert weft.is_grad_enabled()

    @weft.no_grad()
    def frozen(x):
        return x * 2

    assert not frozen(x).requires_grad and (x * 2).requires_grad and frozen.__name__ == "frozen"
    mode = weft.no_grad()
    with mode, mode:
        pass
    assert weft.is_grad_enabled()
    with pytest.raises(RuntimeError), weft.no_grad():
        raise RuntimeError
    assert weft.is_grad_enabled()


def test_each_thread_has_its_own_mode():
    seen = []
    with weft.no_grad():
        t = threading.Thread(target=lambda: seen.append(weft.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_second_derivatives():
    x = weft.tensor(3.0, requires_grad=True)
    (x**2 * x).backward(create_graph=True)
    first = x.grad
    assert first.item() == 27
    x.grad = None
    first.backward()
    assert x.grad.item() == 18


def test_a_function_of_ones_own():
    x = weft.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x, 2)
    assert y.tolist() == [2, 16] and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [6, 24]
    assert not Cube.apply(x.detach(), 2).requires_grad
    with weft.no_grad():
        assert not Cube.apply(x, 2).requires_grad


def test_a_functions_gradient_can_be_differentiated():
    x = weft.tensor(2.0, requires_grad=True)
    Cube.apply(x, 1).backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.backward()
    assert first.item() == 12 and x.grad.item() == 12


class Halves(weft.Function):
    """Two results, one of them saved."""

    @staticmethod
    def forward(ctx, x):
        e = weft.exp(x)
        ctx.save_for_backward(e)
        return e, x * 2

    @staticmethod
    def backward(ctx, de, dx):
        (e,) = ctx.saved_tensors
        return e * de + 2 * dx


def test_results_may_be_saved_and_some_left_alone():
    x = weft.tensor(0.0, requires_grad=True)
    e, _ = Halves.apply(x)
    e.backward(create_graph=True)
    assert x.grad.item() == 1
    first, x.grad = x.grad, None
    first.backward()
    assert x.grad.item() == 1  # through the saved result, back into the function


def test_what_was_saved_is_freed():
    class Mark:
        pass

    class Keeps(weft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark = Mark()
            Keeps.gone = weakref.ref(ctx.mark)
            y = x * 2
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, dy):
            return dy

    x = weft.ones(2, requires_grad=True)
    y = Keeps.apply(x)
    assert Keeps.gone() is not None
    del y
    gc.collect()
    assert Keeps.gone() is None
    Keeps.apply(x).sum().backward()
    gc.collect()
    assert Keeps.gone() is None


def test_rules_that_are_wrong():
    class Wrong(weft.Function):
        answer = None

        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return x + y

        @staticmethod
        def backward(ctx, dy):
            if Wrong.answer == "raise":
                raise KeyError("mine")
            return Wrong.answer

    x, y = weft.ones(2, requires_grad=True), weft.ones(2)
    Wrong.answer = (weft.ones(2),)
    with pytest.raises(ValueError, match="1 gradients, and forward.. has 2 arguments"):
        Wrong.apply(x, y).sum().backward()
    Wrong.answer = (weft.ones(3), None)
    refused(lambda: Wrong.apply(x, y).sum().backward(), "f32[3]", "f32[2]")
    Wrong.answer = "raise"
    with pytest.raises(KeyError, match="mine"):
        Wrong.apply(x, y).sum().backward()
    z = Wrong.apply(x, y)
    with weft.no_grad():
        x += 1
    refused(lambda: z.sum().backward(), "overwritten")
    assert x.grad is None


def test_recomputed_parts():
    ran = []

    def part(x, y):
        ran.append(1)
        return (x * y).sin(), x + y

    grads = []
    for again in (False, True):
        x, y = weft.tensor([1.0, 2], requires_grad=True), weft.tensor([3.0, 4], requires_grad=True)
        a, b = weft.recompute(part, x, y) if again else part(x, y)
        weft.recompute(lambda t: t * t, a * b).sum().backward()
        grads.append((x.grad.tolist(), y.grad.tolist()))
    assert grads[0] == grads[1] and len(ran) == 3

    def fails(x):
        if len(ran) == 4:
            raise KeyError("mine")
        ran.append(1)
        return x.exp()

    x = weft.ones(2, requires_grad=True)
    y = weft.recompute(fails, x)
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    assert x.grad is None


def test_a_part_must_give_the_same_when_it_runs_again():
    def part_of(*forms):
        left = list(forms)
        return lambda x: left.pop(0)(x)

    for again, said in ((lambda x: (x * x)[:1] * 5, "result 0 of the part was f32[2], and f32[1] when it ran again"),
                        (lambda x: weft.cast(x * x, weft.f64), "was f32[2], and f64[2] when it ran again"),
                        (lambda x: (x * x, x), "the part gave 1 results, and 2 when it ran again")):
        x = weft.tensor([1.0, 2], requires_grad=True)
        y = weft.recompute(part_of(lambda x: x * x, again), x)
        refused(lambda: y.sum().backward(), said)
        assert x.grad is None


def test_a_second_backward_names_what_keeps_the_history():
    x = weft.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    refused(lambda: y.backward(), "earlier backward() freed what was saved; give that one retain_graph=True")
    assert x.grad.tolist() == [4, 4]


class Returns(weft.Function):
    """Gives what it is told to, on the way there and back."""

    @staticmethod
    def forward(ctx, x, there, back):
        ctx.save_for_backward(x, None)
        ctx.back = back
        return x * 2 if there is None else there

    @staticmethod
    def backward(ctx, dy):
        x, nothing = ctx.saved_tensors
        assert nothing is None and x.tolist() == [1, 1]
        return (dy * 2, None, None) if ctx.back is None else ctx.back


def test_what_functions_must_return():
    x = weft.ones(2, requires_grad=True)
    Returns.apply(x, None, None).sum().backward()
    assert x.grad.tolist() == [2, 2]
    for there in (3, [x, "no"]):
        with pytest.raises(TypeError, match=r"Returns.forward\(\) must return a Tensor"):
            Returns.apply(x, there, None)
    for back in (1.0, (1.0, None, None)):
        with pytest.raises(TypeError, match=r"Returns.backward\(\) must return a Tensor or None.*got float"):
            Returns.apply(x, None, back).sum().backward()
    with pytest.raises(ValueError, match="gave 2 gradients, and forward.. has 3"):
        Returns.apply(x, None, (None, None)).sum().backward()
    with pytest.raises(TypeError, match="takes tensors and None, got str"):
        weft.function.Context().save_for_backward("no")


def test_modes_and_recompute_refuse_other_arguments():
    with pytest.raises(TypeError, match="with parentheses"):
        weft.no_grad(lambda x: x)
    with pytest.raises(TypeError, match="an input must be a Tensor, got float"):
        weft.recompute(lambda x: x, 3.0)
    with pytest.raises(TypeError, match="part must return a Tensor"):
        weft.recompute(lambda x: 3, weft.ones(2))
