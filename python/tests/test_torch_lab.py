"""The kernel lab's providers that want PyTorch."""

import os
import pathlib

import numpy as np
import pytest
from test_lab import CALLS, agrees, contest

torch = pytest.importorskip("torch")

import weft
from weft import lab

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "lab"


def test_pytorch_is_right_and_timed():
    found = contest("native", "torch", EXAMPLES / "softmax_torch.py")
    for row in found.rows:
        assert row.verdict not in ("WRONG", "INVALID"), found
    assert found.rows[1].kernel == "torch.softmax" and found.rows[2].refused > 0


@pytest.mark.skipif(os.environ.get("WEFT_FULL") != "1", reason="it compiles for a minute")
def test_what_pytorch_compiles_is_right_and_says_how_long_that_took():
    row = contest("native", "torch_compile").rows[1]
    assert row.verdict not in ("WRONG", "INVALID") and row.kernel == "torch_compile.softmax" and row.compile_seconds > 0.1, row


@pytest.mark.parametrize("op, shapes, attributes", [*CALLS, ("gelu", [(3, 5)], {"approximate": True}), ("relu", [(3, 5)], {}),
                                                    ("attention", [(1, 2, 5, 8)] * 3, {"causal": True}),
                                                    ("attention", [(1, 5, 2, 8)] * 3, {"causal": True, "seq_first": True}),
                                                    ("conv", [(2, 4, 7, 6), (6, 2, 3, 3)], {"padding": [1, 2, 0, 1], "stride": [2, 1], "groups": 2}),
                                                    ("conv", [(1, 2, 9), (3, 2, 3)], {})])
def test_pytorch_as_functions(op, shapes, attributes, rng):
    agrees("torch", op, shapes, attributes, rng)


def test_pytorch_with_places_and_classes(rng):
    table, ids = rng.standard_normal((9, 4), np.float32), np.array([[3, 0], [8, 3]], np.int32)
    np.testing.assert_array_equal(weft.get_kernel("torch", "embedding")(table, ids).numpy(), table[ids])
    logits, target = torch.randn(6, 5), torch.tensor([0, 4, -100, 1, 2, 3])
    got = weft.get_kernel("torch", "cross_entropy")(logits, target, label_smoothing=0.1)
    np.testing.assert_allclose(got.numpy(), torch.nn.functional.cross_entropy(logits, target, label_smoothing=0.1).numpy(), rtol=1e-5)


@pytest.mark.parametrize("dtype, tolerance", [("f32", 1e-6), ("f16", 1e-3), ("bf16", 1e-2)])
def test_pytorch_multiplies_integers(dtype, tolerance, rng):
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((2, 3, 9), (5, 9)))
    a_scale, b_scale, bias = (rng.uniform(0.001, 0.01, shape).astype(np.float32) for shape in ((2, 3), (5,), (5,)))
    ours, theirs = (weft.get_kernel(name, "scaled_matmul") for name in ("reference", "torch"))
    for scales in ((a_scale, b_scale), (np.float32(0.5), b_scale), (a_scale, np.float32(0.5))):
        operands = [weft.tensor(x) for x in (a, b, *scales)] + [weft.cast(weft.tensor(bias), dtype)]
        got, want = (weft.cast(f(*operands, dtype=dtype).to("native"), "f32").numpy() for f in (theirs, ours))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    with pytest.raises(weft.Unsupported, match="8-bit integers"):
        theirs(*(weft.cast(weft.tensor(x.astype(np.float32)), "f8e4m3") for x in (a, b)), a_scale, b_scale)
    with pytest.raises(weft.Unsupported, match="of one row"):
        theirs(*(weft.tensor(np.ascontiguousarray(x[..., :1])) for x in (a, b)), a_scale, b_scale)


def test_a_kernel_as_a_function_leaves_pytorchs_settings(rng):
    threads = torch.get_num_threads()
    weft.get_kernel("torch", "softmax")(rng.standard_normal((2, 3), np.float32))
    assert torch.is_grad_enabled() and torch.get_num_threads() == threads


def test_a_gpu_is_wanted_where_there_is_none():
    reasons = {o["contender"]: o["reason"] for o in lab.list()}
    assert reasons["torch"] == reasons["torch_compile"] == ""
    for name, label in (("triton", "Triton"), ("tilelang", "TileLang")):
        assert reasons[name] in ("", f"{label} is not installed: pip install {name}", f"{label} needs an NVIDIA GPU; there is none here")
