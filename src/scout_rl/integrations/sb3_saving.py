"""An SB3 model and its curriculum in two files, side by side."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stable_baselines3.common.vec_env import VecEnv

from scout_rl.integrations.sb3_vec_env import assignments_of


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the model (``path.zip``) and, beside it, its curriculum with the cells in flight."""
    path = _stem(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    assignments_of(model.get_env()).save(_beside(path))
    model.save(path.with_name(path.name + ".zip"))


def load(algorithm: Any, path: str | os.PathLike[str], env: VecEnv, **kwargs: Any) -> Any:
    """Load what `save` wrote; ``learn(..., reset_num_timesteps=False)`` then continues.

    ``env`` comes from `with_curriculum`, with a new curriculum of the same rule and size. Its first reset issues the
    cells in flight again.
    """
    path = _stem(path)
    assignments_of(env).load(_beside(path))
    return algorithm.load(path.with_name(path.name + ".zip"), env=env, **kwargs)


def _stem(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    return path.with_suffix("") if path.suffix == ".zip" else path


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".curriculum.npz")
