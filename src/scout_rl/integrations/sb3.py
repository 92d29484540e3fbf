"""Stable-Baselines3: one call around the environments, one callback, and a curriculum saved beside the model.

    env = with_curriculum([MyEnv] * 8, curriculum, reset_to, success="is_success")
    model = PPO("MlpPolicy", env).learn(100_000, callback=CurriculumCallback())

PPO, SAC, SAC with HerReplayBuffer and every other SB3 algorithm run unmodified.
"""

from __future__ import annotations

from scout_rl.integrations.sb3_callback import CurriculumCallback
from scout_rl.integrations.sb3_evaluation import evaluate, target_env
from scout_rl.integrations.sb3_saving import load, save
from scout_rl.integrations.sb3_vec_env import CurriculumVecEnv, assignments_of, with_curriculum

__all__ = [
    "CurriculumCallback",
    "CurriculumVecEnv",
    "assignments_of",
    "evaluate",
    "load",
    "save",
    "target_env",
    "with_curriculum",
]
