"""Held-out evaluations that a loop reports: what is refused, and what a restore keeps."""

import json

import numpy as np
import pytest

from scout_rl import Curriculum, rules


def make(log_dir=None, **others):
    return Curriculum(rules.Scout(), 4, 3, log_dir=log_dir, **others)


def close(curriculum, windows=1):
    for _ in range(windows):
        cells = curriculum.assign(4)
        curriculum.report(cells, [True] * 4)


def rows(folder):
    return [json.loads(line) for line in (folder / "evaluations.jsonl").read_text().splitlines()]


def test_a_row_per_evaluation(tmp_path):
    curriculum = make(tmp_path)
    assert curriculum.evaluation([0, 1, 1], ["near", "far", "far"]) == {"near": 0.0, "far": 1.0}
    close(curriculum, 2)
    curriculum.evaluation(np.array([True, True, False]), ["near", "far", "far"])
    assert rows(tmp_path) == [
        {"window": 0, "success": 2 / 3, "groups": {"near": 0.0, "far": 1.0}, "outcomes": [0, 1, 1]},
        {"window": 2, "success": 2 / 3, "groups": {"near": 1.0, "far": 0.5}, "outcomes": [1, 1, 0]},
    ]
    assert curriculum.evaluated == 2


def test_without_a_log_dir_it_is_checked_and_kept_nowhere():
    curriculum = make()
    assert curriculum.evaluation([1, 0]) == {"all": 0.5}
    with pytest.raises(ValueError, match="there is an evaluation after 0 windows already"):
        curriculum.evaluation([1, 0])


@pytest.mark.parametrize(
    ("outcomes", "group", "sentence"),
    [
        ([], None, r"outcomes has shape \(0,\), but must be one flat list"),
        ([[0, 1]], None, r"outcomes has shape \(1, 2\), but must be one flat list"),
        ([0, 0.5, 1], None, r"outcomes\[1\] is 0\.5, but must be boolean or 0/1"),
        ([0, 1, 1], ["a", "b"], "group names 2 contexts, but there are 3 outcomes"),
        ([0, 1], None, r"the evaluation has 2 contexts in all, and those in .* have 3 in all: always play the same"),
        ([0, 1, 1], ["a", "a", "b"], "the evaluation has 3 contexts in a, b, and those in .* have 3 in all"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path, outcomes, group, sentence):
    curriculum = make(tmp_path)
    curriculum.evaluation([0, 0, 0])
    close(curriculum)
    with pytest.raises(ValueError, match=sentence):
        curriculum.evaluation(outcomes, group)
    assert len(rows(tmp_path)) == 1
    curriculum.evaluation([1, 1, 1])


@pytest.mark.parametrize("evaluated_first", [True, False])
def test_a_restore_cuts_back_to_what_the_state_knows(tmp_path, evaluated_first):
    """Saved after window 2, before or after its evaluation; two windows later the process dies half-way in a row."""
    curriculum = make(tmp_path / "log")
    curriculum.evaluation([0, 0])
    close(curriculum, 2)
    if evaluated_first:
        curriculum.evaluation([0, 1])
    curriculum.save(tmp_path / "state.npz")
    if not evaluated_first:
        curriculum.evaluation([1, 0])
    close(curriculum, 2)
    curriculum.evaluation([1, 1])
    with (tmp_path / "log/evaluations.jsonl").open("a") as file:
        file.write('{"window": 5, "succ')

    again = make(tmp_path / "log")
    again.load(tmp_path / "state.npz")
    assert again.evaluated == (2 if evaluated_first else 0)
    if evaluated_first:
        with pytest.raises(ValueError, match="after 2 windows already"):
            again.evaluation([0, 1])
    else:
        again.evaluation([0, 1])
    close(again)
    again.evaluation([1, 1])
    kept = [(row["window"], row["outcomes"]) for row in rows(tmp_path / "log")]
    assert kept == [(0, [0, 0]), (2, [0, 1]), (3, [1, 1])]


def test_a_state_that_knows_of_no_evaluation(tmp_path):
    """Saved before the first one; those of later windows go, and one of its own window is made again."""
    curriculum = make(tmp_path)
    before = curriculum.state_dict()
    curriculum.evaluation([0, 0])
    close(curriculum)
    curriculum.evaluation([1, 1])
    again = make(tmp_path)
    again.load_state_dict(before)
    again.evaluation([0, 1])
    assert [(row["window"], row["outcomes"]) for row in rows(tmp_path)] == [(0, [0, 1])]


def test_a_state_with_an_evaluation_of_the_future_is_refused():
    curriculum = make()
    with pytest.raises(ValueError, match="last evaluation is after window 3, and it has 0"):
        curriculum.load_state_dict({**curriculum.state_dict(), "evaluated": 3})


def test_a_name_is_recorded_and_kept(tmp_path):
    make(tmp_path, name="ppo")
    assert json.loads((tmp_path / "config.json").read_text())["name"] == "ppo"
    with pytest.raises(ValueError, match="another curriculum: name is 'ppo' there and 'sac' here"):
        make(tmp_path, name="sac")
    with pytest.raises(ValueError, match="name is '', but must be a text"):
        make(name="")
