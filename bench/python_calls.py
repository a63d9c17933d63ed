"""What a call of a small op costs from Python: Weft beside PyTorch, by turns, in CPU time of this thread. scripts/bench calls runs it."""

import statistics
import sys
import time

import torch

import weft

ROUNDS, CALLS, LIMIT = 15, 1000, 0.6


def cases():
    a, b = torch.ones(8, 8), torch.ones(8)
    x, y = weft.ones((8, 8)), weft.ones(8)
    of = torch.nn.functional
    return {
        "x + x": (lambda: x + x, lambda: a + a),
        "x * 2.0": (lambda: x * 2.0, lambda: a * 2.0),
        "x @ x": (lambda: x @ x, lambda: a @ a),
        "x < x": (lambda: x < x, lambda: a < a),
        "x[1:]": (lambda: x[1:], lambda: a[1:]),
        "x[0, 1].item()": (lambda: x[0, 1].item(), lambda: a[0, 1].item()),
        "x.T": (lambda: x.T, lambda: a.T),
        "x.reshape(4, 16)": (lambda: x.reshape(4, 16), lambda: a.reshape(4, 16)),
        "exp": (lambda: weft.exp(x), lambda: torch.exp(a)),
        "relu": (lambda: weft.relu(x), lambda: torch.relu(a)),
        "gelu": (lambda: weft.gelu(x), lambda: of.gelu(a)),
        "where": (lambda: weft.where(x > 0, x, x), lambda: torch.where(a > 0, a, a)),
        "sum over an axis": (lambda: x.sum(1), lambda: a.sum(1)),
        "mean of all": (lambda: x.mean(), lambda: a.mean()),
        "softmax": (lambda: weft.softmax(x, axis=1), lambda: torch.softmax(a, 1)),
        "layer_norm": (lambda: weft.layer_norm(x, y, y), lambda: of.layer_norm(a, (8,), b, b)),
        "linear": (lambda: weft.linear(x, x, y), lambda: of.linear(a, a, b)),
        "concat": (lambda: weft.concat([x, x]), lambda: torch.cat([a, a])),
        "cast to i32": (lambda: x.to(weft.i32), lambda: a.to(torch.int32)),
    }


def exchanges():
    """Most of it is PyTorch's own export, which is Python: without a limit."""
    a, x = torch.ones(8, 8), weft.ones((8, 8))
    return {
        "PyTorch's __dlpack__": lambda: a.__dlpack__(max_version=(1, 0)),
        "weft.from_dlpack(a)": lambda: weft.from_dlpack(a),
        "torch.from_dlpack(x)": lambda: torch.from_dlpack(x),
    }


def nanoseconds(call):
    begin = time.thread_time_ns()
    for _ in range(CALLS):
        call()
    return (time.thread_time_ns() - begin) / CALLS


def main():
    torch.set_num_threads(1)  # a small op uses one in any case, and this way its CPU time is all this thread's
    torch.set_grad_enabled(False)
    print(f"{'call':<18}{'Weft, ns':>10}{'PyTorch, ns':>13}{'ratio':>8}")
    ratios = []
    for name, (ours, theirs) in cases().items():
        nanoseconds(ours), nanoseconds(theirs)
        rounds = [(nanoseconds(ours), nanoseconds(theirs)) for _ in range(ROUNDS)]
        ratio = statistics.median(a / b for a, b in rounds)
        ratios.append(ratio)
        a, b = (statistics.median(side) for side in zip(*rounds))
        print(f"{name:<18}{a:>10.0f}{b:>13.0f}{ratio:>8.2f}{'' if ratio <= LIMIT else f'   above {LIMIT}'}")
    print(f"{'geometric mean':<41}{statistics.geometric_mean(ratios):>8.2f}")
    for name, call in exchanges().items():
        nanoseconds(call)
        print(f"{name:<22}{statistics.median(nanoseconds(call) for _ in range(ROUNDS)):>6.0f} ns")
    return any(r > LIMIT for r in ratios)


if __name__ == "__main__":
    sys.exit(main())
