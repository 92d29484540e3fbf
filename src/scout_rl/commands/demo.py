"""``scout demo``: a campaign of three rules on a small bank, and its report."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

RULES = ("scout", "anneal", "target")
AT_A_TIME = 2
BY_GROUP, OVERALL = ("rule", "final ", "worst"), ("rule", "final", "AUC")
"""First words of the report's columns that make sense for one seed: with several groups, and with one."""


def demo(
    *, setting: str = "doorkey-split-small", seed: int = 40, windows: int = 0, out: Path = Path("out/demo")
) -> int:
    """Train SCOUT, global annealing and target start side by side; minutes on two cores. Stopped, it continues.

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
    from scout_rl.commands.campaign import carry_out
    from scout_rl.report.build import report

    console, started = Console(), time.perf_counter()
    configs = [RunConfig(setting=setting, rule=rule, seed=seed, windows=windows) for rule in RULES]
    runs = [PlannedRun(run_name(config), config, ()) for config in configs]
    folder = str(out / "runs")
    store = open_store(folder)
    states = survey(runs, store, None)
    todo = missing(runs, states)
    code = carry_out(console, runs, todo, states, store, lambda: Pool(folder, AT_A_TIME, n_threads()))
    if code:
        return code
    folders = [store.local_folder(run.name) for run in runs]
    page = report(folders, out)
    console.print(success_table(folders))
    console.print("[dim]One seed of a small bank: it shows how things work, not which rule is better.[/dim]")
    console.print(
        f"{time.perf_counter() - started:.0f} s. Picture of every frontier, curves and tables: {page}\n"
        f"Records: {folder}/. Next: scout diagnose {folders[0]}, and docs/add-scout.md for your own training loop.",
        highlight=False,
        soft_wrap=True,
    )
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
    return grid(names, zip(*map(table.column, columns), strict=True), title=table.title)
