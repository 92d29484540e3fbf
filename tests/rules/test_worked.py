"""One example per rule, worked by hand. Every expected number has its arithmetic beside it."""

from pathlib import Path

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.rules import Status
from tests.rules.streams import outcomes

NOTHING = outcomes([], [], [])


def play(rule, state, *windows):
    for window in windows:
        state = rule.update(state, window)
    return state


def words(rule, state):
    return [Status(s).name.lower() for s in rule.status(state)]


def levels_over_time(rule, n_levels, windows):
    """The level (all probability on one) that contexts share, window by window."""
    state, seen = rule.init(3, n_levels), []
    for _ in range(windows):
        p = rule.distribution(state)
        assert p.max() == pytest.approx(1 / 3)
        seen.append(int(p[0].argmax()))
        state = rule.update(state, NOTHING)
    return seen


def test_target():
    rule = rules.Target()
    p = rule.distribution(rule.init(4, 3))
    assert p.tolist() == [[0.25, 0, 0]] * 4  # level 0, contexts alike


def test_fixed():
    rule = rules.Fixed(level=2)
    p = rule.distribution(rule.init(4, 3))
    assert p.tolist() == [[0, 0, 0.25]] * 4


def test_random():
    rule = rules.Random()
    p = rule.distribution(rule.init(2, 4))
    assert p.tolist() == [[1 / 8] * 4] * 2  # 2 contexts x 4 levels


def test_anneal():
    # L = 4, T = 4: 4*(1 - t/4) = 4, 3, 2, 1, 0, then 0 for good
    assert levels_over_time(rules.Anneal(T_anneal=4), 5, 6) == [4, 3, 2, 1, 0, 0]
    # L = 4, T = 8: 4, 3.5, 3, 2.5, 2, 1.5, 1, 0.5, 0; halves go to the even level
    assert levels_over_time(rules.Anneal(T_anneal=8), 5, 9) == [4, 4, 3, 2, 2, 2, 1, 0, 0]


def test_reverse():
    # T = 10: progress .9 .81 .72 .63 .54 .45 .36 .27 .18 .09 0 against levels at 0 .25 .5 .75 .9
    # .81 is .06 from .75 and .09 from .9; .63 is .12 from .75 and .13 from .5; .36 is .11 from .25 and .14 from .5;
    # .09 is .09 from 0 and .16 from .25
    assert levels_over_time(rules.Reverse(T=10), 5, 12) == [4, 3, 3, 3, 2, 2, 1, 1, 1, 0, 0, 0]
    # T = 12: t = 1 gives .825, as far from .75 as from .9: the harder one
    assert levels_over_time(rules.Reverse(T=12), 5, 2) == [4, 3]


def test_mixture():
    rule = rules.Mixture()
    state = rule.init(1, 5)
    # S = 0: m = .1; easiest max(.2, .9/4 = .225); the three between share 1 - .1 - .225 = .675
    np.testing.assert_allclose(rule.distribution(state)[0], [0.1, 0.225, 0.225, 0.225, 0.225])
    state = rule.update(state, outcomes([0, 0], [4, 4], [1, 0]))
    # mean .5: S = .05*.5 = .025; m = .1 + .6*.025 = .115; easiest max(.2, .885/4 = .22125)
    np.testing.assert_allclose(rule.distribution(state)[0], [0.115, 0.22125, 0.22125, 0.22125, 0.22125])
    # a window without outcomes leaves S
    np.testing.assert_allclose(rule.distribution(rule.update(state, NOTHING)), rule.distribution(state))
    # S = 1 (rate 1, all succeed): m = .7; easiest max(.2, .075) = .2; the rest .1/3 each
    fast = rules.Mixture(rate=1.0)
    state = fast.update(fast.init(1, 5), outcomes([0], [4], [1]))
    np.testing.assert_allclose(fast.distribution(state)[0], [0.7, 0.1 / 3, 0.1 / 3, 0.1 / 3, 0.2])
    # two levels: the easiest takes all of the rest
    np.testing.assert_allclose(rule.distribution(rule.init(1, 2))[0], [0.1, 0.9])


