"""The row of a run in the overview, from the ends of its files: cheap enough for a hundred runs every second."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scout_rl.files.refusal import Refusal
from scout_rl.records.tables import CONFIG, EVALUATIONS, EVENTS, WINDOWS
from scout_rl.report.read.run import RunRecord
from scout_rl.watch import words
from scout_rl.watch.disk import Signature, first_line, last_lines, reading_foreign, signature
from scout_rl.watch.follow import RUN, TIMING, config_of, description_of, evaluations_of, rows_of, seconds_of

FILES = (RUN, CONFIG, WINDOWS, EVENTS, EVALUATIONS, TIMING)
PACE = 50
"""Seconds per window are the median of this many windows."""
QUIET, PACES = 60.0, 10
"""A run trains if a file changed in the last minute, or in the time of ten windows."""


class Place(NamedTuple):
    """Where a run lies."""

    id: str
    name: str
    """Below its root."""
    path: Path
    """Without links: a folder, or the file of a compact record."""


class Row:
    """The overview's row of one run folder or ``log_dir``; `look` brings it up to date."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.value: dict[str, Any] = {
            **{"id": place.id, "name": place.name, "folder": str(place.path), "kind": "log_dir"},
            **{"setting": "", "rule": "", "label": "", "seed": 0, "contexts": 0, "levels": 0, "has_frontier": False},
            **{"windows": 0, "first": 0, "budget": None, "state": "starting", "trouble": ""},
            **{"seconds_per_window": None, "seconds_left": None, "updated": 0.0},
            **{"groups": {}, "evaluated_at": None, "worst": None, "event": None},
            **{"alerts": [], "alerts_at": None, "stamp": "0"},
        }
        """The page's ROW."""
        self.changes = 0
        """How often its files changed."""
        self._before: dict[str, Signature | None] = dict.fromkeys(FILES)
        self._parts: dict[str, dict[str, Any]] = {}
        self._troubles: dict[str, str] = {}
        self._unread = ""
        """Why its records are not shown, although nothing is wrong with them."""

    def look(self, now: float) -> bool:
        """Read the ends of the files that changed; whether the row did."""
        folder = self.place.path
        files = {name: signature(folder / name) for name in FILES}
        changed = {name for name in FILES if files[name] != self._before[name]}
        gone = files[RUN] is None and files[CONFIG] is None
        if changed and not gone:
            self._before = files
            self.changes += 1
            self._read(changed)
        row = dict(self.value)
        for part in self._parts.values():
            row.update(part)
        whole = self._troubles.get("records", "")  # it names the row of a table, of which we see the end alone
        troubles = [text for name, text in self._troubles.items() if str(folder / name) not in whole]
        row["trouble"] = "; ".join(dict.fromkeys(filter(None, [*troubles, self._unread])))
        times = [s.changed / 1e9 for s in files.values() if s is not None]
        row["updated"] = round(max(times), 3) if times else row["updated"]
        if gone:
            row["trouble"] = f"{folder} was deleted: what was read before is shown"
        self._clock(row, files)
        row["stamp"] = f"{row['windows']}-{self.changes}{'-gone' if gone else ''}"
        row["state"] = "deleted" if gone else "damaged" if any(troubles) else self._state(row, now)
        different = row != self.value
        self.value = row
        return different

    def note(self, trouble: str, damaged: bool = True) -> None:
        """Add what reading the whole run found; empty: nothing."""
        self._troubles["records"], self._unread = (trouble, "") if damaged else ("", trouble)

    def fail(self, trouble: str, damaged: bool) -> bool:
        """Say that looking at the run failed; whether the row changed."""
        self._before = dict.fromkeys(FILES)  # read all of them again at the next look
        row = {**self.value, "state": "damaged" if damaged else self.value["state"], "trouble": trouble}
        different = row != self.value
        self.value = row
        return different

    def _read(self, changed: set[str]) -> None:
        folder = self.place.path
        readers = {
            RUN: (self._describe, {RUN, CONFIG}),
            WINDOWS: (self._windows, {WINDOWS}),
            EVALUATIONS: (self._evaluation, {EVALUATIONS}),
            EVENTS: (self._event, {EVENTS, EVALUATIONS}),
            TIMING: (self._pace, {TIMING}),
        }
        for name, (read, files) in readers.items():
            if not files & changed:
                continue
            try:
                with reading_foreign(folder if name == RUN else folder / name):
                    self._parts[name] = read(folder)
                self._troubles[name] = ""
            except Refusal as refusal:
                self._troubles[name] = str(refusal)

    def _describe(self, folder: Path) -> dict[str, Any]:
        config: dict[str, Any] = config_of(folder) if signature(folder / CONFIG) is not None else {}
        ours = signature(folder / RUN) is not None
        about = description_of(folder, config, ours)["config"]
        return {
            "kind": "folder" if ours else "log_dir",
            "setting": about["setting"],
            "rule": about["rule"],
            "label": about.get("name") or about["rule"],
            "seed": about["seed"],
            "contexts": config.get("n_contexts", 0),
            "levels": about["levels"],
            "has_frontier": config.get("has_frontier", False),
            "budget": about["windows"] if ours else None,
        }

    def _windows(self, folder: Path) -> dict[str, Any]:
        ends = [first_line(folder / WINDOWS), *last_lines(folder / WINDOWS, 1)]
        rows = rows_of([line for line in ends if line], WINDOWS)
        return {"first": rows[0]["window"], "windows": rows[-1]["window"] + 1} if rows else {"first": 0, "windows": 0}

    def _evaluation(self, folder: Path) -> dict[str, Any]:
        rows = evaluations_of(last_lines(folder / EVALUATIONS, 1))
        if not rows:
            return {"groups": {}, "evaluated_at": None, "worst": None}
        groups = rows[-1]["groups"]
        return {"groups": groups, "evaluated_at": rows[-1]["window"], "worst": worst_of(groups)}

    def _event(self, folder: Path) -> dict[str, Any]:
        moves = rows_of(last_lines(folder / EVENTS, 1), EVENTS)
        last = self._parts.get(EVALUATIONS, {})
        at = last.get("evaluated_at")
        if moves and (at is None or moves[-1]["window"] >= at):
            return {"event": words.move(moves[-1])}
        return {"event": None if at is None else words.evaluation(at, last["groups"])}

    def _pace(self, folder: Path) -> dict[str, Any]:
        seconds = seconds_of(last_lines(folder / TIMING, PACE))
        return {"seconds_per_window": round(float(np.median(seconds)), 4) if len(seconds) else None}

    def _clock(self, row: dict[str, Any], files: dict[str, Signature | None]) -> None:
        """Seconds per window where no clock is recorded, and the time left."""
        begun, last = files[CONFIG], files[WINDOWS]
        closed = row["windows"] - row["first"]
        if row["kind"] == "log_dir" and begun is not None and last is not None and closed > 0:
            row["seconds_per_window"] = round(max(0.0, (last.changed - begun.changed) / 1e9) / closed, 4)
        pace, budget = row["seconds_per_window"], row["budget"]
        known = pace is not None and budget is not None
        row["seconds_left"] = round(max(0, budget - row["windows"]) * pace, 1) if known else None

    @staticmethod
    def _state(row: dict[str, Any], now: float) -> str:
        if row["budget"] is not None and row["windows"] >= row["budget"] and row["evaluated_at"] == row["budget"]:
            return "finished"
        if now - row["updated"] > max(QUIET, PACES * (row["seconds_per_window"] or 0)):
            return "stopped"
        return "training" if row["windows"] else "starting"


