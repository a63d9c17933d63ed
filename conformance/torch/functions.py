"""PyTorch's answers for functions of floats, rounding and remainders."""
import torch

from common import PAIRS

UNARY = {"sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh, "erf": torch.erf, "log1p": torch.log1p,
         "expm1": torch.expm1, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc,
         "round": torch.round, "neg": torch.neg, "abs": torch.abs, "sign": torch.sign,
         "square": torch.square, "reciprocal": torch.reciprocal, "rsqrt": torch.rsqrt,
         "isfinite": torch.isfinite, "isnan": torch.isnan, "isinf": torch.isinf}
BINARY = {"power": torch.pow, "mod": torch.remainder, "maximum": torch.maximum, "minimum": torch.minimum}


def unary(f):
    return lambda x, a: [f(x[0])]


def binary(f):
    return lambda x, a: [f(x[0], x[1])]


ANSWERS = {**{op: unary(f) for op, f in UNARY.items()}, **{op: binary(f) for op, f in BINARY.items()}}

POSITIVE = ("log1p", "reciprocal", "rsqrt")
NEAR_0 = [1e-3, -1e-6, 2.0 ** -40, -2.0 ** -70, 0.0]
TIES = [0.5, 1.5, -0.5, -1.5, 2.5, -2.5, 3.25, -7.0]

CASES = [
    *[(op, [("positive", (3, 5)) if op in POSITIVE else (3, 5)], {}) for op in UNARY],
    *[(op, [("same", NEAR_0)], {}) for op in ("log1p", "expm1", "sin", "tanh", "erf")],
    *[(op, [("same", TIES)], {}) for op in ("floor", "ceil", "trunc", "round")],
    *[(op, [("same", [-2.0, 0.0, 3.0])], {}) for op in ("abs", "sign")],
    *[(op, [("i32", [-3, 0, 7, 2147483647, -2147483648])], {}) for op in ("neg", "abs", "sign", "square")],
    *[("power", [("positive", s), t], {}) for s, t in PAIRS],
    ("power", [("same", [0.0, 0.0, 0.0, 2.0]), ("same", [2.0, 1.0, 0.0, 0.0])], {}),
    *[("mod", [s, ("positive", t)], {}) for s, t in PAIRS],
    ("mod", [("same", [5.5, -5.5, 5.5, -5.5]), ("same", [2.0, 2.0, -2.0, -2.0])], {}),
    ("mod", [("i32", [7, -7, 7, -7, -2147483648]), ("i32", [3, 3, -3, -3, -1])], {}),
    *[(op, [s, t], {}) for op in ("maximum", "minimum") for s, t in PAIRS],
    *[(op, [("same", [1.0, 2.0, 3.0]), ("same", [1.0, 5.0, -3.0])], {}) for op in ("maximum", "minimum")],
]
