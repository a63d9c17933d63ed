"""weft.lab.list(): what can be compared here, and what can't, with the reason."""

from __future__ import annotations

import html
from typing import Any, Dict, List

from weft import _weft
from weft.lab.compared import use_this_python


class Offers(List[Dict[str, Any]]):
    """Contenders, each a dict: contender, provider, available, reason (why it can't be had; empty: it can). Printed they are a table."""

    def __str__(self) -> str:
        width = max((len(o["contender"]) for o in self), default=0)
        return "\n".join(f"{o['contender']:<{width}}  {o['reason'] or 'available'}" for o in self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lines = "".join(f"<tr><td>{html.escape(o['contender'])}</td><td>{html.escape(o['reason'] or 'available')}</td></tr>" for o in self)
        return f"<table><tr><th>contender</th><th></th></tr>{lines}</table>"


def list() -> Offers:
    """What can be compared on this machine, and what is missing, and why. Files of your own come on top of it."""
    use_this_python()
    found = Offers()
    for provider in _weft._lab.offers():
        for contender, reason in provider["contenders"]:
            found.append({"contender": contender, "provider": provider["provider"], "available": not reason, "reason": reason})
    return found


def operations(*ops: str) -> List[str]:
    """The calls of the lab's table: of these ops, or all.

    Errors   weft.InvalidArgument for an op that the table has not; it lists those that it has.
    """
    return [o["label"] for o in _weft._lab.operations([*ops] if ops else [""])]
