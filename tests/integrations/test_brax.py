"""The Brax wrapper, on environments of Brax's kind that need no Brax: the same states, wrappers and order of wrapping.

With Brax itself, MJX and Playground: `test_brax_itself` (slow, in the environment that ``make brax`` makes).
"""

from __future__ import annotations

import dataclasses
import gc
import itertools
import json
import subprocess
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

from scout_rl import Curriculum, rules  # noqa: E402
from scout_rl.files.refusal import Refusal  # noqa: E402
from scout_rl.integrations.brax import INFO, METRIC, BraxCurriculum  # noqa: E402
from scout_rl.integrations.device import JaxCurriculum  # noqa: E402

ROOT = Path(__file__).parents[2]
CONTEXTS, LEVELS, ENVS, LIMIT = 3, 4, 8, 6
RULE = rules.Aced(n_min=3)  # JAX compiles it in half the time of `ability`


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    pipeline_state: dict
    obs: jax.Array
    reward: jax.Array
    done: jax.Array
    metrics: dict
    info: dict

    def replace(self, **fields):
        return dataclasses.replace(self, **fields)


class Walk:
    """Walk to 10: an action is a step's length. A context is where the ground is, a level a head start."""

    action_size, observation_size = 1, 2

    def reset(self, rng):
        return self.at(0, 0, rng)

    def at(self, context, level, rng):
        zero = jnp.zeros(())
        simulator = {"x": 3.0 * level * jnp.ones(()), "ground": jnp.full((2, 2), context, jnp.float32)}
        info = {"goal": jnp.asarray(context, jnp.int32), "rng": rng, "seen": jnp.zeros((), bool)}
        return State(simulator, self.observe(simulator), zero, zero, {"success": zero, "moved": zero}, info)

    def step(self, state, action):
        simulator = {**state.pipeline_state, "x": state.pipeline_state["x"] + action[0]}
        success = simulator["x"] >= 10
        state.metrics.update(success=success.astype(jnp.float32), moved=action[0])
        state.info.update(seen=success, rng=jax.random.split(state.info["rng"])[0])
        done = (simulator["x"] >= 12).astype(jnp.float32)
        return state.replace(
            pipeline_state=simulator, obs=self.observe(simulator), reward=state.info["goal"] + 0.0, done=done
        )

    def observe(self, simulator):
        return jnp.stack([simulator["x"], simulator["ground"][0, 0]])


class Batch:
    """As Brax's vmap wrapper: everything in the state has the environments' axis, `info` too."""

    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        return getattr(self.__dict__["env"], name)

    def reset(self, rng):
        return jax.vmap(self.env.reset)(rng)

    def step(self, state, action):
        return jax.vmap(self.env.step)(state, action)


class Episode(Batch):
    """As Brax's episode wrapper: a clock in `info`, and metrics that are added up under the names of the reset."""

    def __init__(self, env, length, repeat):
        super().__init__(env)
        self.length, self.repeat = length, repeat

    def reset(self, rng):
        state = self.env.reset(rng)
        nothing = jnp.zeros(len(rng))
        state.info.update(steps=nothing, truncation=nothing, sums=dict.fromkeys(state.metrics, nothing))
        return state

    def step(self, state, action):
        state, _ = jax.lax.scan(lambda s, _: (self.env.step(s, action), None), state, (), self.repeat)
        steps = state.info["steps"] + self.repeat
        for name in state.metrics:
            state.info["sums"][name] += state.metrics[name]
        state.info["steps"] = steps
        state.info["truncation"] = jnp.where(steps >= self.length, 1 - state.done, 0.0)
        return state.replace(done=jnp.where(steps >= self.length, 1.0, state.done))


class AutoReset(Batch):
    pass


def library_wrap(env, episode_length, action_repeat, randomization_fn=None):
    return AutoReset(Episode(Batch(env), episode_length, action_repeat))


