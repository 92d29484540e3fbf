"""The shell: drawing, windows, events, reasons, and exact continuation."""

import json
import subprocess
import sys

import numpy as np
import pytest

from scout_rl import Cells, Curriculum, rules
from tests.rules.test_contract import groups, small


def make(key="scout", n_contexts=12, n_levels=5, seed=3, **options):
    return Curriculum(small(key), n_contexts, n_levels, seed=seed, oracle_group=groups(n_contexts), **options)


def chance(cells, window):
    """A learner that gets better, then worse: frontiers move both ways."""
    return 1 / (1 + np.exp(-3 * (cells.level - 2 + 3 * np.sin(window / 25 + cells.context))))


def play(curriculum, windows, learner, n=16):
    """Assign, roll out, report; returns what was assigned."""
    seen = []
    for _ in range(windows):
        cells = curriculum.assign(n)
        success = learner.random(n) < chance(cells, curriculum.windows)
        curriculum.report(cells, success, learner.random(n))
        seen.append((cells.context.tolist(), cells.level.tolist()))
    return seen


@pytest.mark.parametrize("key", rules.RULES)
def test_same_seed_same_stream(key):
    first = play(make(key), 40, np.random.default_rng(0))
    assert play(make(key), 40, np.random.default_rng(0)) == first
    assert play(make(key, seed=4), 40, np.random.default_rng(0)) != first


@pytest.mark.parametrize("key", rules.RULES)
def test_assignments_follow_the_distribution(key):
    curriculum = make(key)
    play(curriculum, 60, np.random.default_rng(0))
    p = curriculum.distribution()
    cells = curriculum.assign(40_000)
    counts = np.zeros_like(p)
    np.add.at(counts, (cells.context, cells.level), 1)
    assert (counts[p == 0] == 0).all()  # a cell without probability is never issued
    rare = p * 40_000 < 5  # too rare each for a normal error: counted together
    counts, p = np.append(counts[~rare], counts[rare].sum()), np.append(p[~rare], p[rare].sum())
    error = (counts / 40_000 - p) / np.sqrt(p * (1 - p) / 40_000 + 1e-12)
    assert np.abs(error).max() < 5.5


def test_cells_and_the_users_own_chance_are_independent():
    """With numbers in common, a context would be drawn just when its episode is lucky: some always won, some never."""
    curriculum, rng = make(n_contexts=8, seed=0), np.random.default_rng(0)
    tried, won = np.zeros(8), np.zeros(8)
    for _ in range(300):
        cells = curriculum.assign(16)
        success = rng.random(16) < 0.5
        np.add.at(tried, cells.context, 1)
        np.add.at(won, cells.context, success)
        curriculum.report(cells, success)
    assert np.abs(won / tried - 0.5).max() < 0.12  # four standard deviations of about 600 fair flips a context are 0.08


@pytest.mark.parametrize("constants", [{"n_min": np.int64(10)}, {"tau": np.float32(0.5)}, {"eps": np.float64(0.2)}])
def test_constants_from_an_array_can_be_saved(tmp_path, constants):
    curriculum = Curriculum(rules.Scout(**constants), 4, 5, log_dir=tmp_path / "log")
    curriculum.save(tmp_path / "x.npz")
    Curriculum(rules.Scout(**constants), 4, 5).load(tmp_path / "x.npz")


def test_drawing_in_pieces_is_drawing_at_once():
    pieces, whole = make(), make()
    got = [pieces.assign(1) for _ in range(20)]
    cells = whole.assign(20)
    assert [c.context[0] for c in got] == cells.context.tolist()


@pytest.mark.parametrize("key", rules.RULES)
def test_one_cell_is_drawn_as_by_assign(key):
    single, listed = make(key), make(key)
    for curriculum in (single, listed):
        play(curriculum, 60, np.random.default_rng(0))
    for _ in range(50):
        cells = listed.assign(1)
        assert single.assign_one() == (cells.context[0], cells.level[0])
    assert {type(value) for value in single.assign_one()} == {int}


def test_record_closes_a_window_by_itself():
    one_by_one, at_once = make(window=5), make(window=5)
    learner = np.random.default_rng(0)
    for _ in range(30):
        cells = at_once.assign(5)
        assert one_by_one.assign(5).context.tolist() == cells.context.tolist()
        success = learner.random(5) < 0.8
        events = at_once.report(cells, success)
        recorded = [one_by_one.record(*cell) for cell in zip(cells.context, cells.level, success, strict=True)]
        assert recorded[:4] == [[]] * 4
        assert recorded[4] == events
    assert one_by_one.windows == 30
    assert one_by_one.events == at_once.events


