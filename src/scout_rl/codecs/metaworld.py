"""Codec of any Meta-World v3 task.

Much of Meta-World's state is outside MuJoCo's: the goal site and furniture in the model, the task's vector and first
positions on the object, and the mocap target, which integrates the actions. The codec stores all of it. Meta-World's
``get_env_state`` stores ``qpos`` and ``qvel`` only.
"""

from __future__ import annotations

from typing import Any

from scout_rl.codecs.codec import Env
from scout_rl.codecs.kinds import descends_from
from scout_rl.codecs.mujoco import MujocoCodec


class MetaWorldCodec(MujocoCodec):
    """MuJoCo states with Meta-World's task attributes; the path length restarts at 0."""

    key = "metaworld"
    libraries = ("mujoco", "metaworld")
    goal_attribute = "_target_pos"
    counters = ("curr_path_length",)
    skipped = (*MujocoCodec.skipped, "_prev_obs")

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the class descends from Meta-World's Sawyer environment."""
        return descends_from(env.unwrapped, "metaworld.sawyer_xyz_env.SawyerXYZEnv")

    def settle_attributes(self, base: Env) -> None:
        """Set the previous frame to the current one, as at reset, and the goal sites where a step puts them."""
        for name, position in base._target_site_config:
            base._set_pos_site(name, position)
        base._prev_obs = base._get_curr_obs_combined_no_goal()

    def observation(self, base: Env) -> Any:
        """The stacked observation, both frames equal."""
        return super().observation(base).astype("float64")
