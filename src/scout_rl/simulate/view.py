"""The comparison of rules: a table, a figure of frontiers, and the data behind both."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.curriculum.picture import draw_levels, level_bar
from scout_rl.simulate.model import Floats
from scout_rl.simulate.run import SimulatedRun
from scout_rl.simulate.scenarios import Scenario

SOLVED, HELD = 0.9, 0.8
"""Solved: the worst group reaches 0.9 and stays at 0.8 or above at the next two evaluations."""
RESAMPLES = 10_000


class Row(NamedTuple):
    """One rule's line in the table."""

    rule: str
    group_final: Floats
    """``[groups]``: mean over seeds of the final success of each group."""
    worst_final: tuple[float, float, float]
    """Mean over seeds of the worst group of each seed, and its 95% bootstrap interval over seeds."""
    worst_auc: float
    mean_final: float
    solved: int
    """Seeds that solved the worst group."""
    windows_to_solve: float | None
    """Median over those seeds."""
    unevaluated: float


def windows_to_solve(windows: NDArray[np.int64], worst: Floats) -> int | None:
    """The window of the first evaluation that solves the worst group (see `SOLVED`); None if there is none."""
    for i in range(len(worst) - 2):
        if worst[i] >= SOLVED and (worst[i + 1 : i + 3] >= HELD).all():
            return int(windows[i])
    return None


def interval(values: Floats, rng: np.random.Generator) -> tuple[float, float, float]:
    """Mean and 95% bootstrap interval over seeds."""
    means = values[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def summarise(run: SimulatedRun) -> Row:
    """The line of a run."""
    worst = run.success.min(axis=-1)
    solved = [w for w in (windows_to_solve(run.windows, seed) for seed in worst) if w is not None]
    return Row(
        rule=run.rule,
        group_final=run.success[:, -1].mean(axis=0),
        worst_final=interval(worst[:, -1], np.random.default_rng(0)),
        worst_auc=float(np.trapezoid(worst, run.windows, axis=1).mean() / run.windows[-1]),
        mean_final=float(run.success[:, -1].mean()),
        solved=len(solved),
        windows_to_solve=float(np.median(solved)) if solved else None,
        unevaluated=float(run.unevaluated.mean()),
    )


def table(scenario: Scenario, runs: list[SimulatedRun]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows as text."""
    has_unevaluated = bool((scenario.evaluation_group < 0).any())
    groups = [f"final {name}" for name in scenario.group_names] if len(scenario.group_names) > 1 else []
    header = ["rule", "worst group [95%]", "worst AUC", "mean", *groups, "solved", "windows to solve"]
    if has_unevaluated:
        header.append("rollouts on the unevaluated")
    rows = []
    for row in map(summarise, runs):
        mean, low, high = row.worst_final
        cells = [row.rule, f"{mean:.2f} [{low:.2f}, {high:.2f}]", f"{row.worst_auc:.3f}", f"{row.mean_final:.2f}"]
        cells += [f"{value:.2f}" for value in row.group_final] if groups else []
        when = "-" if row.windows_to_solve is None else f"{row.windows_to_solve:.0f}"
        cells += [f"{row.solved}/{runs[0].success.shape[0]}", when]
        rows.append([*cells, f"{row.unevaluated:.1%}"] if has_unevaluated else cells)
    return header, rows


def write_data(folder: Path, scenario: Scenario, runs: list[SimulatedRun]) -> None:
    """Write the table as CSV and the curves and levels as one npz file."""
    folder.mkdir(parents=True, exist_ok=True)
    header, rows = table(scenario, runs)
    with (folder / f"{scenario.key}.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    arrays: dict[str, Any] = {"windows": runs[0].windows, "evaluation_group": scenario.evaluation_group}
    for run in runs:
        arrays[f"success.{run.rule}"] = run.success.astype(np.float32)
        arrays[f"level.{run.rule}"] = run.level
    np.savez_compressed(folder / f"{scenario.key}.npz", **arrays)


def draw(path: Path, scenario: Scenario, runs: list[SimulatedRun]) -> None:
    """Draw the level that each context trains from over windows, one panel per rule."""
    from matplotlib.figure import Figure

    columns = min(5, len(runs))
    lines = -(-len(runs) // columns)
    figure = Figure(figsize=(2.5 * columns + 1.0, 2.05 * lines + 0.9), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    order = np.argsort(scenario.evaluation_group, kind="stable")
    groups = scenario.evaluation_group[order]
    image = None
    for panel, run in zip(panels.flat, runs, strict=False):
        row = summarise(run)
        image = draw_levels(panel, run.level[:, order], scenario.n_levels, (0, int(run.windows[-1])))
        solved = row.solved == run.success.shape[0]
        panel.set_title(
            f"{run.rule}\nworst group {row.worst_final[0]:.2f}", fontsize=9, fontweight="bold" if solved else "normal"
        )
        for edge in np.flatnonzero(np.diff(groups)) + 1:
            panel.axhline(edge - 0.5, color="#d55e00", linewidth=1.2)
        panel.tick_params(labelsize=7)
    for panel in panels.flat[len(runs) :]:
        panel.axis("off")
    for line in panels:
        line[0].set_ylabel("context", fontsize=8)
    for panel in panels[-1]:
        panel.set_xlabel("window", fontsize=8)
    assert image is not None
    bar = level_bar(figure, image, scenario.n_levels, ax=panels, shrink=0.8)
    bar.ax.tick_params(labelsize=7)
    bar.set_label("level it trains from", fontsize=8)
    figure.suptitle(
        f"{scenario.key}: {scenario.about}\n(first seed; red lines part the groups; bold: every seed solved)",
        fontsize=9,
    )
    figure.savefig(path, dpi=130)
