"""One window of training as a function: rollouts from the assigned starts, then one update of the learner.

`device_window` is for simulators that are pure functions: rollouts and update are one compiled call. `batch_window` is
the same call for a window of each of several runs. `host_window` is for simulators on the host: there is one compiled
call per step for the actions, and one per window for the update.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import Family, GoalSimulator, States
from scout_rl.bench.learners.episodes import GoalEpisodes
from scout_rl.bench.learners.learner import GoalLearner, State, StepLearner
from scout_rl.bench.rollouts.device import rollout
from scout_rl.bench.rollouts.host import collect
from scout_rl.bench.settings.settings import Setting


class WindowResult(NamedTuple):
    """The result of a window."""

    state: Any
    """The learner's state; None in a batch, which has one state of all its runs."""
    success: NDArray[np.bool_]
    """Per rollout: success at any step."""
    signal: NDArray[np.float32] | None
    """Per rollout: the learner's signal; None if not computed."""
    steps: int
    """Environment steps."""
    metrics: dict[str, float]


PlayWindow = Callable[[Any, States, NDArray[Any], Any], WindowResult]
"""(learner state, named start states [rollouts, ...], their oracle groups, key) -> the result. Do not
use the passed state afterwards."""


PlayBatch = Callable[[Any, Sequence[States], Any, int], tuple[Any, list[WindowResult]]]
"""(states [runs, ...], the start states of each run, root keys [runs], number of the key) -> the new states, and the
result of each run. Do not use the passed states afterwards."""


def device_window(family: Family, setting: Setting, learner: StepLearner) -> PlayWindow:
    """Compile the window of a pure simulator."""
    batch, compiled = family.batch_simulator(setting), jax.jit(_one_window(family, setting, learner))

    def play(state: Any, starts: States, group: NDArray[Any], key: Any) -> WindowResult:
        state, success, signal, steps, metrics = compiled(state, batch.reset_to(starts), key)
        numbers = {name: float(value) for name, value in metrics.items()}
        return WindowResult(state, np.asarray(success), np.asarray(signal), int(steps), numbers)

    return play


def batch_window(family: Family, setting: Setting, learner: StepLearner) -> PlayBatch:
    """Compile the window of several runs on a pure simulator: one call, and one transfer of all results."""
    batch, one_window = family.batch_simulator(setting), _one_window(family, setting, learner)

    def one_run(state: Any, starts: Any, root: Any, number: Any) -> Any:
        return one_window(state, starts, jax.random.fold_in(root, number))

    compiled = jax.jit(jax.vmap(one_run, in_axes=(0, 0, 0, None)), donate_argnums=0)

    def play(states: Any, starts: Sequence[States], roots: Any, number: int) -> tuple[Any, list[WindowResult]]:
        stacked = {name: np.stack([run[name] for run in starts]) for name in starts[0]}
        states, *results = compiled(states, batch.reset_to(stacked), roots, number)
        success, signal, steps, metrics = jax.device_get(results)
        each = [{name: float(values[i]) for name, values in metrics.items()} for i in range(len(starts))]
        return states, [WindowResult(None, success[i], signal[i], int(steps[i]), each[i]) for i in range(len(starts))]

    return play


def _one_window(family: Family, setting: Setting, learner: StepLearner) -> Callable[[Any, Any, Any], Any]:
    """(state, simulator states, key) -> the new state and a window's results."""
    simulator = family.simulator(setting)

    def one_window(state: Any, starts: Any, key: Any) -> Any:
        acting, updating = jax.random.split(key)
        policy = learner.policy(state)
        episodes = rollout(simulator, lambda observation, key: learner.act(policy, observation, key), starts, acting)
        update = learner.update(state, episodes, updating)
        return update.state, episodes.success.any(axis=0), update.signal, episodes.valid.sum(), update.metrics

    return one_window


def host_window(simulator: GoalSimulator, learner: GoalLearner, n_groups: int, *, with_signal: bool) -> PlayWindow:
    """The window of a simulator on the host; it overwrites the learner's replay."""

    def explore_at(policy: Any, noise: Any, t: Any, rows: Any) -> Any:
        now = jax.tree.map(lambda a: jax.lax.dynamic_index_in_dim(a, t, keepdims=False), noise)
        return learner.explore(policy, rows, now)

    explore = jax.jit(explore_at)
    begin = jax.jit(lambda state, key, n: (learner.policy(state), learner.noise(key, n)), static_argnums=2)

    def update(state: State, episodes: GoalEpisodes, key: Any) -> Any:
        return learner.update(state, episodes, key, n_groups=n_groups, with_signal=with_signal)

    learn = jax.jit(update, donate_argnums=0)

    def play(state: Any, starts: States, group: NDArray[Any], key: Any) -> WindowResult:
        acting, updating = jax.random.split(key)
        n, horizon = len(group), simulator.max_steps
        policy, noise = begin(state, acting, (horizon, n, simulator.n_actions))
        steps = np.arange(horizon, dtype=np.int32)
        episodes, success = collect(
            simulator, lambda t, rows: np.asarray(explore(policy, noise, steps[t], rows)), starts, group
        )
        learned = learn(state, episodes, updating)
        numbers = {name: float(value) for name, value in jax.device_get(learned.metrics).items()}
        signal = np.asarray(learned.signal) if with_signal else None
        return WindowResult(learned.state, success, signal, n * horizon, numbers)

    return play
