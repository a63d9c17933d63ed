"""The kernel lab from Python: contenders in processes of their own, what their verdicts are, and kernels as functions."""

import json
import math
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from conftest import refused

import weft
from weft import lab

SMALL = lab.Operation("softmax", (96, 64), axis=-1)


def contest(*contenders, operation=SMALL, **more):
    """One comparison, as short as it may be; again where the machine was so busy that a clock could not be believed."""
    for _ in range(4):
        (found,) = lab.compare(contenders, operation, **{"seconds": 0, "quick": True, "threads": 1, "progress": False, **more})
        if not any("longer than it counted" in row.why for row in found.rows):
            break
    return found


@pytest.fixture
def kernel(tmp_path):
    """Writes a kernel's file, and returns its name."""

    def write(body, framework="numpy"):
        path = tmp_path / "mine.py"
        path.write_text(f'FRAMEWORK = "{framework}"\n' + textwrap.dedent(body))
        return str(path)

    return write


RIGHT = """
    import numpy as np

    def softmax(x, out, axis=-1):
        if x.size == 0 or axis not in (-1, x.ndim - 1):
            raise NotImplementedError("the last axis, with elements")
        e = np.exp(x - x.max(-1, keepdims=True))
        np.divide(e, e.sum(-1, keepdims=True), out=out)
"""


def test_importing_weft_imports_no_lab():
    code = "import sys, weft; assert not [m for m in sys.modules if m.startswith('weft.lab')]; weft.lab.compare; weft.get_kernel"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_right_kernels_are_timed_and_shown(kernel):
    found = contest("native", "numpy", kernel(RIGHT))
    baseline, numpy, mine = found.rows
    assert (baseline.contender, numpy.kernel, mine.kernel) == ("native", "numpy.softmax", "mine.softmax")
    for row in found.rows:
        assert row.verdict in ("FASTER", "SAME", "SLOWER", "UNDECIDED"), row.why
        assert row.median > 0 and len(row.nanoseconds) >= 30 and row.identity
        assert row.accuracy["elements"] > 0 and row.accuracy["share_of_bound"] <= 1 and sum(row.accuracy["ulps"]) == row.accuracy["elements"]
    assert numpy.refused == 0 and numpy.cases == 8 and mine.refused > 0 and mine.compile_seconds > 0
    assert mine.ratio[0] <= mine.ratio[1] <= mine.ratio[2] and found["numpy"] is numpy
    assert found.bytes == 2 * 4 * 96 * 64 and found.processes == 3
    text, page = str(found), found._repr_html_()
    assert text.splitlines()[0] == "softmax f32[96, 64] axis=-1, a call of your own"
    for word in ("native.softmax", "baseline", "mine.softmax", "times as fast", f"{mine.ratio[1]:.3f} ("):
        assert word in text and word in page
    with pytest.raises(KeyError, match="no contender 'nobody'"):
        found["nobody"]


def test_rows_are_those_of_the_result_file(kernel):
    nans = kernel(RIGHT + "        if x.shape == (96, 64):\n            out[...] = np.nan\n")
    found = contest("native", "numpy", nans)
    native, numpy, wrong = found.rows
    line = found.result
    assert line["schema"] == "weft.lab/1" and line["operation"]["label"] == found.operation and line["weft"]["version"]
    assert json.loads(json.dumps(line)) == line and line["machine"]["processor"]
    assert numpy.nanoseconds == line["rows"][1]["nanoseconds"]["sample"] and numpy.median == line["rows"][1]["nanoseconds"]["median"]
    worst = numpy.accuracy["worst"]
    assert numpy.accuracy["nans"] == numpy.accuracy["infinities"] == 0 and len(worst["at"]) == 2
    assert abs(worst["got"] - worst["want"]) <= worst["bound"] and worst["operands"][0]["values"]
    assert native.ratio == (1, 1, 1)
    assert wrong.verdict == "WRONG" and wrong.accuracy["nans"] > 0 and wrong.accuracy["share_of_bound"] == math.inf
    assert math.isnan(wrong.accuracy["worst"]["got"]) and math.isnan(wrong.median) and all(map(math.isnan, wrong.ratio))


