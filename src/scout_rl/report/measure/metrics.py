"""Measures of one run (spec section 7): pure functions on arrays, and a run's summary.

Curves are ``[evaluations]`` over ``at`` (windows closed). Frontiers are ``[windows, contexts]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.refusal import Refusal
from scout_rl.report.read.run import About, RunRecord

Floats = NDArray[np.float64]
Values = Floats | Sequence[float]
SOLVED = 0.5
"""Final success of the worst group from which a seed counts as solved (the paper's)."""
REACHED, HELD = 0.9, 0.8
"""Windows to solve: the worst group reaches the first and stays at the second at the next two evaluations."""
RETREAT = 1
"""Index into ``tables.KINDS``: the only kind of move toward easier starts."""
COLUMNS = 40
"""Rollouts per level are counted in at most this many columns of windows."""


def common_window(curves: Iterable[NDArray[np.int64]]) -> tuple[int, int]:
    """The span that all runs share: from the latest first evaluation to the earliest last one."""
    first, last = zip(*((int(at[0]), int(at[-1])) for at in curves), strict=True)
    if max(first) >= min(last):
        raise Refusal(f"the runs share no window: one begins at {max(first)}, another ends at {min(last)}")
    return max(first), min(last)


def auc(at: NDArray[np.int64], success: Floats, window: tuple[int, int]) -> float:
    """Trapezoid area under the curve over ``window``, divided by its length; curves are linear between evaluations."""
    start, end = window
    inside = at[(at > start) & (at < end)]
    x = np.concatenate(([start], inside, [end])).astype(float)
    return float(np.trapezoid(np.interp(x, at, success), x) / (end - start))


def worst_curve(groups: Mapping[str, Floats]) -> Floats:
    """The least successful group at every evaluation."""
    return np.asarray(np.min(list(groups.values()), axis=0))


def solved_at(worst: Floats) -> int | None:
    """Index of the first evaluation at 0.9 or above that is followed by two at 0.8 or above."""
    for i in range(len(worst) - 2):
        if worst[i] >= REACHED and worst[i + 1] >= HELD and worst[i + 2] >= HELD:
            return i
    return None


def interquartile_range(frontier: NDArray[np.int8]) -> Floats:
    """Per window: the IQR over contexts, quartiles interpolated linearly; 0 without contexts."""
    if frontier.shape[1] == 0:
        return np.zeros(len(frontier))
    low, high = np.quantile(frontier, (0.25, 0.75), axis=1)
    return np.asarray(high - low)


def reversals(context: NDArray[np.int32], kind: NDArray[np.int8], n_contexts: int) -> NDArray[np.int64]:
    """Per context: how often a move toward easier follows one toward harder, or the other way round."""
    order = np.argsort(context, kind="stable")
    who, easier = context[order], kind[order] == RETREAT
    turns = (who[1:] == who[:-1]) & (easier[1:] != easier[:-1])
    return np.bincount(who[1:][turns], minlength=n_contexts)


def column_width(windows: int) -> int:
    """Windows per column of `rollouts_by_level`."""
    return -(-max(1, windows) // COLUMNS)


def rollouts_by_level(run: RunRecord) -> dict[str, NDArray[np.int64]]:
    """``[columns, levels]`` by group of training contexts: how many rollouts started there."""
    width, levels = column_width(run.about.windows), run.about.n_levels
    columns = -(-run.about.windows // width)
    cell = run.rollouts.window.astype(np.int64) // width * levels + run.rollouts.level
    counts = {}
    for name, members in members_of(run).items():
        of_group = np.isin(run.rollouts.context, members)
        counts[name] = np.bincount(cell[of_group], minlength=columns * levels).reshape(columns, levels)
    return counts


def gradient_steps(learner: Mapping[str, Any], steps_at: NDArray[np.int64]) -> NDArray[np.int64]:
    """``[windows]``: gradient steps so far, from a learner's constants and the environment steps ``steps_at``.

    PPO splits a window's steps into minibatches in every epoch. The others take ``updates`` steps per window from
    ``warmup`` environment steps on. Empty for unknown constants.
    """
    if "epochs" in learner:
        in_window = np.diff(steps_at, prepend=0)
        return np.cumsum(learner["epochs"] * np.maximum(1, -(-in_window // learner["minibatch"])))
    if "updates" in learner:
        return np.cumsum(np.where(steps_at >= learner["warmup"], learner["updates"], 0))
    return np.zeros(0, np.int64)


def retained(auto: Values, manual: Values, target: Values) -> Floats:
    """R_retain and R_self of ``[..., seeds]``: kept share of the hand-built ladder's gain in mean AUC over the target
    start. NaN without a gain."""
    base = np.mean(target, axis=-1)
    gain = np.mean(manual, axis=-1) - base
    return np.asarray((np.mean(auto, axis=-1) - base) / np.where(gain == 0, np.nan, gain))


@dataclass(frozen=True, eq=False)
class Summary:
    """What tables and figures need of a run, without its rollouts and frontiers."""

    about: About
    at: NDArray[np.int64]
    held_out: Floats
    groups: dict[str, Floats]
    solved_window: int | None
    solved_updates: int | None
    solved_steps: int | None
    solved_seconds: float | None
    rollouts: dict[str, NDArray[np.int64]]
    """`rollouts_by_level` of the run."""
    frontier_mean: dict[str, NDArray[np.float32]]
    """``[windows]`` by group of training contexts; empty without a frontier."""
    dispersion: dict[str, NDArray[np.float32]]
    """``[windows]``: IQR within the group; empty without a frontier."""
    reversals: float | None
    """Mean per context; None without a frontier."""
    at_target: float | None
    """Share of contexts whose frontier ends at level 0."""

    @property
    def final(self) -> float:
        """Held-out success at the last evaluation."""
        return float(self.held_out[-1])

    @property
    def worst_final(self) -> float:
        """The within-seed minimum over groups."""
        return min(float(curve[-1]) for curve in self.groups.values())

    @property
    def level_share(self) -> Floats:
        """``[levels]``: share of all rollouts that started there."""
        count = np.sum([counts.sum(axis=0) for counts in self.rollouts.values()], axis=0)
        return np.asarray(count / max(1, count.sum()), np.float64)

    def auc(self, window: tuple[int, int]) -> float:
        """Over all held-out contexts."""
        return auc(self.at, self.held_out, window)

    def worst_auc(self, window: tuple[int, int]) -> float:
        """The minimum over groups of each group's area."""
        return min(auc(self.at, curve, window) for curve in self.groups.values())


def summarise(run: RunRecord) -> Summary:
    """Reduce a run to what tables and figures need."""
    when = solved_at(worst_curve(run.held_out_groups)) if run.held_out_groups else None
    window = None if when is None else int(run.evaluated_at[when])
    index = None if window is None else max(window - 1, 0)
    updates = gradient_steps(run.about.config.get("learner", {}), run.steps_at)

    def then(values: NDArray[Any]) -> Any:
        """The value at that window; None where it is not solved, or nothing was recorded."""
        return None if index is None or index >= len(values) else values[index].item()

    means, spread = {}, {}
    if run.frontier is not None and len(run.frontier):
        for name, members in members_of(run).items():
            means[name] = run.frontier[:, members].mean(axis=1, dtype=np.float32)
            spread[name] = interquartile_range(run.frontier[:, members]).astype(np.float32)
    return Summary(
        about=run.about,
        at=run.evaluated_at,
        held_out=run.held_out,
        groups=run.held_out_groups,
        solved_window=window,
        solved_updates=then(updates),
        solved_steps=then(run.steps_at),
        solved_seconds=then(run.seconds_at),
        rollouts=rollouts_by_level(run),
        frontier_mean=means,
        dispersion=spread,
        reversals=float(reversals(run.moves.context, run.moves.kind, run.about.n_contexts).mean()) if means else None,
        at_target=float((run.frontier[-1] == 0).mean()) if means and run.frontier is not None else None,
    )


def members_of(run: RunRecord) -> dict[str, NDArray[np.int64]]:
    """Training contexts by evaluation group; one group ``all`` without labels."""
    if run.context_group is None:
        return {"all": np.arange(run.about.n_contexts)}
    return {name: np.flatnonzero(run.context_group == i) for i, name in enumerate(run.groups)}