def test_scout_advances_after_two_windows_that_agree():
    rule = rules.Scout(n_min=2, beta=0.5, tau_high=0.7, q_max=1.0, N_stale=0)
    state = rule.init(2, 3)
    assert words(rule, state) == ["gathering", "gathering"]
    # s(0) = .5*0+.5 = .5, then .75 >= .7: harder, once. s(1) = 0 <= .15: easier, but it is at L = 2.
    state = rule.update(state, outcomes([0, 0, 1, 1], [2, 2, 2, 2], [1, 1, 0, 0]))
    assert rule.frontier(state).tolist() == [2, 2]
    assert words(rule, state) == ["confirming", "easiest"]
    # score(0) = .75*.25 + .2*0 + .1*log(1+0) = .1875, score(1) = 0; softmax at .5: exp(.375) = 1.454991 to 1,
    # so .592666; floor: .9*.592666 + .05 = .583399
    np.testing.assert_allclose(rule.context_probabilities(state), [0.583399, 0.416601], atol=1e-6)
    # Nothing new is reported: the clocks run in windows, so the same .75 confirms the direction.
    state = rule.update(state, NOTHING)
    assert rule.frontier(state).tolist() == [1, 2]
    assert rule.moved(state).tolist() == [-1, 0]
    assert words(rule, state) == ["advanced", "easiest"]
    # Context 0 is at a cell never visited: s = 0, progress (2-1)/2, c = 2 windows. score = .2*.5 + .1*log(3) = .209861.
    # Context 1: s = 0, c = 1 window since it was sampled. score = .1*log(2) = .069315.
    np.testing.assert_allclose(rule.score(state), [0.209861, 0.069315], atol=1e-6)
    # cooldown 3: the next three windows are not eligible, whatever is reported; the fourth and fifth confirm a retreat
    fail = outcomes([0, 0], [1, 1], [0, 0])
    for left in (2, 1, 0):
        state = rule.update(state, fail)
        assert state.frontier.cooldown[0] == left
        assert rule.frontier(state).tolist() == [1, 2]
        assert state.frontier.pending[0] == 0
    state = rule.update(state, NOTHING)
    assert words(rule, state)[0] == "confirming"
    state = rule.update(state, NOTHING)
    assert rule.frontier(state).tolist() == [2, 2]
    assert words(rule, state)[0] == "retreated"


def test_scout_probes_out_of_the_dead_band():
    rule = rules.Scout(n_min=2, beta=0.5, N_stale=3)
    # s = .5*(.5*1) = .25 .. in (.15, .8): d = 1, 2 without a direction; d = 3 and 4 say harder; the move is in window 3
    state = rule.update(rule.init(1, 3), outcomes([0, 0], [2, 2], [1, 0]))
    seen = [words(rule, state)[0]]
    for _ in range(3):
        state = rule.update(state, NOTHING)
        seen.append(words(rule, state)[0])
    assert seen == ["deadband", "deadband", "confirming", "probed"]
    assert rule.frontier(state).tolist() == [1]
    assert rule.moved(state).tolist() == [-2]


def test_scout_caps_and_spreads():
    rule = rules.Scout(lambda_p=0, lambda_stale=0, lambda_h=8.0, tau=0.5, eps=0.0, q_max=0.4, n_min=10**6)
    # One success puts s(0) at .2: score 8*.16 = 1.28, weight exp(2.56) = 12.9358; three others 1. Sum 15.9358.
    # p(0) = .811744 > .4: excess .411744 to the others in proportion: each 1/3 of .6 = .2
    state = rule.update(rule.init(4, 2), outcomes([0], [1], [1]))
    np.testing.assert_allclose(rule.context_probabilities(state), [0.4, 0.2, 0.2, 0.2], atol=1e-12)
    # Two contexts and a cap of .4: 2*.4 < 1, the cap cannot hold: uniform
    state = rule.update(rule.init(2, 2), outcomes([0], [1], [1]))
    np.testing.assert_allclose(rule.context_probabilities(state), [0.5, 0.5])


