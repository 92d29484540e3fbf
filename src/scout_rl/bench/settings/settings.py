"""The table of settings: environment family, bank, ladder, learner and budget of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from scout_rl.files.refusal import Refusal


class Bound(NamedTuple):
    """A closed range of a context's feature, such as ``solution_length``; the family computes features."""

    feature: str
    low: float
    high: float


@dataclass(frozen=True)
class Group:
    """One evaluation group: its share of each part of the bank, and the bounds of its contexts."""

    name: str = "all"
    share: float = 1.0
    bounds: tuple[Bound, ...] = ()


@dataclass(frozen=True)
class Setting:
    """One row of the table: all that runs of different rules and seeds share."""

    key: str
    family: str
    """Folder under ``scout_rl.bench.families``."""
    task: str
    """The stock environment's id."""
    n_train: int
    n_held_out: int
    learner: str
    windows: int
    """Training budget in windows."""
    episodes: int = 16
    evaluate_every: int = 20
    """Windows between two held-out evaluations."""
    n_levels: int = 5
    schedule_share: float = 0.5
    """Share of the budget that a shared schedule (``anneal``, ``reverse``) runs over."""
    groups: tuple[Group, ...] = (Group(),)
    oracle_sees_groups: bool = True
    """False if groups are for evaluation only (within-group conflict). Then ``oracle_group`` is constant."""
    bank_seed: int = 0
    """The bank's seed; it does not depend on the run's seed."""
    horizon: int = 0
    """Time limit in steps (MiniGrid); 0: the environment's own."""

    def schedule(self, windows: int) -> int:
        """Length of a shared schedule (``rules.rule.SCHEDULES``) under a budget of ``windows``."""
        return max(1, round(self.schedule_share * windows))

    def small(self, **changes: int) -> Setting:
        """The ``-small`` variant: a smaller bank and a shorter budget, all else equal."""
        return replace(self, key=f"{self.key}-small", **changes)  # type: ignore[arg-type]


def _short_and_long(short: float, long: float, share_short: float) -> tuple[Group, ...]:
    """Two groups by the length of the shortest solution, without the middle."""
    return (
        Group("short", share_short, (Bound("solution_length", 0, short),)),
        Group("long", 1 - share_short, (Bound("solution_length", long, float("inf")),)),
    )


