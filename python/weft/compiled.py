"""weft.compile(): a function of tensors as one program."""

from math import copysign

from weft import _weft
from weft._weft import Tensor
from weft.nn.module import Lists

MANY = 32  # programs of one function: then a warning is given


class Compiled:
    """A function that runs as a program, one for each set of types. weft.compile() makes one."""

    def __init__(self, function, dynamic_shapes=None, backend="", fuse=True):
        from functools import update_wrapper
        from inspect import signature  # here, so that no thread imports it while another one forks

        if not callable(function):
            raise TypeError(f"weft.compile wants a function, got {type(function).__name__}")
        self.function, self.backend, self.fuse = function, backend, fuse
        self.dynamic_shapes = dynamic_shapes
        self._programs, self._last = {}, None
        self._name = getattr(function, "__name__", type(function).__name__)
        try:
            self._signature = signature(function)
        except (TypeError, ValueError):  # of a module of C++
            self._signature = None
        if not isinstance(function, _weft._nn.Module):  # whose attributes are parts of the model
            update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        if _weft._is_tracing():  # a part of another program
            return self.function(*args, **kwargs)
        tensors = []
        form = _taken_apart(args, tensors, "an argument"), _taken_apart(kwargs, tensors, "an argument") if kwargs else _NONE
        symbols = []
        if self.dynamic_shapes:
            shape_of = self._symbols(args, kwargs)
            symbols = [shape_of.get(id(t)) for t in tensors]
        key = (form, _weft._signature(tensors, symbols), getattr(self.function, "training", None), tuple(symbols),
               None if tensors else _weft.default_backend())
        made = self._programs.get(key)
        if made is None or made.lists and made.lists.changed():
            made = self._make(key, args, kwargs, tensors, symbols)
        results = made.joined(*tensors)
        if results is None:  # what it took for constant was written by another compiled function, or a module has another tensor
            made = self._make(key, args, kwargs, tensors, symbols)
            results = made.joined(*tensors)
        self._last = made
        return _put_together(made.results, iter(results))

    def __get__(self, owner, kind=None):
        from functools import partial

        return self if owner is None else partial(self, owner)

    def __repr__(self):
        return f"weft.compile({self._name}), {len(self._programs)} programs"

    @property
    def program(self):
        """The program that ran last, a weft.Program: text(), schedule_text(), save(path); None before the first call."""
        return self._last and self._last.joined.program

    def clear(self):
        """Forgets all programs: tensors that they used may be written by others again, and the next call compiles."""
        self._programs.clear()
        self._last = None

    def _make(self, key, args, kwargs, tensors, symbols):
        made = _Made()

        def function(stand_ins):
            taken = iter(stand_ins)
            again, named = (_put_together(form, taken) for form in key[0])
            results = []
            made.results = _taken_apart(self.function(*again, **named), results, "a result")
            return results

        names = _names(self._signature, args, kwargs)
        shapes = [s or t.shape for t, s in zip(tensors, symbols or [None] * len(tensors))]
        inputs = [(names[i], t.dtype, shape, t.requires_grad) for i, (t, shape) in enumerate(zip(tensors, shapes))]
        with Lists() as lists:
            made.joined = _weft._Joined(function, inputs, self._name, self.backend or key[4] or tensors[0].backend, self.fuse)
        made.lists = lists if lists.then else None
        self._programs[key] = made
        if len(self._programs) == MANY:
            from warnings import warn

            warn(f"weft.compile: {self._name} was compiled {MANY} times, the last time for {_said(inputs)}: give sizes that change as "
                 "dynamic_shapes, and numbers that change as tensors", stacklevel=3)
        return made

    def _symbols(self, args, kwargs):
        """Shapes with symbols, by the id of the tensor."""
        if self._signature is None:
            raise TypeError(f"weft.compile: the names of {self._name}'s arguments are not known, and dynamic_shapes needs them: compile a function "
                            "that calls it")
        given = self._signature.bind(*args, **kwargs).arguments
        unknown = [name for name in self.dynamic_shapes if name not in given]
        if unknown:
            raise TypeError(f"weft.compile: dynamic_shapes names {', '.join(unknown)}; {self._name} was given {', '.join(given)}")
        return {id(given[name]): _shape(name, given[name], axes) for name, axes in self.dynamic_shapes.items() if axes}


class _Made:
    """A program, how its results are put together, and the lists of parts that it goes by."""

    __slots__ = ("joined", "results", "lists")