def test_scout_with_critic_uncertainty():
    rule = rules.Scout(lambda_u=2.0, n_min=10**6)
    # u(0) = .2*5 = 1; its extra score is 2*1. Both sampled at s = 0, c = 0, f = L: the rest of the score is 0.
    state = rule.update(rule.init(2, 2), outcomes([0, 1], [1, 1], [0, 0], signal=[5.0, 0.0]))
    np.testing.assert_allclose(rule.score(state), [2.0, 0.0])


def test_local_frontier():
    rule = rules.LocalFrontier(n_min=2, beta=0.5)
    state = rule.update(rule.init(4, 3), outcomes([0, 0], [2, 2], [1, 0]))
    state = play(rule, state, *[NOTHING] * 20)
    assert words(rule, state)[0] == "deadband"  # s = .25 for 21 windows: antistall is off
    assert rule.context_probabilities(state).tolist() == [0.25] * 4  # contexts alike, whatever their success
    fail = outcomes([0] * 3, [2] * 3, [1] * 3)
    state = play(rule, state, fail, NOTHING)
    assert rule.frontier(state).tolist() == [1, 2, 2, 2]  # .25 -> .90625 >= .8, twice


def test_group_frontier():
    rule = rules.GroupFrontier(n_min=2, beta=0.5, tau_high=0.7)
    state = rule.init(3, 3, ["b", "a", "b"])
    # One success each for contexts 0 and 2: group b has n = 2 and s = .75, though neither context has 2 outcomes.
    state = play(rule, state, outcomes([0, 2], [2, 2], [1, 1]), NOTHING)
    assert rule.frontier(state).tolist() == [1, 2, 1]
    assert words(rule, state) == ["advanced", "gathering", "advanced"]
    average, evidence = rule.basis(state, np.array([0, 2]), np.array([2, 2]))
    assert average.tolist() == [0.75, 0.75]
    assert evidence.tolist() == [2, 2]
    # Scores: group b at its unvisited level 1: .2*.5 + .1*log(3) = .209861; group a: .1*log(3) = .109861.
    # exp(.209861/.5) = 1.521538, exp(.109861/.5) = 1.245731; sum 2*1.521538 + 1.245731 = 4.288807
    # .9*1.521538/4.288807 + .1/3 = .352625; .9*1.245731/4.288807 + .1/3 = .294750
    np.testing.assert_allclose(rule.context_probabilities(state), [0.352625, 0.294750, 0.352625], atol=2e-6)


def test_plr():
    rule = rules.Plr()
    state = rule.init(2, 2)
    np.testing.assert_allclose(rule.distribution(state), 0.25)  # all unvisited: all tied
    state = rule.update(state, outcomes([0, 0], [0, 1], [0, 0], signal=[1.0, 2.0]))
    # u = .3*1 and .3*2. Ranks: the two unvisited share (1+2)/2 = 1.5, then .6 is 3rd and .3 is 4th.
    # rank**-2: .444444 .444444 .111111 .0625, sum 1.0625: .418301 .418301 .104575 .058824
    # staleness: the unvisited wait 1 window, the visited 0: .5 .5 0 0
    # .9*ranks + .1*staleness: .426471 .426471 .094118 .052941; floor .9*p + .1/4: .408824 .408824 .109706 .072647
    expected = [[0.072647, 0.109706], [0.408824, 0.408824]]
    np.testing.assert_allclose(rule.distribution(state), expected, atol=1e-6)


def test_alp():
    rule = rules.Alp()
    state = rule.update(rule.init(2, 2), outcomes([0], [0], [1]))
    # s = .2, s_slow = .05: score .15, exp(.15/.5) = 1.349859 against 1, 1, 1: .310323; floor .9*p + .1/4 = .304291
    expected = np.full((2, 2), (1 - 0.304291) / 3)
    expected[0, 0] = 0.304291
    np.testing.assert_allclose(rule.distribution(state), expected, atol=1e-6)


