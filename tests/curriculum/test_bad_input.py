"""What a caller can get wrong: one sentence that names the entry, and nothing has changed."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout_rl import Cells, Curriculum, rules
from scout_rl.curriculum import snapshot
from tests.curriculum.test_curriculum import make, play
from tests.rules.test_contract import leaves


def cells(context, level):
    return Cells(np.asarray(context), np.asarray(level))


@pytest.fixture
def curriculum():
    out = make()
    play(out, 5, np.random.default_rng(0))
    return out


def unchanged(curriculum, act, message):
    before = copy.deepcopy(curriculum.state_dict())
    with pytest.raises(ValueError, match=message):
        act()
    same_state(curriculum.state_dict(), before)


def same_state(a, b):
    assert a["generator"] == b["generator"]
    assert a["windows"] == b["windows"]
    for name, array in a["arrays"].items():
        assert np.array_equal(array, b["arrays"][name]), name


@pytest.mark.parametrize(
    ("context", "level", "success", "message"),
    [
        ([0, 1], [4, 4], [1, np.nan], r"success\[1\] is nan, but must be boolean or 0/1"),
        ([0, 1], [4, 4], [1, 0.3], r"success\[1\] is 0.3"),
        ([0, 1], [4, 4], [2, 0], r"success\[0\] is 2"),
        ([0, 1], [4, 4], [-1, 0], r"success\[0\] is -1"),
        ([0, 1], [4, 4], [True], r"success has shape \(1,\), but there are 2 cells"),
        ([0, 1], [4, 4], True, r"success has shape \(\)"),
        ([0, 1], [4, 4], [[True, False]], r"success has shape \(1, 2\)"),
        ([0, 1], [4, 4], ["yes", "no"], "success has type"),
        ([0, 1], [4, 4], [None, True], "success has type object"),
        ([0, 1], [4, 4], [[1], [1, 0]], "success is ragged"),
        ([0, 12], [4, 4], [1, 1], r"context\[1\] is 12, but there are 12: 0..11"),
        ([-1, 0], [4, 4], [1, 1], r"context\[0\] is -1"),
        ([0, 1], [4, 5], [1, 1], r"level\[1\] is 5, but there are 5: 0..4"),
        ([0, 1], [4, -1], [1, 1], r"level\[1\] is -1"),
        ([0, 1], [4], [1, 1], "2 contexts but 1 levels"),
        ([0.0, 1.0], [4, 4], [1, 1], "context has type float64"),
        ([[0, 1]], [4, 4], [1, 1], r"context has shape \(1, 2\)"),
        (0, [4], [1], r"context has shape \(\)"),
    ],
)
def test_report_names_the_entry(curriculum, context, level, success, message):
    unchanged(curriculum, lambda: curriculum.report(cells(context, level), success), message)


def test_cells_must_be_cells(curriculum):
    unchanged(curriculum, lambda: curriculum.report([0, 1, 2], [1, 1, 1]), "cells must be Cells")


def test_record_names_the_entry(curriculum):
    unchanged(curriculum, lambda: curriculum.record(99, 0, True), r"context\[0\] is 99")
    unchanged(curriculum, lambda: curriculum.record(0, 0, 0.5), r"success\[0\] is 0.5")
    unchanged(curriculum, lambda: curriculum.record(0.5, 0, True), "context has type float64")
    unchanged(curriculum, lambda: curriculum.record(0, 0, True, np.inf), r"signal\[0\] is inf")


@pytest.mark.parametrize(
    ("signal", "message"),
    [
        (None, "plr needs the learner's signal for every outcome; signal is missing"),
        ([1.0], r"signal has shape \(1,\), but there are 2 cells"),
        ([1.0, np.nan], r"signal\[1\] is nan"),
        ([1.0, np.inf], r"signal\[1\] is inf"),
        (["a", "b"], "signal must be one flat list of numbers"),
    ],
)
def test_signal(signal, message):
    curriculum = make("plr")
    unchanged(curriculum, lambda: curriculum.report(cells([0, 1], [4, 4]), [1, 1], signal), message)


def test_a_missing_signal_of_the_uncertainty_ablation():
    curriculum = Curriculum(rules.Scout(lambda_u=1.0), 4, 5)
    unchanged(curriculum, lambda: curriculum.report(cells([0], [4]), [1]), "scout needs the learner's signal")


@pytest.mark.parametrize("n", [-1, 1.5, "3", None, True])
def test_assign_takes_a_count(curriculum, n):
    unchanged(curriculum, lambda: curriculum.assign(n), "assign was asked for -1 cells|n is .*whole number")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_contexts": 0}, "n_contexts is 0"),
        ({"n_contexts": -3}, "n_contexts is -3"),
        ({"n_contexts": 2.5}, "n_contexts is 2.5, but must be a whole number"),
        ({"n_levels": 1}, "n_levels is 1"),
        ({"n_levels": "5"}, "n_levels is '5'"),
        ({"window": 0}, "window is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": None}, "seed is None"),
        ({"rule": "scout"}, "rule is 'scout', but must be a rule"),
        ({"rule": rules.GroupFrontier()}, "group-frontier needs oracle_group"),
    ],
)
def test_construction(options, message):
    with pytest.raises(ValueError, match=message):
        Curriculum(**{"rule": rules.Scout(), "n_contexts": 4, "n_levels": 5, **options})


numbers = st.one_of(st.integers(-3, 20), st.floats(), st.booleans(), st.none(), st.text(max_size=2))
lists = st.lists(numbers, max_size=4)


@settings(max_examples=400, deadline=None)
@given(context=lists, level=lists, success=lists, signal=st.one_of(st.none(), lists))
def test_fuzzed_reports_are_taken_whole_or_refused_whole(context, level, success, signal):
    curriculum = make("scout")
    before = curriculum.state_dict()
    try:
        curriculum.report((context, level), success, signal)
    except ValueError:
        same_state(curriculum.state_dict(), before)
    else:
        assert curriculum.windows == 1
        for leaf in leaves(curriculum.state):
            assert np.isfinite(leaf).all()


# -- checkpoints of another rule, shape or version ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: make("anneal"), "the state is of rule 'anneal', this curriculum's is 'scout'"),
        (lambda: make(n_contexts=13), "of 13 contexts x 5 levels, and this one has 12 contexts x 5 levels"),
        (lambda: make(n_levels=4), "of 12 contexts x 4 levels, and this one has 12 contexts x 5 levels"),
        (lambda: make(window=7), "the state has window 7, this curriculum 16"),
        (lambda: Curriculum(rules.Scout(n_min=3, beta=0.5), 12, 5), "the state's rule has beta=0.5, .* 0.2"),
    ],
)
def test_another_curriculums_state(curriculum, other, message):
    state = other().state_dict()
    unchanged(curriculum, lambda: curriculum.load_state_dict(state), message)


def test_another_grouping():
    ours, theirs = (Curriculum(rules.GroupFrontier(), 4, 5, oracle_group=g) for g in ([0, 0, 1, 1], [0, 1, 0, 1]))
    unchanged(ours, lambda: ours.load_state_dict(theirs.state_dict()), "the state has oracle_group")


def break_hash(d):
    d["hash"] = "0" * 64


def break_array(name, value):
    def apply(d):
        d["arrays"][name] = value(d["arrays"][name])

    return apply


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d.update(schema=2), "schema 2, this version reads 1"),
        (lambda d: d.pop("schema"), "it has no schema"),
        (lambda d: d.pop("generator"), "has no 'generator'"),
        (break_hash, "it was altered"),
        (lambda d: d.update(windows=-1), "windows is -1"),
        (lambda d: d.update(windows=9), "says 9 windows, its statistics 5"),
        (lambda d: d.update(generator={"bit_generator": "MT19937"}), "generator is not usable"),
        (lambda d: d.update(about=None), "does not say which rule"),
        (lambda d: d["arrays"].pop("state.frontier.level"), "has no array 'state.frontier.level'"),
        (break_array("state.statistics.success", lambda a: a[:-1]), r"'state.statistics.success' is float64\[11, 5\]"),
        (break_array("state.statistics.success", lambda a: a.astype(np.float32)), "is float32"),
        (break_array("state.statistics.success", lambda a: a * np.nan), "not finite"),
        (break_array("state.statistics.evidence", lambda a: a - 100), "negative evidence"),
        (break_array("state.frontier.level", lambda a: a + 9), "frontier of context 0 is 1., off the ladder"),
        (break_array("waiting.context", lambda a: np.arange(3)), "do not fit a window"),
    ],
)
def test_a_damaged_state(curriculum, damage, message):
    state = copy.deepcopy(curriculum.state_dict())
    damage(state)
    unchanged(curriculum, lambda: curriculum.load_state_dict(state), message)


def test_waiting_outcomes_of_unknown_cells(curriculum):
    curriculum.record(0, 4, True)
    state = curriculum.state_dict()
    state["arrays"]["waiting.context"] = state["arrays"]["waiting.context"] + 50
    unchanged(curriculum, lambda: curriculum.load_state_dict(state), "waiting outcomes name an unknown context")


def test_a_file_that_is_no_curriculum(curriculum, tmp_path):
    (tmp_path / "x.npz").write_bytes(b"not a zip")
    unchanged(curriculum, lambda: curriculum.load(tmp_path / "x.npz"), "is no saved curriculum, or is damaged")
    np.savez(tmp_path / "y.npz", a=np.zeros(3))
    unchanged(curriculum, lambda: curriculum.load(tmp_path / "y.npz"), "is no saved curriculum, or is damaged")
    curriculum.save(tmp_path / "z.npz")
    whole = (tmp_path / "z.npz").read_bytes()
    (tmp_path / "z.npz").write_bytes(whole[: len(whole) // 2])
    unchanged(curriculum, lambda: curriculum.load(tmp_path / "z.npz"), "is no saved curriculum, or is damaged")
    with pytest.raises(FileNotFoundError):
        curriculum.load(tmp_path / "nowhere.npz")


def test_loading_never_executes_code(curriculum, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (exec, ("raise SystemExit('executed')",))

    np.savez(tmp_path / "bomb.npz", **{snapshot._META: np.array([Bomb()], object)})
    unchanged(
        curriculum, lambda: curriculum.load(tmp_path / "bomb.npz"), "damaged: it holds Python objects, not plain arrays"
    )