def ladder(contexts=CONTEXTS, levels=LEVELS):
    at = jax.vmap(jax.vmap(Walk().at, (None, 0, None)), (0, None, None))
    return at(jnp.arange(contexts), jnp.arange(levels), jax.random.PRNGKey(7))


def make(success="success", rule=RULE, **options):
    return BraxCurriculum(rule, ladder(), success, library_wrap=library_wrap, **{"window": 8, **options})


def make_evaluation(curriculum, length=LIMIT, repeat=1):
    """As Brax's trainers: the training environment is wrapped and reset, then that of evaluation is wrapped."""
    jax.eval_shape(curriculum.wrap(Walk(), length, repeat).reset, keys())
    return curriculum.wrap(Walk(), length, repeat)


def keys(n=ENVS, seed=0):
    return jax.random.split(jax.random.PRNGKey(seed), n)


def played(env, state, steps, seed=0, strength=3.0):
    """The states of some steps, with random actions that differ between environments."""
    step, states = jax.jit(env.step), []
    for action in np.random.default_rng(seed).uniform(0, strength, (steps, len(state.done), 1)):
        state = step(state, jnp.asarray(action, jnp.float32))
        states.append(state)
    return states


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A curriculum, its reset, and the states of 60 steps after that of the reset."""
    curriculum = make(log_dir=tmp_path_factory.mktemp("log"), seed=4)
    env = curriculum.wrap(Walk(), LIMIT, 1)
    reset = jax.jit(env.reset)
    first = reset(keys())
    return curriculum, reset, [first, *played(env, first, 60)]


def test_finished_environments_restart_from_their_cells_and_no_other_is_touched(run):
    curriculum, _, states = run
    cells = states[0].info[INFO].cells
    assert (states[0].pipeline_state["x"] == 3.0 * cells.level).all()
    assert (states[0].info["goal"] == cells.context).all()
    ended = 0
    for before, after in itertools.pairwise(states):
        done, cells = np.asarray(after.done > 0), after.info[INFO].cells
        ended += done.sum()
        starts = np.asarray(curriculum.ladder.pipeline_state["x"][cells.context, cells.level])
        x = np.asarray(after.pipeline_state["x"])
        assert (x[done] == starts[done]).all()
        assert (np.asarray(after.pipeline_state["ground"])[done, 1, 1] == np.asarray(cells.context)[done]).all()
        assert (np.asarray(after.obs)[done, 0] == starts[done]).all()
        moved = np.asarray(before.pipeline_state["x"] + after.metrics["moved"])
        assert np.allclose(x[~done], moved[~done]), "an episode that goes on is left alone"
        assert (np.asarray(after.reward) == np.asarray(before.info[INFO].cells.context)).all(), "the context played"
        again = np.asarray(before.done > 0)
        assert (np.asarray(after.info["steps"])[again] == 1).all(), "the clock starts anew"
        assert (np.asarray(after.info["steps"])[~again] == np.asarray(before.info["steps"])[~again] + 1).all()
    assert ended > 60


def test_info_of_the_last_step_is_there_for_the_trainer_and_random_keys_go_on(run):
    states = run[2][1:]
    last = [s for s in states if (np.asarray(s.info["seen"]) & np.asarray(s.done > 0)).any()]
    assert last, "success of the last step can be read after it"
    rng = np.stack([np.asarray(s.info["rng"]) for s in states])
    assert len(np.unique(rng[:, 0], axis=0)) == len(states), "no restart repeats the random numbers of the ladder"


def test_success_is_a_metric_an_info_or_a_function(run):
    """The walk is at 10 or beyond, though it is restarted: what tells of the last step is still there."""
    for state in run[2][1:]:
        by_metric, by_info = make("success").succeeded(state), make("seen").succeeded(state)
        assert (by_metric == by_info).all()
        assert (by_metric == make(lambda state: state.metrics["success"] > 0.5).succeeded(state)).all()
    assert any(np.asarray(state.metrics["success"]).any() for state in run[2])


def test_cells_and_records_are_those_of_the_device_curriculum_fed_the_same_outcomes(run):
    """An episode succeeds if any of its steps does: from 10 on, though it ends at 12 or by its time limit."""
    curriculum, _, (first, *states) = run
    expected = JaxCurriculum(RULE, CONTEXTS, LEVELS, environments=ENVS, longest=LIMIT, window=8, log=100)
    device, step = expected.init(jax.random.key(4)), jax.jit(expected.step)
    x, succeeded, late = np.asarray(first.pipeline_state["x"]), np.zeros(ENVS, bool), 0
    for after in states:
        x = x + np.asarray(after.metrics["moved"])
        done = np.asarray(after.done > 0)
        late += (done & succeeded & (x < 12)).sum()
        succeeded |= x >= 10
        device = step(device, done, succeeded)
        cells = after.info[INFO].cells
        assert (cells.context == device.context).all()
        assert (cells.level == device.level).all()
        succeeded &= ~done
        x = np.where(done, np.asarray(after.pipeline_state["x"]), x)
    assert late, "some succeed before their last step"
    assert (curriculum.frontier == expected.rule.frontier(device.rule)).all()
    assert curriculum.frontier.min() < LEVELS - 1, "frontiers have moved"
    records = Curriculum(RULE, CONTEXTS, LEVELS, window=8, seed=4)
    expected.drain(device, records)
    drained = curriculum.drain()
    assert drained.windows == records.windows == int(device.rule.statistics.window) > 5
    assert drained.digest == records.digest
    rows = [json.loads(line) for line in (Path(curriculum._log_dir) / "windows.jsonl").read_text().splitlines()]
    assert len(rows) == records.windows
    assert 0 < np.mean([row["success"] for row in rows]) < 1


def test_the_state_travels_through_a_scan_that_gives_its_carry_away():
    """As Brax's unroll: `jit` with a donated carry inside of `scan`; the copy on the host is the device's state."""
    curriculum = make()
    env = curriculum.wrap(Walk(), episode_length=5, action_repeat=2)
    assert env.longest == 3, "in calls"

    def unroll(state, key):
        f = jax.jit(lambda s, k: (env.step(s, jax.random.uniform(k, (ENVS, 1), maxval=3.0)), s.done), donate_argnums=0)
        return jax.lax.scan(f, state, jax.random.split(key, 100))

    state, done = jax.jit(unroll, donate_argnums=0)(jax.jit(env.reset)(keys()), jax.random.PRNGKey(1))
    assert done.sum() > 80
    device = state.info[INFO].cells
    assert int(curriculum.state.rule.statistics.window) == int(device.rule.statistics.window) > 8
    for mine, theirs in zip(jax.tree.leaves(curriculum.state.rule), jax.tree.leaves(device.rule), strict=True):
        np.testing.assert_array_equal(mine, np.asarray(theirs))


def epochs(curriculum, each):
    """As Brax's PPO: epochs of 40 steps that give their state away, on an axis of devices; ``each()`` follows each."""
    env = curriculum.wrap(Walk(), LIMIT, 1)

    def epoch(state, key):
        def step(state, key):
            return env.step(state, jax.random.uniform(key, (ENVS, 1), maxval=3.0)), None

        return jax.lax.scan(step, state, jax.random.split(key, 40))[0]

    state = jax.pmap(env.reset, axis_name="i")(keys()[None])
    epoch = jax.pmap(epoch, axis_name="i", donate_argnums=0)
    for number in range(4):
        state = epoch(state, jax.random.PRNGKey(number)[None])
        device = state.info[INFO].cells
        assert int(curriculum.state.rule.statistics.window) == int(device.rule.statistics.window[0])
        np.testing.assert_array_equal(curriculum.state.place, np.asarray(device.place[0]), "it is the end of the epoch")
        each()
    return env, state


