"""weft.torch.explain: what becomes of a model."""

import torch

from . import report
from .backend import backend


def explain(function, *args, **kwargs):
    """Compiles and runs `function` once and says what Weft computed, what was left to PyTorch and why, and where
    TorchDynamo ended a graph. print() shows it."""
    torch._dynamo.reset()
    breaks = [str(b.reason) for b in torch._dynamo.explain(function)(*args, **kwargs).break_reasons]
    torch._dynamo.reset()
    with report.collected() as graphs:
        torch.compile(function, backend=backend)(*args, **kwargs)
    return report.Explanation(graphs, breaks)
