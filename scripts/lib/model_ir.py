"""A PyTorch model as model_ir.json, by PyPI's pytorch-ir: what `weft compile` imports.

    export(model, inputs, dynamic_shapes=None) -> dict, for json.dump

Beside what pytorch-ir does: exports without gradients, so that blocks of torch.no_grad() stay part of the graph; writes dtypes and
devices as texts, which its own save() can't; and keeps sizes that are symbols (torch.export's dynamic_shapes), with their ranges.
"""
import torch
import torch_ir
from torch_ir import converter

MOST = 1 << 20  # of a symbol without an upper bound


def plain(value):
    """A value that JSON has: dtypes, devices, layouts and sizes that are symbols as texts."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def symbols(program):
    ranges = {}
    for symbol, bounds in program.range_constraints.items():
        most = int(bounds.upper) if bounds.upper.is_Integer else MOST
        ranges[str(symbol)] = [max(0, int(bounds.lower)), min(most, MOST)]
    return ranges


def export(model, inputs, dynamic_shapes=None):
    with torch.no_grad():
        program = torch.export.export(model.eval(), inputs, dynamic_shapes=dynamic_shapes)
    converter._validate_static_shapes = lambda exported: None
    ir = torch_ir.convert_exported_program(program, model_name=type(model).__name__)
    ir.constants = {k: v for k, v in (program.constants or {}).items() if isinstance(v, torch.Tensor)}
    out = plain(ir.to_dict())
    if dynamic_shapes:
        out["symbols"] = symbols(program)
    return out