def test_every_epoch_hands_its_windows_over_whenever_they_are_drained(tmp_path):
    log_less = make(seed=5)
    epochs(log_less, lambda: None)
    assert not log_less._waiting, "nobody can drain them"

    def trained(name, each, **options):
        curriculum = make(seed=5, log_dir=tmp_path / name, name="walk", **options)
        epochs(curriculum, lambda: each(curriculum))
        return curriculum

    often = trained("often", lambda curriculum: curriculum.drain())
    late = trained("late", lambda curriculum: None)
    assert len(late._waiting) == 1, "one log holds them all"
    small = trained("small", lambda curriculum: None, log=12)
    assert 1 < len(small._waiting) <= 4
    assert often.drain().windows == int(late.state.rule.statistics.window) > 20
    assert often.drain().digest == late.drain().digest == small.drain().digest
    assert int(late.state.drained) == late.drain().windows


def test_an_epoch_of_more_windows_than_the_log_holds_ends_the_records(tmp_path):
    curriculum = make(seed=5, log_dir=tmp_path, log=3)
    epochs(curriculum, lambda: None)
    sentence = "the records end at window 0: more windows closed in an epoch than the log of 3 holds; take more epochs"
    for _ in range(2):
        with pytest.warns(UserWarning, match=sentence):
            assert curriculum.drain().windows == 0
    assert len(curriculum._waiting) == 1, "what comes after a gap is of no use"


