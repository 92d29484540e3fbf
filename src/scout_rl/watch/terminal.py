"""The watch page for a terminal: runs, groups as bars, worst contexts, events, alerts. Needs the ``cli`` extra."""

from __future__ import annotations

import time
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scout_rl.files.refusal import Refusal
from scout_rl.watch.watcher import INTERVAL, Watcher

STYLES = {"training": "cyan", "finished": "green", "damaged": "bold red", "deleted": "red", "starting": "cyan"}
ROWS, CONTEXTS, EVENTS = 12, 6, 6
"""Most runs, stuck contexts and events that are drawn."""
BAR = 24


def show(watcher: Watcher, console: Console | None = None) -> None:
    """Draw until ctrl-C; outside a terminal once."""
    console = console or Console()
    if not console.is_terminal:
        watcher.look(spare=60.0, again=0.0)
        console.print(draw(watcher))
        return
    with Live(console=console, auto_refresh=False, screen=True) as live:
        try:
            while True:
                watcher.look()
                live.update(draw(watcher), refresh=True)
                time.sleep(INTERVAL)
        except KeyboardInterrupt:
            watcher.look(spare=INTERVAL, again=0.0)
    say_alerts(watcher, console)


def draw(watcher: Watcher) -> Group:
    """One picture of everything: the run that changed last is shown in detail."""
    rows = sorted((row.value for row in watcher.rows.values()), key=lambda row: -row["updated"])
    parts: list[RenderableType] = [Text(trouble, style="yellow") for trouble in watcher.troubles]
    if not rows:
        return Group(*parts, Text("no run yet"))
    parts.append(_runs(rows))
    chosen = next((row for row in rows if not row["trouble"]), rows[0])
    parts += _details(watcher, chosen)
    return Group(*parts)


def _runs(rows: list[dict[str, Any]]) -> RenderableType:
    table = Table("run", "state", "windows", "left", "worst group", box=box.SIMPLE_HEAD, pad_edge=False)
    table.columns[0].overflow = "fold"
    for row in rows[:ROWS]:
        budget = f"/{row['budget']}" if row["budget"] else ""
        worst = f"{row['worst']['group']} {row['worst']['success']:.2f}" if row["worst"] else "–"
        state = Text(row["state"], style=STYLES.get(row["state"], ""))
        left = clock(row["seconds_left"]) if row["state"] == "training" else "–"
        table.add_row(Text(row["name"]), state, f"{row['windows']}{budget}", left, Text(worst))
    more = len(rows) - ROWS
    troubles = [Text(row["trouble"], style="red") for row in rows[:ROWS] if row["trouble"]]
    return Group(table, *([Text(f"… and {more} more", style="dim")] if more > 0 else []), *troubles)


def _details(watcher: Watcher, row: dict[str, Any]) -> list[RenderableType]:
    key = row["id"]
    parts: list[RenderableType] = [Text(f"\n{row['name']}: {row['rule']}, seed {row['seed']}", style="bold")]
    if row["groups"]:
        bars = Table.grid(padding=(0, 1))
        for name, success in sorted(row["groups"].items(), key=lambda pair: pair[1]):
            bars.add_row(Text(name), ProgressBar(total=1.0, completed=success, width=BAR), f"{success:.2f}")
        parts += [Text(f"held-out success after {row['evaluated_at']} windows", style="dim"), bars]
    try:
        stuck, events = watcher.stuck(key, CONTEXTS), watcher.events(key, EVENTS, 0, None)
    except (Refusal, FileNotFoundError) as error:
        return [*parts, Text(str(error), style="red")]
    if stuck["total"]:
        table = Table("context", "level", "reason", "waits", box=box.SIMPLE_HEAD, pad_edge=False)
        for entry in stuck["contexts"]:
            named = f"{entry['context']} {entry['group']}".strip()
            table.add_row(Text(named), str(entry["level"]), entry["reason"], entry["waits"])
        parts += [Text(f"stuck: {stuck['total']} of {row['contexts']} contexts", style="dim"), table]
    parts += [Text(f"{event['window']:>6}  {event['text']}") for event in events["events"]]
    parts += [Text(f"alert: {alert['text']}", style="yellow") for alert in row["alerts"]]
    return parts


def say_alerts(watcher: Watcher, console: Console | None = None) -> None:
    """The alerts of all runs, as the last words of a command."""
    console = console or Console()
    with watcher.lock:
        told = [(row.value["name"], alert["text"]) for row in watcher.rows.values() for alert in row.value["alerts"]]
        unread = sum(row.value["alerts_at"] is None and not row.value["trouble"] for row in watcher.rows.values())
        troubles = [row.value["trouble"] for row in watcher.rows.values() if row.value["trouble"]]
    for name, text in told:
        console.print(f"alert: {name}: {text}", markup=False, highlight=False, soft_wrap=True)
    for trouble in troubles:
        console.print(f"trouble: {trouble}", markup=False, highlight=False, soft_wrap=True)
    if not told:
        console.print("no alerts")
    if unread:
        console.print(
            f"not read to the end yet, so without alerts: {unread} of {len(watcher.rows)} runs", soft_wrap=True
        )


def clock(seconds: float | None) -> str:
    """``1:02:03``, or a dash."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
