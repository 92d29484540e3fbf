"""A learner model that learns in microseconds, to try rules before any training.

``model`` is the learner and ``scenarios`` its banks. ``run`` plays a rule on a scenario over many seeds, and ``view``
makes the table and the figure. ``proposition`` checks the paper's Proposition 1 by enumeration.
"""

from scout_rl.simulate.model import Learner, init_skill, practise, success_chance
from scout_rl.simulate.proposition import Proposition, check_proposition
from scout_rl.simulate.run import SimulatedRun, annealing_sweep, play, rule_for
from scout_rl.simulate.scenarios import SCENARIOS, Scenario

__all__ = [
    "SCENARIOS",
    "Learner",
    "Proposition",
    "Scenario",
    "SimulatedRun",
    "annealing_sweep",
    "check_proposition",
    "init_skill",
    "play",
    "practise",
    "rule_for",
    "success_chance",
]
