"""The report as one HTML file that works offline: tables, figures, conclusions, every run's frontiers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any, NamedTuple

from scout_rl.records.level_colours import EASIEST, STOPS, TARGET
from scout_rl.report.measure.conditions import NOT_IDENTITY
from scout_rl.report.measure.stuck import has_model
from scout_rl.report.measure.tables import Table
from scout_rl.report.read.run import About
from scout_rl.report.read.statuses import MEANING, WORDS
from scout_rl.report.show.figures import Figure, inline_svg

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


class Part(NamedTuple):
    """The section of one block."""

    label: str
    conclusions: list[str]
    tables: list[Table]
    figures: list[Figure]


class Entry(NamedTuple):
    """One run of the explorer."""

    about: About
    block: str
    label: str
    groups: tuple[str, ...]
    heat: dict[str, Any]


def render(title: str, summary: str, parts: Sequence[Part], overall: Sequence[Table], entries: Sequence[Entry]) -> str:
    """The whole page."""
    sections = [_section(i, part) for i, part in enumerate(parts)]
    links = [(f"part-{i}", part.label) for i, part in enumerate(parts)]
    if overall:
        tables = "".join(html_table(table) for table in overall)
        sections.append(f'<section id="overall"><h2>Over all settings</h2>{tables}</section>\n')
        links.append(("overall", "all settings"))
    drawn = [entry for entry in entries if entry.about.windows]
    links += [("frontiers", "frontiers")] * bool(drawn) + [("all-runs", "all runs")]
    nav = "".join(f'<a href="#{anchor}">{escape(label)}</a>' for anchor, label in links)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(title)}</title>
<style>
{_asset("look.css")}{_asset("page.css")}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><p class="soft">{escape(summary)}</p><nav>{nav}</nav></header>
<main>
{"".join(sections)}
{_EXPLORER if drawn else ""}
{_runs(entries)}
</main>
<footer><p>Held-out contexts, target start only. Tables as Markdown, LaTeX and CSV, figures as SVG and PNG lie beside
this page.</p></footer>
<script type="application/json" id="runs">{_payload(parts, drawn)}</script>
<script type="module">
{_asset("draw.js")}{_asset("page.js")}</script>
</body>
</html>
"""


_EXPLORER = """<section id="frontiers">
<h2>Frontiers, run by run</h2>
<p class="soft">Hover, tap, or use the arrow keys on the map: window, context, level, event and reason.</p>
<div class="picker">
<select id="block" aria-label="setting"></select>
<select id="which" aria-label="run"></select>
<button id="back" type="button" aria-label="previous run">‹</button>
<button id="next" type="button" aria-label="next run">›</button>
<select id="sort" aria-label="order of contexts">
<option value="progress">furthest first</option><option value="bank">bank order</option></select>
<select id="view" aria-label="what the map shows">
<option value="frontier">frontiers</option><option value="trained">where rollouts start</option></select>
</div>
<div class="map">
<canvas id="heat" tabindex="0" role="img" aria-label="frontier of every context in every window"></canvas>
<div id="tip" class="tip" role="status" hidden></div>
<svg id="strip" class="chart" aria-hidden="true"></svg>
</div>
<div class="legend" id="legend"></div>
<p class="soft" id="rows"></p>
<p class="soft" id="about"></p>
<details><summary>Config and versions of this run</summary><pre id="config"></pre></details>
</section>
"""


def _asset(name: str) -> str:
    return resources.files("scout_rl.report.show").joinpath(name).read_text(encoding="utf-8")


def _section(index: int, part: Part) -> str:
    conclusions = "".join(f"<p>{escape(sentence)}</p>" for sentence in part.conclusions)
    figures = "".join(_figure(figure, f"p{index}{figure.name}-") for figure in part.figures)
    return (
        f'<section id="part-{index}"><h2>{escape(part.label)}</h2>'
        + (f'<div class="say">{conclusions}</div>' if conclusions else "")
        + "".join(html_table(table) for table in part.tables[:1])
        + (f'<div class="figures">{figures}</div>' if figures else "")
        + "".join(html_table(table) for table in part.tables[1:])
        + "</section>\n"
    )


def _figure(figure: Figure, prefix: str) -> str:
    return f"<figure>{inline_svg(figure, prefix)}<figcaption>{escape(figure.caption)}</figcaption></figure>"


def html_table(table: Table) -> str:
    """A table that scrolls sideways on a narrow screen."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    grid = f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return f"<h3>{escape(table.title)}</h3>{grid}{notes}"


def _runs(entries: Sequence[Entry]) -> str:
    header = ["run", "setting", "rule", "seed", "windows", "minutes", "bank", "versions"]
    rows = []
    for e in entries:
        a = e.about
        versions = ", ".join(f"{name} {version}" for name, version in a.versions.items())
        minutes = f"{a.seconds / 60:.1f}" if a.seconds else "–"
        rows.append([a.name, e.block, e.label, str(a.seed), _closed(a), minutes, a.bank_sha256[:8] or "–", versions])
    table = html_table(Table(f"{len(entries)} runs", header, rows))
    return f'<section id="all-runs"><h2>Runs</h2><details><summary>List</summary>{table}</details></section>'


def _closed(about: About) -> str:
    if about.finished:
        return str(about.windows)
    closed = f"{about.windows} of {about.budget}" if about.budget else "0"
    lacking = " and no last evaluation" if about.windows and about.windows >= about.budget else ""
    return f"{closed}{lacking}: not finished, in no table"


def _payload(parts: Sequence[Part], entries: Sequence[Entry]) -> str:
    """The data of the script. Equal configs and versions are written once."""
    configs: dict[str, int] = {}
    versions: dict[str, int] = {}
    blocks = {
        label: i for i, label in enumerate(dict.fromkeys([*(p.label for p in parts), *(e.block for e in entries)]))
    }
    runs = []
    for e in entries:
        a = e.about
        config = json.dumps({k: v for k, v in a.config.items() if k not in NOT_IDENTITY})
        runs.append(
            {
                "block": blocks[e.block],
                "label": e.label,
                "seed": a.seed,
                "name": a.name,
                "rule": a.rule,
                "model": has_model(a.rule),
                "contexts": a.n_contexts,
                "levels": a.n_levels,
                "windows": a.windows,
                "first": a.first,
                "budget": a.budget,
                "minutes": round(a.seconds / 60, 1),
                "bank": a.bank_sha256[:12],
                "groups": list(e.groups),
                "config": configs.setdefault(config, len(configs)),
                "versions": versions.setdefault(json.dumps(a.versions), len(versions)),
                **e.heat,
            }
        )
    whole = {
        "blocks": list(blocks),
        "configs": [json.loads(c) for c in configs],
        "versions": [json.loads(v) for v in versions],
        "level": {"stops": STOPS, "target": TARGET, "easiest": EASIEST},
        "words": [[word, MEANING[word]] for word in WORDS],
        "runs": runs,
    }
    text = json.dumps(whole, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # no record's text can end the script
