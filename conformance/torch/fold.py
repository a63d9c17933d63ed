"""PyTorch's answers for ops that fold axes, and matrix products."""
import torch

from common import over_axes


def matmul(x, a):
    p = x[0].transpose(-1, -2) if a.get("transpose_a") else x[0]
    q = x[1].transpose(-1, -2) if a.get("transpose_b") else x[1]
    return [torch.matmul(p, q)]


ANSWERS = {
    "sum": over_axes(lambda x, axes, keep: torch.sum(x, axes, keepdim=keep)),
    "max": over_axes(lambda x, axes, keep: torch.amax(x, axes, keepdim=keep)),
    "matmul": matmul,
    "mean_square": lambda x, a: [torch.mean(torch.square(x[0]))],
}

CASES = [
    *[(op, [(2, 3, 4)], a) for op in ("sum", "max")
      for a in ({}, {"axes": [1]}, {"axes": [-1, 0]}, {"axes": [0, 2], "keep": 1})],
    ("max", [("same", [[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]])], {"axes": [1]}),
    ("matmul", [(3, 5), (5, 4)], {}), ("matmul", [(5, 3), (5, 4)], {"transpose_a": 1}),
    ("matmul", [(3, 5), (4, 5)], {"transpose_b": 1}),
    ("matmul", [(5, 3), (4, 5)], {"transpose_a": 1, "transpose_b": 1}),
    ("matmul", [(2, 1, 3, 4), (3, 4, 2)], {}),
    ("matmul", [(2, 4, 3), (2, 4)], {"transpose_a": 1, "transpose_b": 1}),
    ("mean_square", [(4, 7)], {}), ("mean_square", [()], {}),
]