@pytest.mark.parametrize(
    "body, verdict, why",
    [
        ("def softmax(x, out, axis=-1):\n    out[...] = 1 / max(1, x.shape[-1])", "WRONG", "got "),
        ("def softmax(x, out, axis=-1):\n    raise ValueError('no luck')", "INVALID", "ValueError: no luck (mine.py, line 3: raise ValueError('no luck'))"),
        ("def softmax(x, axis=-1):\n    return x", "WRONG", "got "),
        ("def softmax(x, axis=-1):\n    return x.astype('f8')", "INVALID", "it returned float64 [4, 33] where float32 [4, 33] is wanted"),
        ("def softmax(x, axis=-1):\n    return None", "INVALID", "it returned a NoneType, which is no tensor of numpy"),
        ("def softmax(x, out, axis=-1):\n    x[...] = 0\n    out[...] = x", "INVALID", "it changed operand 0"),
        ("def softmax(x, out, axis=-1):\n    while True: print('a kernel that talks')", "INVALID", "a kernel that talks"),
        ("def softmax(x, out, axis=-1):\n    exit(3)", "INVALID", "SystemExit: 3"),
        ("def softmax(x, out, axis=-1):\n    import ctypes; ctypes.string_at(0)", "INVALID", "by signal 11"),
        ("def softmax(x, out):\n    out[...] = x", "INVALID", "it refuses the call: softmax() in mine.py takes no attribute axis, which is 1"),
        ("def layer_norm(x, out): pass", "INVALID", "it refuses the call: mine.py defines no function softmax; it has layer_norm"),
        ("def softmax(x, out) pass", "INVALID", "mine.py is no Python: "),
        ("import no_such_module", "INVALID", "ModuleNotFoundError: No module named 'no_such_module' (mine.py, line 2: import no_such_module)"),
    ],
)
def test_what_a_wrong_kernel_is_told(kernel, body, verdict, why):
    row = contest("native", kernel(body), timeout=5).rows[1]
    assert row.verdict == verdict and why in row.why, row


