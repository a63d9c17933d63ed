"""Cuts an FX graph into parts that Weft computes and the rest, which PyTorch does."""

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from . import graph

PREFIX = "weft_"


class _Supported(OperatorSupportBase):
    def __init__(self, takes):
        self._takes = takes

    def is_node_supported(self, submodules, node):
        return self._takes(node)


def partition(module, support):
    """`module` with calls of submodules weft_0, weft_1, ... in the place of the nodes that `support` takes.

    Views that only the outside reads stay PyTorch's: as results of a part they would be copies.
    """
    outside = _views_outside(module, support)
    takes = _Supported(lambda node: node not in outside and support(node))
    parts = CapabilityBasedPartitioner(module, takes, allows_single_node_partition=True).propose_partitions()
    parts = [p for p in parts if not all(_is_free(n) for n in p.nodes)]
    fused = fuse_by_partitions(module, [p.nodes for p in parts], prefix=PREFIX, always_return_tuple=True)
    fused.graph.eliminate_dead_code()
    fused.recompile()
    return fused


def submodules(module):
    """(node, submodule) of each part."""
    return [(n, getattr(module, n.target)) for n in module.graph.nodes if n.op == "call_module"]


def is_view(node):
    """Is the result a view of an operand? Then it costs PyTorch nothing."""
    if graph.is_item(node):
        return is_view(node.args[0])
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    returns = node.target._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def _is_free(node):
    return is_view(node) or node.op != "call_function"


def _views_outside(module, support):
    """Views that only PyTorch's side reads. One that both sides read becomes two before."""
    outside = set()

    def reads_outside(user):
        return user.op == "output" or user in outside or not support(user)

    for node in reversed(list(module.graph.nodes)):
        if not is_view(node) or graph.is_item(node) or not support(node):
            continue
        readers = node.users if graph.is_tensor(node) else [u for item in node.users for u in item.users]
        away = [u for u in readers if reads_outside(u)]
        if away and len(away) < len(readers):
            node = _copy_for(module, node, away)
        if away:
            outside.add(node)
            outside.update(() if graph.is_tensor(node) else node.users)
    return outside


def _copy_for(module, node, readers):
    """A second node that does the same, for these readers."""
    with module.graph.inserting_after(node):
        copy = module.graph.node_copy(node)
    if graph.is_tensor(node):
        for reader in readers:
            reader.replace_input_with(node, copy)
        return copy
    for item in list(node.users):
        theirs = [u for u in item.users if u in readers]
        if theirs:
            with module.graph.inserting_after(copy):
                own = module.graph.node_copy(item, lambda n: copy)
            for reader in theirs:
                reader.replace_input_with(item, own)
    return copy
