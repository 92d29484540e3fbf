"""The head of the reproduction page: how many claims have which verdict, and on how many seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scout_rl.bench.reproduction.judging import VERDICTS
from scout_rl.bench.reproduction.paper import PAPER_SETTING
from scout_rl.bench.reproduction.verdicts import Answer
from scout_rl.report.measure.tables import Table, untitled

ENOUGH = 3
"""Seeds below which a verdict is a first impression."""
SEEDS = {"five or more": 5, "three or four": ENOUGH, "one or two": 1}
"""Columns by the number of seeds: name -> the least number."""


def headline(answers: Sequence[Answer]) -> str:
    """Sentences and a table. A claim that is tested again with another setting or learner counts once."""
    first = [a for a in answers if not a.row.again]
    claims = [a for a in first if a.claimed]
    firm = [a for a in claims if a.seeds >= ENOUGH]
    few = [a for a in claims if 0 < a.seeds < ENOUGH]
    sentences = [f"So far: {len(answers)} rows, {len(claims)} claims of the paper."]
    sentences += [f"On three seeds or more: {_counts(firm)}. First impressions, on one or two: {_counts(few)}."]
    sentences += [f"{missing} are not yet run."] if (missing := len(claims) - len(firm) - len(few)) else []
    sentences += [f"{len(first) - len(claims)} rows ask about conditions that the paper says nothing about."]
    sentences += [
        f"`{ours}` asks {_again([a for a in answers if a.row.setting == ours])} (claims of `{theirs}`)."
        for ours, theirs in PAPER_SETTING.items()
    ]
    for preset in dict.fromkeys(a.row.preset for a in answers if a.row.preset):
        preset_answers = [a for a in answers if a.row.preset == preset and a.row.setting not in PAPER_SETTING]
        sentences += [f"Preset `{preset}` asks {_again(preset_answers)}."]
    sentences += ["What is asked a second time is not in the counts above or in the table: no claim counts twice."]
    return "\n".join(sentences) + "\n\n" + untitled(_table(claims))


def _again(answers: Sequence[Answer]) -> str:
    """``7 a second time, on 6 seeds: 5 reproduced, …``."""
    seeds = sorted({a.seeds for a in answers if a.seeds})
    numbers = " or ".join(map(str, seeds)) if len(seeds) < 3 else f"{seeds[0]} to {seeds[-1]}"
    on = f", on {numbers} {'seed' if seeds == [1] else 'seeds'}" if seeds else ""
    return f"{len(answers)} a second time{on}: {_counts(answers)}"


def _table(claims: Sequence[Answer]) -> Table:
    rows = []
    for verdict in VERDICTS:
        with_verdict = [a for a in claims if a.verdict == verdict]
        if not with_verdict:
            continue
        seeds = Counter(_seeds(a) for a in with_verdict if a.seeds)
        rows.append([verdict, str(len(with_verdict)), *(str(seeds[few]) for few in SEEDS)])
    return Table("", ["verdict", "claims", *(f"on {few} seeds" for few in SEEDS)], rows)


def _seeds(a: Answer) -> str:
    return next((few for few, least in SEEDS.items() if a.seeds >= least), "")


def _counts(answers: Sequence[Answer]) -> str:
    count = Counter(a.verdict for a in answers)
    return ", ".join(f"{count[v]} {v}" for v in VERDICTS if count[v]) or "none"
