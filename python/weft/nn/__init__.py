"""Modules, layers, models, optimisers and what trains and asks them: those of C++, in Python's spelling."""

from weft._weft._nn import *  # noqa: F403
from weft.nn import module as _module  # noqa: F401
from weft.nn.pretrained import Pretrained, from_pretrained
from weft.nn.sequential import Sequential
from weft.nn.train import train
