"""Whether gradients are recorded."""

from weft._weft import _GradientMode


def _decorated(mode, function):
    from functools import wraps

    @wraps(function)
    def inner(*args, **kwargs):
        with mode():
            return function(*args, **kwargs)

    return inner


class no_grad(_GradientMode):
    """While it lives, this thread records no gradients: `with weft.no_grad():`, or before a function as `@weft.no_grad()`."""

    def __init__(self):
        super().__init__(False)

    def __call__(self, function):
        return _decorated(type(self), function)


class enable_grad(_GradientMode):
    """While it lives, this thread records gradients, also inside of no_grad()."""

    def __init__(self):
        super().__init__(True)

    def __call__(self, function):
        return _decorated(type(self), function)