def test_report_takes_what_record_left_waiting():
    mixed, plain = make(window=5), make(window=5)
    mixed.record(0, 4, True)
    mixed.record(1, 4, False)
    mixed.report(Cells(np.array([2]), np.array([4])), [True])
    plain.report(Cells(np.array([0, 1, 2]), np.array([4, 4, 4])), [True, False, True])
    assert mixed.windows == plain.windows == 1
    assert np.array_equal(mixed.distribution(), plain.distribution())


def test_events_say_what_moved_and_why():
    curriculum = Curriculum(rules.Scout(n_min=4, cooldown=0), 2, 3)
    cells = Cells(np.array([0, 0, 0, 0, 0, 0, 0, 0]), np.full(8, 2))
    assert curriculum.report(cells, [True] * 8) == []
    assert curriculum.reasons == ["confirming", "gathering"]
    (event,) = curriculum.report(cells, [True] * 8)
    assert event[:5] == (1, 0, "advance", 2, 1)
    assert event.success_average == pytest.approx(1 - 0.8**16)
    assert event.evidence == 16
    assert curriculum.reasons == ["advanced", "gathering"]
    assert list(curriculum.events) == [event]
    assert curriculum.frontier.tolist() == [1, 2]


def test_an_outcome_reported_after_its_frontier_moved_counts_for_its_own_cell():
    curriculum = Curriculum(rules.Scout(n_min=2, beta=0.5, hysteresis=1), 1, 3)
    curriculum.report(Cells(np.array([0] * 4), np.array([2] * 4)), [True] * 4)
    assert curriculum.frontier.tolist() == [1]
    curriculum.report(Cells(np.array([0]), np.array([2])), [False])
    assert curriculum.state.statistics.success[0].tolist() == [0, 0, pytest.approx(0.46875)]  # (1-.5**4)/2
    assert curriculum.state.statistics.evidence[0].tolist() == [0, 0, 5]


def test_rules_without_a_frontier():
    curriculum = make("random")
    assert curriculum.frontier is None
    assert curriculum.reasons is None
    assert curriculum.windows_before_a_move is None
    assert play(curriculum, 3, np.random.default_rng(0))
    assert not curriculum.events


def test_it_says_what_to_expect(caplog):
    with caplog.at_level("INFO", logger="scout_rl"):
        curriculum = Curriculum(rules.Scout(), 100, 5)
    assert curriculum.windows_before_a_move == 94  # 100*15/16 = 93.75
    assert "nothing can move before about window 94 (100 contexts, 15 outcomes each, 16 a window)" in caplog.text
    with pytest.warns(UserWarning, match="window 938"):
        Curriculum(rules.Scout(), 1000, 5)
    pooled = Curriculum(rules.GroupFrontier(), 1000, 5, oracle_group=np.arange(1000) % 2)
    assert pooled.windows_before_a_move == 2  # two groups of 15 outcomes, 16 a window


@pytest.mark.parametrize(
    ("rule", "constant"), [(rules.Scout(), "n_min"), (rules.Wilson(), "n_min"), (rules.Rfcl(), "needed")]
)
def test_a_long_wait_names_the_constant_of_the_rule(rule, constant):
    assert rule.evidence_gate == getattr(rule, constant)
    with pytest.warns(UserWarning, match=f"a smaller {constant}$"):
        Curriculum(rule, 10_000, 5)


@pytest.mark.parametrize("key", rules.RULES)
def test_killed_and_restored_it_continues_identically(key, tmp_path):
    straight, learner = make(key, window=8), np.random.default_rng(1)
    play(straight, 30, learner)
    for i in range(3):
        straight.record(i, 4, True, 0.5)  # some outcomes are waiting when it dies
    saved = straight.state_dict()
    # through JSON and npz, as anyone would store it
    np.savez(tmp_path / "arrays.npz", **saved["arrays"])
    (tmp_path / "rest.json").write_text(json.dumps({k: v for k, v in saved.items() if k != "arrays"}))
    straight.save(tmp_path / "whole.npz")
    straight_events = len(straight.events)
    rest = play(straight, 30, np.random.default_rng(2))

    with np.load(tmp_path / "arrays.npz", allow_pickle=False) as file:
        loaded = {**json.loads((tmp_path / "rest.json").read_text()), "arrays": dict(file)}
    for restored in (make(key, window=8, seed=99), make(key, window=8, seed=99)):
        if loaded is not None:
            restored.load_state_dict(loaded)
            loaded = None
        else:
            restored.load(tmp_path / "whole.npz")
        assert play(restored, 30, np.random.default_rng(2)) == rest
        assert np.array_equal(restored.distribution(), straight.distribution())
        assert list(restored.events) == list(straight.events)[straight_events:]


