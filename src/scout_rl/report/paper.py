"""The paper's numbers, as committed data with the table each stands in (``paper.toml``)."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from scout_rl.report.conditions import USUAL

THE_PAPERS = {"doorkey-limited": "doorkey"}
"""Our second version of a setting, beside the one that the paper names: the same numbers stand beside both."""


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

    def __str__(self) -> str:
        return f"{self.bound} {self.value:.3g}".strip() if self.value else f"{self.bound} 0".strip()


def read(name: str) -> dict[str, Any]:
    """A TOML file of this package."""
    return tomllib.loads(resources.files("scout_rl.report").joinpath(name).read_text(encoding="utf-8"))


@cache
def numbers() -> tuple[Number, ...]:
    """All of them."""
    return tuple(Number(**row) for row in read("paper.toml")["number"])


def number(setting: str, rule: str, metric: str, ladder: str = str(USUAL["ladder"]), levels: int = 5) -> Number | None:
    """The paper's number, or None where it prints none."""
    wanted = (THE_PAPERS.get(setting, setting), rule, metric, ladder, levels)
    return next((n for n in numbers() if (n.setting, n.rule, n.metric, n.ladder, n.levels) == wanted), None)
