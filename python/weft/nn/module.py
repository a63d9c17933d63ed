"""How a Python class becomes a module: what it sets in __init__ are its parts."""

from weft._weft import Tensor, _is_made
from weft._weft._nn import Module, Parameter


def _is_part(value):
    if isinstance(value, (Parameter, Module)):
        return True
    return isinstance(value, (list, tuple)) and all(isinstance(v, Module) for v in value)


def _set(self, name, value):
    if hasattr(type(self), name):  # a property, such as `training` or the weight of a layer
        object.__setattr__(self, name, value)
        return
    members = self.__dict__.setdefault("_members", {})
    part = members.get(name)
    if isinstance(part, Parameter) and not isinstance(value, (Parameter, Module)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{type(self).__name__}.{name} is a parameter: it takes a Tensor, got {type(value).__name__}")
        part.tensor = value
        return
    if _is_part(value):
        if not _is_made(self):
            raise AttributeError(f"{type(self).__name__}.{name} is set before super().__init__(), which makes the module: call it first")
        members[name] = value
        self.__dict__.pop(name, None)
    else:
        members.pop(name, None)
    if not isinstance(value, Parameter):
        object.__setattr__(self, name, value)


# Only called for what is no attribute: parameters are not, so that reading one gives its tensor.
def _get(self, name):
    part = self.__dict__.get("_members", {}).get(name) if name != "_members" else {}
    if isinstance(part, Parameter):
        return part.tensor
    if name == "_members":
        return {}
    raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")


def _delete(self, name):
    part = self.__dict__.get("_members", {}).pop(name, None)
    if not isinstance(part, Parameter):
        object.__delattr__(self, name)


def _forward(self, *args, **kwargs):
    """Computes the result; a subclass defines it."""
    raise NotImplementedError(f"{type(self).__name__} has no forward()")


Module.__setattr__ = _set  # type: ignore
Module.__getattr__ = _get  # type: ignore
Module.__delattr__ = _delete  # type: ignore
Module.forward = _forward  # type: ignore
