"""Ability: one model of success for the whole bank; every outcome counts for all contexts, most for its own.

**The model.** A rollout of context x from level l succeeds with the chance

    P[x, l] = sigmoid(g[l] + d[x, l])

``g`` is what the whole bank shows at a level, ``d`` how a context differs from it. Both change while the learner
learns, so both are tracked by a Gaussian filter: ``g`` has a covariance ``C`` over the levels, every ``d[x]`` one
variance ``v[x]``. Before any outcome ``C`` and ``v`` are the prior, ``K[k, l] = spread**|k - l|`` and
``own_variance``.

**A block of outcomes** (16, in order; see ``BLOCK``):

1. What was known fades: ``C += drift_shared * K`` per outcome, and ``v += drift_own * own_variance / contexts``.
   Neither exceeds its prior. Drift counts outcomes, so window sizes do not matter.
2. Every outcome has the residual ``e = r - P`` and the information ``i = P * (1 - P)``. ``I[x]`` sums the
   information of a context in the block. The shared part discounts both by ``1 + v[x] * I[x]``: where a context's own
   offset may explain them, they say less about the bank.
3. One Newton step each: ``C <- (1/C + diag(i per level))**-1`` and ``g += C @ (e per level)``;
   ``v[x] <- v[x] / (1 + v[x] * I[x])`` and ``d[x] += v[x] * (e of x) @ K``. Steps and sizes are limited, so that
   no stream of outcomes overflows. ``g`` is made non-decreasing toward easier levels.

**Which cells.** ``M`` is P, moderated by ``v`` and made non-decreasing toward easier levels; it is 0 beyond the target
start and 1 beyond the easiest level. A level is worth

    u[l] = M * (1 - M)**2 * (1 - t[l]) + step * S[l]

``M * (1 - M)**2`` is what a success can teach: it must come, and it must be news. Of two equals the harder start
teaches more. ``S`` is the slope ``M[l + 1] - M[l - 1]``: it is high on both sides of the step from what works to what
does not. So a bank where nothing succeeds trains at the easiest level, one where everything does at the target start,
and a gap in the ladder is trained on both of its sides.
``t[l]`` is near 1 where the next harder start works as well: then this level's part goes to that one. Levels are drawn
in proportion to ``u**focus``, contexts in proportion to what they would learn, times what they still miss from the
target start, ``1 - M[0]``, with a uniform floor.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from scout_rl.rules.arrays import (
    all_true,
    by_rows,
    cast,
    copied,
    count_kept,
    diagonal,
    largest,
    namespace,
    order_of,
    over_blocks,
    product,
    put,
    rows,
    running_max,
    search,
    segment_sum,
    with_information,
)
from scout_rl.rules.cells import Array, Outcomes
from scout_rl.rules.rule import Rule, Status, check_shape, limited
from scout_rl.rules.statistics import Statistics, init_statistics, observe, tally
from scout_rl.rules.unpaced import BETA

BLOCK, MOST_BLOCKS = 16, 8
"""Outcomes per step of the filter. A window of more than 128 has 8 blocks of equal size instead: more blocks bring its
chances no nearer to the truth, and each is a chain of small kernels on a GPU."""
LIMIT = 6.0
"""Bound of ``g`` and of ``d``, in logits."""
SHARED_STEP, OWN_STEP = 1.0, 2.0
"""The most that one block moves ``g`` and ``d``."""
GUARD = 0.05
"""Keeps two levels that both never succeed from counting as equally good."""
FAIR, LOST = 0.0, -0.6
"""The frontier advances to a level at this logit (chance 0.5), and leaves one below that (0.35)."""
MASTERED, HOPELESS, LONG = 0.9, 0.1, 4
"""Chance of a mastered target start and of a hopeless easiest level; mean gaps without an outcome that are long."""


class AbilityState(NamedTuple):
    """What the rule remembers: about 130 bytes per context at five levels."""

    statistics: Statistics
    shared: Array
    """``g``, ``[..., levels]``."""
    covariance: Array
    """``C``, ``[..., levels, levels]``."""
    own: Array
    """``d``, ``[..., contexts, levels]``."""
    variance: Array
    """``v``, ``[..., contexts]``."""
    level: Array
    """``[..., contexts]``: the frontier, the hardest level with a fair chance."""
    move: Array
    """``[..., contexts]``: -1 where the last window advanced it, 1 where it retreated, else 0."""


class _Filter(NamedTuple):
    """What one block hands to the next, with all leading axes as one: ``runs``."""

    shared: Array
    covariance: Array
    own: Array
    """``[runs * contexts, levels]``."""
    variance: Array
    """``[runs * contexts]``, without this window's drift."""
    drift: Array
    """``[runs]``: what this window's outcomes have added to every variance so far."""


