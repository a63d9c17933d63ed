"""PyTorch's answers for ops that fold axes, and matrix products."""
import torch

from common import over_axes


def matmul(x, a):
    p = x[0].transpose(-1, -2) if a.get("transpose_a") else x[0]
    q = x[1].transpose(-1, -2) if a.get("transpose_b") else x[1]
    return [torch.matmul(p, q)]


def prod(x, a):
    y = x[0]
    for axis in sorted((d % y.dim() for d in a.get("axes", range(y.dim()))), reverse=True):
        y = torch.prod(y, axis, keepdim=bool(a.get("keep", 0)))
    return [y]


def variance(x, a):
    return [torch.var(x[0], a.get("axes"), correction=a.get("correction", 0), keepdim=bool(a.get("keep", 0)))]


def cumsum(x, a):
    axis = a.get("axis", 0)
    y = x[0].flip(axis) if a.get("reverse") else x[0]
    if a.get("exclusive"):
        n = y.shape[axis]
        y = torch.cat([torch.zeros_like(y.narrow(axis, 0, 1)), y.narrow(axis, 0, n - 1)], axis)
    y = torch.cumsum(y, axis)
    return [y.flip(axis) if a.get("reverse") else y]


def ordered(found):
    return [found[0], found[1].int()]


ANSWERS = {
    "sum": over_axes(lambda x, axes, keep: torch.sum(x, axes, keepdim=keep)),
    "max": over_axes(lambda x, axes, keep: torch.amax(x, axes, keepdim=keep)),
    "min": over_axes(lambda x, axes, keep: torch.amin(x, axes, keepdim=keep)),
    "prod": prod,
    "mean": over_axes(lambda x, axes, keep: torch.mean(x, axes, keepdim=keep)),
    "variance": variance,
    "logsumexp": over_axes(lambda x, axes, keep: torch.logsumexp(x, axes, keepdim=keep)),
    "argmax": lambda x, a: [torch.argmax(x[0], a.get("axis", -1), bool(a.get("keep", 0))).int()],
    "argmin": lambda x, a: [torch.argmin(x[0], a.get("axis", -1), bool(a.get("keep", 0))).int()],
    "cumsum": cumsum,
    "sort": lambda x, a: ordered(torch.sort(x[0], dim=a.get("axis", -1), descending=bool(a.get("descending", 0)),
                                            stable=True)),
    "topk": lambda x, a: ordered(torch.topk(x[0], a.get("k", 1), a.get("axis", -1), bool(a.get("largest", 1)))),
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
    *[(op, [(2, 3, 4)], a) for op in ("min", "prod", "mean", "variance", "logsumexp")
      for a in ({}, {"axes": [1]}, {"axes": [-1, 0]}, {"axes": [0, 2], "keep": 1})],
    ("min", [("same", [[3.0, 1.0, 1.0], [2.0, 2.0, 2.0]])], {"axes": [1]}),
    ("prod", [("same", [[2.0, 0.0, 3.0], [0.0, 5.0, 0.0]])], {"axes": [1]}),
    ("variance", [(3, 5)], {"axes": [1], "correction": 1}),
    ("logsumexp", [("same", [[1000.0, 999.0, -1000.0]])], {"axes": [1]}),
    *[(op, [(3, 5)], a) for op in ("argmax", "argmin") for a in ({}, {"axis": 0, "keep": 1})],
    ("argmax", [("same", [[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]])], {}),
    ("cumsum", [(5, 3)], {}), ("cumsum", [(2, 4, 3)], {"axis": 1, "reverse": 1}),
    ("cumsum", [(3, 4)], {"axis": -1, "exclusive": 1}),
    ("cumsum", [(3, 4)], {"axis": 1, "exclusive": 1, "reverse": 1}),
    ("sort", [(3, 7)], {}), ("sort", [(2, 5, 3)], {"axis": 1, "descending": 1}),
    ("sort", [("same", [3.0, 1.0, 3.0, 1.0])], {}),
    ("sort", [("same", [3.0, 1.0, 3.0, 1.0])], {"descending": 1}),
    ("topk", [(3, 7)], {"k": 3}), ("topk", [(2, 5, 3)], {"k": 2, "axis": 1, "largest": 0}),
    ("mean_square", [(4, 7)], {}), ("mean_square", [()], {}),
]
