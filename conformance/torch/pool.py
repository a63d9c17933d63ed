"""PyTorch's answers for pooling."""
from torch.nn import functional as F


def window(a):
    """Kernel, stride and padding; PyTorch wants the same padding on both sides."""
    n = len(a["kernel"])
    padding = a.get("padding", [0] * 2 * n)
    assert padding[0::2] == padding[1::2]
    return a["kernel"], a.get("stride", a["kernel"]), padding[0::2]


def max_pool(x, a):
    f = [F.max_pool1d, F.max_pool2d][len(a["kernel"]) - 1]
    return [f(x[0], *window(a), dilation=a.get("dilation", [1] * len(a["kernel"])),
              ceil_mode=bool(a.get("ceil_mode", 0)))]


def avg_pool(x, a):
    f = [F.avg_pool1d, F.avg_pool2d][len(a["kernel"]) - 1]
    return [f(x[0], *window(a), ceil_mode=bool(a.get("ceil_mode", 0)),
              count_include_pad=bool(a.get("count_include_pad", 1)))]


ANSWERS = {
    "max_pool": max_pool,
    "avg_pool": avg_pool,
    "adaptive_avg_pool": lambda x, a: [[F.adaptive_avg_pool1d, F.adaptive_avg_pool2d][len(a["size"]) - 1](x[0], a["size"])],
}

TIES = ("same", [[[3.0, 3.0, 1.0, 2.0], [3.0, 3.0, 2.0, 2.0], [1.0, 0.0, -1.0, -1.0], [0.0, 1.0, -1.0, -1.0]]])
CASES = [
    ("max_pool", [(2, 3, 6)], {"kernel": [2]}),
    ("max_pool", [(2, 3, 5, 6)], {"kernel": [3, 2], "stride": [2, 1], "padding": [1, 1, 0, 0]}),
    ("max_pool", [(2, 7, 6)], {"kernel": [2, 3], "stride": [1, 1], "dilation": [3, 2]}),
    ("max_pool", [TIES], {"kernel": [2, 2]}), ("max_pool", [TIES], {"kernel": [3, 3], "stride": [1, 1]}),
    ("avg_pool", [(2, 3, 6)], {"kernel": [2]}),
    ("avg_pool", [(2, 3, 5, 6)], {"kernel": [3, 2], "stride": [2, 1], "padding": [1, 1, 1, 1]}),
    ("avg_pool", [(2, 5, 6)],
     {"kernel": [3, 2], "stride": [2, 1], "padding": [1, 1, 0, 0], "count_include_pad": 0}),
    *[("max_pool", [(2, 5, 6)], {"kernel": k, "stride": s, "padding": p, "ceil_mode": 1})
      for k, s, p in [([2, 3], [2, 2], [0] * 4), ([3, 2], [3, 4], [1, 1, 1, 1]), ([6, 5], [4, 3], [0] * 4)]],
    *[("avg_pool", [(2, 5, 6)], {"kernel": k, "stride": s, "padding": p, "ceil_mode": 1, **counted})
      for k, s, p in [([2, 3], [2, 2], [0] * 4), ([3, 2], [3, 4], [1, 1, 1, 1]), ([3, 3], [3, 2], [1, 1, 1, 1])]
      for counted in ({}, {"count_include_pad": 0})],
    *[("adaptive_avg_pool", [(2, 3, 7)], {"size": [n]}) for n in (1, 3, 10)],
    ("adaptive_avg_pool", [(2, 5, 7)], {"size": [2, 4]}),
]
