"""Environments that start from cells: the wrapper pulls its next cell inside ``reset()``.

So any vector environment's autoreset works with an unmodified learner. Whoever calls ``reset()``, the episode starts
from the curriculum's next cell, has that cell as a tag in its info, and reports its outcome when it ends.

    assignments = Assignments(curriculum)                     # once, in the process that trains
    env = CurriculumEnv(MyEnv(), assignments, reset_to, success="is_success")

For environments in other processes see `scout_rl.integrations.vector`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scout_rl.codecs.codec import Codec, Start
from scout_rl.curriculum import Curriculum
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal
from scout_rl.integrations.assignments import Assignments, Elsewhere, Ticket
from scout_rl.integrations.starts import check_shape, reset_operator
from scout_rl.ladders.success import ARGUMENTS, Success, binary, check_success, source_of
from scout_rl.rules.rule import require

with naming_extras("scout_rl.integrations.gymnasium"):
    import gymnasium as gym

__all__ = ["CONTEXT", "LEVEL", "SUCCESS", "TICKET", "Assignments", "CurriculumEnv", "TargetEnv"]

CONTEXT, LEVEL = "scout_context", "scout_level"
"""Tags in the info of ``reset()`` and of an episode's last step."""
TICKET = "scout_ticket"
"""A third tag, used only if the curriculum is in another process: every tag costs microseconds."""
SUCCESS = "scout_success"
"""The outcome, in the info of an episode's last step."""


