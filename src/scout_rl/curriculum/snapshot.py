"""A curriculum as plain arrays and JSON values, and back. A schema and a hash tell whether they belong to it."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def config(curriculum: Curriculum) -> dict[str, Any]:
    """The curriculum's description for the records' config.json; state dicts hold a part of it, with a hash."""
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
    arrays = {f"state.{name}": np.array(value) for name, value in flatten(curriculum.state).items()}
    waiting = outcome_checks.gathered(curriculum._waiting)
    arrays |= {f"waiting.{name}": array for name, array in waiting._asdict().items()}
    identity = _identity(curriculum)
    return {
        "schema": SCHEMA,
        "hash": hash_of(identity),
        "about": identity,
        "windows": curriculum.windows,
        "generator": copy.deepcopy(curriculum.generator.bit_generator.state),
        "digest": curriculum.digest,
        **({} if curriculum.evaluated is None else {"evaluated": curriculum.evaluated}),
        "arrays": arrays,
    }


def check(curriculum: Curriculum, state_dict: dict[str, Any]) -> None:
    """Refuse a state dict of another kind, rule or size than the curriculum that will continue from it."""
    if not isinstance(state_dict, dict) or "schema" not in state_dict:
        raise Refusal("this is no curriculum's state dict: it has no schema")
    if state_dict["schema"] != SCHEMA:
        raise Refusal(f"the state dict has schema {state_dict['schema']!r}, this version reads {SCHEMA}")
    missing = {"hash", "about", "windows", "generator", "arrays"} - state_dict.keys()
    if missing:
        raise Refusal(f"the state dict has no {sorted(missing)[0]!r}")
    check_identity(state_dict["about"], _identity(curriculum))
    if state_dict["hash"] != hash_of(state_dict["about"]):
        raise Refusal("the state dict's hash does not fit its own description: it was altered")


def restore(curriculum: Curriculum, state_dict: dict[str, Any]) -> None:
    """Check a state dict against the curriculum that will continue from it, then cut its records and continue."""
    check(curriculum, state_dict)
    windows = state_dict["windows"]
    if not isinstance(windows, int) or windows < 0:
        raise Refusal(f"the state dict's windows is {windows!r}, but must be a count")
    state = unflatten(curriculum.state, state_dict["arrays"], "state")
    _check_state(curriculum, state, windows)
    waiting = _waiting(curriculum, state_dict["arrays"])
    evaluated = state_dict.get("evaluated")
    if evaluated is not None and (not isinstance(evaluated, int) or not 0 <= evaluated <= windows):
        raise Refusal(f"the state dict's last evaluation is after window {evaluated!r}, and it has {windows}")
    digest_then = str(state_dict.get("digest", ""))  # state dicts of earlier versions have none
    generator = _generator(state_dict["generator"])
    records = curriculum._records
    if records is not None:
        _check_digest(records, windows, digest_then)
        records.cut(windows)
        records.evaluations.cut((windows if evaluated is None else evaluated) + 1)
        check_records(records, windows)
    curriculum.state, curriculum._waiting, curriculum.windows = state, waiting, windows
    curriculum.digest, curriculum.evaluated = digest_then, evaluated
    curriculum.generator.bit_generator.state = generator
    curriculum._cumulative, curriculum._unchecked = None, True


def save(state_dict: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write atomically: a crash leaves the old file or the new one."""
    write_bytes(path, packed(state_dict), durable=True)


def packed(state_dict: dict[str, Any]) -> bytes:
    """The content of the file that `save` writes."""
    meta = {name: value for name, value in state_dict.items() if name != "arrays"}
    return pack(state_dict["arrays"], _META, meta, compressed=False)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `save` wrote; nothing in the file is executed."""
    return unpacked(Path(path).read_bytes(), path)


def unpacked(content: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """As `load`, from the file's content; errors name ``path``."""
    with reading(path, "is no saved curriculum, or is damaged"):
        arrays, meta = unpack(content, _META)
        require_shape(meta, {})
    return {**meta, "arrays": arrays}


def digest(before: str, context: ArrayLike, level: ArrayLike, success: ArrayLike) -> str:
    """The digest after one more window; ``before`` is the digest of the windows so far."""
    cells = np.asarray(context, np.int64).tobytes() + np.asarray(level, np.int64).tobytes()
    return hashlib.sha256(before.encode() + cells + np.asarray(success, bool).tobytes()).hexdigest()


def _check_digest(records: RecordWriter, windows: int, digest_then: str) -> None:
    """Refuse to cut the records of another run: the outcomes of the checkpoint's windows must have its digest."""
    if not digest_then or records.first != 0 or records.windows < windows:
        return
    recorded = ""
    for row in records.rows()[:windows]:
        recorded = digest(recorded, row["context"], row["level"], row["success"])
    if recorded != digest_then:
        raise Refusal(
            f"log_dir {records.folder} holds records of another run than the state that is loaded; choose the run's "
            "own folder, or an empty one"
        )


