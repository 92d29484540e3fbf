"""A run that is opened for training: its folder, its curriculum and its counters.

It takes the steps of a window that do not depend on how the window is computed. So a run alone (train.py) and a run of
a batch (batch.py) leave the same records.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from scout_rl.bench.families.family import States
from scout_rl.bench.rollouts.evaluate import Evaluation
from scout_rl.bench.run import checkpoint
from scout_rl.bench.run.checkpoint import Checkpoint
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import RunFolder
from scout_rl.bench.run.ladder import run_ladder
from scout_rl.bench.run.learner_state import Saved, restore
from scout_rl.bench.run.window import WindowResult
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.curriculum import Curriculum
from scout_rl.rules.cells import Cells


class OpenRun:
    """A run between two windows; a killed one is continued from its newest checkpoint."""

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        setting: Setting,
        bank: ContextBank,
        resume_from: Checkpoint | None,
        say: Callable[[str], None],
    ) -> None:
        self.config, self.folder, self.contexts = config, folder, bank.train
        folder.claim()
        self.ladder = run_ladder(folder.path, config, setting, bank, say)
        folder.cut(0 if resume_from is None else resume_from.window, len(self.contexts))
        self.curriculum = Curriculum(
            config.make_rule(),
            len(self.contexts),
            config.levels,
            seed=config.seed,
            window=config.episodes,
            oracle_group=self.contexts.oracle_group,
            log_dir=folder.path,
        )
        if folder.seed_stream:
            self.curriculum.generator = np.random.Generator(np.random.PCG64(config.seed))
        self.root = jax.random.key(config.seed)
        self.resume_from, self.steps, self._saved = resume_from, 0, Saved()
        if resume_from is not None:
            say(f"continuing {folder.path} from window {resume_from.window}")
            pacing = {**resume_from.meta["curriculum"], "arrays": resume_from.parts["curriculum"]}
            self.curriculum.load_state_dict(pacing)
            self.steps = resume_from.meta["environment_steps"]
        self._clock = time.perf_counter()

    @property
    def window(self) -> int:
        """Windows closed so far."""
        return self.curriculum.windows

    def first_state(self, init: Callable[[Any], Any]) -> Any:
        """The learner's state to go on with: fresh, or the checkpoint's."""
        state = init(jax.random.fold_in(self.root, 0))
        if self.resume_from is not None:
            state, self._saved = restore(state, self.resume_from)
        return state

    def begin(self) -> None:
        """Say in run.json what makes the windows from here on, and start the clock."""
        self.folder.label(self.window)
        self._clock = time.perf_counter()

    def assign(self) -> Cells:
        """The cells of the next window."""
        return self.curriculum.assign(self.config.episodes)

    def starts(self, cells: Cells) -> States:
        """Their starts, [rollouts, ...]."""
        return {name: array[cells.context, cells.level] for name, array in self.ladder.items()}

    def close(self, cells: Cells, played: WindowResult) -> None:
        """Record a window's numbers and outcomes."""
        self.steps += played.steps
        self.folder.metrics.append({"window": self.window, "environment_steps": self.steps, **played.metrics})
        self.curriculum.report(cells, played.success, played.signal)

    @property
    def evaluation_due(self) -> bool:
        """Whether the held-out contexts are played after the window that was closed last."""
        return self.window % self.config.evaluate_every == 0 or self.window == self.config.windows

    def record_evaluation(self, evaluation: Evaluation) -> None:
        """Record the outcomes of the held-out contexts."""
        self.folder.evaluations.append(
            {
                "window": self.window,
                "environment_steps": self.steps,
                "success": evaluation.success,
                "groups": evaluation.groups,
                "outcomes": evaluation.outcomes.astype(int).tolist(),
            }
        )

    def record_time(self) -> None:
        """Record how long the closed window took, with its evaluation: the window's last row."""
        now = time.perf_counter()
        self.folder.timing.append({"window": self.window - 1, "seconds": round(now - self._clock, 4)})
        self._clock = now

    @property
    def checkpoint_due(self) -> bool:
        """Whether a checkpoint follows the window that was closed last."""
        return self.window % self.config.checkpoint_every == 0 or self.window == self.config.windows

    def save(self, state: Any) -> None:
        """Write a checkpoint, after the records that it counts."""
        pacing = self.curriculum.state_dict()
        learned, new, saved = self._saved.next(state)
        arrays = {"learner": learned, "curriculum": pacing.pop("arrays")}
        meta = {"curriculum": pacing, "environment_steps": self.steps}
        self.folder.sync()
        kept = checkpoint.write(
            self.folder.checkpoints, self.window, self.config.identity, arrays, meta, new=new, kept=saved.hashes
        )
        self._saved = saved._replace(hashes=kept)
