"""Which runs may be averaged, and which may be compared.

A protocol is everything but rule, rule constants and seed: setting, bank, ladder, levels, preset, algorithm, learner,
budget. Runs of one protocol are compared. A condition is a protocol with a rule and its constants. Runs of one
condition differ in their seed alone, and only they are averaged.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

from scout_rl import rules
from scout_rl.report.run import About
from scout_rl.settings import SCHEDULES, SETTINGS

NOT_IDENTITY = ("seed", "checkpoint_every")
OF_THE_RULE = ("rule", "constants")
REFERENCE = "scout"
ADDED_LATER = {"preset": "tuned"}
"""Fields that the first records do not have, with what they were."""
LEARNER_ADDED_LATER = {"clip_targets": False, "random_each": False, "random_hold": 1, "target_entropy": -1.0}
"""The same for the learner's constants."""
SOURCES = ("ladder_from", "ladder_fallback")
KIN = ("setting", "preset", "algorithm", "ladder")
USUAL = {"ladder": "manual", "levels": 5}
"""Not worth a word in a label."""


class Described(Protocol):
    """Anything that says which run it comes from."""

    @property
    def about(self) -> About:
        """The run."""
        ...


R = TypeVar("R", bound=Described)


@dataclass(frozen=True)
class Condition(Generic[R]):
    """A rule with its constants under one protocol, and its runs by seed."""

    rule: str
    label: str
    runs: tuple[R, ...]

    @property
    def seeds(self) -> list[int]:
        """In order."""
        return [run.about.seed for run in self.runs]

    @property
    def own_constants(self) -> bool:
        """Whether the rule has its own constants: a sweep over others is another question."""
        return not changed(self.rule, self.runs[0].about.config.get("constants", {}))

    @property
    def reference_name(self) -> str:
        """What sentences call it where it is what others are compared with: SCOUT, or which variant."""
        return self.rule.upper() if self.own_constants else self.label


@dataclass(frozen=True)
class Block(Generic[R]):
    """All conditions of one protocol: what one table compares."""

    setting: str
    label: str
    fields: dict[str, Any]
    """What the conditions share."""
    conditions: tuple[Condition[R], ...]

    def of(self, rule: str) -> Condition[R] | None:
        """The condition of that rule with the rule's own constants; None where there is none."""
        return next((c for c in self.conditions if c.rule == rule and c.own_constants), None)

    @property
    def seeds(self) -> list[int]:
        """Of any condition, in order."""
        return sorted({seed for condition in self.conditions for seed in condition.seeds})


def reference(conditions: Iterable[Condition[R]]) -> Condition[R] | None:
    """What the others are compared with: SCOUT with its own constants, else its first variant; None without SCOUT."""
    found = [c for c in conditions if c.rule == REFERENCE]
    return next((c for c in found if c.own_constants), found[0] if found else None)


def changed(rule: str, constants: dict[str, Any]) -> dict[str, Any]:
    """Those that are not the rule's own; a schedule's length goes with the budget, and is none of them."""
    if rule not in rules.RULES:
        return {}  # someone's own rule: nobody knows its defaults
    usual = rules.make(rule).constants()
    return {k: v for k, v in constants.items() if k not in SCHEDULES and usual.get(k) != v}


def identity(about: About) -> dict[str, Any]:
    """The config's fields that count, without empty ones, so that a field added later does not part old from new."""
    fields = {k: v for k, v in about.config.items() if k not in NOT_IDENTITY and v not in (None, "", {}, [])}
    fields = {k: v for k, v in fields.items() if v != ADDED_LATER.get(k)}
    own = SETTINGS.get(fields.get("setting", ""))
    if own is not None and fields.get("algorithm") == own.learner:  # the setting says it, and the first records do not
        del fields["algorithm"]
    if "learner" in fields:
        fields["learner"] = {k: v for k, v in fields["learner"].items() if v != LEARNER_ADDED_LATER.get(k)}
    for name in SOURCES:  # the runs that a policy ladder comes from have this run's own seed in their names
        if name in fields:
            fields[name] = str(fields[name]).replace(str(about.seed), "{seed}")
    fields["bank"] = about.bank_sha256 or f"{about.n_contexts} contexts"
    return fields


