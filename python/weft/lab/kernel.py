"""Kernels in Python: which file or provider a name means, and what is called for an op.

A file says FRAMEWORK, one of frameworks.FRAMEWORKS, and defines a function for each op that it has. The
function takes the op's operands as tensors of the framework, and attributes by name. It returns the results,
or writes them into the tensors that it is given as `out`.
"""

import ast
import hashlib
import importlib
import inspect
import pathlib
import sys
import time
import traceback

from weft import _weft
from weft.lab.frameworks import FRAMEWORKS, Refused
from weft.lab.loading import load

PROVIDERS = pathlib.Path(__file__).parent / "providers"
LIBRARY = str(pathlib.Path(__file__).parent)


def provider_names():
    """The files of the folder of providers."""
    return sorted(path.stem for path in PROVIDERS.glob("*.py") if not path.stem.startswith("_"))


def split(name):
    """The file of a name such as "kernels.py:softmax", and its function; of a provider's, its file."""
    path, colon, function = name.rpartition(".py:")
    if colon:
        return pathlib.Path(path + ".py"), function
    return (pathlib.Path(name) if name.endswith(".py") else PROVIDERS / f"{name.removeprefix('python.')}.py"), ""


def missing(name):
    """Why no kernel of this name can run here; empty: one can."""
    try:
        return framework_of(name).missing()
    except SyntaxError as e:
        return f"{split(name)[0].name} is no Python: {e.msg}, line {e.lineno}: {(e.text or '').strip()}"
    except (OSError, ValueError) as e:
        return str(e)


def framework_of(name):
    """The framework of a file, which is read for it and not run."""
    path, _ = split(name)
    tree, found = ast.parse(path.read_bytes(), str(path)), ""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "FRAMEWORK" for t in node.targets):
            found = node.value.value if isinstance(node.value, ast.Constant) else "something that is computed"
    if found not in FRAMEWORKS:
        said = f"says FRAMEWORK = {found!r}" if found else "says no FRAMEWORK"
        raise ValueError(f"{path.name} {said}; it is one of {', '.join(map(repr, FRAMEWORKS))}, at the beginning of the file")
    return FRAMEWORKS[found]


_modules = {}


def module_of(name):
    """The module behind a name, imported once."""
    path, _ = split(name)
    if path not in _modules:
        if path.parent == PROVIDERS:
            _modules[path] = importlib.import_module(f"weft.lab.providers.{path.stem}")
        else:
            sys.path.append(str(path.parent))  # for what it imports from beside itself
            _modules[path] = load(path, f"weft_lab_file_{path.stem}")
    return _modules[path]


def function_of(name, op):
    """What a module defines for an op; raises Refused, with those that there are."""
    path, function = split(name)
    module = module_of(name)
    found = getattr(module, function or op, None)
    if callable(found):
        return found
    mine = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__ and n[0] != "_"]
    raise Refused(f"{path.name} defines no function {function or op}; it has {', '.join(sorted(mine)) or 'none'}")


class Kernel:
    """A function of a file, for calls of one op with these attributes."""

    def __init__(self, name, op, attrs, off_default):
        path, _ = split(name)
        self.function = function_of(name, op)
        self.framework = framework_of(name)
        self.named, self.takes_out = _named(self.function, f"{op}() in {path.name}", attrs, off_default)
        self.id = f"{path.stem}.{getattr(self.function, '__name__', op)}"
        self.identity = hashlib.blake2b(path.read_bytes() + self.framework.version.encode(), digest_size=16).hexdigest()
        self.compile_seconds = 0.0

    def warm_up(self, inputs, outputs):
        """Calls it once on numbers of no meaning, that what is compiled at the first call is compiled."""
        began = time.perf_counter()
        made = [None if t is None else self.framework.example(*t) for t in inputs]
        self.launcher(made, [self.framework.example(*t) for t in outputs])()
        self.compile_seconds = time.perf_counter() - began

    def place(self, inputs, outputs):
        """What computes the results, where these are, from the operands, where those are."""
        tensor = self.framework.tensor
        return self.launcher([None if o is None else tensor(o) for o in inputs], [tensor(o) for o in outputs])

    def launcher(self, operands, results):
        function, framework, named = self.function, self.framework, self.named
        while operands and operands[-1] is None:
            operands.pop()
        out = results[0] if len(results) == 1 else tuple(results)
        if self.takes_out:
            named = named | {"out": out}

        def launch():
            got = function(*operands, **named)
            if got is not out:
                _keep(framework, got, results, self.takes_out)

        return launch


def call(name, op, operands, attrs):
    """The results of an op of these tensors of Weft's, by a kernel; one, or a tuple."""
    types = [None if t is None else (t.dtype.name, tuple(t.shape)) for t in operands]
    inputs, outputs, attrs, off_default = _weft._lab.describe(op, types, attrs)
    kernel = Kernel(name, op, attrs, off_default)
    results = [_weft.zeros(shape, dtype) for dtype, shape in outputs]
    mine = kernel.framework.of_weft
    try:
        kernel.launcher([None if t is None else mine(t) for t in operands], [mine(t) for t in results])()
    except NotImplementedError as e:
        raise _weft.Unsupported(f"{kernel.id}: {e}") from None
    return results[0] if len(results) == 1 else tuple(results)


def _named(function, where, attrs, off_default):
    """The attributes that a function takes, and whether it takes `out`."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of a function in C
        return attrs, False
    any_name = any(p.kind == p.VAR_KEYWORD for p in parameters.values())
    for name in sorted(off_default):
        if name not in parameters and not any_name:
            raise Refused(f"{where} takes no attribute {name}, which is {attrs[name]!r}")
    return {n: v for n, v in attrs.items() if n in parameters or any_name}, "out" in parameters


def _keep(framework, got, results, takes_out):
    """Copies what a kernel returned to where its results are wanted."""
    if got is None and takes_out:
        return
    all_of_it = got if isinstance(got, (tuple, list)) else (got,)
    if len(all_of_it) != len(results):
        raise TypeError(f"it returned {len(all_of_it)} results; the op has {len(results)}")
    for tensor, result in zip(all_of_it, results):
        if tensor is result:
            continue
        if not framework.is_tensor(tensor):
            raise TypeError(f"it returned a {type(tensor).__name__}, which is no tensor of {framework.version}")
        if tensor.dtype != result.dtype or tuple(tensor.shape) != tuple(result.shape):
            raise TypeError(f"it returned {tensor.dtype} {list(tensor.shape)} where {result.dtype} {list(result.shape)} is wanted")
        framework.copy(result, tensor)


def reason(error):
    """What a kernel raised, in words, with its own line."""
    text = f"{type(error).__name__}: {error}" if not isinstance(error, NotImplementedError) else f"{error}"
    if not isinstance(error, Refused):
        frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((LIBRARY, "<"))]
        mine = [f for f in frames if pathlib.Path(f.filename) in _modules] or frames[-1:]
        if mine:
            text += f" ({pathlib.Path(mine[-1].filename).name}, line {mine[-1].lineno}: {mine[-1].line})"
    return text[:4000].encode(errors="backslashreplace").decode()
