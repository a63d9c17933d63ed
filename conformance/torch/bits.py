"""PyTorch's answers for comparisons, logic and bits."""
import torch

from common import PAIRS

COMPARISONS = {"not_equal": torch.ne, "less_equal": torch.le, "greater": torch.gt, "greater_equal": torch.ge}
LOGIC = {"logical_and": torch.logical_and, "logical_or": torch.logical_or, "logical_xor": torch.logical_xor}
BITS = {"bit_and": torch.bitwise_and, "bit_or": torch.bitwise_or, "bit_xor": torch.bitwise_xor}
SHIFTS = {"shift_left": torch.bitwise_left_shift, "shift_right": torch.bitwise_right_shift}


def binary(f):
    return lambda x, a: [f(x[0], x[1])]


ANSWERS = {op: binary(f) for family in (COMPARISONS, LOGIC, BITS, SHIFTS) for op, f in family.items()}
ANSWERS["logical_not"] = lambda x, a: [torch.logical_not(x[0])]

TRUTH = [("bool", [True, True, False, False]), ("bool", [True, False, True, False])]
WORDS = [0x0f0f0f0f, -1, 5, 2147483647, -2147483648, 12, 0]
MASKS = [0x00ffff00, 3, -1, 12345, -1, 10, -1]
VALUES = [5, -5, 5, -5, 5, -5, 2147483647, -2147483648]
AMOUNTS = [3, 3, 31, 31, 40, 40, 1, 1]

CASES = [
    *[(op, [s, t], {}) for op in COMPARISONS for s, t in PAIRS[:2]],
    *[(op, [("same", [1.0, 2.0, 3.0]), ("same", [1.0, 5.0, -3.0])], {}) for op in COMPARISONS],
    *[(op, TRUTH, {}) for op in LOGIC], ("logical_not", TRUTH[:1], {}),
    *[(op, TRUTH, {}) for op in BITS],
    *[(op, [(t, WORDS), (t, MASKS)], {}) for op in BITS for t in ("i32", "i64")],
    *[(op, [(t, VALUES), (t, AMOUNTS)], {}) for op in SHIFTS for t in ("i32", "i64")],
]
