"""Codec of any Meta-World v3 task.

Much of Meta-World's state is outside MuJoCo's: the goal site and furniture in the model, the task's vector and first
positions on the object, and the mocap target, which integrates the actions. The codec stores all of it. Meta-World's
``get_env_state`` stores ``qpos`` and ``qvel`` only.
"""

from __future__ import annotations

from typing import Any

from scout_rl.codecs.codec import Env
from scout_rl.codecs.mujoco import MujocoCodec


class MetaWorldCodec(MujocoCodec):
    """MuJoCo states with Meta-World's task attributes; the path length restarts at 0."""

    key = "metaworld"
    libraries = ("mujoco", "metaworld")
    goal_attribute = "_target_pos"

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the class descends from Meta-World's Sawyer environment."""
        names = {f"{c.__module__}.{c.__name__}" for c in type(env.unwrapped).__mro__}
        return "metaworld.sawyer_xyz_env.SawyerXYZEnv" in names

    def counters(self) -> dict[str, Any]:
        """Meta-World's time limit counts ``curr_path_length``."""
        return {"curr_path_length": 0}

    def skipped(self) -> tuple[str, ...]:
        """The previous frame is computed on restore, as Meta-World does at reset."""
        return (*super().skipped(), "_prev_obs")

    def settle_attributes(self, base: Env) -> None:
        """Set the previous frame to the current one, as at reset, and the goal sites where a step puts them."""
        for name, position in base._target_site_config:
            base._set_pos_site(name, position)
        base._prev_obs = base._get_curr_obs_combined_no_goal()

    def observation(self, base: Env) -> Any:
        """The stacked observation, both frames equal."""
        return super().observation(base).astype("float64")
