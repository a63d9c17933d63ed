"""Weft: write a model once; train, compile and run it on any backend.

Ops, tensors and queries are those of C++, by the same names: `help(weft.softmax)` says what `weft/ops.h` says.
"""

from weft._weft import *  # noqa: F403
from weft._weft import _GradientMode


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


def _decorated(mode, function):
    from functools import wraps

    @wraps(function)
    def inner(*args, **kwargs):
        with mode():
            return function(*args, **kwargs)

    return inner
