"""A learner model that learns in microseconds: to test, teach and plan rules before any training time is spent.

``model`` is the learner, ``scenarios`` the banks that it meets, ``run`` plays a rule against one over many seeds,
``proposition`` checks the paper's Proposition 1 by enumeration, ``view`` prints the table and draws the frontiers.
"""

from scout_rl.simulate.model import Learner, init_skill, practise, success_chance
from scout_rl.simulate.proposition import Proposition, check_proposition
from scout_rl.simulate.run import Run, annealing_sweep, compare, play, rule_for
from scout_rl.simulate.scenarios import SCENARIOS, Scenario

__all__ = [
    "SCENARIOS",
    "Learner",
    "Proposition",
    "Run",
    "Scenario",
    "annealing_sweep",
    "check_proposition",
    "compare",
    "init_skill",
    "play",
    "practise",
    "rule_for",
    "success_chance",
]
