"""A PyTorch model as model_ir.json, by PyPI's pytorch-ir: what `weft compile` imports.

    export(model, inputs, dynamic_shapes=None) -> dict, for json.dump

Beside what pytorch-ir does: exports without gradients, so that blocks of torch.no_grad() stay part of the graph; writes dtypes and
devices as texts, which its own save() can't; keeps sizes that are symbols (torch.export's dynamic_shapes), with their ranges, also where
they are arguments, which pytorch-ir leaves out; and says for which parameter each tensor is, since of (x, None, bias) the order does not
tell.
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


def value_of(argument):
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def arguments(node):
    """(name, argument) of each parameter of the op's schema that is given."""
    parameters = node.target._schema.arguments
    yield from zip((p.name for p in parameters), node.args)
    yield from node.kwargs.items()


def say_parameters(node, of):
    """Completes what the file says of a call: `of`, its entry."""
    tensors = []
    for name, argument in arguments(node):
        value = value_of(argument)
        if isinstance(value, torch.Tensor):
            tensors.append({"arg": name})
        elif isinstance(value, (list, tuple)) and any(isinstance(value_of(v), torch.Tensor) for v in value):
            tensors += [{"arg": name, "place": i} for i, v in enumerate(value) if v is not None]
        elif isinstance(value, torch.SymInt):
            of["attrs"][name] = {"dim": str(value)}
        elif isinstance(value, (list, tuple)) and any(isinstance(value_of(v), torch.SymInt) for v in value):
            if of["attrs"].get(name) is None:
                of["attrs"][name] = [{"dim": str(v)} if isinstance(v, torch.SymInt) else v for v in map(value_of, value)]
        elif isinstance(value, (torch.SymFloat, torch.SymBool)):
            raise ValueError(f"node '{node.name}', {node.target}: '{name}' is {value}, which depends on sizes and is no integer")
    if len(tensors) == len(of["inputs"]):
        for tensor, says in zip(of["inputs"], tensors):
            tensor.update(says)


def export(model, inputs, dynamic_shapes=None):
    with torch.no_grad():
        program = torch.export.export(model.eval(), inputs, dynamic_shapes=dynamic_shapes)
    converter._validate_static_shapes = lambda exported: None
    ir = torch_ir.convert_exported_program(program, model_name=type(model).__name__)
    ir.constants = {k: v for k, v in (program.constants or {}).items() if isinstance(v, torch.Tensor)}
    out = plain(ir.to_dict())
    calls = {n.name: n for n in program.graph.nodes if isinstance(n.target, torch._ops.OpOverload)}
    for of in out["nodes"]:
        if of["name"] in calls:
            say_parameters(calls[of["name"]], of)
    if dynamic_shapes:
        out["symbols"] = symbols(program)
    return out
