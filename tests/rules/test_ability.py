"""The rule `ability`: a scalar reference, what it promises of its cells, and how its estimates behave."""

import math

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.rules.ability import Ability
from tests.rules.streams import Stream, outcomes


class Reference:
    """The docstring of `rules/ability.py` as scalar loops: no arrays, no sorting, one run."""

    def __init__(self, rule, n, levels):
        self.rule, self.n, self.levels = rule, n, levels
        self.g = [-1 + 2 * k / (levels - 1) for k in range(levels)]
        self.K = [[rule.spread ** abs(k - m) for m in range(levels)] for k in range(levels)]
        self.C = [[rule.shared_variance * value for value in row] for row in self.K]
        self.d = [[0.0] * levels for _ in range(n)]
        self.v = [rule.own_variance] * n

    def update(self, context, level, success):
        triples = list(zip(context, level, success, strict=True))
        for start in range(0, len(triples), 16):
            self.block(triples[start : start + 16])

    def block(self, triples):
        rule, levels = self.rule, range(self.levels)
        for x in range(self.n):
            self.v[x] = min(rule.own_variance, self.v[x] + rule.drift_own * rule.own_variance * len(triples) / self.n)
        for k in levels:
            for m in levels:
                self.C[k][m] += rule.drift_shared * rule.shared_variance * len(triples) * self.K[k][m]
        shrink = min(1.0, rule.shared_variance / max(self.C[k][k] for k in levels))
        self.C = [[value * shrink for value in row] for row in self.C]
        chance = [1 / (1 + math.exp(-self.g[m] - self.d[x][m])) for x, m, _ in triples]
        information = [0.0] * self.n
        for (x, _, _), p in zip(triples, chance, strict=True):
            information[x] += p * (1 - p)
        residual, weight = [0.0] * self.levels, [0.0] * self.levels
        own = {}
        for (x, m, r), p in zip(triples, chance, strict=True):
            explained = 1 + self.v[x] * information[x]
            residual[m] += (r - p) / explained
            weight[m] += p * (1 - p) / explained
            moves = own.setdefault(x, [0.0] * self.levels)
            for k in levels:
                moves[k] += self.v[x] / explained * (r - p) * self.K[m][k]
        self.C = np.linalg.inv(np.linalg.inv(np.array(self.C)) + np.diag(weight)).tolist()
        g = [self.g[k] + min(1, max(-1, sum(self.C[k][m] * residual[m] for m in levels))) for k in levels]
        self.g = [min(6, max(-6, max(g[: k + 1]))) for k in levels]
        for x, moves in own.items():
            self.d[x] = [min(6, max(-6, d + min(2, max(-2, move)))) for d, move in zip(self.d[x], moves, strict=True)]
            self.v[x] /= 1 + self.v[x] * information[x]

    def distribution(self):
        rule, L = self.rule, self.levels - 1
        rows, worth = [], []
        for x in range(self.n):
            scale = math.sqrt(1 + math.pi / 8 * self.v[x])
            P = [1 / (1 + math.exp(-(self.g[k] + self.d[x][k]) / scale)) for k in range(L + 1)]
            M = [max(P[: k + 1]) for k in range(L + 1)]
            t = [0.0] + [(M[k - 1] / (M[k] + 0.05)) ** 2 for k in range(1, L + 1)]
            around = [0.0, *M, 1.0]
            passed, S = 0.0, [0.0] * (L + 1)
            for k in range(L, -1, -1):
                slope = passed + around[k + 2] - around[k]
                S[k], passed = (1 - t[k]) * slope, t[k] * slope
            learned = [M[k] * (1 - M[k]) ** 2 for k in range(L + 1)]
            u = [(learned[k] * (1 - t[k]) + rule.step * S[k]) ** rule.focus for k in range(L + 1)]
            q = [value / sum(u) for value in u]
            rows.append(q)
            worth.append((1 - M[0]) * sum(q[k] * learned[k] for k in range(L + 1)))
        share = [(1 - rule.eps) * w / sum(worth) + rule.eps / self.n for w in worth]
        return [[weight * value for value in q] for weight, q in zip(share, rows, strict=True)]


@pytest.mark.parametrize(("n", "levels", "batch"), [(7, 5, 16), (30, 5, 40), (3, 2, 1), (12, 13, 64), (1, 3, 5)])
def test_it_is_its_scalar_reference(n, levels, batch):
    rule = rules.make("ability")
    state, reference, stream = rule.init(n, levels), Reference(rule, n, levels), Stream(n, levels, batch, n)
    for _ in range(120):
        p = rule.distribution(state)
        np.testing.assert_allclose(p, reference.distribution(), rtol=0, atol=1e-10)
        seen = stream.next(p)
        state = rule.update(state, seen)
        reference.update(seen.context.tolist(), seen.level.tolist(), seen.success.tolist())
    np.testing.assert_allclose(state.shared, reference.g, atol=1e-9)
    np.testing.assert_allclose(state.own, reference.d, atol=1e-9)
    np.testing.assert_allclose(state.variance, reference.v, atol=1e-9)
    np.testing.assert_allclose(state.covariance, reference.C, atol=1e-9)


def played(rule, n, levels, batch, windows, chance, seed=0):
    """The state after windows of cells that the rule draws; ``chance(window)`` is their success, [contexts, levels]."""
    rng, state = np.random.default_rng(seed), rule.init(n, levels)
    for window in range(windows):
        p = rule.distribution(state).reshape(-1)
        x, k = np.divmod(rng.choice(n * levels, batch, p=p / p.sum()), levels)
        table = np.broadcast_to(chance(window), (n, levels))
        state = rule.update(state, outcomes(x, k, rng.random(batch) < table[x, k]))
    return state


