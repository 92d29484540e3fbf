"""The shaped reward of the stock environments for a batch. No learner is trained on it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.metaworld.simulator import Environment, Handle
from scout_rl.bench.families.metaworld.tasks import TASKS, Array, stock, stock_env


def stock_reward(state: Handle, action: Array) -> NDArray[np.float64]:
    """float64[n]: the reward of the stock step that led to these states with these actions."""
    rows = zip(state.environments, state.stacked, np.asarray(action), state.goal, state.object_start, strict=True)
    return np.array([_evaluate(*row)[0] for row in rows])


def _evaluate(environment: Environment, observation: Array, action: Array, goal: Array, object_start: Array) -> Any:
    """The stock method on our ``MjData``."""
    judge = _judge(environment.index)
    judge.data = environment.data
    judge._target_pos, judge.obj_init_pos = goal, object_start
    # The stock environment keeps views here, not copies, so "initial" pads are where the pads are now.
    judge.init_left_pad, judge.init_right_pad = judge.get_body_com("leftpad"), judge.get_body_com("rightpad")
    return judge.evaluate_state(observation, action)


@cache
def _judge(index: int) -> Any:
    """A stock environment that was reset once: its reward uses values of the reset."""
    env = stock_env(TASKS[index].name)
    facts = stock(index)
    env._last_rand_vec = (facts.context_low + facts.context_high) / 2
    env.reset()
    return env
