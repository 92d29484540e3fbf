"""Statistics against SciPy, brute force, published examples and simulation."""

import itertools

import numpy as np
import pytest
from scipy import stats

from scout_rl.report.measure import statistics as s


@pytest.mark.parametrize(("wins", "losses"), [(6, 0), (5, 1), (4, 2), (3, 3), (0, 5), (8, 0), (1, 0), (13, 4)])
def test_the_sign_test_is_scipys_binomial_test(wins, losses):
    differences = np.array([1.0] * wins + [-1.0] * losses + [0.0] * 2)  # ties are left out
    assert s.sign_test(differences) == pytest.approx(stats.binomtest(wins, wins + losses).pvalue)


def test_the_papers_sign_tests():
    """Six paired seeds: 6/6 is p = 0.031, 5/6 is 0.22, 4/6 is 0.69, 3/6 is 1.0 (tab:pnp_c5, tab:mw-conflict)."""
    p_values = [round(s.sign_test(np.array([1.0] * w + [-1.0] * (6 - w))), 3) for w in (6, 5, 4, 3)]
    assert p_values == [0.031, 0.219, 0.688, 1.0]
    assert s.sign_test(np.zeros(4)) == 1.0


def test_holm_against_its_definition():
    """Holm (1979): the published example p = 0.01, 0.04, 0.03, 0.005 gives 0.03, 0.06, 0.06, 0.02."""
    assert s.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = rng.random(rng.integers(1, 9)) ** 3
        for alpha in (0.01, 0.05, 0.2):  # step down: reject in order until one is too large
            rejected = set()
            for rank, i in enumerate(np.argsort(p)):
                if p[i] > alpha / (len(p) - rank):
                    break
                rejected.add(int(i))
            assert {i for i, q in enumerate(s.holm(list(p))) if q <= alpha} == rejected


def test_no_sign_test_of_the_papers_family_survives():
    """The paper: 27 tests, the smallest possible p is 0.031, and none survives."""
    assert min(s.holm([2 / 64] * 27)) > 0.05


def test_the_bootstrap_of_three_seeds_against_every_resample():
    values = np.array([0.1, 0.4, 0.9])
    every = [np.median(values[list(rows)]) for rows in itertools.product(range(3), repeat=3)]  # all 27, equally likely
    interval = s.bootstrap(values, np.median, s.generator())
    assert interval == (0.4, *np.quantile(every, [0.025, 0.975]))


def test_the_bootstrap_against_scipy():
    values = np.random.default_rng(3).normal(1, 1, 12)
    ours = s.bootstrap(values, np.mean, s.generator(), 20_000)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=20_000, rng=1).confidence_interval
    assert ours.point == pytest.approx(values.mean())
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.03)


def test_the_same_table_twice():
    values = np.random.default_rng(0).random(6)
    assert s.bootstrap(values, np.median, s.generator()) == s.bootstrap(values, np.median, s.generator())


def test_too_few_seeds_give_no_interval():
    assert not s.bootstrap(np.array([0.3, 0.5]), np.median, s.generator()).bounded
    assert not s.bootstrap(np.array([0.3, 0.5]), np.median, s.generator()).excludes_zero


def test_pairs_are_matched_by_seed():
    comparison = s.paired({1: 0.9, 2: 0.8, 3: 0.7, 9: 0.0}, {3: 0.5, 1: 0.6, 2: 0.9, 7: 1.0})
    assert (comparison.n, comparison.wins) == (3, 2)
    assert comparison.difference.point == pytest.approx(0.2)  # of 0.3, -0.1, 0.2
    assert s.paired({1: 0.9}, {2: 0.1}) is None


def coverage(n, rounds, resamples, draw):
    rng = np.random.default_rng(n)
    hits = 0
    for _ in range(rounds):
        interval = s.bootstrap(draw(rng, n), np.median, rng, resamples)
        hits += interval.low <= 0.3 <= interval.high
    return hits / rounds


def normal(rng, n):
    return rng.normal(0.3, 0.2, n)


def test_coverage_with_six_seeds():
    """What the paper uses. Three standard errors of 400 rounds are 0.035."""
    assert 0.90 < coverage(6, 400, 1000, normal) < 0.98


def test_three_seeds_cover_less_than_they_say():
    """Why `conclude` asks for five: about 75% (the true median lies outside all three with probability 1/4)."""
    assert 0.68 < coverage(3, 400, 1000, normal) < 0.82


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw", [normal, lambda rng, n: 0.3 + rng.standard_t(2, n), lambda rng, n: rng.exponential(0.3 / np.log(2), n)]
)
@pytest.mark.parametrize(
    ("n", "low", "high"),
    [(3, 0.73, 0.77), (4, 0.85, 0.89), (5, 0.91, 0.955), (6, 0.92, 0.965), (10, 0.91, 0.97), (20, 0.91, 0.97)],
)
def test_coverage_at_length(n, low, high, draw):
    assert low < coverage(n, 4000, 2000, draw) < high


def test_scout_against_itself_finds_nothing():
    """On disjoint seeds of one condition the intervals leave 0 out about as seldom as the coverage says."""
    rng = np.random.default_rng(5)
    checks = [s.self_check(rng.normal(0.4, 0.1, 12), rng, most=4) for _ in range(40)]
    share = sum(c.discoveries for c in checks) / sum(c.splits for c in checks)
    assert share < 0.13
    shifted = np.concatenate([rng.normal(0.2, 0.01, 6), rng.normal(0.8, 0.01, 6)])
    assert s.paired(
        dict(enumerate(shifted[6:])), dict(enumerate(shifted[:6]))
    ).difference.excludes_zero  # and a real one shows
    assert s.self_check(np.array([0.1, 0.2, 0.3, 0.4]), rng) is None
    assert s.self_check(np.arange(6.0), rng).splits == 10