class _CellEnv(gym.Wrapper):  # type: ignore[misc]
    """An environment whose every episode starts from a cell; subclasses choose the cell and take the outcome."""

    def __init__(self, env: gym.Env, reset_to: Any, success: Success, codec: Codec | None) -> None:
        super().__init__(env)
        self._reset_to = reset_operator(reset_to, codec)
        check_success(success)
        self._key = success if isinstance(success, str) else None
        self._function = None if isinstance(success, str) else success
        self._source = source_of(success)
        self._success: bool | None = None
        self._ticket: Ticket | None = None
        self._stepped = False

    def _next(self, asked: bool) -> Ticket:
        """The next cell; ``asked``: the reset had a seed or options, which no autoreset has."""
        raise NotImplementedError

    def _finished(self, ticket: Ticket, success: bool) -> None:
        """Take the outcome; an evaluation moves nothing."""

    def _tags(self, ticket: Ticket) -> dict[str, Any]:
        return {CONTEXT: ticket.context, LEVEL: ticket.level}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Start:
        """Start an episode from the next cell. With a seed or options, the environment's own reset comes first."""
        asked = seed is not None or bool(options)
        if asked:
            self.env.reset(seed=seed, options=options)
        ticket = self._ticket = self._next(asked)
        self._success, self._stepped = None, False
        start: Any = self._reset_to(self.env, ticket.context, ticket.level)
        if not (isinstance(start, tuple) and len(start) == 2 and isinstance(start[1], dict)):
            kind = type(start).__name__
            raise Refusal(f"reset_to returned {kind}, but must return what reset() does: (observation, info)")
        return start[0], {**start[1], **self._tags(ticket)}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step; the last step of an episode reports the outcome and has the cell in its info."""
        self._stepped = True
        observation, reward, terminated, truncated, info = result = self.env.step(action)
        function = self._function  # called with names: *result would be a tenth of the wrapper's cost
        value = info.get(self._key) if function is None else function(observation, reward, terminated, truncated, info)
        if value:
            self._success = self._success or binary(value, self._source)
        elif self._success is None and value is not None:
            self._success = False
        if terminated or truncated:
            return self._end(observation, reward, terminated, truncated, info)
        return result  # type: ignore[no-any-return]

    def _end(
        self, observation: Any, reward: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        ticket, self._ticket = self._ticket, None
        if ticket is not None:  # None: stepped past the end, the outcome was reported before
            if self._success is None and self._key is None:
                raise Refusal("the success function returned None at every step of an episode; return True or False")
            if self._success is None:
                raise Refusal(
                    f"no step of an episode had the success key {self._key!r} in its info (the last one has "
                    f"{sorted(info)}); name another key, or pass a function: success=lambda {ARGUMENTS}: ..."
                )
            self._finished(ticket, self._success)
            info = {**info, **self._tags(ticket), SUCCESS: self._success}
        return observation, reward, terminated, truncated, info


class CurriculumEnv(_CellEnv):
    """Every episode starts from the curriculum's next cell and reports its outcome.

    ``reset_to`` is a Ladder or a function ``reset_to(env, context, level)`` that returns ``(observation, info)``.
    ``success`` is an info key or a function of what ``step()`` returned. An episode succeeds if any of its steps does;
    a time-out is no success. An episode that is reset before its end does not count, so a TimeLimit belongs inside.
    ``codec`` restores the states of a Ladder; the default is `codec_for` the environment.
    """

    def __init__(
        self,
        env: gym.Env,
        assignments: Assignments | Elsewhere,
        reset_to: Any,
        success: Success,
        *,
        codec: Codec | None = None,
    ) -> None:
        super().__init__(env, reset_to, success, codec)
        require(
            isinstance(assignments, Assignments | Elsewhere),
            f"assignments is a {type(assignments).__name__}: make one Assignments(curriculum) in the process that "
            f"trains, and pass it to every environment",
        )
        if isinstance(assignments, Assignments):
            check_rule(assignments.curriculum)
            check_shape(self._reset_to, assignments.curriculum)
        remote = assignments.process != os.getpid()
        self._slot = None if remote else assignments.slot()
        self.scout_process = None if remote else os.getpid()
        """This process if the curriculum is in it; None if cells are sent from another."""
        self._waiting: deque[Ticket] = deque()

    @property
    def scout_cells(self) -> list[Ticket]:
        """Cells that were sent here and not started yet."""
        return list(self._waiting)

    @scout_cells.setter
    def scout_cells(self, tickets: Iterable[tuple[int, int, int, int]]) -> None:
        self.scout_receive(tickets)

    def scout_receive(self, tickets: Iterable[tuple[int, int, int, int]]) -> None:
        """Take cells from the process that trains, in the order of their episodes."""
        self._waiting.extend(Ticket(*ticket) for ticket in tickets)

    def close(self) -> None:
        """Close; an episode under way is dropped."""
        self._drop()
        super().close()

    def _next(self, asked: bool) -> Ticket:
        if self._slot is not None:
            self._drop(cut=self._stepped and not asked)
            ticket = self._slot.issue()
            self._slot.start(ticket)
            return ticket
        if self._waiting:
            return self._waiting.popleft()
        if self._ticket is not None:  # a vector environment reset twice in a row: the same start again
            return self._ticket
        raise RuntimeError(
            "this environment runs in another process than its curriculum, and no cell was sent to it: wrap the "
            "vector environment in scout_rl.integrations.vector.CurriculumVectorEnv (SB3: sb3.with_curriculum)"
        )

    def _finished(self, ticket: Ticket, success: bool) -> None:
        if self._slot is not None:
            self._slot.finish(ticket.number, success)

    def _tags(self, ticket: Ticket) -> dict[str, Any]:
        if self._slot is not None:
            return {CONTEXT: ticket.context, LEVEL: ticket.level}
        return {CONTEXT: ticket.context, LEVEL: ticket.level, TICKET: ticket.number}

    def _drop(self, *, cut: bool = False) -> None:
        if self._slot is not None and self._ticket is not None:
            self._slot.drop(self._ticket.number, cut=cut)
            self._ticket = None


class TargetEnv(_CellEnv):
    """For evaluation: these contexts in turn, always at level 0. No curriculum gets the outcomes."""

    def __init__(
        self, env: gym.Env, reset_to: Any, contexts: ArrayLike, success: Success, *, codec: Codec | None = None
    ) -> None:
        super().__init__(env, reset_to, success, codec)
        self.scout_contexts: list[int] = np.asarray(contexts, np.int64).reshape(-1).tolist()
        require(len(self.scout_contexts) > 0, "there are no contexts to evaluate")
        self._position = 0

    def scout_rewind(self) -> None:
        """Start again from the first context at the next reset."""
        self._position = 0

    def _next(self, asked: bool) -> Ticket:
        context = self.scout_contexts[self._position % len(self.scout_contexts)]
        self._position += 1
        return Ticket(self._position - 1, context, 0, 0)


def check_rule(curriculum: Curriculum) -> None:
    """Refuse a rule that needs the learner's signal: an environment reports success only."""
    rule = curriculum.rule
    weight = getattr(rule, "lambda_u", None)
    name = rule.key if weight is None else f"{rule.key} with lambda_u {weight}"
    require(
        not rule.needs_signal,
        f"rule {name} needs the learner's signal for every outcome, and environments report success alone: use "
        f"curriculum.assign(n) and curriculum.report(cells, success, signal) in a loop of your own",
    )
