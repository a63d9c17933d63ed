"""Every op through Python, on PyTorch's answers (conformance/data/torch, which scripts/torch_oracle writes): results and gradients."""

import inspect
import json
import pathlib

import numpy as np
import pytest

import weft

DATA = pathlib.Path(__file__).resolve().parents[2] / "conformance" / "data" / "torch"
FAMILIES = sorted(path.stem for path in DATA.glob("*.json"))
LISTS = {"concat": lambda x, a: weft.concat(x, **a), "einsum": lambda x, a: weft.einsum(a["equation"], *x)}


def cases_of(family):
    return json.loads((DATA / f"{family}.json").read_text())["cases"]


def read(spec):
    """An operand, or None for one that is left out."""
    dtype, shape, elements = spec
    numbers = [float(v) if isinstance(v, str) else v for v in elements]
    return weft.tensor(numbers, dtype=dtype).reshape(shape) if numbers else weft.zeros(shape, dtype=dtype)


def call(op, inputs, attributes):
    if op in LISTS:
        return (LISTS[op](inputs, attributes),)
    function = getattr(weft, op)
    # A dimension is written as a list of one there.
    standard = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    attributes = {k: v[0] if isinstance(v, list) and not isinstance(standard[k], tuple) else v for k, v in attributes.items()}
    made = function(*inputs, **attributes)
    return made if isinstance(made, tuple) else () if made is None else (made,)


def close(got, spec, what):
    want = read(spec)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    if not want.dtype.is_float:
        assert got.tolist() == want.tolist(), what
        return
    # The bounds that are derived for each case judge the same answers in C++ (tests/torch_test.cpp); here it is the way through Python
    # that is looked at, and a wrong operand or attribute is wrong by far more.
    want = want.numpy(force=True)
    scale = np.abs(want[np.isfinite(want)]).max(initial=0)
    tolerance = {"f64": 1e-10, "f32": 1e-4}.get(spec[0], 1e-2)
    np.testing.assert_allclose(got.numpy(force=True), want, rtol=tolerance, atol=tolerance * max(scale, 1), err_msg=what)


@pytest.mark.parametrize("family", FAMILIES)
def test_results_and_gradients(family):
    for number, case in enumerate(cases_of(family)):
        what = f"{family} case {number}: {case['op']} {case['attrs']}"
        inputs = [read(spec) for spec in case["inputs"]]
        for x, gradient in zip(inputs, case.get("grads", [])):
            x.requires_grad = gradient is not None
        before = [x.tolist() for x in inputs]
        results = call(case["op"], inputs, case["attrs"])
        for got, spec in zip(results, case["outputs"]):
            close(got, spec, what)
        if not results:  # an update: what it changed stands in the order of its results
            changed = [x for x, old in zip(inputs, before) if x.tolist() != old]
            assert changed, what
            for x, spec in zip(changed, case["outputs"]):
                close(x, spec, what)
        if "seed" not in case:
            continue
        results[0].backward(read(case["seed"]))
        for x, spec in zip(inputs, case["grads"]):
            if spec is not None:
                close(x.grad, spec, what + ", gradient")


def test_every_op_has_a_case():
    tried = {case["op"] for family in FAMILIES for case in cases_of(family)}
    functions = {name for name in dir(weft) if type(getattr(weft, name)).__name__ == "builtin_function_or_method"}
    assert functions - tried == set()
    assert len(tried) >= 120
