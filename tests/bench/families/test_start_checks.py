"""The checks of starts in a simulator whose states are values: stepping returns another and leaves the first alone."""

from types import SimpleNamespace

import numpy as np
import pytest

from scout_rl.bench.families.start_checks import Grasp, check_starts


class Slipping:
    """A hand holds for as many steps as its grip says, and drifts by its speed."""

    n_actions = 1

    def reset_to(self, states):
        return {name: array.copy() for name, array in states.items()}

    def observe(self, state):
        return {"observation": np.repeat(state["place"][:, None], 3, axis=1)}

    def is_success(self, state):
        return state["place"] > 9

    def step(self, state, action):
        after = {**state, "grip": state["grip"] - 1, "place": state["place"] + state["speed"]}
        return after, SimpleNamespace(observation=self.observe(after))


def problems(grip, speed=0.0, place=0.0, **changes):
    """The reasons at the scaffold of a ladder with one context and two levels."""
    simulator = Slipping()
    ladder = {
        "grip": np.array([[0, grip]]),
        "speed": np.array([[0.0, speed]]),
        "place": np.array([[0.0, place]]),
    }
    grasp = Grasp(
        holds=lambda state: state["grip"] > 0,
        possible=np.array([True]),
        needed=np.array([True]),
        settle=[lambda state, starts: simulator.step(state, None)[0]],
        steps=10,
        rest=1.0,
    )
    report = check_starts(
        simulator,
        ladder,
        inside=lambda state: state["place"] < 100,
        as_starts=lambda starts: starts,
        grasp=grasp._replace(**changes),
    )
    assert report.n_cells == 2
    assert report.invalid_cells <= {(0, 1)}
    return [problem.reason for problem in report.problems], report.warnings


@pytest.mark.parametrize(
    ("start", "reasons"),
    [
        ({"grip": 20}, []),
        ({"grip": 0}, ["does not hold at the start"]),
        ({"grip": 4}, ["does not hold: dropped after 4 settling steps"]),
        ({"grip": 20, "speed": 0.3}, ["does not rest: the hand is drawn away after 2 settling steps"]),
        ({"grip": 4, "place": 200.0}, ["out of bounds"]),
        ({"grip": 4, "possible": np.array([False])}, []),
        ({"grip": 0, "needed": np.array([False])}, []),
    ],
)
def test_a_grasp_is_followed_through_the_settling_steps(start, reasons):
    assert problems(**start)[0] == reasons


def test_a_scaffold_that_is_a_success_is_a_warning():
    assert problems(20, place=10.0) == ([], ("1 of 1 assisted starts are already a success",))
