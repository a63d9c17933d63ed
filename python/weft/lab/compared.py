"""weft.lab.compare(): contenders and operations as Python names them, progress, and the lab of C++."""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from typing import Any, Callable, Optional, Sequence, Union

import weft
from weft import _weft
from weft.display import Shown
from weft.lab.calls import Operation
from weft.lab.results import Comparison, Report

Contender = Union[str, "os.PathLike[str]", Callable[..., Any]]


def use_this_python() -> None:
    """Kernels in Python run in this Python, and with this weft, unless WEFT_PYTHON names another."""
    if sys.executable:
        _weft._lab.set_python(sys.executable, os.path.dirname(os.path.dirname(os.path.abspath(weft.__file__))))


def compare(
    contenders: Sequence[Contender],
    operations: Union[str, Operation, Sequence[Union[str, Operation]]],
    *,
    seconds: float = 30,
    margin: float = 0.015,
    confidence: float = 0.99,
    sample: float = 2e-3,
    quick: bool = False,
    cold: bool = False,
    threads: int = 0,
    timeout: float = 20,
    device: str = "",
    seed: int = 0,
    progress: Union[bool, Callable[[str], object]] = True,
) -> Report:
    """Compares kernels with the first of them on each of the operations: are they right, and which is faster?

    contenders   names of weft.lab.list(), ids of kernels ("native.softmax.rows"), files (.py, .cpp, .c, .so), "FILE.py:FUNCTION", or
                 functions that a file defines. Each runs in processes of its own, so a function of a notebook's cell can't be one.
    operations   ops of weft.lab.operations(), each at all the sizes of the table, or weft.lab.Operation of your own
    seconds      of measuring an operation, about; a verdict that is not sure by then is UNDECIDED
    margin       times closer than this share are the SAME
    confidence   of the intervals
    sample       seconds of launches in a turn
    quick        fewer cases of conformance, fewer processes
    cold         the caches are flushed before each launch, which is not counted
    threads      of each kernel; 0: as many as there are cores
    timeout      seconds after which a kernel that does not answer hangs
    device       where kernels in Python compute ("cuda", or "native" for the host's memory); "": where the first contender does, if that is a GPU
    seed         of what is drawn; 0: one that no kernel can know
    progress     True: a line with the time left; or a function that is given it

    What a kernel does wrong is its row's verdict and reason, never an exception.

    Errors   weft.InvalidArgument for operations that the lab does not have, and for functions that no other process can import.
    """
    use_this_python()
    names = [_name_of(c) for c in contenders]
    if len(names) < 2:
        raise weft.InvalidArgument("weft.lab.compare: one contender has nobody to be compared with; name another")
    options = dict(seconds=seconds, margin=margin, confidence=confidence, sample=sample, quick=quick, cold=cold,
                   threads=threads, timeout=timeout, device=device, seed=seed)
    report = Report()
    for op in [operations] if isinstance(operations, (str, Operation)) else operations:
        wanted = op._as_dict() if isinstance(op, Operation) else op
        for which, operation in enumerate(_weft._lab.operations([wanted])):
            with _Progress(progress, operation["label"], seconds) as see:
                report.append(Comparison._of(json.loads(_weft._lab.compare(names, wanted, which, options, see))))
    return report


def _name_of(contender: Contender) -> str:
    """What a process of its own finds the contender by."""
    if isinstance(contender, str):
        return contender
    if isinstance(contender, os.PathLike):
        return os.fspath(contender)
    name = getattr(contender, "__qualname__", type(contender).__name__)
    try:
        file = inspect.getsourcefile(contender)
    except TypeError:
        file = None
    if file is None or not os.path.isfile(file):
        raise weft.InvalidArgument(
            f"weft.lab.compare: {name} is defined in no file, and a kernel runs in a process of its own, which could not find it. "
            "Write it to a file (in a notebook, a cell that begins with %%writefile mine.py), with FRAMEWORK at its beginning, and name 'mine.py'"
        )
    if "." in name or "<" in name:
        raise weft.InvalidArgument(f"weft.lab.compare: {name} is not a function of {file} itself, so that a process of its own could not find it; move it out")
    return f"{file}:{name}"


class _Progress:
    """Tells what is done now, and how long it may take yet."""

    def __init__(self, wanted, label, seconds):
        self._tell = wanted if callable(wanted) else None
        self._shown = Shown() if wanted and not callable(wanted) else None
        self._label, self._seconds, self._end = label, seconds, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._shown is not None:
            self._shown.end()

    def __call__(self, what):
        if what.startswith("process ") and self._end is None:
            self._end = time.monotonic() + self._seconds
        left = "" if self._end is None else f", at most {max(0, round(self._end - time.monotonic()))} s left"
        text = f"{self._label}: {what}{left}"
        if self._tell is not None:
            self._tell(text)
        elif self._shown is not None and self._shown.due():
            self._shown.show(text, f"<div>{text}</div>")
