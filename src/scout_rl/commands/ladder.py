"""``scout ladder``: build a setting's ladder, check every cell, draw it."""

from __future__ import annotations

import csv
import itertools
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro
from rich.console import Console

from scout_rl.bench.ladders import SOURCES, require_ladder
from scout_rl.bench.settings.settings import Setting
from scout_rl.bench.settings.settings import setting as setting_of
from scout_rl.commands.bars import counting
from scout_rl.commands.grid import grid
from scout_rl.commands.next_step import say_next
from scout_rl.files.refusal import Refusal

if TYPE_CHECKING:
    from scout_rl.bench.families.family import Family, States
    from scout_rl.bench.ladders.check import Checked
    from scout_rl.bench.settings.bank import BankPart, ContextBank

RESTORED = (
    "Every cell: solved in time, no more steps than at the level below, restored alike in simulator and stock "
    "environment; level 0 is the stock start."
)
VALIDATED = (
    "Every cell: solved, finite, inside the workspace, restored alike twice; scaffolds with a grasp hold it while "
    "settling; no level-0 start is a success already."
)
ON_THE_WAY = (
    "Every cell: on the way of a success from the target start, and restored alike; level 0 is the target start."
)
DRAWN = 6
"""Contexts in the picture if none is named."""


def ladder(
    setting: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SETTING")],
    /,
    *,
    ladder: Literal[tuple(SOURCES)] = "manual",  # type: ignore[valid-type]
    ladder_from: Annotated[str, tyro.conf.arg(name="from", metavar="RUN")] = "",
    ladder_fallback: Annotated[str, tyro.conf.arg(name="fallback", metavar="RUN")] = "",
    levels: int = 0,
    contexts: tuple[int, ...] = (),
    out: Path = Path("out/ladder"),
) -> int:
    """Build the ladder of a setting's training contexts, check every cell, and draw rows = contexts, columns = levels.

    Exit code 1 where a cell is invalid.

    Args:
        setting: Key of the setting.
        ladder: Hand-built starts, or states along the solver's trajectories, or along those of trained policies.
        ladder_from: For --ladder policy: folder of a run trained from the target start; its successes come first.
        ladder_fallback: And of a run trained with scaffolds, for the rest; what neither solves, the solver does.
        levels: Levels of the ladder; 0 takes the setting's.
        contexts: Only these training contexts; none means all, and a few of every group in the picture.
        out: Folder for the picture (PNG) and the remaining steps of every cell (CSV).
    """
    chosen = setting_of(setting)
    from scout_rl.bench.families import family as family_of
    from scout_rl.bench.families import load_bank
    from scout_rl.bench.ladders.check import a_few, check

    console = Console()
    bank = load_bank(chosen)
    part = bank.train
    for x in contexts:
        if not 0 <= x < len(part):
            raise Refusal(f"context {x} is not a training context of {setting!r}: 0..{len(part) - 1}")
    if levels < 0:
        raise Refusal(f"levels is {levels}, but cannot be negative")
    picked = list(contexts) or list(range(len(part)))
    arrays = {name: array[picked] for name, array in part.contexts.items()}
    with console.status("building"):
        starts = _starts(console, chosen, bank, picked, ladder, levels or chosen.n_levels, ladder_from, ladder_fallback)
    family, stem = family_of(chosen.family), f"{setting}-{ladder}{levels or chosen.n_levels}"
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"{out} cannot be written: {error.strerror}") from error
    work = partial(check, family, chosen, arrays, starts, SOURCES[ladder])
    if family.discrete:
        with counting(console, "checking", len(picked)) as show_done:
            numbers = itertools.count(1)
            checked = work(lambda: show_done(next(numbers)))
    else:  # all cells at once
        with console.status("checking"):
            checked = work()
    verdict = RESTORED if family.discrete else VALIDATED
    _show(console, chosen, part, picked, ladder, checked, ON_THE_WAY if SOURCES[ladder].from_runs else verdict)
    for warning in checked.report.warnings:
        console.print(f"warning: {warning}", style="yellow", highlight=False)
    _write_cells(out / f"{stem}.csv", chosen, part, picked, checked)
    if family.why_sketched():
        console.print(family.why_sketched(), soft_wrap=True)
    drawn = list(range(len(picked))) if contexts else a_few(part, DRAWN)
    _draw(out / f"{stem}.png", family, chosen, part, picked, ladder, starts, checked, drawn)
    console.print(f"Picture and steps of every cell: {out / stem}.png, .csv", soft_wrap=True)
    if checked.report.ok and not SOURCES[ladder].from_runs:
        say_next("scout train", setting, *(["--ladder", ladder] if ladder != "manual" else []))
    return 0 if checked.report.ok else 1


