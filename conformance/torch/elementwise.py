"""PyTorch's answers for elementwise ops."""
import torch

from common import DTYPES, PAIRS


def full(x, a):
    value = a.get("value", 0.0) * a.get("times", [1])[0]
    return [torch.full(a.get("shape", []), value, dtype=DTYPES[a.get("dtype", "f32")])]


ANSWERS = {
    "add": lambda x, a: [torch.add(x[0], x[1])],
    "sub": lambda x, a: [torch.sub(x[0], x[1])],
    "mul": lambda x, a: [torch.mul(x[0], x[1])],
    "div": lambda x, a: [torch.div(x[0], x[1])],
    "less": lambda x, a: [torch.lt(x[0], x[1])],
    "equal": lambda x, a: [torch.eq(x[0], x[1])],
    "where": lambda x, a: [torch.where(x[0], x[1], x[2])],
    "exp": lambda x, a: [torch.exp(x[0])],
    "log": lambda x, a: [torch.log(x[0])],
    "sqrt": lambda x, a: [torch.sqrt(x[0])],
    "relu": lambda x, a: [torch.relu(x[0])],
    "cast": lambda x, a: [x[0].to(DTYPES[a["dtype"]])],
    "full": full,
}

CASES = [
    *[(op, [s, t], {}) for op in ("add", "sub", "mul") for s, t in PAIRS],
    *[("div", [s, ("positive", t)], {}) for s, t in PAIRS],
    *[(op, [s, t], {}) for op in ("less", "equal") for s, t in PAIRS[:2]],
    ("equal", [("same", [1.0, 2.0, 3.0]), ("same", [1.0, 5.0, 3.0])], {}),
    ("where", [("bool", [[True], [False], [True]]), (3, 4), (4,)], {}),
    ("exp", [(3, 5)], {}), ("exp", [()], {}),
    ("log", [("positive", (3, 5))], {}), ("sqrt", [("positive", (3, 5))], {}),
    ("relu", [(3, 5)], {}), ("relu", [("same", [0.0, -1.0, 2.0])], {}),
    *[("cast", [(3, 4)], {"dtype": t}) for t in ("f64", "f32", "f16", "bf16", "i32", "i64", "bool")],
    ("full", [], {"value": 0.1, "shape": [2, 3], "dtype": "f32"}),
    ("full", [], {"value": 2.5, "shape": [3], "dtype": "f64", "times": [7]}),
    ("full", [], {"value": -3.0, "shape": [2], "dtype": "i32"}),
]
