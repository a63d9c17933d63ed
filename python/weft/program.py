"""Program files from Python: weft.load(path).run(...), weft.export(model, args)."""

import os

from weft import _weft


class ProgramFile:
    """An opened program file. `inputs` and `outputs` are lists of (name, type)."""

    def __init__(self, program):
        self.program = program
        self.inputs, self.outputs = _weft._ports(program)

    def run(self, *inputs, **named):
        """Runs once: inputs in their order or by name, as tensors of Weft's, PyTorch's or NumPy's, and results of the same kind.

        A program with one output gives it, others a tuple. Nothing is copied but inputs whose elements have gaps.
        """
        given = self._in_order(inputs, named)
        like = next((x for x in given if not isinstance(x, _weft.Tensor)), None)
        tensors = [_tensor(x, name) for x, (name, _) in zip(given, self.inputs)]
        out = tuple(_as_kind(t, like) for t in self.program(*tensors))
        return out[0] if len(out) == 1 else out

    def _in_order(self, inputs, named):
        names = [name for name, _ in self.inputs]
        if len(inputs) > len(names):
            raise TypeError(f"the program takes {len(names)} inputs ({', '.join(names)}), got {len(inputs)}")
        rest = names[len(inputs):]
        unknown, missing = [n for n in named if n not in rest], [n for n in rest if n not in named]
        if unknown or missing:
            raise TypeError(f"the program takes {', '.join(names)}" + (f"; missing: {', '.join(missing)}" if missing else "")
                            + (f"; not among the others: {', '.join(unknown)}" if unknown else ""))
        return [*inputs, *(named[n] for n in rest)]

    def state(self, name):
        """The present value of a state."""
        return self.program.state(name)

    def state_names(self):
        return self.program.state_names()

    def save(self, path):
        """Writes the program with the present values of its states."""
        self.program.save(os.fspath(path))

    def __repr__(self):
        def listed(ports):
            return ", ".join(f"{name}: {kind}" for name, kind in ports)

        return f"ProgramFile({listed(self.inputs)} -> {listed(self.outputs)})"


def load(path, backend=""):
    """Opens a program file on a backend (empty: the default one).

    Errors   weft.Unavailable where there is no such file, weft.IoError when it can't be read; weft.Corrupt, with the section, when it is not whole.
    """
    return ProgramFile(_weft.load_program(os.fspath(path), backend))


def export(module, args, kwargs=None, dynamic_shapes=None, *, path=None, name=None, backend=""):
    """A PyTorch model as a program, by torch.export, whose arguments these are.

    Sizes that `dynamic_shapes` names are symbols of the program; a buffer that the model writes to is a state. With `path`, the
    program is written to this file, with a test on the inputs given for weft.verify() where that takes no longer than a second.

    Errors   weft.Unsupported, which lists what can't be imported, with the names of the nodes.
    """
    from weft.torch.export import export as exported

    return exported(module, args, kwargs, dynamic_shapes, path=path, name=name, backend=backend)


def verify(path, backend=""):
    """Runs the tests that a program file carries on a backend: a list of dicts with `test`, `sizes`, `right`, `worst`, the largest
    error in units of what is allowed, and `wrong`, what was wrong.

    Errors   weft.InvalidArgument for a file without tests.
    """
    return _weft.verify(os.fspath(path), backend)


def _tensor(x, name):
    if isinstance(x, _weft.Tensor):
        return x
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"input '{name}' is a {type(x).__name__}; wanted a tensor of Weft's, PyTorch's or NumPy's")
    if hasattr(x, "detach"):
        x = x.detach()
        if str(x.layout) != "torch.strided":
            raise TypeError(f"input '{name}' is not dense: {x.layout}; give it as x.to_dense()")
        x = x.contiguous()
    elif any(step < 0 for step in x.strides):
        x = x.copy()
    return _weft.from_dlpack(x)


def _as_kind(tensor, like):
    if like is None:
        return tensor
    if hasattr(like, "detach"):
        import torch

        return torch.from_dlpack(tensor)
    return tensor.numpy()
