"""The tables of one block of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scout_rl.report.measure.conditions import Block, Condition, title
from scout_rl.report.measure.metrics import SOLVED, Summary, common_window
from scout_rl.report.measure.statistics import Paired, bootstrap, generator, holm, paired
from scout_rl.report.measure.stuck import has_model
from scout_rl.report.measure.tables import MISSING, Table, shown, shown_interval, shown_seeds, table_of

READ_OFF = "Under {} a frontier is what the model expects to succeed, not where rollouts start."
NO_LABELS = "The records do not say which training context is of which group: --groups names them."
PAPER_METRICS = {"auc": "AUC", "worst_auc": "worst AUC", "final": "final", "worst_final": "worst final"}


class Score(NamedTuple):
    """A condition's numbers under the block's common window."""

    condition: Condition
    auc: NDArray[np.float64]
    """``[seeds]``, like the arrays below."""
    worst_auc: NDArray[np.float64]
    final: NDArray[np.float64]
    worst_final: NDArray[np.float64]
    paired: Paired | None = None
    """Worst-group AUC of the reference minus this one; None for the reference, or without a common seed."""
    holm: float | None = None

    @property
    def by_seed(self) -> dict[int, float]:
        """Worst-group AUC by seed."""
        return dict(zip(self.condition.seeds, self.worst_auc.tolist(), strict=True))


def evaluated(block: Block) -> Block | None:
    """The block's finished runs with a held-out curve; None where there is none."""
    return finished(block, least_evaluations=2)


def finished(block: Block, least_evaluations: int = 0) -> Block | None:
    """The block's finished runs with at least so many evaluations; None where there is none."""
    kept = [
        replace(c, runs=tuple(run for run in c.runs if run.about.finished and len(run.at) >= least_evaluations))
        for c in block.conditions
    ]
    conditions = tuple(c for c in kept if c.runs)
    return replace(block, conditions=conditions) if conditions else None


def window_of(block: Block) -> tuple[int, int]:
    """The common window of the block's runs."""
    return common_window(run.at for run in block.runs)


def scores(block: Block) -> list[Score]:
    """Every condition's numbers, each paired with the reference's."""
    window = window_of(block)
    unpaired = [
        Score(
            condition,
            auc=np.array([run.auc(window) for run in condition.runs]),
            worst_auc=np.array([run.worst_auc(window) for run in condition.runs]),
            final=np.array([run.final for run in condition.runs]),
            worst_final=np.array([run.worst_final for run in condition.runs]),
        )
        for condition in block.conditions
    ]
    first = reference_of(block, unpaired)
    if first is None:
        return unpaired
    return [s if s is first else s._replace(paired=paired(first.by_seed, s.by_seed)) for s in unpaired]


def reference_of(block: Block, scores: Sequence[Score]) -> Score | None:
    """What the others are compared with (`Block.reference`); None where it is not among these scores."""
    condition = block.reference
    return next((s for s in scores if s.condition is condition), None)


def with_holm(blocks: Sequence[list[Score]]) -> list[list[Score]]:
    """Fill in p-values corrected by Holm-Bonferroni over every comparison of every block."""
    adjusted = iter(holm([s.paired.p for block in blocks for s in block if s.paired is not None]))
    return [[s if s.paired is None else s._replace(holm=next(adjusted)) for s in block] for block in blocks]


def over_seeds(block: Block) -> tuple[str, Callable[..., NDArray[np.float64]]]:
    """How AUC is averaged over seeds: by the median, unless the catalogue says by the mean."""
    return ("mean", np.mean) if block.known is not None and block.known.by_mean else ("median", np.median)


def comparison_table(block: Block, scores: list[Score]) -> Table:
    """One row per condition: success, worst group, paired difference, time to solve, a paper's numbers."""
    window, many = window_of(block), len(block.groups) > 1
    first = reference_of(block, scores)
    rows = [_comparison_row(block, s, first) for s in scores]
    printed = [printed_cell(block, s.condition) for s in scores]
    if set(printed) != {MISSING}:
        rows = [{**row, "paper": cell} for row, cell in zip(rows, printed, strict=True)]
    notes = [
        f"AUC over windows {window[0]} to {window[1]}, which all runs share, divided by its length. Final: mean ± s.d. "
        "over seeds. "
        + ("Worst: the minimum over groups within a seed. Δ: on worst-group AUC, " if many else "Δ: on AUC, ")
        + "median over paired seeds, 95% interval from 10,000 seed resamples. p: exact two-sided sign test; "
        "p Holm: corrected for every comparison of this report. No interval below three seeds. Windows to solve: "
        "median over the seeds that did (how many of them).",
    ]
    lacking = {c.label: [str(seed) for seed in block.seeds if seed not in c.seeds] for c in block.conditions}
    named = "; ".join(f"{label} {', '.join(seeds)}" for label, seeds in lacking.items() if seeds)
    notes += [f"Missing seeds: {named}."] if named else []
    return table_of(f"{block.label}: held-out success from the target start", rows, notes)


