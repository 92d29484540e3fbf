"""``scout demo``: the main job on a small bank, side by side, then the worst-group table and the frontier picture."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from scout_rl.commands.bars import bar_of
from scout_rl.commands.interrupts import end_quietly

RULES = ("scout", "anneal", "target")


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
    from scout_rl.bench.run.config import RunConfig

    console = Console()
    configs = [RunConfig(setting=setting, rule=rule, seed=seed, windows=windows) for rule in RULES]
    started = time.perf_counter()
    _side_by_side(configs, out, console)
    folders = [out / "runs" / config.rule for config in configs]
    _show(console, configs, folders)
    draw(out / "frontiers.png", configs, folders)
    console.print(f"{time.perf_counter() - started:.0f} s. Picture: {out / 'frontiers.png'}. Records: {out / 'runs'}/")
    return 0


def _one(config: Any, folder: Path, news: Any) -> None:
    from scout_rl.bench.run.train import train
    from scout_rl.files.cache import use_compilation_cache

    use_compilation_cache()

    def watch(progress: Any) -> None:
        held_out = None if progress.evaluation is None else progress.evaluation.groups
        news.put((config.rule, progress.window, held_out, progress.frontier))

    train(config, folder, watch=watch, say=lambda sentence: None)


def _side_by_side(configs: list[Any], out: Path, console: Console) -> None:
    """Two processes at a time (two cores), one bar a run."""
    method = multiprocessing.get_context("spawn")
    news = method.Manager().Queue()
    with bar_of(console, "{task.description:>8}") as bar:
        lines = {c.rule: bar.add_task(c.rule, total=c.windows, news="waiting") for c in configs}
        latest: dict[str, dict[str, str]] = {c.rule: {} for c in configs}
        with method.Pool(2, end_quietly) as pool:
            running = [pool.apply_async(_one, (c, out / "runs" / c.rule, news)) for c in configs]
            while not (all(run.ready() for run in running) and news.empty()):
                try:
                    rule, window, held_out, frontier = news.get(timeout=0.2)
                except Empty:
                    continue
                if held_out is not None:
                    latest[rule]["held-out"] = _each(held_out)
                if frontier:
                    latest[rule]["frontier"] = _each(frontier)
                told = "  ".join(f"{name} {value}" for name, value in latest[rule].items())
                bar.update(lines[rule], completed=window, news=told)
            for run in running:
                run.get()  # a failure in a child is a failure here


def _show(console: Console, configs: list[Any], folders: list[Path]) -> None:
    from scout_rl.records.tables import read_rows

    curves = [read_rows(folder / "evaluations.jsonl") for folder in folders]
    groups = list(curves[0][0]["groups"])
    shown = Table(title=f"{configs[0].setting}, seed {configs[0].seed}: held-out contexts from the target start")
    for name in ("rule", *(f"final {g}" for g in groups), "worst group", "worst-group AUC"):
        shown.add_column(name, justify="left" if name == "rule" else "right")
    for config, rows in zip(configs, curves, strict=True):
        worst = np.array([min(row["groups"].values()) for row in rows])
        at = np.array([row["window"] for row in rows])
        area = float(np.trapezoid(worst, at) / at[-1])
        final = [f"{rows[-1]['groups'][g]:.2f}" for g in groups]
        shown.add_row(config.rule, *final, f"{worst[-1]:.2f}", f"{area:.2f}")
    console.print(shown)
    console.print("[dim]One seed of a small bank: it shows how things work, not which rule is better.[/dim]")


def draw(path: Path, configs: list[Any], folders: list[Path]) -> None:
    """Left: SCOUT's frontiers, contexts x windows. Right: held-out success of the worst group, every rule."""
    from matplotlib.figure import Figure

    from scout_rl.records.tables import read_records, read_rows

    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    records = read_records(folders[0])
    assert records.frontier is not None
    image = left.imshow(
        records.frontier.T, aspect="auto", cmap="viridis", vmin=0, vmax=configs[0].levels - 1, interpolation="none"
    )
    bar = figure.colorbar(image, ax=left, ticks=range(configs[0].levels))
    bar.set_label("frontier (0 = target start)")
    left.set(title="SCOUT's frontiers", xlabel="window", ylabel="context")
    for config, folder, style in zip(configs, folders, ("-", "--", ":"), strict=False):
        rows = read_rows(folder / "evaluations.jsonl")
        worst = [min(row["groups"].values()) for row in rows]
        right.plot([row["window"] for row in rows], worst, style, label=config.rule, linewidth=2)
    right.set(title="held-out success, worst group", xlabel="window", ylim=(-0.03, 1.03))
    right.legend(frameon=False)
    right.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def _each(groups: dict[str, float]) -> str:
    return " ".join(f"{name} {value:.2f}" for name, value in groups.items())
