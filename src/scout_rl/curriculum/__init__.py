"""What people use: `Curriculum` draws cells, takes outcomes, saves and continues; `picture` draws its records."""

from scout_rl.curriculum.curriculum import Curriculum

__all__ = ["Curriculum"]
