"""weft.export: a PyTorch model as a program, by torch.export."""

import json
import os
import warnings

import torch
from torch.export.graph_signature import InputKind, OutputKind

from .. import _weft
from ..program import ProgramFile, load
from . import graph
from .dims import Dims, Unsupported


def exported_graph(module, args, kwargs=None, dynamic_shapes=None, name=None):
    """The ATen graph of a model, as JSON has it, and its weights by name.

    The graph is the one that torch.export makes, without decompositions, gradients or autocast. A buffer that the model
    writes to is a state. Weights that are one tensor under several names are one.
    """
    with torch.no_grad():
        program = torch.export.export(module, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)
        if _has_bodies(program):
            program = program.run_decompositions({})
    return graph_of(program, name or type(module).__name__, args, kwargs, dynamic_shapes)


def graph_of(program, name, args=(), kwargs=None, dynamic_shapes=None):
    """The same of a torch.export.ExportedProgram."""
    placeholders = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    inputs, weights = _inputs(program, placeholders)
    dims = Dims(program.range_constraints, _names(inputs, args, kwargs, dynamic_shapes))
    nodes, refused = [], []
    for node in program.graph.nodes:
        if node.op == "call_function" and not _does_nothing(node):
            if not isinstance(node.target, torch._ops.OpOverload):
                refused.append(f"{node.name}: {graph.op_name(node)} is no op of ATen")
            nodes.append(node)
    refused += [f"{node.name}: it writes to the input '{name}', which a program does not change; return the new value, or make it a buffer"
                for node, name in _writes_to_inputs(nodes, set(inputs))]
    if refused:
        raise Unsupported(f"{name} can't be exported:\n  " + "\n  ".join(refused))
    outputs, updates = _outputs(program)
    inputs = [n for n in inputs if graph.is_tensor(n)]
    out = graph.write(name, dims, inputs, nodes, outputs, weights)
    out["nodes"] += [_update(out, buffer, node, weights, dims) for buffer, node in updates]
    return out, {n: t.detach() for n, t in weights.values()}


def _has_bodies(program):
    """Blocks with a body of their own, such as autocast's, which only decompositions resolve."""
    return any(isinstance(n.target, torch._ops.HigherOrderOperator) for n in program.graph.nodes if n.op == "call_function")


def _does_nothing(node):
    return graph.is_check(node) or graph.is_item(node) or graph.is_number(node)


def _inputs(program, placeholders):
    """The inputs that the user gives, and placeholder -> (name, tensor) of weights."""
    held = dict(program.state_dict) | {k: v for k, v in program.constants.items() if isinstance(v, torch.Tensor)}
    inputs, weights, by_memory = [], {}, {}
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            if spec.arg.name in placeholders:
                inputs.append(placeholders[spec.arg.name])
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            tensor = held[spec.target]
            first = by_memory.setdefault(_place(tensor), spec.target)
            weights[spec.arg.name] = (first, held[first])
        else:
            raise Unsupported(f"'{spec.target}' is an input of the kind {spec.kind.name}")
    return inputs, weights


def _place(t):
    """Equal for tensors that are one. Empty ones have no memory to tell by."""
    return (t.data_ptr(), t.dtype, tuple(t.shape), t.stride()) if t.numel() else id(t)


def _outputs(program):
    """(name, node) of the results, and (buffer, node) of buffers that a functional graph returns anew."""
    results = next(n for n in program.graph.nodes if n.op == "output").args[0]
    outputs, updates, left = [], [], []
    for place, (spec, node) in enumerate(zip(program.graph_signature.output_specs, results, strict=True)):
        if not isinstance(node, torch.fx.Node) or not graph.is_tensor(node):
            if node is not None:
                left.append(f"result {place} is {graph.value_of(node) if isinstance(node, torch.fx.Node) else repr(node)}")
            continue
        if spec.kind == OutputKind.BUFFER_MUTATION:
            updates.append((spec.target, node))
        elif spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
            outputs.append((node.name, node))  # the importer numbers names that it has seen before
        else:
            raise Unsupported(f"an output of the kind {spec.kind.name}")
    if left:
        warnings.warn(f"weft.export: a program returns tensors only, and leaves out: {'; '.join(left)}", RuntimeWarning, stacklevel=6)
    return outputs, updates