def group(runs: Iterable[R]) -> list[Block[R]]:
    """Sort runs into blocks and conditions; the same run twice is refused, since it would count twice."""
    blocks: dict[str, dict[str, list[R]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        fields = identity(run.about)
        shared = {k: v for k, v in fields.items() if k not in OF_THE_RULE}
        blocks[_key(shared)][_key({k: fields.get(k) for k in OF_THE_RULE})].append(run)
    names = _block_labels([json.loads(key) for key in blocks])
    made = [_block(json.loads(key), name, found) for (key, found), name in zip(blocks.items(), names, strict=True)]
    return sorted(made, key=lambda block: block.label)


def _key(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, default=str)


def _block(fields: dict[str, Any], label: str, found: dict[str, list[R]]) -> Block[R]:
    played = [json.loads(key) for key in found]
    conditions = []
    for rule, runs in zip(played, found.values(), strict=True):
        constants = rule["constants"] or {}
        twins = [other["constants"] or {} for other in played if other["rule"] == rule["rule"]]
        told = {**_differing(constants, twins), **changed(rule["rule"], constants)}
        ordered = tuple(sorted(runs, key=lambda run: run.about.seed))
        _once_each(ordered)
        conditions.append(Condition(rule["rule"], f"{rule['rule']}{bracket(told)}", ordered))
    first = reference(sorted(conditions, key=lambda c: c.label))
    conditions.sort(key=lambda c: (c is not first, c.rule != REFERENCE, c.label))
    return Block(fields.get("setting", ""), label, fields, tuple(conditions))


def _once_each(runs: Sequence[R]) -> None:
    if runs and runs[0].about.kind == "log_dir":
        return  # the curriculum's seed is not the learner's: two folders may well share it
    for one, other in pairwise(runs):
        if one.about.seed == other.about.seed:
            raise ValueError(f"{one.about.name} and {other.about.name} are the same run; name one of them only")


def _block_labels(blocks: list[dict[str, Any]]) -> list[str]:
    """Setting, whatever is unusual, and whatever else tells blocks apart that share setting, learner and ladder.

    What a preset changes is said by its name, and where a policy ladder comes from by its being one.
    """
    labels = []
    for fields in blocks:
        twins = [_flat(other) for other in blocks if all(other.get(k) == fields.get(k) for k in KIN)]
        flat = _flat(fields)
        told = {k: v for k, v in _differing(flat, twins).items() if k not in USUAL}
        labels.append(f"{fields.get('setting') or 'log_dir'}{bracket({**unusual(fields), **told})}")
    return labels


def unusual(fields: dict[str, Any]) -> dict[str, Any]:
    """What a label says of any protocol: ladder and levels, where they are not the usual ones, preset and algorithm."""
    named = {k: v for k, v in fields.items() if k in ("preset", "algorithm")}
    return {k: fields[k] for k, usual in USUAL.items() if fields.get(k, usual) != usual} | named


def _flat(fields: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in fields.items():
        flat |= _flat(value, f"{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def _differing(fields: dict[str, Any], among: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if any(other.get(k) != v for other in among)}


def bracket(told: dict[str, Any]) -> str:
    """The words of a label, in brackets."""
    words = []
    for key, value in told.items():
        name = key.rsplit(".", 1)[-1]
        if name == "ladder":
            words.append(f"{value} ladder")
        elif name == "levels":
            words.append(f"{value} levels")
        elif name in ("preset", "algorithm"):
            words.append(str(value))
        else:
            words.append(f"{name} {str(value)[:12]}")
    return f" ({', '.join(words)})" if words else ""
