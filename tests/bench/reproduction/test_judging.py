"""Verdicts from numbers, at and around every limit."""

import pytest

from scout_rl.bench.reproduction import judging


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (0.30, 0.50, "reproduced"),
        (0.25, 0.50, "reproduced"),  # half
        (0.20, 0.50, "weaker"),
        (0.04, 0.50, "absent"),  # the paper has it, we do not
        (-0.05, 0.50, "absent"),
        (-0.06, 0.50, "reversed"),
        (0.06, -0.50, "reversed"),
        (-0.04, -0.50, "absent"),
        (-0.20, -0.14, "reproduced"),
        (-0.37, -0.063, "stronger"),  # DoorKey random
        (0.755, 0.172, "stronger"),
        (0.40, 0.20, "reproduced"),  # twice and not more
        (0.15, 0.06, "reproduced"),  # more than twice and not 0.1 more
        (0.17, 0.06, "stronger"),
        (0.02, 0.00, "reproduced"),  # level in both
        (0.20, 0.02, "weaker"),  # level in the paper alone
        (-0.20, 0.02, "weaker"),
    ],
)
def test_a_difference(ours, theirs, verdict):
    assert judging.difference_verdict(ours, theirs, "") == verdict


@pytest.mark.parametrize(
    ("expect", "verdicts"),
    [
        ("ahead", ("reproduced", "reproduced", "absent", "reversed")),
        ("behind", ("reversed", "reversed", "absent", "reproduced")),
        ("tie", ("weaker", "weaker", "reproduced", "weaker")),
        ("not behind", ("reproduced", "reproduced", "reproduced", "reversed")),
        ("", ("no claim",) * 4),
    ],
)
def test_a_side_without_a_size(expect, verdicts):
    """However large ours is, nothing is stronger or weaker than a side."""
    assert tuple(judging.difference_verdict(ours, None, expect) for ours in (0.9, 0.06, 0.0, -0.06)) == verdicts


def test_scouts_own_value():
    assert [judging.value_verdict(v, 1.0) for v in (1.0, 0.9, 0.6, 0.4)] == [
        "reproduced",
        "reproduced",
        "weaker",
        "reversed",
    ]
    assert judging.value_verdict(0.9, None) == "no claim"


def test_a_rule_that_loses_a_group():
    """0.92 to 1.00 at the end is no loss."""
    outcomes = [judging.lost_group_verdict(v) for v in (0.0, 0.5, 0.51, 0.79, 0.8, 0.92, 1.0)]
    assert outcomes == ["reproduced"] * 2 + ["weaker"] * 2 + ["absent"] * 3


def test_automatic_ladders():
    assert [judging.retention_verdict(r) for r in (1.4, 0.9, 0.8, 0.5, 0.4)] == ["reproduced"] * 2 + ["weaker"] * 2 + [
        "reversed"
    ]
    assert [judging.no_gain_verdict(gain) for gain in (0.04, 0.0, -0.04, -0.05, -0.3)] == ["absent"] * 3 + [
        "reversed"
    ] * 2


def test_the_page_tells_every_verdict():
    for verdict in (*judging.VERDICTS, "no claim"):
        assert f"**{verdict}**" in judging.RULES
