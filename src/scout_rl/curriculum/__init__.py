"""The shell that people use: draw cells, report outcomes, save and go on; the picture of its records."""

from scout_rl.curriculum.curriculum import Curriculum

__all__ = ["Curriculum"]
