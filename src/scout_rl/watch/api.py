"""The HTTP interface of the watch page: its paths, and the shape of every answer.

Everything is GET and JSON (UTF-8). Texts (names, configs, errors) are data: put them into ``textContent``, never into
HTML. NaN does not occur: an unknown number is ``null``. A wrong request is answered ``{"error": "one sentence"}`` with
status 400 (parameter), 403 (host, origin or token), 404 (unknown path, run or context), 405 (not GET), 409 (the records
cannot be read, or there are none yet: the sentence says which), 503 (too many pages are open).

Ids are opaque texts of 16 hex digits. No path ever comes from the client. ``at`` always counts closed windows: a value
at 40 is after windows 0 to 39. A *column* is ``width`` windows; ``width`` is a power of two, so columns stay the same
while a run grows, until ``width`` doubles. Column c ends after ``min(first + (c + 1) * width, windows)`` windows;
``first`` is 0 unless the records begin in the middle of a run, or the run is too long for the server's memory and its
oldest windows were left out; ``windows`` counts from the run's beginning.

    /                              the page (page/index.html)
    /page/NAME                     its files (those of the folder page/, and draw.js and look.css of report/show/)
    /api/overview                  every run in a row
    /api/updates                   server-sent events: changed rows
    /api/runs/ID                   what a run is: config, versions, group names, colours of levels
    /api/runs/ID/heat              contexts x columns
    /api/runs/ID/curves            held-out and training success by group
    /api/runs/ID/shares            rollouts by level; cells that teach nothing
    /api/runs/ID/events            frontier moves and evaluations, newest first
    /api/runs/ID/stuck             stuck contexts, and what each waits for
    /api/runs/ID/time              throughput, and where the time goes
    /api/runs/ID/contexts/X        one context
    /api/runs/ID/pictures/NAME     a PNG of rungs; NAME from "pictures" below
    /api/compare?run=ID&run=ID     several runs, paired by seed
    /api/campaigns/ID              a campaign's table with failures

With a host other than loopback the page is opened as ``/?token=T``. The server sets a cookie and redirects to ``/``, so
the page's script never sees the token.

/api/overview
    {"version": "0.9.0", "clock": 1763480000.0, "interval": 1.0,
     "roots": ["runs"], "troubles": ["runs-old does not exist"],
     "runs": [ROW, ...], "campaigns": [{"id": "...", "name": "runs", "runs": 12, "failed": 1}]}

    ROW = {"id": "3f2a9c0d11e2b455", "name": "doorkey/scout/40", "folder": "/home/me/runs/doorkey/scout/40",
     "kind": "folder",              # "folder" (scout train), "log_dir" (anyone's Curriculum), "compact" (an npz record)
     "setting": "doorkey",          # "" for a log_dir
     "rule": "scout", "label": "scout",  # label: the curriculum's name where it has one, else the rule
     "seed": 40, "contexts": 200, "levels": 5, "has_frontier": true,
     "windows": 120, "first": 0,
     "budget": 600,                 # null where no plan is recorded
     "state": "training",           # "starting", "training", "stopped" (before its budget, or without one), "finished",
                                    # "damaged", "deleted"
     "seconds_per_window": 1.2, "seconds_left": 576.0,   # null where unknown
     "updated": 1763479999.2,       # when a file of the run last changed
     "groups": {"easy": 0.9, "hard": 0.2}, "evaluated_at": 100,   # last held-out evaluation; {} and null before it
     "worst": {"group": "hard", "success": 0.2},         # null before the first evaluation
     "event": EVENT,                # the last one; null before it
     "trouble": "",                 # one sentence where the folder is damaged, deleted, incomplete or too large, or
                                    # where we failed
     "alerts": [ALERT, ...], "alerts_at": 120,           # windows read for the alerts; null: not read yet
     "stamp": "120-3"}              # changes whenever an answer about this run may change

    ALERT = {"kind": "group lost",  # "group lost", "hopeless at the easiest", "level 0 falling", "levels alike"
     "text": "Group hard is lost: held-out success was 0.80 after 60 windows and is 0.10 now.",
     "contexts": [], "group": "hard"}                    # contexts it is about (at most 50), group or ""

/api/updates
    ``event: hello`` once, data {"interval": 1.0}; then ``event: rows``, data
    {"clock": 1763480001.0, "rows": [ROW, ...], "gone": ["ID", ...]} whenever a row changed: only the changed rows, and
    the ids of rows that are no longer listed. A comment line every 15 s keeps tunnels open. A page that shows a run
    asks again for its parts when the run's ``stamp`` changed.

/api/runs/ID
    {"row": ROW, "config": {...}, "versions": {"numpy": "2.4.6"}, "ran_on": {...}, "groups": ["easy", "hard"],
     "level": {"stops": [[68, 1, 84], ...], "target": "target start (no help)", "easiest": "easiest start (most help)"},
     "reasons": [["evidence missing", "too few rollouts to decide: ..."], ...],   # of /stuck
     "pictures": ["rungs.png"]}     # sheets of rungs for several contexts

/api/runs/ID/heat?columns=240&since=0
    ``columns``: at most this many (16 to 1024). ``since``: only columns that end after this many windows.
    {"windows": 120, "first": 0, "budget": 600, "generation": 71, "contexts": 200, "levels": 5, "width": 1,
     "column": 0, "columns": 120,   # index of the first column sent, and how many are sent
     "groups": ["easy", "hard"], "unit": 200, "none": 255,
     "words": [["gathering", "too few rollouts at this level yet"], ...],
     "layout": [["frontier", 1, 24000], ...], "data": "..."}   # as in the report: base64 of deflate of the arrays
    ``generation`` changes when windows were cut or left out: columns of another generation must not be kept.
    Arrays, one after the other, little-endian unsigned integers of 1, 2 or 4 bytes; [columns, contexts] means that all
    contexts of the first column come first:
    frontier [columns, contexts]  level after the column's last window; left out for rules without a frontier
    mean [columns, contexts]      mean level of the rollouts in 200ths of the easiest level; 255 without a rollout
    tried, won [columns, contexts]  rollouts and successes
    group [contexts]              index into groups; left out where unknown
    now [contexts]                frontier now (without one: the level of the last rollout); 255 before any
    status [contexts]             index into words after the last window; left out where it cannot be known
    moved [contexts]              window of the last move (without a frontier: of the last rollout) + 1; 0 never

/api/runs/ID/curves?columns=240
    {"windows": 120, "first": 0, "budget": 600,
     "held_out": {"at": [0, 20, 40], "all": [0.0, 0.3, 0.5],
                  "groups": {"easy": [0.0, 0.6, 0.9], "hard": [0.0, 0.0, 0.1]},
                  "worst": [0.0, 0.0, 0.1]},             # empty lists and {} without an evaluation
     "worst_group": "hard",         # at the last evaluation; null before it
     "training": {"width": 8, "at": [8, 16, ...], "all": [0.4, ...], "target": [null, 0.1, ...],
                  "groups": {"easy": [...]}}}            # success of training rollouts per column, each with columns
                                                         # before it until they are 64: of all, of those from
                                                         # level 0, by group ({} where unknown)

/api/runs/ID/shares?columns=240
    {"width": 8, "at": [8, 16, ...], "levels": [[0.0, 0.1, 0.2, 0.3, 0.4], ...],   # [columns][levels]; null: no rollout
     "teaching": {"source": "the rule's model",          # or "discounted rate of each cell's outcomes"
                  "near": 0.05,                          # chance up to 0.05 is too hard, from 0.95 mastered
                  "complete": true, "progress": 1.0,     # false: ask again; every answer gets further
                  "at": [8, 16, ...],                    # of the columns replayed so far
                  "too_hard": [0.6, ...], "mastered": [0.1, ...], "unknown": [0.2, ...],   # shares of all cells
                  "rollouts": [0.3, ...]}}               # share of the column's rollouts that started from a cell
                                                         # which was too hard or mastered when the column began

/api/runs/ID/events?limit=200&skip=0&context=X
    {"total": 321, "events": [EVENT, ...]}               # newest first; context is optional
    EVENT = {"window": 12, "kind": "advance", "context": 3, "from_level": 4, "to_level": 3, "success_average": 0.83,
     "evidence": 16, "text": "Context 3 advanced from level 4 to level 3: success 0.83, 16 outcomes."}
    or {"window": 20, "kind": "evaluation", "text": "Held-out success after 20 windows: easy 0.60, hard 0.00."}

/api/runs/ID/stuck?limit=200
    {"windows": 120, "total": 12, "by_reason": {"evidence missing": 12}, "contexts": [
      {"context": 3, "group": "hard", "level": 4, "reason": "evidence missing",
       "meaning": "too few rollouts to decide: ...", "evidence": "9 of 15 rollouts at level 4 in 80 windows",
       "waits": "needs 6 more outcomes, about 40 windows", "windows": 40}]}       # group "" and windows null if unknown

/api/runs/ID/time?columns=240
    {"source": "timing.jsonl",      # "file times" for records without clocks, "" before the first window
     "seconds": 144.0, "seconds_per_window": 1.2, "rollouts_per_second": 13.3, "steps_per_second": 900.0,
     "seconds_left": 576.0, "width": 8, "at": [8, 16, ...], "per_window": [1.3, ...],
     "parts": [{"name": "windows", "seconds": 120.0, "share": 0.83}, {"name": "evaluations", ...},
               {"name": "checkpoints", ...}, {"name": "start and pauses", ...}],
     "note": "Estimated: what a window took beyond the median of plain windows."}

/api/runs/ID/contexts/X?columns=240
    {"context": 3, "group": "hard", "level": 4,          # its frontier, or the level of its last rollout; or null
     "reason": "gathering",         # the rule's word after the last window (concepts.md); "" where it cannot be known
     "meaning": "too few rollouts at this level yet",
     "stuck": null or an entry of /stuck,
     "waits": "needs 6 more outcomes, about 40 windows", "windows": 40,
     "by_level": [{"level": 0, "tried": 0, "won": 0, "recent": null, "chance": 0.02, "low": 0.01, "high": 0.06}, ...],
                                                         # recent: of the last ten; low, high: one standard error
     "chance_source": "the rule's model", "chance_complete": true,
     "outcomes": {"window": [3, 9], "level": [4, 4], "success": [0, 1], "total": 31},   # the last 2,000, oldest first
     "width": 1, "at": [1, 2, ...], "frontier": [4, 4, ...],                            # frontier [] without one
     "events": [EVENT, ...],        # its moves, newest first, at most 200
     "pictures": ["rungs/3.png"]}   # of this context, then sheets

/api/compare?run=ID&run=ID
    {"runs": [{"id": "...", "name": "...", "label": "scout", "setting": "doorkey", "seed": 40,
               "held_out": as in /curves}, ...],
     "common": [0, 500],            # the windows that all share; null where they share none
     "pairs": [{"seed": 40, "runs": [{"id": "...", "label": "scout", "worst_auc": 0.5, "final_worst": 0.8}]}],
     "differences": [{"a": "ability", "b": "scout", "seeds": [40, 41], "worst_auc": [0.1, 0.2], "median": 0.15}]}

/api/campaigns/ID
    {"id": "...", "name": "runs", "folder": "/home/me/runs", "counts": {"finished": 3, "training": 2, "failed": 1},
     "cells": [{"setting": "doorkey", "rule": "scout", "seed": "40", "id": "..." or null, "state": "failed",
                "windows": 30, "budget": 600, "worst": 0.2,
                "times": 3, "error": "out of memory"}],  # times: failures; error: the last one, or what is damaged
     "seeds": ["40", "41"], "troubles": []}
    ``state`` is also "failed" (three failures) or "waiting" (failed before, and will be tried again).
"""
