"""A part of an FX graph as a program of Weft's that is called with PyTorch's tensors."""

import json
import re

import torch

from .. import _weft
from . import graph


class Part:
    """The call of a part: takes and gives what its FX graph does, without copying.

    Tensors that lie in memory in another order than that of their axes are taken and given as they lie, so results have the
    strides that PyTorch's own would have.
    """

    def __init__(self, module, dims, brought, backend, name):
        """`brought`: symbols whose values are inputs of the module."""
        nodes = list(module.graph.nodes)
        placeholders = [n for n in nodes if n.op == "placeholder"]
        results = list(next(n for n in nodes if n.op == "output").args[0])
        calls = [n for n in nodes if n.op == "call_function" and not graph.is_item(n) and not graph.is_number(n)]
        inputs = [n for n in placeholders if graph.is_input(n)]
        whole = graph.write(name, dims, inputs, calls, [(f"out{i}", n) for i, n in enumerate(results)])
        given = [n for n in placeholders if graph.is_input(n) or any(graph.is_symbol(n, s) for s in brought)]
        self._places = [placeholders.index(n) for n in given]
        orders = [_take(whole, n, dims, i) for i, n in enumerate(given)]
        gives = [_give_as_it_lies(whole, i, n) for i, n in enumerate(results)]
        self._all = self._places == list(range(len(placeholders)))
        self._bounds = [[dims.bounds(n.node.expr) if isinstance(n, torch.SymInt) and n.node.expr.is_Symbol else None
                         for n in (graph.value_of(g).shape if graph.is_tensor(g) else [graph.value_of(g)])] for g in given]
        whole["symbols"] = dims.symbols()
        self._lines = {n.name: line for n in calls if (line := graph.line_of(n))}
        try:
            self._part = _weft.AtenPart(json.dumps(whole), orders, gives, backend, name)
        except _weft.Error as e:
            self._add_lines(e)
            raise

    def __call__(self, *args):
        args = list(args) if self._all else [args[i] for i in self._places]
        try:
            return self._part.run(args)
        except _weft.Error as e:
            self._add_lines(e)
            raise

    def _add_lines(self, error):
        """Nodes are called as in the FX graph; where they are from is added as weft.compile()'s errors have it."""
        text = re.sub(r'node "(\w+)[^"]*"', lambda m: m[0] + (f", from {self._lines[m[1]]}" if m[1] in self._lines else ""), str(error))
        error.args = (text,)

    def takes(self, *args):
        """Are all sizes within the bounds of the program's symbols?"""
        for place, bounds in zip(self._places, self._bounds):
            sizes = args[place].shape if isinstance(args[place], torch.Tensor) else [args[place]]
            if any(b and not b[0] <= n <= b[1] for n, b in zip(sizes, bounds)):
                return False
        return True


def order_of(value):
    """The axes of a dense tensor by falling strides; [] where that is their own order, or none."""
    sizes, strides = [_hint(n) for n in value.shape], [_hint(n) for n in value.stride()]
    if None in sizes or None in strides or 0 in sizes:
        return []
    axes = sorted(range(len(sizes)), key=lambda i: (-strides[i], i))
    return [] if axes == sorted(axes) or in_rows(sizes, strides) or not in_rows(
        [sizes[i] for i in axes], [strides[i] for i in axes]) else axes


def in_rows(sizes, strides):
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _hint(n):
    """A size, or the one that a symbol stood for when the graph was made."""
    if isinstance(n, int):
        return n
    return n.node.hint if n.node.has_hint() else None


def _take(whole, node, dims, place):
    """The order of the axes in which an input is given."""
    if graph.is_float(node):
        return []
    return _take_as_it_lies(whole, node) if graph.is_tensor(node) else _take_size(whole, node, dims, place)


def _take_size(whole, node, dims, place):
    """An input without elements, one of whose sizes is the symbol."""
    name = dims.text(graph.value_of(node))
    whole["graph_inputs"].insert(place, {"name": node.name, "shape": [name, 0], "dtype": "bool"})
    return []


def _take_as_it_lies(whole, node):
    """The input in the order of its memory, and a node that turns it into what the others read."""
    order = order_of(graph.value_of(node))
    if order:
        there = next(i for i in whole["graph_inputs"] if i["name"] == node.name)
        read = dict(there)
        there |= {"name": f"{node.name}.memory", "shape": [there["shape"][i] for i in order]}
        back = [order.index(i) for i in range(len(order))]
        whole["nodes"].insert(0, _permute(node.name, {k: there[k] for k in read}, read, back))
    return order


def _give_as_it_lies(whole, place, node):
    order = order_of(graph.value_of(node))
    if order:
        read = whole["graph_outputs"][place]
        made = {"name": f"{read['name']}.memory", "shape": [read["shape"][i] for i in order], "dtype": read["dtype"]}
        whole["nodes"].append(_permute(made["name"], read, made, order))
        whole["graph_outputs"][place] = made | {"producer_node": made["name"], "producer_output_idx": 0}
    return order


def _permute(name, read, made, dims):
    return {"name": name, "op_type": "aten.permute.default", "inputs": [read | {"arg": "self"}], "outputs": [made],
            "attrs": {"dims": dims}}
