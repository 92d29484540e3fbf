"""SCOUT: per-context reset curricula for sparse-reward reinforcement learning."""

__version__ = "0.1.0"

from scout_rl import rules
from scout_rl.cells import Cells, Event, Outcomes
from scout_rl.curriculum import Curriculum

__all__ = ["Cells", "Curriculum", "Event", "Outcomes", "__version__", "rules"]
