"""Environments in other processes: cells and outcomes travel over the vector environment's channels.

Cells go out with ``set_attr`` and come back as tags in the infos of resets and last steps. There is no server.
A worker needs its next cell before it resets itself. If the vector environment resets in the step that ends the
episode (SAME_STEP, and every SB3 vector environment), that cell is prefetched: sent an episode ahead.
`Assignments.staleness` says how many windows were closed in between. In the other modes the cell is drawn after the
outcome, as in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal
from scout_rl.integrations.assignments import LIKELY_CAUSE, Assignments, Ticket
from scout_rl.integrations.gymnasium import SUCCESS, TICKET
from scout_rl.rules.rule import require

with naming_extras("scout_rl.integrations.vector"):
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode

__all__ = ["CurriculumVectorEnv", "RemoteCells"]


class RemoteCells:
    """The cells of environments in other processes: the one that each runs, and those waiting there."""

    def __init__(
        self,
        assignments: Assignments,
        processes: Sequence[int | None],
        send: Callable[[dict[int, Ticket]], None],
    ) -> None:
        for i, process in enumerate(processes):
            require(
                process in (None, assignments.process),
                f"environment {i} has a curriculum of its own, in its own process: make one Assignments in the "
                f"process that trains, and pass it to every environment",
            )
        self.envs = [i for i, process in enumerate(processes) if process is None]
        """Indices of the environments in other processes; the others draw their cells."""
        self._send = send
        self._slot = {i: assignments.slot() for i in self.envs}
        self._running: dict[int, Ticket | None] = dict.fromkeys(self.envs)
        self._waiting = dict(self._running)

    def provide(self, envs: Iterable[int]) -> None:
        """Send a cell to each of these environments that has none waiting."""
        tickets = {i: self._slot[i].issue() for i in envs if i in self._slot and self._waiting[i] is None}
        self._waiting.update(tickets)
        if tickets:
            self._send(tickets)

    def restarting(self, envs: Iterable[int]) -> None:
        """Before a reset of these environments: drop their episodes, and send each a cell if none waits."""
        envs = [i for i in envs if i in self._slot]
        for i in envs:
            self._drop(i, self._running)
        self.provide(envs)

    def started(self, env: int, number: int) -> None:
        """Note that the environment started an episode on this ticket."""
        running = self._running[env]
        if running is not None and running.number == number:
            return  # reset twice: the same start again
        self._drop(env, self._running)
        ticket, self._waiting[env] = self._waiting[env], None
        if ticket is None or ticket.number != number:
            raise RuntimeError(f"environment {env} started ticket {number}, but was sent {ticket}")
        self._running[env] = ticket
        self._slot[env].start(ticket)

    def ended(self, env: int, number: int, success: bool) -> None:
        """Note the outcome of the environment's episode."""
        running, self._running[env] = self._running[env], None
        if running is None or running.number != number:
            raise RuntimeError(f"environment {env} ended ticket {number}, but was running {running}")
        self._slot[env].finish(number, success)

    def close(self) -> None:
        """Drop everything in flight."""
        for i in self.envs:
            self._drop(i, self._running)
            self._drop(i, self._waiting)

    def _drop(self, env: int, tickets: dict[int, Ticket | None]) -> None:
        ticket, tickets[env] = tickets[env], None
        if ticket is not None:
            self._slot[env].drop(ticket.number)


class CurriculumVectorEnv(gym.vector.VectorWrapper):  # type: ignore[misc]
    """Connects a Gymnasium vector environment of `CurriculumEnv`s in other processes with their curriculum.

    Examples:
        >>> env_fns = [lambda: CurriculumEnv(MyEnv(), assignments, reset_to, "is_success")] * 8   # doctest: +SKIP
        >>> envs = CurriculumVectorEnv(AsyncVectorEnv(env_fns), assignments)                      # doctest: +SKIP

    Around a vector environment of this process it does nothing. It must be the first wrapper, to see the infos as the
    workers sent them.
    """

    def __init__(self, env: gym.vector.VectorEnv, assignments: Assignments) -> None:
        super().__init__(env)
        self.cells = RemoteCells(assignments, _processes(env), self._send)
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.SAME_STEP)
        if not self.cells.envs and type(self).step is CurriculumVectorEnv.step:
            self.step = env.step  # type: ignore[method-assign]  # nothing to add

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all, or those of ``options["reset_mask"]``."""
        mask = (options or {}).get("reset_mask")
        self.cells.restarting(range(self.num_envs) if mask is None else np.flatnonzero(mask).tolist())
        observations, infos = self.env.reset(seed=seed, options=options)
        self._note_starts(infos)
        if self._mode is AutoresetMode.SAME_STEP:
            self.cells.provide(self.cells.envs)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all, report outcomes, send new cells."""
        result = self.env.step(actions)
        infos = result[4]
        if self._mode is AutoresetMode.NEXT_STEP:  # some were reset in this step
            self._note_starts(infos)
        done = [i for i in np.flatnonzero(result[2] | result[3]).tolist() if i in self.cells.envs]
        last = infos.get("final_info", infos)
        for i in done:
            number, success = _value(last, TICKET, i), _value(last, SUCCESS, i)
            if number is None or success is None:
                raise ended_unseen(i, "CurriculumVectorEnv")
            self.cells.ended(i, int(number), bool(success))
        if self._mode is AutoresetMode.SAME_STEP:
            self._note_starts(infos)
        if self._mode is not AutoresetMode.DISABLED:
            self.cells.provide(done)
        return result  # type: ignore[no-any-return]

    def close(self, **kwargs: Any) -> None:
        """Close; episodes under way are dropped."""
        self.cells.close()
        super().close(**kwargs)

    def _note_starts(self, infos: dict[str, Any]) -> None:
        for i in self.cells.envs if TICKET in infos else ():
            number = _value(infos, TICKET, i)
            if number is not None and _value(infos, SUCCESS, i) is None:
                self.cells.started(i, int(number))

    def _send(self, tickets: dict[int, Ticket]) -> None:
        self.env.set_attr("scout_cells", [[tuple(tickets[i])] if i in tickets else [] for i in range(self.num_envs)])


def ended_unseen(env: int, wrapper: str) -> RuntimeError:
    """The error for an episode that ended without an outcome."""
    return RuntimeError(
        f"environment {env} ended an episode without the info {SUCCESS!r}: {LIKELY_CAUSE.format('CurriculumEnv')}; if "
        f"there is none, CurriculumEnv must be in every environment, and {wrapper} the first wrapper around the vector "
        f"environment"
    )


def _processes(env: gym.vector.VectorEnv) -> list[int | None]:
    """The process of every environment's curriculum; None: another process, so cells must be sent."""
    try:
        return list(env.call("scout_process"))
    except AttributeError as error:
        raise Refusal("wrap every environment in CurriculumEnv, inside the vector environment") from error


def _value(infos: dict[str, Any], key: str, env: int) -> Any:
    """One environment's entry in a vector environment's info, or None."""
    mask = infos.get(f"_{key}")
    return None if mask is None or not mask[env] else infos[key][env]
