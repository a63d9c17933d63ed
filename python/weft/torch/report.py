"""What Weft computes of a model, and what it leaves to PyTorch."""

import contextlib
import dataclasses
import warnings

_said = set()
_collectors = []


@dataclasses.dataclass
class Graph:
    """One graph that TorchDynamo, or autograd, handed over."""

    nodes: int  # that Weft computes
    left: list  # (node, op, why, line of the user's program) of those that PyTorch does


@dataclasses.dataclass
class Explanation:
    """What weft.torch.explain() returns."""

    graphs: list
    breaks: list  # why TorchDynamo ended a graph

    def __str__(self):
        nodes, left = sum(g.nodes for g in self.graphs), [item for g in self.graphs for item in g.left]
        lines = [f"{len(self.graphs)} graphs: {nodes} nodes by Weft, {len(left)} by PyTorch, {len(self.breaks)} graph breaks"]
        lines += [f"  {node}{line and f', from {line}'}: {op}: {why}" for node, op, why, line in left]
        return "\n".join(lines + [f"  break: {why}" for why in self.breaks])


def add(graph):
    """Notes a graph, and warns of each op that is left to PyTorch once in a process."""
    for collector in _collectors:
        collector.append(graph)
    new = {}
    for _, op, why, _ in graph.left:
        if op not in _said:
            new.setdefault(op, why)
    if new and not _collectors:
        warn_once("weft leaves to PyTorch:" + "".join(f"\n  {op}: {why}" for op, why in new.items()))
        _said.update(new)


def warn_once(text):
    if text not in _said:
        _said.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=2)


@contextlib.contextmanager
def collected():
    """A list of the graphs that are compiled in the block."""
    graphs = []
    _collectors.append(graphs)
    try:
        yield graphs
    finally:
        _collectors.remove(graphs)
