"""What a call says that fits no signature of a function in the extension.

That is: which argument is wrong, what it is and what is wanted.
"""

import ast
import inspect
import re

from weft import _weft


def misfit(function, args, named):
    """The words for a call of a function that refused these arguments."""
    making = function.__name__ == "__init__"
    where = _name(function, args)
    for value in [*args[making:], *named.values()]:
        if not _weft._is_made(value):
            name = type(value).__name__
            return (
                f"{where}: this {name} was never initialised: {name}(...) makes one, "
                "__new__() alone does not; an __init__() of your own calls super().__init__() first"
            )
    forms = [_form(text, defaults) for text, _, defaults in function.__nb_signature__]
    troubles = [_trouble_of_call(form, args, named) for form in forms]
    shown = " or ".join(f"{where.removesuffix('()')}{_parameters(form)}" for form in forms)
    # Of a form that the arguments fit by number and name, if there is one.
    best = [t for t in troubles if t.startswith("'")] or troubles
    if len(set(best)) == 1 and best[0]:
        return f"{where}: {best[0]}. It takes {shown}"
    got = [_named_type(v) for v in args[_has_self(forms[0]) :]]
    got += [f"{n}={_named_type(v)}" for n, v in named.items()]
    return f"{where}: got ({', '.join(got)}), which it does not take. It takes {shown}"


def _name(function, args):
    """Linear() for Linear.__init__, Tokenizer.encode(), Linear.weight for a property."""
    name = function.__qualname__
    if name:
        return name.removesuffix(".__init__").removesuffix(".__call__") + "()"
    for cls in type(args[0]).__mro__ if args else ():
        for key, value in vars(cls).items():
            if isinstance(value, property) and function in (value.fget, value.fset):
                return f"{cls.__name__}.{key}"
    return "a property"


def _form(text, defaults):
    """A signature of nanobind's, which stands as Python's text in which \\0, \\1 are defaults."""
    space = {}
    text = re.sub(r"^def \(", "def _(", text)
    text = re.sub(r"\\(\d+)", lambda m: f"__defaults[{m[1]}]", text)
    name = re.match(r"def (\w+)", text)[1]
    exec(f"from __future__ import annotations\n{text}: pass", {"__defaults": defaults}, space)
    return inspect.signature(space[name])


def _has_self(form):
    return next(iter(form.parameters), "") == "self"


def _parameters(form):
    """(text: str, most: int = 3), without `self`."""
    parts, named_only = [], False
    for name, p in form.parameters.items():
        if name == "self":
            continue
        if p.kind == p.KEYWORD_ONLY and not named_only:
            named_only = True
            parts.append("*")
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        wanted = "" if p.annotation is p.empty else f": {_short(p.annotation)}"
        parts.append(stars + name + wanted + ("" if p.default is p.empty else f" = {_default(p.default)}"))
    return f"({', '.join(parts)})"


def _default(value):
    simple = value is None or value is ... or isinstance(value, (bool, int, float, str, list))
    return "..." if value is ... or not simple else repr(value)


def _short(annotation):
    """Without the modules that its names are of."""
    return re.sub(r"\b(weft\._weft\._nn|weft\._weft|collections\.abc|typing|os)\.", "", annotation)


def _trouble_of_call(form, args, named):
    try:
        bound = form.bind(*args, **named)
    except TypeError as e:
        return str(e)
    for name, value in bound.arguments.items():
        parameter = form.parameters[name]
        if name == "self" or parameter.annotation is inspect.Parameter.empty:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        got = _trouble(value, ast.parse(parameter.annotation, mode="eval").body)
        if got:
            wanted = _short(parameter.annotation)
            if wanted == "object":
                return f"'{name}' must not be None"
            return f"'{name}' must be {wanted}, got {got}"
    return ""


def _named_type(value):
    name = type(value).__name__
    return name if value is None else f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def _trouble(value, wanted):
    """What the value is, where it is not what an annotation says; empty where it may be."""
    if isinstance(wanted, ast.BinOp):  # A | B
        left = _trouble(value, wanted.left)
        return left and _trouble(value, wanted.right)
    if isinstance(wanted, ast.Constant):
        return "" if value is wanted.value else _named_type(value)
    if isinstance(wanted, ast.Subscript):
        return _trouble_inside(value, _last_name(wanted.value), wanted.slice)
    return _trouble_of_type(value, _last_name(wanted))


def _last_name(node):
    return node.attr if isinstance(node, ast.Attribute) else node.id


def _trouble_of_type(value, name):
    if value is None:
        return "" if name == "Any" else "None"
    if name == "str" and isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as e:
            replaced = "text.encode(errors='replace').decode() replaces it"
            return f"a str with a lone surrogate at {e.start}, which UTF-8 can't say: {replaced}"
        return ""
    if name in ("int", "float"):
        number = hasattr(value, "__index__") or (name == "float" and hasattr(value, "__float__"))
        return "" if number else _named_type(value)
    known = {"str": str, "bool": bool, "bytes": bytes, "dict": dict, "list": list, "tuple": tuple}.get(name)
    known = known or getattr(_weft, name, None) or getattr(_weft._nn, name, None)
    return _named_type(value) if isinstance(known, type) and not isinstance(value, known) else ""


def _trouble_inside(value, name, inner):
    if name in ("Mapping", "dict"):
        if not hasattr(value, "items"):
            return _named_type(value)
        pairs = [(repr(k), v) for k, v in value.items()]
        inner = inner.elts[1]
    elif name in ("Sequence", "Iterable", "list", "tuple"):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            return _named_type(value)
        pairs = list(enumerate(value)) if hasattr(value, "__len__") else []
        inner = None if isinstance(inner, ast.Tuple) else inner
    else:
        return "" if name != "Callable" or callable(value) else _named_type(value)
    for place, one in pairs:
        got = _trouble(one, inner) if inner is not None else ""
        if got:
            return f"{_named_type(value)} whose [{place}] is {got}"
    return ""
