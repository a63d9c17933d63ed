"""torch.compile(model, backend="weft")."""

import functools

import sympy
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from .. import _weft
from . import graph, partition, report
from .decompositions import decompositions
from .dims import Dims, Unsupported, expression
from .program import Part
from .support import Support, check_with


TOO_LARGE = "more bytes than 63 bits can count"  # a program whose symbols have bounds that are too large says so


def backend(module, example_inputs, *, mode=None, options=None):
    """Compiles what TorchDynamo found, forward and backward. `options={"backend": NAME}` chooses Weft's backend.

    Nodes that Weft does not import are PyTorch's, and named once by a warning; weft.torch.explain() lists them.
    """
    del mode  # Weft has one way to compile
    options = dict(options or {})
    device = options.pop("backend", "")
    if options:
        raise ValueError(f"backend 'weft' knows the option 'backend', got {', '.join(map(repr, options))}")
    for name in filter(None, device.split(",")):
        _weft.get_backend_info(name.strip())  # raises where no backend has this name
    compiler = functools.partial(compile_graph, backend=device)
    compile_all = aot_autograd(fw_compiler=compiler, decompositions=decompositions(),
                               partition_fn=min_cut_rematerialization_partition)
    return compile_all(module, example_inputs)


def compile_graph(module, example_inputs, *, backend=""):
    """A functional graph of ATen's ops as a function that is called with a list of its inputs."""
    del example_inputs  # the graph's nodes know more of them
    dims = Dims(_ranges(module))
    dims.limit(v.shape for n in module.graph.nodes for v in graph.tensors_of(n) if isinstance(v, torch.Tensor))
    support = Support(dims, functools.partial(check_with, _weft.aten_refusal))
    written = [n for n in module.graph.nodes if graph.writes(n)]
    if written:  # parts could be called in another order than that of the writes
        report.add(report.Graph(0, [(n.name, graph.op_name(n), "it writes to its operands", graph.line_of(n)) for n in written]))
        return make_boxed_func(module.forward)
    fused = partition.partition(module, support)
    record = report.Graph(support.accepted(), [(n.name, graph.op_name(n), why, graph.line_of(n)) for n, why in support.reasons()])
    for call, part in partition.submodules(fused):
        try:
            brought = _bring_symbols(fused, call, part)
            setattr(fused, call.target, Call(_compiled(part, dims.again(), brought, backend, call.target), part))
        except _weft.Error as e:
            record.left.append((call.target, "all of a part", str(e), ""))
    report.add(record)
    fused.recompile()
    return make_boxed_func(fused.forward)


def _compiled(part, dims, brought, backend, name):
    """The part as a program, with bounds of symbols that leave its tensors countable."""
    while True:
        try:
            return Part(part, dims, brought, backend, name)
        except _weft.InvalidArgument as e:
            if TOO_LARGE not in str(e) or not dims.lower():
                raise


class Call(torch.nn.Module):
    """A part where it is called. What a backend refuses at run time, and sizes that are beyond its bounds, are PyTorch's."""

    def __init__(self, part, otherwise):
        super().__init__()
        self._part, self._otherwise = part, otherwise

    def forward(self, *args):
        if self._part is not None:
            try:
                return self._part(*args)
            except _weft.Unsupported as e:
                report.warn_once(f"weft leaves a part to PyTorch: {e}")
                self._part = None
            except _weft.InvalidArgument as e:
                if self._part.takes(*args):
                    raise
                report.warn_once(f"weft leaves sizes beyond a symbol's bounds to PyTorch: {e}")
        return self._otherwise(*args)


def _ranges(module):
    """sympy symbol -> its bounds, as the graph's symbols have them."""
    for node in module.graph.nodes:
        for value in graph.tensors_of(node):
            for n in value.shape if isinstance(value, torch.Tensor) else [value]:
                if isinstance(n, torch.SymInt):
                    return n.node.shape_env.var_to_range
    return {}


def _bring_symbols(fused, call, part):
    """Gives a part the values of symbols that the sizes of its inputs do not tell, as inputs without elements."""
    told, wanted = set(), set()
    for node in part.graph.nodes:
        for value in graph.tensors_of(node):
            for n in value.shape if isinstance(value, torch.Tensor) else [value]:
                if isinstance(n, torch.SymInt) and not n.node.is_constant():
                    wanted |= n.node.expr.free_symbols
                    if node.op == "placeholder" and isinstance(value, torch.Tensor) and n.node.expr.is_Symbol:
                        told.add(n.node.expr)
    brought = set()
    for symbol in sorted(wanted - told, key=str):
        source = next((n for n in fused.graph.nodes if graph.is_symbol(n, symbol)), None)
        if source is None:
            _must_be_told(part, symbol)
            continue
        brought.add(symbol)
        if not any(graph.is_symbol(n, symbol) for n in part.graph.nodes if n.op == "placeholder"):
            last = [n for n in part.graph.nodes if n.op == "placeholder"][-1:]
            with part.graph.inserting_after(last[0]) if last else part.graph.inserting_before(None):
                added = part.graph.placeholder(f"size_{symbol}")
            added.meta["val"] = graph.value_of(source)
            call.args = (*call.args, source)
    part.recompile()
    return brought


def _must_be_told(part, symbol):
    """Refuses a part none of whose inputs has a size that only one value of the symbol makes."""
    for node in part.graph.nodes:
        if node.op == "placeholder" and graph.is_tensor(node):
            for size in map(expression, graph.value_of(node).shape):
                if isinstance(size, sympy.Expr) and size.free_symbols == {symbol} and size.is_polynomial(symbol):
                    return
    raise Unsupported(f"no input tells the value of {symbol}")
