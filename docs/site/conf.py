"""The site of Weft's documentation: the Markdown pages of the repository, as they are. scripts/docs builds it."""

import re

project = "Weft"
extensions = ["myst_parser", "sphinx_design"]
root_doc = "docs/site/index"
include_patterns = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/**.md", "backends/*/README.md", "examples/*/README.md"]
html_theme = "furo"
html_title = "Weft"
html_extra_path = ["first"]  # index.html, which leads to the root document
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
pygments_style, pygments_dark_style = "friendly", "monokai"
suppress_warnings = ["misc.highlighting_failure"]  # fragments of C++ and of printed text are not whole programs

PROGRAM = r"```{}\n.*?^```\n(?:```text\n.*?^```\n)?"
BOTH = re.compile(rf"^({PROGRAM.format('cpp')})\n?({PROGRAM.format('python')})", re.S | re.M)


def tab(name, program):
    return f":::{{tab-item}} {name}\n:sync: {name}\n\n{program}:::\n\n"


def in_tabs(_, __, source):
    """A program of C++ and the same of Python behind it become two tabs of one box."""
    source[0] = BOTH.sub(
        lambda both: "::::{tab-set}\n:sync-group: language\n\n" + tab("C++", both[1]) + tab("Python", both[2]) + "::::\n", source[0])


def setup(app):
    app.connect("source-read", in_tabs)
