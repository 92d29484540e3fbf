"""verify_codec on environments that the package does not name, and a planted fault for each of its checks."""

from __future__ import annotations

import functools

import gymnasium as gym
import numpy as np
import pytest

from scout_rl.codecs import codec_for, verify_codec, verify_codec_main, verify_codecs
from scout_rl.codecs.compare import difference
from scout_rl.codecs.deepcopy import DeepcopyCodec
from scout_rl.codecs.mujoco import MujocoCodec
from tests.codecs import planted

ENVIRONMENTS = {
    "Ant-v5": "MujocoCodec",
    "HalfCheetah-v5": "MujocoCodec",
    "Hopper-v5": "MujocoCodec",
    "Humanoid-v5": "MujocoCodec",
    "Reacher-v5": "MujocoCodec",
    "AdroitHandDoor-v1": "MujocoCodec",
    "FetchReach-v4": "GoalEnvCodec",
    "FetchPush-v4": "GoalEnvCodec",
    "FetchSlide-v4": "GoalEnvCodec",
    "HandReach-v3": "GoalEnvCodec",
    "HandManipulateBlock-v1": "GoalEnvCodec",
    "AntMaze_UMaze-v5": "GoalEnvCodec",
    "PointMaze_Open_Diverse_GR-v3": "GoalEnvCodec",
    "FrankaKitchen-v1": "GoalEnvCodec",
    "MiniGrid-KeyCorridorS3R2-v0": "MiniGridCodec",
    "MiniGrid-ObstructedMaze-1Dlhb-v0": "MiniGridCodec",
    "MiniGrid-Dynamic-Obstacles-6x6-v0": "MiniGridCodec",
    "BabyAI-GoToSeq-v0": "MiniGridCodec",
    "BabyAI-UnlockPickup-v0": "MiniGridCodec",
    "CartPole-v1": "DeepcopyCodec",
    "Pendulum-v1": "DeepcopyCodec",
}
TASKS = ("drawer-open-v3", "door-open-v3", "peg-insert-side-v3", "shelf-place-v3")


FEW = ("Ant-v5", "HalfCheetah-v5", "Hopper-v5", "FetchPush-v4", "BabyAI-GoToSeq-v0", "CartPole-v1", "drawer-open-v3")
"""At least one environment per codec."""


