"""A part of an FX graph as a program of Weft's that is called with PyTorch's tensors."""

import json
import threading

import torch

from . import graph
from .dims import Unsupported


def source_of(module, dims, name="part"):
    """The graph of a part as JSON, the symbols that its inputs do not tell, and how it takes and gives tensors.

    Tensors that are dense, but not row by row, are taken and given in the order in which they lie in memory, so that no
    element moves.
    """
    nodes = list(module.graph.nodes)
    inputs = [n for n in nodes if n.op == "placeholder" and graph.is_tensor(n)]
    calls = [n for n in nodes if n.op == "call_function" and not graph.is_item(n)]
    results = next(n for n in nodes if n.op == "output").args[0]
    text = graph.write(name, dims, inputs, calls, [(f"out{i}", n) for i, n in enumerate(results)])
    return text, inputs, results


class Order:
    """How a tensor lies in memory: its axes from the slowest to the fastest."""

    def __init__(self, value):
        order = _order(value)
        self.axes = None if order is None or order == sorted(order) else order
        self.dense = order is not None
        self.back = None if self.axes is None else [self.axes.index(i) for i in range(len(self.axes))]


def _order(value):
    """The axes by falling strides; None where elements share memory or leave gaps."""
    def fixed(n):
        return n if isinstance(n, int) else n.node.hint if isinstance(n, torch.SymInt) and n.node.hint is not None else n

    sizes, strides = [fixed(n) for n in value.shape], [fixed(n) for n in value.stride()]
    if not all(isinstance(n, int) for n in [*sizes, *strides]):
        return None
    axes = sorted(range(len(sizes)), key=lambda i: (-strides[i], i))
    expected = 1
    for i in reversed(axes):
        if sizes[i] == 1:
            continue
        if strides[i] != expected:
            return None
        expected *= max(sizes[i], 1)
    return axes
