"""PyTorch's answers for activations, clamp, mse and layers of a matrix."""
import torch
from torch.nn import functional


def gelu_grad(x, a):
    how = "tanh" if a.get("approximate") else "none"
    return [torch.ops.aten.gelu_backward(x[1], x[0], approximate=how)]


ANSWERS = {
    "gelu_grad": gelu_grad,
    "gelu": lambda x, a: [functional.gelu(x[0], approximate="tanh" if a.get("approximate") else "none")],
    "silu": lambda x, a: [functional.silu(x[0])],
    "sigmoid": lambda x, a: [torch.sigmoid(x[0])],
    "softplus": lambda x, a: [functional.softplus(x[0], beta=a.get("beta", 1.0), threshold=1e9)],
    "leaky_relu": lambda x, a: [functional.leaky_relu(x[0], a.get("slope", 0.01))],
    "clamp": lambda x, a: [torch.clamp(x[0], a.get("min"), a.get("max")).to(x[0].dtype)],
    "mse": lambda x, a: [functional.mse_loss(x[0], x[1])],
    "linear": lambda x, a: [functional.linear(*x)],
    "matmul2d": lambda x, a: [torch.mm(x[0], x[1])],
}

TAILS = ("same", [-30.0, -12.0, -6.0, 0.0, 6.0, 12.0, 30.0])

CASES = [
    *[(op, [s], {}) for op in ("gelu", "silu", "sigmoid", "softplus") for s in ((3, 5), TAILS)],
    ("gelu", [(3, 5)], {"approximate": 1}), ("gelu", [TAILS], {"approximate": 1}),
    *[("gelu_grad", [s, s], a) for s in ((3, 5), TAILS) for a in ({}, {"approximate": 1})],
    ("softplus", [(3, 5)], {"beta": 2.5}),
    ("leaky_relu", [(3, 5)], {}), ("leaky_relu", [(3, 5)], {"slope": 0.25}), ("leaky_relu", [TAILS], {}),
    ("clamp", [(3, 5)], {"min": -0.5, "max": 1.25}), ("clamp", [(3, 5)], {"min": 0.1}), ("clamp", [TAILS], {"max": 6.0}),
    ("clamp", [("i32", [-7, -3, 0, 4, 9])], {"min": -3.0, "max": 4.0}),
    ("mse", [(3, 5), (3, 5)], {}), ("mse", [(2, 3, 4), (2, 3, 4)], {}),
    ("linear", [(5, 7), (6, 7), (6,)], {}), ("linear", [(2, 3, 7), (6, 7)], {}), ("linear", [(7,), (6, 7), (6,)], {}),
    ("matmul2d", [(4, 7), (7, 3)], {}),
]
