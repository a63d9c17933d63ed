"""weft.get_kernel(): a kernel of a backend, or of a provider in Python, as a function of tensors."""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable

import weft
from weft import _weft
from weft.lab import kernel


def get_kernel(backend: str, operation: str) -> Callable[..., Any]:
    """A function that computes an op by the kernel of a backend, or of a provider or file in Python.

        weft.get_kernel("native", "softmax")(x)
        weft.get_kernel("torch", "softmax")(x, axis=0)

    It takes the op's operands, and its attributes by name, as weft's own function of that name does: tensors of Weft, or what
    can be shared with it (PyTorch's tensors, NumPy's arrays). It returns weft.Tensor: of a backend on its device; of a
    provider on the host's memory, without a copy.

    Errors   weft.InvalidArgument for a backend or an operation that is none; it lists those there are. weft.Unavailable where a
             provider's library is missing. Called, weft.Unsupported for what the kernel refuses.
    """
    if not isinstance(getattr(_weft, operation, None), type(_weft.softmax)) or operation.startswith("_"):
        raise weft.InvalidArgument(f"weft.get_kernel: no operation is named '{operation}'; weft.lab.operations() lists those that the lab times")
    known = weft.get_available_backends()
    if backend in known or backend.split(":")[0] in known:
        return _of_backend(backend, operation)
    if backend.endswith(".py") or ".py:" in backend or backend.removeprefix("python.") in kernel.provider_names():
        return _of_python(backend, operation)
    raise weft.InvalidArgument(
        f"weft.get_kernel: nothing is named '{backend}'; there are the backends {', '.join(known)}, "
        f"the libraries {', '.join(kernel.provider_names())}, and files (.py)"
    )


def _tensor(value: Any) -> Any:
    """An operand as Weft's tensor, on the same memory where it may be."""
    if value is None or isinstance(value, weft.Tensor):
        return value
    return weft.from_dlpack(value) if hasattr(value, "__dlpack__") else weft.tensor(value)


def _of_backend(backend: str, operation: str) -> Callable[..., Any]:
    function = getattr(_weft, operation)

    def run(*operands: Any, **attributes: Any) -> Any:
        with weft.on_backend(backend), weft.Policy(fallback="forbid"), weft.no_grad():
            return function(*(o if o is None else _tensor(o).to(backend) for o in operands), **attributes)

    return _named(run, backend, operation)


def _of_python(name: str, operation: str) -> Callable[..., Any]:
    file, _ = kernel.split(name)
    if not file.is_file():
        raise weft.Unavailable(f"weft.get_kernel: there is no file {file}")
    reason = kernel.missing(name)
    if reason:
        raise weft.Unavailable(f"weft.get_kernel: {reason}")
    if file.parent != kernel.PROVIDERS:
        name = os.path.abspath(name)
    framework = kernel.framework_of(name)
    framework.load()
    try:
        kernel.function_of(name, operation)
    except kernel.Refused as e:
        raise weft.InvalidArgument(f"weft.get_kernel: {e}") from None

    def run(*operands: Any, **attributes: Any) -> Any:
        return kernel.call(name, operation, [_tensor(o) for o in operands], attributes)

    return _named(run, name, operation)


def _named(run: Callable[..., Any], backend: str, operation: str) -> Callable[..., Any]:
    run.__name__ = run.__qualname__ = operation
    run.__doc__ = f"{operation} by {backend}.\n\n{inspect.getdoc(getattr(_weft, operation)) or ''}"
    return run