def _writes_to_inputs(nodes, inputs):
    """(node, input) of writes to what the user gives, or to a view of it."""
    for node in nodes:
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        written = {a.name for a in node.target._schema.arguments if a.alias_info is not None and a.alias_info.is_write}
        for name, _, value in graph.arguments(node):
            if name in written and _base(value) in inputs:
                yield node, _base(value).name


def _base(node):
    """What a node is a view of, or returns once it is written to."""
    while isinstance(node, torch.fx.Node) and node.op == "call_function":
        returns = node.target._schema.returns if isinstance(node.target, torch._ops.OpOverload) else []
        if not graph.is_item(node) and all(r.alias_info is None for r in returns):
            break
        node = node.args[0]
    return node


def _update(out, buffer, node, weights, dims):
    """buffer.copy_(node), which makes the buffer a state."""
    placeholder = next(p for p, (n, _) in weights.items() if n == buffer)
    writer = graph.Writer(dims, [node])
    held = next(w for w in out["weights"] if w["name"] == weights[placeholder][0]) | {"name": placeholder}
    return {"name": f"update_{placeholder}", "op_type": "aten.copy_.default", "attrs": {},
            "inputs": [held | {"arg": "self"}, writer.read(node) | {"arg": "src"}], "outputs": [held]}


def _names(inputs, args, kwargs, dynamic_shapes):
    """sympy symbol -> the name of the torch.export.Dim that the user gave it."""
    if not dynamic_shapes:
        return {}
    names, taken = {}, set()
    leaves = _leaves([*args, *(kwargs or {}).values()], _listed(dynamic_shapes, args, kwargs))
    for node, (leaf, spec) in zip(inputs, leaves):
        if not isinstance(leaf, torch.Tensor) or spec is None:
            continue
        for axis, dim in spec.items() if isinstance(spec, dict) else enumerate(spec):
            size = graph.value_of(node).shape[axis]
            name = getattr(dim, "__name__", None)
            if name and isinstance(size, torch.SymInt) and size.node.expr.is_Symbol and name not in taken and name != "max":
                taken.add(name) if names.setdefault(size.node.expr, name) == name else None
    return names


def _listed(specs, args, kwargs):
    if isinstance(specs, dict):  # by the names of the parameters, in the order of the call
        return list(specs.values())
    return list(specs) + [None] * (len(args) + len(kwargs or {}) - len(specs))


def _leaves(value, spec):
    """(leaf, its spec) in the order in which torch.export flattens."""
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _leaves(item, spec[i] if isinstance(spec, (list, tuple)) and i < len(spec) else None)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, spec.get(key) if isinstance(spec, dict) else None)
    else:
        yield value, spec


def export(module, args, kwargs=None, dynamic_shapes=None, *, path=None, name=None, backend=""):
    """weft.export()."""
    name = name or type(module).__name__
    whole, weights = exported_graph(module, args, kwargs, dynamic_shapes, name)
    text, weights = json.dumps(whole).encode(), {n: _weft.from_dlpack(t.contiguous()) for n, t in weights.items()}
    if path is None:
        return ProgramFile(_weft.import_aten(text, weights, name, backend=backend))
    inputs = [x for x in torch.utils._pytree.tree_leaves((tuple(args), kwargs or {})) if isinstance(x, torch.Tensor)]
    for note in _weft._write_aten(text, weights, name, os.fspath(path), [_weft.from_dlpack(x.detach().contiguous()) for x in inputs]):
        warnings.warn(f"weft.export: {note}", RuntimeWarning, stacklevel=3)
    return load(path, backend)
