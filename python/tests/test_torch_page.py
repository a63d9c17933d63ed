"""The blocks of docs/pytorch.md print what they say. They run in this process, since importing PyTorch takes longer than they do."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from test_pages import ROOT, programs  # noqa: E402


@pytest.mark.parametrize("code, text", list(programs(ROOT / "docs" / "pytorch.md")))
def test_blocks_print_what_they_say(code, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    torch.manual_seed(1)
    exec(compile(code, "docs/pytorch.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == text
