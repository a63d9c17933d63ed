"""The kernels of torch.py, compiled by PyTorch's own compiler (inductor). One shape is compiled for itself."""

import os
import sys

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no processes of its own, which would run on while others are timed

import torch

from weft.lab.providers import torch as eager

FRAMEWORK = "torch"


def _compiled(function):
    made = torch.compile(function, dynamic=False, fullgraph=True)
    made.__module__ = __name__
    return made


def _compile_all():
    for name, function in vars(eager).items():
        if getattr(function, "__module__", "") == eager.__name__ and name[0] != "_":
            setattr(sys.modules[__name__], name, _compiled(function))


_compile_all()
torch._dynamo.config.cache_size_limit = 4096  # each case of conformance has a shape of its own
