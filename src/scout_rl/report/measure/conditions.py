"""Which runs may be averaged, and which may be compared.

A protocol is everything but rule, rule constants and seed: setting, bank, ladder, levels, preset, algorithm, learner,
budget. Runs of one protocol are compared. A condition is a protocol with a rule and its constants. Only
runs of one condition are averaged: they differ in nothing but their seed.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from scout_rl import rules
from scout_rl.files.refusal import Refusal
from scout_rl.records.stored import SOURCES
from scout_rl.report.measure.metrics import Summary
from scout_rl.report.measure.names import USUAL, block_labels, bracket, differing, distinct_labels
from scout_rl.report.read.catalogue import KnownSetting
from scout_rl.report.read.run import About
from scout_rl.rules.rule import SCHEDULES

NOT_IDENTITY = ("seed", "checkpoint_every")
OF_THE_RULE = ("rule", "constants", "name")
PAPERS = "scout"
"""The rule that the paper compares with, which is written in capitals."""
PREFERRED = ("ability", PAPERS)
"""What a report compares with where no reference is chosen: the first of these that a block has, else its first."""
TUNED = "tuned"
ADDED_LATER = {"preset": TUNED}
"""Fields that the first records lack, with the value they had."""
LEARNER_ADDED_LATER = {"clip_targets": False, "random_each": False, "random_hold": 1, "target_entropy": -1.0}
"""The same for the learner's constants."""


SAME = (
    "are the same run; name one of them only",
    "have the same name and seed: give each a seed, or a folder that is a number",
)
"""What is said of two records with one seed: of runs, and of anyone's ``log_dir``."""


@dataclass(frozen=True)
class Condition:
    """A rule with its constants under one protocol, and its runs by seed."""

    rule: str
    label: str
    runs: tuple[Summary, ...]

    @property
    def seeds(self) -> list[int]:
        """Sorted."""
        return [run.about.seed for run in self.runs]

    @property
    def has_default_constants(self) -> bool:
        """Whether the rule has its default constants, unlike in a sweep."""
        return not self.changed

    @property
    def changed(self) -> dict[str, Any]:
        """The constants that are not the rule's defaults."""
        about = self.runs[0].about
        return changed(self.rule, about.config.get("constants", {}), default_schedule(about))

    @property
    def reference_name(self) -> str:
        """Its name as the reference of a comparison: the rule's, or the variant's label."""
        named = "name" in identity(self.runs[0].about)
        return title(self.rule) if self.has_default_constants and not named else self.label


@dataclass(frozen=True)
class Block:
    """All conditions of one protocol: what one table compares."""

    setting: str
    label: str
    fields: dict[str, Any]
    """What the conditions share."""
    conditions: tuple[Condition, ...]
    chosen: str = ""
    """Key of the rule that the others are compared with; empty: by `PREFERRED`."""

    @property
    def reference(self) -> Condition | None:
        """What the others are compared with (`reference`)."""
        return reference(self.conditions, self.chosen)

    def of(self, rule: str) -> Condition | None:
        """The first of `all_of`; None where there is none."""
        return next(iter(self.all_of(rule)), None)

    def all_of(self, rule: str) -> list[Condition]:
        """The rule's conditions with its default constants: the most runs first, then by label.

        There are several where the setting is unknown or a record lacks constants.
        """
        return _by_size(c for c in self.conditions if c.rule == rule and c.has_default_constants)

    def doubt(self, rule: str) -> str:
        """A note for where `of` had a choice; else empty."""
        first, *rivals = [condition.label for condition in self.all_of(rule)] or [""]
        if not rivals:
            return ""
        return f"this is of {first}, chosen by the number of runs; {', '.join(rivals)} may be the rule's own too"

    @property
    def known(self) -> KnownSetting | None:
        """The setting's entry in the catalogue."""
        return self.conditions[0].runs[0].about.known

    @property
    def ladder(self) -> str:
        """Hand-built by default."""
        return str(self.fields.get("ladder", USUAL["ladder"]))

    @property
    def levels(self) -> int:
        """Five by default."""
        return int(self.fields.get("levels", USUAL["levels"]))

    @property
    def preset(self) -> str:
        """``tuned`` by default."""
        return str(self.fields.get("preset", TUNED))

    @property
    def runs(self) -> list[Summary]:
        """Those of all conditions."""
        return [run for condition in self.conditions for run in condition.runs]

    @property
    def groups(self) -> list[str]:
        """Names of the groups of held-out contexts."""
        return list(self.conditions[0].runs[0].groups)

    @property
    def has_costs(self) -> bool:
        """Whether any run recorded environment steps and wall time; anyone's ``log_dir`` has neither."""
        return any(run.about.kind != "log_dir" for run in self.runs)

    @property
    def seeds(self) -> list[int]:
        """The seeds of all conditions, sorted."""
        return sorted({run.about.seed for run in self.runs})


