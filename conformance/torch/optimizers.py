"""PyTorch's optimisers, one step."""
from fractions import Fraction

import torch


def weight_after(beta, steps):
    """1 - beta^steps, rounded once: in floats the subtraction would cancel."""
    return float(1 - Fraction(beta) ** steps)


def adamw_step(x, a):
    """torch.optim.AdamW after `steps` earlier ones: their moments are ours, and beta^t gives the weights."""
    parameter = torch.nn.Parameter(x[0].detach().clone())
    optimizer = torch.optim.AdamW([parameter], lr=float(x[4]), betas=(a["beta1"], a["beta2"]),
                                  eps=a["epsilon"], weight_decay=a["weight_decay"], foreach=False)
    steps = a["steps"]
    optimizer.state[parameter] = {"step": torch.tensor(float(steps)), "exp_avg": x[2].clone(),
                                  "exp_avg_sq": x[3].clone()}
    parameter.grad = x[1].clone()
    optimizer.step()
    state = optimizer.state[parameter]
    weights = [torch.tensor(weight_after(a[b], steps + 1), dtype=x[0].dtype) for b in ("beta1", "beta2")]
    return [parameter.detach(), state["exp_avg"], state["exp_avg_sq"], *weights]


def sgd_step(x, a):
    """torch.optim.SGD, whose momentum buffer is our velocity."""
    parameter = torch.nn.Parameter(x[0].detach().clone())
    optimizer = torch.optim.SGD([parameter], lr=float(x[3]), momentum=a.get("momentum", 0.0),
                                weight_decay=a.get("weight_decay", 0.0), nesterov=bool(a.get("nesterov", 0)),
                                foreach=False)
    optimizer.state[parameter] = {"momentum_buffer": x[2].clone()}
    parameter.grad = x[1].clone()
    optimizer.step()
    return [parameter.detach(), optimizer.state[parameter]["momentum_buffer"]]


ANSWERS = {
    "sgd_step": sgd_step,
    "adamw_step": adamw_step,
}


def last_operands(op, a, dtype):
    """Operands that follow from attributes which only PyTorch has: the rate, and 1 - beta^steps."""
    if op == "sgd_step":
        return [torch.tensor(a["rate"], dtype=dtype)]
    weights = [weight_after(a[beta], a["steps"]) for beta in ("beta1", "beta2")]
    return [torch.tensor(v, dtype=dtype) for v in (a["rate"], *weights)]


# Attributes of a case that are PyTorch's only.
ONLY_TORCH = ("steps", "rate")

CASES = [
    ("adamw_step", [(3, 4), (3, 4), (3, 4), ("positive", (3, 4))],
     {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01, "steps": 4, "rate": 0.01}),
    ("adamw_step", [(5,), (5,), (5,), ("positive", (5,))],
     {"beta1": 0.5, "beta2": 0.75, "epsilon": 1e-3, "weight_decay": 0.5, "steps": 1, "rate": 0.125}),
    ("sgd_step", [(3, 4), (3, 4), (3, 4)], {"momentum": 0.9, "weight_decay": 0.01, "rate": 0.1}),
    ("sgd_step", [(5,), (5,), (5,)], {"momentum": 0.5, "nesterov": 1, "rate": 0.125}),
]