def test_numbers_that_only_have_the_form_of_a_state_are_left_alone(tmp_path):
    """A check for NaN, a tree of zeros, a part: JAX makes a `Carried` around each of them."""
    curriculum = make(log_dir=tmp_path)
    env = curriculum.wrap(Walk(), LIMIT, 1)
    state = jax.jit(env.reset)(keys())
    before = curriculum.state
    for function in (jnp.isfinite, jnp.zeros_like, lambda x: x[:1] if x.ndim else x, np.asarray):
        jax.tree.map(function, state)
    for one, two in zip(jax.tree.leaves(before), jax.tree.leaves(curriculum.state), strict=True):
        np.testing.assert_array_equal(one, two)
    assert curriculum.drain().windows == 0
    last = played(env, state, 40)[-1]
    jax.tree.map(jnp.zeros_like, last)
    assert int(curriculum.state.rule.statistics.window) == curriculum.drain().windows > 3


def test_steps_from_an_older_state_never_mix_with_the_records(tmp_path):
    """Another rollout on the side: dropped when the training goes on, and refused where it was drained."""
    plain, aside, mixed = (make(log_dir=tmp_path / name, name="walk", seed=1) for name in ("plain", "aside", "mixed"))
    for curriculum in (plain, aside, mixed):
        env = curriculum.wrap(Walk(), LIMIT, 1)
        middle = played(env, jax.jit(env.reset)(keys()), 20)[-1]
        if curriculum is not plain:
            played(env, middle, 15, seed=5)
        if curriculum is mixed:
            assert curriculum.drain().windows > 3
        played(env, middle, 40, seed=3)
    assert aside.drain().digest == plain.drain().digest
    with pytest.raises(
        Refusal, match=r"outcomes of window \d+ are others than were drained: the environments were step"
    ):
        mixed.drain()


def test_a_drain_that_fails_can_be_called_again(tmp_path, monkeypatch):
    one, other = (make(log_dir=tmp_path / name, name="walk", seed=1) for name in ("one", "other"))
    for curriculum in (one, other):
        env = curriculum.wrap(Walk(), LIMIT, 1)
        played(env, jax.jit(env.reset)(keys()), 40)
    report, calls = Curriculum.report, []

    def failing(self, *outcomes):
        calls.append(None)
        if len(calls) == 3:
            raise OSError("no space left on device")
        return report(self, *outcomes)

    monkeypatch.setattr(Curriculum, "report", failing)
    with pytest.raises(OSError, match="no space"):
        one.drain()
    monkeypatch.undo()
    assert one.drain().digest == other.drain().digest
    assert one.drain().windows == int(one.state.rule.statistics.window) > 3


