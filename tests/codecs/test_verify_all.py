"""verify_codec on every registered environment of the families we know: evidence, too slow for make test."""

from __future__ import annotations

import functools

import gymnasium as gym
import gymnasium_robotics
import minigrid  # noqa: F401  (registers its environments)
import pytest

from scout_rl.codecs import verify_codec
from tests.codecs import planted

gym.register_envs(gymnasium_robotics)


def registered(*starts: str) -> list[str]:
    """The newest version of each environment whose id starts so."""
    newest: dict[str, tuple[int, str]] = {}
    for name, spec in gym.registry.items():
        if name.startswith(starts) and "mujoco_py" not in str(spec.entry_point):
            newest[spec.name] = max(newest.get(spec.name, (-1, "")), (spec.version or 0, name))
    return sorted(name for _, name in newest.values())


MUJOCO = registered(
    "Ant-",
    "HalfCheetah",
    "Hopper",
    "Humanoid",
    "Inverted",
    "Pusher",
    "Reacher",
    "Swimmer",
    "Walker2d",
    "Adroit",
)
GOALS = registered(
    "FetchReach", "FetchPush", "FetchSlide", "FetchPick", "Hand", "PointMaze", "AntMaze", "FrankaK"
)
GRIDS = registered("MiniGrid-", "BabyAI-")


def metaworld_tasks() -> list[str]:
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS

    return sorted(ALL_V3_ENVIRONMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*MUJOCO, *GOALS, *GRIDS])
def test_every_registered_environment(name):
    verdict = verify_codec(name, new_process=False)
    assert verdict.ok, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("name", metaworld_tasks())
def test_every_metaworld_task(name):
    verdict = verify_codec(functools.partial(planted.metaworld_task, name), new_process=False)
    assert verdict.ok, str(verdict)
