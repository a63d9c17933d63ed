"""What the families share: dtypes by name, and PyTorch functions over axes."""
import torch

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "i32": torch.int32, "i64": torch.int64, "u32": torch.uint32, "u64": torch.uint64,
          "bool": torch.bool, "i8": torch.int8, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
NAMES = {t: name for name, t in DTYPES.items()}

# Shapes of two operands that broadcast together.
PAIRS = [((3, 5), (3, 5)), ((2, 1, 4), (3, 1)), ((), (4,))]


def over_axes(f):
    def answer(x, a):
        axes = list(a.get("axes", [])) or list(range(x[0].dim()))
        return [f(x[0], axes, bool(a.get("keep", 0))) if axes else x[0].clone()]
    return answer
