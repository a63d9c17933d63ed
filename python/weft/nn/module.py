"""How a Python class becomes a module: what it sets in __init__ are its parts."""

from _thread import _local
from collections import deque

from weft._weft import Tensor, _is_made
from weft._weft._nn import Module, Parameter, _left


# What holds parts in an order that their names can follow.
_HOLDERS = (list, tuple, dict)


def _is_part(name, value):
    if isinstance(value, (Parameter, Module)):
        return True
    if isinstance(value, _HOLDERS):
        return not value or bool(_parts_of(name, value))
    if isinstance(value, (set, frozenset, deque)) and any(isinstance(v, (Parameter, Module)) for v in value):
        raise TypeError(
            f"'{name}' is a {type(value).__name__} with modules or parameters in it, "
            "which would have no names: use a list or a dict"
        )
    return False


def _parts_of(name, value):
    """Modules in a list or dict, and in those in it, with their names: ("0", module), ("b.1", module)."""
    parts, others = [], []
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(one, Module):
            parts.append((str(key), one))
        elif isinstance(one, Parameter):
            raise TypeError(
                f"'{name}.{key}' is a Parameter in a {type(value).__name__}, where reading it gives no "
                "tensor: make it an attribute of the module"
            )
        else:
            inner = _parts_of(f"{name}.{key}", one) if isinstance(one, _HOLDERS) else []
            parts += [(f"{key}.{place}", module) for place, module in inner]
            if not inner:
                others.append((key, one))
    if parts and others:
        key, one = others[0]
        raise TypeError(
            f"'{name}' holds modules, and '{name}.{key}' is a {type(one).__name__}, which is no part: "
            "keep them apart, or use nn.Sequential, which takes modules and functions"
        )
    return parts


def _set(self, name, value):
    if hasattr(type(self), name):  # a property, such as `training` or the weight of a layer
        object.__setattr__(self, name, value)
        return
    members = self.__dict__.setdefault("_members", {})
    part = members.get(name)
    if isinstance(part, Parameter) and not isinstance(value, (Parameter, Module)):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{type(self).__name__}.{name} is a parameter: it takes a Tensor, got {type(value).__name__}"
            )
        part._set(value, f"{type(self).__name__}.{name}")
        return
    if _is_part(name, value):
        if not _is_made(self):
            raise AttributeError(
                f"{type(self).__name__}.{name} is set before super().__init__(), which makes "
                "the module: call it first"
            )
        members[name] = value
        self.__dict__.pop(name, None)
        _leave(part, value)
    else:
        members.pop(name, None)
    if not isinstance(value, Parameter):
        object.__setattr__(self, name, value)


def _leave(old, new):
    """Functions of weft.compile() that read a part are compiled again when another one takes its place."""
    if old is new:
        return
    if isinstance(old, Module) and _is_made(old):
        _left(old)
    elif isinstance(old, _HOLDERS):
        for part in old.values() if isinstance(old, dict) else old:
            _leave(part, None)


_reading = _local()


def _held(value):
    """Which objects a list or a dict holds, in their order."""
    return [*map(id, value.values()), *value] if isinstance(value, dict) else [*map(id, value)]


class Lists:
    """The lists and dicts of parts of the modules that are called while it lives, which a change to them does not tell."""

    def __enter__(self):
        self.then = {}  # by id: a list or dict, and what it holds now
        self.outer, _reading.lists = getattr(_reading, "lists", None), self
        return self

    def __exit__(self, *_):
        _reading.lists = self.outer

    def changed(self):
        return any(_held(now) != ids for now, _, ids in self.then.values())

    def add(self, value):
        if id(value) in self.then:
            return
        if isinstance(value, (list, dict)):
            self.then[id(value)] = value, value.copy(), _held(value)  # the copy keeps what it holds, and so its ids
        if isinstance(value, _HOLDERS):
            for part in value.values() if isinstance(value, dict) else value:
                self.add(part)


def _called(module):
    """Called for each module whose forward() a function of weft.compile() is recorded from."""
    lists = getattr(_reading, "lists", None)
    if lists is not None:
        for part in module._members.values():
            lists.add(part)
        lists.add(module.__dict__.get("_parts"))  # of a Sequential


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


def _copied(self, *_):
    name = type(self).__name__
    raise TypeError(
        f"{name} can't be copied or pickled, since it does not keep how it was made: make another {name}, "
        "build() it, and give it this one's elements by load_state_dict(model.state_dict()); save() and "
        "load() do so by a file"
    )


# Without these the copy of a class of one's own would be an object that was never initialised.
Module.__copy__ = Module.__deepcopy__ = Module.__reduce_ex__ = _copied  # type: ignore
Module.__setattr__ = _set  # type: ignore
Module.__getattr__ = _get  # type: ignore
Module.__delattr__ = _delete  # type: ignore
Module.forward = _forward  # type: ignore
