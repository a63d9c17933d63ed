"""What notebooks show: tensors, runs on their way, and the page of a run."""

import html
import json
import re
import sys
import types

import numpy as np
import pytest

import weft
from weft import nn

TEXT = "to be or not to be, that is the question\n" * 100


def cells(page):
    return [re.findall(r"<t[hd]>([^<]*)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]


def test_tensors_are_tables():
    page = weft.tensor([[1.5, -2], [3, float("nan")]], requires_grad=True)._repr_html_()
    assert cells(page) == [["", "0", "1"], ["0", "1.5", "-2"], ["1", "3", "nan"]]
    assert f"f32[2, 2] on {weft.default_backend()}, requires a gradient" in page
    assert cells(weft.tensor([True, False])._repr_html_()) == [["", "0", "1"], ["", "True", "False"]]
    assert cells(weft.ones((1, 2), dtype="bf16")._repr_html_())[1] == ["0", "1", "1"]


def test_large_tensors_are_shortened():
    a = np.arange(30 * 12, dtype=np.int64).reshape(30, 12)
    rows = cells(weft.tensor(a)._repr_html_())
    assert rows[0] == ["", "0", "1", "2", "3", "…", "8", "9", "10", "11"]
    assert [row[0] for row in rows] == ["", "0", "1", "2", "3", "…", "26", "27", "28", "29"]
    assert rows[1][1:] == ["0", "1", "2", "3", "…", "8", "9", "10", "11"] and rows[-1][-1] == "359"
    assert set(rows[5]) == {"…"} and len(rows[5]) == 10
    assert len(weft.ones((1000, 1000))._repr_html_()) < 4000
    assert cells(weft.arange(20)._repr_html_())[1] == ["", "0", "1", "2", "3", "…", "16", "17", "18", "19"]


def test_other_tensors_are_text():
    for t in (weft.tensor(1.5), weft.zeros((2, 2, 2)), weft.zeros((0, 3))):
        assert t._repr_html_() == f"<pre>{t}</pre>"


def small_run(steps=6):
    tokenizer = nn.Tokenizer.train_characters(TEXT)
    data = nn.TokenData(TEXT, tokenizer, context=8, seed=1)
    run = nn.Run(nn.GPTConfig(context=8, layers=1, heads=1, width=8), tokenizer, schedule=nn.Schedule(rate=1e-2), steps=steps, batch=2)
    return run, data


def test_a_run_writes_its_log_and_page_and_is_shown_as_it(tmp_path, capsys):
    folder = tmp_path / "new" / "run"
    run, data = small_run()
    history = nn.train(run, data, folder=str(folder))
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4, 5, 6] and "validation_loss" in lines[-1]
    assert history.losses == [(line["step"], line["loss"]) for line in lines if "loss" in line]
    page = (folder / "training.html").read_text()
    assert history.page() == page and '<path d="M' in page and "validation" in page
    shown = history._repr_html_()
    assert html.unescape(re.search('srcdoc="([^"]*)"', shown)[1]) == page
    said = capsys.readouterr().err
    assert "step 6 of 6" in said and "tokens/s" in said
    again = nn.Run.load(str(folder))
    assert again.steps_taken == 6
    more = nn.train(again, data, 2, folder=str(folder), rows=0)
    assert [step for step, _ in more.losses] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_history_of_ones_own(tmp_path):
    run, _ = small_run()
    history = nn.History(run)
    history.add(1, loss=2.5, rate=1e-3, tokens_per_second=100, sample="<b> & é")
    history.add(2, loss=float("nan"))
    assert history.losses == [(1, 2.5)] and "&lt;b&gt; &amp; é" in history.page()
    logged = nn.History(run, str(tmp_path / "missing"))
    with pytest.warns(RuntimeWarning, match="log.jsonl"):
        logged.add(1, loss=1)
    with pytest.raises(OSError):
        logged.write_page()


def test_an_interrupted_run_is_saved(tmp_path, monkeypatch):
    run, data = small_run(50)
    taken = []

    class Interrupted(nn.Trainer):
        def step(self, clock=0.0):
            if len(taken) == 3:
                raise KeyboardInterrupt
            taken.append(super().step(clock))
            return taken[-1]

    monkeypatch.setattr(sys.modules["weft.nn.train"], "Trainer", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        nn.train(run, data, folder=tmp_path)
    assert nn.Run.load(tmp_path).steps_taken == 3 and (tmp_path / "training.html").exists()


def test_progress_is_replaced_in_a_notebook(monkeypatch):
    """IPython's two functions as its documentation has them: tests want NumPy and pytest alone."""
    shown = []
    handle = types.SimpleNamespace(update=lambda page: shown.append(("update", page)))

    def display(page, display_id):
        assert display_id is True
        shown.append(("display", page))
        return handle

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=True)
    ipython.display = types.SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    from weft.display import Shown

    line = Shown()
    assert line.due()
    line.show("one", "<b>one</b>")
    line.show("two", "<b>two</b>")
    line.end()
    assert shown == [("display", "<b>one</b>"), ("update", "<b>two</b>")] and not line.due()
    run, data = small_run(2)
    nn.train(run, data)
    assert '<progress value="2" max="2">' in shown[-1][1]
