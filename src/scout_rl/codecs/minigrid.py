"""Codec of any MiniGrid or BabyAI environment.

``grid``, ``agent_pos``, ``agent_dir`` and ``carrying`` are plain arrays in MiniGrid's encoding, so that a batch
simulator can read and write them. The rest (mission, instruction verifiers, references such as "the ball to fetch",
random generator) is stored as attributes. If the grid array was edited, it wins over the attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scout_rl.codecs.attributes import Capture
from scout_rl.codecs.codec import Env, Start, State, check_origin, installed, restart
from scout_rl.codecs.kinds import own_packages
from scout_rl.codecs.restoring import Restore
from scout_rl.files.archive import Array, pack_json
from scout_rl.files.refusal import Refusal

STORED_APART = ("grid", "agent_pos", "agent_dir", "carrying", "step_count")
NOTHING = np.zeros(3, dtype=np.uint8)
"""``carrying`` when the agent carries nothing (no object has type 0)."""


class MiniGridCodec:
    """States of grid worlds; the step count restarts at 0."""

    key = "minigrid"
    exact = True
    place = ("grid", "agent_pos", "agent_dir", "carrying")

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the class descends from ``MiniGridEnv``."""
        names = {f"{c.__module__}.{c.__name__}" for c in type(env.unwrapped).__mro__}
        return "minigrid.minigrid_env.MiniGridEnv" in names

    @property
    def library(self) -> dict[str, str]:
        """The version that this codec's states depend on."""
        return {"minigrid": installed("minigrid")}

    def get_state(self, env: Env) -> State:
        """The grid, the agent and all other attributes."""
        base = env.unwrapped
        captured = self._capture(base)
        carrying = NOTHING if base.carrying is None else np.array(base.carrying.encode(), dtype=np.uint8)
        arrays: dict[str, Array] = {
            "grid": base.grid.encode(),
            "agent_pos": np.array(base.agent_pos, dtype=np.int64),
            "agent_dir": np.array(base.agent_dir, dtype=np.int64),
            "carrying": carrying,
            "mission": np.frombuffer(base.mission.encode(), dtype=np.uint8),
            "attributes": pack_json(captured.value),
        }
        arrays.update({f"attributes/{name}": array for name, array in captured.arrays.items()})
        return State(arrays, self.key, self.library)

    def set_state(self, env: Env, state: State, *, generators: bool = True) -> Start:
        """Start an episode in ``state``; ``generators=False`` lets the live random generator run on."""
        base = env.unwrapped
        check_origin(state, self.key, self.library)
        shape = state.arrays["grid"].shape[:2]
        if shape != (base.width, base.height):
            raise Refusal(
                f"this state has a grid of {shape[0]} x {shape[1]}, "
                f"and {type(base).__name__} one of {base.width} x {base.height}."
            )

        def restore() -> Start:
            _restore(base, state, generators)
            return base.gen_obs(), {}

        return restart(env, restore)

    def goal(self, state: State) -> Array:
        """The mission is this family's goal; a goal square is part of the layout."""
        return state.arrays["mission"]

    def left_out(self, env: Env) -> list[str]:
        """Attributes that a state does not hold and that are no constants."""
        return self._capture(env.unwrapped).left_out

    def _capture(self, base: Env) -> Capture:
        plain, special = _cells(base)
        return Capture(
            base,
            packages=own_packages(base),
            skip=STORED_APART,
            labels=plain,
            extra={"cells": special, "carrying": base.carrying},
        )


def _cells(base: Env) -> tuple[dict[int, str], dict[str, Any]]:
    """Objects that their three numbers describe completely, by id, and the others, by cell."""
    from minigrid.core.world_object import WorldObj

    plain: dict[int, str] = {}
    special: dict[str, Any] = {}
    for index, thing in enumerate(base.grid.grid):
        if thing is None:
            continue
        twin = WorldObj.decode(*thing.encode())
        if type(twin) is type(thing) and vars(twin) == vars(thing):
            plain.setdefault(id(thing), f"cell:{index}")
        else:
            special[str(index)] = thing
    return plain, special


def _restore(base: Env, state: State, generators: bool) -> None:
    from minigrid.core.grid import Grid
    from minigrid.core.world_object import WorldObj

    grid, _ = Grid.decode(state.arrays["grid"])
    value, arrays = state.attributes
    lookup: Callable[[str], Any] = lambda label: grid.grid[int(label.removeprefix("cell:"))]  # noqa: E731
    restored = Restore(
        base,
        value,
        arrays,
        packages=own_packages(base),
        generators=generators,
        label=lookup,
    )
    for index, thing in restored.extra["cells"].items():
        drawn = grid.grid[int(index)]
        if drawn is not None and tuple(drawn.encode()) == tuple(thing.encode()):
            grid.grid[int(index)] = thing
    restored.attributes()
    base.grid = grid
    carried, numbers = restored.extra["carrying"], state.arrays["carrying"]
    if carried is None or tuple(carried.encode()) != tuple(numbers):
        carried = WorldObj.decode(*(int(n) for n in numbers)) if numbers.any() else None
    base.carrying = carried
    base.agent_pos = tuple(int(n) for n in state.arrays["agent_pos"])
    base.agent_dir = int(state.arrays["agent_dir"])
    base.step_count = 0
