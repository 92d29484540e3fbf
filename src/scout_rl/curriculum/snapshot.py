"""A curriculum as plain arrays and JSON values, and back: with a schema and a hash, so a wrong one is refused."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scout_rl.curriculum import checks as outcome_checks
from scout_rl.files.archive import pack, unpack
from scout_rl.files.atomic import write_bytes
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.files.shape import require_shape
from scout_rl.records.tables import SCHEMA as RECORDS_SCHEMA
from scout_rl.records.tables import RecordWriter
from scout_rl.rules.cells import Outcomes

if TYPE_CHECKING:
    from scout_rl.curriculum import Curriculum

SCHEMA = 1
_META = "meta.json"


class Restored(NamedTuple):
    """What a state dict held, checked."""

    state: Any
    waiting: list[outcome_checks.One]
    windows: int
    generator: dict[str, Any]
    digest: str
    """Empty where an earlier version kept none."""
    evaluated: int | None
    """Windows closed at the last held-out evaluation; None where there was none."""


def config(curriculum: Curriculum) -> dict[str, Any]:
    """What the curriculum is: goes into the records' config.json and, hashed, into every state dict."""
    from scout_rl import __version__

    return {
        "schema": RECORDS_SCHEMA,
        "kind": "curriculum",
        "rule": {"key": curriculum.rule.key, **curriculum.rule.constants()},
        "n_contexts": curriculum.n_contexts,
        "n_levels": curriculum.n_levels,
        "window": curriculum.window,
        "seed": curriculum.seed,
        "has_frontier": curriculum.frontier is not None,
        **({} if curriculum.name is None else {"name": curriculum.name}),
        "versions": {"scout_rl": __version__, "numpy": np.__version__, "python": platform.python_version()},
    }


def take(curriculum: Curriculum) -> dict[str, Any]:
    """Return the state dict; its arrays are copies."""
    arrays = {f"state.{name}": np.array(value) for name, value in _flatten(curriculum.state).items()}
    waiting = outcome_checks.gathered(curriculum._waiting)
    arrays |= {f"waiting.{name}": array for name, array in waiting._asdict().items()}
    about = _identity(curriculum)
    return {
        "schema": SCHEMA,
        "hash": _hash(about),
        "about": about,
        "windows": curriculum.windows,
        "generator": copy.deepcopy(curriculum.generator.bit_generator.state),
        "digest": curriculum.digest,
        **({} if curriculum.evaluated is None else {"evaluated": curriculum.evaluated}),
        "arrays": arrays,
    }


def read(curriculum: Curriculum, given: dict[str, Any]) -> Restored:
    """Check a state dict against the curriculum that is to continue from it."""
    if not isinstance(given, dict) or "schema" not in given:
        raise Refusal("this is no curriculum's state dict: it has no schema")
    if given["schema"] != SCHEMA:
        raise Refusal(f"the state dict has schema {given['schema']!r}, this version reads {SCHEMA}")
    missing = {"hash", "about", "windows", "generator", "arrays"} - given.keys()
    if missing:
        raise Refusal(f"the state dict has no {sorted(missing)[0]!r}")
    _same_identity(given["about"], _identity(curriculum))
    if given["hash"] != _hash(given["about"]):
        raise Refusal("the state dict's hash does not fit its own description: it was altered")
    windows = given["windows"]
    if not isinstance(windows, int) or windows < 0:
        raise Refusal(f"the state dict's windows is {windows!r}, but must be a count")
    state = _unflatten(curriculum.state, given["arrays"], "state")
    _check_state(curriculum, state, windows)
    waiting = _waiting(curriculum, given["arrays"])
    evaluated = given.get("evaluated")
    if evaluated is not None and (not isinstance(evaluated, int) or not 0 <= evaluated <= windows):
        raise ValueError(f"the state dict's last evaluation is after window {evaluated!r}, and it has {windows}")
    digest = str(given.get("digest", ""))
    return Restored(state, waiting, windows, _generator(given["generator"]), digest, evaluated)


