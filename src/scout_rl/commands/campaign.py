"""``scout campaign``: every run of a file, on one machine or on a Ray cluster, continued wherever it was stopped."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console

from scout_rl.commands.next_step import say_next
from scout_rl.files.refusal import Refusal

if TYPE_CHECKING:
    from scout_rl.bench.campaign.engine import Engine
    from scout_rl.bench.campaign.file import Campaign, PlannedRun
    from scout_rl.bench.campaign.state import RunState
    from scout_rl.bench.run.store import Store

Pack = Annotated[Path | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="")]
File = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]


def campaign_command(arguments: list[str]) -> Callable[..., int]:
    """The command for ``campaign FILE`` or ``campaign status FILE``."""
    return _status if arguments[:2] == ["campaign", "status"] else campaign


def campaign(
    file: File,
    /,
    *,
    out: str = "runs",
    engine: Literal["pool", "ray", "batch"] = "pool",
    address: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS", help_behavior_hint="")] = None,
    workers: int = 0,
    threads: int = 1,
    memory: float = 0.0,
    width: int = 0,
    next: int = 0,
    wait: bool = True,
    pack: Pack = None,
    retry: bool = False,
    dry_run: bool = False,
) -> int:
    """Run a campaign; the same command continues it. `scout campaign status FILE` says where it stands.

    Finished runs are not repeated, unfinished ones go on from their checkpoints. A run that fails three times is listed
    with its error, the rest goes on, and the exit code is 1.

    Args:
        file: A campaign file (campaigns/*.toml).
        out: Folder of runs, which all machines must see; or a URL that fsspec opens, such as s3://bucket/runs.
        engine: Processes on this machine, tasks on a Ray cluster, or batches of MiniGrid runs on one accelerator.
        address: Of the Ray cluster ("auto" finds the one this machine belongs to); without it Ray starts one here.
        workers: Runs at a time on this machine; 0 takes as many as its cores and free memory allow.
        threads: Of each run. Records are bit-equal only between equal counts.
        memory: GiB that one run is given; 0 takes the usual.
        width: Most runs of a batch, with --engine batch; 0 takes 64. Numbers depend on it in the last bits.
        next: Only so many of the missing runs, the first ones; 0 for all.
        wait: For runs that other processes train; --no-wait leaves them to those, as in a job array.
        pack: Folder of compact records: what is there counts as finished, new ones are added (default: the file's).
        retry: Give runs that failed three times their chances again.
        dry_run: List what would be done, and do nothing.
    """
    from scout_rl.bench.campaign.batch_engine import require_pure
    from scout_rl.bench.campaign.conduct import missing, survey
    from scout_rl.bench.campaign.file import load
    from scout_rl.bench.campaign.state import forget_failures
    from scout_rl.bench.run.store import open_store
    from scout_rl.files.lock import has_locks

    for name, value, least in (
        ("threads", threads, 1),
        ("workers", workers, 0),
        ("width", width, 0),
        ("next", next, 0),
    ):
        if value < least:
            raise Refusal(f"--{name} is {value}, but must be at least {least}")
    console = Console()
    plan = load(file, out)
    store, pack = open_store(out), pack or plan.pack
    if "://" in out and any(getattr(run.config, "ladder_from", "") for run in plan.runs):
        raise Refusal(f"{file} takes ladders from other runs, which needs a folder as --out, not {out}")
    if retry:
        for run in plan.runs:
            forget_failures(run, store)
    states = survey(plan.runs, store, pack)
    todo = missing(plan.runs, states, next or None)
    if engine == "batch":
        require_pure(todo)
    if dry_run:
        _show(console, plan, states, store)
        console.print(f"{len(todo)} of {len(plan.runs)} runs to do", highlight=False)
        say_next("scout campaign", file, *_options(out))
        return 0
    if todo:
        folder = store.local_folder(".campaign")
        folder.mkdir(parents=True, exist_ok=True)  # refuse an unwritable --out early
        if not wait and ("://" in out or not has_locks(folder)):
            raise Refusal(f"--no-wait needs file locks, and {out} has none: two processes would train the same run")
    start = partial(_engine, engine, out, address, workers, threads, memory, width)
    code = carry_out(console, plan.runs, todo, states, store, start, pack, wait=wait)
    if code == 1:
        say_next("scout campaign", file, *_options(out), "--retry")
    elif code == 0 and (pack or "://" not in out):
        say_next("scout report", pack or out)
    return code


def carry_out(
    console: Console,
    runs: "Sequence[PlannedRun]",
    todo: "Sequence[PlannedRun]",
    states: "dict[str, RunState]",
    store: "Store",
    start: "Callable[[], Engine]",
    pack: Path | None = None,
    *,
    wait: bool = True,
) -> int:
    """Do ``todo``, show the progress, print the result; returns the exit code."""
    from scout_rl.bench.campaign.conduct import conduct
    from scout_rl.bench.campaign.state import Phase
    from scout_rl.bench.campaign.table import Board, summarise

    if todo:
        engine = start()
        try:
            board = Board(runs, todo, store, engine.slots, console)
            with board.live or nullcontext():
                states = conduct(runs, todo, states, store, engine, results=pack, watch=board.update, wait=wait)
        except KeyboardInterrupt:
            console.print("stopped; the same command continues")
            return 130
        finally:
            engine.close()
    console.print(summarise(states, set(), None), highlight=False)
    if not wait:
        console.print(f"{sum(state.here for state in states.values())} trained by this command", highlight=False)
    _say_why(console, runs, states)
    return int(any(state.phase is Phase.FAILED for state in states.values()))


def _options(out: str) -> list[str]:
    return [] if out == "runs" else ["--out", out]


def _status(
    word: Annotated[Literal["status"], tyro.conf.Positional],
    file: File,
    /,
    *,
    out: str = "runs",
    pack: Pack = None,
) -> int:
    """Say where every run of a campaign stands, from the disk alone; nothing is started.

    Args:
        word: status
        file: A campaign file (campaigns/*.toml).
        out: Folder of runs, or the URL they are kept at.
        pack: Folder of compact records: those there count as finished (default: the file's).
    """
    from scout_rl.bench.campaign.conduct import survey
    from scout_rl.bench.campaign.file import load
    from scout_rl.bench.campaign.state import Phase
    from scout_rl.bench.run.store import open_store

    console = Console()
    plan = load(file, out)
    store = open_store(out)
    pack = pack or plan.pack
    states = survey(plan.runs, store, pack)
    _show(console, plan, states, store)
    failed = [run for run in plan.runs if states[run.name].phase is Phase.FAILED]
    _say_why(console, failed, states)
    if failed:
        say_next("scout campaign", file, *_options(out), "--retry")
    elif any(state.phase is not Phase.FINISHED for state in states.values()):
        say_next("scout campaign", file, *_options(out))
    elif pack or "://" not in out:
        say_next("scout report", pack or out)
    return int(bool(failed))


def _engine(key: str, out: str, address: str | None, workers: int, threads: int, memory: float, width: int) -> "Engine":
    from scout_rl.bench.campaign.batch_engine import WIDTH, BatchEngine
    from scout_rl.bench.campaign.engine import Pool
    from scout_rl.bench.campaign.ray_engine import RayEngine
    from scout_rl.bench.hardware import MEMORY_PER_RUN, n_workers

    if width and key != "batch":
        raise Refusal(f"--width {width} is of batches: add --engine batch")
    if key == "ray":
        return RayEngine(out, address, threads, memory or MEMORY_PER_RUN)
    if address is not None:
        raise Refusal(f"--address {address} is of a Ray cluster: add --engine ray")
    if key == "batch":
        return BatchEngine(out, width or WIDTH, threads)
    return Pool(out, workers or n_workers(threads, memory or MEMORY_PER_RUN), threads)


def _show(console: Console, plan: "Campaign", states: "dict[str, RunState]", store: "Store") -> None:
    from scout_rl.bench.campaign.state import known_pace
    from scout_rl.bench.campaign.table import add_row, status_table, summarise

    table = status_table(console.width)
    table.title = plan.title
    for run in plan.runs:
        state = states[run.name]
        add_row(table, run, str(state.phase), state, known_pace(run, store) if state.windows else None, None)
    console.print(table)
    console.print(summarise(states, set(), None), highlight=False)


def _say_why(console: Console, runs: "Sequence[PlannedRun]", states: "dict[str, RunState]") -> None:
    for run in runs:
        state = states[run.name]
        if state.note:
            console.print(f"{state.phase} {run.name}: {state.note}", markup=False, highlight=False, soft_wrap=True)
