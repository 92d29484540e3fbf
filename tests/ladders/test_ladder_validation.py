"""Validation: a ladder from a demonstration is 0% invalid, and each planted fault is found in its cell."""

from __future__ import annotations

import gymnasium as gym
import gymnasium_robotics
import numpy as np
import pytest

from scout_rl.codecs import codec_for
from scout_rl.ladders.ladder import Ladder
from scout_rl.ladders.validate import validate
from tests.codecs import planted
from tests.ladders.trajectories import open_drawer, pick_up

gym.register_envs(gymnasium_robotics)
FINGERS = ("robot0:l_gripper_finger_joint", "robot0:r_gripper_finger_joint")


@pytest.fixture(scope="module")
def drawers():
    env = planted.metaworld_task("drawer-open-v3")
    return env, [open_drawer(env, seed) for seed in (3, 4)]


def test_ladder_of_a_demonstration_has_no_invalid_cell(drawers):
    env, trajectories = drawers
    assert all(t.first_success is not None and len(t.states) > 50 for t in trajectories)
    for progress in ("time", "remaining"):
        ladder = Ladder.from_trajectories(trajectories, progress=progress)
        report = validate(ladder, env)
        assert report.ok, str(report)
        assert report.invalid_rate == 0.0
    # The rungs climb: the drawer is opened further from level to level.
    codec = codec_for(env)
    openings = []
    for level in range(5):
        observation, _ = codec.set_state(env, ladder.states(0, level)[0])
        openings.append(np.linalg.norm(observation[4:7] - observation[36:39]))
    assert openings == sorted(openings, reverse=True)
    assert openings[0] - openings[-1] > 0.1


def test_ladder_finishes_the_task_from_every_level(drawers):
    """The scripted policy succeeds from every rung, the sooner the higher the level."""
    from metaworld.policies import ENV_POLICY_MAP

    env, trajectories = drawers
    codec, ladder = codec_for(env), Ladder.from_trajectories(trajectories[:1])
    steps = []
    for level in range(ladder.n_levels):
        observation, _ = codec.set_state(env, ladder.states(0, level)[0])
        policy = ENV_POLICY_MAP["drawer-open-v3"]()
        steps.append(0)
        while steps[-1] < 200:
            steps[-1] += 1
            action = np.clip(policy.get_action(observation), -1, 1).astype(np.float32)
            observation, _, _, _, info = env.step(action)
            if info["success"]:
                break
        assert info["success"]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 4 * steps[-1]


def replaced(ladder, context, level, state):
    cells = [list(levels) for levels in ladder.cells]
    cells[context][level] = state
    return Ladder.from_states(cells)


def test_planted_faults_are_found_in_their_cell(drawers):
    env, trajectories = drawers
    ladder = Ladder.from_trajectories(trajectories)

    def only_problem(context, level, state, **options):
        report = validate(replaced(ladder, context, level, state), env, **options)
        assert report.invalid_cells == {(context, level)}, str(report)
        assert report.invalid_rate == 0.1
        return report.problems[0].reason

    good = ladder.states(0, 2)[0]
    broken = good.arrays["qpos"].copy()
    broken[3] = np.nan
    assert only_problem(0, 2, good.replace(qpos=broken)) == "not finite: qpos"
    assert only_problem(0, 3, ladder.states(1, 3)[0]) == "carries the goal of another context"
    done = trajectories[1].states[trajectories[1].first_success]
    assert only_problem(1, 0, done) == "a level-0 start that is already a success"
    foreign = good.replace(model_identity=np.zeros(32, dtype=np.uint8))
    assert only_problem(1, 4, foreign).startswith("cannot be restored: this state belongs to another")
    far = good.arrays["qpos"].copy()
    far[9] = 0.5
    inside = lambda env: abs(env.unwrapped.data.qpos[9]) < 0.4  # noqa: E731
    assert only_problem(0, 2, good.replace(qpos=far), inside=inside) == "out of bounds"


def test_restores_that_differ_are_found():
    class Forgets(planted.WalkCodec):
        def set_state(self, env, state, **options):
            return super().set_state(env, state, generators=False)

    env, codec = planted.Walk(), Forgets()
    ladder = Ladder.from_function(env, lambda env, x, level: env.reset(seed=x), 1, 2, codec=codec)
    report = validate(ladder, env, codec)
    assert {p.reason.split(":")[0] for p in report.problems} == {"two restores differ"}
    assert validate(ladder, planted.walk, planted.WalkCodec()).ok


def test_goals_may_be_given(drawers):
    env, trajectories = drawers
    ladder = Ladder.from_trajectories(trajectories)
    goal = codec_for(env).goal
    goals = [goal(t.states[0]) for t in trajectories]
    assert validate(ladder, env, goals=goals).ok
    assert validate(ladder, env, goals=goals[::-1]).invalid_rate == 1.0


def test_neighbours_that_are_almost_the_same_are_warned_of(drawers):
    env, trajectories = drawers
    ladder = Ladder.from_trajectories(trajectories)
    report = validate(replaced(ladder, 1, 3, ladder.states(1, 2)[0]), env)
    assert report.ok
    assert report.warnings == ("levels 2 and 3 of context 1 are almost the same state",)
    assert "0 of 10 cells invalid (0.0%)" in str(report)
    assert "warning: levels 2 and 3" in str(report)


def test_dropped_grasp_is_found():
    env = gym.make("FetchPickAndPlace-v4", max_episode_steps=60)
    trajectory = pick_up(env, seed=5)
    assert trajectory.first_success is not None
    height = trajectory.achieved[:, 2]

    def carried(trajectory):
        """Progress after the grasp: the object's height from the table to the first success."""
        return (height - height[0]) / (height[trajectory.first_success] - height[0])

    ladder = Ladder.from_trajectories([trajectory], (0, 0.3, 0.6, 0.9), carried)

    def holds(env):
        u = env.unwrapped
        grip = u._utils.get_site_xpos(u.model, u.data, "robot0:grip")
        thing = u._utils.get_site_xpos(u.model, u.data, "object0")
        return bool(np.linalg.norm(grip - thing) < 0.06)

    settle = [np.array([0, 0, 0, -1], dtype=np.float32)] * 6
    options = {"holds": holds, "settle": settle}
    report = validate(ladder, env, **options)
    assert report.ok, str(report)

    lost = ladder.states(0, 2)[0]
    at = {n: env.unwrapped.model.joint(n).qposadr[0] for n in ("object0:joint", *FINGERS)}
    below = lost.arrays["qpos"].copy()
    below[at["object0:joint"] + 2] -= 0.045  # lower, and the fingers open: it falls out of them
    below[[at[finger] for finger in FINGERS]] = 0.05
    report = validate(replaced(ladder, 0, 2, lost.replace(qpos=below)), env, **options)
    assert report.invalid_cells == {(0, 2)}, str(report)
    assert "does not hold: dropped after" in report.problems[0].reason
    assert validate(replaced(ladder, 0, 2, lost.replace(qpos=below)), env, held_levels=[3], **options).ok