def save(state_dict: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write atomically: a crash leaves the old file or the new one, never half of one."""
    meta = {name: value for name, value in state_dict.items() if name != "arrays"}
    write_bytes(path, pack(state_dict["arrays"], _META, meta, compressed=False), durable=True)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `save` wrote; never executes anything from the file."""
    content = Path(path).read_bytes()
    with reading(path, "is no saved curriculum, or is damaged"):
        arrays, meta = unpack(content, _META)
        require_shape(meta, {})
    return {**meta, "arrays": arrays}


def digest(before: str, context: ArrayLike, level: ArrayLike, success: ArrayLike) -> str:
    """Of the windows so far and one more."""
    cells = np.asarray(context, np.int64).tobytes() + np.asarray(level, np.int64).tobytes()
    return hashlib.sha256(before.encode() + cells + np.asarray(success, bool).tobytes()).hexdigest()


def check_digest(records: RecordWriter, restored: Restored) -> None:
    """Refuse to cut records that another run wrote: those of the checkpoint's windows must be the checkpoint's."""
    if not restored.digest or records.first != 0 or records.windows < restored.windows:
        return
    found = ""
    for row in records.rows()[: restored.windows]:
        found = digest(found, row["context"], row["level"], row["success"])
    if found != restored.digest:
        raise Refusal(
            f"log_dir {records.folder} holds records of another run than the state that is loaded; choose the run's "
            "own folder, or an empty one"
        )


def check_records(records: RecordWriter, windows: int) -> None:
    """Refuse to write window ``windows`` into a folder that has it already, or that stops short of it."""
    if records.windows == 0 or records.windows == windows:
        records.check()
        return
    if records.windows > windows:
        raise Refusal(
            f"log_dir {records.folder} already holds windows up to {records.windows - 1}; continue them with "
            f"load_state_dict, or choose an empty folder"
        )
    raise Refusal(
        f"log_dir {records.folder} stops at window {records.windows - 1}, but the curriculum is at {windows}: "
        f"choose an empty folder"
    )


def _identity(curriculum: Curriculum) -> dict[str, Any]:
    about = {name: curriculum._config[name] for name in ("rule", "n_contexts", "n_levels", "window")}
    group = getattr(curriculum.state, "group", None)
    if group is not None:
        about["oracle_group"] = hashlib.sha256(np.ascontiguousarray(group, np.int64).tobytes()).hexdigest()
    return about


def _hash(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _same_identity(there: Any, here: dict[str, Any]) -> None:
    if not isinstance(there, dict) or not isinstance(there.get("rule"), dict):
        raise Refusal("the state dict does not say which rule it is of")
    rule_there, rule_here = there["rule"], here["rule"]
    if rule_there.get("key") != rule_here["key"]:
        raise Refusal(f"the state is of rule {rule_there.get('key')!r}, this curriculum's is {rule_here['key']!r}")
    for name in sorted(rule_here.keys() | rule_there.keys()):
        if rule_there.get(name) != rule_here.get(name):
            raise Refusal(
                f"the state's rule has {name}={rule_there.get(name)!r}, this curriculum's {rule_here.get(name)!r}"
            )
    for name in ("n_contexts", "n_levels", "window", "oracle_group"):
        if there.get(name) != here.get(name):
            raise Refusal(f"the state has {name} {there.get(name)!r}, this curriculum {here.get(name)!r}")


def _flatten(state: Any, prefix: str = "") -> dict[str, Any]:
    """Named tuples to dotted names; fields that are None are left out."""
    flat: dict[str, Any] = {}
    for name, value in state._asdict().items():
        if hasattr(value, "_asdict"):
            flat |= _flatten(value, f"{prefix}{name}.")
        elif value is not None:
            flat[prefix + name] = value
    return flat


def _unflatten(like: Any, arrays: dict[str, Any], prefix: str) -> Any:
    """Rebuild a state of the shape and types of ``like``, or name the array that does not fit."""
    fields = {}
    for name, value in like._asdict().items():
        full = f"{prefix}.{name}"
        if hasattr(value, "_asdict"):
            fields[name] = _unflatten(value, arrays, full)
        elif value is None:
            fields[name] = None
        else:
            fields[name] = _array(arrays, full, np.asarray(value).dtype, np.shape(value))
    return type(like)(**fields)


def _array(arrays: dict[str, Any], name: str, dtype: np.dtype[Any], shape: tuple[int, ...] | None) -> Any:
    if not isinstance(arrays, dict) or name not in arrays:
        raise Refusal(f"the state dict has no array {name!r}")
    array = np.array(arrays[name])
    if array.dtype != dtype or (shape is not None and array.shape != shape):
        raise Refusal(
            f"the state dict's {name!r} is {array.dtype}{list(array.shape)}, "
            f"but must be {dtype}{'' if shape is None else list(shape)}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise Refusal(f"the state dict's {name!r} holds a number that is not finite")
    return array


def _check_state(curriculum: Curriculum, state: Any, windows: int) -> None:
    if int(state.statistics.window) != windows:
        raise Refusal(f"the state dict says {windows} windows, its statistics {int(state.statistics.window)}")
    if (state.statistics.evidence < 0).any():
        raise Refusal("the state dict holds a negative evidence count")
    level = curriculum.rule.frontier(state)
    if level is not None and ((level < 0) | (level >= curriculum.n_levels)).any():
        context = int(np.argmax((level < 0) | (level >= curriculum.n_levels)))
        raise Refusal(f"the state dict's frontier of context {context} is {level[context]}, off the ladder")


def _waiting(curriculum: Curriculum, arrays: dict[str, Any]) -> list[outcome_checks.One]:
    like = outcome_checks.gathered([])
    found = Outcomes(*(_array(arrays, f"waiting.{n}", v.dtype, None) for n, v in like._asdict().items()))
    lengths = {array.shape for array in found}
    if len(lengths) != 1 or found.context.ndim != 1 or len(found.context) >= curriculum.window:
        raise Refusal("the state dict's waiting outcomes do not fit a window")
    for values, n, name in (
        (found.context, curriculum.n_contexts, "context"),
        (found.level, curriculum.n_levels, "level"),
    ):
        if ((values < 0) | (values >= n)).any():
            raise Refusal(f"the state dict's waiting outcomes name an unknown {name}")
    columns = (column.tolist() for column in found[:4])
    return [outcome_checks.One(*one) for one in zip(*columns, strict=True)]


def _generator(given: Any) -> dict[str, Any]:
    trial = np.random.PCG64()
    try:
        trial.state = given
    except (TypeError, ValueError, KeyError) as error:
        raise Refusal(f"the state dict's generator is not usable: {error}") from None
    return dict(trial.state)
