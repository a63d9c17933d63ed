"""PyTorch's answers, and gradients above all, at NaN, infinities and zeros of both signs."""
import itertools
import math

import activations
import elementwise
import fold
import functions
import rows

INF, NAN = math.inf, math.nan
VALUES = [NAN, INF, -INF, 0.0, -0.0, 1.5, -1.5]
PAIRS = list(itertools.product(VALUES, VALUES))

UNARY = ("relu", "abs", "leaky_relu", "clamp", "silu", "gelu", "sigmoid", "softplus", "exp", "expm1", "log", "log1p",
         "sqrt", "rsqrt", "reciprocal", "square", "neg", "sin", "cos", "tanh", "erf", "floor", "ceil", "trunc",
         "round", "sign")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "power")
FOLDS = ("max", "min", "sum", "mean", "logsumexp", "variance")
ROWS = ("softmax", "log_softmax")

ALL = {**elementwise.ANSWERS, **functions.ANSWERS, **activations.ANSWERS, **fold.ANSWERS, **rows.ANSWERS}
ANSWERS = {op: ALL[op] for op in (*UNARY, *BINARY, *FOLDS, *ROWS)}
ATTRIBUTES = {"clamp": {"min": -1.0, "max": 1.5}, "leaky_relu": {"slope": 0.25}}

# Left out: sign(NaN) is NaN here, as in NumPy; the slope of x^0 at NaN is not said to be 0; PyTorch's gelu(inf) is NaN
# in f32 and inf in f64.
LEFT_OUT = {"sign": lambda x: math.isnan(x), "gelu": lambda x: math.isinf(x),
            "power": lambda x: math.isnan(x[0]) and x[1] == 0}
ROW = [[1.0, NAN, 2.0], [INF, 1.0, -INF], [0.0, -0.0, 0.0], [-INF, 1.0, 1.0], [2.0, 2.0, -2.0]]


def kept(op, values):
    return [v for v in values if not LEFT_OUT.get(op, lambda x: False)(v)]


CASES = [
    *[(op, [("same", kept(op, VALUES))], ATTRIBUTES.get(op, {})) for op in UNARY],
    *[(op, [("same", [p[i] for p in kept(op, PAIRS)]) for i in (0, 1)], {}) for op in BINARY],
    *[(op, [("same", ROW)], {"axes": [1]}) for op in FOLDS],
    *[(op, [("same", ROW)], {"axis": 1}) for op in ROWS],
]