def compile(function=None, *, dynamic_shapes=None, backend="", fuse=True):
    """A function of tensors that runs as one compiled program: forward, gradients, updates and random numbers.

        @weft.compile
        def step(x, y):
            loss = nn.token_loss(model(x), y)
            loss.backward()
            optimizer.step(1e-3)
            return loss

    The function runs once for each set of types of its tensors, and is recorded; later calls run the program. Arguments and results may
    be tensors, in tuples, lists and dicts; any other argument is a constant, and a new value of it makes a new program.

    What the function reads from outside is as it was when it was recorded, except the elements of tensors, in whose memory the program
    works, and the attributes of modules: one that is built again, or given another tensor or part, makes a new program; so does another
    part in a list or dict of a module whose forward() runs. Only compiled functions may write it until clear() forgets the programs.

    dynamic_shapes   sizes that may change without a new program, as torch.export has them: {"x": {0: "rows"}}, or a weft.Dim instead
                     of the name, with bounds. Axes with one name have one size.
    backend          where it runs; empty: where the first tensor is
    fuse             whether neighbouring ops may become one kernel

    Errors   weft.Unsupported where a result requires a gradient, which a program does not record; weft.InvalidArgument where the
             function reads an element, writes to an argument, or leaves gradients behind.
    """
    if function is None:
        return lambda function: Compiled(function, dynamic_shapes, backend, fuse)
    return Compiled(function, dynamic_shapes, backend, fuse)


class _Place:
    """Stands for a tensor in what was taken apart."""

    def __repr__(self):
        return "tensor"


_PLACE = _Place()
_NONE = dict, ()  # no arguments by name, taken apart
_NAN = float("nan")  # one object, which equals itself as part of a tuple


def _taken_apart(value, tensors, what):
    """The tensors in a value, in order, and the rest of it as something that can be compared."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _PLACE
    kind = type(value)
    if kind in (tuple, list) or isinstance(value, tuple):
        return kind, tuple([_taken_apart(v, tensors, what) for v in value])
    if kind is dict:
        return kind, tuple([(k, _taken_apart(v, tensors, what)) for k, v in value.items()])
    if hasattr(value, "__dlpack__") or hasattr(value, "__array__"):
        raise TypeError(f"weft.compile: {what} is of {kind.__module__}.{kind.__name__}; weft.from_dlpack() makes a tensor of it")
    if what == "an argument":
        try:
            hash(value)
        except TypeError:
            raise TypeError(f"weft.compile: an argument that is no tensor must be hashable, got {kind.__name__}") from None
    if isinstance(value, float):  # 0.0 and -0.0 are equal, and NaN is not equal to itself
        return None, kind, _NAN if value != value else value, copysign(1.0, value)
    return None, kind, value, getattr(value, "training", None)


def _put_together(form, tensors):
    if form is _PLACE:
        return next(tensors)
    if form[0] is None:
        return form[2]
    if form[0] is dict:
        return {k: _put_together(v, tensors) for k, v in form[1]}
    parts = [_put_together(v, tensors) for v in form[1]]
    return form[0](*parts) if hasattr(form[0], "_fields") else form[0](parts)


def _names(signature, args, kwargs):
    """A name for each tensor: its parameter's, and its place in there."""
    names = []

    def walk(name, value):
        if isinstance(value, Tensor):
            names.append(name if name not in names else f"{name}.{len(names)}")
        elif isinstance(value, (tuple, list)):
            for i, v in enumerate(value):
                walk(f"{name}.{i}", v)
        elif type(value) is dict:
            for k, v in value.items():
                walk(f"{name}.{k}", v)

    by_place = (0, 1)  # inspect's POSITIONAL_ONLY and POSITIONAL_OR_KEYWORD
    parameters = [p.name for p in signature.parameters.values() if p.kind in by_place] if signature else []
    for i, value in enumerate(args):
        walk(parameters[i] if i < len(parameters) else f"input{i}", value)
    for name, value in kwargs.items():
        walk(name, value)
    return names


def _shape(name, tensor, axes):
    if not isinstance(tensor, Tensor):
        raise TypeError(f"weft.compile: dynamic_shapes names {name}, which is no tensor")
    shape = list(tensor.shape)
    for axis, size in (axes.items() if isinstance(axes, dict) else enumerate(axes)):
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"weft.compile: dynamic_shapes: {name} has no axis {axis}, it is {tensor.dtype}{tensor.shape}")
        if size is not None:
            shape[axis] = _weft.Dim.symbol(size) if isinstance(size, str) else size
    return tuple(shape)


def _said(inputs):
    return ", ".join(f"{name}: {dtype.name if hasattr(dtype, 'name') else dtype}{list(shape)}" for name, dtype, shape, _ in inputs)
