"""SCOUT against scalar loops: every frontier, every event and every probability."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout_rl import Curriculum, rules
from scout_rl.rules.cells import Cells
from tests.rules.reference import ReferenceScout
from tests.rules.streams import Stream


def compare(n_contexts, n_levels, batch, windows, seed, **constants):
    rule = rules.Scout(**constants)
    curriculum = Curriculum(rule, n_contexts, n_levels, seed=seed, window=10**6)
    reference = ReferenceScout(n_contexts, n_levels, **constants)
    stream = Stream(n_contexts, n_levels, batch, seed)
    for _ in range(windows):
        p = curriculum.distribution()
        active = p[np.arange(n_contexts), curriculum.frontier]
        np.testing.assert_allclose(active, reference.probabilities(), rtol=0, atol=1e-12)
        assert abs(p.sum() - active.sum()) < 1e-15  # nothing off the frontier
        outcomes = stream.next(p)
        before = len(reference.events)
        events = curriculum.report(Cells(outcomes.context, outcomes.level), outcomes.success)
        reference.update(zip(outcomes.context.tolist(), outcomes.level.tolist(), outcomes.success, strict=True))
        assert curriculum.frontier.tolist() == reference.f
        expected = reference.events[before:]
        assert [tuple(e)[:5] for e in events] == [e[:5] for e in expected]
        np.testing.assert_allclose([e[5] for e in events], [e[5] for e in expected], rtol=0, atol=1e-12)
        assert [e.evidence for e in events] == [e[6] for e in expected]
    return reference.events


@settings(max_examples=60, deadline=None)
@given(
    n_contexts=st.integers(1, 300),
    n_levels=st.integers(2, 13),
    batch=st.integers(1, 80),
    windows=st.integers(1, 120),
    seed=st.integers(0, 2**31),
)
def test_published_constants_on_any_shape(n_contexts, n_levels, batch, windows, seed):
    compare(n_contexts, n_levels, batch, windows, seed)


@settings(max_examples=60, deadline=None)
@given(
    n_contexts=st.integers(1, 12),
    n_levels=st.integers(2, 6),
    seed=st.integers(0, 2**31),
    n_min=st.integers(1, 6),
    cooldown=st.integers(0, 4),
    N_stale=st.integers(0, 6),
    hysteresis=st.integers(1, 3),
    q_max=st.sampled_from([0.05, 0.2, 0.34, 0.5, 1.0]),
    eps=st.sampled_from([0.01, 0.1, 0.5]),
    tau=st.sampled_from([0.02, 0.5]),
)
def test_other_constants(n_contexts, n_levels, seed, **constants):
    compare(n_contexts, n_levels, 8, 150, seed, **constants)


@pytest.mark.parametrize(("n_contexts", "n_levels"), [(5, 5), (20, 2), (40, 13)])
def test_thousands_of_windows(n_contexts, n_levels):
    kinds = {event[2] for event in compare(n_contexts, n_levels, 16, 2500, seed=7)}
    assert kinds == {"advance", "retreat", "antistall"}  # the stream exercised all three


def test_the_largest_bank():
    compare(300, 5, 64, 400, seed=3)
