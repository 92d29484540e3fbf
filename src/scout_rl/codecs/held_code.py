"""Code that an environment holds and that holds data in its turn: bound methods, partials, closures.

A method is data: its receiver and its name. A partial is: its function and its arguments. A function is not, so one
whose closure holds what a restore makes anew cannot be restored.
"""

from __future__ import annotations

import functools
import random
import types
from collections.abc import Callable, Mapping
from typing import Any

from scout_rl.codecs.kinds import is_env

METHODS = (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)
_GLOBAL_CHANCE = getattr(random, "_inst", None)  # `random.random` is a method too: of the module's one generator


def receiver(value: Any) -> Any | None:
    """What a method is bound to; None for functions, class methods and those of modules and wrappers."""
    owner: Any = getattr(value, "__self__", None) if isinstance(value, METHODS) else None
    if isinstance(owner, type | types.ModuleType) or owner is _GLOBAL_CHANCE:
        return None
    return None if is_env(owner) and owner.unwrapped is not owner else owner


def method_name(value: Any) -> str | None:
    """The name under which the receiver's class has this method; None where it has not."""
    cls, name = type(value.__self__), value.__name__
    code = getattr(value, "__func__", None)
    if code is None or getattr(cls, name, None) is code:
        return str(name) if callable(getattr(cls, name, None)) else None
    found = (n for c in cls.__mro__ for n, f in vars(c).items() if f is code and getattr(cls, n) is code)
    return next(found, None)


def bind(owner: Any, name: str, path: str) -> Any:
    """The method ``name`` of ``owner``."""
    method = getattr(owner, name) if callable(getattr(type(owner), name, None)) else None
    if not isinstance(method, METHODS) or method.__self__ is not owner:
        raise ValueError(f"{path} is a method {name!r}, which {type(owner).__name__} does not have.")
    return method


def first_held(code: Any, wanted: Callable[[Any], bool], inside: Callable[[Any], Mapping[str, Any]]) -> Any | None:
    """The first value for which ``wanted`` holds among what ``code`` refers to, near or far.

    ``inside(value)`` gives the attributes of an object that is to be searched as well.
    """
    seen: set[int] = set()
    waiting = [code]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if value is not code and wanted(value):
            return value
        waiting.extend(code_parts(value))
        waiting.extend(inside(value).values())
    return None


def code_parts(value: Any) -> list[Any]:
    """What a function, a partial, a method or a container refers to."""
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
        return [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, METHODS):
        return [part for part in (receiver(value), getattr(value, "__func__", None)) if part is not None]
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple | set | frozenset) else []


def _filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:  # a name that the enclosing function has not bound yet
        return False
    return True
