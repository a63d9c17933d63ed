"""PyTorch's answers for ops over rows and for losses."""
import torch

F = torch.nn.functional


def operand(x, i):
    return x[i] if i < len(x) else None


def layer_norm(x, a):
    shape = x[0].shape[-a.get("trailing", 1):]
    return [F.layer_norm(x[0], shape, operand(x, 1), operand(x, 2), a.get("epsilon", 1e-5))]


def group_norm(x, a):
    return [F.group_norm(x[0], a.get("groups", 1), operand(x, 1), operand(x, 2), a.get("epsilon", 1e-5))]


def batch_norm(x, a):
    """By hand: F.batch_norm has no gradient of the statistics."""
    mean, variance, weight, bias = [t if t is None else t.reshape(-1, *[1] * (x[0].dim() - 2))
                                    for t in (x[1], x[2], operand(x, 3), operand(x, 4))]
    y = (x[0] - mean) / torch.sqrt(variance + a.get("epsilon", 1e-5))
    y = y if weight is None else y * weight
    return [y if bias is None else y + bias]


def batch_norm_train(x, a):
    """The running statistics have no gradient in PyTorch; ours is zero."""
    mean, variance = x[1].detach().clone(), x[2].detach().clone()
    y = F.batch_norm(x[0], mean, variance, operand(x, 3), operand(x, 4), True, a.get("momentum", 0.1),
                     a.get("epsilon", 1e-5))
    return [y + 0 * (x[1].sum() + x[2].sum()), mean, variance]


def global_norm_clip(x, a):
    """What torch.nn.utils.clip_grad_norm_ does once it has the norm."""
    return [x[0] * torch.clamp(a.get("max_norm", 1.0) / (x[1] + a.get("epsilon", 1e-6)), max=1.0)]


def layer_norm_grad(x, a):
    """As formulas, so that autograd can go on from here; PyTorch's own gradient must say the same."""
    shape = x[0].shape[-a.get("trailing", 1):]
    axes, rows = list(range(-len(shape), 0)), list(range(x[0].dim() - len(shape)))
    weight = operand(x, 2)
    mean = x[0].mean(axes, keepdim=True)
    scale = 1 / torch.sqrt(((x[0] - mean) ** 2).mean(axes, keepdim=True) + a.get("epsilon", 1e-5))
    h = (x[0] - mean) * scale
    g = x[1] if weight is None else x[1] * weight
    dx = scale * (g - g.mean(axes, keepdim=True) - h * (g * h).mean(axes, keepdim=True))
    leaf = x[0].detach().clone().requires_grad_(True)
    y = F.layer_norm(leaf, shape, None if weight is None else weight.detach(), None, a.get("epsilon", 1e-5))
    torch.testing.assert_close(torch.autograd.grad(y, leaf, x[1].detach())[0], dx.detach())
    return [dx, (x[1] * h).sum(rows), x[1].sum(rows)]


def rms_norm_grad(x, a):
    """As formulas, as layer_norm_grad."""
    epsilon = a.get("epsilon", 1e-5)
    r = 1 / torch.sqrt((x[0] ** 2).mean(-1, keepdim=True) + epsilon)
    h, g = x[0] * r, x[1] * x[2]
    dx = r * (g - h * (g * h).mean(-1, keepdim=True))
    leaf = x[0].detach().clone().requires_grad_(True)
    y = F.rms_norm(leaf, leaf.shape[-1:], x[2].detach(), epsilon)
    torch.testing.assert_close(torch.autograd.grad(y, leaf, x[1].detach())[0], dx.detach())
    return [dx, (x[1] * h).sum(list(range(x[0].dim() - 1)))]


def aims(x, target, weight, a):
    """What each row aims at, and what the sum is divided by: src/ops/shared/cross_entropy.h."""
    n, classes = x.shape
    sums = a.get("summed")
    s = a.get("label_smoothing", 0.0)
    weight = torch.ones(classes, dtype=x.dtype) if weight is None else weight
    if target.is_floating_point():
        return weight * ((1 - s) * target + s / classes), 1 if sums else n
    counts = (target != a.get("ignore_index", -100)).to(x.dtype)
    safe = torch.where(counts > 0, target, 0).long()
    aim = weight * ((1 - s) * F.one_hot(safe, classes).to(x.dtype) + s / classes)
    return aim * counts[:, None], 1 if sums else (weight[safe] * counts).sum()


def losses(a):
    """The attributes of F.cross_entropy."""
    named = {k: v for k, v in a.items() if k not in ("summed", "wide")}
    return named | {"reduction": "sum" if a.get("summed") else "mean"}


def cross_entropy(x, a):
    """By hand: F.cross_entropy, which must say the same, has no gradient of the weight for classes."""
    aim, divisor = aims(x[0], x[1], operand(x, 2), a)
    y = -(aim * torch.log_softmax(x[0], 1)).sum() / divisor
    torch.testing.assert_close(F.cross_entropy(*[t.detach() for t in x], **losses(a)), y.detach())
    return [y]


def cross_entropy_grad(x, a):
    weight = operand(x, 3)
    aim, divisor = aims(x[0], x[1], weight, a)
    dx = (torch.softmax(x[0], 1) * aim.sum(1, keepdim=True) - aim) * x[2] / divisor
    leaf = x[0].detach().clone().requires_grad_(True)
    y = F.cross_entropy(leaf, x[1].detach(), None if weight is None else weight.detach(), **losses(a))
    torch.testing.assert_close(torch.autograd.grad(y, leaf, x[2].detach())[0], dx.detach())
    return [dx]


