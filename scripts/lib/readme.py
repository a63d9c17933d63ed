"""README.md is tested: its example is built and run, its table of subcommands is compared with the program's.

readme.py example README.md FOLDER   writes FOLDER/example.cpp and FOLDER/expected.txt from its first ```cpp and ```text
readme.py subcommands README.md      reads `weft --help`; every subcommand there must have a row in the table
"""
import os
import re
import sys


def block(text, language):
    found = re.search(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)
    if not found:
        sys.exit(f"README.md has no ```{language} block")
    return found[1], found.end()


def example(readme, folder):
    code, end = block(readme, "cpp")
    expected, _ = block(readme[end:], "text")
    os.makedirs(folder, exist_ok=True)
    for name, text in (("example.cpp", code), ("expected.txt", expected)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)


def subcommands(readme, help_text):
    there = re.findall(r"^  (\w+) {2,}(.*)$", help_text.split("Subcommands:")[-1], re.M)
    if not there:
        sys.exit("weft --help lists no subcommands")
    missing = [name for name, _ in there if not re.search(rf"^\| `weft {name}[` ]", readme, re.M)]
    for name in missing:
        print(f"README.md has no row for weft {name}")
    if missing:
        sys.exit(1)
    print(f"{len(there)} subcommands: {', '.join(name for name, _ in there)}")


with open(sys.argv[2], encoding="utf-8") as f:
    text = f.read()
if sys.argv[1] == "example":
    example(text, sys.argv[3])
else:
    subcommands(text, sys.stdin.read())