def test_rfcl():
    rule = rules.Rfcl()
    # Success, failure, success: 2 of 3 is not 3. s_hat = 2/3.
    state = rule.update(rule.init(2, 3), outcomes([0, 0, 0], [2, 2, 2], [1, 0, 1]))
    assert rule.frontier(state).tolist() == [2, 2]
    # Weights 1 - 2/3 + .1 = .433333 and (no outcomes: s_hat = 0) 1.1: .433333/1.533333 = .282609
    np.testing.assert_allclose(rule.context_probabilities(state), [0.282609, 0.717391], atol=1e-6)
    # One more success: 3 of 4. Advance at once; the memory is cleared, so s_hat is 0 again.
    state = rule.update(state, outcomes([0], [2], [1]))
    assert rule.frontier(state).tolist() == [1, 2]
    np.testing.assert_allclose(rule.context_probabilities(state), [0.5, 0.5])
    average, _ = rule.basis(state, np.array([0]), np.array([2]))
    assert average.tolist() == [0.75]
    # At the new level: five failures never retreat; and a success reported for the old cell does not count.
    state = rule.update(state, outcomes([0] * 8, [1, 1, 1, 1, 1, 2, 2, 2], [0, 0, 0, 0, 0, 1, 1, 1]))
    assert rule.frontier(state).tolist() == [1, 2]
    # Seven outcomes in one window, F F S S F F S: the last five are S S F F S, three of five.
    state = rule.update(state, outcomes([0] * 7, [1] * 7, [0, 0, 1, 1, 0, 0, 1]))
    assert rule.frontier(state).tolist() == [0, 2]


def test_rfcl_demo_draws_by_halves_behind_the_frontier():
    rule = rules.RfclDemo(delta=3)
    state = rule.init(2, 9)
    # Both at L = 8: levels past the easiest count as it: 1/2 + 1/4 + 1/8 + 1/16 + 1/16 = 1 at level 8; contexts alike
    expected = np.zeros((2, 9))
    expected[:, 8] = 1 / 2
    np.testing.assert_allclose(rule.distribution(state), expected)
    # Two successes in a row from the frontier: 8 - 3 = 5. The other one's success and failure do not do.
    state = rule.update(state, outcomes([0, 1, 0, 1], [8, 8, 8, 8], [1, 1, 1, 0]))
    assert rule.frontier(state).tolist() == [5, 8]
    assert rule.moved(state).tolist() == [-1, 0]
    # Context 0, f = 5: levels 5, 6, 7, 8 with 1/2, 1/4, 1/8, 1/16, and the fifth (9 -> 8) with 1/16.
    # Contexts by frontier: 5/(5 + 8) and 8/(5 + 8).
    expected = np.zeros((2, 9))
    expected[0, 5:9] = np.array([1 / 2, 1 / 4, 1 / 8, 1 / 8]) * 5 / 13
    expected[1, 8] = 8 / 13
    np.testing.assert_allclose(rule.distribution(state), expected)


def test_rfcl_demo_advances_on_m_successes_in_a_row_from_the_frontier():
    rule = rules.RfclDemo(delta=3)
    state = rule.update(rule.init(1, 9), outcomes([0, 0], [8, 8], [1, 1]))
    assert rule.frontier(state).tolist() == [5]
    # Successes behind the frontier (levels 6 and 8) are training, not evidence.
    state = rule.update(state, outcomes([0, 0, 0], [6, 8, 6], [1, 1, 1]))
    assert rule.frontier(state).tolist() == [5]
    # Success, failure, success: never two in a row. The next window's first success makes it two.
    state = rule.update(state, outcomes([0, 0, 0], [5, 5, 5], [1, 0, 1]))
    assert rule.frontier(state).tolist() == [5]
    state = rule.update(state, outcomes([0], [5], [1]))
    assert rule.frontier(state).tolist() == [2]
    # The buffer was emptied by the move: one success is not enough. Failures never retreat.
    state = play(rule, state, outcomes([0], [2], [1]), outcomes([0] * 5, [2] * 5, [0] * 5))
    assert rule.frontier(state).tolist() == [2]
    # 2 - 3 would leave the ladder: 0, the start of the demonstration, and there it stays.
    state = play(rule, state, *[outcomes([0, 0], [2, 2], [1, 1])], *[outcomes([0, 0], [0, 0], [1, 1])] * 3)
    assert rule.frontier(state).tolist() == [0]
    assert words(rule, state) == ["target"]


