"""``scout demo``: a campaign of three rules on a small bank, and its report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from scout_rl.commands.next_step import say_next
from scout_rl.report.measure.tables import MISSING
from scout_rl.report.measure.tables import Table as ReportTable

RULES = {
    "ability": "chooses starts by one model of success, learned from all outcomes",
    "anneal": "takes the help away from all contexts by one schedule",
    "target": "is plain training: every rollout begins at the real start",
}
"""The rules that are shown, the reference first, and what each does."""
ANNEAL_SHARE = 1 / 3
"""Of the budget: the best of the three lengths of ``anneal`` that ``benchmarks/demo_bank.py`` tries."""
EVALUATE_EVERY = 10
AT_A_TIME = 2
SOLVED = "windows to solve"
BY_GROUP, OVERALL = ("rule", "final ", "worst", SOLVED), ("rule", "final", "AUC", SOLVED)
"""First words of the report's columns that make sense for one seed: with several groups, and with one."""


def demo(
    *, setting: str = "doorkey-limited-small", seed: int = 40, windows: int = 0, out: Path = Path("out/demo")
) -> int:
    """Train `ability`, one shared schedule and plain training side by side.

    Minutes on two cores. Stopped, it continues.

    Args:
        setting: A small setting.
        seed: Of all three runs.
        windows: Budget; 0 takes the setting's.
        out: Folder for the runs, the table and the picture.
    """
    from scout_rl.bench.campaign.conduct import missing, survey
    from scout_rl.bench.campaign.engine import Pool
    from scout_rl.bench.campaign.file import PlannedRun
    from scout_rl.bench.hardware import n_threads
    from scout_rl.bench.run.config import RunConfig
    from scout_rl.bench.run.path import run_name
    from scout_rl.bench.run.store import open_store
    from scout_rl.bench.settings.settings import setting as setting_of
    from scout_rl.commands.campaign import carry_out
    from scout_rl.report.build import report

    console, started = Console(), time.perf_counter()
    budget = windows or setting_of(setting).windows
    constants = {"anneal": {"T_anneal": max(1, round(ANNEAL_SHARE * budget))}}
    common: dict[str, Any] = {"setting": setting, "seed": seed, "windows": budget, "evaluate_every": EVALUATE_EVERY}
    configs = [RunConfig(rule=rule, constants=constants.get(rule, {}), **common) for rule in RULES]
    runs = [PlannedRun(run_name(config), config, ()) for config in configs]
    folder = str(out / "runs")
    store = open_store(folder)
    states = survey(runs, store, None)
    todo = missing(runs[::-1], states)  # plain training takes the longest, so it begins
    code = carry_out(console, runs, todo, states, store, lambda: Pool(folder, AT_A_TIME, n_threads()))
    if code:
        return code
    folders = [store.local_folder(run.name) for run in runs]
    page = report(folders, out, reference=next(iter(RULES)))
    console.print(success_table(folders))
    for rule, what in RULES.items():
        console.print(f"{rule:>8} {what}.", highlight=False)
    console.print("[dim]One seed of a small bank: it shows how things work, not which rule is better.[/dim]")
    console.print(
        f"{time.perf_counter() - started:.0f} s. Picture of every frontier, curves and tables: {page}\n"
        f"Records: {folder}/",
        highlight=False,
        soft_wrap=True,
    )
    say_next(f"scout diagnose {folders[0]}, or scout new my_env.py for a training of your own")
    return 0


def success_table(folders: list[Path]) -> Table:
    """The report's table of held-out success, without columns that need several seeds."""
    from scout_rl.commands.grid import grid
    from scout_rl.report.measure.comparison import comparison_table, evaluated, scores
    from scout_rl.report.measure.conditions import group
    from scout_rl.report.measure.metrics import summarise
    from scout_rl.report.read.runs import load

    (block,) = filter(None, map(evaluated, group(summarise(load(folder)) for folder in folders)))
    table = comparison_table(block, scores(block))
    wanted = BY_GROUP if "worst final" in table.header else OVERALL
    columns = [name for name in table.header if name.startswith(wanted)]
    names = [name.removesuffix(" (median)") for name in columns]
    return grid(names, zip(*(_of_one_seed(table, name) for name in columns), strict=True), title=table.title)


def _of_one_seed(table: ReportTable, name: str) -> list[str]:
    """A column's cells; the windows to solve without the count of seeds."""
    cells = table.column(name)
    return [cell.split(" (")[0].replace(MISSING, "never") for cell in cells] if name == SOLVED else cells
