"""A recorded episode: states, actions, achieved goals and success."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from scout_rl.codecs.codec import State, pack_states, unpack_states
from scout_rl.files.archive import Array, read_archive, write_archive
from scout_rl.files.refusal import Refusal
from scout_rl.ladders.success import binary


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One episode of T steps. Arrays by state have T + 1 entries, arrays by step T."""

    states: tuple[State, ...]
    actions: Array
    rewards: Array
    success: Array
    """``success[t]``: the success indicator of state t + 1."""
    achieved: Array | None = None
    """The achieved goal of every state, if the environment has one."""
    desired: Array | None = None
    observations: Mapping[str, Array] = field(default_factory=dict)
    """Named arrays, one entry per state; empty unless they were recorded."""
    terminated: bool = False
    truncated: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        steps = len(self.actions)
        by_state = {"states": self.states, **({} if self.achieved is None else {"achieved": self.achieved})}
        for name, values in {**by_state, **self.observations}.items():
            if len(values) != steps + 1:
                raise Refusal(f"{name} has {len(values)} entries; a trajectory of {steps} steps has {steps + 1}.")
        for name, values in {"rewards": self.rewards, "success": self.success}.items():
            if len(values) != steps:
                raise Refusal(f"{name} has {len(values)} entries; the trajectory has {steps} steps.")
        if np.asarray(self.success).dtype != bool:
            for number, value in enumerate(self.success):
                binary(value, f"success[{number}] is")

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        end = "no success" if self.first_success is None else f"first success at state {self.first_success}"
        return f"Trajectory({len(self)} steps, {end}, seed {self.seed})"

    @property
    def first_success(self) -> int | None:
        """The index of the first state that is a success (1..T); None if there is none."""
        return int(np.argmax(self.success)) + 1 if np.any(self.success) else None

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write an npz file (no pickle); returns the content hash."""
        arrays, index = pack_states(self.states)
        arrays.update({"actions": self.actions, "rewards": self.rewards, "success": self.success})
        arrays.update({n: a for n in ("achieved", "desired") if (a := getattr(self, n)) is not None})
        arrays.update({f"observations/{name}": array for name, array in self.observations.items()})
        meta = {"kind": "trajectory", "version": 1, "states": index, "seed": self.seed}
        return write_archive(path, arrays, {**meta, "terminated": self.terminated, "truncated": self.truncated})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trajectory:
        """Read what `save` wrote; a damaged file is a ``ValueError``."""
        arrays, meta, _ = read_archive(path)
        if meta.get("kind") != "trajectory":
            raise Refusal(f"{path} holds no trajectory.")
        prefix = "observations/"
        return cls(
            states=tuple(unpack_states(arrays, meta["states"])),
            actions=arrays["actions"],
            rewards=arrays["rewards"],
            success=arrays["success"],
            achieved=arrays.get("achieved"),
            desired=arrays.get("desired"),
            observations={n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)},
            terminated=meta["terminated"],
            truncated=meta["truncated"],
            seed=meta["seed"],
        )
