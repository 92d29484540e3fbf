"""The JAX device curriculum against `Curriculum.record`, its bias, its saves and its records."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scout_rl import Curriculum, cli, rules
from scout_rl.curriculum import snapshot
from scout_rl.integrations.device import JaxCurriculum
from scout_rl.records.tables import read_records
from tests.integrations.device.simulators import (
    BIASED,
    CONTEXTS,
    ENVIRONMENTS,
    LEVELS,
    LONGEST,
    Reference,
    Simulator,
    biased_lengths,
    naive_advances,
    unbiased_advances,
)
from tests.rules.test_contract import groups, small

CALLS = 300
DEFAULT = ("ability", "plr", "group-frontier")
"""Over all cells, with a signal, and one cell per context with labels. The rest is slow."""


def made(key="ability", **sizes):
    sizes = {"environments": ENVIRONMENTS, "longest": LONGEST, "window": 10, "oracle_group": groups(CONTEXTS), **sizes}
    return JaxCurriculum(small(key), CONTEXTS, LEVELS, **sizes)


@pytest.fixture
def wide():
    with jax.enable_x64(True):
        yield


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("key", [pytest.param(k, marks=() if k in DEFAULT else pytest.mark.slow) for k in rules.RULES])
def test_assignments_are_those_of_record_in_the_order_of_start(key):
    """Every cell of every call, also where the queue is full and where an environment hangs."""
    curriculum = made(key, queue=40)
    state, step = curriculum.init(jax.random.key(3)), jax.jit(curriculum.step)
    data = state.key
    draw = jax.jit(lambda deck: jax.random.uniform(jax.random.fold_in(jax.random.wrap_key_data(data), deck), (24,)))
    reference = Reference(curriculum, lambda deck, call: np.asarray(draw(deck)))
    simulator = Simulator()
    simulator.reset(np.ones(ENVIRONMENTS, bool), np.asarray(state.level))
    for call in range(CALLS):
        done, success, signal = simulator.step()
        state = step(state, done, success, signal)
        reference.step(done, success, signal)
        np.testing.assert_array_equal(np.stack(reference.cells), np.stack([state.context, state.level]), str(call))
        simulator.reset(done, np.asarray(state.level))
    assert int(state.rule.statistics.window) == reference.curriculum.windows > 30
    assert int(state.uncounted) == reference.uncounted > 0
    assert curriculum.rule.frontier(state.rule) is None or len(reference.curriculum.events) > 3


def play(curriculum, state, simulator, calls):
    """Calls of the jitted step; returns the state and the cells of every call."""
    step, cells = jax.jit(curriculum.step), []
    for _ in range(calls):
        done, success, signal = simulator.step()
        state = step(state, done, success, signal if curriculum.rule.needs_signal else None)
        simulator.reset(done, np.asarray(state.level))
        cells.append(np.stack([state.context, state.level]))
    return state, np.stack(cells)


def biased(rule, calls):
    """The windows that close in ``calls`` calls of the biased start, as a host curriculum that took them."""
    b = BIASED
    sizes = {"environments": b["environments"], "longest": b["failure"], "window": b["window"]}
    curriculum = JaxCurriculum(rule, b["contexts"], b["levels"], log=100, **sizes)
    records = Curriculum(rule, b["contexts"], b["levels"], window=b["window"])
    generator = np.random.default_rng(40)
    success, left = biased_lengths(generator, b["environments"])
    state, step = curriculum.init(jax.random.key(40)), jax.jit(curriculum.step)
    for _ in range(calls):
        left -= 1
        done = left == 0
        state = step(state, done, success)
        again = biased_lengths(generator, b["environments"])
        success, left = np.where(done, again[0], success), np.where(done, again[1], left)
    return curriculum.drain(state, records), records


def test_a_start_that_favours_short_successes_advances_nobody_falsely():
    """True success is 0.3 everywhere and failures last 200 calls. By call 128 only successes have come in: counted as
    they come, they advance nearly every frontier. In the order of start no window has closed by then, and over 800
    calls there are no more advances than without lengths."""
    rule = rules.Scout(n_min=5)
    assert naive_advances(rule, 40) > 70
    assert biased(rule, BIASED["calls"])[1].windows == 0
    _, records = biased(rule, 800)
    assert records.windows > 60
    advances = sum(event.kind == "advance" for event in records.events)
    assert advances <= max(unbiased_advances(rule, records.windows, seed) for seed in range(40, 46))


def test_what_is_learned_of_a_cell_is_the_true_rate():
    """Estimated from the same biased start, over all cells: 0.3, from the first window on."""
    _, records = biased(rules.Ability(), 210)
    assert 5 < records.windows <= 12
    chance, _ = rules.Ability().chance(records.state)
    assert abs(chance[:, -1].mean() - BIASED["chance"]) < 0.08


def test_a_saved_state_continues_bit_for_bit(tmp_path):
    curriculum = made("scout", log=3)
    simulator, again = Simulator(), Simulator()
    state = curriculum.init(jax.random.key(0))
    for s in (simulator, again):
        s.reset(np.ones(ENVIRONMENTS, bool), np.asarray(state.level))
    state, _ = play(curriculum, state, simulator, 100)
    other, _ = play(curriculum, curriculum.init(jax.random.key(0)), again, 100)
    snapshot.save(curriculum.state_dict(other), tmp_path / "saved.npz")
    restored = made("scout", log=3).load_state_dict(snapshot.load(tmp_path / "saved.npz"))
    for before, after in zip(jax.tree.leaves(other), jax.tree.leaves(restored), strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
    end, cells = play(curriculum, state, simulator, 200)
    end_again, cells_again = play(curriculum, restored, again, 200)
    np.testing.assert_array_equal(cells, cells_again)
    for one, two in zip(jax.tree.leaves(end), jax.tree.leaves(end_again), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"key": "ability"}, "the state is of rule 'scout', this curriculum's is 'ability'"),
        ({"longest": 8}, "the state has longest 9, this curriculum 8"),
        ({"environments": 25}, "the state has environments 24, this curriculum 25"),
        ({"oracle_group": None}, "oracle_group"),
    ],
)
def test_a_state_of_another_curriculum_is_refused(other, sentence):
    stored = made("scout").state_dict(made("scout").init(jax.random.key(0)))
    with pytest.raises(ValueError, match=sentence):
        made(**{"key": "scout", **other}).load_state_dict(stored)


def test_an_altered_state_is_refused():
    curriculum = made("scout")
    stored = curriculum.state_dict(curriculum.init(jax.random.key(0)))
    for altered, sentence in (
        ({**stored, "hash": "0"}, "altered"),
        ({**stored, "kind": "other"}, "no device curriculum's"),
        ({**stored, "arrays": {**stored["arrays"], "state.age": np.zeros(3, np.int32)}}, "state.age"),
        ({**stored, "arrays": {}}, "has no array"),
        (7, "no device curriculum's"),
    ):
        with pytest.raises(ValueError, match=sentence):
            curriculum.load_state_dict(altered)


def test_scan_and_vmap_are_the_same_calls():
    """A scan over 60 calls is 60 calls; two runs in one vmap are two runs."""
    curriculum = made("mixture")
    generator = np.random.default_rng(0)
    done = generator.random((2, 60, ENVIRONMENTS)) < 0.3
    success = generator.random((2, 60, ENVIRONMENTS)) < 0.5

    def run(key, done, success):
        def call(state, now):
            state = curriculum.step(state, *now)
            return state, (state.context, state.level)

        return jax.lax.scan(call, curriculum.init(key), (done, success))

    keys = jax.random.split(jax.random.key(0), 2)
    _, many = jax.jit(jax.vmap(run))(keys, done, success)
    for i in range(2):
        state, step = curriculum.init(keys[i]), jax.jit(curriculum.step)
        for call in range(60):
            state = step(state, done[i, call], success[i, call])
            np.testing.assert_array_equal(np.stack(many)[:, i, call], np.stack([state.context, state.level]))
    assert int(state.rule.statistics.window) > 20


def test_no_call_reads_the_device_on_the_host():
    curriculum = made("ability")
    state, step = curriculum.init(jax.random.key(0)), jax.jit(curriculum.step)
    done = jnp.ones(ENVIRONMENTS, bool)
    state = step(state, done, done)
    with jax.transfer_guard("disallow"):
        for _ in range(20):
            state = step(state, done, done)
    assert int(state.rule.statistics.window) == 21


def test_the_drawn_cells_follow_the_distribution():
    curriculum = JaxCurriculum(rules.Ability(), 6, 3, environments=20_000, longest=9)
    state = curriculum.init(jax.random.key(1))
    counts = np.zeros((6, 3))
    np.add.at(counts, (np.asarray(state.context), np.asarray(state.level)), 1)
    p = np.asarray(curriculum.rule.distribution(state.rule))
    assert (np.abs(counts - 20_000 * p) < 5 * np.sqrt(20_000 * p) + 1).all()


def test_wrong_calls_are_refused_before_anything_runs():
    for sizes, sentence in (
        ({"longest": 0}, "longest is 0"),
        ({"environments": 2.5}, "environments is 2.5"),
        ({"window": 50, "queue": 20}, "queue is 20, but must hold a window of 50"),
        ({"log": -1}, "log is -1"),
    ):
        with pytest.raises(ValueError, match=sentence):
            made(**sizes)
    curriculum = made("plr")
    state, one = curriculum.init(jax.random.key(0)), jnp.ones(ENVIRONMENTS)
    with pytest.raises(ValueError, match="plr needs the learner's signal"):
        curriculum.step(state, one, one)
    with pytest.raises(ValueError, match=r"done has shape \(3,\), but must be \(24,\)"):
        curriculum.step(state, one[:3], one, one)


def test_drained_windows_are_the_records_of_any_training(tmp_path):
    """The folder reads as that of a `Curriculum`, its frontier is the device's, and drains may come at any time."""
    curriculum, simulator = made("scout"), Simulator()
    records = Curriculum(small("scout"), CONTEXTS, LEVELS, window=10, log_dir=tmp_path / "run", name="device")
    state = curriculum.init(jax.random.key(0))
    simulator.reset(np.ones(ENVIRONMENTS, bool), np.asarray(state.level))
    for calls in (60, 3, 100, 1):
        state, _ = play(curriculum, state, simulator, calls)
        state = curriculum.drain(state, records)
        assert records.windows == int(state.drained) == int(state.rule.statistics.window)
    read = read_records(tmp_path / "run")
    assert len(read.windows) == records.windows > 20
    np.testing.assert_array_equal(read.frontier[-1], np.asarray(curriculum.rule.frontier(state.rule)))
    assert {len(row["context"]) for row in read.windows} == {10}
    assert read.events
    for command in (["picture", "run"], ["diagnose", "run"], ["report", "run", "--out", "page"]):
        folders = [str(tmp_path / word) if word in ("run", "page") else word for word in command]
        assert cli.main(folders) == 0, command


