"""PyTorch's answers for convolutions."""
import torch
from torch.nn import functional as F


def window(x, a):
    """Stride, dilation, padding as pairs, groups."""
    n = x.dim() - 2
    padding = a.get("padding", [0] * 2 * n)
    return (a.get("stride", [1] * n), a.get("dilation", [1] * n),
            [tuple(padding[2 * i:2 * i + 2]) for i in range(n)], a.get("groups", 1))


def conv_of(x, w, a):
    stride, dilation, padding, groups = window(x, a)
    edges = [p for pair in reversed(padding) for p in pair]
    f = [F.conv1d, F.conv2d, F.conv3d][x.dim() - 3]
    return f(F.pad(x, edges), w, stride=stride, dilation=dilation, groups=groups)


def conv_channels_last(x, a):
    return [conv_of(x[0].movedim(-1, 1), x[1], a).movedim(1, -1)]


def conv_transpose(x, a):
    """Without padding, which PyTorch wants to be the same on both sides; then it is cut off."""
    stride, dilation, padding, groups = window(x[0], a)
    more = a.get("output_padding", [0] * len(stride))
    f = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][x[0].dim() - 3]
    y = f(x[0], x[1], stride=stride, dilation=dilation, groups=groups)
    y = F.pad(y, [p for m in reversed(more) for p in (0, m)])
    for i, (before, after) in enumerate(padding):
        y = y.narrow(2 + i, before, y.shape[2 + i] - before - after)
    return [y]


def conv_weight_grad(x, a):
    shape = [x[1].shape[1], x[0].shape[1] // a.get("groups", 1), *a["kernel"]]
    w = torch.zeros(shape, dtype=x[0].dtype, requires_grad=True)
    return [torch.autograd.grad(conv_of(x[0], w, a), w, x[1], create_graph=True)[0]]


ANSWERS = {
    "conv": lambda x, a: [conv_of(x[0], x[1], a)],
    "conv_channels_last": conv_channels_last,
    "conv_transpose": conv_transpose,
    "conv_weight_grad": conv_weight_grad,
}

CASES = [
    ("conv", [(2, 3, 6), (4, 3, 3)], {}), ("conv", [(2, 2, 5, 4), (3, 2, 3, 2)], {}),
    ("conv", [(1, 4, 7, 6), (4, 2, 3, 2)],
     {"stride": [2, 3], "padding": [1, 2, 0, 1], "dilation": [2, 1], "groups": 2}),
    ("conv", [(1, 2, 3, 3, 3), (2, 1, 2, 2, 2)], {"groups": 2, "padding": [0, 0, 1, 1, 0, 1]}),
    ("conv_channels_last", [(2, 6, 3), (4, 3, 3)], {}),
    ("conv_channels_last", [(1, 7, 6, 4), (4, 2, 3, 2)],
     {"stride": [2, 3], "padding": [1, 2, 0, 1], "dilation": [2, 1], "groups": 2}),
    ("conv_transpose", [(2, 3, 4), (3, 2, 3)], {}), ("conv_transpose", [(2, 2, 3, 4), (2, 3, 3, 2)], {}),
    ("conv_transpose", [(1, 4, 3, 2), (4, 2, 3, 2)],
     {"stride": [2, 3], "padding": [1, 2, 0, 1], "dilation": [2, 1], "groups": 2, "output_padding": [1, 2]}),
    ("conv_weight_grad", [(2, 3, 6), (2, 4, 4)], {"kernel": [3]}),
    ("conv_weight_grad", [(1, 4, 7, 6), (1, 4, 3, 2)],
     {"kernel": [3, 2], "stride": [2, 3], "padding": [1, 2, 0, 1], "dilation": [2, 1], "groups": 2}),
]
