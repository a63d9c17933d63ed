#!/usr/bin/env python3
"""PyTorch's own samples for its ops (OpInfo), through the graph that torch.compile(backend="weft") compiles.

    python/tests/opinfo.py [--dtype float32] [--samples N] [--gradients] [--list] [OP...]

For each sample: passed, if Weft computes all of its nodes, and the results are as near to those in f64 as PyTorch's are, or
nearly; refused, if a node is left to PyTorch, with the reason; wrong. Views alone leave nothing to compute, and count apart. With
--gradients it is the graph that autograd makes of forward and backward pass, and its results are gradients. It fails if anything is
wrong; its last line has the counts.
"""

import argparse
import collections
import random
import sys
import warnings

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from weft.torch import report
from weft.torch.backend import compile_graph
from weft.torch.decompositions import decompositions

# Ops whose results are not the same twice: of memory that nobody wrote, of a generator, or (as_strided) of what lies around the input.
NOT_ALIKE = {
    "empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "as_strided",
    "bernoulli", "multinomial", "normal", "rand_like", "randint_like", "randn_like", "randint", "randn", "uniform", "cauchy", "exponential",
    "geometric", "log_normal", "svd_lowrank", "pca_lowrank", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.multi_head_attention_forward",
}
PLACES = {"topk", "sort", "argsort"}  # which of equal elements comes first is not said
LOOSE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def dense(x):
    return isinstance(x, torch.Tensor) and x.layout == torch.strided


def in_f64(tree):
    return pytree.tree_map(lambda x: x.double() if dense(x) and x.is_floating_point() else x, tree)


def traced(op, sample):
    """The function of the sample's tensors, and those tensors."""
    whole = (sample.input, sample.args, sample.kwargs)
    leaves, spec = pytree.tree_flatten(whole)
    if any(isinstance(x, torch.Tensor) and not dense(x) for x in leaves):
        return None
    places = [i for i, x in enumerate(leaves) if dense(x)]

    def f(*tensors):
        given = list(leaves)
        for i, t in zip(places, tensors):
            given[i] = t
        first, args, kwargs = pytree.tree_unflatten(given, spec)
        results = pytree.tree_leaves(op(first, *args, **kwargs))
        return [r for r in results if dense(r)]

    return f, [leaves[i].detach() for i in places]


def functional(f, inputs):
    """What autograd makes of it: smaller ops, which write nothing in place."""
    written = make_fx(f, decompositions(), tracing_mode="fake")(*inputs)
    return make_fx(torch.func.functionalize(written, remove="mutations"), tracing_mode="fake")(*inputs)


def is_random(sample):
    """Elements that are dropped at random."""
    return sample.kwargs.get("dropout_p", 0) or (sample.kwargs.get("training") and "dropout_p" in sample.kwargs)


def gradients(f, inputs):
    """The function of the gradients of f's results, and its inputs: those of f, and a gradient for each result."""
    floats = [i for i, x in enumerate(inputs) if x.is_floating_point()]
    generator = torch.Generator().manual_seed(1)
    seeds = [torch.randn(r.shape, generator=generator).to(r.dtype) for r in _of_graph(f, inputs, floats)[1]]

    def g(*given):
        leaves, results = _of_graph(f, given[:len(inputs)], floats)
        found = torch.autograd.grad(results, leaves, given[len(inputs):], allow_unused=True)
        return [x.detach() for x in found if x is not None and dense(x)]

    return (g, [*inputs, *seeds]) if seeds else None


def _of_graph(f, inputs, floats):
    """Leaves of a graph, and the results that depend on them."""
    given = [x.detach() for x in inputs]
    leaves = [given[i].requires_grad_() for i in floats]
    return leaves, [r for r in f(*[x.clone() if i in floats else x for i, x in enumerate(given)]) if r.requires_grad]


def case_of(op, sample, of_gradients):
    """(function, inputs, eager's results), or why there is none."""
    of_tensors = traced(op, sample)
    if of_tensors is None:
        return "inputs that are not dense"
    try:
        if of_gradients:
            of_tensors = gradients(*of_tensors)
            if of_tensors is None:
                return "no gradients"
        f, inputs = of_tensors
        want = f(*[x.clone() for x in inputs])
    except Exception as e:  # no sample of eager's
        return str(e)
    return (f, inputs, want) if want and not any(w.is_complex() for w in want) else "no dense results"


def judge(op, sample, of_gradients=False):
    """(passed, refused, wrong, trivial or nothing, why)."""
    case = case_of(op, sample, of_gradients)
    if isinstance(case, str):
        return "nothing", case
    f, inputs, want = case
    try:
        module = functional(f, inputs)
    except Exception as e:  # PyTorch can't trace it: data decides what is called
        return "refused", f"PyTorch does not trace it: {type(e).__name__}"
    with report.collected() as graphs, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = compile_graph(module, inputs)([x.clone() for x in inputs])
    left = [(o, why) for g in graphs for _, o, why, _ in g.left]
    wrong = compare(op.name, f, inputs, got, want)
    if wrong and not of_trace(op.name, module, inputs, got):
        return "nothing", "PyTorch's graph, run by PyTorch, says something else than eager"
    if wrong:
        return "wrong", wrong
    if left:
        return "refused", "; ".join(f"{o}: {why}" for o, why in dict.fromkeys(left))
    return ("passed", "") if any(g.nodes for g in graphs) else ("trivial", "views only")


