"""Backends, policies, the ledger."""

import pytest
from conftest import refused

import weft


def test_backends():
    names = weft.get_available_backends()
    assert {"native", "reference"} <= set(names)
    assert weft.is_backend_available("native") and not weft.is_backend_available("nowhere")
    info = weft.get_backend_info("reference")
    assert info["available"] and info["origin"] == "built in" and info["devices"][0]["kind"] == "cpu"
    refused(lambda: weft.get_backend_info("nowhere"), "nowhere", "reference")


def test_the_default_backend():
    before = weft.default_backend()
    with weft.on_backend("reference"):
        assert weft.default_backend() == "reference" and weft.ones(2).backend == "reference"
    assert weft.default_backend() == before
    try:
        weft.set_default_backend("reference")
        assert weft.tensor([1.0]).backend == "reference"
        weft.set_default_backend(["native", "reference"])
        assert weft.default_backends() == ["native", "reference"] and weft.default_backend() == "native"
        refused(lambda: weft.set_default_backend("nowhere"), "nowhere")
        refused(lambda: weft.set_default_backend([]))
    finally:
        weft.set_default_backend(before)


def test_policies():
    standard = weft.current_policy()
    assert standard == weft.Policy() and standard.fallback == "forbid" and standard.precision == "strict"
    with weft.Policy(fallback="allow", determinism="batch"):
        assert weft.current_policy().determinism == "batch" and weft.current_policy() != standard
    assert weft.current_policy() == standard
    refused(lambda: weft.Policy(fallback="maybe"), "maybe", "forbid, warn, allow")
    assert repr(weft.Policy()) == "weft.Policy(fallback='forbid', decompose=True, determinism='any', precision='strict')"


def test_a_policy_is_followed():
    with weft.Policy(decompose=False):
        refused(lambda: weft.softplus(weft.ones(3, backend="reference")), "softplus")


def test_the_ledger():
    weft.reset_ledger()
    x = weft.ones(3, backend="reference")
    for _ in range(3):
        x = x + x
    row = next(r for r in weft.ledger() if r["op"] == "add")
    assert row["device"] == "reference" and row["calls"] == 3 and row["kernel"].startswith("reference.add")
    assert "reference.add" in str(weft.ledger()) and "<td>add</td>" in weft.ledger()._repr_html_()


def test_threads_to_use():
    before = weft.thread_count()
    try:
        weft.set_thread_count(1)
        assert weft.thread_count() == 1
    finally:
        weft.set_thread_count(before)


def test_a_backend_that_is_none(tmp_path):
    path = tmp_path / "no.so"
    path.write_text("no")
    with pytest.raises(weft.Error, match="no.so"):
        weft.load_backend(str(path))


def test_memory_of_devices():
    for backend in ("reference", weft.default_backend()):
        weft.release_memory(backend)
        before = weft.device_memory(backend)
        x = weft.ones((1 << 18,), backend=backend)
        assert weft.device_memory(backend) >= before + (1 << 20)
        del x
        weft.release_memory(backend)
        assert weft.device_memory(backend) == before
    refused(lambda: weft.device_memory("nowhere"), "nowhere")
