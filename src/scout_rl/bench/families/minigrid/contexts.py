"""A MiniGrid context: a stock layout and the agent's pose, generated from a seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import minigrid  # noqa: F401  (registers the environments)
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families.family import States
from scout_rl.bench.families.group_sampling import fill_from, group_of
from scout_rl.bench.families.minigrid.codec import read_stock
from scout_rl.bench.families.minigrid.solver import solve
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting
from scout_rl.files.refusal import Refusal

_STATE = ("grid", "agent_pos", "agent_dir", "carrying", "step_count")
_MAX_CANDIDATES = 200_000


def stock_env(setting: Setting, **options: Any) -> Any:
    """The unmodified environment of the setting, without Gymnasium's checking wrappers."""
    if setting.horizon:
        options["max_steps"] = setting.horizon
    return gymnasium.make(setting.task, disable_env_checker=True, **options).unwrapped


def target_starts(contexts: Mapping[str, NDArray[Any]]) -> States:
    """The level-0 states [contexts, ...], which the contexts hold."""
    return {name: np.array(contexts[name]) for name in _STATE}


def sample_bank(setting: Setting) -> ContextBank:
    """Draw stock seeds until every group of both parts is full; no layout comes twice."""
    return fill_from(setting, _candidates(setting))


def _candidates(setting: Setting) -> Iterator[tuple[States, int]]:
    """Distinct solvable layouts of any group with the group's index, in the order of the drawn seeds."""
    env = stock_env(setting)
    generator = np.random.default_rng(setting.bank_seed)
    contents: set[bytes] = set()
    for _ in range(_MAX_CANDIDATES):
        seed = int(generator.integers(2**31))
        env.reset(seed=seed)
        state = read_stock(env)
        content = b"".join(state[name].tobytes() for name in _STATE)
        if content in contents:
            continue
        contents.add(content)
        group = _group_of(setting, state, env.max_steps)
        if group >= 0:
            yield {"seed": np.array(seed, dtype=np.int64), **state}, group
    raise Refusal(f"setting {setting.key!r}: its groups cannot be filled from {_MAX_CANDIDATES} stock layouts")


def _group_of(setting: Setting, state: States, max_steps: int) -> int:
    """The first group whose bounds the context meets; -1 if there is none, or no solution in time."""
    actions = solve(state)
    if actions is None or len(actions) > max_steps:
        return -1
    return group_of(setting.groups, {"solution_length": len(actions)})