def _minigrid(
    key: str, task: str, windows: int, groups: tuple[Group, ...] = (Group(),), horizon: int = 0
) -> tuple[Setting, Setting]:
    full = Setting(
        key=key,
        family="minigrid",
        task=task,
        n_train=200,
        n_held_out=100,
        learner="ppo",
        windows=windows,
        groups=groups,
        horizon=horizon,
    )
    return full, full.small(n_train=40, n_held_out=40, windows=windows // 4)


# The bounds are the lower and the upper decile of the solution length over 1,000 stock layouts.
_SPLIT_8 = {"short": 13, "long": 21}
_SPLIT_16 = {"short": 25, "long": 43}


def _sac(
    family: str, key: str, task: str, windows: int, groups: tuple[Group, ...], **options: Any
) -> tuple[Setting, Setting]:
    """A goal-conditioned MuJoCo setting and its smoke test."""
    full = Setting(
        key=key,
        family=family,
        task=task,
        n_train=100,
        n_held_out=50,
        learner="sac",
        windows=windows,
        groups=groups,
        **options,
    )
    return full, full.small(n_train=16, n_held_out=8, windows=windows // 8)


# Fetch goals by height above the lying object (metres); docs/settings.md says what the heights are for.
_AWAY = Bound("distance", 0.1, float("inf"))
_ON_TABLE = Group("on-table", 0.5, (Bound("goal_height", 0, 0), _AWAY))
_IN_REACH_OF_A_PUSH = Group("low", 0.5, (Bound("goal_height", 0.01, 0.04), _AWAY))
_FETCH = "FetchPickAndPlace-v4"


def _in_air(name: str, share: float, low: float, high: float) -> Group:
    return Group(name, share, (Bound("goal_height", low, high),))


_GOAL_SETTINGS: tuple[Setting, ...] = (
    *_sac("fetch", "fetch-air", _FETCH, 1200, (_in_air("in-air", 1.0, 0.1, 0.45),)),
    *_sac(
        "fetch", "fetch-conflict", _FETCH, 1200, (_ON_TABLE, _in_air("in-air", 0.5, 0.3, 0.45)), schedule_share=5 / 6
    ),
    *_sac(
        "fetch",
        "fetch-withingroup",
        _FETCH,
        1200,
        (_in_air("low", 0.5, 0.1, 0.2), _in_air("high", 0.5, 0.35, 0.45)),
        schedule_share=5 / 6,
        oracle_sees_groups=False,
    ),
    *_sac(
        "fetch",
        "fetch-withingroup-push",
        _FETCH,
        1200,
        (_IN_REACH_OF_A_PUSH, _in_air("high", 0.5, 0.35, 0.45)),
        schedule_share=5 / 6,
        oracle_sees_groups=False,
    ),
    *_sac(
        "pointmaze",
        "pointmaze-medium",
        "PointMaze_Medium-v3",
        800,
        (Group("all", 1.0, (Bound("geodesic", 3, float("inf")),)),),
    ),
    *_sac(
        "pointmaze",
        "pointmaze-large",
        "PointMaze_Large-v3",
        1000,
        (Group("all", 1.0, (Bound("geodesic", 5, float("inf")),)),),
    ),
)

# Unmodified Meta-World tasks, one group per task.
_PUSH_AND_SHELF = (Group("push", 0.5), Group("shelf-place", 0.5))

_METAWORLD_SETTINGS: tuple[Setting, ...] = (
    *_sac("metaworld", "metaworld-pickplace", "pick-place-v3", 2000, (Group("pick-place"),)),
    *(
        replace(row, n_train=2 * row.n_train, n_held_out=2 * row.n_held_out)
        for row in _sac("metaworld", "metaworld-conflict", "push-v3+shelf-place-v3", 2000, _PUSH_AND_SHELF)
    ),
)

_TABLE: tuple[Setting, ...] = (
    *_minigrid("doorkey", "MiniGrid-DoorKey-8x8-v0", windows=1200),
    *_minigrid("doorkey-limited", "MiniGrid-DoorKey-8x8-v0", windows=1200, horizon=100),
    *_minigrid("doorkey-16", "MiniGrid-DoorKey-16x16-v0", windows=2400),
    *_minigrid("multiroom", "MiniGrid-MultiRoom-N6-v0", windows=2400),
    *_minigrid("doorkey-split", "MiniGrid-DoorKey-8x8-v0", 1200, _short_and_long(**_SPLIT_8, share_short=0.5)),
    *_minigrid("doorkey-split-uneven", "MiniGrid-DoorKey-8x8-v0", 1200, _short_and_long(**_SPLIT_8, share_short=0.75)),
    *_minigrid("doorkey-16-split", "MiniGrid-DoorKey-16x16-v0", 2400, _short_and_long(**_SPLIT_16, share_short=0.5)),
    *_minigrid(
        "doorkey-16-split-uneven",
        "MiniGrid-DoorKey-16x16-v0",
        2400,
        _short_and_long(**_SPLIT_16, share_short=0.75),
    ),
    *_GOAL_SETTINGS,
    *_METAWORLD_SETTINGS,
)

SETTINGS: dict[str, Setting] = {setting.key: setting for setting in _TABLE}
"""Every setting by its key."""


def setting(key: str) -> Setting:
    """The setting of that key; ``KEY@N`` is the same on the contexts of bank seed N. An unknown key is refused."""
    name, at, number = key.partition("@")
    if name not in SETTINGS:
        raise Refusal(f"no setting {name!r}; the settings are {', '.join(sorted(SETTINGS))}")
    if not at:
        return SETTINGS[name]
    if not (number.isdecimal() and number == str(int(number)) and int(number) > 0):
        raise Refusal(f"no bank {number!r} of {name!r}: after the @ stands the bank's seed, 1 or more (0 is {name!r})")
    return replace(SETTINGS[name], key=key, bank_seed=int(number))
