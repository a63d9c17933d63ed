"""Whether gradients are recorded."""

from weft._weft import Tensor, _GradientMode, _recompute


def _decorated(mode, function):
    from functools import wraps

    @wraps(function)
    def inner(*args, **kwargs):
        with mode():
            return function(*args, **kwargs)

    return inner


def _refuse(given, name):
    if given:
        raise TypeError(f"weft.{name}() takes no argument; before a function it is @weft.{name}(), with parentheses")


class no_grad(_GradientMode):
    """While it lives, this thread records no gradients: `with weft.no_grad():`, or before a function as `@weft.no_grad()`."""

    def __init__(self, *given):
        _refuse(given, "no_grad")
        super().__init__(False)

    def __call__(self, function):
        return _decorated(type(self), function)


class enable_grad(_GradientMode):
    """While it lives, this thread records gradients, also inside of no_grad()."""

    def __init__(self, *given):
        _refuse(given, "enable_grad")
        super().__init__(True)

    def __call__(self, function):
        return _decorated(type(self), function)


def recompute(part, *inputs):
    """part(*inputs), of which only the inputs are kept for backward(): the part runs once more there (gradient checkpointing).

    It takes more time and less memory: a chain of such parts keeps the inputs of each, and the intermediate tensors of one at a time.
    `part` returns a tensor or a tuple of them; random states that it updates draw the same numbers again.
    """
    single = []

    def listed(tensors):
        made = part(*tensors)
        single[:] = [isinstance(made, Tensor)]
        made = [made] if not isinstance(made, (tuple, list)) else made
        for t in made:
            if not isinstance(t, Tensor):
                raise TypeError(f"recompute(): the part must return a Tensor or a tuple of them, got {type(t).__name__}")
        return list(made)

    for t in inputs:
        if not isinstance(t, Tensor):
            raise TypeError(f"recompute(): an input must be a Tensor, got {type(t).__name__}; the part can read other values from outside")
    results = _recompute(listed, list(inputs))
    return results[0] if single[0] else results
