"""What notebooks show of tensors, pages and runs."""

from html import escape

EDGE = 4  # rows and columns at either end of a table that is shortened


def tensor_html(tensor):
    """A tensor of rank 1 or 2 as a table, its type above it; others as text."""
    if tensor.ndim not in (1, 2) or tensor.size == 0:
        return f"<pre>{escape(str(tensor))}</pre>"
    about = f"{tensor.dtype.name}[{', '.join(map(str, tensor.shape))}] on {tensor.backend}" + (", requires a gradient" if tensor.requires_grad else "")
    places = [_places(size) for size in tensor.shape]
    shown = tensor.detach()
    for axis, (before, after) in enumerate(places):
        shown = shown[(slice(None),) * axis + (before + after,)]
    rows = shown.tolist() if tensor.ndim == 2 else [shown.tolist()]
    columns = places[-1]
    lines = [_line("th", "", [*columns[0], *columns[1]], len(columns[0]), columns[1])]
    numbers = places[0][0] + places[0][1] if tensor.ndim == 2 else [""]
    for i, (number, row) in enumerate(zip(numbers, rows)):
        if tensor.ndim == 2 and places[0][1] and i == len(places[0][0]):
            lines.append(_line("td", "…", ["…"] * len(row), len(columns[0]), columns[1]))
        lines.append(_line("td", number, map(_word, row), len(columns[0]), columns[1]))
    return f"<div>{escape(about)}</div><table>{''.join(lines)}</table>"


def framed(page, height=640):
    """A whole HTML page as a frame within a notebook's page."""
    return f'<iframe srcdoc="{escape(page)}" width="100%" height="{height}" frameborder="0"></iframe>'


def _places(size):
    """The first and the last places of an axis; all are first where there are few."""
    if size <= 2 * EDGE + 1:
        return list(range(size)), []
    return list(range(EDGE)), list(range(size - EDGE, size))


def _line(tag, head, words, edge, shortened):
    cells = [f"<{tag}>{word}</{tag}>" for word in words]
    if shortened:
        cells.insert(edge, f"<{tag}>…</{tag}>")
    return f"<tr><th>{head}</th>{''.join(cells)}</tr>"


def _word(value):
    return f"{value:.5g}" if isinstance(value, float) else str(value)


class Shown:
    """A line of text that is updated in place in a notebook's cell or on a terminal; elsewhere a new line every few seconds."""

    def __init__(self):
        import sys
        import time

        self._clock, self._to, self._at = time.monotonic, sys.stderr, float("-inf")
        self._handle = self._display = None
        if "IPython" in sys.modules:
            from IPython import display, get_ipython  # type: ignore[import-not-found]

            shell = get_ipython()
            if shell is not None and hasattr(shell, "kernel"):
                self._display = display
        self._live = self._display is not None or self._to.isatty()

    def due(self):
        """Is it time to show something again?"""
        return self._clock() - self._at > (0.3 if self._live else 5)

    def show(self, text, html):
        """Shows this in the place of what was shown before."""
        self._at = self._clock()
        if self._display is not None:
            page = self._display.HTML(html)
            if self._handle is None:
                self._handle = self._display.display(page, display_id=True)
            else:
                self._handle.update(page)
        else:
            print(f"\r\x1b[K{text}" if self._live else text, end="" if self._live else "\n", file=self._to, flush=True)

    def end(self):
        """Leaves a terminal's cursor in a row of its own."""
        if self._live and self._display is None and self._at > float("-inf"):
            print(file=self._to)
