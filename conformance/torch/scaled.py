"""PyTorch's answers for products of 8-bit numbers with scales."""
import torch

from common import DTYPES


def scaled_matmul(x, a):
    left, right, left_scale, right_scale = (t.detach() for t in x[:4])
    if left.dtype == torch.int8:
        y = torch._int_mm(left, right.t()) * left_scale.reshape(-1, 1) * right_scale
        return [(y + x[4].detach() if len(x) > 4 else y).to(DTYPES[a["dtype"]])]
    if left_scale.dim() or right_scale.dim():  # PyTorch wants both of rows, or none
        left_scale = left_scale.reshape(-1, 1).expand(left.shape[0], 1).contiguous()
        right_scale = right_scale.reshape(1, -1).expand(1, right.shape[0]).contiguous()
    y = torch._scaled_mm(left, right.t(), left_scale, right_scale, out_dtype=DTYPES[a["dtype"]])
    return [y + x[4].detach() if len(x) > 4 else y]


ANSWERS = {"scaled_matmul": scaled_matmul}


def matrix(dtype, rows, columns, first):
    """Numbers that the type has, of both signs, and a few bits each."""
    return (dtype, [[((first + 7 * r + 5 * c) % 15 - 7) * 2.0 ** ((first + r + 3 * c) % 5 - 3) for c in range(columns)]
                    for r in range(rows)])


def integers(rows, columns, first):
    """From -128 to 127."""
    return ("i8", [[(first + 37 * r + 91 * c) % 256 - 128 for c in range(columns)] for r in range(rows)])


def scales(n):
    return ("f32", [0.125 + 0.37 * i for i in range(n)])


ONE, HALF = ("f32", 1.0), ("f32", 0.5)
CASES = [
    ("scaled_matmul", [matrix("f8e4m3", 3, 16, 1), matrix("f8e4m3", 16, 16, 2), ONE, HALF], {"dtype": "f32"}),
    ("scaled_matmul", [matrix("f8e4m3", 3, 16, 3), matrix("f8e5m2", 16, 16, 4), scales(3), scales(16)], {"dtype": "f32"}),
    ("scaled_matmul", [matrix("f8e4m3", 3, 16, 5), matrix("f8e4m3", 16, 16, 6), ("f32", 0.75), scales(16),
                       ("f32", [0.5 * i - 3 for i in range(16)])], {"dtype": "f32"}),
    ("scaled_matmul", [matrix("f8e5m2", 3, 16, 7), matrix("f8e4m3", 16, 16, 8), scales(3), HALF], {"dtype": "bf16"}),
    ("scaled_matmul", [integers(3, 16, 0), integers(5, 16, 9), HALF, scales(5)], {"dtype": "f32"}),
    ("scaled_matmul", [integers(3, 19, 1), integers(6, 19, 3), scales(3), scales(6), ("f32", [0.5 * i - 3 for i in range(6)])], {"dtype": "f32"}),
]
