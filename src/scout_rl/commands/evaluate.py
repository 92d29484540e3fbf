"""``scout evaluate``: a run's policy on the held-out contexts, in the stock environment and on video."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from scout_rl.commands.next_step import say_next
from scout_rl.files.refusal import Refusal

if TYPE_CHECKING:
    from scout_rl.bench.rollouts.evaluate import Evaluation
    from scout_rl.bench.run.trained import Trained

FILMED = 4
"""Contexts in the video if none is named."""
PIXELS = 192
"""Approximate width of a tile."""
MOST_LINES = 20
"""Contexts that are listed at most."""


def evaluate(
    run: Annotated[Path, tyro.conf.Positional],
    /,
    *,
    stock: bool = False,
    video: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None,
    context: tuple[int, ...] = (),
    level: tuple[int, ...] = (0,),
    checkpoint: Annotated[int | None, tyro.conf.arg(metavar="WINDOW", help_behavior_hint="")] = None,
) -> int:
    """Evaluate a run's policy on every held-out context at level 0, and compare with what the run recorded.

    Args:
        run: Folder of a run: RUNS/SETTING/RULE/SEED.
        stock: Also play the policy in the unmodified environment; every outcome must be the same.
        video: Also write a .gif or .mp4 of the policy, rendered by the stock environment.
        context: Training contexts in the video; none means a few of every group.
        level: Levels in the video.
        checkpoint: Window of the checkpoint; by default the newest that is whole.
    """
    console = Console()
    if video is None and (context or level != (0,)):
        raise Refusal("--context and --level choose what a --video shows; all held-out contexts are evaluated")
    if video is not None:
        from scout_rl.bench.rollouts.video import check_path

        check_path(video)
    from scout_rl.bench.run import trained
    from scout_rl.files.cache import use_compilation_cache

    use_compilation_cache()
    trained_run = trained.load(
        run, checkpoint, lambda sentence: console.print(sentence, style="yellow", soft_wrap=True)
    )
    if video is not None:
        _check_cells(trained_run, context, level)
    with console.status("held-out contexts"):
        ours = trained_run.evaluate(trained_run.state)
    console.print(_title(trained_run))
    stock_success, lines, note = None, list[str](), ""
    if stock:
        with console.status("the same policy in the stock environment"):
            stock_success, lines, note = _in_stock(trained_run, ours)
    console.print(_table(trained_run, ours, stock_success))
    equal = _compare_with_record(console, trained_run, ours)
    if stock:
        console.print(note, style="red" if lines else "green", soft_wrap=True)
        for line in lines:
            console.print(line, soft_wrap=True)
    if video is not None:
        _film(console, trained_run, run, video, context, level)
    if not stock:
        say_next("scout evaluate", run, "--stock, to play it in the unmodified environment too")
    elif video is None:
        say_next("scout evaluate", run, "--video policy.gif, to watch it")
    return 0 if equal and not lines else 1


def _title(run: Trained) -> str:
    config = run.config
    return (
        f"[bold]{config.setting}[/], rule [bold]{config.rule}[/], seed {config.seed}, window {run.window} of "
        f"{config.windows}: {run.environment_steps:,} steps"
    )


def _table(run: Trained, ours: Evaluation, stock: Any | None) -> Table:
    """Success by group, of the worst group and of all contexts; ours, recorded, and in the stock environment."""
    from scout_rl.bench.rollouts.evaluate import by_group

    part = run.bank.held_out
    others = {"recorded": None if run.recorded is None else run.recorded["groups"]}
    if stock is not None:
        others["stock"] = by_group(run.setting, part, stock).groups
    table = Table(title="held-out contexts, level 0", title_justify="left")
    table.add_column("group")
    for name in ("contexts", "succeed", "success", *others):
        table.add_column(name, justify="right")

    def row(name: str, members: Any, success: float, beside: list[float | None]) -> None:
        shown = ["-" if value is None else f"{value:.3f}" for value in (success, *beside)]
        counts = ["", ""] if members is None else [str(int(members.sum())), str(int(ours.outcomes[members].sum()))]
        table.add_row(name, *counts, *shown)

    for index, (name, success) in enumerate(ours.groups.items()):
        beside = [None if groups is None else groups[name] for groups in others.values()]
        row(name, part.evaluation_group == index, success, beside)
    if len(ours.groups) > 1:
        table.add_section()
        row("worst group", None, ours.worst, [None if g is None else min(g.values()) for g in others.values()])
        overall = [None if run.recorded is None else run.recorded["success"]]
        every = part.evaluation_group >= 0
        row("all contexts", every, ours.success, overall + ([] if stock is None else [float(stock.mean())]))
    return table


def _compare_with_record(console: Console, run: Trained, ours: Evaluation) -> bool:
    """Compare every outcome and every mean with the record; whether all are equal."""
    if run.recorded is None:
        from scout_rl.records.evaluations import due

        lost = run.window in due(run.config.windows, run.config.evaluate_every)
        why = ", where one was due" if lost else ""
        console.print(f"The run recorded no evaluation at window {run.window}{why}.", style="red" if lost else "yellow")
        return not lost
    recorded = [bool(outcome) for outcome in run.recorded["outcomes"]]
    differ = [i for i, (a, b) in enumerate(zip(ours.outcomes.tolist(), recorded, strict=True)) if a != b]
    stored = {"all contexts": run.recorded["success"], **run.recorded["groups"]}
    lines = [
        f"The run recorded a success of {stored[name]} for {name}, and it is {success}."
        for name, success in {"all contexts": ours.success, **ours.groups}.items()
        if stored[name] != success
    ]
    if differ:
        lines.insert(
            0,
            f"{len(differ)} of {len(recorded)} held-out contexts end otherwise than in the run's own evaluation at "
            f"window {run.window}: {_some(differ)}",
        )
    for line in lines:
        console.print(line, style="red", soft_wrap=True)
    if not lines:
        console.print(f"Equal to the run's own evaluation at window {run.window}, context by context.", style="green")
    return not lines


def _in_stock(run: Trained, ours: Evaluation) -> tuple[Any, list[str], str]:
    """Outcomes in the stock environment, a line per context that differs, and the verdict."""
    from scout_rl.bench.families import family as family_of
    from scout_rl.bench.rollouts.lockstep import compare

    family, part, began = family_of(run.setting.family), run.bank.held_out, time.perf_counter()
    envs = [family.stock_env(run.setting, _row(part.contexts, i)) for i in range(len(part))]
    simulator = family.batch_simulator(run.setting)
    played = compare(run.act(), envs, simulator, family.target_starts(part.contexts))
    lines = []
    for i, (our, stock, at) in enumerate(zip(ours.outcomes, played.success, played.differs_at, strict=True)):
        if our == stock and at < 0:
            continue
        group = run.setting.groups[part.evaluation_group[i]].name
        ends = f"ours {_word(our)}, stock {_word(stock)}"
        why = f"first differ at step {at}" if at >= 0 else "agree: the policy rounds apart"
        lines.append(f"  held-out context {i} ({group}): {ends}; the simulators {why}")
    seconds = time.perf_counter() - began
    if not lines:
        note = f"The stock environment agrees in all {len(part)} contexts, view by view ({seconds:.1f} s)."
        return played.success, [], note
    note = f"The stock environment differs in {len(lines)} of {len(part)} contexts ({seconds:.1f} s):"
    hidden = len(lines) - MOST_LINES
    return played.success, [*lines[:MOST_LINES], *([f"  and {hidden} more"] if hidden > 0 else [])], note


def _check_cells(run: Trained, contexts: tuple[int, ...], levels: tuple[int, ...]) -> None:
    for what, values, n in (
        ("context", contexts, len(run.bank.train)),
        ("level", levels, run.config.levels),
    ):
        for value in values:
            if not 0 <= value < n:
                raise Refusal(f"{what} {value} is not one of this run's: 0..{n - 1}")
    if not levels:
        raise Refusal("a video needs at least one level")


def _film(
    console: Console, run: Trained, run_folder: Path, path: Path, contexts: tuple[int, ...], levels: tuple[int, ...]
) -> None:
    from scout_rl.bench.families import family as family_of
    from scout_rl.bench.ladders import SOURCES
    from scout_rl.bench.ladders.build import Wanted, build_ladder
    from scout_rl.bench.ladders.check import a_few
    from scout_rl.bench.rollouts.video import Shown, film
    from scout_rl.bench.run.ladder import stored_ladder

    family, part = family_of(run.setting.family), run.bank.train
    filmed = list(contexts) or a_few(part, FILMED)
    picked = {name: array[filmed] for name, array in part.contexts.items()}
    if SOURCES[run.config.ladder].from_runs:
        ladder = {name: array[filmed] for name, array in stored_ladder(run_folder).items()}
    else:
        ladder, _ = build_ladder(Wanted(run.setting, picked, run.config.levels), run.config.ladder)
    rows: list[list[Shown]] = []
    for i, x in enumerate(filmed):
        group = f" ({run.setting.groups[part.evaluation_group[x]].name})" if len(run.setting.groups) > 1 else ""
        rows.append([])
        for level in levels:
            env = family.stock_env(run.setting, _row(part.contexts, x), pixels=PIXELS)
            first = env.restore({name: array[i, level] for name, array in ladder.items()})
            rows[-1].append(Shown(env, first, f"context {x}{group}, level {level}"))
    with console.status("filming"):
        success = film(run.act(), rows, path)
    counts = "; ".join(
        f"level {level}: {int(success[:, j].sum())} of {len(filmed)} succeed" for j, level in enumerate(levels)
    )
    console.print(
        f"Training contexts {_some(filmed)} on film, {counts}: {path} ({path.stat().st_size // 1024} KB)",
        soft_wrap=True,
    )


def _row(contexts: Any, index: int) -> dict[str, Any]:
    return {name: array[index] for name, array in contexts.items()}


def _word(success: bool) -> str:
    return "succeeds" if success else "does not"


def _some(numbers: list[int]) -> str:
    shown = ", ".join(str(n) for n in numbers[:MOST_LINES])
    return shown + (f" and {len(numbers) - MOST_LINES} more" if len(numbers) > MOST_LINES else "")
