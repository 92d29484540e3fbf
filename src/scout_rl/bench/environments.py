"""Settings as Gymnasium environments: train any agent on our banks, and leave a record that ``scout report`` compares.

    import gymnasium
    import scout_rl.bench

    env = gymnasium.make("scout/FetchConflict-v0")  # the training contexts; split="held-out": those of evaluations
    env.reset(options={"context": 3, "level": 2})

Every environment is the unmodified stock one: its observation, action and reward. Ours are the contexts, the starts and
the time limit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.families.family import States, StockEnv
from scout_rl.bench.ladders import SOURCES
from scout_rl.bench.ladders.build import Wanted, load_ladder
from scout_rl.bench.settings.bank import BankPart, ContextBank
from scout_rl.bench.settings.settings import setting as setting_of
from scout_rl.curriculum.checks import whole_number
from scout_rl.files.refusal import Refusal

log = logging.getLogger("scout_rl")

SPLITS = ("train", "held-out")
LADDERS = tuple(name for name, source in SOURCES.items() if not source.from_runs)
OPTIONS = ("context", "level")
RENDER_MODE = "rgb_array"
PIXELS = 480
"""About the longer side of a rendered picture."""


class SettingEnv(gym.Env):  # type: ignore[misc]
    """One environment over all contexts of one part of a setting's bank.

    ``reset(options={"context": x, "level": l})`` starts an episode from that cell. Without a context, one is drawn
    uniformly; without a level, it is 0. Every info has ``context``, ``level`` and ``group`` (the evaluation group), and
    that of a step ``is_success``: whether the family calls the present state a success.
    """

    metadata = {"render_modes": [RENDER_MODE], "render_fps": 30}  # noqa: RUF012  (Gymnasium's name and form)

    def __init__(
        self, setting: str, split: str = "train", ladder: str = "manual", render_mode: str | None = None
    ) -> None:
        _require_one_of("split", split, SPLITS)
        _require_one_of("ladder", ladder, LADDERS)
        _require_one_of("render_mode", render_mode, (None, RENDER_MODE))
        self.setting, self.split, self.ladder, self.render_mode = setting_of(setting), split, ladder, render_mode
        part = self._part = _part(setting, split)
        self.n_contexts, self.n_levels = len(part), self.setting.n_levels if split == "train" else 1
        self.groups = [self.setting.groups[g].name for g in part.evaluation_group]
        """The name of each context's evaluation group."""
        bench_family = family(self.setting.family)
        self.horizon = bench_family.batch_simulator(self.setting).max_steps
        """Steps of an episode that does not end before."""
        pixels = PIXELS if render_mode else 0
        # Contexts of one group share a stock environment. Groups of Meta-World are tasks, each an environment.
        first = [self.groups.index(group.name) for group in self.setting.groups]
        self._players: dict[str, StockEnv] = {
            self.groups[i]: bench_family.stock_env(self.setting, _row(part.contexts, i), pixels=pixels) for i in first
        }
        stock = [player.env for player in self._players.values()]
        self.observation_space = _containing([env.observation_space for env in stock])
        self.action_space = stock[0].action_space
        self.metadata = {**self.metadata, "render_fps": stock[0].metadata["render_fps"]}
        self._tags: dict[str, Any] = {}

    @property
    def player(self) -> StockEnv:
        """The stock environment of the present context."""
        return self._players[self._tags.get("group", self.groups[0])]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode from a cell; a wrong cell is refused."""
        super().reset(seed=seed)
        context, level = self._cell(options or {})
        if level:
            start = {name: array[context, level] for name, array in _scaffolds(self.setting.key, self.ladder).items()}
        else:
            start = _row(_target_starts(self.setting.key, self.split), context)
        self._tags = {"context": context, "level": level, "group": self.groups[context]}
        self.player.restore(start)
        return self.player.shown, dict(self._tags)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step of the stock environment; at the horizon the episode is truncated."""
        result = self.player.step(action)
        info = {**result.info, **self._tags, "is_success": result.success}
        truncated = result.over and not result.terminated
        return self.player.shown, result.reward, result.terminated, truncated, info

    def render(self) -> NDArray[np.uint8] | None:
        """The stock picture; None without ``render_mode="rgb_array"``."""
        return self.player.render() if self.render_mode else None

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """The stock reward for any goal, for hindsight replay; Fetch and PointMaze have one."""
        return self.player.env.compute_reward(achieved_goal, desired_goal, info)

    def close(self) -> None:
        """Close the stock environments."""
        for player in self._players.values():
            player.env.close()

    def _cell(self, options: dict[str, Any]) -> tuple[int, int]:
        """The context and the level that the options name."""
        for name in options:
            _require_one_of("a reset option", name, OPTIONS)
        level = whole_number(options.get("level", 0), "level")
        if level and self.split == "held-out":
            raise Refusal(f"level is {level}, but held-out contexts have no ladder: they start at level 0 only")
        if not 0 <= level < self.n_levels:
            raise Refusal(f"level is {level}, but {self.setting.key} has the levels 0 to {self.n_levels - 1}")
        if "context" not in options:
            return int(self.np_random.integers(self.n_contexts)), level
        context = whole_number(options["context"], "context")
        if not 0 <= context < self.n_contexts:
            last = self.n_contexts - 1
            raise Refusal(f"context is {context}, but {self.setting.key} has the {self.split} contexts 0 to {last}")
        return context, level