def test_rfcl_demo_hardly_visits_what_is_solved():
    rule = rules.RfclDemo(delta=8)
    state = rule.update(rule.init(2, 9), outcomes([0, 0], [8, 8], [1, 1]))
    assert rule.frontier(state).tolist() == [0, 8]
    # Weights 1e-6 and 8/9: 1e-6/(8/9 + 1e-6) = 1.124999e-6
    np.testing.assert_allclose(rule.distribution(state).sum(axis=1)[0], 1.124999e-6, rtol=1e-6)
    # All solved: 1e-6 each, so alike; and half of the starts at the target start.
    state = rule.update(state, outcomes([1, 1], [8, 8], [1, 1]))
    np.testing.assert_allclose(rule.distribution(state).sum(axis=1), [0.5, 0.5])
    np.testing.assert_allclose(rule.distribution(state)[:, 0], [0.25, 0.25])
    # The longest ladder there is: nothing wraps around.
    state = rule.init(1, 127)
    assert rule.distribution(state)[0, 126] == 1
    state = rule.update(state, outcomes([0, 0], [126, 126], [1, 1]))
    assert rule.frontier(state).tolist() == [118]
    np.testing.assert_allclose(rule.distribution(state)[0, 118:124], [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16, 0])


def test_learnability():
    rule = rules.Learnability(share=0.25, discount=1.0)
    state = rule.init(2, 2)
    # K = .25*4 = 1. All unvisited, p = .5: all tied for the one place. .5*(1/4)/1 + .5/4 = .25
    np.testing.assert_allclose(rule.distribution(state), 0.25)
    # (0, 0): a success, p = 2/3, p(1-p) = 2/9. (0, 1): a success and a failure, p = 2/4: .25, as the two unvisited.
    state = rule.update(state, outcomes([0, 0, 0], [0, 1, 1], [1, 1, 0]))
    np.testing.assert_allclose(state.learnability, [[2 / 9, 0.25], [0.25, 0.25]])
    # Three share the one place: .5/3 + .5/4 = .291667; the other has .5/4
    np.testing.assert_allclose(rule.distribution(state), [[0.125, 0.291667], [0.291667, 0.291667]], atol=1e-6)
    # (1, 0): a failure, p = 1/3: 2/9, tied with (0, 0). (1, 1): two successes, p = 3/4: 3/16.
    state = rule.update(state, outcomes([1, 1, 1], [0, 1, 1], [0, 1, 1]))
    np.testing.assert_allclose(state.learnability, [[2 / 9, 0.25], [2 / 9, 3 / 16]])
    # K = .5*4 = 2: (0, 1) has a place, the two of 2/9 share the other: .5*1/2 + .125 = .375, .5*.5/2 + .125 = .25
    p = rules.Learnability(share=0.5).distribution(state)
    np.testing.assert_allclose(p, [[0.25, 0.375], [0.25, 0.125]])
    # Discounted: a success, then a failure: wins .95, losses 1. 1.95*2/3.95**2 = 3.9/15.6025 = .249960
    rule = rules.Learnability()
    state = rule.update(rule.init(1, 2), outcomes([0, 0], [0, 0], [1, 0]))
    assert state.learnability[0, 0] == pytest.approx(0.249960, abs=1e-6)