def reference(conditions: Sequence[Condition], chosen: str = "") -> Condition | None:
    """What the others are compared with: a rule with default constants, else its first variant.

    The rule is the ``chosen`` one, and without it there is None; or, where none is chosen, the first of `PREFERRED`
    that is here, else the first condition's.
    """
    rules_here = [c.rule for c in conditions]
    rule = chosen or next((key for key in (*PREFERRED, *rules_here) if key in rules_here), "")
    variants = [c for c in conditions if c.rule == rule]
    return next(iter(_by_size(c for c in variants if c.has_default_constants)), variants[0] if variants else None)


def title(rule: str) -> str:
    """A rule's name in sentences and headers: SCOUT, others by their key."""
    return rule.upper() if rule == PAPERS else rule


def _by_size(conditions: Iterable[Condition]) -> list[Condition]:
    return sorted(conditions, key=lambda c: (-len(c.runs), c.label))


def changed(rule: str, constants: dict[str, Any], schedule: int | None) -> dict[str, Any]:
    """The constants that are not the rule's defaults; ``schedule`` is the default length of its schedule, if known."""
    if rule not in rules.RULES:
        return {}  # a user's rule: its defaults are unknown
    usual = rules.make(rule).constants()
    usual |= {k: constants.get(k) if schedule is None else schedule for k in SCHEDULES if k in usual}
    usual |= {k: constants.get(k) for k in ("progress",) if k in usual}  # a run's config takes it from the ladder
    return {k: v for k, v in constants.items() if usual.get(k) != v}


def default_schedule(about: About) -> int | None:
    """Default length of a shared schedule in a run of this setting and budget; None for an unknown setting."""
    return None if about.known is None else about.known.schedule(about.config.get("windows", 0))


def identity(about: About) -> dict[str, Any]:
    """The config's fields that make a run comparable. Empty ones are left out, so that old records equal new ones."""
    fields = {k: v for k, v in about.config.items() if k not in NOT_IDENTITY and v not in (None, "", {}, [])}
    fields = {k: v for k, v in fields.items() if v != ADDED_LATER.get(k)}
    if about.known is not None and fields.get("algorithm") == about.known.learner:  # the first records lack it
        del fields["algorithm"]
    if "learner" in fields:
        fields["learner"] = {k: v for k, v in fields["learner"].items() if v != LEARNER_ADDED_LATER.get(k)}
    for name in SOURCES:  # the source of a policy ladder has this run's seed in its name
        if name in fields:
            fields[name] = _any_seed(str(fields[name]), about.seed)
    fields["bank"] = about.bank_sha256 or f"{about.n_contexts} contexts"
    return fields


def _any_seed(source: str, seed: int) -> str:
    """A run's folder without its seed: ``doorkey-16/target/1-policy5`` is ``doorkey-16/target/{seed}-policy5``."""
    folder, slash, name = source.rstrip("/").rpartition("/")
    return folder + slash + re.sub(rf"(?<!\d){seed}(?!\d)", "{seed}", name, count=1)


