"""A ladder as the reset operator: one recorded trajectory a context, restored inside reset()."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from scout_rl import Curriculum, rules
from scout_rl.codecs import codec_for
from scout_rl.integrations.gymnasium import CONTEXT, LEVEL, Assignments, CurriculumEnv, TargetEnv
from scout_rl.integrations.starts import LadderStart
from scout_rl.ladders.ladder import Ladder
from tests.integrations.probes import Probe


class Walk(Probe):
    """A walk on a line: [context, position, steps, 0], with noise from the environment's generator."""

    def step(self, action):
        self.state[2] += 1
        self.state[1] += 0.1 * self.np_random.random()
        done = bool(self.state[2] >= 4)
        return self.observe(), 0.0, False, done, {"is_success": False}


def ladder() -> Ladder:
    env = Walk()
    codec = codec_for(env)
    cells = []
    for context in range(3):
        cells.append([])
        for level in range(5):
            env.reset(seed=0, options={"context": context, "level": level})
            cells[-1].append(codec.get_state(env))
    return Ladder.from_states(cells)


@pytest.mark.parametrize("make_start", [ladder, lambda: LadderStart(ladder(), codec_for(Walk()))])
def test_episodes_start_from_the_ladder_s_state_and_noise_goes_on(make_start):
    assignments = Assignments(Curriculum(rules.Random(), 3, 5, seed=1))
    start = make_start()
    env_fns = [lambda: CurriculumEnv(gym.wrappers.TimeLimit(Walk(), 4), assignments, start, "is_success")] * 2
    envs = SyncVectorEnv(env_fns, autoreset_mode=AutoresetMode.SAME_STEP)
    observations, infos = envs.reset(seed=5)
    seen, moves = set(), []
    for t in range(60):
        if t % 4 == 0:
            for i in range(2):
                cell = (int(infos[CONTEXT][i]), int(infos[LEVEL][i]))
                assert tuple(observations[i]) == (*cell, 0, 0)
                seen.add(cell)
        before = observations
        observations, _, _, truncated, infos = envs.step(np.zeros(2, int))
        if t % 4 == 0:
            moves.append(observations[0][1] - before[0][1])
        assert truncated.all() == (t % 4 == 3)
    assert len(seen) > 8
    assert len({round(m, 9) for m in moves}) == len(moves), "every episode has its own noise"


def test_a_ladder_of_another_size_is_refused_at_once():
    assignments = Assignments(Curriculum(rules.Scout(), 4, 5))
    with pytest.raises(ValueError, match="3 contexts x 5 levels, the curriculum 4 x 5"):
        CurriculumEnv(Walk(), assignments, ladder(), "is_success")


def test_evaluation_from_a_ladder_is_at_level_0():
    env = TargetEnv(Walk(), ladder(), [2, 1], "is_success")
    assert [env.reset()[0][:2].tolist() for _ in range(3)] == [[2, 0], [1, 0], [2, 0]]
