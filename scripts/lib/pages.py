"""Pages are tested: what they show is built and run, and prints what they say.

pages.py programs PAGE FOLDER     writes every whole program of the page (a ```cpp block with a main) to FOLDER/<page>_<n>.cpp,
                                  and the ```text block that follows it, if one does before the next code, to <page>_<n>.txt
pages.py shell PAGE FOLDER        runs the page's ```sh blocks in FOLDER, in order, each in `bash -e`; a ```text block that
                                  follows must be what the block printed. In a text, a line of three dots stands for any lines.
pages.py lab PAGE WEFT FOLDER     runs the `weft lab` commands of the page's ```sh blocks that need no GPU, with little time for each
pages.py same PAGE FILE           the page shows FILE: one of its ```cpp blocks is in it, word for word
pages.py subcommands README.md    reads `weft --help`; every subcommand there must have a row in the table
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path


def blocks(page):
    """(language, text, line) of each fenced block."""
    text = Path(page).read_text(encoding="utf-8")
    for m in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.S | re.M):
        yield m[1], m[2], text.count("\n", 0, m.start()) + 1


def with_output(page, wanted):
    """Blocks of a language, each with the text that follows it before other code, or None."""
    all_blocks = list(blocks(page))
    for i, (language, text, line) in enumerate(all_blocks):
        if not wanted(language, text):
            continue
        following = all_blocks[i + 1] if i + 1 < len(all_blocks) else None
        yield text, following[1] if following and following[0] == "text" else None, line


def agrees(expected, printed):
    pattern = "".join(".*" if line == "...\n" else re.escape(line) for line in expected.splitlines(keepends=True))
    return re.fullmatch(pattern, printed, re.S) is not None


def programs(page, folder):
    os.makedirs(folder, exist_ok=True)
    is_program = lambda language, text: language == "cpp" and "int main(" in text
    for n, (code, expected, _) in enumerate(with_output(page, is_program), 1):
        stem = Path(folder) / f"{Path(page).stem.lower()}_{n}"
        stem.with_suffix(".cpp").write_text(code, encoding="utf-8")
        if expected is not None:
            stem.with_suffix(".txt").write_text(expected, encoding="utf-8")


def shell(page, folder):
    os.makedirs(folder, exist_ok=True)
    ran = 0
    for script, expected, line in with_output(page, lambda language, _: language == "sh"):
        done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
        if done.returncode != 0:
            sys.exit(f"{page}:{line}: exit status {done.returncode}\n{done.stdout}")
        if expected is not None and not agrees(expected, done.stdout):
            sys.exit(f"{page}:{line} says\n{expected}\nbut this was printed\n{done.stdout}")
        ran += 1
    print(f"{page}: {ran} blocks ran")
    if ran == 0:
        sys.exit(1)


def lab(page, weft, folder):
    """What docs/lab.md has one type on a machine without a GPU, in less time than it says: SLOWER and UNDECIDED are no failures."""
    os.makedirs(folder, exist_ok=True)
    (Path(folder) / "examples").symlink_to(Path(page).resolve().parents[1] / "examples")
    ran = 0
    for language, text, line in blocks(page):
        for command in text.splitlines() if language == "sh" else []:
            words = shlex.split(command)
            if words[0] != "weft" or "cuda" in words:
                continue
            old = Path(folder) / "old.jsonl"
            if words[2] == "compare" and not old.exists():
                shutil.copy(Path(folder) / words[-1], old)
            hurry = [] if words[2] in ("list", "report", "compare") else ["--quick", "--seconds", "0.5"]
            done = subprocess.run([weft, *words[1:], *hurry], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", env=os.environ | {"WEFT_CACHE_DIR": str(Path(folder).resolve() / "cache")})
            if done.returncode not in (0, 3, 4):
                sys.exit(f"{page}:{line}: {command}: exit status {done.returncode}\n{done.stdout}")
            ran += 1
    print(f"{page}: {ran} commands ran")
    if ran == 0:
        sys.exit(1)


def same(page, file):
    content = Path(file).read_text(encoding="utf-8")
    if not any(language == "cpp" and text in content for language, text, _ in blocks(page)):
        sys.exit(f"no block of {page} is part of {file}")


def subcommands(page):
    there = re.findall(r"^  (\w+) {2,}(.*)$", sys.stdin.read().split("Subcommands:")[-1], re.M)
    if not there:
        sys.exit("weft --help lists no subcommands")
    readme = Path(page).read_text(encoding="utf-8")
    missing = [name for name, _ in there if not re.search(rf"^\| `weft {name}[` ]", readme, re.M)]
    for name in missing:
        print(f"{page} has no row for weft {name}")
    if missing:
        sys.exit(1)
    print(f"{len(there)} subcommands: {', '.join(name for name, _ in there)}")


{"programs": programs, "shell": shell, "lab": lab, "same": same, "subcommands": subcommands}[sys.argv[1]](*sys.argv[2:])