def group(runs: Iterable[Summary], chosen: str = "") -> list[Block]:
    """Sort runs into blocks and conditions, to be compared with the ``chosen`` rule. The same run twice is refused."""
    blocks: dict[str, dict[str, list[Summary]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        fields = identity(run.about)
        shared = {k: v for k, v in fields.items() if k not in OF_THE_RULE}
        variant = {"rule": fields["rule"], "constants": fields.get("constants")}
        variant |= {"name": fields["name"]} if "name" in fields else {}
        blocks[_key(shared)][_key(variant)].append(run)
    names = [_block_name([run.about for runs in variants.values() for run in runs]) for variants in blocks.values()]
    labels = block_labels(names, [json.loads(key) for key in blocks], list(blocks))
    pairs = zip(blocks.items(), labels, strict=True)
    return sorted(
        (_block(json.loads(key), label, variants, chosen) for (key, variants), label in pairs),
        key=lambda block: block.label,
    )


def _block_name(runs: Sequence[About]) -> str:
    """The setting; of anyone's loops their common name, else the folder that holds them all."""
    names = {run.config.get("name", "") for run in runs}
    shared = names.pop() if len(names) == 1 else ""
    folders = [_without_seed(Path(os.path.abspath(run.name))) for run in runs]
    return runs[0].setting or shared or Path(os.path.commonpath(folders)).name or "own runs"


def _without_seed(folder: Path) -> Path:
    """A run's folder; its parent if it is a number, which is a seed."""
    return folder.parent if folder.name.isdecimal() else folder


def _key(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, default=str)


def _block(fields: dict[str, Any], label: str, runs_by_variant: dict[str, list[Summary]], chosen: str) -> Block:
    variants = [json.loads(key) for key in runs_by_variant]
    schedule = default_schedule(next(iter(runs_by_variant.values()))[0].about)
    labels = distinct_labels([_condition_label(v, variants, schedule) for v in variants], list(runs_by_variant))
    conditions = []
    for variant, name, runs in zip(variants, labels, runs_by_variant.values(), strict=True):
        ordered = tuple(sorted(runs, key=lambda run: run.about.seed))
        for run, twin in pairwise(ordered):
            if run.about.seed == twin.about.seed:
                raise Refusal(f"{run.about.name} and {twin.about.name} {SAME[run.about.kind == 'log_dir']}")
        conditions.append(Condition(variant["rule"], name, ordered))
    conditions.sort(key=lambda c: c.label)
    first = reference(conditions, chosen)
    conditions.sort(key=lambda c: (c is not first, first is None or c.rule != first.rule))
    return Block(fields.get("setting", ""), label, fields, tuple(conditions), chosen)


def _condition_label(variant: dict[str, Any], variants: Sequence[dict[str, Any]], schedule: int | None) -> str:
    constants = variant["constants"] or {}
    twins = [other["constants"] or {} for other in variants if other["rule"] == variant["rule"]]
    differences = {**differing(constants, twins), **changed(variant["rule"], constants, schedule)}
    label, name = f"{variant['rule']}{bracket(differences)}", variant.get("name")
    if name is None:
        return label
    return name if sum(other.get("name") == name for other in variants) == 1 else f"{name}: {label}"


def with_names(runs: Sequence[Summary]) -> list[Summary]:
    """The same runs; those from a ``log_dir`` get a name and a seed that distinguish them.

    A ``log_dir`` without a name is named after its folder, relative to the common parent. If the last folder is a
    number, that is the seed and not part of the name: ``ppo/0`` and ``ppo/1`` are two seeds of ``ppo``. So are
    ``ppo-0`` and ``ppo-1``, where the curricula have these seeds.
    """
    own = [run.about for run in runs if run.about.kind == "log_dir"]
    folders = {about.name: Path(os.path.abspath(about.name)) for about in own}
    root = os.path.commonpath(folders.values()) if folders else ""
    stems = Counter(stem for about in own if (stem := _stem(folders[about.name], about.seed)))
    return [_with_name(run, folders[run.about.name], root, stems) if run.about.name in folders else run for run in runs]


def _with_name(run: Summary, folder: Path, root: str, stems: Counter[Path]) -> Summary:
    about = run.about
    stem = _stem(folder, about.seed)
    condition = stem if stem and stems[stem] > 1 else _without_seed(folder)
    below = condition.relative_to(root) if str(folder) != root else Path()
    name = about.config.get("name") or below.as_posix().removeprefix(".")
    seed = int(folder.name) if folder.name.isdecimal() else about.seed
    return replace(run, about=replace(about, seed=seed, config={**about.config, "name": name, "seed": seed}))


def _stem(folder: Path, seed: int) -> Path | None:
    """The folder without the run's seed at its end: ``ppo`` of ``ppo-3``, ``ppo_3``, ``ppo-s3`` and ``ppo_seed3``."""
    match = re.fullmatch(r"(.+)[-_](?:s|seed)?(\d+)", folder.name)
    return folder.with_name(match[1]) if match and int(match[2]) == seed else None
