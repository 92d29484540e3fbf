"""`TorchCurriculum`: the curriculum of asynchronous episodes on torch tensors; see the package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scout_rl.curriculum import Curriculum
from scout_rl.files.extras import naming_extras
from scout_rl.files.refusal import Refusal
from scout_rl.integrations.device import host
from scout_rl.integrations.device.episodes import Episodes
from scout_rl.integrations.device.state import State
from scout_rl.rules.cells import Cells
from scout_rl.rules.rule import Rule, require

with naming_extras("scout_rl.integrations.device"):
    import torch

GENERATOR = "generator"
"""The entry of a state dict that holds the state of torch's generator."""


class TorchCurriculum:
    """A curriculum on a torch device, 64-bit and without a transfer to the host: nothing waits for the device.

    Examples:
        >>> import torch
        >>> from scout_rl import rules
        >>> from scout_rl.integrations.device import TorchCurriculum
        >>> curriculum = TorchCurriculum(rules.Ability(), 100, 5, environments=64, longest=200, device="cpu")
        >>> cells = curriculum.step(done=torch.ones(64, dtype=bool), success=torch.zeros(64, dtype=bool))

    Whether a window is complete is known on the device alone. So the pass that closes one is computed every
    ``close_every`` calls, and takes effect where its episodes have all ended. It is the expensive part: about a
    thousand small kernels. With both defaults, windows keep up while episodes last an eighth of ``longest`` or more:
    every ``longest / 8`` calls, at least one. Smaller windows close more often, and one of fewer outcomes than end in a
    call cannot keep up. `drain` warns where episodes went uncounted.
    """

    def __init__(
        self,
        rule: Rule,
        n_contexts: int,
        n_levels: int,
        *,
        environments: int,
        longest: int,
        device: Any = "cuda",
        seed: int = 0,
        window: int = 0,
        queue: int = 0,
        log: int = 0,
        close_every: int = 0,
        oracle_group: ArrayLike | None = None,
    ) -> None:
        sizes = {"environments": environments, "longest": longest, "window": window, "queue": queue, "log": log}
        self.episodes = Episodes(rule, n_contexts, n_levels, **sizes, oracle_group=oracle_group)
        self.rule, self.device = rule, torch.device(device)
        self.close_every = close_every or _often_enough(self.episodes)
        require(self.close_every >= 1, f"close_every is {close_every}, but must be at least 1")
        self.calls = 0
        self.generator = torch.Generator(self.device).manual_seed(seed)
        """Draws the cells; part of the state dict."""
        self.state: State = self._tensors(self.episodes.blank())
        everybody = torch.ones(self.episodes.environments, dtype=torch.bool, device=self.device)
        self.state = self.episodes.dealt(self.state, everybody, self._uniform)

    @property
    def cells(self) -> Cells:
        """The cell of every environment: two int32 tensors ``[environments]``."""
        return Cells(self.state.context, self.state.level)

    @property
    def frontier(self) -> Any:
        """The level of every context, a tensor ``[contexts]``; None for rules without a frontier."""
        return self.rule.frontier(self.state.rule)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, done: Any, success: Any, signal: Any = None, *, steps: int = 1) -> Cells:
        """Take the outcomes of the environments that are ``done``; return the cells, which are new where ``done``.

        ``done``, ``success`` and ``signal`` are tensors ``[environments]`` on the curriculum's device. ``steps`` of the
        simulator have passed since the last call: a loop that calls only where episodes end says how many, so that the
        passes which close windows are as many as with a call per step.
        """
        host.check(self.episodes, done, success, signal)
        done = done > 0
        passes = (self.calls + steps) // self.close_every - self.calls // self.close_every
        self.calls += steps
        state = self.episodes.taken(self.state, done, success > 0, signal)
        for _ in range(min(passes, self.episodes.queue // self.episodes.window)):
            state = self.episodes.closed(state)
        self.state = self.episodes.dealt(state, done, self._uniform)
        return self.cells

    def drain(self, records: Curriculum) -> None:
        """Hand the closed windows to a host curriculum, which writes its records. This waits for the device."""
        fetched = self._arrays(self.state)
        host.warn_uncounted(fetched)
        self.state = self.state._replace(named=self.state.uncounted)
        windows = host.drained(self.episodes, fetched, records)
        self.state = self.state._replace(drained=torch.full_like(self.state.drained, windows))

    def state_dict(self) -> dict[str, Any]:
        """The state as plain NumPy arrays and JSON values; `scout_rl.curriculum.snapshot.save` writes it."""
        stored = host.state_dict(self.episodes, self._arrays(self.state))
        stored["arrays"][GENERATOR] = self.generator.get_state().numpy()
        return {**stored, "calls": self.calls, "close_every": self.close_every}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue exactly from a ``state_dict``; one of other sizes or another rule is refused."""
        state = host.restored(self.episodes, self._arrays(self.state), state_dict)
        every, calls, arrays = state_dict.get("close_every"), state_dict.get("calls"), state_dict["arrays"]
        require(every == self.close_every, f"the state has close_every {every!r}, this curriculum {self.close_every}")
        if not isinstance(calls, int) or GENERATOR not in arrays:
            raise Refusal("the state dict has no calls or no generator: it is of another kind of device curriculum")
        self.generator.set_state(torch.as_tensor(np.asarray(arrays[GENERATOR], np.uint8)))
        self.state, self.calls = self._tensors(state), calls

    def _uniform(self, state: State) -> Any:
        size = self.episodes.environments
        return torch.rand(size, generator=self.generator, dtype=state.total.dtype, device=self.device)

    def _tensors(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return type(value)(*map(self._tensors, value))
        return None if value is None else torch.as_tensor(value, device=self.device)

    def _arrays(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return type(value)(*map(self._arrays, value))
        return None if value is None else value.cpu().numpy()


def _often_enough(episodes: Episodes) -> int:
    """Calls in which a window's outcomes come in where episodes last an eighth of ``longest``; at most that eighth."""
    share = min(1.0, episodes.window / episodes.environments)
    return max(1, int(share * episodes.longest / 8))
