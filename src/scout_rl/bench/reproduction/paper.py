"""The paper's numbers, each with its table in the paper (``paper.toml``)."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from scout_rl.report.measure.names import USUAL
from scout_rl.report.read.catalogue import Printed

PAPER_SETTING = {"doorkey-limited": "doorkey", "fetch-withingroup-push": "fetch-withingroup"}
"""Our second version of a setting -> the paper's setting. Both are compared with the same numbers."""


class Number(NamedTuple):
    """One printed number."""

    setting: str
    rule: str
    metric: str
    value: float
    source: str
    """Label of the paper's table, or its section."""
    ladder: str = "manual"
    levels: int = 5
    bound: str = ""
    """``at most`` where the paper gives a bound."""
    difference: float | None = None
    """SCOUT minus this rule, over paired seeds, where the paper prints that too."""
    difference_source: str = ""
    """Its table or section, if not ``source``."""

    def __str__(self) -> str:
        return f"{self.bound} {self.value:.3g}".strip()


@cache
def read(name: str) -> dict[str, Any]:
    """A TOML file of this package."""
    return tomllib.loads(resources.files("scout_rl.bench.reproduction").joinpath(name).read_text(encoding="utf-8"))


@cache
def numbers() -> tuple[Number, ...]:
    """All printed numbers."""
    return tuple(Number(**row) for row in read("paper.toml")["number"])


def number(setting: str, rule: str, metric: str, ladder: str = str(USUAL["ladder"]), levels: int = 5) -> Number | None:
    """The paper's number, or None where it prints none."""
    wanted = (PAPER_SETTING.get(setting, setting), rule, metric, ladder, levels)
    return next((n for n in numbers() if (n.setting, n.rule, n.metric, n.ladder, n.levels) == wanted), None)


def secondary(setting: str, metric: str) -> Printed | None:
    """The paper's reason against this measure in this setting; None without one."""
    wanted = (PAPER_SETTING.get(setting, setting), metric)
    rows = (row for row in read("paper.toml")["secondary"] if (row["setting"], row["metric"]) == wanted)
    return next((Printed(row["why"], row["source"]) for row in rows), None)
