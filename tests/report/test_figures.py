"""How rules are told apart in the figures."""

from scout_rl import rules
from scout_rl.report.figures import look


def test_no_two_rules_look_alike_and_scout_stands_out():
    """With all rules in one figure: unlike in colour and dash, and most in the marker too."""
    looks = [look(i) for i in range(len(rules.RULES))]
    assert len(looks) == 16
    assert len({(one.colour, one.dash) for one in looks}) == len(looks)
    assert all(one.colour != looks[0].colour and one.dash != looks[0].dash for one in looks[1:])
    assert len({one.marker for one in looks[:13]}) == 13