def reset_to(env: gym.Env, context: int, level: int) -> tuple[Any, dict[str, Any]]:
    """Start an episode of a (wrapped) setting from a cell: the ``reset_to`` of `with_curriculum`."""
    start: tuple[Any, dict[str, Any]] = env.reset(options={"context": context, "level": level})
    return start


def play_held_out(env: gym.Env, policy: Callable[[Any], Any]) -> tuple[NDArray[np.bool_], list[str]]:
    """Play every held-out context once from level 0; return its outcome and its group, for `Curriculum.evaluation`.

    ``env`` is a setting with ``split="held-out"``, in the wrappers that the policy was trained with. An episode
    succeeds if any of its steps does.
    """
    base = env.unwrapped
    if not (isinstance(base, SettingEnv) and base.split == "held-out"):
        raise Refusal(
            'play_held_out needs a setting made with split="held-out", such as '
            'gymnasium.make("scout/DoorKey-v0", split="held-out")'
        )
    outcomes = [_succeeds(env, policy, context) for context in range(base.n_contexts)]
    return np.array(outcomes, dtype=np.bool_), list(base.groups)


def _succeeds(env: gym.Env, policy: Callable[[Any], Any], context: int) -> bool:
    observation, _ = reset_to(env, context, 0)
    over = False
    while not over:
        observation, _, terminated, truncated, info = env.step(policy(observation))
        if info["is_success"]:
            return True
        over = terminated or truncated
    return False


# What all environments of a process share. Arrays are read only by convention: a restore copies them.


@cache
def _bank(key: str) -> ContextBank:
    return load_bank(setting_of(key))


@cache
def _part(key: str, split: str) -> BankPart:
    return _bank(key).train if split == "train" else _bank(key).held_out


@cache
def _target_starts(key: str, split: str) -> States:
    """[contexts, ...]."""
    return family(setting_of(key).family).target_starts(_part(key, split).contexts)


@cache
def _scaffolds(key: str, source: str) -> States:
    """The ladder of the training contexts [contexts, levels, ...]: built once, then read from the disk."""
    setting = setting_of(key)
    return load_ladder(Wanted(setting, _part(key, "train").contexts, setting.n_levels), source, log.info)[0]


def _row(arrays: Any, index: int) -> States:
    return {name: array[index] for name, array in arrays.items()}


def _containing(spaces: Sequence[gym.Space[Any]]) -> gym.Space[Any]:
    """The space itself if all are equal, else the smallest box around boxes."""
    first: Any = spaces[0]
    if all(space == first for space in spaces):
        return first
    low, high = (np.array([getattr(space, side) for space in spaces]) for side in ("low", "high"))
    return gym.spaces.Box(low.min(axis=0), high.max(axis=0), dtype=first.dtype)


def _require_one_of(what: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        raise Refusal(f"{what} is {value!r}, but must be {' or '.join(map(repr, allowed))}")