def test_thompson():
    rule = rules.Thompson(discount=1.0)
    state = rule.init(2, 2)
    # Beta(1, 1): .5625 - .4375 = .125 everywhere
    np.testing.assert_allclose(rule.distribution(state), 0.25)
    # (0, 0): two successes, Beta(3, 1), F = x**3: .177979 - .083740 = .094238
    # (0, 1): one of each, Beta(2, 2), F = 3x**2 - 2x**3: .593262 - .406738 = .186523
    # (1, 0): a failure, Beta(1, 2), F = 1 - (1-x)**2: .808594 - .683594 = .125, as before
    state = rule.update(state, outcomes([0, 0, 0, 0, 1], [0, 0, 1, 1, 0], [1, 1, 1, 0, 0]))
    np.testing.assert_allclose(state.mass, [[0.094238, 0.186523], [0.125, 0.125]], atol=1e-6)
    # Sum .530762: .094238/.530762 = .177553, .186523/.530762 = .351426, .125/.530762 = .235510
    np.testing.assert_allclose(rule.distribution(state), [[0.177553, 0.351426], [0.235510, 0.235510]], atol=2e-6)
    # Discounted: two successes count 1 + .917: Beta(2.917, 1), F = x**2.917: .186684 - .089688 = .096996
    rule = rules.Thompson()
    state = rule.update(rule.init(1, 2), outcomes([0, 0], [0, 0], [1, 1]))
    assert state.mass[0, 0] == pytest.approx(0.096996, abs=1e-6)