def cross_entropy_with_grad(x, a):
    weight = [x[3]] if len(x) > 3 else []
    return [*cross_entropy_grad(x, a), *cross_entropy([x[0], x[1], *weight], a)]


ANSWERS = {
    "cross_entropy_with_grad": cross_entropy_with_grad,
    "layer_norm_grad": layer_norm_grad,
    "cross_entropy_grad": cross_entropy_grad,
    "rms_norm_grad": rms_norm_grad,
    "softmax_grad": lambda x, a: [x[0] * (x[1] - (x[0] * x[1]).sum(a.get("axis", -1), keepdim=True))],
    "log_softmax": lambda x, a: [torch.log_softmax(x[0], a.get("axis", -1))],
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "batch_norm": batch_norm,
    "batch_norm_train": batch_norm_train,
    "global_norm_clip": global_norm_clip,
    "softmax": lambda x, a: [torch.softmax(x[0], a.get("axis", -1))],
    "rms_norm": lambda x, a: [torch.nn.functional.rms_norm(x[0], x[0].shape[-1:], x[1], a.get("epsilon", 1e-5))],
    "cross_entropy": cross_entropy,
}

CLASSES, SOME = ("i64", [6, 0, 3, 3]), ("i64", [6, -100, 3, -100])
SOFT = ("same", [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
WEIGHT = ("positive", (7,))
SMOOTH = {"label_smoothing": 0.1}
SUMMED = {"summed": 1}
LOSSES = [  # logits, target, weight, attributes
    ((4, 7), CLASSES, None, {}), ((4, 7), SOME, None, {}), ((4, 7), CLASSES, None, {"ignore_index": 3}),
    ((4, 7), CLASSES, None, SMOOTH), ((4, 7), SOME, WEIGHT, {}), ((4, 7), SOME, WEIGHT, SMOOTH),
    ((2, 3), SOFT, None, {}), ((2, 3), SOFT, None, SMOOTH), ((2, 3), SOFT, ("positive", (3,)), {}),
    ((2, 3), SOFT, ("positive", (3,)), SMOOTH), ((4, 7), SOME, WEIGHT, SMOOTH | SUMMED), ((2, 3), SOFT, None, SUMMED),
]

CASES = [
    ("softmax", [(3, 7)], {}), ("softmax", [(2, 3, 4)], {"axis": 1}),
    ("softmax", [("same", [[1000.0, 999.0, -1000.0]])], {}),
    ("rms_norm", [(3, 7), (7,)], {}), ("rms_norm", [(2, 3, 5), (5,)], {"epsilon": 1e-2}),
    *[("cross_entropy", [x, target] + [weight] * (weight is not None), a) for x, target, weight, a in LOSSES],
    ("log_softmax", [(3, 7)], {}), ("log_softmax", [(2, 3, 4)], {"axis": 1}),
    ("log_softmax", [("same", [[1000.0, 999.0, -1000.0]])], {}),
    ("layer_norm", [(3, 7), (7,), (7,)], {}), ("layer_norm", [(2, 3, 5)], {"epsilon": 1e-2}),
    ("layer_norm", [(2, 3, 5), (3, 5), (3, 5)], {"trailing": 2}),
    ("group_norm", [(2, 6, 5), (6,), (6,)], {"groups": 3}), ("group_norm", [(2, 4, 3)], {"groups": 2}),
    ("batch_norm", [(3, 4, 5), (4,), ("positive", (4,)), (4,), (4,)], {"epsilon": 1e-3}),
    ("batch_norm", [(5, 3), (3,), ("positive", (3,))], {}),
    ("batch_norm_train", [(3, 4, 5), (4,), ("positive", (4,)), (4,), (4,)], {"momentum": 0.25}),
    ("batch_norm_train", [(5, 3), (3,), ("positive", (3,))], {"epsilon": 1e-3}),
    ("global_norm_clip", [(4, 3), ("same", 4.0)], {"max_norm": 2.5}),
    ("global_norm_clip", [(4, 3), ("same", 0.25)], {}),
    ("layer_norm_grad", [(3, 7), (3, 7), (7,)], {}), ("layer_norm_grad", [(2, 3, 5), (2, 3, 5)], {"epsilon": 1e-2}),
    ("layer_norm_grad", [(2, 3, 5), (2, 3, 5), (3, 5)], {"trailing": 2}),
    *[("cross_entropy_grad", [x, target, ()] + [weight] * (weight is not None), a)
      for x, target, weight, a in LOSSES],
    *[("cross_entropy_with_grad", [x, target, ()] + [weight] * (weight is not None), a)
      for x, target, weight, a in LOSSES[-4:]],
    ("rms_norm_grad", [(3, 7), (3, 7), (7,)], {}),
    ("rms_norm_grad", [(2, 3, 5), (2, 3, 5), (5,)], {"epsilon": 1e-2}),
    ("softmax_grad", [("positive", (3, 7)), (3, 7)], {}),
    ("softmax_grad", [("positive", (2, 3, 4)), (2, 3, 4)], {"axis": 1}),
]