def _comparison_row(block: Block, s: Score, first: Score | None) -> dict[str, str]:
    """The cells of one condition by column; ``first`` is the reference."""
    runs, both, many = s.condition.runs, s.paired, len(block.groups) > 1
    word, reduce = over_seeds(block)
    ours = title(block.chosen) if first is None else first.condition.reference_name
    finals = {f"final {g}": np.array([run.groups[g][-1] for run in runs]) for g in block.groups}
    finals = {"final": s.final} | ({**finals, "worst final": s.worst_final} if many else {})
    areas = {f"AUC ({word})": s.auc} | ({f"worst-group AUC ({word})": s.worst_auc} if many else {})
    difference = shown_interval(None if both is None else both.difference, 3, sign=True)
    return {
        "rule": s.condition.label,
        "n": shown_seeds(s.condition.seeds, block.seeds),
        **{column: mean_sd(values) for column, values in finals.items()},
        **{column: shown_interval(bootstrap(values, reduce, generator()), 3) for column, values in areas.items()},
        f"Δ {ours} − rule [95%]": "(reference)" if s is first else difference,
        "wins": f"{both.wins}/{both.n}" if both else MISSING,
        "p": f"{both.p:.3f}" if both else MISSING,
        "p Holm": shown(s.holm, 3),
        f"solved (≥ {SOLVED})": f"{int((s.worst_final >= SOLVED).sum())}/{len(runs)}",
        "windows to solve": windows_to_solve(runs),
    }


def windows_to_solve(runs: Sequence[Summary]) -> str:
    """``50 (5/6)``: the median, and how many seeds solved it."""
    when = [run.solved_window for run in runs if run.solved_window is not None]
    return f"{np.median(when):.0f} ({len(when)}/{len(runs)})" if when else f"{MISSING} (0/{len(runs)})"


def printed_cell(block: Block, condition: Condition) -> str:
    """A paper's numbers for this setting, rule (with default constants) and ladder, or `MISSING`."""
    if block.known is None or not condition.has_default_constants:
        return MISSING
    printed = {
        name: block.known.printed[key]
        for metric, name in PAPER_METRICS.items()
        if (key := (condition.rule, metric, block.ladder, block.levels)) in block.known.printed
    }
    numbers = ", ".join(f"{name} {number.text}" for name, number in printed.items())
    return f"{numbers} ({'; '.join(sorted({number.source for number in printed.values()}))})" if printed else MISSING


def mean_sd(values: NDArray[np.float64]) -> str:
    """``0.97 ± 0.04``; the mean alone for one seed."""
    if len(values) < 2:
        return shown(float(values.mean()))
    return f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"


def mechanism_table(block: Block) -> Table:
    """One row per condition: rollouts from each level, and the frontiers' dispersion, reversals and end."""
    from_policies = any(run.about.bootstrap_fraction is not None for run in block.runs)
    note = (
        "Level columns: share of rollouts that started there. Dispersion: IQR of the frontiers within the group, mean "
        "over windows. Frontiers at 0: share of contexts whose frontier ends at the target start. All: mean over seeds."
    )
    models = [c.label for c in block.conditions if has_model(c.rule) and c.runs[0].frontier_mean]
    note += f" {READ_OFF.format(', '.join(models))}" if models else ""
    policy_note = (
        "Bootstrap fraction: share of contexts whose ladder needed more than a policy trained from the target start "
        "(n: runs that say it)."
    )
    unlabelled = len(block.groups) > 1 and list(block.runs[0].rollouts) == ["all"]
    notes = [note, *[NO_LABELS] * unlabelled, *[policy_note] * from_policies]
    rows = [_mechanism_row(block, c, from_policies=from_policies) for c in block.conditions]
    return table_of(f"{block.label}: where training happened", rows, notes)


def _mechanism_row(block: Block, condition: Condition, *, from_policies: bool) -> dict[str, str]:
    """The cells of one condition by column."""

    def mean(values: Sequence[float | None]) -> str:
        known = [v for v in values if v is not None]
        return shown(float(np.mean(known))) if known else MISSING

    runs = condition.runs
    levels = max(run.about.n_levels for run in block.runs)
    share = np.mean([np.pad(run.level_share, (0, levels - len(run.level_share))) for run in runs], axis=0)
    groups = next((run.dispersion for run in block.runs if run.dispersion), {})
    spread = {g: [float(run.dispersion[g].mean()) for run in runs if g in run.dispersion] for g in groups}
    costs = {
        "million steps": mean([run.about.environment_steps / 1e6 or None for run in runs]),
        "minutes": mean([run.about.seconds / 60 or None for run in runs]),
    }
    return {
        "rule": condition.label,
        "n": shown_seeds(condition.seeds, block.seeds),
        **{f"level {i}": f"{s:.0%}" for i, s in enumerate(share)},
        **{f"dispersion {g}": mean(values) for g, values in spread.items()},
        "reversals per context": mean([run.reversals for run in runs]),
        "frontiers at 0": mean([run.at_target for run in runs]),
        **(costs if block.has_costs else {}),
        **({"bootstrap fraction": bootstrap_fraction(runs)} if from_policies else {}),
    }


def bootstrap_fraction(runs: Sequence[Summary]) -> str:
    """Mean over the runs with a policy ladder, and their number."""
    known = [run.about.bootstrap_fraction for run in runs if run.about.bootstrap_fraction is not None]
    return f"{np.mean(known):.2f} (n = {len(known)})" if known else MISSING
