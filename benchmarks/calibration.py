"""How well `ability` predicts: every recorded outcome before it counts, beside a discounted Beta(1, 1) per cell.

    .venv/bin/python -m benchmarks.calibration results
    .venv/bin/python -m benchmarks.calibration results/doorkey-limited --windows 100     # the first 100 windows

The records are of any rule: their outcomes are replayed in windows, and each outcome is predicted from the windows
before it. The rival has no model: wins and losses per cell, discounted per outcome of the cell, with the best of four
discounts per setting (chosen with the answer in hand, so in its favour). It prints log loss and Brier score per
setting, and writes a reliability figure by level, of the runs with five levels (`--figure`).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np

from scout_rl import rules
from scout_rl.report.read.runs import find, load
from scout_rl.rules.cells import Outcomes

DISCOUNTS = (0.8, 0.9, 0.95, 1.0)
BINS = np.linspace(0, 1, 11)


def predictions(run, windows):
    """Level, outcome, the model's chance and the Betas' of every rollout, each from the windows before its own."""
    rule = rules.Ability()
    n, levels = run.about.n_contexts, run.about.n_levels
    state = rule.init(n, levels)
    wins, losses = np.ones((len(DISCOUNTS), n, levels)), np.ones((len(DISCOUNTS), n, levels))
    end = min(windows or run.about.windows, run.about.windows)
    edges = np.searchsorted(run.rollouts.window, np.arange(end + 1))
    rows = []
    for first, last in pairwise(edges.tolist()):
        x = run.rollouts.context[first:last].astype(np.int64)
        level = run.rollouts.level[first:last].astype(np.int64)
        r = run.rollouts.success[first:last]
        beta = wins[:, x, level] / (wins[:, x, level] + losses[:, x, level])
        rows.append(np.column_stack([level, r, rule.chance(state)[0][x, level], *beta]))
        state = rule.update(state, Outcomes(x, level, r, np.zeros(len(x)), np.ones(len(x), bool)))
        for i, discount in enumerate(DISCOUNTS):
            for cell, hit in zip(zip(x, level, strict=True), r, strict=True):
                wins[i][cell] = 1 + discount * (wins[i][cell] - 1) + hit
                losses[i][cell] = 1 + discount * (losses[i][cell] - 1) + (1 - hit)
    return np.concatenate(rows) if rows else np.zeros((0, 3 + len(DISCOUNTS)))


def log_loss(r, p):
    """Mean of ``-log p(outcome)`` in nats; chances within 1e-4 of certainty are clipped there, for both."""
    p = np.clip(p, 1e-4, 1 - 1e-4)
    return float(-np.mean(np.where(r > 0, np.log(p), np.log(1 - p))))


def score(rows):
    """Log loss and Brier score of the model, then of the best Beta."""
    r, model, betas = rows[:, 1], rows[:, 2], rows[:, 3:]
    losses = [log_loss(r, beta) for beta in betas.T]
    best = int(np.argmin(losses))
    return {
        "outcomes": len(rows),
        "ability": log_loss(r, model),
        "beta": losses[best],
        "discount": DISCOUNTS[best],
        "ability_brier": float(np.mean((model - r) ** 2)),
        "beta_brier": float(np.mean((betas[:, best] - r) ** 2)),
    }


def reliability(rows):
    """Per level: predicted and observed success per bin of the prediction, and how many outcomes it holds."""
    curves = {}
    for level in np.unique(rows[:, 0]).astype(int):
        at = rows[rows[:, 0] == level]
        bins = np.clip(np.digitize(at[:, 2], BINS) - 1, 0, len(BINS) - 2)
        count = np.bincount(bins, minlength=len(BINS) - 1)
        filled = count >= 30
        mean = [np.bincount(bins, at[:, column], len(BINS) - 1)[filled] / count[filled] for column in (2, 1)]
        curves[level] = (*mean, count[filled])
    return curves


def draw(path, by_level):
    """One line per level: observed success over predicted success."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    panel = figure.subplots()
    panel.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for level, (predicted, observed, _) in by_level.items():
        panel.plot(predicted, observed, marker="o", markersize=4, label=f"level {level}")
    panel.set_xlabel("chance that ability predicted")
    panel.set_ylabel("share that succeeded")
    panel.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path, help="folders or files of records")
    parser.add_argument("--windows", type=int, default=0, help="the first windows of every run alone; 0: all")
    parser.add_argument("--figure", type=Path, help="write the reliability figure here")
    arguments = parser.parse_args()
    by_setting, five = defaultdict(list), []
    for path in find(arguments.records):
        run = load(path)
        by_setting[run.about.setting].append(predictions(run, arguments.windows))
        if run.about.n_levels == 5:
            five.append(by_setting[run.about.setting][-1])
    columns = "setting", "runs", "outcomes", "log loss, ability", "Beta", "its discount", "Brier, ability", "Beta"
    print(f"| {' | '.join(columns)} |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for setting, parts in sorted(by_setting.items()):
        s = score(np.concatenate(parts))
        numbers = [f"{s[key]:.3f}" for key in ("ability", "beta")] + [str(s["discount"])]
        numbers += [f"{s[key]:.3f}" for key in ("ability_brier", "beta_brier")]
        print(f"| {setting} | {len(parts)} | {s['outcomes']:,} | {' | '.join(numbers)} |")
    if arguments.figure:
        draw(arguments.figure, reliability(np.concatenate(five)))


if __name__ == "__main__":
    main()
