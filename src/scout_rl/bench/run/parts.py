"""The parts of a run's loop, and of a batch's: initial learner state, window, evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax

from scout_rl.bench.families import family as family_of
from scout_rl.bench.families.family import GoalSimulator, States
from scout_rl.bench.learners.episodes import GoalSpace
from scout_rl.bench.learners.learner import Learner
from scout_rl.bench.rollouts.evaluate import Evaluation, batch_evaluator, evaluator
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.window import PlayBatch, PlayWindow, batch_window, device_window, host_window
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.refusal import Refusal


class Parts(NamedTuple):
    """What the training loop calls."""

    learner: Learner
    init: Callable[[Any], Any]
    """Random key -> the learner's initial state."""
    play: PlayWindow
    evaluate: Callable[[Any], Evaluation]


def make_parts(config: RunConfig, setting: Setting, bank: ContextBank) -> Parts:
    """Build the parts of a run; they are compiled on first use."""
    learner = config.make_learner()
    family = family_of(setting.family)
    space = None
    if learner.plays == "steps":
        play = device_window(family, setting, learner)
    else:
        simulator = cast(GoalSimulator, family.batch_simulator(setting))
        space = goal_space(simulator, family.target_starts({name: a[:1] for name, a in bank.train.contexts.items()}))
        n_groups = int(bank.train.oracle_group.max()) + 1
        play = host_window(simulator, learner, n_groups, with_signal=config.make_rule().needs_signal)
    init = jax.jit(lambda key: learner.init(key, space, config.episodes))
    return Parts(learner, init, play, evaluator(family, setting, bank.held_out, learner))


class BatchParts(NamedTuple):
    """What the loop of a batch calls."""

    init: Callable[[Any], Any]
    """Random key -> the initial state of one run."""
    play: PlayBatch
    evaluate: Callable[[Any], list[Evaluation]]


def make_batch_parts(config: RunConfig, setting: Setting, bank: ContextBank) -> BatchParts:
    """Build the parts of a batch of runs that differ in nothing that is compiled; refuse a simulator on the host."""
    learner, family = config.make_learner(), family_of(setting.family)
    if learner.plays != "steps":
        raise Refusal(not_pure(config))
    vmapped = learner.for_vmap()
    init = jax.jit(lambda key: vmapped.init(key, None, config.episodes))
    play = batch_window(family, setting, vmapped)
    return BatchParts(init, play, batch_evaluator(family, setting, bank.held_out, vmapped))


def not_pure(config: RunConfig) -> str:
    """Why a run cannot be part of a batch."""
    return f"{config.setting!r} is simulated on the host, and a batch needs a simulator of pure functions (MiniGrid)"


def goal_space(simulator: GoalSimulator, starts: States) -> GoalSpace:
    """The sizes that a learner needs, from one start."""
    observation = simulator.observe(simulator.reset_to(starts))
    return GoalSpace(
        observation["observation"].shape[1],
        observation["desired_goal"].shape[1],
        simulator.n_actions,
        simulator.max_steps,
    )
