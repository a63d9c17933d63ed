"""Operations of one's own, beside those of the lab's table."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence, Union

Dims = Sequence[int]


class Integers(NamedTuple):
    """An operand of whole numbers from low to high, both included."""

    shape: Dims
    low: int
    high: int
    dtype: str


def integers(shape: Dims, low: int, high: int, dtype: str = "i32") -> Integers:
    """An operand of whole numbers from `low` to `high`, both included, as the places of an embedding."""
    return Integers(tuple(shape), low, high, dtype)


class Operation:
    """A call to compare kernels on: an op, the shapes of its operands, and its attributes.

        weft.lab.Operation("softmax", (96, 64), axis=-1)
        weft.lab.Operation("embedding", (1000, 64), weft.lab.integers((128,), 0, 999))

    Operands are normally distributed numbers of `dtype`, drawn anew for each process. Results are judged by the
    oracle whole, unless the lab's table has a call of the same op, ranks and attributes: make them small.

    Errors   weft.InvalidArgument, when it is compared, for an op that is none and for shapes that it does not take.
    """

    def __init__(self, op: str, *operands: Union[Dims, Integers], dtype: Any = "f32", where: str = "a call of your own", **attributes: Any) -> None:
        self.op, self.operands, self.dtype, self.where, self.attributes = op, operands, dtype, where, attributes

    def __repr__(self) -> str:
        parts = [repr(self.op), *(repr(tuple(o)) if not isinstance(o, Integers) else repr(o) for o in self.operands)]
        parts += [f"{name}={value!r}" for name, value in self.attributes.items()]
        return f"weft.lab.Operation({', '.join(parts)})"

    def _as_dict(self) -> dict[str, Any]:
        inputs = [(tuple(o.shape), o.dtype, o.low, o.high) if isinstance(o, Integers) else (tuple(o), None, 0, 0) for o in self.operands]
        attributes = {name: int(v) if isinstance(v, bool) else v for name, v in self.attributes.items()}
        return {"op": self.op, "where": self.where, "dtype": self.dtype, "inputs": inputs, "attrs": attributes}
