"""One window of training as a function: rollouts from the assigned starts, then one update of the learner.

`device_window` is for simulators that are pure functions: rollouts and update are one compiled call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from scout_rl.families.family import PureFamily, States
from scout_rl.learners.learner import Learner
from scout_rl.rollout import rollout
from scout_rl.settings import Setting


class Played(NamedTuple):
    """What a window leaves."""

    state: Any
    """The learner's."""
    success: NDArray[np.bool_]
    """Per rollout: success at any step."""
    signal: NDArray[np.float32]
    """Per rollout: the learner's signal."""
    steps: int
    """Environment steps."""
    metrics: dict[str, float]


Window = Callable[[Any, States, Any], Played]
"""(learner state, named start states [rollouts, ...], key) to what was played."""


def device_window(family: PureFamily, setting: Setting, learner: Learner) -> Window:
    """Compile the window of a pure simulator."""
    simulator, batch = family.simulator(setting), family.batch_simulator(setting)

    def one_window(state: Any, starts: Any, key: Any) -> Any:
        acting, updating = jax.random.split(key)
        episodes = rollout(simulator, lambda seen, key: learner.act(state, seen, key), starts, acting)
        update = learner.update(state, episodes, updating)
        return update.state, episodes.success.any(axis=0), update.signal, episodes.valid.sum(), update.metrics

    compiled = jax.jit(one_window)

    def play(state: Any, starts: States, key: Any) -> Played:
        state, success, signal, steps, metrics = compiled(state, batch.reset_to(starts), key)
        numbers = {name: float(value) for name, value in metrics.items()}
        return Played(state, np.asarray(success), np.asarray(signal), int(steps), numbers)

    return play
