"""The moving parts of a run, whatever its simulator: a learner's fresh state, a window, an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax

from scout_rl.bench.families import family
from scout_rl.bench.families.family import GoalSimulator, States
from scout_rl.bench.learners import make_learner
from scout_rl.bench.learners.off_policy import GoalSpace, OffPolicy
from scout_rl.bench.rollouts.evaluate import Evaluation, evaluator
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.run.window import Window, device_window, host_window
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting


class Stage(NamedTuple):
    """What the training loop calls."""

    init: Callable[[Any], Any]
    """Key to the learner's state."""
    play: Window
    evaluate: Callable[[Any], Evaluation]


def make_stage(config: RunConfig, chosen: Setting, bank: ContextBank) -> Stage:
    """Simulator, learner and held-out contexts of a run, ready to be compiled on first use."""
    learner = make_learner(config.algorithm, config.learner)
    home = family(chosen.family)
    evaluate = evaluator(home, chosen, bank.held_out, learner)
    if not isinstance(learner, OffPolicy):
        return Stage(jax.jit(learner.init), device_window(home, chosen, learner), evaluate)
    simulator = cast(GoalSimulator, home.batch_simulator(chosen))
    n_groups = int(bank.train.oracle_group.max()) + 1
    with_signal = config.make_rule().needs_signal
    space = goal_space(simulator, home.target_starts({name: a[:1] for name, a in bank.train.contexts.items()}))
    init = jax.jit(lambda key: learner.init(key, space, config.episodes))
    return Stage(init, host_window(simulator, learner, n_groups, with_signal=with_signal), evaluate)


def goal_space(simulator: GoalSimulator, starts: States) -> GoalSpace:
    """The sizes that a learner needs, read off one start."""
    seen = simulator.observe(simulator.reset_to(starts))
    return GoalSpace(
        seen["observation"].shape[1], seen["desired_goal"].shape[1], simulator.n_actions, simulator.max_steps
    )