class RecordRow(Row):
    """The row of a compact record: one file, which is finished."""

    def look(self, now: float) -> bool:
        """Nothing is read here: `fill` does it."""
        gone = signature(self.place.path) is None
        damage = self._troubles.get("records", "")
        state = "deleted" if gone else "damaged" if damage else "finished"
        news = {"state": state, "trouble": damage or self._unread}
        different = any(self.value[name] != text for name, text in news.items())
        self.value = {**self.value, **news, "kind": "compact"}
        return different

    def fill(self, run: RunRecord) -> None:
        """Take the numbers of the record."""
        about = run.about
        groups = {name: float(curve[-1]) for name, curve in run.held_out_groups.items() if len(curve)}
        self.value = {
            **self.value,
            **{"kind": "compact", "setting": about.setting, "rule": about.rule, "label": about.rule},
            **{"seed": about.seed, "contexts": about.n_contexts, "levels": about.n_levels},
            **{"has_frontier": run.frontier is not None, "windows": about.windows, "budget": about.budget},
            **{"seconds_per_window": about.seconds / about.windows if about.windows else None, "seconds_left": 0.0},
            **{"groups": groups, "evaluated_at": about.last_evaluation, "worst": worst_of(groups)},
            "event": None if about.last_evaluation is None else words.evaluation(about.last_evaluation, groups),
            "updated": round(self.place.path.stat().st_mtime, 3),
            "stamp": f"{about.windows}-1",
        }


def worst_of(groups: dict[str, float]) -> dict[str, Any] | None:
    """The least successful group."""
    if not groups:
        return None
    name = min(groups, key=groups.__getitem__)
    return {"group": name, "success": groups[name]}
