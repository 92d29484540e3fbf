"""A trained run, read back from its folder: the policy of a checkpoint, and what is needed to play it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families import load_bank
from scout_rl.bench.learners import make_learner
from scout_rl.bench.learners.learner import Learner
from scout_rl.bench.learners.off_policy import OffPolicy
from scout_rl.bench.rollouts.evaluate import Evaluation
from scout_rl.bench.rollouts.host import rows
from scout_rl.bench.run import checkpoint
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import read_run, versions
from scout_rl.bench.run.learner_state import restore_policy
from scout_rl.bench.run.stage import make_stage
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting, setting
from scout_rl.files.damage import reading
from scout_rl.records.stored import read_table
from scout_rl.records.tables import EVALUATIONS


class Trained(NamedTuple):
    """A run at one of its checkpoints."""

    config: RunConfig
    setting: Setting
    bank: ContextBank
    learner: Learner | OffPolicy
    state: Any
    """The learner's; the replay's episodes are left out."""
    evaluate: Callable[[Any], Evaluation]
    """The run's own evaluation, of a learner's state."""
    window: int
    """Windows closed when the checkpoint was written."""
    environment_steps: int
    recorded: dict[str, Any] | None
    """The run's own evaluation at that window; None where none was due."""

    def act(self) -> Callable[[Any, Any], NDArray[Any]]:
        """The policy of evaluations, compiled: (observations [B, ...], key) to actions [B, ...]."""
        learner = self.learner
        if isinstance(learner, OffPolicy):
            decide, policy = jax.jit(learner.decide_rows), jax.jit(learner.policy)(self.state)
            return lambda seen, key: np.asarray(decide(policy, rows(seen)))
        compiled = jax.jit(lambda seen, key: learner.act(self.state, seen, key).action)
        return lambda seen, key: np.asarray(compiled(seen, key))

    def sample(self) -> Callable[[Any, Any], NDArray[Any]]:
        """The stochastic policy without exploration noise, compiled: (observations [B, ...], key) to actions."""
        learner = self.learner
        if not isinstance(learner, OffPolicy):
            return self.act()
        drawn, policy = jax.jit(learner.draw_rows), jax.jit(learner.policy)(self.state)
        return lambda seen, key: np.asarray(drawn(policy, rows(seen), key))


def load(path: Path, window: int | None = None, say: Callable[[str], None] = print) -> Trained:
    """Read the newest whole checkpoint of a run folder, or that of ``window``; nothing in the folder is touched."""
    about = read_run(path)
    fields = {field.name for field in dataclasses.fields(RunConfig)}
    unknown = sorted(set(about["config"]) ^ fields)
    if unknown:
        raise ValueError(f"{path} was left by another version: its config differs in {', '.join(unknown)}")
    config = RunConfig(**about["config"])
    chosen = setting(config.setting)
    folder = path / "checkpoints"
    if window is None:
        found = checkpoint.newest(folder, config.identity, say, with_shared=False)
        if found is None:
            raise ValueError(f"{path} has no whole checkpoint: nothing to evaluate yet")
    else:
        found = checkpoint.at(folder, window, config.identity, with_shared=False)
    bank = load_bank(chosen)
    if bank.sha256 != about["bank_sha256"]:
        raise ValueError(f"{path} was trained on another bank: {about['bank_sha256'][:12]}… there")
    for name, version in about["versions"].items():
        if (here := versions().get(name)) != version:
            say(f"{path} was trained with {name} {version}, this is {here}: outcomes may differ")
    learner, stage = make_learner(config.algorithm, config.learner), make_stage(config, chosen, bank)
    state = restore_policy(jax.eval_shape(stage.init, jax.random.key(config.seed)), found)
    recorded = _recorded(path / EVALUATIONS, found.window, chosen, len(bank.held_out))
    steps = int(found.meta["environment_steps"])
    return Trained(config, chosen, bank, learner, state, stage.evaluate, found.window, steps, recorded)


def _recorded(path: Path, window: int, chosen: Setting, n_held_out: int) -> dict[str, Any] | None:
    """The run's own evaluation after ``window`` windows, as it stands there; None where there is none."""
    rows = read_table(path)
    with reading(path):
        found = {row["window"]: row for row in rows}.get(window)
        if found is None:
            return None
        names = [group.name for group in chosen.groups]
        if len(found["outcomes"]) != n_held_out or list(found["groups"]) != names:
            raise ValueError(f"its evaluation after {window} windows is not of this bank's contexts and groups")
        found["success"] = float(found["success"])
        found["groups"] = {name: float(value) for name, value in found["groups"].items()}
    return found
