"""What ran, where and why."""

from weft._weft import _ledger_rows, ledger_text

COLUMNS = ("device", "op", "kernel", "calls", "bytes", "why")


class Ledger(list):
    """Rows of the ledger, each a dict: device, op, kernel, calls, bytes (moved between devices), why (who was asked before, and refused).

    Printed it is a table, in a notebook too; frame() is a DataFrame of pandas.
    """

    def __str__(self):
        return ledger_text()

    def _repr_html_(self):
        from html import escape

        head = "".join(f"<th>{c}</th>" for c in COLUMNS)
        body = "".join("<tr>" + "".join(f"<td>{escape(str(row[c]))}</td>" for c in COLUMNS) + "</tr>" for row in self)
        return f"<table><tr>{head}</tr>{body}</table>"

    def frame(self):
        """The rows as pandas.DataFrame; wants pandas."""
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame(list(self), columns=list(COLUMNS))


def ledger():
    """All launches since the start or the last reset_ledger(), in order of device, op and kernel."""
    return Ledger(_ledger_rows())
