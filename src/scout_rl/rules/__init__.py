"""The allocation rules, one file per rule, and their registry by key."""

from scout_rl.files.refusal import Refusal
from scout_rl.rules.ability import Ability
from scout_rl.rules.aced import Aced
from scout_rl.rules.adaback import AdaBack
from scout_rl.rules.alp import Alp
from scout_rl.rules.anneal import Anneal
from scout_rl.rules.beta import Beta
from scout_rl.rules.field_types import require_types
from scout_rl.rules.fixed import Fixed
from scout_rl.rules.group_frontier import GroupFrontier
from scout_rl.rules.learnability import Learnability
from scout_rl.rules.local_frontier import LocalFrontier
from scout_rl.rules.mixture import Mixture
from scout_rl.rules.plr import Plr
from scout_rl.rules.random import Random
from scout_rl.rules.reverse import Reverse
from scout_rl.rules.rfcl import Rfcl
from scout_rl.rules.rfcl_demo import RfclDemo
from scout_rl.rules.rule import Rule, Status
from scout_rl.rules.scout import Scout
from scout_rl.rules.target import Target
from scout_rl.rules.thompson import Thompson
from scout_rl.rules.wilson import Wilson

RULES: dict[str, type[Rule]] = {
    rule.key: rule
    for rule in (
        Scout,
        Target,
        Fixed,
        Random,
        Anneal,
        Reverse,
        Mixture,
        LocalFrontier,
        GroupFrontier,
        Plr,
        Alp,
        Rfcl,
        Aced,
        Wilson,
        Beta,
        RfclDemo,
        Learnability,
        Thompson,
        AdaBack,
        Ability,
    )
}
"""Every rule by its key: the specification's rules in its order, the rule of the aligned RFCL protocol, and the nearest
published rules, and the one that shares evidence over the bank."""


def make(key: str, **constants: object) -> Rule:
    """Return the rule with this key; ``constants`` replace its defaults."""
    if key not in RULES:
        raise Refusal(f"there is no rule {key!r}; the rules are {', '.join(RULES)}")
    require_types(RULES[key], constants, f"rule {key!r}")
    return RULES[key](**constants)


__all__ = [
    "RULES",
    "Ability",
    "Aced",
    "AdaBack",
    "Alp",
    "Anneal",
    "Beta",
    "Fixed",
    "GroupFrontier",
    "Learnability",
    "LocalFrontier",
    "Mixture",
    "Plr",
    "Random",
    "Reverse",
    "Rfcl",
    "RfclDemo",
    "Rule",
    "Scout",
    "Status",
    "Target",
    "Thompson",
    "Wilson",
    "make",
]