def test_a_state_dict_is_a_snapshot():
    curriculum = make()
    play(curriculum, 5, np.random.default_rng(0))
    saved = curriculum.state_dict()
    play(curriculum, 20, np.random.default_rng(0))
    again = make()
    again.load_state_dict(saved)
    assert again.windows == 5
    play(again, 20, np.random.default_rng(0))
    assert saved["windows"] == 5
    assert np.array_equal(again.distribution(), curriculum.distribution())


def test_a_new_process_continues_the_stream(tmp_path):
    curriculum = make()
    play(curriculum, 10, np.random.default_rng(0))
    curriculum.save(tmp_path / "c.npz")
    code = f"""
from tests.curriculum.test_curriculum import make
curriculum = make()
curriculum.load({str(tmp_path / "c.npz")!r})
print(curriculum.assign(50).context.tolist())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(out.stdout) == curriculum.assign(50).context.tolist()


def test_the_chance_of_every_cell():
    """Equal before any outcome; then the failing cells are below the others, and what was seen is surer."""
    curriculum = Curriculum(rules.Ability(), 6, 4, seed=0)
    before = curriculum.chance
    assert before.success.shape == before.error.shape == (6, 4)
    assert before.success[0] == pytest.approx(1 / (1 + np.exp(-np.linspace(-1, 1, 4))))
    assert (before.error == before.error[0, 0]).all()  # sqrt(shared variance 1 + own variance 2)
    assert before.error[0, 0] == pytest.approx(3**0.5)
    for _ in range(20):
        cells = Cells(np.repeat(np.arange(5), 4), np.tile(np.arange(4), 5))  # context 5 is never drawn
        curriculum.report(cells, cells.level >= 2)
    after = curriculum.chance
    assert (after.success[:5, :2] < 0.15).all()
    assert (after.success[:5, 2:] > 0.85).all()
    assert (after.error[:5] < before.error[:5]).all()
    assert (after.error[5] > after.error[:5]).all()
    after.success[:] = 0.5  # a copy: nothing changes inside
    assert (curriculum.chance.success[:5, :2] < 0.15).all()


@pytest.mark.parametrize("key", [key for key in rules.RULES if key != "ability"])
def test_rules_without_a_model_have_no_chance(key):
    assert make(key).chance is None


def reasons_after(success, contexts, windows=40, n_levels=3):
    curriculum = Curriculum(rules.Ability(), 4, n_levels, seed=0)
    for _ in range(windows):
        cells = Cells(np.repeat(contexts, n_levels), np.tile(np.arange(n_levels), len(contexts)))
        curriculum.report(cells, success(cells))
    return curriculum.reasons


def test_the_reasons_of_ability():
    everyone = np.arange(4)
    rng = np.random.default_rng(0)

    def halfway(cells):
        return rng.random(len(cells.level)) < np.array([0, 0.8, 1])[cells.level]

    assert reasons_after(halfway, everyone) == ["learning"] * 4
    assert reasons_after(lambda cells: cells.level >= 0, everyone) == ["mastered"] * 4
    assert reasons_after(lambda cells: cells.level < 0, everyone) == ["too hard at the easiest level"] * 4
    assert reasons_after(halfway, everyone[:3]) == ["learning"] * 3 + ["seldom drawn"]
    assert reasons_after(lambda cells: cells.level > 0, everyone) == ["learning"] * 4
    assert reasons_after(lambda cells: cells.level >= 0, everyone, windows=1)[0] == "advanced"


def test_moves_of_several_levels(tmp_path):
    """A large window of successes shows at once that every level works."""
    curriculum = Curriculum(rules.Ability(), 4, 5, seed=0, log_dir=tmp_path)
    events = []
    for won in (True, False):
        for _ in range(3):
            cells = Cells(np.tile(np.arange(4), 40), np.repeat(np.arange(5), 32))
            events += curriculum.report(cells, np.full(160, won))
    assert max(abs(event.from_level - event.to_level) for event in events) > 1
    assert {event.kind for event in events} == {"advance", "retreat"}
    assert all((event.to_level < event.from_level) == (event.kind == "advance") for event in events)
    level = np.full(4, 4)
    for event in events:  # from event to event the frontier is continuous
        assert level[event.context] == event.from_level
        level[event.context] = event.to_level
    assert level.tolist() == curriculum.frontier.tolist()
    chances = curriculum.chance.success
    assert events[-1].success_average == pytest.approx(chances[events[-1].context, events[-1].from_level], abs=0.2)
