"""Verdicts from numbers: pure functions, and their rules in words for the page."""

from __future__ import annotations

TIE = 0.05
"""Differences up to this are ties. Two blocks of the paper itself differ by 0.024."""
CLOSE = 0.1
"""SCOUT's value may be this far below the paper's; a stronger effect is at least this much larger."""
LOST, HELD = 0.5, 0.8
"""Final success of the worst group up to which a rule has lost it, and from which it has not."""
KEPT = 0.9
"""Share of the hand-built ladder's gain that counts as all of it."""
SIDES = {"ahead": 1, "tie": 0, "behind": -1}
NOT_BEHIND, LOSES = "not behind", "loses a group"
VERDICTS = ("reproduced", "stronger", "weaker", "absent", "reversed", "not yet run")
"""The verdicts on a claim, in the order of the page; without a claim the verdict is ``no claim``."""
RULES = f"""- **A difference** (SCOUT against another rule, more levels against fewer; within {TIE} is level). On the
  paper's side: **reproduced** from half the paper's difference on, **weaker** below that, **stronger** if more than
  twice the paper's and at least {CLOSE} more, in SCOUT's favour or against it. Level in ours alone: **absent**. On the
  other side: **reversed**. Level in both: **reproduced**; level in the paper alone: **weaker**. Where the paper names a
  side without a size (*ahead*, *behind*, *not behind*), the side alone is judged. Where it prints a ratio (*2 times*),
  its difference is what would make SCOUT's value that many times our value of the rule.
- **SCOUT's own value**: **reproduced** if at most {CLOSE} below the paper's (above counts as reached), **weaker** from
  half of it on, else **reversed**.
- **A rule that loses a group**: its own final success in its worst group is at most {LOST}: **reproduced**; at least
  {HELD}: **absent**; between: **weaker**.
- **Automatic ladders**: **reproduced** if at least {KEPT} of the hand-built ladder's gain over the target start is
  kept, **weaker** from half of it on, else **reversed**. A hand-built ladder that is level with the target start leaves
  nothing to keep: **absent**; one that is behind it: **reversed**.
- **not yet run**: no record, or no seed that both sides have. **no claim**: the paper says nothing about it."""


def difference_verdict(ours: float, theirs: float | None, expect: str) -> str:
    """Verdict on a difference: ours beside the paper's, or beside ``expect`` where the paper prints no size."""
    our_side = _side(ours)
    if theirs is None and expect == NOT_BEHIND:
        return "reproduced" if our_side >= 0 else "reversed"
    their_side = _side(theirs) if theirs is not None else SIDES.get(expect)
    if their_side is None:
        return "no claim"
    if our_side != their_side:
        return "absent" if our_side == 0 else "reversed" if their_side else "weaker"
    if theirs is None or our_side == 0:
        return "reproduced"
    if abs(ours) > 2 * abs(theirs) and abs(ours) >= abs(theirs) + CLOSE:
        return "stronger"
    return "reproduced" if abs(ours) >= abs(theirs) / 2 else "weaker"


def value_verdict(ours: float, theirs: float | None) -> str:
    """Verdict on SCOUT's value beside the paper's."""
    if theirs is None:
        return "no claim"
    if ours >= theirs - CLOSE:
        return "reproduced"
    return "weaker" if ours >= theirs / 2 else "reversed"


def lost_group_verdict(worst_final: float) -> str:
    """Verdict on the claim that a rule loses a group."""
    return "reproduced" if worst_final <= LOST else "absent" if worst_final >= HELD else "weaker"


def retention_verdict(ratio: float) -> str:
    """Verdict on R_retain or R_self."""
    return "reproduced" if ratio >= KEPT else "weaker" if ratio >= 0.5 else "reversed"


def no_gain_verdict(gain: float) -> str:
    """Verdict on an automatic ladder where the hand-built one gains nothing."""
    return "reversed" if gain <= -TIE else "absent"


def _side(difference: float) -> int:
    return 0 if abs(difference) <= TIE else 1 if difference > 0 else -1
