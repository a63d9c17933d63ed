"""Functions with a gradient of their own, written in Python."""

from weft._weft import Tensor, _with_gradient
from weft.gradients import no_grad


class Context:
    """What a Function's forward() keeps for its backward()."""

    def __init__(self):
        self._saved = ()

    def save_for_backward(self, *tensors):
        """Keeps inputs, results and other tensors, or None: backward() finds them in saved_tensors, in this order.

        Use it rather than an attribute: an overwritten tensor is noticed, and results are freed in time.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward() takes tensors and None, got {type(t).__name__}; other values can be attributes of ctx")
        self._saved = tensors

    @property
    def saved_tensors(self):
        """What save_for_backward() was given."""
        return self._saved


class Function:
    """A function with a gradient of its own: forward() computes, unrecorded, and backward() says the gradient.

        class Cube(weft.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x * x

            @staticmethod
            def backward(ctx, dy):
                (x,) = ctx.saved_tensors
                return 3 * x * x * dy

        y = Cube.apply(x)

    backward() gets a gradient for each result, zeros where none flows back, and returns one for each argument of forward(),
    None for what is no tensor or has no gradient.
    """

    @staticmethod
    def forward(ctx, *args):
        """Computes the results: a tensor or a tuple of them."""
        raise NotImplementedError("a Function wants a forward(ctx, ...)")

    @staticmethod
    def backward(ctx, *gradients):
        """Gives the gradients of forward()'s arguments."""
        raise NotImplementedError("a Function wants a backward(ctx, ...)")

    @classmethod
    def apply(cls, *args):
        """Calls forward(), and joins its results to the history of its arguments."""
        ctx = Context()
        with no_grad():
            made = cls.forward(ctx, *args)
        results = _tensors(made, f"{cls.__name__}.forward()")
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        kept = [i for i, t in enumerate(ctx._saved) if t is not None]
        count = len(ctx._saved)

        def rule(gradients, saved):
            tensors = dict(zip(kept, saved))
            ctx._saved = tuple(tensors.get(i) for i in range(count))
            given = _tensors(cls.backward(ctx, *gradients), f"{cls.__name__}.backward()", may_be_none=True)
            if len(given) != len(args):
                raise ValueError(
                    f"{cls.__name__}.backward() gave {len(given)} gradients, and forward() has {len(args)} arguments; "
                    "give one for each, None where there is none"
                )
            return [given[i] for i in places]

        joined = _with_gradient([args[i] for i in places], list(results), [ctx._saved[i] for i in kept], rule)
        ctx._saved = ()
        return joined[0] if isinstance(made, Tensor) else joined


def _tensors(made, where, may_be_none=False):
    """What a function returned, a tensor or several, as a tuple that is checked."""
    several = made if isinstance(made, (tuple, list)) else (made,)
    for t in several:
        if not isinstance(t, Tensor) and not (may_be_none and t is None):
            wanted = "a Tensor or None" if may_be_none else "a Tensor"
            raise TypeError(f"{where} must return {wanted}, or a tuple of them, got {type(t).__name__}")
    return tuple(several)