def test_thompson_is_what_draws_would_choose():
    """The nearest eighth of one draw per cell, counted over many draws; all cells but three have the prior."""
    rng, n, draws = np.random.default_rng(0), 400, 10_000
    wins, losses = np.zeros(n), np.zeros(n)
    wins[:3], losses[:3] = [2, 4, 0], [2, 0, 1]  # Beta(3, 3), Beta(5, 1), Beta(1, 2)
    distance = np.abs(rng.beta(1 + wins, 1 + losses, size=(draws, n)) - 0.5)
    chosen = np.bincount(np.argpartition(distance, n // 8)[:, : n // 8].reshape(-1), minlength=n)
    rule = rules.Thompson(discount=1.0)
    known = np.repeat([0, 1, 2], [4, 4, 1])
    state = rule.update(rule.init(n // 2, 2), outcomes(known // 2, known % 2, [1, 1, 0, 0, 1, 1, 1, 1, 0]))
    share = rule.distribution(state).reshape(-1)[:3] * (n // 8)  # of the draws in which the cell is chosen
    error = (chosen[:3] - draws * share) / np.sqrt(draws * share * (1 - share))
    assert np.abs(error).max() < 4


def test_adaback():
    rule = rules.AdaBack()
    state = rule.init(2, 5)
    np.testing.assert_allclose(rule.distribution(state), 1 / 10)  # 0..4 for both
    # Context 0 fails at level 2: 2..4, each 1/3 of its half.
    # The average goes to .8*0 + .2*2 = .4 and .8*4 + .2*4 = 4. Context 1 has no outcomes, so it has .4..4: of level 0
    # the part .6 is left, of the others 1. Sum 4.6: .6/4.6/2 = .065217, 1/4.6/2 = .108696
    state = rule.update(state, outcomes([0], [2], [0]))
    expected = [[0, 0, 1 / 6, 1 / 6, 1 / 6], [0.065217] + [0.108696] * 4]
    np.testing.assert_allclose(rule.distribution(state), expected, atol=1e-6)
    # One success of two at level 3: 1/2 >= tau, a success: 0..3. The average: .8*.4 = .32, .8*4 + .2*3 = 3.8
    state = rule.update(state, outcomes([0, 0], [3, 3], [1, 0]))
    np.testing.assert_allclose(rule.distribution(state)[0], [1 / 8] * 4 + [0])
    np.testing.assert_allclose([state.mean_low, state.mean_high], [0.32, 3.8])
    steps = [
        (outcomes([0, 0], [3, 1], [1, 0]), (1, 3)),  # success at 3, failure at 1: between them
        (outcomes([0, 0], [2, 3], [1, 0]), (0, 2)),  # success at 2: the failure above it does not count
        (outcomes([0], [2], [0]), (2, 2)),  # failure at 2: nothing else is left, and high never rises
        (outcomes([0, 0], [4, 1], [1, 0]), (2, 2)),  # success above high says nothing, nor does failure below low
        (outcomes([0], [2], [1]), (0, 2)),
        (outcomes([0], [0], [1]), (0, 0)),  # success at the target start: always there
    ]
    for window, interval in steps:
        state = rule.update(state, window)
        assert (state.low[0], state.high[0]) == interval
        assert (state.low[1], state.high[1]) == (0, 4)


def test_aced():
    rule = rules.Aced(n_min=5)
    state = rule.update(rule.init(2, 3), outcomes([0] * 4, [2] * 4, [1, 1, 1, 1]))
    assert rule.frontier(state).tolist() == [2, 2]  # 4 of 4, but 5 outcomes are needed
    assert words(rule, state) == ["gathering", "gathering"]
    state = rule.update(state, outcomes([0], [2], [0]))
    assert rule.frontier(state).tolist() == [1, 2]  # 4 of 5 = .8 >= .8, at once
    state = rule.update(state, outcomes([0] * 9, [1] * 9, [0] * 9))
    assert rule.frontier(state).tolist() == [1, 2]  # 0 of 9: no retreat
    assert words(rule, state)[0] == "deadband"
    assert rule.context_probabilities(state).tolist() == [0.5, 0.5]


def test_wilson():
    rule = rules.Wilson(n_min=1, hysteresis=1, z=1.0, discount=0.5, tau_high=0.6)
    state = rule.update(rule.init(1, 3), outcomes([0, 0], [2, 2], [1, 1]))
    # w = .5*1 + 1 = 1.5 = m. p = 1: centre 1 + 1/3, half sqrt(0 + 1/9) = 1/3, scale 1 + 2/3: lower 1/(5/3) = .6
    lower, upper, rate = rules.wilson.wilson_bounds(state.wins[:, 2], state.trials[:, 2], 1.0)
    np.testing.assert_allclose([lower[0], upper[0], rate[0]], [0.6, 1.0, 1.0])
    # A success and then a failure: w = .5*1 + 0 = .5, m = .5*1 + 1 = 1.5, p = 1/3
    # centre 1/3 + 1/3 = 2/3; half sqrt((2/9)/1.5 + 1/9) = sqrt(.259259) = .509175; scale 5/3: .094495 and .705505
    state = rule.update(rule.init(1, 3), outcomes([0, 0], [2, 2], [1, 0]))
    lower, upper, rate = rules.wilson.wilson_bounds(state.wins[:, 2], state.trials[:, 2], 1.0)
    np.testing.assert_allclose([lower[0], upper[0], rate[0]], [0.094495, 0.705505, 1 / 3], atol=1e-6)
    # Published constants, all succeed: after 15 outcomes m = (1-.95**15)/.05 = 10.734, lower = m/(m+1) = .915 >= .8
    rule = rules.Wilson()
    state = play(rule, rule.init(1, 3), outcomes([0] * 15, [2] * 15, [1] * 15), NOTHING)
    assert rule.frontier(state).tolist() == [1]


def test_beta():
    rule = rules.Beta(gamma=1.0, n_min=1, hysteresis=1, cooldown=0, N_stale=0)
    # k successes: Beta(1+k, 1), P(p >= .8) = 1 - .8**(k+1). k = 6: 1 - .2097 = .790 < .8; k = 7: 1 - .1678 = .832
    state = rule.update(rule.init(1, 3), outcomes([0] * 6, [2] * 6, [1] * 6))
    assert rule.frontier(state).tolist() == [2]
    state = rule.update(state, outcomes([0], [2], [1]))
    assert rule.frontier(state).tolist() == [1]
    # k failures at the new level: P(p <= .15) = 1 - .85**(k+1). k = 8: .768; k = 9: .803
    state = rule.update(state, outcomes([0] * 8, [1] * 8, [0] * 8))
    assert rule.frontier(state).tolist() == [1]
    state = rule.update(state, outcomes([0], [1], [0]))
    assert rule.frontier(state).tolist() == [2]
    # discounted: w = m = 1 + .95 after two successes
    rule = rules.Beta()
    state = rule.update(rule.init(1, 3), outcomes([0, 0], [2, 2], [1, 1]))
    assert state.wins[0, 2] == pytest.approx(1.95)


def test_antistall_of_the_gated_rules_needs_a_hopeful_rate():
    # Rate 0: neither bound is decisive yet (m = 2: upper 1/3 > .15; P(p <= .15) = 1 - .85**3 = .386 < .8).
    # SCOUT's clock alone would probe; wilson and beta also need the rate above tau_low.
    for rule in (rules.Wilson(n_min=2, discount=1.0), rules.Beta(n_min=2, gamma=1.0)):
        state = rule.update(rule.init(1, 3), outcomes([0, 0], [2, 2], [0, 0]))
        state = play(rule, state, *[NOTHING] * 20)
        assert rule.frontier(state).tolist() == [2]
        state = play(rule, state, outcomes([0], [2], [1]), NOTHING)  # rate 1/3: the probe comes, confirmed
        assert rule.moved(state).tolist() == [-2]


def test_ability():
    rule = rules.Ability()
    state = rule.update(rule.init(1, 2), outcomes([0], [1], [1]))
    # Before: g = (-1, 1), C = K = [[1, .6], [.6, 1]], d = 0, v = 2. Drift cannot lift C and v above that.
    # P = sigmoid(1) = .7311, e = .2689, i = .1966; the own part explains 1 + 2*.1966 = 1.3932.
    # Shared: residual .2689/1.3932 = .1930, information .1966/1.3932 = .1411 at level 1.
    # C loses K[:,1] K[1,:] * .1411/1.1411 = .1237 * [.6, 1]: C[:,1] = (.5258, .8763).
    # g += C[:,1] * .1930 = (.1015, .1692).
    np.testing.assert_allclose(state.covariance[:, 1], [0.5258, 0.8763], atol=1e-4)
    np.testing.assert_allclose(state.shared, [-0.8985, 1.1692], atol=1e-4)
    # Own: v = 2/1.3932 = 1.4355, d += 1.4355 * .2689 * (.6, 1) = (.2316, .3861).
    np.testing.assert_allclose(state.variance, [1.4355], atol=1e-4)
    np.testing.assert_allclose(state.own, [[0.2316, 0.3861]], atol=1e-4)
    # Moderated by sqrt(1 + pi/8*1.4355) = 1.2505: logits (-.5333, 1.2437), M = (.3698, .7762); M*(1 - M)**2 is
    # (.1469, .0389). t = (.3698/.8262)**2 = .2003. Level 1: (1 - .2003) * (.0389 + .125*(1 - .3698)) = .0941.
    # Level 0: .1469 + .125*(.2003*(1 - .3698) + .7762) = .2597. Their ratio**4 is .0172.
    np.testing.assert_allclose(rule.distribution(state), [[0.9831, 0.0169]], atol=1e-4)
    # Level 1 is the hardest with a chance of a half; it was the frontier before, so nothing moved.
    assert rule.frontier(state).tolist() == [1]
    assert rule.moved(state).tolist() == [0]
    state = play(rule, state, *[outcomes([0] * 4, [0] * 4, [1] * 4)] * 3)
    assert rule.frontier(state).tolist() == [0]


def test_every_rule_has_a_worked_example():
    source = Path(__file__).read_text()
    for rule in rules.RULES.values():
        assert f"rules.{rule.__name__}(" in source