def test_a_curriculum_is_freed_with_its_environment():
    """JAX keeps the structure of every tree that it has compiled for."""
    curriculum = make()
    env = curriculum.wrap(Walk(), LIMIT, 1)
    state = jax.jit(env.reset)(keys())
    jax.jit(env.step, donate_argnums=0)(state, jnp.zeros((ENVS, 1)))
    alive = weakref.ref(curriculum)
    del curriculum, env, state
    jax.clear_caches()
    gc.collect()
    assert alive() is None


def test_nothing_is_called_on_the_host_from_within_a_step():
    curriculum = make()
    env = curriculum.wrap(Walk(), LIMIT, 1)
    state = jax.jit(env.reset)(keys())
    assert "callback" not in str(jax.make_jaxpr(env.step)(state, jnp.zeros((ENVS, 1))))
    assert "callback" in str(jax.make_jaxpr(env.reset)(keys())), "the word is the one that JAX prints"


def test_a_reset_of_all_environments_forgets_no_closed_window(run):
    """Brax's `num_resets_per_eval` calls reset between evaluations; the curriculum goes on from its newest window."""
    curriculum, reset, states = run
    windows = int(curriculum.state.rule.statistics.window)
    assert windows == int(states[-1].info[INFO].cells.rule.statistics.window) > 3
    again = reset(keys(seed=1)).info[INFO].cells
    assert int(again.rule.statistics.window) == windows
    assert (again.context == curriculum.state.context).all()
    assert not np.asarray(again.age).any()


def test_a_saved_training_goes_on_in_another(tmp_path):
    one = make(log_dir=tmp_path / "log", seed=3)
    env = one.wrap(Walk(), LIMIT, 1)
    played(env, jax.jit(env.reset)(keys()), 40)
    one.save(tmp_path / "saved")
    windows = one.drain().windows
    other = make(log_dir=tmp_path / "log", seed=3)
    other.load(tmp_path / "saved")
    env = other.wrap(Walk(), LIMIT, 1)
    state = jax.jit(env.reset)(keys(seed=5))
    assert (state.info[INFO].cells.level == one.state.level).all()
    played(env, state, 40)
    assert other.drain().windows > windows > 3
    assert len((tmp_path / "log/windows.jsonl").read_text().splitlines()) == other.drain().windows
    with pytest.raises(Refusal, match="load comes before"):
        other.load(tmp_path / "saved")
    with pytest.raises(Refusal, match=r"no file .*log: name the one that was given to save"):
        make().load(tmp_path / "log")
    without = make()
    without.load(tmp_path / "saved")
    jax.jit(without.wrap(Walk(), LIMIT, 1).reset)(keys())
    without.save(tmp_path / "without")
    with pytest.raises(Refusal, match=r"without has no records: that training had no log_dir"):
        make(log_dir=tmp_path / "more").load(tmp_path / "without")
    third = make(log_dir=tmp_path / "log", seed=3)
    with pytest.raises(Refusal, match="already holds windows"):
        jax.jit(third.wrap(Walk(), LIMIT, 1).reset)(keys())


def test_evaluation_plays_the_contexts_in_turn_from_the_target_start():
    env = make_evaluation(make())
    state = jax.jit(env.reset)(keys(7))
    assert state.info["goal"].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert not np.asarray(state.pipeline_state["x"]).any()
    pace = jnp.array([0.5, 1.5, 3, 2, 4, 1.8, 2.2])[:, None]
    once, step = np.zeros(7), jax.jit(env.step)
    for t in range(LIMIT):
        state = step(state, pace)
        once += np.asarray(state.metrics[METRIC])
        assert (np.asarray(state.done) == (((t + 1) * pace[:, 0] >= 12) | (t + 1 == LIMIT))).all() or t > 2
    assert (once[[0, 1]] == 0).all()
    assert (once[[2, 3, 5, 6]] == 1).all(), "a success counts once, however many steps it lasts"
    assert state.info["goal"].tolist() == [0, 1, 2, 0, 1, 2, 0], "a context stays in its place"


