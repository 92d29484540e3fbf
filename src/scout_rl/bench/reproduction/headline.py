"""How many claims came out how, and on how many seeds: the first thing that the reproduction page says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scout_rl.bench.reproduction.judging import VERDICTS
from scout_rl.bench.reproduction.paper import THE_PAPERS
from scout_rl.bench.reproduction.verdicts import Answer
from scout_rl.report.measure.tables import Table, untitled

SEEDS = {"five or more": 5, "three or four": 3, "one or two": 1}
"""How many seeds a verdict rests on: columns by their least number, from the most on."""


def headline(answers: Sequence[Answer]) -> str:
    """Sentences and a table. A claim that is asked again of another version of its setting or learner counts once."""
    first = [a for a in answers if not a.row.again]
    claims = [a for a in first if a.claimed]
    reproduced = Counter(_seeds(a) for a in claims if a.verdict == "reproduced")
    rest = ", ".join(f"{reproduced[few]} on {few}" for few in SEEDS)
    told = [f"So far: {len(answers)} rows. {len(claims)} claims of the paper: {_counts(claims)}."]
    told += [f"Of the reproduced, by the number of seeds that they rest on: {rest}."]
    told += [f"{len(first) - len(claims)} rows ask about conditions that the paper says nothing about."]
    told += [
        f"`{ours}` asks {_again([a for a in answers if a.row.setting == ours])} (claims of `{theirs}`)."
        for ours, theirs in THE_PAPERS.items()
    ]
    for preset in dict.fromkeys(a.row.preset for a in answers if a.row.preset):
        mine = [a for a in answers if a.row.preset == preset and a.row.setting not in THE_PAPERS]
        told += [f"Preset `{preset}` asks {_again(mine)}."]
    told += ["What is asked a second time is not in the counts above or in the table: no claim counts twice."]
    return "\n".join(told) + "\n\n" + untitled(_table(claims))


def _again(answers: Sequence[Answer]) -> str:
    """``7 a second time, on 6 seeds: 5 reproduced, …``."""
    seeds = sorted({a.seeds for a in answers if a.seeds})
    on = f", on {' or '.join(map(str, seeds))} {'seed' if seeds == [1] else 'seeds'}" if seeds else ""
    return f"{len(answers)} a second time{on}: {_counts(answers)}"


def _table(claims: Sequence[Answer]) -> Table:
    rows = []
    for verdict in VERDICTS:
        mine = [a for a in claims if a.verdict == verdict]
        if not mine:
            continue
        seeds = Counter(_seeds(a) for a in mine if a.seeds)
        rows.append([verdict, str(len(mine)), *(str(seeds[few]) for few in SEEDS)])
    return Table("", ["verdict", "claims", *(f"on {few} seeds" for few in SEEDS)], rows)


def _seeds(a: Answer) -> str:
    return next((few for few, least in SEEDS.items() if a.seeds >= least), "")


def _counts(answers: Sequence[Answer]) -> str:
    count = Counter(a.verdict for a in answers)
    return ", ".join(f"{count[v]} {v}" for v in VERDICTS if count[v])
