"""FX graphs of ATen ops as the graphs that Weft imports (docs/import.md has the format)."""

import os
import re
from operator import getitem

import torch

from .dims import Unsupported

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
# Checks, which make no tensor: a program checks its inputs and the bounds of symbols itself.
CHECKS = ("_assert", "sym_constrain_range", "_check")


def value_of(node):
    """What torch knows of a node's result: a fake tensor, several, or a number."""
    value = node.meta.get("val", node.meta.get("example_value"))
    if value is None and node.op == "call_function" and node.target is getitem:
        whole = value_of(node.args[0])
        return None if whole is None else whole[node.args[1]]
    return value


def is_tensor(node):
    return isinstance(value_of(node), torch.Tensor)


def tensors_of(node):
    """A node's results as a list, with None for those that it does not make."""
    value = value_of(node)
    return list(value) if isinstance(value, (list, tuple)) else [value]


def results_read(node):
    """The numbers of the results that another node reads; all of one list."""
    value = value_of(node)
    if not isinstance(value, (list, tuple)):
        return {0}
    if len(node.target._schema.returns) == 1:
        return set(range(len(value)))
    return {user.args[1] for user in node.users if is_item(user)}


def is_item(node):
    """Does the node pick a result of a node that has several tensors?"""
    return node.op == "call_function" and node.target is getitem and not is_number(node.args[0])


def is_number(node):
    """Is the result a number of Python's, which a program holds in the sizes and arguments of others?"""
    return isinstance(value_of(node), (bool, int, float, *SYMBOLIC))


def is_float(node):
    """Is the result a number of Python's that sizes decide, such as 1 / x.shape[0]? A program reads it as a tensor without axes."""
    return isinstance(value_of(node), torch.SymFloat)


def is_input(node):
    """Can a program read the result?"""
    return is_tensor(node) or is_float(node)


def is_symbol(node, symbol):
    """Is the result the value of this symbol?"""
    value = value_of(node)
    return isinstance(value, torch.SymInt) and value.node.expr == symbol


def op_name(node):
    """aten.add.Tensor, or the name of what else a node calls."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return f"{target.namespace}.{target._schema.name.partition('::')[2]}.{target._overloadname}"
    return getattr(target, "__name__", None) or str(target)


TORCH = os.path.dirname(torch.__file__) + os.sep


def line_of(node):
    """The line of the user's program that the node is from, as "model.py:12"; empty where PyTorch does not know."""
    found = re.findall(r'File "(.+)", line (\d+)', node.meta.get("stack_trace") or "")
    own = [place for place in found if not place[0].startswith(TORCH)]  # layers of PyTorch's are called from there
    return ":".join((own or found)[-1]) if found else ""


def writes(node):
    """Does the node change one of its operands? Autograd's graphs have no such nodes."""
    schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
    return schema is not None and any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)


def is_check(node):
    return node.op == "call_function" and op_name(node).removeprefix("aten.").startswith(CHECKS)


class Writer:
    """Writes `nodes`, with their sizes in the words of `dims`."""

    def __init__(self, dims, nodes):
        self.dims, self.inside = dims, set(nodes)

    def tensor(self, name, value):
        if value.layout is not torch.strided:
            raise Unsupported(f"'{name}' is not dense: {value.layout}")
        return {"name": name, "shape": self.dims.shape(value), "dtype": str(value.dtype).removeprefix("torch.")}

    def input(self, node, name=None):
        """What a program is given."""
        if is_float(node):
            return {"name": name or node.name, "shape": [], "dtype": "float64"}
        return self.tensor(name or node.name, value_of(node))

    def read(self, node):
        """A tensor where it is read: its type, and the node that makes it."""
        if is_float(node):
            return self.input(node)
        maker, place = node.args if is_item(node) else (node, 0)
        out = self.tensor(node.name, value_of(node))
        return out | ({"producer_node": maker.name, "producer_output_idx": place} if maker in self.inside else {})

    def node(self, node):
        """One call of an op of ATen."""
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Unsupported(f"{op_name(node)} is no op of ATen")
        out = {"name": node.name, "op_type": op_name(node), "inputs": [], "outputs": [], "attrs": {}}
        for name, kind, value in arguments(node):
            self._argument(out, name, kind, value)
        read = results_read(node)
        for i, value in enumerate(tensors_of(node)):
            if isinstance(value, torch.Tensor) and i in read:
                out["outputs"].append(self.tensor(node.name if i == 0 else f"{node.name}.{i}", value))
            elif node.target._schema.returns:
                out["outputs"].append(None)
        return out

    def _argument(self, out, name, kind, value):
        if is_list_of_tensors(kind):
            for place, item in enumerate(value or []):
                if item is not None:
                    out["inputs"].append(self.read(item) | {"arg": name, "place": place})
        elif isinstance(value, torch.fx.Node) and (is_tensor(value) or is_float(value) and isinstance(kind, torch.TensorType)):
            out["inputs"].append(self.read(value) | {"arg": name})
        elif value is not None:
            out["attrs"][name] = self.plain(value)

    def plain(self, value):
        """An argument that is no tensor, as JSON has it."""
        if isinstance(value, torch.fx.Node):
            value = value_of(value)
        if isinstance(value, (list, tuple)):
            return [self.plain(v) for v in value]
        if isinstance(value, torch.SymInt):
            size = self.dims.text(value)
            return size if isinstance(size, int) else {"dim": size}
        if isinstance(value, SYMBOLIC):
            raise Unsupported(f"an argument that is a {type(value).__name__}")
        if isinstance(value, complex):
            raise Unsupported("a complex number")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
            return str(value)
        raise Unsupported(f"an argument that is a {type(value).__name__}")


def is_list_of_tensors(kind):
    return isinstance(kind, torch.ListType) and "Tensor" in str(kind)


def arguments(node):
    """(name, kind, value) of each parameter of the op's schema, with its defaults."""
    given = list(node.args)
    for i, parameter in enumerate(node.target._schema.arguments):
        if i < len(given) and not parameter.kwarg_only:
            yield parameter.name, parameter.type, given[i]
        elif parameter.name in node.kwargs:
            yield parameter.name, parameter.type, node.kwargs[parameter.name]
        elif parameter.has_default_value():
            yield parameter.name, parameter.type, parameter.default_value


def write(name, dims, inputs, nodes, outputs, weights=None):
    """A whole graph. `inputs`: nodes; `outputs`: (name, node); `weights`: placeholder -> (name, tensor)."""
    writer, weights = Writer(dims, nodes), weights or {}
    dims.limit(v.shape for n in [*inputs, *nodes] for v in tensors_of(n) if isinstance(v, torch.Tensor))
    graph = {
        "model_name": name,
        "pytorch_version": torch.__version__,
        "graph_inputs": [writer.input(n) for n in inputs],
        "graph_outputs": [writer.read(n) | {"name": as_name} for as_name, n in outputs],
        "weights": [writer.tensor(n, t) for n, t in dict(weights.values()).items()],
        "weight_name_mapping": {p: n for p, (n, _) in weights.items()},
        "nodes": [writer.node(n) for n in nodes],
    }
    symbols = dims.symbols()
    return graph | ({"symbols": symbols} if symbols else {})
