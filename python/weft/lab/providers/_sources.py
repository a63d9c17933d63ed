"""Kernels that backends compile ahead of time, backends/<backend>/kernels/<op>.<variant>.py, as Python modules."""

import functools
import pathlib

from weft.lab.loading import load

HERE = pathlib.Path(__file__)
# In Weft's own folder, which a build's package links to; or as the wheel has them.
PLACES = (HERE.resolve().parents[4] / "backends", HERE.parent / "backends")


@functools.cache
def source(backend, name):
    """The module of a backend's kernel, by the name of its file without the suffix."""
    for place in PLACES:
        path = place / backend / "kernels" / f"{name}.py"
        if path.is_file():
            return load(path, f"weft_{backend}_{name.replace('.', '_')}")
    raise FileNotFoundError(f"{backend}'s kernel {name}.py is in none of {', '.join(map(str, PLACES))}")
