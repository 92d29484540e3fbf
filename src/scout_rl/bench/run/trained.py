"""A trained run, read from its folder: the policy of a checkpoint, and what is needed to play it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families import load_bank
from scout_rl.bench.learners.learner import Learner
from scout_rl.bench.rollouts.evaluate import Evaluation
from scout_rl.bench.rollouts.host import rows
from scout_rl.bench.run import checkpoint
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.folder import read_run, versions
from scout_rl.bench.run.learner_state import restore
from scout_rl.bench.run.parts import make_parts
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.bench.settings.settings import setting as setting_of
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.records.stored import read_table
from scout_rl.records.tables import EVALUATIONS


class Trained(NamedTuple):
    """A run at one of its checkpoints."""

    config: RunConfig
    setting: Setting
    bank: ContextBank
    learner: Learner
    state: Any
    """The learner's state without the replay's episodes."""
    evaluate: Callable[[Any], Evaluation]
    """The run's held-out evaluation of a learner's state."""
    window: int
    """Windows closed when the checkpoint was written."""
    environment_steps: int
    recorded: dict[str, Any] | None
    """The evaluation that the run recorded at that window; None where none was due."""

    def act(self) -> Callable[[Any, Any], NDArray[Any]]:
        """The policy of evaluations, compiled: (observations [B, ...], key) -> actions [B, ...]."""
        return self._compiled(self.learner.decide)

    def sample(self) -> Callable[[Any, Any], NDArray[Any]]:
        """The stochastic policy without exploration noise, compiled: (observations [B, ...], key) -> actions."""
        return self._compiled(self.learner.sample)

    def _compiled(self, choose: Callable[..., Any]) -> Callable[[Any, Any], NDArray[Any]]:
        compiled, policy = jax.jit(choose), jax.jit(self.learner.policy)(self.state)
        as_arrays = rows if self.learner.plays == "goals" else np.asarray
        return lambda observations, key: np.asarray(compiled(policy, as_arrays(observations), key))


def load(path: Path, window: int | None = None, say: Callable[[str], None] = print) -> Trained:
    """Read the newest whole checkpoint of a run folder, or that of ``window``; the folder is not changed."""
    about = read_run(path)
    fields = {field.name for field in dataclasses.fields(RunConfig)}
    unknown = sorted(set(about["config"]) ^ fields)
    if unknown:
        raise Refusal(f"{path} was left by another version: its config differs in {', '.join(unknown)}")
    config = RunConfig(**about["config"])
    setting = setting_of(config.setting)
    folder = path / "checkpoints"
    if window is None:
        saved = checkpoint.newest(folder, config.identity, say, with_shared=False)
        if saved is None:
            raise Refusal(f"{path} has no whole checkpoint: nothing to evaluate yet")
    else:
        saved = checkpoint.at(folder, window, config.identity, with_shared=False)
    bank = load_bank(setting)
    if bank.sha256 != about["bank_sha256"]:
        raise Refusal(f"{path} was trained on another bank: {about['bank_sha256'][:12]}… there")
    for name, version in about["versions"].items():
        if (here := versions().get(name)) != version:
            say(f"{path} was trained with {name} {version}, this is {here}: outcomes may differ")
    parts = make_parts(config, setting, bank)
    state, _ = restore(jax.eval_shape(parts.init, jax.random.key(config.seed)), saved, to_act=True)
    recorded = _recorded(path / EVALUATIONS, saved.window, setting, len(bank.held_out))
    steps = int(saved.meta["environment_steps"])
    return Trained(config, setting, bank, parts.learner, state, parts.evaluate, saved.window, steps, recorded)


def _recorded(path: Path, window: int, setting: Setting, n_held_out: int) -> dict[str, Any] | None:
    """The recorded evaluation after ``window`` windows, or None."""
    rows = read_table(path)
    with reading(path):
        evaluation = {row["window"]: row for row in rows}.get(window)
        if evaluation is None:
            return None
        names = [group.name for group in setting.groups]
        if len(evaluation["outcomes"]) != n_held_out or list(evaluation["groups"]) != names:
            raise Refusal(f"its evaluation after {window} windows is not of this bank's contexts and groups")
        evaluation["success"] = float(evaluation["success"])
        evaluation["groups"] = {name: float(value) for name, value in evaluation["groups"].items()}
    return evaluation
