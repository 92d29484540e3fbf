"""A ladder with a codec of one's own, through every way to wrap an environment."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from scout_rl import Curriculum, rules
from scout_rl.codecs.codec import State
from scout_rl.codecs.deepcopy import DeepcopyCodec
from scout_rl.integrations.gymnasium import CONTEXT, LEVEL, Assignments, CurriculumEnv, TargetEnv
from scout_rl.integrations.vector import CurriculumVectorEnv
from scout_rl.ladders.ladder import Ladder

CONTEXTS, LEVELS = 3, 5


class Path(gym.Env):
    """A place on a path; no codec of ours can know what it shows (ten times the place)."""

    observation_space = gym.spaces.Box(0, 1000, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.context, self.place = (options or {}).get("cell", (0, 0))
        return self.show(), {}

    def step(self, action):
        return self.show(), 0.0, True, False, {"is_success": self.place > 2}

    def show(self):
        return np.array([10 * self.context, 10 * self.place], float)


def put(env, context, level):
    return env.reset(options={"cell": (context, level)})


class OwnCodec:
    """The least that a codec is."""

    def get_state(self, env):
        return State({"cell": np.array([env.unwrapped.context, env.unwrapped.place])}, "own", {})

    def set_state(self, env, state):
        return env.reset(options={"cell": tuple(int(i) for i in state.arrays["cell"])})


CODECS = [OwnCodec(), DeepcopyCodec(observe=lambda env: env.show())]


def ladder(codec) -> Ladder:
    return Ladder.from_function(Path(), put, CONTEXTS, LEVELS, codec=codec)


def assignments() -> Assignments:
    return Assignments(Curriculum(rules.Random(), CONTEXTS, LEVELS, seed=1))


def check(observation, info):
    assert observation.tolist() == [10 * info[CONTEXT], 10 * info[LEVEL]]


@pytest.mark.parametrize("codec", CODECS, ids=["own", "deepcopy"])
def test_episodes_start_from_the_states_of_the_ladder(codec):
    env = CurriculumEnv(Path(), assignments(), ladder(codec), "is_success", codec=codec)
    target = TargetEnv(Path(), ladder(codec), [2, 1], "is_success", codec=codec)
    for _ in range(20):
        check(*env.reset())
    assert [target.reset()[0].tolist() for _ in range(3)] == [[20, 0], [10, 0], [20, 0]]


@pytest.mark.parametrize("codec", CODECS, ids=["own", "deepcopy"])
@pytest.mark.parametrize("how", ["sync", "fork", "spawn"])
def test_in_gymnasium_s_vector_environments(how, codec):
    shared = assignments()
    rungs = ladder(codec)
    make = [lambda: CurriculumEnv(Path(), shared, rungs, "is_success", codec=codec)] * 2
    envs = CurriculumVectorEnv(SyncVectorEnv(make) if how == "sync" else AsyncVectorEnv(make, context=how), shared)
    envs.reset()
    for _ in range(20):  # every second step is the reset of an episode of one step
        observations, *_, infos = envs.step(np.zeros(2, int))
        for i in range(2):
            assert observations[i].tolist() == [10 * infos[CONTEXT][i], 10 * infos[LEVEL][i]]
    assert shared.finished == 20
    envs.close()


@pytest.mark.parametrize("how", ["here", "fork", "spawn"])
def test_in_sb3_s_vector_environments(how):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    from scout_rl.integrations.sb3 import assignments_of, target_env, with_curriculum

    codec = CODECS[1]
    rungs = ladder(codec)
    curriculum = Curriculum(rules.Random(), CONTEXTS, LEVELS, seed=1)
    way = {} if how == "here" else {"vec_env_cls": SubprocVecEnv, "vec_env_kwargs": {"start_method": how}}
    env = with_curriculum([Path] * 2, curriculum, rungs, "is_success", codec=codec, **way)
    env.reset()
    for _ in range(10):
        observations, *_ = env.step(np.zeros(2, int))
        for i in range(2):
            check(observations[i], env.reset_infos[i])
    assert assignments_of(env).finished == 20
    env.close()

    wrapped = with_curriculum(DummyVecEnv([Path]), curriculum, rungs, "is_success", codec=codec)
    check(wrapped.reset()[0], wrapped.reset_infos[0])
    assert target_env(Path, rungs, [2], "is_success", codec=codec).reset().tolist() == [[20, 0]]


def test_a_codec_is_for_a_ladder_alone_and_must_be_one():
    for wrap in (
        lambda *start, **codec: CurriculumEnv(Path(), assignments(), *start, "is_success", **codec),
        lambda *start, **codec: TargetEnv(Path(), *start, [0], "is_success", **codec),
    ):
        with pytest.raises(ValueError, match=r"^codec restores the states of a Ladder, but reset_to is a function"):
            wrap(put, codec=OwnCodec())
        with pytest.raises(ValueError, match=r"^codec is of type str, but must be an object with get_state"):
            wrap(ladder(OwnCodec()), codec="deepcopy")
        with pytest.raises(ValueError, match=r"^codec is of type type, but must be an object with get_state"):
            wrap(ladder(OwnCodec()), codec=OwnCodec)


def test_what_is_neither_a_ladder_nor_a_function_is_named_by_its_type():
    with pytest.raises(ValueError, match="reset_to is of type tuple") as caught:
        CurriculumEnv(Path(), assignments(), (ladder(OwnCodec()), OwnCodec()), "is_success")
    assert len(str(caught.value)) < 200, "and not by its arrays"


def test_with_processes_wrong_starts_are_refused_before_any_is_started():
    pytest.importorskip("stable_baselines3")
    from scout_rl.integrations.sb3 import with_curriculum

    def started(*_, **__):
        raise AssertionError("a process was started")

    def wrap(rule, n, start, **codec):
        curriculum = Curriculum(rule, n, LEVELS)
        with_curriculum([Path], curriculum, start, "is_success", vec_env_cls=started, **codec)

    rungs = ladder(OwnCodec())
    with pytest.raises(ValueError, match="the ladder has 3 contexts x 5 levels, the curriculum 4 x 5"):
        wrap(rules.Scout(), 4, rungs, codec=OwnCodec())
    with pytest.raises(ValueError, match="reset_to is a function, which needs none"):
        wrap(rules.Scout(), CONTEXTS, put, codec=OwnCodec())
    with pytest.raises(ValueError, match="rule plr needs the learner's signal"):
        wrap(rules.Plr(), CONTEXTS, put)
