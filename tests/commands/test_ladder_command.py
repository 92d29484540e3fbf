"""`scout ladder`: no cell of the shipped ladders is invalid, and each planted fault is reported in its cell."""

import csv

import numpy as np
import pytest

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.families.family import Solution
from scout_rl.bench.families.minigrid import MiniGrid, operator, solver
from scout_rl.bench.families.minigrid.stock import Stock
from scout_rl.bench.ladders.check import check
from scout_rl.bench.settings.settings import setting
from scout_rl.cli import main

SMALL = setting("doorkey-small")


@pytest.fixture(scope="module")
def some():
    """Four contexts and their ladder."""
    contexts = {name: array[:4] for name, array in load_bank(SMALL).train.contexts.items()}
    return contexts, operator.starts(contexts, 5)


def changed(ladder, **arrays):
    return {name: arrays.get(name, array) for name, array in ladder.items()}


def only(reasons, cell):
    assert set(reasons) == {cell}, reasons
    return "; ".join(reasons[cell])


def test_prints_checks_and_draws(tmp_path, capsys):
    assert main(["ladder", "doorkey-split-small", "--contexts", "0", "1", "25", "--out", str(tmp_path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "doorkey-split-small, manual ladder of 3 training contexts (MiniGrid-DoorKey-8x8-v0)" in out
    assert "┃ level ┃ short (2 contexts) ┃ long (1 contexts) ┃" in out
    assert "│ 4 │ 1.0 (1) │ 1.0 (1) │" in out
    assert "0 of 15 cells invalid (0.0%)" in out
    with (tmp_path / "doorkey-split-small-manual5.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["context"], row["group"], row["level"]) for row in rows[9:11]] == [
        ("1", "short", "4"),
        ("25", "long", "0"),
    ]
    short, long = (int(rows[i]["remaining_steps"]) for i in (0, 10))
    assert short <= 13
    assert long >= 21
    picture = (tmp_path / "doorkey-split-small-manual5.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(picture) < 150_000


@pytest.mark.parametrize(("key", "levels"), [("multiroom-small", 13), ("doorkey-16-small", 9)])
def test_solver_ladders_of_any_length(tmp_path, capsys, key, levels):
    arguments = ["ladder", key, "--ladder", "solver", "--levels", str(levels), "--contexts", "0", "3"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert f"0 of {2 * levels} cells invalid" in capsys.readouterr().out
    assert (tmp_path / f"{key}-solver{levels}.png").exists()


def test_a_planted_cell_is_one_line_and_exit_code_1(tmp_path, capsys, monkeypatch):
    """Level 1 of context 9 becomes its level 3: fewer steps remain there than at level 2."""
    whole = operator.starts

    def planted(contexts, n_levels):
        ladder = whole(contexts, n_levels)
        for array in ladder.values():
            array[1, 1] = array[1, 3]
        return ladder

    monkeypatch.setattr(MiniGrid, "starts", staticmethod(planted))
    assert main(["ladder", "doorkey-small", "--contexts", "4", "9", "--out", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "1 of 10 cells invalid (10.0%)" in out
    lines = [line for line in out.splitlines() if "cell (" in line]
    assert len(lines) == 1
    assert lines[0].strip().startswith("cell (9, 2), all: ")
    assert lines[0].endswith("at level 1")
    assert (tmp_path / "doorkey-small-manual5.png").exists()


# -- each check, with the fault that it is for -------------------------------------------------------------------------


def test_the_ladder_as_it_is(some):
    checked = check(family("minigrid"), SMALL, *some)
    assert checked.report.ok
    assert checked.remaining[0].tolist() == [len(solver.solve(state(some[1], 0, level))) for level in range(5)]


def state(ladder, context, level):
    return {name: array[context, level] for name, array in ladder.items()}


def test_no_solution(some):
    contexts, ladder = some
    carrying = ladder["carrying"].copy()
    carrying[2, 1] = 0  # the key is gone, the door still locked
    reason = only(check(MiniGrid(), SMALL, contexts, changed(ladder, carrying=carrying)).report.reasons, (2, 1))
    assert reason.startswith("the layout has no solution")


def test_a_level_0_that_is_not_the_stock_start(some):
    contexts, ladder = some
    direction = ladder["agent_dir"].copy()
    direction[1, 0] = (direction[1, 0] + 1) % 4
    reason = only(check(MiniGrid(), SMALL, contexts, changed(ladder, agent_dir=direction)).report.reasons, (1, 0))
    assert reason == "agent_dir is not the target start's; agent_dir is not that of the stock start"


def test_a_target_start_that_is_a_success_already(some):
    contexts, ladder = some
    position = ladder["agent_pos"].copy()
    goal = np.argwhere(ladder["grid"][3, 0, ..., 0] == 8)[0]
    position[3, 0] = goal
    reasons = check(MiniGrid(), SMALL, contexts, changed(ladder, agent_pos=position)).report.reasons
    assert "a target start that is a success already" in reasons[3, 0]


def test_a_solution_that_takes_too_long_or_misses(some, monkeypatch):
    contexts, ladder = some

    def dawdles(context):
        path = solver.trajectory(context)
        late = np.zeros(700, dtype=np.int32) if len(path.actions) == 1 else path.actions
        return Solution(path.states, late)

    monkeypatch.setattr(MiniGrid, "solutions", lambda self, states: [dawdles(state) for state in solver.each(states)])
    checked = check(MiniGrid(), SMALL, {k: a[:1] for k, a in contexts.items()}, {k: a[:1] for k, a in ladder.items()})
    reason = only(checked.report.reasons, (0, 4))
    assert "700 steps to success, but the time limit is 640" in reason
    assert "the solver's actions do not end with the first success" in reason


def test_a_stock_environment_that_restores_badly(some, monkeypatch):
    """One that forgets the carried key, and one that remembers what was played before."""
    contexts, ladder = some

    class Forgets(Stock):
        def restore(self, state):
            return super().restore({**state, "carrying": np.zeros(3, dtype=np.uint8)})

    class Remembers(Stock):
        played = 0

        def restore(self, state):
            self.played += 1
            seen = super().restore(state)
            return seen if self.played <= 5 else seen.clip(max=1)

    monkeypatch.setattr(MiniGrid, "stock_env", lambda self, setting, context: Forgets(setting, context))
    reasons = check(MiniGrid(), SMALL, contexts, ladder).report.reasons
    assert "restoring it in the stock environment changes carrying" in reasons[0, 2]
    assert "simulator and stock environment differ at step 0 of the solution" in reasons[0, 2]
    assert not any(level == 0 for _, level in reasons)
    monkeypatch.setattr(MiniGrid, "stock_env", lambda self, setting, context: Remembers(setting, context))
    report = check(MiniGrid(), SMALL, contexts, ladder).report
    assert report.invalid_rate == 1
    assert {"; ".join(r) for r in report.reasons.values()} == {"two restores in the stock environment differ at step 0"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["doorkie"], "no setting 'doorkie'; the settings are doorkey, "),
        (["doorkey-small", "--levels", "9"], "the hand-built DoorKey ladder has 5 levels, not 9; take a solver ladder"),
        (["doorkey-small", "--levels", "-1"], "levels is -1, but cannot be negative"),
        (["doorkey-small", "--contexts", "40"], "context 40 is not a training context of 'doorkey-small': 0..39"),
        (["multiroom-small", "--levels", "1", "--contexts", "0"], "a ladder needs at least two levels, not 1"),
    ],
)
def test_a_refusal_is_one_sentence(arguments, sentence, tmp_path, capsys):
    assert main(["ladder", *arguments, "--out", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err.startswith("scout: " + sentence)
    assert not (tmp_path / "x").exists()
