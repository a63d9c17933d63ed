"""What a comparison found, as objects that print as tables."""

from __future__ import annotations

import dataclasses
import html
import math
from typing import Any, List, Tuple

COLOURS = {"FASTER": "#1a7f37", "SLOWER": "#9a6700", "WRONG": "#cf222e", "INVALID": "#cf222e"}


@dataclasses.dataclass(frozen=True)
class Row:
    """What is known of one contender."""

    contender: str  #: as it was named
    kernel: str  #: the kernel that ran
    identity: str  #: a hash of its code
    verdict: str  #: "FASTER", "SAME", "SLOWER", "UNDECIDED", "WRONG" or "INVALID"; of the baseline "SAME" or one of the last two
    why: str  #: of WRONG and INVALID
    cases: int  #: of conformance that it was asked
    refused: int  #: of conformance that it refused
    accuracy: dict[str, Any]  #: at the operation's size: elements, max_abs, max_rel, l2, share_of_bound, ulps, nans, infinities, worst
    nanoseconds: List[float]  #: of a launch, by turn: 400 turns at most, evenly thinned
    median: float  #: time of a launch in nanoseconds, of all turns; NaN where it was not timed
    cpu_nanoseconds: float  #: of all its threads, a launch
    compile_seconds: float  #: of its first call, in which it may be compiled; of a file of C++, its compiler's
    open_seconds: float  #: of opening it in its last process
    peak_bytes: int  #: of its process, beyond what that held before the kernel was loaded
    device: str  #: whose memory it computes in; "": the host's
    device_peak_bytes: int  #: of that memory, after it was opened, beside operands and results
    clock: dict[str, float]  #: after each turn, of the processor in GHz, of a device in multiply-adds a nanosecond: p10, median, p90; {}: unknown
    ratio: Tuple[float, float, float]  #: the baseline's time by its own: (low, middle, high) of the interval; NaNs where there is none

    @classmethod
    def _of(cls, found: dict[str, Any]) -> Row:
        times, ratio = found.get("nanoseconds", {}), found.get("ratio", {})
        kept = {field.name: found.get(field.name, {"clock": {}, "device": ""}.get(field.name, 0.0)) for field in dataclasses.fields(cls)}
        return cls(**{**kept, "accuracy": _with_infinities(found["accuracy"]), "nanoseconds": times.get("sample", []),
                      "median": times.get("median", math.nan), "ratio": tuple(ratio.get(end, math.nan) for end in ("low", "middle", "high"))})

    @property
    def out(self) -> bool:
        """Is it WRONG or INVALID?"""
        return self.verdict in ("WRONG", "INVALID")

    def _cells(self, baseline: bool) -> List[str]:
        name = self.contender if self.kernel in ("", self.contender) else f"{self.contender} ({self.kernel})"
        if self.out:
            return [name, self.verdict, "", "", "", self.why]
        low, middle, high = self.ratio
        ratio = "" if baseline else f"{middle:.3f} ({low:.3f} to {high:.3f})" if middle > 0 else "not compared: the baseline is out"
        time = f"{self.median / 1e3:.2f}" if self.nanoseconds else "not timed"
        compiled = f"first call {self.compile_seconds:.2f} s" if self.compile_seconds >= 0.1 else ""
        return [name, "baseline" if baseline else self.verdict, time, ratio,
                f"{100 * self.accuracy['share_of_bound']:.1f}", compiled]


def _with_infinities(accuracy: dict[str, Any]) -> dict[str, Any]:
    """JSON has null for what is no finite number: a distance is infinite then, and a value of the worst element a NaN."""
    distances = {name: math.inf for name in ("max_abs", "max_rel", "l2", "share_of_bound") if accuracy[name] is None}
    worst = {name: math.nan if value is None else value for name, value in accuracy["worst"].items()}
    return {**accuracy, **distances, "worst": worst}


HEAD = ["contender", "verdict", "us", "times as fast", "% of the bound", ""]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Contenders on one operation; the first row is the baseline. Printed it is a table, in a notebook too."""

    operation: str  #: the call, and where a model has it
    op: str
    processes: int  #: of each contender that was timed
    bytes: float  #: that the call reads and writes at least
    flops: float  #: that it computes
    rows: List[Row]
    result: dict[str, Any] = dataclasses.field(repr=False)  #: all of it, as a line of `weft lab --out` has it; json.dumps writes one

    def __getitem__(self, contender: str) -> Row:
        """The row of a contender, by the name that it was given."""
        for row in self.rows:
            if row.contender == contender:
                return row
        raise KeyError(f"no contender {contender!r}; there are {', '.join(repr(r.contender) for r in self.rows)}")

    def __str__(self) -> str:
        table = [HEAD] + [row._cells(i == 0) for i, row in enumerate(self.rows)]
        widths = [max(len(line[c]) for line in table) for c in range(len(HEAD) - 1)]
        lines = [self.operation]
        for line in table:
            cells = [cell.ljust(w) if c < 2 else cell.rjust(w) for c, (cell, w) in enumerate(zip(line, widths))]
            lines.append(("  " + "  ".join(cells + line[-1:])).rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{h}</th>" for h in HEAD)
        body = ""
        for i, row in enumerate(self.rows):
            name, verdict, *others = (html.escape(cell) for cell in row._cells(i == 0))
            colour = COLOURS.get(row.verdict, "inherit") if i or row.out else "inherit"
            body += f'<tr><td style="text-align:left">{name}</td><td style="color:{colour}"><b>{verdict}</b></td>'
            body += "".join(f"<td>{cell}</td>" for cell in others) + "</tr>"
        return f"<div>{html.escape(self.operation)}</div><table><tr>{head}</tr>{body}</table>"

    @classmethod
    def _of(cls, found: dict[str, Any]) -> Comparison:
        operation = found["operation"]
        return cls(operation["label"], operation["op"], found["processes"], found["bytes"], found["flops"],
                   [Row._of(row) for row in found["rows"]], found)


class Report(List[Comparison]):
    """A comparison for each operation, in order. Printed they are tables, in a notebook too."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(c._repr_html_() for c in self)