def _starts(
    console: Console,
    setting: Setting,
    bank: ContextBank,
    picked: list[int],
    source: str,
    n_levels: int,
    first: str,
    fallback: str,
) -> States:
    """The ladder of the picked contexts; a policy ladder is built for all contexts first, as in a run."""
    from scout_rl.bench.ladders.build import Wanted, build_ladder
    from scout_rl.files.cache import use_compilation_cache

    require_ladder(source, first, fallback)
    if not SOURCES[source].from_runs:
        arrays = {name: array[picked] for name, array in bank.train.contexts.items()}
        return build_ladder(Wanted(setting, arrays, n_levels), source)[0]
    from scout_rl.bench.run.ladder import ladder_from_runs

    use_compilation_cache()
    whole, _ = ladder_from_runs(source, first, fallback, setting, bank, n_levels, console.print)
    return {name: array[picked] for name, array in whole.items()}


def _show(
    console: Console, setting: Setting, part: BankPart, picked: list[int], source: str, checked: Checked, verdict: str
) -> None:
    groups = part.evaluation_group[picked]
    console.print(
        f"[bold]{setting.key}[/], {source} ladder of {len(picked)} training contexts ({setting.task}); "
        "solver steps that remain, mean (most):",
        highlight=False,
    )
    columns = {
        f"{group.name} ({int((groups == index).sum())} contexts)": groups == index
        for index, group in enumerate(setting.groups)
        if (groups == index).any()
    }
    steps = [
        [f"{level} (target start)" if level == 0 else str(level)]
        + [_steps(checked.remaining[rows, level]) for rows in columns.values()]
        for level in range(checked.remaining.shape[1])
    ]
    console.print(grid(["level", *columns], steps))
    report = checked.report
    console.print(report.headline, style="green" if report.ok else "red")
    for (row, level), reasons in report.reasons.items():
        group = setting.groups[groups[row]].name
        console.print(
            f"  cell ({picked[row]}, {level}), {group}: {'; '.join(reasons)}",
            soft_wrap=True,
            highlight=False,
            markup=False,
        )
    if report.ok:
        console.print(verdict, style="dim")


def _steps(remaining: Any) -> str:
    solved = remaining[remaining >= 0]
    return f"{solved.mean():.1f} ({solved.max()})" if len(solved) else "-"


def _write_cells(path: Path, setting: Setting, part: BankPart, picked: list[int], checked: Checked) -> None:
    reasons = checked.report.reasons
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["context", "group", "level", "remaining_steps", "invalid"])
        for (row, level), steps in np.ndenumerate(checked.remaining):
            group = setting.groups[part.evaluation_group[picked[row]]].name
            why = "; ".join(reasons.get((row, level), []))
            writer.writerow([picked[row], group, level, "" if steps < 0 else int(steps), why])


def _draw(
    path: Path,
    family: Family,
    setting: Setting,
    part: BankPart,
    picked: list[int],
    source: str,
    starts: States,
    checked: Checked,
    drawn: list[int],
) -> None:
    from scout_rl.bench.ladders.picture import draw_ladder

    captions = [
        [
            _caption(int(steps), (row, level) in checked.report.invalid_cells)
            for level, steps in enumerate(checked.remaining[row])
        ]
        for row in drawn
    ]
    several = len(setting.groups) > 1
    groups = [setting.groups[part.evaluation_group[picked[row]]].name for row in drawn]
    names = [f"context {picked[row]}" + (f" ({g})" if several else "") for row, g in zip(drawn, groups, strict=True)]
    draw_ladder(
        family,
        setting,
        {name: array[[picked[row] for row in drawn]] for name, array in part.contexts.items()},
        {name: array[drawn] for name, array in starts.items()},
        path,
        rows=names,
        captions=captions,
        title=f"{setting.key}: {source} ladder",
    )


def _caption(steps: int, invalid: bool) -> str:
    if invalid:
        return "INVALID"
    return f"{steps} step{'' if steps == 1 else 's'} remain{'s' if steps == 1 else ''}"
