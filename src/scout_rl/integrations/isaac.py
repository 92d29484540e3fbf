"""Isaac Lab and mjlab: one curriculum term reports, one reset event restarts from a ladder; both on the device.

    def make(env):                                   # your function: called once, when the environments exist
        return IsaacCurriculum(env, rules.Ability(), ladder, success="success", log_dir="runs/isaac")

    curriculum = {"scout": CurriculumTermCfg(func=scout_curriculum, params={"make": make})}
    events = {"scout": EventTermCfg(func=scout_reset, mode="reset", params={"make": make})}

When environments finish, both libraries call the curriculum's terms, then the events of mode ``reset``. The first
takes the outcomes and draws the next cells, the second restores them. Terms and their parameters are plain functions:
both libraries can copy such a configuration, and Isaac Lab can write it as text.

``ladder`` has the form of Isaac Lab's ``scene.get_state(is_relative=True)``, with two more axes in front of every
tensor, ``[contexts, levels]``: ``{"articulation": {NAME: {"joint_position": ..., "joint_velocity": ..., "root_pose":
..., "root_velocity": ...}}, "rigid_object": {NAME: {"root_pose": ..., "root_velocity": ...}}}``. mjlab restores what
is given; Isaac Lab's ``scene.reset_to`` needs every entity. Positions are relative to each environment's origin.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from scout_rl.curriculum import Curriculum
from scout_rl.files.extras import naming_extras
from scout_rl.integrations.device.training import Training
from scout_rl.rules.rule import Rule, require

with naming_extras("scout_rl.integrations.isaac", "torch"):
    import torch

    from scout_rl.integrations.device import State, TorchCurriculum

ATTRIBUTE = "scout"
"""Where an environment keeps its curriculum: ``env.unwrapped.scout``."""

Make = Callable[[Any], "IsaacCurriculum"]


class IsaacCurriculum(Training):
    """The curriculum of one vectorised environment.

    ``success`` is the name of a termination term, or a function of the environment that returns ``[environments]``; it
    is read at an episode's last step. ``log_dir`` is opened at the training's first reset, so an environment for
    evaluation may come from the same function. ``sizes`` go to `TorchCurriculum`: ``longest`` and ``close_every`` are
    in steps of the environment.
    """

    def __init__(
        self,
        env: Any,
        rule: Rule,
        ladder: dict[str, Any],
        success: str | Callable[[Any], Any] = "success",
        *,
        seed: int = 0,
        log_dir: str | os.PathLike[str] | None = None,
        name: str | None = None,
        oracle_group: ArrayLike | None = None,
        **sizes: int,
    ) -> None:
        self.ladder = _mapped(ladder, lambda leaf: torch.as_tensor(leaf, device=env.device))
        shapes = {tuple(leaf.shape[:2]) for leaf in _leaves(self.ladder)}
        require(len(shapes) == 1, f"the ladder's tensors must all begin with [contexts, levels], not {sorted(shapes)}")
        (shape,) = shapes
        super().__init__(rule, *shape, seed=seed, log_dir=log_dir, name=name, oracle_group=oracle_group)
        for kind, entities in self.ladder.items():
            require(kind in ("articulation", "rigid_object"), f"the ladder has {kind!r}: articulation or rigid_object")
            for entity in entities:
                known = sorted(env.scene.keys() if hasattr(env.scene, "keys") else env.scene.entities)
                require(entity in known, f"the ladder has {entity!r}, and the scene has {known}")
        terms = env.cfg.terminations
        terms = list(terms) if isinstance(terms, dict) else list(vars(terms))
        ok = callable(success) or success in terms
        require(ok, f"no termination term is called {success!r}; there are {terms}")
        self.success = success
        sizes = {"environments": env.num_envs, "longest": int(env.max_episode_length), **sizes}
        device: dict[str, Any] = {"device": env.device, "seed": seed, "oracle_group": oracle_group, **sizes}
        self.device = TorchCurriculum(rule, *shape, **device)
        self._reported_at = 0

    @property
    def context(self) -> Any:
        """The context of every environment, a tensor: for your observations and randomizations."""
        return self.device.cells.context

    @property
    def state(self) -> State:
        """The device's state, on the device."""
        return self.device.state

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on where another training was saved. Call it in ``make``; the training needs as many environments."""
        super().load(path)
        assert self._loaded is not None
        self.device.load_state_dict(self._loaded)

    def report(self, env: Any) -> None:
        """Take the outcomes of the episodes that have just ended; an episode that was cut is played again."""
        if not self._begun:
            self._begin(self.device.episodes.window)
        ended = env.termination_manager.dones & (env.episode_length_buf > 0)
        success = self.success(env) if callable(self.success) else env.termination_manager.get_term(self.success)
        # The environment's clock, not the number of calls: it knows of cut episodes.
        age = env.episode_length_buf.to(self.state.age.dtype) - 1
        self.device.state = self.state._replace(age=age)
        now = int(env.common_step_counter)
        self.device.step(ended, success, steps=now - self._reported_at)
        self._reported_at = now

    def _hand_over(self, records: Curriculum) -> None:
        self.device.drain(records)

    def _state_dict(self) -> dict[str, Any]:
        return self.device.state_dict()

    def restore(self, env: Any, env_ids: Any, context: Any, level: Any) -> None:
        """Put these environments at the starts of the cells."""
        state = _mapped(self.ladder, lambda leaf: leaf[context.long(), level.long()])
        if hasattr(env.scene, "reset_to"):  # Isaac Lab
            env.scene.reset_to(state, env_ids, is_relative=True)
            return
        for entities in state.values():  # mjlab
            for name, parts in entities.items():
                _write(env.scene[name], parts, env.scene.env_origins[env_ids], env_ids)


def scout_curriculum(env: Any, env_ids: Any, make: Make) -> dict[str, Any]:
    """The curriculum term. Its values are logged as ``Curriculum/NAME/...``."""
    curriculum = of(env, make)
    curriculum.report(env)
    level, frontier = curriculum.device.state.level, curriculum.frontier
    return {"level": level.float().mean(), **({} if frontier is None else {"frontier": frontier.float().mean()})}


def scout_reset(env: Any, env_ids: Any, make: Make) -> None:
    """The event of mode ``reset``, after all others that touch the same entities."""
    curriculum, env_ids = of(env, make), _indices(env, env_ids)
    cells = curriculum.device.cells
    curriculum.restore(env, env_ids, cells.context[env_ids], cells.level[env_ids])


def target_reset(env: Any, env_ids: Any, make: Make) -> None:
    """In place of both for evaluation: environment i plays context i modulo their number, from the target start."""
    curriculum, env_ids = of(env, make), _indices(env, env_ids)
    curriculum.restore(env, env_ids, env_ids % curriculum.n_contexts, torch.zeros_like(env_ids))


def of(env: Any, make: Make | None = None) -> IsaacCurriculum:
    """The environment's curriculum; the first call makes it."""
    env = env.unwrapped
    if not hasattr(env, ATTRIBUTE):
        require(make is not None, "this environment has no curriculum yet: it is made at the first reset")
        assert make is not None
        setattr(env, ATTRIBUTE, make(env))
    return getattr(env, ATTRIBUTE)  # type: ignore[no-any-return]


def _indices(env: Any, env_ids: Any) -> Any:
    if env_ids is None or isinstance(env_ids, slice):
        return torch.arange(env.num_envs, device=env.device)[env_ids or slice(None)]
    return torch.as_tensor(env_ids, device=env.device)


def _write(entity: Any, parts: dict[str, Any], origins: Any, env_ids: Any) -> None:
    if "root_pose" in parts and not entity.is_fixed_base:
        pose = parts["root_pose"].clone()
        pose[:, :3] += origins
        entity.write_root_state_to_sim(torch.cat([pose, parts["root_velocity"]], -1), env_ids=env_ids)
    if "joint_position" in parts:
        entity.write_joint_state_to_sim(parts["joint_position"], parts["joint_velocity"], env_ids=env_ids)


def _mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    return {name: _mapped(leaf, function) for name, leaf in tree.items()} if isinstance(tree, dict) else function(tree)


def _leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree.values() for leaf in _leaves(part)] if isinstance(tree, dict) else [tree]