def of_trace(name, module, inputs, got):
    """What is wrong with the results as those of the graph that PyTorch made, or None. Of some numbers it is not eager's: the gradient of
    prod where an element is NaN."""
    return compare(name, module, inputs, got, module(*[x.clone() for x in inputs]))


def compare(name, f, inputs, got, want):
    """What is wrong with the results, or None."""
    if len(got) != len(want):
        return f"{len(got)} results, wanted {len(want)}"
    right = None
    for i, (a, b) in enumerate(zip(got, want)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"result {i} is {a.dtype} {tuple(a.shape)}, wanted {b.dtype} {tuple(b.shape)}"
        if not b.is_floating_point():
            if name in PLACES and b.dtype == torch.int64 and of_equals(inputs[0], a, b):
                continue
            if not torch.equal(a, b):
                return f"result {i} is {shown(a)}, wanted {shown(b)}"
            continue
        if torch.allclose(a.double(), b.double(), rtol=LOOSE.get(b.dtype, 0.1), atol=1e-7, equal_nan=True):
            continue
        if right is None:
            right = exact(f, inputs)
        r = right[i] if right else b.double()
        bound = LOOSE.get(b.dtype, 0.1) * (r.abs().nan_to_num(0, 0, 0).max() if r.numel() else 0) + 4 * off(b, r)
        if off(a, r) > bound:
            return f"result {i} is {shown(a)}, wanted {shown(b)}, off by {off(a, r):.3g}"
    return None


def of_equals(x, places, others):
    """Are the elements at these places, along some axis, equal to those at the others?"""
    return any(x.dim() == places.dim() and torch.equal(x.gather(axis, places), x.gather(axis, others))
               for axis in range(x.dim()) if places.numel() == 0 or max(places.max(), others.max()) < x.shape[axis]
               and all(n == m for i, (n, m) in enumerate(zip(x.shape, places.shape)) if i != axis))


def exact(f, inputs):
    try:
        return [r.double() for r in f(*in_f64(inputs))]
    except Exception:
        return None  # not in f64


def off(a, right):
    """The largest difference; infinities and NaN must be the same."""
    a = a.double()
    same = (a == right) | (a.isnan() & right.isnan())
    diff = torch.where(same, 0.0, (a - right).abs().nan_to_num(float("inf")))
    return diff.max().item() if diff.numel() else 0.0


def shown(t):
    flat = t.flatten()
    return f"{flat[:6].tolist()}{'...' if flat.numel() > 6 else ''}"


def samples_of(op, dtype, most):
    """Some of an op's samples, the same every time."""
    torch.manual_seed(0)
    random.seed(0)
    found = list(op.sample_inputs("cpu", dtype))
    return found if len(found) <= most else [found[i * len(found) // most] for i in range(most)]


class Counts:
    """What became of the samples."""

    def __init__(self):
        self.samples, self.ops, self.wrong = collections.Counter(), collections.Counter(), []

    def add(self, of_op):
        self.samples.update(of_op)
        self.ops["passed"] += of_op["passed"] > 0
        self.ops["all"] += of_op["passed"] + of_op["refused"] + of_op["wrong"] > 0

    def __str__(self):
        n = self.samples
        return (f"{n['passed']} passed, {n['refused']} refused, {n['wrong']} wrong; {n['trivial']} of views only, "
                f"{n['nothing']} without results to compare; of {self.ops['all']} ops {self.ops['passed']} have samples that passed")


def judged(op, dtype, o):
    """The counts of one op, its reasons for what is not passed, and what is wrong."""
    counts, reasons, wrong = collections.Counter(), collections.Counter(), []
    try:
        samples = samples_of(op, dtype, o.samples)
    except Exception as e:
        return counts, {f"no samples: {e}": 1}, wrong
    for sample in samples:
        if is_random(sample):
            continue
        try:
            verdict, why = judge(op, sample, o.gradients)
        except Exception as e:
            verdict, why = "wrong", f"{type(e).__name__}: {e}"
        counts[verdict] += 1
        if verdict == "wrong":
            wrong.append(f"{why}  [{str(sample)[:300]}]")
        elif verdict != "passed":
            reasons[why] += 1
    return counts, reasons, wrong


def chosen(dtype, names, of_gradients):
    """(name, op) of the ops to judge."""
    for op in op_db:
        full = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if op.name in NOT_ALIKE or dtype not in op.dtypes or (of_gradients and not op.supports_autograd):
            continue
        if not names or op.name in names or full in names:
            yield full, op


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=1 << 30, help="of an op at most (all)")
    parser.add_argument("--gradients", action="store_true", help="of the ops, in the place of their results")
    parser.add_argument("--list", action="store_true", help="a line for each op that is not passed in all")
    parser.add_argument("ops", nargs="*")
    o = parser.parse_args()
    torch.set_num_threads(2)
    dtype, all_of_it = getattr(torch, o.dtype), Counts()
    for name, op in chosen(dtype, o.ops, o.gradients):
        counts, reasons, wrong = judged(op, dtype, o)
        all_of_it.add(counts)
        for why in wrong:
            print("WRONG", name, why[:800], flush=True)
        if o.list and reasons:
            print(name, dict(counts), *(f"\n    {n} x {why[:400]}" for why, n in reasons.items()), flush=True)
    print(f"{'gradients, ' if o.gradients else ''}{o.dtype}: {all_of_it}")
    return all_of_it.samples["wrong"] > 0 or not all_of_it.samples["passed"]


if __name__ == "__main__":
    sys.exit(main())
