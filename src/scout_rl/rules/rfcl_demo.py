"""RFCL's reverse curriculum over demonstrations (Tao et al. 2024, section 4.2), for the aligned comparison."""

from dataclasses import dataclass
from typing import ClassVar

from scout_rl.rules.arrays import cast, namespace
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.frontier import Frontier, FrontierRule, Tests
from scout_rl.rules.rfcl import Rfcl, RfclState
from scout_rl.rules.rule import limited

SPARE = 1e-6
"""Weight of a demonstration whose frontier is at its start."""


@dataclass(frozen=True, kw_only=True)
class RfclDemo(FrontierRule):
    """A context is one demonstration, a level one of its states. It is meant for a solver ladder of many levels.

    A context's probability is proportional to its frontier: the part of the demonstration that is left. The frontier
    level gets 1/2 of it, the next easier level 1/4, and so on; the last of ``spread`` levels gets the rest. Levels past
    the easiest count as the easiest. A frontier advances by ``delta`` levels when its last ``m`` rollouts all
    succeeded, and never retreats. Ours: a level stands for a state, so ``delta`` counts levels.
    """

    key: ClassVar[str] = "rfcl-demo"
    gate_constant = "m"

    m: int = limited(2, lambda m: 1 <= m <= 30, "m is {}, but must be 1 to 30")
    """Rollouts in a row that must succeed."""
    delta: int = limited(8, lambda delta: 1 <= delta <= 126, "delta is {}, but must be 1 to 126")
    """Levels of one advance."""
    spread: int = limited(5, lambda spread: 1 <= spread <= 127, "spread is {}, but must be 1 to 127")
    """Levels that starts are drawn from."""

    @property
    def buffer(self) -> Rfcl:
        """The rule that holds the last ``m`` outcomes at every frontier; all must be successes."""
        return Rfcl(needed=self.m, memory=self.m)

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> RfclState:
        """Every frontier at L: the demonstration's last state."""
        return self.buffer.init(n_contexts, n_levels)

    def distribution(self, state: RfclState) -> Array:
        """Contexts in proportion to their frontier, levels by halves from the frontier up."""
        like, xp = state.statistics.success, namespace(state.frontier.level)
        f, n_levels = cast(state.frontier.level, xp.int32), like.shape[-1]
        weight = xp.where(f > 0, cast(f, like.dtype) / n_levels, xp.asarray(SPARE, like.dtype))
        p = xp.zeros_like(like)
        for i in range(self.spread):
            share = 0.5 ** min(i + 1, self.spread - 1)
            level = xp.minimum(f + i, n_levels - 1)
            p = p + share * cast(xp.arange(n_levels) == level[..., None], like.dtype)
        return p * (weight / weight.sum(axis=-1, keepdims=True))[..., None]

    def observe(self, state: RfclState, outcomes: Outcomes) -> RfclState:
        """Only rollouts from the frontier itself enter the buffer."""
        return self.buffer.observe(state, outcomes)

    def tests(self, state: RfclState) -> Tests:
        """The buffer is full of successes."""
        return self.buffer.tests(state)

    def basis(self, state: RfclState, context: Array, level: Array) -> tuple[Array, Array]:
        """The buffer's success rate, and the number of the cell's outcomes."""
        return self.buffer.basis(state, context, level)

    def transition(self, state: RfclState) -> Frontier:
        """``delta`` levels at once; level 0 is the end."""
        new, xp = super().transition(state), namespace(state.frontier.level)
        harder = cast(xp.maximum(cast(state.frontier.level, xp.int32) - self.delta, 0), new.level.dtype)
        return new._replace(level=xp.where(new.moved != 0, harder, new.level))
