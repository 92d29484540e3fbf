"""Everything that is watched: the rows of all runs, the records of those that were opened, and their alerts.

One thread at a time: callers hold ``lock``. Nothing is written, and the runs do not notice.
"""

from __future__ import annotations

import re
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scout_rl import __version__
from scout_rl.files.damage import DAMAGE, error_text
from scout_rl.files.refusal import Refusal
from scout_rl.report.measure.stuck import Stuck, find_stuck
from scout_rl.watch import compare, views
from scout_rl.watch.alerts import alerts
from scout_rl.watch.disk import read_small
from scout_rl.watch.find import Search
from scout_rl.watch.follow import FollowedRun, Opened, PackedRun, TooLarge
from scout_rl.watch.replay import Replay
from scout_rl.watch.rows import Place, RecordRow, Row

INTERVAL = 1.0
"""Seconds between two looks at the files."""
SEARCH = 5.0
"""Seconds between two searches for new runs; a slow search is repeated less often."""
SPARE = 0.1
"""Seconds per look in which runs are read for their alerts."""
AGAIN = 10.0
"""Seconds after which a run that grows is read for its alerts again."""
SLICE, SHORT_SLICE = 0.25, 0.05
"""Seconds of replay per request, and per request that can do without: a long replay is spread over several."""
MEMORY = 512 << 20
"""Bytes of records in memory. Runs that were not asked for lately are dropped, and read again when they are."""
KEPT = 600.0
"""Seconds for which a deleted run stays on the list."""
PICTURE = re.compile(r"rungs(/\d{1,9})?\.png")
MOST_PICTURE = 8 << 20


class Judged(NamedTuple):
    """When a run was read for its alerts."""

    stamp: str
    """Of its row."""
    time: float