SHAPES = pytest.mark.parametrize(
    ("n", "levels", "batch", "windows"), [(1, 2, 1, 400), (40, 5, 16, 200), (40, 13, 16, 200), (5, 13, 65_536, 12)]
)


@SHAPES
def test_where_nothing_succeeds_it_trains_at_the_easiest_level(n, levels, batch, windows):
    rule = Ability()
    p = rule.distribution(played(rule, n, levels, batch, windows, lambda window: 0.0))
    assert p[:, -1].sum() >= 0.4
    assert p.sum(axis=1).min() >= 0.01 / n


@SHAPES
def test_where_everything_succeeds_it_trains_at_the_target_start(n, levels, batch, windows):
    rule = Ability()
    state = played(rule, n, levels, batch, windows, lambda window: 1.0)
    p = rule.distribution(state)
    assert p[:, 0].sum() >= 0.5
    assert (rule.frontier(state) == 0).all()


@pytest.mark.parametrize("success", [True, False])
def test_a_million_outcomes_of_one_sign_keep_it_finite(success):
    rule = Ability()
    state, rng = rule.init(50, 5), np.random.default_rng(0)
    for batch in [65_536] * 15 + [16] * 50 + [1] * 50:
        x, k = rng.integers(50, size=batch), rng.integers(5, size=batch)
        state = rule.update(state, outcomes(x, k, np.full(batch, success)))
        p = rule.distribution(state)
        assert np.isfinite(p).all()
        assert (p >= 0).all()
        assert abs(p.sum() - 1) < 1e-12
    assert all(np.isfinite(leaf).all() for leaf in state[1:])


def stream_of(n, levels, total, seed, learning):
    """One stream of outcomes, and the chances at its end.

    Every context has its own pace; with ``learning`` all become better.
    """
    rng = np.random.default_rng(seed)
    x, k = rng.integers(n, size=total), rng.integers(levels, size=total)
    pace = rng.normal(0, 1, n)
    time = np.arange(total) / total if learning else np.full(total, 0.5)

    def chance(time, x, k):
        return 1 / (1 + np.exp(4 - 6 * time - pace[x] - 0.8 * k))

    truth = chance(1.0 if learning else 0.5, np.arange(n)[:, None], np.arange(levels))
    return outcomes(x, k, rng.random(total) < chance(time, x, k)), truth


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("total", [1024, 4096])
def test_the_size_of_windows_does_not_matter(learning, total):
    rule, n, levels = Ability(), 60, 5
    seen, _ = stream_of(n, levels, total, 3, learning)
    chances = []
    for size in (1, 16, 64, 128):
        state = rule.init(n, levels)
        for start in range(0, total, size):
            state = rule.update(state, type(seen)(*(column[start : start + size] for column in seen)))
        chances.append(rule.chance(state)[0])
    for other in chances[2:]:
        np.testing.assert_allclose(other, chances[1], atol=1e-12)  # blocks of 16 whatever the window
    assert (np.abs(chances[0] - chances[1]) < 0.05).mean() >= 0.95


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("size", [1024, 8192])
def test_large_windows_know_as_much_as_small_ones(learning, size):
    """Their blocks are larger; the chances are as near to the truth."""
    rule, n, levels, total = Ability(), 60, 5, 8192
    errors = {16: [], size: []}
    for seed in range(4):
        seen, truth = stream_of(n, levels, total, seed, learning)
        for window, error in errors.items():
            state = rule.init(n, levels)
            for start in range(0, total, window):
                state = rule.update(state, type(seen)(*(column[start : start + window] for column in seen)))
            error.append(np.sqrt(((rule.chance(state)[0] - truth) ** 2).mean()))
    assert np.mean(errors[size]) < 1.02 * np.mean(errors[16]) < 0.16


def test_a_context_that_is_lost_again_is_noticed():
    rule, lost = Ability(), 7

    def chance(window):
        table = np.full((20, 5), 0.97)
        if window >= 200:
            table[lost] = 0.02
        return table

    before = played(rule, 20, 5, 16, 200, chance)
    after = played(rule, 20, 5, 16, 500, chance)
    assert rule.frontier(before)[lost] == 0
    assert rule.frontier(after)[lost] == 4
    others = np.arange(20) != lost
    assert (rule.frontier(after)[others] == 0).mean() > 0.9


def test_two_paces_are_told_apart_without_labels():
    rule = Ability()
    table = np.where(np.arange(20)[:, None] < 10, [0.9, 0.95, 0.97, 0.98, 0.99], [0.01, 0.01, 0.02, 0.1, 0.6])
    state = played(rule, 20, 5, 16, 250, lambda window: table)
    chance, error = rule.chance(state)
    assert chance[:10, 0].min() > chance[10:, 0].max()
    assert np.isfinite(error).all()
    assert (error > 0).all()
    assert rule.frontier(state)[:10].max() == 0
    assert rule.frontier(state)[10:].min() >= 3


def test_words():
    rule = Ability()
    table = np.where(np.arange(4)[:, None] < 1, 0.999, np.where(np.arange(4)[:, None] < 2, 0.0, 0.4))
    state = played(rule, 4, 5, 16, 300, lambda window: table)
    names = [rules.Status(s).name for s in rule.status(state._replace(move=np.zeros(4, np.int8)))]
    assert names == ["MASTERED", "TOO_HARD_AT_THE_EASIEST_LEVEL", "LEARNING", "LEARNING"]
    fresh = rule.status(rule.init(3, 4))
    assert {rules.Status(s).name for s in fresh} == {"SELDOM_DRAWN"}


def test_it_holds_within_150_bytes_per_context():
    state = Ability().init(1000, 5)
    arrays = [*state.statistics, *state[1:]]
    assert sum(np.asarray(a).nbytes for a in arrays) / 1000 <= 150