def test_the_interquartile_mean_is_scipys_trimmed_mean():
    rng = np.random.default_rng(1)
    for sizes in ((4,), (5, 7), (6, 6, 6), (1, 2)):
        scores = [rng.random(n) for n in sizes]
        assert s.interquartile_mean(scores) == pytest.approx(stats.trim_mean(np.concatenate(scores), 0.25))


def test_the_probability_of_improvement_is_the_mann_whitney_statistic():
    rng = np.random.default_rng(2)
    ours, theirs = (
        [rng.integers(0, 5, 6).astype(float), rng.random(4)],
        [rng.integers(0, 5, 5).astype(float), rng.random(6)],
    )
    expected = [stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)) for a, b in zip(ours, theirs, strict=True)]
    assert s.probability_of_improvement(ours, theirs) == pytest.approx(np.mean(expected))


def test_the_stratified_bootstrap_resamples_within_settings():
    """Two settings on scales that never meet: between-setting spread must not reach the interval."""
    scores = [np.array([0.10, 0.11, 0.12]), np.array([0.90, 0.91, 0.92])]
    interval = s.stratified_bootstrap(s.interquartile_mean, scores, rng=s.generator(), resamples=500)
    assert interval.point == pytest.approx(0.51)
    assert 0.45 < interval.low <= interval.high < 0.57


def test_the_ratio_interval():
    auto, manual, target = np.array([0.27, 0.28, 0.26]), np.array([0.22, 0.23, 0.21]), np.array([0.01, 0.02, 0.0])

    def ratio(a, m, t):
        return (a.mean(-1) - t.mean(-1)) / (m.mean(-1) - t.mean(-1))

    interval = s.ratio_interval(auto, manual, target, ratio, s.generator())
    assert interval.point == pytest.approx(0.26 / 0.21)
    assert interval.low == pytest.approx(interval.high)  # all three move together with the seed
    noisy = np.array([0.27, 0.20, 0.31])
    every = [ratio(noisy[i], manual[i], target[i]) for i in map(list, itertools.product(range(3), repeat=3))]
    interval = s.ratio_interval(noisy, manual, target, ratio, s.generator())
    assert (interval.low, interval.high) == pytest.approx((min(every), max(every)))  # each 1 of 27, more than 2.5%
    assert not s.ratio_interval(auto[:1], manual[:1], target[:1], ratio, s.generator()).bounded


def test_every_printed_interval_has_ten_thousand_resamples():
    """What the pages say: the number of resamples that each statistic is given."""
    values, shapes = np.array([0.1, 0.4, 0.9]), []

    def counted(*arguments, axis=-1):
        shapes.append(np.asarray(arguments[0][0] if isinstance(arguments[0], list) else arguments[0]).shape)
        return np.zeros(shapes[-1][:-1])

    s.bootstrap(values, counted, s.generator())
    s.stratified_bootstrap(counted, [values, values], rng=s.generator())
    s.ratio_interval(values, values, values, counted, s.generator())
    assert shapes == [(3,), (10_000, 3)] * 3


@pytest.mark.parametrize("n", [1, 2, 5, 9, 12])
def test_the_sign_flip_test_is_every_change_of_sign(n):
    values = np.random.default_rng(n).normal(0.4, 1, n).round(1)
    sums = [
        abs(sum(a * v for a, v in zip(signs, values, strict=True))) for signs in itertools.product((-1, 1), repeat=n)
    ]
    by_hand = np.mean([total >= abs(values.sum()) - 1e-9 for total in sums])
    assert s.sign_flip_test(values) == pytest.approx(by_hand)


def test_the_sign_flip_test_at_its_ends():
    assert s.sign_flip_test(np.zeros(6)) == 1
    assert s.sign_flip_test(np.array([])) == 1
    assert s.sign_flip_test(np.full(30, -0.3)) == pytest.approx(2 / 2**30)
    assert s.sign_flip_test(np.full(60, 0.3)) == pytest.approx(2 / 2**60)
    assert s.sign_flip_test(np.array([1.0, -1.0] * 30)) == 1


def test_zeros_change_nothing_in_a_sign_flip_test():
    values = np.random.default_rng(3).normal(0.4, 1, 9)
    assert s.sign_flip_test(np.concatenate([values, np.zeros(80)])) == s.sign_flip_test(values)


@pytest.mark.parametrize("n", [3, 20, 40])
def test_many_differences_are_tested_on_a_grid_as_few_are_exactly(n, monkeypatch):
    """Also where many sums are equal, as with windows to solve."""
    for values in (np.random.default_rng(n).normal(0.2, 1, n), np.random.default_rng(n).choice([-1.0, 1, 2], n)):
        exact = s.sign_flip_test(values)
        monkeypatch.setattr(s, "MOST_FLIPS", 0)
        assert s.sign_flip_test(values) == pytest.approx(exact, rel=2e-3)
        monkeypatch.undo()


def test_the_mean_interval_is_students():
    values = np.array([0.3, -0.1, 0.4, 0.2, 0.0, 0.1])
    low, high = stats.t.interval(0.95, 5, loc=values.mean(), scale=stats.sem(values))
    assert s.mean_interval(values) == pytest.approx((values.mean(), low, high), rel=1e-4)
    for freedom, quantile in enumerate(s.T_975, 1):
        assert quantile == pytest.approx(stats.t.ppf(0.975, freedom), abs=1e-4)
    assert not s.mean_interval(np.array([1.0, 2.0])).bounded
