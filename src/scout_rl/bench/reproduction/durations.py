"""How long one seed takes, by setting and machine, from the times in the records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from string import ascii_uppercase

from scout_rl.records.made_with import BATCH, ENGINE, WIDTH
from scout_rl.report.measure.conditions import Block
from scout_rl.report.measure.metrics import Summary
from scout_rl.report.measure.names import bracket, unusual
from scout_rl.report.measure.tables import MISSING, Table, counted

TITLE = "How long one seed takes, setting by setting"
NOTE = (
    "Wall time of training and evaluation, whatever else the machine was doing and pauses included (two runs of "
    "`fetch-conflict` were paused for most of their time); mean over the runs. A setting's last "
    "row is the sum: one seed of each of its conditions that are there, one after the other."
)


def durations_table(blocks: Sequence[Block]) -> Table:
    """One row per condition and kind of machine, and the sums per setting."""
    letters: dict[str, str] = {}
    rows: list[list[str]] = []
    for setting, setting_blocks in groupby(sorted(blocks, key=lambda b: (b.setting, b.label)), key=lambda b: b.setting):
        timed = [
            (
                letters.setdefault(describe_machine(runs[0]), _letter(len(letters))),
                condition.label + bracket(unusual(block.fields)),
                runs,
            )
            for block in setting_blocks
            for condition in block.conditions
            for runs in _by_machine(condition.runs)
        ]
        for letter in sorted({letter for letter, _, _ in timed}):
            on_machine = [(label, runs) for machine, label, runs in timed if machine == letter]
            rows += [_row(setting, label, runs, letter) for label, runs in on_machine]
            total = sum(_mean(runs) for _, runs in on_machine)
            each = counted(len(on_machine), "condition")
            rows.append([setting, f"**{each}**", MISSING, MISSING, f"**{total / 60:.1f}**", MISSING, letter])
    machine_notes = [f"{letter}: {machine}." for machine, letter in letters.items()]
    header = ["setting", "condition", "runs", "windows", "minutes per seed", "seconds per window", "on"]
    return Table(TITLE, header, rows, ["  \n".join([NOTE, *machine_notes])])


def describe_machine(run: Summary) -> str:
    """Machine and versions in words, as far as they are recorded."""
    on, versions = run.about.ran_on, run.about.versions
    words = [versions.get("machine", "unknown machine")]
    words += [f"{name} {versions[name]}" for name in ("python", "jax") if name in versions]
    if not on:
        return f"{', '.join(words)}; processor, cores, number of threads and backend unknown"
    device = on["device"] if on["backend"] != "cpu" else "CPU"
    counts = ", ".join(f"{on[name]} {name if on[name] != 1 else name[:-1]}" for name in ("cores", "threads"))
    shared = f" (batch of {on[WIDTH]}, which share the time)" if on.get(ENGINE) == BATCH else ""
    return f"{on['processor']}, {counts}, learner on {device}{shared}; {', '.join(words)}"


def _row(setting: str, label: str, runs: Sequence[Summary], letter: str) -> list[str]:
    windows = sorted({run.about.windows for run in runs})
    pace = sum(run.about.seconds for run in runs) / sum(run.about.windows for run in runs)
    counts = ", ".join(str(n) for n in windows)
    return [setting, label, str(len(runs)), counts, f"{_mean(runs) / 60:.1f}", f"{pace:.2f}", letter]


def _mean(runs: Sequence[Summary]) -> float:
    return sum(run.about.seconds for run in runs) / len(runs)


def _by_machine(runs: Sequence[Summary]) -> list[list[Summary]]:
    timed = sorted((run for run in runs if run.about.seconds), key=describe_machine)
    return [list(same_machine) for _, same_machine in groupby(timed, key=describe_machine)]


def _letter(index: int) -> str:
    """A to Z, then A1, B1, and so on."""
    turn, at = divmod(index, len(ascii_uppercase))
    return ascii_uppercase[at] + (str(turn) if turn else "")