@dataclass(frozen=True, kw_only=True)
class Ability(Rule):
    """One logistic model of success for the whole bank; cells are drawn by how much they can teach."""

    key: ClassVar[str] = "ability"

    drift_shared: float = limited(1e-3, lambda x: 0 <= x <= 1, "drift_shared is {}, but must be in 0..1")
    """Growth of the shared variance per outcome: it remembers about 80 outcomes."""
    drift_own: float = limited(0.1, lambda x: 0 <= x <= 1, "drift_own is {}, but must be in 0..1")
    """Growth of a context's variance per outcome that it gets on average, as a share of ``own_variance``."""
    own_variance: float = limited(2.0, lambda x: 0 <= x <= 100, "own_variance is {}, but must be in 0..100")
    """How much contexts differ, in squared logits; 0 turns the own part off."""
    shared_variance: float = limited(1.0, lambda x: 0 <= x <= 100, "shared_variance is {}, but must be in 0..100")
    """How little is known of the bank before any outcome; 0 turns the shared part off."""
    spread: float = limited(0.6, lambda x: 0 <= x < 1, "spread is {}, but must be in 0..1, below 1")
    """How much an outcome says about the neighbouring level."""
    step: float = limited(0.125, lambda x: 0 <= x <= 10, "step is {}, but must be in 0..10")
    """Weight of the slope of success over the ladder, beside what can be learned (at most 0.15)."""
    focus: float = limited(4.0, lambda x: 0 < x <= 20, "focus is {}, but must be above 0, at most 20")
    """Power of a level's worth."""
    eps: float = limited(0.1, lambda x: 0.01 <= x <= 1, "the floor eps is {}, but must be in 0.01..1")
    """Uniform share of the contexts."""

    def init(self, n_contexts: int, n_levels: int, oracle_group: Array | None = None) -> AbilityState:
        """Chances from 0.27 at the target start to 0.73 at the easiest level. Labels are ignored."""
        check_shape(n_contexts, n_levels)
        return AbilityState(
            init_statistics(n_contexts, n_levels),
            np.linspace(-1.0, 1.0, n_levels),
            self.shared_variance * _kernel(self.spread, n_levels),
            np.zeros((n_contexts, n_levels)),
            np.full(n_contexts, self.own_variance),
            np.full(n_contexts, n_levels - 1, np.int8),
            np.zeros(n_contexts, np.int8),
        )

    # -- which cells -----------------------------------------------------------------------------------------------

    def distribution(self, state: AbilityState) -> Array:
        """Levels by ``u**focus``, contexts by what they would learn and still miss, then the floor."""
        n = state.own.shape[-2]
        p, worth = by_rows(self._levels, (state.own, state.variance), state.shared)
        context = (1 - self.eps) / worth.sum(axis=-1, keepdims=True) * worth + self.eps / n
        p *= context[..., None]
        return p

    def _levels(self, own: Array, variance: Array, shared: Array) -> tuple[Array, Array]:
        """Per context: the distribution over levels, and its weight among the contexts."""
        xp, L = namespace(own), own.shape[-1] - 1
        M = _rising(_moderated(shared, own, variance))
        missed = [1 - m for m in M]
        learned = [m * n * n for m, n in zip(M, missed, strict=True)]
        u: list[Any] = [None] * (L + 1)
        passed: Any = 0.0
        for level in range(L, 0, -1):
            ratio = M[level - 1] / (M[level] + GUARD)
            t = ratio * ratio
            slope = passed + ((M[level + 1] if level < L else 1.0) - M[level - 1])
            u[level] = _power((1 - t) * (learned[level] + self.step * slope), self.focus)
            passed = t * slope
        u[0] = _power(learned[0] + self.step * (passed + M[1]), self.focus)
        total = 1 / sum(u[1:], u[0])
        q = [weight * total for weight in u]
        weight = sum((a * b for a, b in zip(q, learned, strict=True)), xp.zeros_like(total)) * missed[0]
        return xp.stack(q, axis=-1), weight

    # -- the filter ------------------------------------------------------------------------------------------------

    def update(self, state: AbilityState, outcomes: Outcomes) -> AbilityState:
        """Filter the window's outcomes block by block, in order; then see where frontiers are."""
        xp = namespace(state.own)
        n, n_levels = state.own.shape[-2:]
        lead = state.own.shape[:-2]
        runs = math.prod(lead)
        dtype = state.own.dtype
        start = _Filter(
            state.shared.reshape(runs, n_levels),
            state.covariance.reshape(runs, n_levels, n_levels),
            copied(state.own.reshape(runs * n, n_levels)),
            copied(state.variance.reshape(runs * n)),
            xp.zeros(runs, dtype),
        )
        K = xp.asarray(_kernel(self.spread, n_levels), dtype)
        count, *columns = _blocks(outcomes, n, n_levels, runs, dtype)
        shared_drift = (self.drift_shared * self.shared_variance * count)[..., None, None] * K
        own_drift = count * (self.drift_own * self.own_variance / n)
        blocks = shared_drift, own_drift, *columns
        end = over_blocks(lambda carry, block: self._block(carry, block, K, n), start, blocks)
        spread = xp.repeat(end.drift, n) if runs > 1 else end.drift
        variance = xp.minimum(self.own_variance, end.variance + spread).reshape(state.variance.shape)
        shared, own = end.shared.reshape(state.shared.shape), end.own.reshape(state.own.shape)
        level, move = by_rows(_frontier, (own, state.level), shared)
        return AbilityState(
            observe(state.statistics, tally(outcomes, state.own.shape), outcomes.success, BETA),
            shared,
            end.covariance.reshape(state.covariance.shape),
            own,
            variance,
            level,
            move,
        )

    def _block(self, carry: _Filter, block: Any, K: Array, n: int) -> _Filter:
        """Steps 1 to 3 of the module's derivation."""
        shared_drift, own_drift, *columns = block
        runs, n_levels = carry.shared.shape
        kept = count_kept(columns[0], runs * n)
        row, cell, run, at, first, pair, seen, success = (column[:kept] for column in columns)
        xp, shape = namespace(row), (runs, n_levels)
        drift = carry.drift + own_drift
        C = carry.covariance + shared_drift
        prior = self.shared_variance
        C = C * (prior / xp.maximum(largest(diagonal(C)), max(prior, 1e-30)))[:, None, None]

        logit = rows(carry.shared.reshape(-1), at) + rows(carry.own.reshape(-1), cell)
        P = _sigmoid(logit) * seen
        e = success - P
        i = P * (1 - P)

        faded = drift[run]
        v = xp.minimum(self.own_variance, rows(carry.variance, row) + faded)
        explained = 1 + v * segment_sum(i, first)[first]
        residual = segment_sum(e / explained, at, runs * n_levels).reshape(shape)
        information = segment_sum(i / explained, at, runs * n_levels).reshape(shape)
        C = with_information(C, information)
        shared = running_max(carry.shared + _bounded(product(C, residual[..., None])[..., 0], SHARED_STEP))

        gain = v / explained
        per_context = segment_sum(e, pair, kept * n_levels).reshape(kept, n_levels)
        move = _bounded(gain[:, None] * product(per_context, K)[first], OWN_STEP)
        own = put(carry.own, row, _bounded(rows(carry.own, row) + move, LIMIT))
        variance = put(carry.variance, row, gain - faded)
        return _Filter(_bounded(shared, LIMIT), C, own, variance, drift)

    # -- what users see --------------------------------------------------------------------------------------------

    def chance(self, state: AbilityState) -> tuple[Array, Array]:
        """The estimated success of every cell, and the standard error of its logit: ``[..., contexts, levels]``."""
        known = diagonal(state.covariance)[..., None, :] + state.variance[..., None]
        return _sigmoid(state.shared[..., None, :] + state.own), namespace(known).sqrt(known)

    def frontier(self, state: AbilityState) -> Array:
        """The hardest level with a chance of a half; it is left again below 0.35."""
        return state.level

    def moved(self, state: AbilityState) -> Array:
        """The last window's moves; they may be of several levels."""
        return state.move

    def status(self, state: AbilityState) -> Array:
        """What the model says about every context."""
        xp = namespace(state.own)
        P = _rising(_moderated(state.shared, state.own, state.variance))
        s = state.statistics
        outcomes = cast(xp.maximum(s.evidence.sum(axis=(-2, -1)), 1), state.own.dtype)
        gap = (s.window * s.evidence.shape[-2] / outcomes)[..., None]
        unseen = (s.window[..., None] - largest(s.last) > LONG * gap) | (s.evidence.sum(axis=-1) == 0)
        words = xp.where(unseen, int(Status.SELDOM_DRAWN), int(Status.LEARNING))
        words = xp.where(P[-1] < HOPELESS, int(Status.TOO_HARD_AT_THE_EASIEST_LEVEL), words)
        words = xp.where(P[0] > MASTERED, int(Status.MASTERED), words)
        words = xp.where(state.move < 0, int(Status.ADVANCED), words)
        return cast(xp.where(state.move > 0, int(Status.RETREATED), words), xp.int8)

    def basis(self, state: AbilityState, context: Array, level: Array) -> tuple[Array, Array]:
        """The estimated chance of these cells, and their outcomes so far."""
        chance = _sigmoid(state.shared[level] + state.own[context, level])
        return chance, state.statistics.evidence[context, level]


