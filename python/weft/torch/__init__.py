"""PyTorch's models by Weft: torch.compile(model, backend="weft"), and weft.export."""

from .backend import backend
from .explain import explain

__all__ = ["backend", "explain"]
