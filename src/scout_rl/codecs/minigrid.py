"""Codec of any MiniGrid or BabyAI environment.

``grid``, ``agent_pos``, ``agent_dir`` and ``carrying`` are plain arrays in MiniGrid's encoding, so that a batch
simulator can read and write them. The rest (mission, instruction verifiers, references such as "the ball to fetch",
random generator) is stored as attributes. If the grid array was edited, it wins over the attributes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scout_rl.codecs.attributes import Capture, Restore
from scout_rl.codecs.codec import Env, Start, State
from scout_rl.codecs.kinds import descends_from
from scout_rl.codecs.object_codec import ObjectCodec
from scout_rl.files.archive import Array
from scout_rl.files.refusal import Refusal

STORED_APART = ("grid", "agent_pos", "agent_dir", "carrying", "step_count")
NOTHING = np.zeros(3, dtype=np.uint8)
"""``carrying`` when the agent carries nothing (no object has type 0)."""


class MiniGridCodec(ObjectCodec):
    """States of grid worlds; the step count restarts at 0."""

    key = "minigrid"
    libraries = ("minigrid",)
    place = ("grid", "agent_pos", "agent_dir", "carrying")

    @staticmethod
    def fits(env: Env) -> bool:
        """Whether the class descends from ``MiniGridEnv``."""
        return descends_from(env.unwrapped, "minigrid.minigrid_env.MiniGridEnv")

    def get_state(self, env: Env) -> State:
        """The grid, the agent and all other attributes."""
        base = env.unwrapped
        carrying = NOTHING if base.carrying is None else np.array(base.carrying.encode(), dtype=np.uint8)
        arrays: dict[str, Array] = {
            "grid": base.grid.encode(),
            "agent_pos": np.array(base.agent_pos, dtype=np.int64),
            "agent_dir": np.array(base.agent_dir, dtype=np.int64),
            "carrying": carrying,
            "mission": np.frombuffer(base.mission.encode(), dtype=np.uint8),
        }
        return self._state(self._capture(base), arrays)

    def check(self, base: Env, state: State) -> None:
        """Refuse a grid of another size."""
        shape = state.arrays["grid"].shape[:2]
        if shape != (base.width, base.height):
            raise Refusal(
                f"this state has a grid of {shape[0]} x {shape[1]}, "
                f"and {type(base).__name__} one of {base.width} x {base.height}."
            )

    def restore(self, base: Env, state: State, generators: bool) -> Start:
        """Put the grid, the agent and the attributes back; returns the observation and info."""
        from minigrid.core.grid import Grid
        from minigrid.core.world_object import WorldObj

        grid, _ = Grid.decode(state.arrays["grid"])
        restored = Restore(
            base,
            *state.attributes,
            generators=generators,
            label=lambda label: grid.grid[int(label.removeprefix("cell:"))],
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
        return base.gen_obs(), {}

    def goal(self, state: State) -> Array:
        """The mission is this family's goal; a goal square is part of the layout."""
        return state.arrays["mission"]

    def _capture(self, base: Env) -> Capture:
        plain, special = _cells(base)
        return Capture(
            base,
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