@functools.cache
def _kernel(spread: float, n_levels: int) -> Any:
    """``K[k, l] = spread**|k - l|``."""
    levels = np.arange(n_levels)
    return spread ** np.abs(levels[:, None] - levels)


def _sigmoid(logit: Array) -> Array:
    return 1 / (1 + namespace(logit).exp(-logit))


def _moderated(shared: Array, own: Array, variance: Array) -> Array:
    """The mean chance over what is not known of a context: ``sigmoid(logit / sqrt(1 + pi * v / 8))``."""
    certain = 1 / namespace(own).sqrt(1 + (np.pi / 8) * variance)
    return _sigmoid((shared[..., None, :] + own) * certain[..., None])


def _power(u: Array, focus: float) -> Array:
    """``u**focus``; products and a root are several times as fast as a power."""
    whole, rest = divmod(focus, 1)
    if whole > 8 or rest not in (0, 0.5):
        return u**focus
    power, left = (namespace(u).sqrt(u), whole) if rest else (u, whole - 1)
    for _ in range(int(left)):
        power = power * u
    return power


def _blocks(outcomes: Outcomes, n: int, n_levels: int, runs: int, dtype: Any) -> tuple[Array, ...]:
    """What `_block` takes of every block: its number of outcomes per run, and columns of its outcomes by context.

    The columns are ``[blocks, outcomes]``; invalid outcomes are the last of their block, with a row past the end.
    """
    xp = namespace(outcomes.context)
    (context, level, success, valid), size = _padded(outcomes, runs)
    length, each = context.shape[-1], runs * size
    row = xp.arange(runs)[:, None] * n + context
    if not all_true(valid):
        row = xp.where(valid, row, runs * n)
    block = xp.arange(length) // size
    order = order_of((row + block * (runs * n + 1)).reshape(-1))
    row, level, success, seen = (column.reshape(-1)[order] for column in (row, level, success, valid))
    run, seen = order // length, cast(seen, dtype)
    start = xp.arange(len(row)) // each
    place = row + start * (runs * n + 1)
    first = search(place, place, "left") - start * each  # the first outcome of the same context
    success = cast(success, dtype) * seen
    columns = row, row * n_levels + level, run, run * n_levels + level, first, first * n_levels + level, seen, success
    count = valid.reshape(runs, -1, size).sum(axis=-1).swapaxes(0, 1)
    return cast(count, dtype), *(column.reshape(-1, each) for column in columns)


