"""Weft: write a model once; train, compile and run it on any backend.

Ops, tensors and queries are those of C++, by the same names: `help(weft.softmax)` says what `weft/ops.h` says.
"""

import builtins

from weft._weft import *  # noqa: F403
from weft._weft import __version__
from weft._weft import boolean as bool  # noqa: A004
from weft import nn
from weft.compiled import compile
from weft.function import Function
from weft.ledger import ledger
from weft.gradients import enable_grad, no_grad, recompute
from weft.nn.pretrained import from_pretrained
from weft.program import export, load, verify

TYPE_CHECKING = False  # type checkers take it for true; typing itself takes long to import
if TYPE_CHECKING:
    from weft import lab
    from weft.lab import get_kernel


def __getattr__(name):
    """The kernel lab is imported when it is asked for."""
    if name == "lab":
        import importlib

        return importlib.import_module("weft.lab")
    if name == "get_kernel":
        from weft.lab import get_kernel

        return get_kernel
    raise AttributeError(f"module 'weft' has no attribute '{name}'")


_INNER = {"TYPE_CHECKING", "boolean", "builtins", "compiled", "function", "gradients", "program"}


def __dir__():
    return [*(n for n in globals() if not n.startswith("_") and n not in _INNER), "lab", "get_kernel", "__version__"]


# Names that Python has itself, as abs and bool, come with `weft.` alone, not with `from weft import *`.
__all__ = [n for n in __dir__() if not hasattr(builtins, n)]
