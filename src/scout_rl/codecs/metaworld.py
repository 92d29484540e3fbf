"""Codec of any Meta-World v3 task.

Meta-World holds a good part of the state outside MuJoCo's: the goal site and furniture in the model, the
task's vector and first positions on the object, and the mocap target, which integrates the actions. All of it
is in the state. Its own ``get_env_state`` stores ``qpos`` and ``qvel`` only.
"""

from __future__ import annotations

from typing import Any

from scout_rl.codecs.codec import Env
from scout_rl.codecs.mujoco import MujocoCodec


class MetaWorldCodec(MujocoCodec):
    """MuJoCo states with Meta-World's task attributes; the path length starts again at 0."""

    key = "metaworld"
    libraries = ("mujoco", "metaworld")
    goal_attribute = "_target_pos"

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the class descends from Meta-World's Sawyer environment."""
        names = {f"{c.__module__}.{c.__name__}" for c in type(env.unwrapped).__mro__}
        return "metaworld.sawyer_xyz_env.SawyerXYZEnv" in names

    def counters(self) -> dict[str, Any]:
        """``curr_path_length`` is Meta-World's own time limit."""
        return {"curr_path_length": 0}

    def skipped(self) -> tuple[str, ...]:
        """The previous frame is computed on restore, as Meta-World does at reset."""
        return (*super().skipped(), "_prev_obs")

    def settle_attributes(self, base: Env) -> None:
        """As at reset, the previous frame is the current one; goal sites stand where steps put them."""
        for name, position in base._target_site_config:
            base._set_pos_site(name, position)
        base._prev_obs = base._get_curr_obs_combined_no_goal()

    def observation(self, base: Env) -> Any:
        """The stacked observation, both frames equal."""
        return super().observation(base).astype("float64")
