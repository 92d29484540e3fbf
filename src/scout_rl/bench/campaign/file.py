"""A campaign file: settings x rules x ladders x overrides x seeds, as TOML, expanded to frozen configs.

    title = "..."
    pack = "results"           # folder of compact records, unless --pack names another
    [defaults]                 # fields of every run (`RunConfig`)
    [[runs]]                   # a block: the product of its lists
    settings = ["doorkey"]
    rules = ["scout", "anneal"]
    seeds = [100, 101]
    ladders = ["manual", "solver"]
    overrides = [{}, { levels = 9, constants.n_min = 5 }]
    windows = 500              # any other field, for the whole block

Runs are ordered by seed: the first seed of every block from top to bottom, then the second, and so on.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.path import run_name
from scout_rl.bench.run.sources import name_below, normalised
from scout_rl.files.refusal import Refusal
from scout_rl.records.stored import SOURCES
from scout_rl.rules.field_types import field_types, require_types
from scout_rl.rules.rule import require

TOP = ("title", "pack", "defaults", "runs")
AXES = {"settings": "setting", "rules": "rule", "seeds": "seed", "ladders": "ladder"}
"""The lists of a block, and the field of each."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a campaign, done or not."""

    name: str
    """Its path below the folder of runs."""
    config: RunConfig
    needs: tuple[str, ...]
    """Names of the runs that its ladder comes from: they must be finished first."""


@dataclass(frozen=True)
class Campaign:
    """The content of a campaign file."""

    title: str
    pack: Path | None
    """Folder of compact records."""
    runs: tuple[PlannedRun, ...]


def load(path: Path, out: str = "runs") -> Campaign:
    """Read and expand a file; errors name the file and the key."""
    out = normalised(out)
    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise Refusal(f"the campaign file {path} cannot be read: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise Refusal(f"{path} is no TOML: {error}") from error
    for key in content:
        require(key in TOP, f"{path}: unknown key {key!r}; a campaign file has {', '.join(TOP)}")
    blocks = content.get("runs", [])
    listed = isinstance(blocks, list) and bool(blocks) and all(isinstance(block, dict) for block in blocks)
    require(listed, f"{path}: 'runs' must be blocks, each under a line [[runs]]")
    defaults = content.get("defaults", {})
    require(isinstance(defaults, dict), f"{path}: 'defaults' must be a table")
    _fields_of(defaults, f"{path}: [defaults]", taken=set(AXES.values()))
    rows = [row for i, block in enumerate(blocks) for row in _block(block, defaults, out, f"{path}: runs[{i}]")]
    rows.sort(key=lambda row: row[0])  # stable: the first seed of every block, then the second
    pack = content.get("pack")
    require(pack is None or isinstance(pack, str), f"{path}: 'pack' is {pack!r}, but must be a folder")
    return Campaign(str(content.get("title", path.stem)), None if pack is None else Path(pack), _runs(rows, out))


def _block(
    block: dict[str, Any], defaults: dict[str, Any], out: str, where: str
) -> Iterator[tuple[int, str, RunConfig]]:
    """(position of its seed, place in the file, config) of every run of a block."""
    axes = {key: _axis(block, key, where) for key in AXES}
    alternatives = block.get("overrides", [{}])
    valid = isinstance(alternatives, list) and alternatives and all(isinstance(row, dict) for row in alternatives)
    require(bool(valid), f"{where}: 'overrides' must be a list of tables")
    for i, row in enumerate(alternatives):
        _fields_of(row, f"{where}: overrides[{i}]", taken={"setting", "rule", "seed"})
    shared = {key: value for key, value in block.items() if key not in AXES and key != "overrides"}
    _fields_of(shared, where, taken=set(AXES.values()))
    varied = itertools.product(*(axes[key] for key in ("settings", "rules", "ladders")), alternatives)
    for setting, rule, ladder, row in varied:
        for position, seed in enumerate(axes["seeds"]):
            axis_values = {"setting": setting, "rule": rule, "seed": seed, "ladder": ladder}
            fields = _merged(defaults, shared, axis_values, row)
            words = {"out": out, "setting": setting, "rule": rule, "seed": seed}
            try:
                require_types(RunConfig, fields)
                yield position, where, RunConfig(**_filled(fields, words))
            except Refusal as error:
                raise Refusal(f"{where}: {setting} {rule} {seed}: {error}") from error


def _axis(block: dict[str, Any], key: str, where: str) -> list[Any]:
    if key == "ladders" and key not in block:
        return ["manual"]
    require(key in block, f"{where}: {key!r} is missing")
    values = block[key]
    require(isinstance(values, list) and bool(values), f"{where}: {key!r} must be a list of at least one")
    return list(values)


def _fields_of(table: dict[str, Any], where: str, taken: set[str]) -> None:
    for key in table:
        plural = next((axis for axis, field in AXES.items() if field == key and key in taken), None)
        require(plural is None, f"{where}: {key!r} is not set here; list it under {plural!r} in a block")
        known = field_types(RunConfig)
        require(key in known, f"{where}: unknown key {key!r}; a run has {', '.join(known)}")


def _filled(fields: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """Strings with ``{out}``, ``{setting}``, ``{rule}`` and ``{seed}`` replaced."""
    try:
        return {k: v.format(**words) if isinstance(v, str) and "{" in v else v for k, v in fields.items()}
    except (KeyError, IndexError, ValueError) as error:
        raise Refusal(f"a value names {error} in braces; there are {', '.join(words)}") from error


def _merged(*tables: dict[str, Any]) -> dict[str, Any]:
    """One table; later values win, and nested tables are merged key by key."""
    merged: dict[str, Any] = {}
    for table in tables:
        for key, value in table.items():
            earlier = merged.get(key)
            merged[key] = {**earlier, **value} if isinstance(earlier, dict) and isinstance(value, dict) else value
    return merged


def _runs(rows: list[tuple[int, str, RunConfig]], out: str) -> tuple[PlannedRun, ...]:
    first: dict[str, str] = {}
    named = [(run_name(config), where, config) for _, where, config in rows]
    for name, where, _ in named:
        require(name not in first, f"{where} repeats the run {name} of {str(first.get(name)).split(': ')[-1]}")
        first[name] = where
    return tuple(PlannedRun(name, config, _needs(config, out, first)) for name, _, config in named)


def _needs(config: RunConfig, out: str, names: dict[str, str]) -> tuple[str, ...]:
    below = (name_below(out, getattr(config, field)) for field in SOURCES)
    return tuple(name for name in below if name in names)
