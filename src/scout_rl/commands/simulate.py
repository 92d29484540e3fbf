"""``scout simulate``: the rules on the learner model."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from scout_rl import rules
from scout_rl.bench.run.signals import undisturbed
from scout_rl.commands.bars import counting
from scout_rl.commands.grid import narrow_grid
from scout_rl.commands.next_step import say_next
from scout_rl.files.refusal import Refusal
from scout_rl.simulate import SCENARIOS, SimulatedRun, annealing_sweep, check_proposition, play, rule_for
from scout_rl.simulate.scenarios import LONG, Scenario
from scout_rl.simulate.view import draw, summarise, table, write_data

INTERRUPTS = signal.SIGINT, signal.SIG_DFL
"""Ctrl-C reaches every process: the parent handles it, its children end at once without a traceback."""


def simulate(
    scenarios: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[SCENARIO ...]")] = (),
    /,
    *,
    rule: tuple[str, ...] = (),
    seeds: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None,
    seed: int = 0,
    K: tuple[int, ...] = (2, 5, 10, 100),
    sweep: bool = True,
    workers: int = 2,
    out: Path = Path("out/simulate"),
) -> int:
    """Compare allocation rules on the learner model: a table, a figure of frontiers and their data, in minutes.

    Args:
        scenarios: homogeneous, conflict, within-group, hopeless, large-bank, which-level, huge-bank, capped-contexts,
            capped-level, gap, lost-skill, proposition; none means all of them but huge-bank, which takes minutes.
        rule: Only these rules; none means all.
        seeds: Seeds per rule; none means 20, and 2 on huge-bank.
        seed: Where the random streams start.
        K: For which K to check Proposition 1 by going through every synchronized schedule.
        sweep: Also play global annealing at seven lengths on the conflict.
        workers: Processes.
        out: Folder for the CSV, npz and PNG files.
    """
    known = [*SCENARIOS, "proposition"]
    names = list(scenarios) or [name for name in known if name not in LONG]
    _check(names, known, "scenario")
    keys = list(rule) or list(rules.RULES)
    _check(keys, list(rules.RULES), "rule")
    if (seeds is not None and seeds < 1) or workers < 1:
        raise Refusal(f"seeds={seeds} and workers={workers} must be at least 1")
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    played = [SCENARIOS[name]() for name in names if name != "proposition"]
    runs, sweeps = _play_all(played, keys, seeds, seed, workers, sweep, console)
    for scenario in played:
        ordered = [runs[scenario.key, key] for key in keys]
        _show(console, scenario, ordered)
        if scenario.key in sweeps:
            _show_sweep(console, scenario, sweeps[scenario.key])
        write_data(out, scenario, ordered)
        draw(out / f"{scenario.key}.png", scenario, ordered)
    if "proposition" in names:
        _show_proposition(console, K)
    if played:
        console.print(f"Figures and data: {out}/", highlight=False)
    say_next("scout demo, to see a learner train")
    return 0


def _check(names: list[str], known: list[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise Refusal(f"there is no {what} {name!r}; there are {', '.join(known)}")


def _play_one(key: str, name: str, seeds: int, seed: int) -> SimulatedRun:
    scenario = SCENARIOS[name]()
    return play(rule_for(key, scenario), scenario, seeds=seeds, seed=seed)


def _sweep(name: str, seeds: int) -> list[tuple[float, SimulatedRun]]:
    return annealing_sweep(SCENARIOS[name](), seeds=seeds)


def _play_all(
    played: list[Scenario], keys: list[str], seeds: int | None, seed: int, workers: int, sweep: bool, console: Console
) -> tuple[dict[tuple[str, str], SimulatedRun], dict[str, list[tuple[float, SimulatedRun]]]]:
    """Every (scenario, rule) as one task of a process pool, with a progress bar."""
    runs: dict[tuple[str, str], SimulatedRun] = {}
    sweeps: dict[str, list[tuple[float, SimulatedRun]]] = {}
    n_sweeps = sum(sweep and scenario.key == "conflict" for scenario in played)
    with (
        counting(console, "runs, all seeds at once", len(played) * len(keys) + n_sweeps) as show_done,
        ProcessPoolExecutor(workers, initializer=signal.signal, initargs=INTERRUPTS) as pool,
        _cancel_on_error(pool),
    ):
        with undisturbed():  # interrupted while they start, the processes would print a traceback
            tasks = {
                pool.submit(_play_one, key, scenario.key, seeds or scenario.seeds, seed): (scenario.key, key)
                for scenario in played
                for key in keys
            }
        sweeping = {
            pool.submit(_sweep, s.key, seeds or s.seeds): s.key for s in played if sweep and s.key == "conflict"
        }
        for done in as_completed(tasks):
            runs[tasks[done]] = done.result()
            show_done(len(runs))
        for swept in as_completed(sweeping):
            sweeps[sweeping[swept]] = swept.result()
            show_done(len(runs) + len(sweeps))
    return runs, sweeps


@contextmanager
def _cancel_on_error(pool: ProcessPoolExecutor) -> Iterator[None]:
    """Cancel the waiting tasks if the block ends early (Ctrl-C)."""
    try:
        yield
    except BaseException:
        pool.shutdown(cancel_futures=True)  # without waiting, Python may write into a closed pipe when it exits
        raise


def _show(console: Console, scenario: Scenario, runs: list[SimulatedRun]) -> None:
    header, rows = table(scenario, runs)
    console.print(narrow_grid(header, rows, title=f"{scenario.key}: {scenario.about}", title_justify="left"))
    console.print(
        f"[dim]{runs[0].success.shape[0]} seeds of rollouts on one bank, {scenario.windows} windows of "
        f"{scenario.rollouts} rollouts. Success: the model's level-0 success probability. Worst group: the within-seed "
        "minimum. Schedules: 5/6 of the budget. Solved: worst group >= 0.9, and >= 0.8 at the next two "
        "evaluations.[/dim]\n"
    )


def _show_sweep(console: Console, scenario: Scenario, sweep: list[tuple[float, SimulatedRun]]) -> None:
    header = ["share of the budget", "worst group [95%]", *scenario.group_names, "solved"]
    rows = []
    for share, run in sweep:
        row = summarise(run)
        mean, low, high = row.worst_final
        finals = [f"{value:.2f}" for value in row.group_final]
        solved = f"{row.solved}/{run.success.shape[0]}"
        rows.append([f"{share:.2f}", f"{mean:.2f} [{low:.2f}, {high:.2f}]", *finals, solved])
    title = f"{scenario.key}: global annealing at other lengths"
    console.print(narrow_grid(header, rows, first="right", title=title, title_justify="left"), "")


def _show_proposition(console: Console, K: tuple[int, ...]) -> None:
    header = ["K", "synchronized schedules", "solve one", "solve both", "local schedule solves both", "holds"]
    rows = []
    for k in K:
        counts = check_proposition(k)
        count = f"{counts.schedules:,}" if counts.schedules < 10**12 else f"2^{k + 1}"
        cells = [str(k), count, f"{counts.solving_one:,}", f"{counts.solving_both:,}"]
        rows.append([*cells, *("yes" if answer else "no" for answer in (counts.local_solves_both, counts.holds))])
    title = "proposition: two contexts, two levels, K+1 episodes each; a needs 1 assisted, b needs K"
    console.print(narrow_grid(header, rows, first="right", title=title, title_justify="left"))