def _padded(outcomes: Outcomes, runs: int) -> tuple[list[Array], int]:
    """Context, level, success and validity, ``[runs, outcomes]``, valid outcomes first; and the size of a block."""
    xp = namespace(outcomes.context)
    columns = [c.reshape(runs, -1) for c in (outcomes.context, outcomes.level, outcomes.success, outcomes.valid)]
    valid = columns[3]
    if not all_true(valid):
        order = order_of(~valid)
        columns = [xp.take_along_axis(c, order, axis=-1) for c in columns]
    n = valid.shape[-1]
    size = max(1, min(BLOCK, n)) if n <= BLOCK * MOST_BLOCKS else -(-n // MOST_BLOCKS)
    if missing := -n % size:
        columns = [xp.pad(c, [(0, 0), (0, missing)]) for c in columns]
    return columns, size


def _rising(cells: Array) -> list[Array]:
    """The levels of ``[..., contexts, levels]`` one by one, made non-decreasing toward easier ones.

    A list of columns and not a running maximum: NumPy is slow along an axis of five.
    """
    xp, columns = namespace(cells), [cells[..., 0]]
    for level in range(1, cells.shape[-1]):
        columns.append(xp.maximum(columns[-1], cells[..., level]))
    return columns


def _frontier(own: Array, level: Array, shared: Array) -> tuple[Array, Array]:
    """The new frontier, and its move: to the hardest level of a fair chance, or the hardest that is not lost."""
    xp = namespace(own)
    logits = _rising(shared[..., None, :] + own)[:-1]
    fair = sum((z < FAIR for z in logits), xp.zeros_like(level))
    kept = sum((z < LOST for z in logits), xp.zeros_like(level))
    new = cast(xp.minimum(xp.maximum(level, kept), fair), level.dtype)
    return new, xp.sign(new - level)


def _bounded(x: Array, limit: float) -> Array:
    """``x`` within ``-limit..limit``; NumPy's ``clip`` is five times as slow on small arrays."""
    xp = namespace(x)
    return xp.minimum(xp.maximum(x, -limit), limit)