def check_records(records: RecordWriter, windows: int) -> None:
    """Refuse to write window ``windows`` into a folder that already has it, or that ends before it."""
    if records.windows == 0 or records.windows == windows:
        records.check()
        return
    if records.windows > windows:
        raise Refusal(
            f"log_dir {records.folder} already holds windows up to {records.windows - 1}; continue them with "
            f"load_state_dict (or load), or choose an empty folder"
        )
    raise Refusal(
        f"log_dir {records.folder} stops at window {records.windows - 1}, but the curriculum is at {windows}: "
        f"choose an empty folder"
    )


def _identity(curriculum: Curriculum) -> dict[str, Any]:
    identity = {name: curriculum._config[name] for name in ("rule", "n_contexts", "n_levels", "window")}
    group = getattr(curriculum.state, "group", None)
    if group is not None:
        identity["oracle_group"] = hashlib.sha256(np.ascontiguousarray(group, np.int64).tobytes()).hexdigest()
    return identity


def hash_of(identity: dict[str, Any]) -> str:
    """The hash of what a state dict belongs to."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def check_identity(stored: Any, identity: dict[str, Any]) -> None:
    """Refuse a state of another rule or size than ``identity``; the sentence names what differs."""
    if not isinstance(stored, dict) or not isinstance(stored.get("rule"), dict):
        raise Refusal("the state dict does not say which rule it is of")
    stored_rule, rule = stored["rule"], identity["rule"]
    if stored_rule.get("key") != rule["key"]:
        raise Refusal(f"the state is of rule {stored_rule.get('key')!r}, this curriculum's is {rule['key']!r}")
    for name in sorted(rule.keys() | stored_rule.keys()):
        if stored_rule.get(name) != rule.get(name):
            raise Refusal(
                f"the state's rule has {name}={stored_rule.get(name)!r}, this curriculum's {rule.get(name)!r}"
            )
    sizes = [f"{about.get('n_contexts')} contexts x {about.get('n_levels')} levels" for about in (stored, identity)]
    if sizes[0] != sizes[1]:
        raise Refusal(
            f"the state is of a curriculum of {sizes[0]}, and this one has {sizes[1]}: make it of the same size, or "
            "begin a new training"
        )
    for name in sorted((identity.keys() | {"oracle_group"}) - {"rule", "n_contexts", "n_levels"}):
        if stored.get(name) != identity.get(name):
            raise Refusal(f"the state has {name} {stored.get(name)!r}, this curriculum {identity.get(name)!r}")


def flatten(state: Any, prefix: str = "") -> dict[str, Any]:
    """Named tuples to dotted names; fields that are None are left out."""
    flat: dict[str, Any] = {}
    for name, value in state._asdict().items():
        if hasattr(value, "_asdict"):
            flat |= flatten(value, f"{prefix}{name}.")
        elif value is not None:
            flat[prefix + name] = value
    return flat


def unflatten(like: Any, arrays: dict[str, Any], prefix: str) -> Any:
    """Rebuild a state with the shapes and types of ``like``; errors name the array that does not fit."""
    fields = {}
    for name, value in like._asdict().items():
        full = f"{prefix}.{name}"
        if hasattr(value, "_asdict"):
            fields[name] = unflatten(value, arrays, full)
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


def _waiting(curriculum: Curriculum, arrays: dict[str, Any]) -> list[outcome_checks.Outcome]:
    like = outcome_checks.gathered([])
    waiting = Outcomes(*(_array(arrays, f"waiting.{n}", v.dtype, None) for n, v in like._asdict().items()))
    shapes = {array.shape for array in waiting}
    if len(shapes) != 1 or waiting.context.ndim != 1 or len(waiting.context) >= curriculum.window:
        raise Refusal("the state dict's waiting outcomes do not fit a window")
    for values, n, name in (
        (waiting.context, curriculum.n_contexts, "context"),
        (waiting.level, curriculum.n_levels, "level"),
    ):
        if ((values < 0) | (values >= n)).any():
            raise Refusal(f"the state dict's waiting outcomes name an unknown {name}")
    return list(zip(*(column.tolist() for column in waiting[:4]), strict=True))


def _generator(state: Any) -> dict[str, Any]:
    bits = np.random.PCG64()
    try:
        bits.state = state
    except (TypeError, ValueError, KeyError) as error:
        raise Refusal(f"the state dict's generator is not usable: {error}") from None
    return dict(bits.state)