@pytest.mark.parametrize(
    "names", [FEW, pytest.param((*ENVIRONMENTS, *TASKS), marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_environments_we_do_not_name_restore_exactly(names):
    """One test, so that one new process plays the states of all of them."""
    makers = [functools.partial(planted.metaworld_task, name) if name in TASKS else name for name in names]
    verdicts = dict(zip(names, verify_codecs(makers), strict=True))
    assert {verdict.codec for verdict in verdicts.values()} == {*ENVIRONMENTS.values(), "MetaWorldCodec"}
    assert [str(v) for v in verdicts.values() if not v.ok] == []
    for name, verdict in verdicts.items():
        assert verdict.codec == ENVIRONMENTS.get(name, "MetaWorldCodec")
        for check in ("round trip", "restore vs restore", "fresh environment", "new process", "time limit"):
            assert verdict.check(check).result == "pass", str(verdict)
        has_goal = verdict.codec not in ("MujocoCodec", "DeepcopyCodec")
        assert verdict.check("goal").result == ("pass" if has_goal else "skipped")

    # Step counters are found without being named.
    assert "TimeLimit._elapsed_steps" in verdicts["Hopper-v5"].check("time limit").text
    assert "step_count" in verdicts["BabyAI-GoToSeq-v0"].check("time limit").text
    assert "curr_path_length" in verdicts["drawer-open-v3"].check("time limit").text

    # Drift has a size. HalfCheetah observes qpos and qvel, which do not lag; Ant contact forces, which do.
    still, lagging = verdicts["HalfCheetah-v5"].drift, verdicts["Ant-v5"].drift
    assert still.at_restore is None
    assert still.after is None
    assert 0 < lagging.at_restore.size < 5


def caught(env, codec, check, word="", **options):
    verdict = verify_codec(env, codec, **{"new_process": False, **options})
    assert check in verdict.failed, str(verdict)
    assert word in verdict.check(check).text, str(verdict)
    return verdict


def test_right_codec_of_an_own_environment():
    verdict = verify_codec(planted.walk, planted.WalkCodec())
    assert verdict.ok, str(verdict)
    assert verdict.check("new process").result == "pass"
    assert verdict.check("round trip").text.endswith("came later and stay: attributes.last")
    assert "restores exactly" in str(verdict)


def test_forgotten_velocity_is_named():
    verdict = caught("Hopper-v5", planted.ForgetsVelocity(), "restore vs restore", "qvel")
    assert "qvel" in verdict.check("round trip").text
    assert "does NOT restore" in str(verdict)


def test_shifted_place_shows_as_drift_of_its_size():
    verdict = caught("Hopper-v5", planted.Shifts(), "round trip", "qpos")
    assert verdict.check("restore vs restore").result == "pass"
    assert verdict.drift.at_restore.size == pytest.approx(1e-3, rel=1e-6)


def test_forgotten_goal():
    caught("FetchReach-v4", planted.ForgetsGoal(), "goal", "goal of state")


def test_time_limit_that_runs_on_in_a_wrapper():
    caught("Hopper-v5", planted.ContinuesTime(), "time limit", "TimeLimit._elapsed_steps")


def test_time_limit_that_runs_on_in_the_environment():
    verdict = caught(planted.walk, None, "time limit", "Walk.t is 6 after a restore")
    assert "cut after 6 steps, not 12" in verdict.check("time limit").text
    assert verdict.check("time limit").text.endswith("name what counts the steps: DeepcopyCodec(counters=('t',))")


def test_wrapper_that_counts_the_steps_of_all_episodes_is_no_time_limit():
    verdict = verify_codec(planted.Counts(gym.make("Pendulum-v1")), new_process=False)
    assert verdict.ok, str(verdict)
    assert verdict.check("time limit").text == "restarted: TimeLimit._elapsed_steps"
    assert verdict.check("wrappers").text == "kept across episodes: Counts.steps"


def test_objects_that_print_themselves_at_length_are_cut():
    env = planted.Walk()
    env.reset(seed=0)
    env.world = planted.World()
    with pytest.raises(ValueError, match=r"it holds world \(World: world with body body") as error:
        codec_for(env)
    assert len(str(error.value)) < 400
    env = planted.Walk()
    env.reset(seed=0)
    env.bags = {name: planted.Bag() for name in range(200)}
    verdict = verify_codec(env, planted.WalkCodec(), new_process=False)
    assert " and 194 more" in verdict.check("saving").text
    assert max(map(len, str(verdict).splitlines())) < 800


def test_drift_and_exactness_are_told_apart():
    printed = str(verify_codec("Ant-v5", new_process=False))
    assert printed.splitlines()[0] == "Ant-v5 (MujocoCodec) restores exactly: the same each time"
    last = printed.splitlines()[-1]
    assert last.startswith("  compared with the uninterrupted episode: at the restore observation[")


def test_state_that_only_this_process_has():
    verdict = caught(planted.walk, planted.OnlyHere(), "new process", "KeyError", new_process=True)
    assert verdict.check("restore vs restore").result == "pass"


def test_state_that_only_this_environment_has():
    caught(planted.walk, planted.OnlyThisEnv(), "fresh environment", "otherwise")


def test_observation_of_another_form():
    caught(planted.walk, planted.WrongForm(), "observation", "form")


def test_observation_that_is_not_the_states():
    caught(planted.walk, planted.WrongObservation(), "observation", "not the original")


def test_wrapper_that_shows_what_it_never_resets_is_named():
    env = planted.Adds(gym.make("Hopper-v5"))
    verdict = caught(env, None, "restore vs restore", "equal below Adds")
    assert "Adds.shown" in verdict.check("wrappers").text


def test_normalising_wrapper_is_named():
    env = gym.wrappers.NormalizeObservation(gym.make("Hopper-v5"))
    caught(env, None, "restore vs restore", "equal below NormalizeObservation")


def test_wrapper_that_keeps_something_unseen_is_a_note():
    verdict = verify_codec(planted.Remembers(gym.make("Hopper-v5")), new_process=False)
    assert verdict.ok
    assert verdict.check("wrappers") == ("wrappers", "note", "kept across episodes: Remembers.total")
    assert verdict.check("fresh environment").result == "skipped"


def test_wrapper_that_moves_the_state_in_its_reset():
    caught(lambda: planted.Moves(planted.Walk()), planted.WalkCodec(), "round trip", "attributes")


def test_stateful_wrappers_of_gymnasium_restart():
    env = gym.make("Hopper-v5")
    env = gym.wrappers.TimeAwareObservation(gym.wrappers.RecordEpisodeStatistics(env))
    env = gym.wrappers.FrameStackObservation(gym.wrappers.StickyAction(env, 0.0), 3)
    verdict = verify_codec(env, new_process=False)
    assert verdict.ok, str(verdict)
    assert verdict.check("wrappers").result == "pass", str(verdict)
    text = verdict.check("time limit").text
    assert "RecordEpisodeStatistics.episode_lengths" in text
    assert "TimeAwareObservation.timesteps" in text


def test_wrapper_history_is_no_part_of_the_state():
    """A stack of frames starts anew at a restore, as at a reset: not the original's, and no fault."""
    env = gym.make("CartPole-v1")
    verdict = verify_codec(gym.wrappers.FrameStackObservation(env, 3), new_process=False)
    assert verdict.ok, str(verdict)
    assert verdict.check("observation").result == "pass"
    assert verdict.drift.at_restore is not None


def test_environment_whose_own_reset_shows_the_wrong_thing_is_noted():
    # It gives the agent a box to carry after it has computed the observation.
    verdict = verify_codec("BabyAI-PutNextS5N2Carrying-v0", new_process=False)
    assert verdict.ok, str(verdict)
    assert "reset() itself shows another observation than its state" in verdict.check("observation").text


def test_code_that_a_restore_tears_from_its_data():
    """All restores are equally frozen: only the original tells."""
    text = "state 0 goes on otherwise than the uninterrupted episode: step 1/observation[0]"
    verdict = caught(planted.Closed, planted.TearsApart(), "original", text, new_process=True)
    assert verdict.failed == ("original",)
    assert verdict.check("new process").result == "pass"


@pytest.mark.parametrize(("env", "named"), [(planted.Board, "flat"), (planted.Dispatch, "moves")])
def test_views_and_bound_methods_restore_exactly_in_memory(env, named):
    verdict = verify_codec(env)
    assert verdict.ok, str(verdict)
    assert verdict.check("original").text.startswith("goes on as the uninterrupted episode did, over ")
    assert verdict.drift.after is None
    assert verdict.check("round trip").text.endswith("only their plain data is compared")
    assert f"cannot be saved: {named}" in verdict.check("saving").text
    assert verdict.check("new process").text.startswith(f"the states live in this process only: {named}")


def test_views_that_a_codec_copies_apart():
    verdict = caught(planted.Board, planted.TearsApart(), "original", "observation[")
    assert verdict.check("restore vs restore").result == "pass"


def test_counter_that_starts_anew_is_no_drift_of_the_environment():
    verdict = verify_codec(planted.Rewarded, planted.RewardedCodec(), new_process=False)
    assert verdict.ok, str(verdict)
    assert verdict.drift.after.size == pytest.approx(0.2)  # the counter stood at 10, then 20


def test_wrapper_that_changes_actions_and_resets_is_no_drift_of_the_environment():
    verdict = verify_codec(lambda: planted.Waits(planted.Board()), new_process=False)
    assert verdict.ok, str(verdict)


def test_codec_that_claims_nothing_is_not_held_to_the_original():
    verdict = verify_codec("Ant-v5", new_process=False)
    assert verdict.ok
    assert verdict.drift.after is not None
    assert verdict.check("original").result == "skipped"


def test_environment_no_array_can_hold_is_refused_by_name():
    env = planted.Walk()
    env.reset(seed=0)
    env.link = planted.Socket().handle
    with pytest.raises(ValueError, match=r"no codec fits Walk: it holds link \(memoryview: "):
        codec_for(env)


def test_lambda_is_said_to_be_out_of_reach_of_a_new_process():
    verdict = verify_codec(lambda: planted.Walk(), planted.WalkCodec())
    assert verdict.ok
    assert verdict.check("new process").result == "skipped"


class Maker:
    """Its bound method has a name that another process finds, and an object that it has not."""

    def make(self):
        return planted.Walk()


class HoldsAnArray(planted.WalkCodec):
    def __init__(self):
        super().__init__()
        self.scale = np.ones(3)


@pytest.mark.parametrize("codec", [planted.WalkCodec(), HoldsAnArray()], ids=["plain", "array"])
def test_a_method_of_an_object_is_out_of_reach_of_a_new_process(codec):
    verdict = verify_codec(Maker().make, codec)
    assert verdict.ok, str(verdict)
    assert verdict.check("new process").result == "skipped"


class Steps:
    size = 0.5

    @classmethod
    def make(cls):
        env = planted.Walk()
        env.action_space = gym.spaces.Discrete(2, start=int(cls.size))
        return env


class LargeSteps(Steps):
    size = 4.0


def test_an_inherited_class_method_makes_the_same_environment_in_a_new_process():
    verdict = verify_codec(LargeSteps.make, planted.WalkCodec())
    assert verdict.ok, str(verdict)
    assert verdict.check("new process").result == "pass"


def test_a_codec_that_holds_an_array_is_made_anew_only_where_that_is_certain():
    verdict = verify_codec(planted.Walk, HoldsAnArray())
    assert verdict.check("new process").result == "skipped", str(verdict)


def test_an_environment_keeps_the_methods_it_was_given():
    env = planted.Walk()
    env.step = functools.partial(planted.Walk.step, env)
    given = env.step
    assert verify_codec(env, planted.WalkCodec()).ok
    assert env.step is given
    assert "reset" not in vars(env)


def test_equal_infinities_are_no_difference():
    ours, theirs = ({"limits": np.array([np.inf, -np.inf, np.nan, x])} for x in (1.0, 1.5))
    assert difference(ours, ours) is None
    worst = difference(ours, theirs)
    assert (worst.where, worst.size) == ("limits[3]", 0.5)
    assert difference(ours, {"limits": np.array([np.inf, np.inf, np.nan, 1.0])}).size == np.inf


def test_entry_point_prints_the_verdict_and_returns_the_status(capsys):
    assert verify_codec_main("Hopper-v5") == 0
    assert "Hopper-v5 (MujocoCodec) restores exactly" in capsys.readouterr().out


def test_entry_point_on_an_unknown_id(capsys):
    assert verify_codec_main("NoSuchTask-v0") == 1
    assert "NoSuchTask" in capsys.readouterr().out


def test_an_environment_that_is_already_made_goes_to_a_new_process_by_its_spec():
    verdict = verify_codec(gym.wrappers.TimeAwareObservation(gym.make("Hopper-v5")))
    assert verdict.ok, str(verdict)
    assert verdict.check("new process").result == "pass"


def test_mujoco_environment_of_no_known_class():
    verdict = verify_codec(planted.Pendulums, MujocoCodec(observe=planted.Pendulums.angles))
    assert verdict.ok, str(verdict)
    assert codec_for(planted.Pendulums()).key == "mujoco"
    assert verdict.check("new process").result == "skipped"  # the codec has an argument of its own


def test_entry_point_says_in_one_sentence_why_there_is_no_codec(capsys, monkeypatch):
    monkeypatch.setattr(MujocoCodec, "fits", staticmethod(lambda env: False))
    monkeypatch.setattr(DeepcopyCodec, "left_out", lambda codec, env: ["link (socket)"])
    assert verify_codec_main("Hopper-v5") == 1
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert "no codec fits HopperEnv: it holds link (socket), which cannot be copied" in printed
