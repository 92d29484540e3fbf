"""Which runs may be averaged, and which may be compared.

A protocol is everything but rule, rule constants and seed: setting, bank, ladder, levels, preset, algorithm, learner,
budget. Runs of one protocol are compared. A condition is a protocol with a rule and its constants. Runs of one
condition differ in their seed alone, and only they are averaged.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from scout_rl import rules
from scout_rl.records.stored import SOURCES
from scout_rl.report.measure.metrics import Summary
from scout_rl.report.measure.names import USUAL, block_labels, bracket, differing, told_apart
from scout_rl.report.read.catalogue import Known
from scout_rl.report.read.run import About
from scout_rl.rules.rule import SCHEDULES

NOT_IDENTITY = ("seed", "checkpoint_every")
OF_THE_RULE = ("rule", "constants", "name")
REFERENCE = "scout"
TUNED = "tuned"
ADDED_LATER = {"preset": TUNED}
"""Fields that the first records do not have, with what they were."""
LEARNER_ADDED_LATER = {"clip_targets": False, "random_each": False, "random_hold": 1, "target_entropy": -1.0}
"""The same for the learner's constants."""


@dataclass(frozen=True)
class Condition:
    """A rule with its constants under one protocol, and its runs by seed."""

    rule: str
    label: str
    runs: tuple[Summary, ...]

    @property
    def seeds(self) -> list[int]:
        """In order."""
        return [run.about.seed for run in self.runs]

    @property
    def own_constants(self) -> bool:
        """Whether the rule has its own constants: a sweep over others is another question."""
        return not self.changed

    @property
    def changed(self) -> dict[str, Any]:
        """Its constants that are not the rule's own."""
        about = self.runs[0].about
        return changed(self.rule, about.config.get("constants", {}), own_schedule(about))

    @property
    def reference_name(self) -> str:
        """What sentences call it where it is what others are compared with: SCOUT, or which variant."""
        named = "name" in identity(self.runs[0].about)
        return self.rule.upper() if self.own_constants and not named else self.label


@dataclass(frozen=True)
class Block:
    """All conditions of one protocol: what one table compares."""

    setting: str
    label: str
    fields: dict[str, Any]
    """What the conditions share."""
    conditions: tuple[Condition, ...]

    def of(self, rule: str) -> Condition | None:
        """The condition of that rule with the rule's own constants, of several the first; None where there is none."""
        return next(iter(self.all_of(rule)), None)

    def all_of(self, rule: str) -> list[Condition]:
        """All that may pass for that rule with its own constants: the most runs first, then by label.

        There are several where nothing is known of a setting or a record leaves constants out.
        """
        return _by_size(c for c in self.conditions if c.rule == rule and c.own_constants)

    def doubt(self, rule: str) -> str:
        """What is to be said where `of` had a choice; empty where it had none."""
        found = [condition.label for condition in self.all_of(rule)]
        if len(found) < 2:
            return ""
        return f"this is of {found[0]}, chosen by the number of runs; {', '.join(found[1:])} may be the rule's own too"

    @property
    def known(self) -> Known | None:
        """What the catalogue says of its setting."""
        return self.conditions[0].runs[0].about.known

    @property
    def ladder(self) -> str:
        """Hand-built where nothing is said."""
        return str(self.fields.get("ladder", USUAL["ladder"]))

    @property
    def levels(self) -> int:
        """Five where nothing is said."""
        return int(self.fields.get("levels", USUAL["levels"]))

    @property
    def preset(self) -> str:
        """Ours where nothing is said."""
        return str(self.fields.get("preset", TUNED))

    @property
    def size(self) -> int:
        """Runs in it."""
        return sum(len(condition.runs) for condition in self.conditions)

    @property
    def seeds(self) -> list[int]:
        """Of any condition, in order."""
        return sorted({seed for condition in self.conditions for seed in condition.seeds})


def reference(conditions: Iterable[Condition]) -> Condition | None:
    """What the others are compared with: SCOUT with its own constants, else its first variant; None without SCOUT."""
    found = [c for c in conditions if c.rule == REFERENCE]
    return next(iter(_by_size(c for c in found if c.own_constants)), found[0] if found else None)


def _by_size(conditions: Iterable[Condition]) -> list[Condition]:
    return sorted(conditions, key=lambda c: (-len(c.runs), c.label))


def changed(rule: str, constants: dict[str, Any], schedule: int | None) -> dict[str, Any]:
    """Those that are not the rule's own; ``schedule`` is the length of its own schedule, None where nobody knows it."""
    if rule not in rules.RULES:
        return {}  # someone's own rule: nobody knows its defaults
    usual = rules.make(rule).constants()
    usual |= {k: constants.get(k) if schedule is None else schedule for k in SCHEDULES if k in usual}
    return {k: v for k, v in constants.items() if usual.get(k) != v}


def own_schedule(about: About) -> int | None:
    """Length of a shared schedule in a run of this setting and budget; None for a setting that nothing is known of."""
    return None if about.known is None else about.known.schedule(about.config.get("windows", 0))


