"""Environments and codecs by the names that one types: an id, ``module:factory`` or ``path/to/file.py:factory``."""

from __future__ import annotations

import functools
import operator
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from scout_rl.codecs.codec import Codec, is_made
from scout_rl.files.refusal import Refusal


def env_by_name(name: str, kwargs: Mapping[str, Any]) -> Any:
    """What `verify_codec` takes for ``name``.

    After the colon stands a function, a class or an environment of the module, or an id that the module registers.
    ``kwargs`` go to ``gymnasium.make`` or to the function. Modules of the current folder are imported too.
    """
    where, colon, attribute = name.rpartition(":")
    if not colon:
        return name, dict(kwargs)
    module = _imported(where)
    if not hasattr(module, attribute.split(".")[0]):
        if where.endswith(".py"):
            raise Refusal(f"{where} has no {attribute!r}: name a function or class in it that makes the environment")
        return name, dict(kwargs)  # the module has registered it, or Gymnasium says that it has not
    env = _attribute(module, attribute)
    if is_made(env):
        return env
    if not callable(env):
        raise Refusal(f"{name} is {type(env).__name__}, but must be a function or class that makes an environment")
    return functools.partial(env, **kwargs) if kwargs else env


def codec_by_name(name: str) -> Codec:
    """The codec ``module:object``; a class or function is called without arguments."""
    where, _, attribute = name.rpartition(":")
    if not where:
        raise Refusal(f"--codec is {name!r}, but must be module:object or path/to/file.py:object")
    codec = _attribute(_imported(where), attribute)
    if isinstance(codec, type) or not isinstance(codec, Codec):
        if not callable(codec):
            raise Refusal(f"{name} is no codec: it has no get_state and set_state")
        codec = codec()
    if not isinstance(codec, Codec):
        raise Refusal(f"{name} makes no codec: what it returns has no get_state and set_state")
    return codec


def _attribute(module: ModuleType, name: str) -> Any:
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        raise Refusal(f"{module.__name__} has no {name!r}") from None


def _imported(where: str) -> ModuleType:
    """The module of a name or a path. An error in it shows its traceback, and then is a refusal."""
    path = Path(where).resolve() if where.endswith(".py") else None
    if path is not None and not path.is_file():
        raise Refusal(f"there is no file {where}")
    name, folder = (where, Path.cwd()) if path is None else (path.stem, path.parent)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))  # a new process gets this path too
    try:
        module = import_module(name)
    except Exception as error:  # the user's code may raise anything
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise Refusal(f"there is no module {error.name!r}, neither installed nor in {folder}") from error
        traceback.print_exc()
        raise Refusal(f"{where} cannot be imported: the error is above") from error
    if path is not None and Path(module.__file__ or "").resolve() != path:
        raise Refusal(f"{where} cannot be imported: another module has the name {name!r}; rename the file")
    return module