@pytest.mark.parametrize("repeat", [1, 2, 3])
def test_a_success_counts_whichever_repetition_of_an_action_it_is_in(repeat):
    """At a pace of 1 the walk is at 4 once: the second of two repetitions, the first of three, and it goes on."""
    env = make_evaluation(make(lambda state: jnp.abs(state.pipeline_state["x"] - 4) < 0.5), 6, repeat)
    state, step, won = jax.jit(env.reset)(keys()), jax.jit(env.step), []
    for _ in range(6 // repeat):  # nobody moves
        state = step(state, jnp.zeros((ENVS, 1)))
        assert not np.asarray(state.metrics[METRIC]).any()
    for _ in range(12 // repeat):
        state = step(state, jnp.ones((ENVS, 1)))
        won.append(np.asarray(state.metrics[METRIC]))
    assert np.sum(won, 0).tolist() == [2.0] * ENVS, "one per episode"
    assert won[-(-4 // repeat) - 1].all()


def test_what_the_episode_wrapper_says_of_the_last_repetition_is_not_read_in_the_next_episode():
    env = make_evaluation(make(lambda state: state.info["truncation"]), 6, 2)
    for state in played(env, jax.jit(env.reset)(keys()), 9, strength=0):
        assert (np.asarray(state.metrics[METRIC]) == np.asarray(state.done)).all()
    assert np.asarray(state.done).all()


def test_a_training_that_failed_before_it_began_can_be_tried_again():
    curriculum = make()
    env = curriculum.wrap(Walk(), LIMIT, 1)
    with pytest.raises(Refusal, match="2 devices would have 2 curricula"):
        jax.vmap(env.reset, axis_name="i")(keys(4).reshape(2, 2, 2))
    with pytest.raises(Refusal, match="no state before the training has begun"):
        curriculum.frontier  # noqa: B018
    again = curriculum.wrap(Walk(), LIMIT, 1)
    with pytest.raises(Refusal, match="another environment was wrapped before this one's first reset"):
        env.reset(keys())
    state = jax.jit(again.reset)(keys())
    assert (state.info[INFO].cells.level == curriculum.state.level).all()
    played(again, state, 30)
    assert int(curriculum.state.rule.statistics.window) > 1
    evaluation = curriculum.wrap(Walk(), LIMIT, 1)
    assert not np.asarray(evaluation.reset(keys()).info[INFO].cells.level).any()
    with pytest.raises(Refusal, match="has served one training"):
        curriculum.wrap(Walk(), LIMIT, 1)


def test_a_training_on_the_environment_of_evaluation_is_refused():
    """The first training failed after its reset; the second one's first environment is taken for evaluation's."""
    env = make_evaluation(make())
    sentence = "evaluation's environment is trained on, after a training that failed: make another curriculum"
    for function, arguments in ((env.reset, (keys(),)), (env.step, (env.reset(keys()), jnp.ones((ENVS, 1))))):
        with pytest.raises(Refusal, match=sentence):
            jax.vmap(function, axis_name="i")(*jax.tree.map(lambda leaf: leaf[None], arguments))


def test_labels_reach_the_device_and_the_records(tmp_path):
    options = {"log_dir": tmp_path / "log", "oracle_group": ["a", "b", "a"]}
    curriculum = make(rule=rules.GroupFrontier(n_min=3), **options)
    env = curriculum.wrap(Walk(), LIMIT, 1)
    state = played(env, jax.jit(env.reset)(keys()), 30)[-1]
    assert state.info[INFO].cells.rule.group.tolist() == [0, 1, 0]
    assert curriculum.drain().state.group.tolist() == [0, 1, 0]
    curriculum.save(tmp_path / "saved")
    other = make(rule=rules.GroupFrontier(n_min=3), **{**options, "oracle_group": ["a", "a", "b"]})
    other.load(tmp_path / "saved")
    with pytest.raises(Refusal, match="oracle_group"):
        other.wrap(Walk(), LIMIT, 1).reset(keys())


def test_episodes_that_did_not_count_are_named_once(tmp_path):
    """One outcome per window, one window per call: more end."""
    curriculum = make(rule=rules.Random(), window=1, log_dir=tmp_path / "log")
    env = curriculum.wrap(Walk(), LIMIT, 1)
    played(env, jax.jit(env.reset)(keys()), 100)
    missing = int(curriculum.state.uncounted)
    assert missing > 5
    sentence = f"^{missing} episodes were played but not counted.* window= .*close_every="
    with pytest.warns(UserWarning, match=sentence) as warned:
        curriculum.save(tmp_path / "saved")
    assert {warning.filename for warning in warned} == {__file__}
    other = make(rule=rules.Random(), window=1, log_dir=tmp_path / "log")
    other.load(tmp_path / "saved")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curriculum.drain()
        state = jax.jit(other.wrap(Walk(), LIMIT, 1).reset)(keys())
        other.drain()
    assert int(state.info[INFO].cells.named) == missing


def wrong(change):
    return dataclasses.replace(ladder(), **change)


@pytest.mark.parametrize(
    ("rungs", "options", "sentence"),
    [
        (lambda: wrong({"obs": ladder().obs[..., :1]}), {}, r"ladder's .obs is float32\[3, 4, 1\].*float32\[3, 4, 2\]"),
        (lambda: wrong({"reward": ladder().reward.astype(int)}), {}, "ladder's .reward is int32.*must be float32"),
        (lambda: wrong({"info": {}}), {}, "but the environment's reset returns"),
        (ladder, {"success": "sucess"}, r"called 'sucess'; there are \['goal', 'moved', 'rng', 'seen', 'success'\]"),
        (ladder, {"library_wrap": lambda env, **_: Batch(env)}, "outermost wrapper of library_wrap is Batch"),
        (lambda: wrong({"done": ladder().done[0]}), {}, r"done has shape \(4,\)"),
    ],
)
def test_what_cannot_work_is_refused_before_the_training(rungs, options, sentence):
    options = {"success": "success", "library_wrap": library_wrap, **options}
    with pytest.raises(Refusal, match=sentence):
        BraxCurriculum(RULE, rungs(), **options).wrap(Walk(), LIMIT, 1)


def test_more_refusals():
    curriculum = make()
    with pytest.raises(Refusal, match="no log_dir"):
        curriculum.drain()
    with pytest.raises(Refusal, match="nothing to save before the training has begun"):
        curriculum.save("saved")
    with pytest.raises(Refusal, match="no records before the training has begun"):
        make(log_dir="log").drain()
    with pytest.raises(Refusal, match="inside of library_wrap's autoreset is Batch, but must be the episode wrapper"):
        BraxCurriculum(RULE, ladder(), "success", library_wrap=lambda env, **_: AutoReset(Batch(env))).wrap(
            Walk(), LIMIT, 2
        )


def test_several_devices_are_refused_though_the_reset_does_not_know_of_them():
    """SAC resets without a name for the axis of devices, and steps with it."""
    env = make().wrap(Walk(), LIMIT, 1)
    state = jax.vmap(env.reset)(keys(4).reshape(2, 2, 2))
    with pytest.raises(Refusal, match="2 devices would have 2 curricula"):
        jax.vmap(env.step, axis_name="i")(state, jnp.ones((2, 2, 1)))


@pytest.mark.slow
def test_brax_itself():
    """tests/integrations/with_brax.py: PPO learns with it and not without; MJX and Playground restore; the page."""
    python = ROOT / ".venv-brax/bin/python"
    if not python.exists():
        pytest.skip("Brax has an environment of its own, which is not here: make brax")
    command = [python, "-m", "pytest", "-o", "addopts=", "-q"]
    command += ["tests/integrations/with_brax.py", "tests/docs/test_other_pages.py::test_brax"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
