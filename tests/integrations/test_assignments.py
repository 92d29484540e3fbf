"""Tickets: an outcome counts once, and a run that was saved and loaded goes on as if uninterrupted."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout_rl import Curriculum, rules
from scout_rl.integrations.assignments import Assignments
from tests.integrations.probes import Spy


def outcome(context: int, level: int) -> bool:
    """What every episode from this cell ends with: 'given the same outcomes'."""
    return (context + level) % 3 != 0


def play(assignments: Assignments, slots, order) -> list[tuple[int, int, int]]:
    """Finish the episode of one slot after the other and start its next; return (slot, context, level) as issued."""
    issued = []
    for i in order:
        for ticket in list(slots[i].tickets):
            slots[i].finish(ticket.number, outcome(ticket.context, ticket.level))
        ticket = slots[i].issue()
        issued.append((i, ticket.context, ticket.level))
    return issued


@settings(deadline=None)  # machines are shared
@given(st.integers(1, 5), st.lists(st.integers(0, 4), max_size=60), st.integers(0, 60), st.booleans())
def test_a_loaded_run_continues_the_stream(n, order, cut, mid_episode):
    order = [i % n for i in order]
    cut = min(cut, len(order))
    whole = Assignments(Spy(window=3))
    slots = [whole.slot() for _ in range(n)]
    play(whole, slots, range(n))
    play(whole, slots, order[:cut])
    if not mid_episode:  # between an episode's end and the next reset, as autoreset NEXT_STEP leaves it
        for ticket in list(slots[0].tickets):
            slots[0].finish(ticket.number, outcome(ticket.context, ticket.level))
    saved = whole.state_dict()
    held = [[t[1:3] for t in slot.tickets] for slot in slots]

    loaded = Assignments(Spy(window=3))
    loaded.load_state_dict(saved)
    again = [loaded.slot() for _ in range(n)]
    issued = play(loaded, again, range(n))
    for (i, *cell), before in zip(issued, held, strict=True):
        assert not before or tuple(cell) == before[0], f"slot {i} is issued its own cell again"
    if not mid_episode:
        slots[0].issue()
    assert play(loaded, again, order[cut:]) == play(whole, slots, order[cut:])
    assert loaded.curriculum.windows == whole.curriculum.windows
    assert loaded.issued == whole.issued


def test_saved_before_the_environments_were_reset_loses_nothing():
    one = Assignments(Spy())
    for slot in (slots := [one.slot() for _ in range(3)]):
        slot.issue()
    two = Assignments(Spy())
    two.load_state_dict(one.state_dict())
    three = Assignments(Spy())
    three.load_state_dict(two.state_dict())
    assert [t[1:3] for t in three.in_flight] == [t[1:3] for s in slots for t in s.tickets]


def test_after_a_load_the_old_episodes_count_for_nothing():
    assignments = Assignments(curriculum := Spy())
    slot = assignments.slot()
    ticket = slot.issue()
    assignments.load_state_dict(assignments.state_dict())
    assert slot.finish(ticket.number, True) == []
    slot.drop(ticket.number)
    assert curriculum.recorded == []
    assert slot.issue()[1:] == ticket[1:], "the cell in flight is issued again, to the first environment that asks"


def test_an_outcome_counts_once():
    assignments = Assignments(curriculum := Spy())
    slot = assignments.slot()
    ticket = slot.issue()
    slot.finish(ticket.number, True)
    slot.finish(ticket.number, True)
    assert len(curriculum.recorded) == 1
    assert assignments.outcomes[ticket.context, ticket.level] == assignments.outcomes.sum() == 1


def test_the_file_is_a_curriculum_file_too(tmp_path):
    assignments = Assignments(Spy())
    assignments.slot().issue()
    assignments.save(tmp_path / "deep" / "run.npz")
    Spy().load(tmp_path / "deep" / "run.npz")
    assignments.curriculum.save(tmp_path / "bare.npz")
    assignments.load(tmp_path / "bare.npz")
    assert assignments.in_flight == []


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [("context", [99], "unknown context"), ("level", [-1], "unknown level"), ("level", [0.5], "whole numbers")],
)
def test_a_damaged_state_dict_is_refused_and_changes_nothing(name, value, match):
    assignments = Assignments(Spy())
    slot = assignments.slot()
    slot.issue()
    bad = assignments.state_dict()
    bad["arrays"][f"in_flight.{name}"] = np.asarray(value)
    with pytest.raises(ValueError, match=match):
        assignments.load_state_dict(bad)
    assert len(slot.tickets) == 1


NEW_PROCESS = """
import sys
from scout_rl import Curriculum
from scout_rl import rules
from scout_rl.integrations.assignments import Assignments
from tests.integrations.test_assignments import play
assignments = Assignments(Curriculum(rules.Scout(n_min=2), 8, 5, seed=7))
assignments.load(sys.argv[1])
slots = [assignments.slot() for _ in range(3)]
print(play(assignments, slots, range(3)) + play(assignments, slots, [0, 1, 2] * 40))
"""


def test_in_a_new_process_the_stream_is_that_of_an_uninterrupted_run(tmp_path):
    whole = Assignments(Curriculum(rules.Scout(n_min=2), 8, 5, seed=7))
    slots = [whole.slot() for _ in range(3)]
    play(whole, slots, [0, 1, 2] * 25)
    whole.save(tmp_path / "run.npz")
    held = [(i, slot.tickets[0].context, slot.tickets[0].level) for i, slot in enumerate(slots)]
    expected = held + play(whole, slots, [0, 1, 2] * 40)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", NEW_PROCESS, str(tmp_path / "run.npz")]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == str(expected)
    assert len({level for _, _, level in expected}) > 1, "frontiers moved in the part that was compared"


def draw_in_a_worker(assignments, answers):
    try:
        assignments.slot().issue()
    except RuntimeError as error:
        answers.put(str(error))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_drawing_from_assignments_that_were_copied_into_a_worker_is_refused(method):
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    worker = context.Process(target=draw_in_a_worker, args=(Assignments(Spy()), answers))
    worker.start()
    sentence = answers.get(timeout=200)
    worker.join()
    assert ("a copy of the curriculum" if method == "fork" else "the curriculum lives in another process") in sentence
