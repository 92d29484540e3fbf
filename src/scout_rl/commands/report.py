"""``scout report`` and ``scout diagnose``: records as a page and as sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from scout_rl.commands.bars import counting
from scout_rl.commands.next_step import say_next
from scout_rl.files.refusal import Refusal

Records = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUNS...", help_behavior_hint="")]
Labels = Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")]


def report(
    runs: Records,
    /,
    *,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("out/report"),
    groups: Labels = None,
    reference: Annotated[str | None, tyro.conf.arg(metavar="KEY", help_behavior_hint="")] = None,
) -> int:
    """Tables, figures and one page from any records; opens without a network.

    Args:
        runs: Run folders, compact records, a Curriculum's log_dir, or folders that hold such.
        out: Folder for index.html, tables/ (Markdown, LaTeX, CSV) and figures/ (SVG, PNG).
        groups: JSON list with a group name for every training context, for records that do not say it.
        reference: Rule that the others are compared with. Where none is named: ability, else scout, else the first.
    """
    import matplotlib  # noqa: F401  # missing, it is named before anything is read

    from scout_rl.bench.reproduction.catalogue import catalogue
    from scout_rl.report.build import report as build
    from scout_rl.report.read.runs import find

    if not runs:
        raise Refusal("no records were named")
    records = find(runs)
    with counting(Console(stderr=True), "reading", len(records)) as show_done:
        page = build(
            records,
            out,
            groups=groups,
            reference=reference or "",
            catalogue=catalogue(),
            progress=show_done,
        )
    print(page)
    say_next("open", page, "in a browser, or scout diagnose", *runs)
    return 0


def diagnose(runs: Records, /, *, groups: Labels = None) -> int:
    """Say whether contexts needed different paces, and which are stuck and why.

    Args:
        runs: Run folders, compact records, a Curriculum's log_dir, or folders that hold such.
        groups: JSON list with a group name for every training context, for records that do not say it.
    """
    from scout_rl.report.diagnose import diagnose as judge
    from scout_rl.report.read.runs import find, load

    if not runs:
        raise Refusal("no records were named")
    records = find(runs)
    judged = False
    for i, path in enumerate(records):
        run = load(path, groups=groups)
        if run.about.windows or len(records) == 1:
            sentences, judged = judge(run).sentences(), True
        else:
            sentences = [f"{path} holds no closed window yet: there is nothing to diagnose."]
        print(("\n" if i else "") + "\n".join(sentences), flush=True)
    if not judged:
        raise Refusal(f"none of the {len(records)} runs holds a closed window yet: there is nothing to diagnose")
    say_next("scout report", *runs)
    return 0
