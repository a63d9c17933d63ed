"""A softmax of your own in PyTorch, as weft lab takes it: weft lab native examples/lab/softmax_torch.py --ops softmax"""

import torch

FRAMEWORK = "torch"


def softmax(x, out, axis=-1):
    if x.shape[axis] == 0:
        raise NotImplementedError("rows of no elements")
    torch.sub(x, x.amax(axis, keepdim=True), out=out)
    out.exp_()
    out.div_(out.sum(axis, keepdim=True))
