"""Evaluation during SB3 training: held-out contexts, repeated contexts, normalised observations."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")

from stable_baselines3.common.callbacks import EvalCallback  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402

from scout_rl import Curriculum, rules  # noqa: E402
from scout_rl.cli import main  # noqa: E402
from scout_rl.integrations.sb3 import CurriculumCallback, evaluate, target_env, with_curriculum  # noqa: E402
from scout_rl.records.tables import read_rows  # noqa: E402
from tests.integrations.probes import CONTEXTS, LEVELS, Probe, Spy, reset_to  # noqa: E402
from tests.integrations.test_sb3 import Logged  # noqa: E402

HELD_OUT = [CONTEXTS, CONTEXTS + 1]
LABELS = ["near"] * 3 + ["far"] * 3


class Fated(Probe):
    """Ends at once, and succeeds in odd contexts."""

    def step(self, action):
        super().step(action)
        return self.observe(), 0.0, True, False, {"is_success": bool(self.state[0] % 2)}


class Turns(Probe):
    """Ends at once, and succeeds in every third episode."""

    episodes = 0

    def step(self, action):
        super().step(action)
        self.episodes += 1
        return self.observe(), 0.0, True, False, {"is_success": self.episodes % 3 == 0}


class Zero:
    """Stands for a trained model."""

    def predict(self, observation, deterministic):
        return np.zeros(len(observation), int), None


def ppo(env):
    return sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")


def training():
    return with_curriculum([Probe] * 2, Spy(), reset_to, "is_success")


def evaluation(contexts, kind=Fated):
    return target_env(kind, reset_to, contexts, "is_success")


def learn(**callback):
    """Train with the callback; return it and the newest of everything that was logged."""
    logged = Logged()
    callback = CurriculumCallback(eval_every=64, **callback)
    ppo(training()).learn(128, callback=[callback, logged])
    return callback, {k: v for k, v in logged.values.items() if k.startswith("scout/eval")}


def test_without_labels_any_context_is_in_the_one_group():
    callback, values = learn(eval_env=evaluation(HELD_OUT))
    assert callback.evaluations == [(n, {6: False, 7: True}) for n in (64, 128)]
    assert values == {"scout/eval_success/all": 0.5, "scout/eval_worst_group": 0.5}


def test_training_contexts_keep_their_labels():
    _, values = learn(eval_env=evaluation([0, 1, 3]), evaluation_group=LABELS)
    assert values == {
        "scout/eval_success/near": 0.5,
        "scout/eval_success/far": 1.0,
        "scout/eval_worst_group": 0.5,
    }


@pytest.mark.parametrize("labels", [LABELS, None])
def test_held_out_contexts_have_labels_of_their_own(labels):
    _, values = learn(eval_env=evaluation([6, 7, 9]), evaluation_group=labels, eval_group=["new", "odd", "odd"])
    assert values == {"scout/eval_success/new": 0.0, "scout/eval_success/odd": 1.0, "scout/eval_worst_group": 0.0}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"eval_env": HELD_OUT, "evaluation_group": LABELS},
            "eval_env plays context 6, but evaluation_group labels the 6 training contexts only: .* with eval_group",
        ),
        ({"eval_env": HELD_OUT, "eval_group": LABELS}, r"eval_group has shape \(6,\), but eval_env plays 2 contexts"),
        ({"eval_env": None}, "the evaluation environment must come from target_env"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_at_training_start(arguments, sentence):
    contexts = arguments["eval_env"]
    arguments = {**arguments, "eval_env": DummyVecEnv([Probe]) if contexts is None else evaluation(contexts)}
    model = ppo(training())
    with pytest.raises(ValueError, match=sentence):
        model.learn(128, callback=CurriculumCallback(eval_every=64, **arguments))
    assert model.num_timesteps == 0


def test_labels_of_no_evaluation_are_refused():
    with pytest.raises(ValueError, match="eval_group labels the contexts of eval_env: there is none"):
        CurriculumCallback(eval_group=["a"])


def test_a_context_that_is_listed_several_times_is_played_and_counted_as_often():
    """Every third episode succeeds: of contexts 0 0 0 0 1 1 2 that is one of four, one of two, and none."""
    contexts = [0, 0, 0, 0, 1, 1, 2]
    assert evaluate(Zero(), evaluation(contexts, Turns)) == {0: 0.25, 1: 0.5, 2: False}
    callback, values = learn(eval_env=evaluation(contexts, Turns), evaluation_group=["a", "b", "b", "b", "b", "b"])
    assert callback.evaluations[0][1] == {0: 0.25, 1: 0.5, 2: False}
    second = {"scout/eval_success/a": 0.25, "scout/eval_success/b": 1 / 3}  # episodes 8..14: 9 in a, 12 in b
    assert values == pytest.approx({**second, "scout/eval_worst_group": 0.25})


# -- normalisation -------------------------------------------------------------------------------------------------


def normalised_inside():
    return with_curriculum(VecNormalize(make_vec_env(Probe, n_envs=2)), Spy(), reset_to, "is_success")


@pytest.mark.parametrize("make", [lambda: VecNormalize(training()), normalised_inside], ids=["outside", "inside"])
@pytest.mark.parametrize("kwargs", [{}, {"training": False, "norm_reward": False}], ids=["default", "fixed"])
def test_the_policy_is_evaluated_on_what_it_was_trained_on(make, kwargs, monkeypatch):
    env, eval_env = make(), VecNormalize(evaluation(range(CONTEXTS), Probe), **kwargs)
    model = ppo(env)
    statistics = env if isinstance(env, VecNormalize) else env.venv
    predict, seen = model.predict, []

    def spy(observation, **how):
        expected = statistics.normalize_obs(eval_env.get_original_obs())
        np.testing.assert_array_equal(observation, expected)
        seen.append(observation)
        return predict(observation, **how)

    monkeypatch.setattr(model, "predict", spy)
    callback = CurriculumCallback(eval_env=eval_env, eval_every=64)
    model.learn(256, callback=callback)
    assert len(callback.evaluations) == 4
    assert len(seen) > 4 * CONTEXTS
    assert statistics.obs_rms.count == pytest.approx(2 * 129, abs=1), "evaluation adds nothing to the statistics"


def test_sb3_s_own_callback_evaluates_a_normalised_training_too():
    env, eval_env = VecNormalize(training()), VecNormalize(evaluation([1, 3]), training=False, norm_reward=False)
    ppo(env).learn(64, callback=EvalCallback(eval_env, eval_freq=16, n_eval_episodes=2, verbose=0))
    assert eval_env.obs_rms.count > 60


@pytest.mark.parametrize("here", [True, False])
def test_one_side_normalised_is_refused_at_training_start(here):
    env, eval_env = training(), evaluation([0, 1])
    env, eval_env = (VecNormalize(env), eval_env) if here else (env, VecNormalize(eval_env))
    model = ppo(env)
    sentence = (
        "training environment normalises observations and the evaluation environment does not"
        if here
        else "training environment does not and the evaluation environment normalises observations"
    )
    with pytest.raises(ValueError, match=sentence):
        model.learn(64, callback=CurriculumCallback(eval_env=eval_env))
    assert model.num_timesteps == 0


def test_rewards_alone_may_be_normalised_on_one_side():
    env = VecNormalize(training(), norm_obs=False)
    callback = CurriculumCallback(eval_env=evaluation([1]), eval_every=64)
    ppo(env).learn(64, callback=callback)
    assert callback.evaluations == [(64, {1: True})]


def test_evaluating_by_hand_without_the_normalisation_is_refused():
    model = ppo(VecNormalize(training()))
    with pytest.raises(ValueError, match="trained on normalised observations"):
        evaluate(model, evaluation([0]))
    assert evaluate(model, VecNormalize(evaluation([0, 1]))) == {0: False, 1: True}


def test_a_save_path_alone_saves_when_training_ends(tmp_path):
    model = ppo(training())
    model.learn(128, callback=CurriculumCallback(save_path=tmp_path / "deep" / "run"))
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["run_128_steps.zip"]


def test_evaluations_are_recorded_for_the_report(tmp_path):
    """PPO on the toy, twice: the two are compared. Probe's episodes are 8 steps: several windows per evaluation."""
    for name, kind in (("always", Fated), ("turns", Turns)):
        curriculum = Curriculum(rules.Scout(), CONTEXTS, LEVELS, window=2, log_dir=tmp_path / "rep" / name)
        env = with_curriculum([Fated] * 2, curriculum, reset_to, "is_success")
        callback = CurriculumCallback(
            eval_env=evaluation([1, 3, 0], kind), eval_group=["odd", "odd", "even"], eval_every=32
        )
        ppo(env).learn(128, callback=callback)
        rows = read_rows(tmp_path / "rep" / name / "evaluations.jsonl")
        assert [len(row["outcomes"]) for row in rows] == [3] * len(callback.evaluations)
        assert [row["window"] for row in rows] == sorted({row["window"] for row in rows})
    assert main(["report", str(tmp_path / "rep"), "-o", str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out/tables/rep-success.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["rule", "always", "turns"]


def test_one_evaluation_per_window_is_recorded(tmp_path):
    """A window of 10,000 outcomes closes in none of them: the logger has every evaluation, the records the first."""
    curriculum = Curriculum(rules.Scout(), CONTEXTS, LEVELS, window=10_000, log_dir=tmp_path)
    callback = CurriculumCallback(eval_env=evaluation(HELD_OUT), eval_every=32)
    ppo(with_curriculum([Fated] * 2, curriculum, reset_to, "is_success")).learn(128, callback=callback)
    assert len(callback.evaluations) > 1
    assert [row["window"] for row in read_rows(tmp_path / "evaluations.jsonl")] == [0]
