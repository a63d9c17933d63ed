"""Which nodes of an FX graph Weft imports, and why it does not import the others."""

import functools
import json
import re

import torch

from . import graph
from .dims import Unsupported

MOST_KNOWN = 4096


class Support:
    """Asks the importer about each node by itself: what it says is what it does with the whole graph.

    `check` takes a graph's JSON and returns why it can't be imported, or None.
    """

    def __init__(self, dims, check):
        self._dims, self._check = dims, check
        self.refused = {}  # node -> why

    def __call__(self, node):
        """Is the node one that Weft computes?"""
        if node.op != "call_function" or graph.is_check(node) or graph.is_number(node):
            return False
        if graph.is_item(node):
            return self(node.args[0])
        if node not in self.refused:
            self.refused[node] = self._why(node)
        return self.refused[node] is None

    def accepted(self):
        """How many nodes are Weft's."""
        return sum(why is None for why in self.refused.values())

    def reasons(self):
        """(node, why) of all that were refused."""
        return [(n, why) for n, why in self.refused.items() if why]

    def _why(self, node):
        if not isinstance(node.target, torch._ops.OpOverload):
            return "it is no op of ATen"
        values = [*graph.tensors_of(node), *map(graph.value_of, node.all_input_nodes)]
        if not any(isinstance(v, torch.Tensor) for v in graph.tensors_of(node)):
            return "it makes no tensor"
        for v in values:
            if isinstance(v, torch.Tensor) and v.device.type != "cpu":
                return f"its tensors are on '{v.device}', and only those in host memory are shared"
        try:
            return _shortened(self._check(self._alone(node)))
        except Unsupported as e:
            return str(e)

    def _alone(self, node):
        """A graph of this node, with names that are the same for all that are alike."""
        inputs = [n for n in node.all_input_nodes if graph.is_input(n)]
        read = graph.results_read(node)
        results = [(str(i), v) for i, v in enumerate(graph.tensors_of(node)) if isinstance(v, torch.Tensor) and i in read]
        writer = graph.Writer(self._dims, [])
        call = writer.node(node)
        names = {n.name: f"x{i}" for i, n in enumerate(inputs)}
        call["inputs"] = [i | {"name": names[i["name"]]} for i in call["inputs"]]
        call["outputs"] = [o and o | {"name": f"y{i}"} for i, o in enumerate(call["outputs"])]
        call["name"] = "node"
        whole = {
            "model_name": "node",
            "graph_inputs": [writer.input(n, names[n.name]) for n in inputs],
            "graph_outputs": [writer.tensor(i, v) | {"producer_node": "node", "producer_output_idx": int(i)} for i, v in results],
            "weights": [], "nodes": [call],
        }
        return json.dumps(whole | {"symbols": self._dims.symbols()})


def _shortened(why):
    """What the importer says of a graph of one node, as said of the node."""
    for prefix in ("model 'node' can't be imported:", "model 'node': ops that can't be imported, with their nodes:"):
        if why and why.startswith(prefix):
            why = why.removeprefix(prefix).partition("\nhint:")[0].strip()
            why = re.sub(r"^node 'node' \([\w.]+\): ", "", why)
            why = re.sub(r"^[\w.]+: node(: )?", "", why) or "it is not imported"
    return why


@functools.lru_cache(MOST_KNOWN)
def check_with(importer, text):
    """`importer`'s answer, kept: graphs of one model repeat their nodes."""
    return importer(text)