CHEATS = {
    "patches the clock and the worker": """
        import time, weft.lab.kernel, weft.lab.worker
        time.perf_counter = time.perf_counter_ns = time.monotonic = lambda: 0
        weft.lab.worker.main = weft.lab.kernel.reason = lambda *a: ""
        def place(self, *a): return lambda: None
        weft.lab.kernel.Kernel.place = place
        def softmax(x, out, axis=-1): pass
    """,
    "writes later, from a thread": """
        import threading, time
        import numpy as np
        def later(x, out, axis):
            time.sleep(0.01)
            e = np.exp(x - x.max(axis, keepdims=True))
            np.divide(e, e.sum(axis, keepdims=True), out=out)
        def softmax(x, out, axis=-1):
            threading.Thread(target=later, args=(x, out, axis), daemon=True).start()
    """,
    "keeps what it computed before": """
        import numpy as np
        known = {}
        def softmax(x, out, axis=-1):
            if out.ctypes.data not in known:
                e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
                np.divide(e, e.sum(axis, keepdims=True), out=out)
            known[out.ctypes.data] = True
    """,
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_is_seen_through(kernel, cheat):
    row = contest("native", kernel(CHEATS[cheat])).rows[1]
    assert row.verdict == "WRONG" and "got nan" in row.why, row


def test_nothing_is_left_of_a_kernel_that_starts_daemons(kernel, tmp_path):
    note = tmp_path / "daemons"
    start = f"""
        if x.shape == (96, 64) and not os.path.exists({str(note)!r}):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    open({str(note)!r}, "w").write(str(os.getpid()))
                    time.sleep(60)
                os._exit(0)
            os.wait()
            while not os.path.exists({str(note)!r}): pass
    """
    row = contest("native", kernel("    import os, time\n" + RIGHT.rstrip() + start)).rows[1]
    assert row.verdict == "INVALID" and "it left a process running" in row.why, row
    stat = pathlib.Path("/proc", note.read_text(), "stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("framework, why", [("numpie", "says FRAMEWORK = 'numpie'; it is one of 'numpy', 'mkl', 'torch'"), ("triton", "not installed")])
def test_a_framework_that_is_not_there(kernel, framework, why):
    reason = next(o["reason"] for o in lab.list() if o["contender"] == "triton")
    if framework == "triton" and "not installed" not in reason:
        pytest.skip("Triton and PyTorch are installed")
    row = contest("native", kernel("def softmax(x, out): pass", framework)).rows[1]
    assert row.verdict == "INVALID" and why in row.why, row


def test_an_op_of_the_labs_own():
    found = contest("native", "numpy", operation=lab.Operation("silu_gate", (16, 32), (16, 32)))
    assert found["numpy"].verdict not in ("WRONG", "INVALID"), found


def test_an_operation_of_integers():
    found = contest("native", "numpy", operation=lab.Operation("embedding", (40, 8), lab.integers((12,), 0, 39)))
    assert found["numpy"].verdict not in ("WRONG", "INVALID"), found


MKL_CALLS = {
    "add": [(5, 7), (5, 7)],
    "mul": [(5, 7), (5, 7)],
    "gelu": [(5, 70)],
    "silu": [(5, 70)],
    "silu_gate": [(5, 70), (5, 70)],
    "softmax": [(9, 33)],
    "matmul": [(2, 5, 7), (7, 3)],
}


@pytest.mark.parametrize("op", MKL_CALLS)
def test_kernels_of_mkl(op):
    if reason := next(o["reason"] for o in lab.list() if o["contender"] == "mkl"):
        pytest.skip(reason)
    row = contest("native", "mkl", operation=lab.Operation(op, *MKL_CALLS[op])).rows[1]
    assert row.verdict not in ("WRONG", "INVALID") and row.kernel == f"mkl.{op}" and row.refused < row.cases, row


def test_functions_and_paths_are_contenders(tmp_path, monkeypatch):
    path = tmp_path / "mine_too.py"
    path.write_text('FRAMEWORK = "numpy"\n' + textwrap.dedent(RIGHT).replace("def softmax", "def other"))
    monkeypatch.syspath_prepend(str(tmp_path))
    import mine_too

    assert contest("native", mine_too.other).rows[1].kernel == "mine_too.other"
    told = []
    row = contest("native", path, progress=told.append).rows[1]
    assert row.verdict == "INVALID" and "mine_too.py defines no function softmax; it has other" in row.why
    assert any("conformance of" in line for line in told) and any("s left" in line for line in told)


def test_functions_that_no_process_can_find_are_refused():
    space = {}
    exec("def of_a_cell(x): return x", space)
    refused(lambda: lab.compare(["native", space["of_a_cell"]], "softmax"), "of_a_cell is defined in no file", "%%writefile")
    refused(lambda: lab.compare(["native", lambda x: x], "softmax"), "is not a function of", "move it out")
    refused(lambda: lab.compare(["native"], "softmax"), "nobody to be compared with")
    refused(lambda: lab.compare(["native", "numpy"], "softmix"), "softmix", "layer_norm")
    for name, bad in (("seconds", -1), ("seconds", float("nan")), ("confidence", 1), ("confidence", -1), ("margin", -1), ("sample", 0)):
        refused(lambda: lab.compare(["native", "numpy"], "softmax", **{name: bad}), f"{name} is {bad}", "wanted")  # noqa: B023
    refused(lambda: lab.compare(["native", "numpy"], lab.Operation("softmix", (2,))), "softmix")
    refused(lambda: lab.compare(["native", "numpy"], lab.Operation("softmax", (2, 3), axis=7)), "axis")


def test_the_list_says_what_is_missing():
    offers = {o["contender"]: o for o in lab.list()}
    assert {"native", "reference", "numpy", "mkl", "torch", "torch_compile", "triton", "tilelang"} <= set(offers)
    assert offers["numpy"]["available"] and offers["native"]["provider"] == "weft"
    try:
        import torch  # noqa: F401
    except ImportError:
        assert offers["torch"]["reason"] == offers["triton"]["reason"] == "PyTorch is not installed: pip install torch"
    assert "numpy" in str(lab.list()) and "<td>numpy</td>" in lab.list()._repr_html_()
    assert any("GPT-2" in label for label in lab.operations("softmax")) and len(lab.operations()) > len(lab.operations("softmax"))


def test_a_python_without_weft(monkeypatch):
    for program, word in (("/no/such/python", "there is no Python"), ("/bin/false", "install Weft into it")):
        monkeypatch.setenv("WEFT_PYTHON", program)
        assert all(word in o["reason"] and "WEFT_PYTHON" in o["reason"] for o in lab.list() if o["provider"] == "python")
        assert word in contest("native", "numpy").rows[1].why


CALLS = [
    ("add", [(3, 4), (3, 4)], {}),
    ("mul", [(3, 4), (3, 4)], {}),
    ("silu", [(3, 5)], {}),
    ("softmax", [(2, 3, 5)], {"axis": 1}),
    ("layer_norm", [(2, 3, 5), (3, 5), (3, 5)], {"trailing": 2, "epsilon": 0.5}),
    ("layer_norm", [(2, 5)], {}),
    ("rms_norm", [(2, 3, 5), (5,)], {"epsilon": 0.5}),
    ("sum", [(2, 3, 5)], {"axes": [0, 2], "keep": True}),
    ("sum", [(2, 3)], {}),
    ("transpose", [(2, 3, 5)], {"axis_a": 0}),
    ("permute", [(2, 3, 5)], {"axes": [2, 0, 1]}),
    ("argmax", [(3, 7)], {}),
    ("argmax", [(3, 7)], {"axis": 0, "keep": True}),
    ("matmul", [(2, 3, 4), (5, 4)], {"transpose_b": True}),
    ("matmul", [(4, 3), (4, 5)], {"transpose_a": True}),
    ("attention", [(2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 8)], {"causal": True}),
    ("attention", [(2, 3, 8), (2, 5, 8), (2, 5, 6)], {"scale": 0.3}),
    ("rope", [(2, 3, 8), (3, 4), (3, 4)], {"interleaved": True}),
    ("rope", [(2, 3, 8), (3, 4), (3, 4)], {}),
]


def agrees(provider, op, shapes, attributes, rng):
    """A provider's kernel says what Weft's own op says."""
    operands = [rng.standard_normal(shape, np.float32) for shape in shapes]
    got = weft.get_kernel(provider, op)(*operands, **attributes)
    want = weft.get_kernel("reference", op)(*operands, **attributes)
    for g, w in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
        np.testing.assert_allclose(g.numpy(), w.to("native").numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("op, shapes, attributes", CALLS)
def test_numpy_as_functions(op, shapes, attributes, rng):
    agrees("numpy", op, shapes, attributes, rng)


def test_numpy_with_places_and_classes(rng):
    table, ids = rng.standard_normal((9, 4), np.float32), np.array([[3, 0], [8, 3]], np.int32)
    np.testing.assert_array_equal(weft.get_kernel("numpy", "embedding")(table, ids).numpy(), table[ids])
    logits, target = rng.standard_normal((6, 5), np.float32), np.array([0, 4, 1, 1, 2, 3], np.int64)
    got = weft.get_kernel("numpy", "cross_entropy")(logits, target)
    np.testing.assert_allclose(got.numpy(), weft.cross_entropy(weft.tensor(logits), weft.tensor(target)).numpy(), rtol=1e-5)


def test_kernels_as_functions(kernel, rng):
    x = rng.standard_normal((3, 5), np.float32)
    want = weft.softmax(weft.tensor(x)).numpy()
    for name in ("native", "reference", "numpy", kernel(RIGHT)):
        function = weft.get_kernel(name, "softmax")
        for operand in (x, weft.tensor(x)):
            got = function(operand)
            assert isinstance(got, weft.Tensor)
            np.testing.assert_allclose(got.to("native").numpy(), want, rtol=1e-5)
    assert weft.get_kernel("reference", "softmax")(x).backend == "reference"
    assert weft.get_kernel("reference", "iota")(size=3).backend == "reference"
    assert "axis" in weft.get_kernel("numpy", "softmax").__doc__


def test_what_get_kernel_refuses(kernel):
    refused(lambda: weft.get_kernel("natif", "softmax"), "nothing is named 'natif'", "native", "torch_compile")
    refused(lambda: weft.get_kernel("native", "softmix"), "no operation is named 'softmix'")
    refused(lambda: weft.get_kernel("native", "set_default_backend"), "no operation is named 'set_default_backend'")
    refused(lambda: weft.get_kernel("numpy", "conv"), "numpy.py defines no function conv", "layer_norm")
    refused(lambda: weft.get_kernel("no_such.py", "softmax"), "there is no file no_such.py")
    refused(lambda: weft.get_kernel("numpy", "softmax")(weft.ones(2, dtype="bf16")), "NumPy has no bf16")
    with pytest.raises(weft.Unsupported, match="the last axis"):
        weft.get_kernel(kernel(RIGHT), "softmax")(weft.ones((2, 3)), axis=0)
