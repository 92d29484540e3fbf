"""Example runs for the watch page, played by a real curriculum on a toy learner; they grow window by window.

    run = GrowingRun(folder)             # as scout train leaves it: run.json, timing, metrics, held-out evaluations
    run = GrowingRun(folder, kind="log_dir")      # as Curriculum(log_dir=...) leaves it
    run.play(40)                         # forty more windows on the disk
    campaign(folder)                     # four runs below a campaign's folder: one failed, one waits

`python -m tests.watch.planted FOLDER` makes a folder with all of them, and lets two of the runs grow.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from scout_rl import Curriculum, rules

GROUPS = ("easy", "hard")


class GrowingRun:
    """One run folder. Contexts of the second half, group ``hard``, need ``pace`` times as long for a level."""

    def __init__(
        self,
        folder,
        *,
        kind="folder",
        rule=None,
        n_contexts=20,
        n_levels=5,
        seed=40,
        budget=400,
        episodes=16,
        evaluate_every=20,
        every=30,
        pace=2.0,
        setting="planted",
        name=None,
        held_out=20,
    ):
        self.folder, self.kind, self.budget, self.episodes = Path(folder), kind, budget, episodes
        self.n_levels, self.every, self.evaluate_every, self.held_out = n_levels, every, evaluate_every, held_out
        rule = rule or rules.Ability()
        self.slow = np.where(np.arange(n_contexts) < n_contexts // 2, 1.0, pace)
        self.group = [GROUPS[int(x >= n_contexts // 2)] for x in range(n_contexts)]
        self.held_out_group = [GROUPS[int(x >= held_out // 2)] for x in range(held_out)]
        self.rng = np.random.default_rng(seed + 1000)
        self.steps = 0
        if kind == "folder":
            self.folder.mkdir(parents=True, exist_ok=True)
            config = {"setting": setting, "rule": rule.key, "seed": seed, "levels": n_levels, "windows": budget}
            config |= {"episodes": episodes, "evaluate_every": evaluate_every, "checkpoint_every": 50}
            config |= {"ladder": "manual", "constants": rule.constants(), "learner": {}}
            oracle = [GROUPS.index(label) for label in self.group]
            about = {
                "schema": 1,
                "kind": "run",
                "config": config,
                "bank_sha256": "cd" * 32,
                "versions": {"python": "3.12.0"},
                "groups": {"train": self.group, "held_out": self.held_out_group, "oracle": oracle},
                "ran_on": {"backend": "cpu", "processor": "a processor", "cores": 2, "threads": 1},
            }
            (self.folder / "run.json").write_text(json.dumps(about))
        self.curriculum = Curriculum(
            rule, n_contexts, n_levels, seed=seed, window=episodes, log_dir=self.folder, name=name
        )
        self.evaluate()

    def chance(self, context, level, window):
        """One level after the other is mastered; a level that is not yet mastered succeeds seldom."""
        ready = (self.n_levels - 1 - level) * self.every * self.slow[context]
        return np.where(window >= ready, 0.93, 0.05)

    def play(self, windows, success=None):
        """Play this many windows; ``success(cells, window)`` replaces the toy learner."""
        for _ in range(windows):
            window = self.curriculum.windows
            cells = self.curriculum.assign(self.episodes)
            chance = self.chance(cells.context, cells.level, window)
            won = self.rng.random(self.episodes) < chance if success is None else success(cells, window)
            if self.kind == "folder":
                self.steps += 100 * self.episodes
                self.append("metrics", {"window": window, "environment_steps": self.steps})
            self.curriculum.report(cells, won)
            if self.curriculum.windows % self.evaluate_every == 0:
                self.evaluate()
            if self.kind == "folder":
                extra = 1.0 if self.curriculum.windows % self.evaluate_every == 0 else 0.0
                self.append("timing", {"window": window, "seconds": 0.5 + extra + (5.0 if window == 0 else 0.0)})
        return self

    def evaluate(self, outcomes=None):
        """A held-out evaluation; the hard half is solved later."""
        window = self.curriculum.windows
        slow = np.array([self.slow[0] if label == "easy" else self.slow[-1] for label in self.held_out_group])
        solved = np.clip(window / ((self.n_levels - 1) * self.every * slow), 0, 1)
        won = (np.arange(self.held_out) % 10 < 10 * solved) if outcomes is None else np.asarray(outcomes)
        if self.kind == "log_dir":
            self.curriculum.evaluation(won, self.held_out_group)
            return
        labels = np.array(self.held_out_group)
        groups = {name: float(won[labels == name].mean()) for name in GROUPS}
        row = {"window": window, "environment_steps": self.steps, "success": float(won.mean()), "groups": groups}
        self.append("evaluations", {**row, "outcomes": won.astype(int).tolist()})

    def append(self, table, row):
        """One row of a table of our own runs."""
        with (self.folder / f"{table}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def campaign(folder, *, windows=60):
    """A campaign's folder: two runs that grow, one that failed for good, one that failed once and waits."""
    folder = Path(folder)
    runs = {}
    for rule, seed in ((rules.Ability(), 40), (rules.Scout(), 40), (rules.Ability(), 41)):
        runs[rule.key, seed] = GrowingRun(folder / "planted" / rule.key / str(seed), rule=rule, seed=seed).play(windows)
    for name, times in (("planted/ability/41", 3), ("planted/scout/41", 1)):
        path = folder / ".campaign" / f"{name}.failures.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([{"error": f"failure {i + 1}: out of memory", "windows": 30} for i in range(times)]))
    return runs


def damaged(folder):
    """A run whose table has a row that is no JSON, in the middle."""
    run = GrowingRun(folder).play(60)
    path = run.folder / "windows.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:30], '{"window":30,"context":[1,"<b>"\n', *lines[31:]]))
    return run


def main(folder):
    """Make one of each, and go on playing two of them."""
    folder = Path(folder)
    campaign(folder / "campaign")
    damaged(folder / "damaged")
    GrowingRun(folder / "old", rule=rules.Random(), seed=42).play(400)
    own = GrowingRun(folder / "own-loop", kind="log_dir", name="<script>alert(1)</script>", seed=41).play(30)
    live = GrowingRun(folder / "live", rule=rules.Scout(n_min=5), seed=43).play(30)
    print(f"made {folder}; two runs grow until this is stopped (ctrl-C)", flush=True)
    while live.curriculum.windows < live.budget:
        time.sleep(0.5)
        own.play(1)
        live.play(1)


if __name__ == "__main__":
    main(sys.argv[1])
