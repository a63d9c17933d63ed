"""The pages and examples say what is printed."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)


def programs(*pages):
    """Each block of Python with the text that follows it."""
    for page in pages:
        found = FENCE.findall(page.read_text())
        for i, (language, code) in enumerate(found):
            if language == "python":
                following = found[i + 1] if i + 1 < len(found) else ("", "")
                yield pytest.param(code, following[1] if following[0] == "text" else None, id=f"{page.stem}-{i}")


@pytest.mark.parametrize("code, text", list(programs(ROOT / "README.md", ROOT / "docs" / "python.md", ROOT / "docs" / "tutorial.md")))
def test_blocks_print_what_they_say(code, text, tmp_path):
    assert text is not None, "a block of Python wants the text that it prints behind it"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert made.stdout == text


def test_the_gpt_of_60_lines():
    source = ROOT / "examples" / "python" / "gpt.py"
    assert len(source.read_text().splitlines()) <= 60
    made = subprocess.run([sys.executable, str(source), "150"], capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stderr
    assert made.stdout == "to be or not to be, that is the\n"