class Watcher:
    """The runs at or below some folders."""

    def __init__(self, roots: Sequence[Path], *, memory: int = MEMORY) -> None:
        self.roots, self.lock = list(roots), threading.RLock()
        self.rows: dict[str, Row] = {}
        self.campaigns: dict[str, Place] = {}
        self.troubles: list[str] = []
        self.number = 0
        """Of the last look; `changed_at` has the look at which each row changed last."""
        self.changed_at: dict[str, int] = {}
        self.gone_at: dict[str, int] = {}
        self._memory = memory
        self._search = Search(self.roots)
        self._searched, self._took = float("-inf"), 0.0
        self._opened: OrderedDict[str, Opened] = OrderedDict()
        self._replays: dict[str, Replay] = {}
        self._stuck: dict[str, tuple[int, list[Stuck]]] = {}
        self._judged: dict[str, Judged] = {}
        self._deleted: dict[str, float] = {}
        self._printed: set[tuple[str, type[Exception]]] = set()

    # -- looking ---------------------------------------------------------------------------------------------------

    def look(self, *, spare: float = SPARE, again: float = AGAIN) -> None:
        """Bring the rows up to date; read runs for their alerts in the spare time, each after ``again`` seconds."""
        with self.lock:
            self.number += 1
            self._find()
            now = time.time()
            for key, row in self.rows.items():
                if self._look_at(row, now):
                    self.changed_at[key] = self.number
            self._forget(now)
            self._judge(spare, again)

    def _look_at(self, row: Row, now: float) -> bool:
        """Bring a row up to date; whether it changed."""
        try:
            return row.look(now)
        except Exception as error:
            return row.fail(*self._explained(row.place, error))

    def _explained(self, place: Place, error: Exception) -> tuple[str, bool]:
        """A sentence, and whether the run's files are damaged. A mistake of ours is printed; other runs go on."""
        kind = type(error)
        if isinstance(error, Refusal):
            return str(error), not isinstance(error, TooLarge)
        if isinstance(error, DAMAGE):
            return f"{place.path} is damaged: {kind.__name__}: {error_text(error)}", True
        if (place.id, kind) not in self._printed:
            self._printed.add((place.id, kind))
            traceback.print_exception(error)
        return f"scout watch failed on {place.path}: {kind.__name__}: {error_text(error)}; please report it", False

    def _forget(self, now: float) -> None:
        """Take runs off the list that were deleted some time ago."""
        for key, row in list(self.rows.items()):
            if row.value["state"] != "deleted":
                self._deleted.pop(key, None)
            elif now - self._deleted.setdefault(key, now) > KEPT:
                self._close(key)
                for part in (self.rows, self.changed_at, self._judged, self._deleted):
                    part.pop(key, None)
                self.gone_at[key] = self.number

    def _find(self) -> None:
        if time.monotonic() - self._searched < max(SEARCH, 50 * self._took):
            return
        begun = time.monotonic()
        found = self._search.find()
        self._searched, self._took = time.monotonic(), time.monotonic() - begun
        for key, place in found.places.items():
            if key not in self.rows:
                self.gone_at.pop(key, None)
                self.rows[key] = Row(place) if place.path.suffix != ".npz" else RecordRow(place)
                self.changed_at[key] = self.number
        self.campaigns, self.troubles = found.campaigns, found.troubles

    def _judge(self, spare: float, again: float) -> None:
        """Read runs for their alerts: those that were never read first, growing ones before others."""
        deadline, now = time.perf_counter() + spare, time.monotonic()
        stale = [
            key
            for key, row in self.rows.items()
            if (at := self._judged.get(key)) is None or (at.stamp != row.value["stamp"] and now - at.time >= again)
        ]
        stale.sort(key=lambda key: (key in self._judged, self.rows[key].value["state"] != "training"))
        for key in stale:
            if time.perf_counter() > deadline:
                break
            self._judge_one(key, max(0.005, deadline - time.perf_counter()))

    def _judge_one(self, key: str, seconds: float) -> None:
        row = self.rows[key]
        stamp, damaged = row.value["stamp"], True
        try:
            run = self._open(key, seconds)
            trouble = run.trouble
            stamp = row.value["stamp"]
            if not run.complete:
                return
            if isinstance(run, FollowedRun) and not run.described and not trouble:
                return
            record = run.record()
            found = [alert._asdict() for alert in alerts(record)]
            judged_at = record.about.first + record.about.windows
        except FileNotFoundError:
            return
        except Exception as error:
            found, judged_at = [], None
            trouble, damaged = self._explained(row.place, error)
            if not isinstance(error, Refusal):
                self._close(key)
        self._judged[key] = Judged(stamp, time.monotonic())
        news = {"alerts": found, "alerts_at": judged_at}
        if row.value["state"] != "deleted":
            row.note(trouble, damaged)
        before = row.value
        self._look_at(row, time.time())
        row.value = {**row.value, **news}
        if row.value != before:
            self.changed_at[key] = self.number

    # -- opened runs -----------------------------------------------------------------------------------------------

    def _open(self, key: str, seconds: float) -> Opened:
        """The run's records, read up to now (or for so long); the least used ones are dropped from memory."""
        row = self.rows[key]
        run = self._opened.pop(key, None)
        if run is None:
            run = PackedRun(row.place.path) if isinstance(row, RecordRow) else FollowedRun(row.place.path)
            if isinstance(run, PackedRun) and isinstance(row, RecordRow):
                row.fill(run.record())
                self.changed_at[key] = self.number + 1  # told at the next look
        run.advance(seconds)
        self._opened[key] = run
        while len(self._opened) > 1 and sum(each.nbytes for each in self._opened.values()) > self._memory:
            self._close(next(iter(self._opened)))
        return run

    def _close(self, key: str) -> None:
        """Forget what was read of a run; it is read again when it is asked for."""
        for part in (self._opened, self._replays, self._stuck):
            part.pop(key, None)

    def opened(self, key: str) -> Opened:
        """The run's records, all that is on the disk."""
        return self._open(key, float("inf"))

    def replay(self, key: str, run: Opened, seconds: float = SHORT_SLICE) -> Replay:
        """The run's replay, a slice further."""
        replay = self._replays.get(key)
        if replay is None or replay.generation != run.generation:
            replay = self._replays[key] = Replay(run.record(), run.generation)
        replay.advance(run.record(), seconds)
        return replay

    def _stuck_of(self, key: str, run: Opened) -> list[Stuck]:
        """Its stuck contexts; judged once per version of the records."""
        version, found = self._stuck.get(key, (None, []))
        if version != run.version:
            record = run.record()
            found = find_stuck(record) if record.about.windows else []
            self._stuck[key] = run.version, found
        return found

    @property
    def memory(self) -> int:
        """Bytes of records in memory."""
        return sum(run.nbytes for run in self._opened.values())

    # -- answers ---------------------------------------------------------------------------------------------------

    def overview(self) -> dict[str, Any]:
        """Every run in a row."""
        rows = [row.value for row in self.rows.values()]
        return {
            "version": __version__,
            "clock": round(time.time(), 3),
            "interval": INTERVAL,
            "roots": [str(root) for root in self.roots],
            "troubles": self.troubles,
            "runs": rows,
            "campaigns": [self._campaign_line(place) for place in self.campaigns.values()],
        }

    def changes(self, since: int) -> dict[str, Any] | None:
        """The rows that changed after look number ``since``; None where none did."""
        changed = [self.rows[key].value for key, number in self.changed_at.items() if number > since]
        gone = [key for key, number in self.gone_at.items() if number > since]
        return {"clock": round(time.time(), 3), "rows": changed, "gone": gone} if changed or gone else None

    def about(self, key: str) -> dict[str, Any]:
        """What a run is."""
        run = self.opened(key).record()
        return views.about(run, self.rows[key].value, self.pictures(key))

    def heat(self, key: str, columns: int, since: int) -> dict[str, Any]:
        """Contexts x columns."""
        run = self.opened(key)
        return views.heat(run.record(), self.replay(key, run), self.rows[key].value["budget"], columns, since)

    def curves(self, key: str, columns: int) -> dict[str, Any]:
        """Success over time."""
        return views.curves(self.opened(key).record(), self.rows[key].value["budget"], columns)

    def shares(self, key: str, columns: int) -> dict[str, Any]:
        """Rollouts by level, cells that teach nothing."""
        run = self.opened(key)
        return views.shares(run.record(), self.replay(key, run, SLICE), columns)

    def events(self, key: str, limit: int, skip: int, context: int | None) -> dict[str, Any]:
        """Moves and evaluations."""
        return views.events(self.opened(key), limit, skip, context)

    def stuck(self, key: str, limit: int) -> dict[str, Any]:
        """Stuck contexts."""
        run = self.opened(key)
        return views.stuck(run.record(), self._stuck_of(key, run), self.replay(key, run), limit)

    def time_spent(self, key: str, columns: int) -> dict[str, Any]:
        """Where the time goes."""
        return views.time_spent(self.opened(key), self.rows[key].value, columns)

    def context(self, key: str, x: int, columns: int) -> dict[str, Any] | None:
        """One context; None where there is no such one."""
        run = self.opened(key)
        if not 0 <= x < run.record().about.n_contexts:
            return None
        stuck, replay = self._stuck_of(key, run), self.replay(key, run)
        return views.context(run, stuck, replay, x, columns, self.pictures(key, x))

    def compare(self, keys: Sequence[str]) -> dict[str, Any]:
        """Several runs, paired by seed."""
        return compare.compare([(self.rows[key].value, self.opened(key).record()) for key in keys])

    def campaign(self, key: str) -> dict[str, Any]:
        """A campaign's table."""
        place = self.campaigns[key]
        rows = [row.value for row in self.rows.values() if place.path in row.place.path.parents]
        return compare.campaign_table(place, rows)

    def pictures(self, key: str, context: int | None = None) -> list[str]:
        """Pictures of rungs in the run folder: of one context where there is one, then the sheet."""
        folder = self.rows[key].place.path
        names = ([] if context is None else [f"rungs/{context}.png"]) + ["rungs.png"]
        return [name for name in names if (folder / name).is_file() and not (folder / name).is_symlink()]

    def picture(self, key: str, name: str) -> bytes | None:
        """A picture's bytes; None for anything that is no picture of rungs."""
        if not PICTURE.fullmatch(name):
            return None
        try:
            content = read_small(self.rows[key].place.path / name, MOST_PICTURE)
        except FileNotFoundError:
            return None
        return content if content.startswith(b"\x89PNG\r\n\x1a\n") else None

    def _campaign_line(self, place: Place) -> dict[str, Any]:
        table = self.campaign(place.id)
        failed = table["counts"].get("failed", 0)
        return {"id": place.id, "name": place.name, "runs": len(table["cells"]), "failed": failed}