def identity(about: About) -> dict[str, Any]:
    """The config's fields that count, without empty ones, so that a field added later does not part old from new."""
    fields = {k: v for k, v in about.config.items() if k not in NOT_IDENTITY and v not in (None, "", {}, [])}
    fields = {k: v for k, v in fields.items() if v != ADDED_LATER.get(k)}
    own = None if about.known is None else about.known.learner
    if own is not None and fields.get("algorithm") == own:  # the setting says it, and the first records do not
        del fields["algorithm"]
    if "learner" in fields:
        fields["learner"] = {k: v for k, v in fields["learner"].items() if v != LEARNER_ADDED_LATER.get(k)}
    for name in SOURCES:  # the runs that a policy ladder comes from have this run's own seed in their names
        if name in fields:
            fields[name] = _any_seed(str(fields[name]), about.seed)
    fields["bank"] = about.bank_sha256 or f"{about.n_contexts} contexts"
    return fields


def _any_seed(source: str, seed: int) -> str:
    """A run's folder for whichever seed: ``doorkey-16/target/1-policy5`` is ``doorkey-16/target/{seed}-policy5``."""
    folder, slash, name = source.rstrip("/").rpartition("/")
    return folder + slash + re.sub(rf"(?<!\d){seed}(?!\d)", "{seed}", name, count=1)


def group(runs: Iterable[Summary]) -> list[Block]:
    """Sort runs into blocks and conditions; the same run twice is refused, since it would count twice."""
    blocks: dict[str, dict[str, list[Summary]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        fields = identity(run.about)
        shared = {k: v for k, v in fields.items() if k not in OF_THE_RULE}
        played = {"rule": fields["rule"], "constants": fields.get("constants")}
        played |= {"name": fields["name"]} if "name" in fields else {}
        blocks[_key(shared)][_key(played)].append(run)
    names = block_labels([json.loads(key) for key in blocks], list(blocks))
    made = [_block(json.loads(key), name, found) for (key, found), name in zip(blocks.items(), names, strict=True)]
    return sorted(made, key=lambda block: block.label)


def _key(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, default=str)


def _block(fields: dict[str, Any], label: str, found: dict[str, list[Summary]]) -> Block:
    played = [json.loads(key) for key in found]
    schedule = own_schedule(next(iter(found.values()))[0].about)
    labels = told_apart([_condition_label(rule, played, schedule) for rule in played], list(found))
    conditions = []
    for rule, name, runs in zip(played, labels, found.values(), strict=True):
        ordered = tuple(sorted(runs, key=lambda run: run.about.seed))
        _once_each(ordered)
        conditions.append(Condition(rule["rule"], name, ordered))
    first = reference(sorted(conditions, key=lambda c: c.label))
    conditions.sort(key=lambda c: (c is not first, c.rule != REFERENCE, c.label))
    return Block(fields.get("setting", ""), label, fields, tuple(conditions))


def _condition_label(rule: dict[str, Any], played: Sequence[dict[str, Any]], schedule: int | None) -> str:
    constants = rule["constants"] or {}
    twins = [other["constants"] or {} for other in played if other["rule"] == rule["rule"]]
    told = {**differing(constants, twins), **changed(rule["rule"], constants, schedule)}
    label, name = f"{rule['rule']}{bracket(told)}", rule.get("name")
    if name is None:
        return label
    return name if sum(other.get("name") == name for other in played) == 1 else f"{name}: {label}"


def named(runs: Sequence[Summary]) -> list[Summary]:
    """The same runs; those of anyone's loops with a name and a seed that tell them apart.

    A ``log_dir`` without a name has that of its folder, below the one that holds them all. Where the last folder is a
    number, that is the seed and no part of the name: ``ppo/0`` and ``ppo/1`` are two seeds of ``ppo``.
    """
    folders = {run.about.name: Path(os.path.abspath(run.about.name)) for run in runs if run.about.kind == "log_dir"}
    root = os.path.commonpath(folders.values()) if folders else ""
    return [_named(run, folders[run.about.name], root) if run.about.name in folders else run for run in runs]


def _named(run: Summary, folder: Path, root: str) -> Summary:
    numbered = folder.name.isdecimal()
    below = (folder.parent if numbered else folder).relative_to(root) if str(folder) != root else Path()
    about = run.about
    name = about.config.get("name") or below.as_posix().removeprefix(".")
    seed = int(folder.name) if numbered else about.seed
    return replace(run, about=replace(about, seed=seed, config={**about.config, "name": name, "seed": seed}))


def _once_each(runs: Sequence[Summary]) -> None:
    for one, other in pairwise(runs):
        if one.about.seed != other.about.seed:
            continue
        if one.about.kind == "log_dir":
            raise ValueError(
                f"{one.about.name} and {other.about.name} have the same name and seed: give each a seed, or a folder "
                "that is a number"
            )
        raise ValueError(f"{one.about.name} and {other.about.name} are the same run; name one of them only")
