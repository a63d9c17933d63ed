"""Sizes that are symbols: torch's sympy expressions as Weft spells them, with bounds."""

import sympy
import torch

from .._weft import Unsupported

MOST = 1 << 20  # of a symbol without an upper bound of its own
LEAST_MOST = 1 << 10  # and what it may become, so that tensors stay small enough to count
MOST_ELEMENTS = 1 << 47  # of a tensor, below what the importer takes


def expression(size):
    """The sympy expression of a size, or the int."""
    if isinstance(size, torch.SymInt):
        node = size.node
        return int(size) if node.is_constant() else node.expr
    return size


class Dims:
    """The symbols of one graph, and its sizes in the words of weft::parse_dim: `+`, `*`, `//` and `max`."""

    def __init__(self, ranges, names=None):
        """`ranges`: sympy symbol -> torch's ValueRanges; `names`: sympy symbol -> a name to use in its place."""
        self._ranges = ranges
        self._names = names or {}
        self._most = MOST
        self.used = {}  # sympy symbol -> name, in the order in which they are met

    def again(self):
        """The same for a part of the graph, which may have fewer symbols."""
        other = Dims(self._ranges, self._names)
        other._most = self._most
        return other

    def text(self, size):
        """An int, or the text of an expression."""
        size = expression(size)
        if isinstance(size, int):
            return size
        if not isinstance(size, sympy.Expr):
            raise Unsupported(f"a size that is a {type(size).__name__}")
        return int(size) if size.is_Integer else self._sum(sympy.expand(size))

    def shape(self, tensor):
        return [self.text(n) for n in tensor.shape]

    def symbols(self):
        """name -> [least, most] of the symbols met so far, for the field "symbols" of a graph."""
        return {name: list(self.bounds(symbol)) for symbol, name in self.used.items()}

    def bounds(self, symbol):
        known = self._ranges.get(symbol)
        if known is None:
            return 0, self._most
        least = int(known.lower) if known.lower.is_Integer else 0
        most = int(known.upper) if known.upper.is_Integer else self._most
        return max(0, least), max(0, least, min(most, self._most))

    def limit(self, shapes):
        """Lowers the bound of symbols that have none, until each of the shapes has few enough elements."""
        for shape in shapes:
            product = sympy.Mul(*[sympy.sympify(expression(n)) for n in shape])
            while self._most > LEAST_MOST and self._largest(product) > MOST_ELEMENTS:
                self._most //= 2

    def lower(self):
        """Lowers that bound once more, if it can be lowered. What a program makes inside may be larger than the graph's tensors."""
        may = self._most > LEAST_MOST and any(self.bounds(s)[1] == self._most for s in self.used)
        self._most //= 2 if may else 1
        return may

    def _largest(self, product):
        at = product.subs({s: self.bounds(s)[1] for s in product.free_symbols})
        return int(at) if at.is_Integer else 0

    def _symbol(self, symbol):
        known = self._ranges.get(symbol)
        if known is not None and known.lower.is_Integer and int(known.lower) < 0:
            raise Unsupported(f"{symbol}, a number that may be negative")
        return self.used.setdefault(symbol, self._names.get(symbol, str(symbol)))

    def _sum(self, e):
        terms = sympy.Add.make_args(e)
        return "+".join(self._product(t) for t in terms)

    def _product(self, e):
        parts = []
        for f in sympy.Mul.make_args(e):
            base, power = f.as_base_exp()
            if not power.is_Integer or int(power) < 1:
                raise Unsupported(f"the size {e}")
            parts += [self._factor(base)] * int(power)
        return "*".join(parts)

    def _factor(self, e):
        if e.is_Integer:
            return str(int(e))
        if e.is_Symbol:
            return self._symbol(e)
        name = type(e).__name__
        if name in ("FloorDiv", "CleanDiv") and e.args[1].is_Integer and int(e.args[1]) > 0:
            return f"(({self._sum(sympy.expand(e.args[0]))})//{int(e.args[1])})"
        if name == "Max":
            out = self._sum(sympy.expand(e.args[0]))
            for other in e.args[1:]:
                out = f"max({out},{self._sum(sympy.expand(other))})"
            return out
        if isinstance(e, sympy.Add):
            return f"({self._sum(e)})"
        raise Unsupported(f"the size {e}: {name} of symbols")