def test_episodes_that_did_not_count_are_named_once():
    """At the line of the drain, and not again by the process that goes on."""
    curriculum, simulator = made("scout", queue=10), Simulator()
    records = Curriculum(small("scout"), CONTEXTS, LEVELS, window=10)
    state = curriculum.init(jax.random.key(0))
    simulator.reset(np.ones(ENVIRONMENTS, bool), np.asarray(state.level))
    state, _ = play(curriculum, state, simulator, 60)
    missing = int(state.uncounted)
    assert missing > 0
    sentence = f"^{missing} episodes were played but not counted.* window= or queue="
    with pytest.warns(UserWarning, match=sentence) as warned:
        state = curriculum.drain(state, records)
    assert {warning.filename for warning in warned} == {__file__}
    again = Curriculum(small("scout"), CONTEXTS, LEVELS, window=10)
    again.load_state_dict(records.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curriculum.drain(state, records)
        state = curriculum.drain(curriculum.load_state_dict(curriculum.state_dict(state)), again)
    no = np.zeros(ENVIRONMENTS)
    jax.jit(curriculum.step, donate_argnums=0)(state, no, no)  # no array is in the state twice


def test_windows_that_nobody_drained_are_named_and_the_records_stay_true(tmp_path):
    """As many as the log holds are recorded; if one more has closed, the records end where they were."""
    curriculum, simulator = made("scout", log=5), Simulator()
    records = Curriculum(small("scout"), CONTEXTS, LEVELS, window=10, log_dir=tmp_path)
    state = curriculum.init(jax.random.key(0))
    simulator.reset(np.ones(ENVIRONMENTS, bool), np.asarray(state.level))
    for windows in (4, 9):
        while int(state.rule.statistics.window) < windows:
            state, _ = play(curriculum, state, simulator, 1)
        state = curriculum.drain(state, records)
    digest = records.digest
    while int(state.rule.statistics.window) < 15:
        state, _ = play(curriculum, state, simulator, 1)
    for _ in range(2):
        sentence = "the records end at window 9: more windows closed between two drains than the log of 5 holds; drain"
        with pytest.warns(UserWarning, match=sentence):
            state = curriculum.drain(state, records)
    assert len(read_records(tmp_path).windows) == records.windows == 9
    assert records.digest == digest
    state, _ = play(curriculum, state, simulator, 20)
    with pytest.raises(ValueError, match="window"):
        curriculum.drain(state, Curriculum(small("scout"), CONTEXTS, LEVELS, window=11))
    with pytest.raises(ValueError, match="records has 0 windows, and 9 have been drained: restore records and state"):
        made("scout", log=5).drain(state, Curriculum(small("scout"), CONTEXTS, LEVELS, window=10))
