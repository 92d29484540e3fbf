"""What every rule must keep, checked over the registry: a new rule is tested the moment it is registered."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout_rl import rules
from scout_rl.files.refusal import Refusal
from scout_rl.rules.cells import Outcomes
from tests.rules.streams import Stream, outcomes

ALL = pytest.mark.parametrize("key", rules.RULES)
FRONTIER_RULES = [key for key, rule in rules.RULES.items() if issubclass(rule, rules.frontier.FrontierRule)]


def groups(n):
    return np.arange(n) % 2


def small(key):
    """The rule with an evidence gate and clocks that a short stream reaches."""
    wanted = {"n_min": 3, "T_anneal": 40, "T": 40, "level": 1}
    fields = {f.name for f in dataclasses.fields(rules.RULES[key])}
    return rules.make(key, **{k: v for k, v in wanted.items() if k in fields})


def run(rule, n_contexts, n_levels, windows, seed=0, batch=16):
    """Yield (state, outcomes, next state) along a stream."""
    state = rule.init(n_contexts, n_levels, groups(n_contexts))
    stream = Stream(n_contexts, n_levels, batch, seed)
    for _ in range(windows):
        seen = stream.next(rule.distribution(state))
        after = rule.update(state, seen)
        yield state, seen, after
        state = after


def leaves(state):
    for value in state:
        if hasattr(value, "_asdict"):
            yield from leaves(value)
        elif value is not None:
            yield value


@ALL
@settings(max_examples=15, deadline=None)
@given(n_contexts=st.integers(1, 40), n_levels=st.integers(2, 9), seed=st.integers(0, 2**31))
def test_the_distribution_is_one(key, n_contexts, n_levels, seed):
    rule = small(key)
    for state, _, _ in run(rule, n_contexts, n_levels, 25, seed):
        p = rule.distribution(state)
        assert p.shape == (n_contexts, n_levels)
        assert (p >= 0).all()
        assert abs(p.sum() - 1) < 1e-12
        f = rule.frontier(state)
        if (
            rule.context_probabilities(state) is not None
        ):  # all of it at the frontier, and `context_probabilities` is the same numbers
            assert (p[np.arange(n_contexts), f] == rule.context_probabilities(state)).all()


@ALL
def test_floor_and_cap_hold(key):
    rule = small(key)
    names = {f.name for f in dataclasses.fields(rule)}
    if not {"eps", "q_max"} <= names or key == "local-frontier":  # it draws contexts uniformly
        assert key in {
            "target",
            "fixed",
            "random",
            "anneal",
            "reverse",
            "mixture",
            "local-frontier",
            "rfcl",
            "aced",
            "rfcl-demo",
            "learnability",
            "thompson",
            "adaback",
            "ability",
        }
        return
    for n_contexts in (3, 30):
        for state, _, _ in run(rule, n_contexts, 4, 60):
            p = rule.context_probabilities(state)
            p = rule.distribution(state).reshape(-1) if p is None else p
            assert p.max() <= rule.q_max + 1e-12
            assert p.min() >= rule.eps / len(p) - 1e-12


@pytest.mark.parametrize("key", FRONTIER_RULES)
def test_frontiers_move_one_level_and_never_in_the_cooldown(key):
    rule = small(key)
    last_move = np.full(12, -(10**6))
    moves = 0
    for window, (state, _, after) in enumerate(run(rule, 12, 5, 400)):
        step = rule.frontier(after).astype(int) - rule.frontier(state)
        assert np.abs(step).max() <= getattr(rule, "delta", 1)
        assert (np.sign(rule.moved(after)) == np.sign(step)).all()  # what the pass says it did is what it did
        moved = step != 0
        assert (window - last_move[moved] > rule.cooldown).all()
        last_move[moved] = window
        moves += moved.sum()
        assert ((rule.frontier(after) >= 0) & (rule.frontier(after) <= 4)).all()
    assert moves >= 12  # the stream did make frontiers move
    if key in {"rfcl", "rfcl-demo", "aced"}:
        return
    assert rule.hysteresis == 2


@ALL
def test_update_is_pure(key):
    rule = small(key)
    for state, seen, _ in run(rule, 6, 4, 20):
        before = [np.array(leaf) for leaf in leaves(state)]
        first, second = rule.update(state, seen), rule.update(state, seen)
        rule.distribution(state)
        for old, leaf in zip(before, leaves(state), strict=True):
            assert np.array_equal(old, leaf)
        for a, b in zip(leaves(first), leaves(second), strict=True):
            assert np.array_equal(a, b)


@ALL
def test_types_and_shapes_do_not_drift(key):
    rule = small(key)
    start = rule.init(6, 4, groups(6))
    for _, _, after in run(rule, 6, 4, 30):
        for a, b in zip(leaves(start), leaves(after), strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            assert np.shape(a) == np.shape(b)


@ALL
def test_invalid_entries_change_nothing(key):
    rule = small(key)
    rng = np.random.default_rng(1)
    for state, seen, after in run(rule, 6, 4, 40):
        # the same outcomes, with rubbish between them that is marked invalid
        wide = [np.repeat(column, 2) for column in seen]
        rubbish = rng.integers(0, 4, len(wide[0]) // 2)
        for column in wide[:4]:
            column[1::2] = rubbish
        wide[4] = np.tile([True, False], len(wide[0]) // 2)
        for a, b in zip(leaves(rule.update(state, Outcomes(*wide))), leaves(after), strict=True):
            np.testing.assert_array_equal(a, b)


@ALL
def test_leading_axes_are_separate_runs(key):
    rule, n = small(key), 3
    singles = [list(run(rule, 6, 4, 60, seed)) for seed in range(n)]
    state = None
    for steps in zip(*singles, strict=True):
        if state is None:
            state = stack([step[0] for step in steps])
        p = rule.distribution(state)
        np.testing.assert_allclose(p, np.stack([rule.distribution(step[0]) for step in steps]), rtol=0, atol=1e-14)
        seen = Outcomes(*(np.stack(column) for column in zip(*(step[1] for step in steps), strict=True)))
        state = rule.update(state, seen)
        for got, expected in zip(leaves(state), leaves(stack([step[2] for step in steps])), strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


def stack(states):
    first = states[0]
    if first is None:
        return None
    if hasattr(first, "_asdict"):
        return type(first)(*(stack(list(values)) for values in zip(*states, strict=True)))
    return np.stack(states)


@ALL
def test_an_empty_window_is_a_window(key):
    rule = small(key)
    state = rule.update(rule.init(4, 3, groups(4)), outcomes([], [], []))
    assert state.statistics.window == 1


@ALL
def test_constants_round_trip(key):
    rule = rules.make(key)
    again = rules.make(key, **rule.constants())
    assert again == rule
    assert hash(again) == hash(rule)


def test_registry_is_the_specification():
    assert list(rules.RULES) == [
        "scout", "target", "fixed", "random", "anneal", "reverse", "mixture", "local-frontier",
        "group-frontier", "plr", "alp", "rfcl", "aced", "wilson", "beta", "rfcl-demo",
        "learnability", "thompson", "adaback", "ability",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="there is no rule 'scoot'; the rules are scout, target"):
        rules.make("scoot")


@pytest.mark.parametrize(
    ("key", "constants", "message"),
    [
        ("scout", {"tau": 0.0}, "tau"),
        ("scout", {"tau_low": 0.9}, "tau_low=0.9, tau_high=0.8"),
        ("scout", {"eps": 1.5}, "eps"),
        ("scout", {"q_max": 0.0}, "q_max"),
        ("scout", {"beta": 0.0}, "beta"),
        ("scout", {"n_min": 0}, "n_min"),
        ("scout", {"cooldown": -1}, "cooldown"),
        ("scout", {"N_stale": -1}, "N_stale"),
        ("scout", {"hysteresis": 0}, "hysteresis"),
        ("anneal", {"T_anneal": 0}, "T_anneal"),
        ("reverse", {"T": 0}, "T is 0"),
        ("reverse", {"start": 0.0}, "start"),
        ("reverse", {"progress": (0.0, 0.5, 0.4)}, "must rise"),
        ("mixture", {"m_high": 0.9}, "do not fit"),
        ("mixture", {"rate": 0.0}, "rate"),
        ("plr", {"alpha": 0.0}, "alpha"),
        ("plr", {"rho": 2.0}, "rho"),
        ("alp", {"beta_slow": 0.0}, "beta_slow"),
        ("rfcl", {"needed": 6}, "needed=6"),
        ("rfcl-demo", {"m": 0}, "m is 0"),
        ("rfcl-demo", {"delta": 0}, "delta is 0"),
        ("rfcl-demo", {"spread": 0}, "spread is 0"),
        ("learnability", {"rho": -0.1}, "rho is -0.1"),
        ("learnability", {"share": 0.0}, "share is 0.0"),
        ("learnability", {"discount": 1.5}, "discount is 1.5"),
        ("thompson", {"target": 1.0}, "target is 1.0"),
        ("thompson", {"width": 0.0}, "width is 0.0"),
        ("thompson", {"width": 0.5}, "target=0.5 and width=0.5 reach beyond"),
        ("thompson", {"discount": 0.0}, "discount is 0.0"),
        ("adaback", {"tau": 0.0}, "tau is 0.0"),
        ("adaback", {"rate": 2.0}, "rate is 2.0"),
        ("aced", {"n_min": 0}, "n_min"),
        ("wilson", {"z": -1.0}, "z is"),
        ("wilson", {"discount": 0.0}, "discount"),
        ("beta", {"gamma": 1.5}, "gamma"),
        ("beta", {"certainty": 0.4}, "certainty"),
        ("ability", {"drift_shared": -1.0}, "drift_shared"),
        ("ability", {"drift_own": 2.0}, "drift_own"),
        ("ability", {"own_variance": -1.0}, "own_variance"),
        ("ability", {"shared_variance": -1.0}, "shared_variance"),
        ("ability", {"spread": 1.0}, "spread"),
        ("ability", {"step": -0.1}, "step"),
        ("ability", {"focus": 0.0}, "focus"),
        ("ability", {"eps": 0.0}, "eps"),
    ],
)
def test_a_constant_out_of_range_is_refused(key, constants, message):
    with pytest.raises(ValueError, match=message):
        rules.make(key, **constants)


@ALL
@pytest.mark.parametrize("size", [2**15, 2**31, 2**63, 10**400])
def test_a_whole_number_of_any_size_works_or_is_refused(key, size):
    for field in dataclasses.fields(rules.RULES[key]):
        if type(field.default) is int and field.name != "level":  # which is checked beside the number of levels
            try:
                rule = rules.make(key, **{field.name: size})
            except Refusal:
                continue
            for _ in run(rule, 4, 5, 12):
                pass


@pytest.mark.parametrize(
    ("key", "constants", "shape", "message"),
    [
        ("scout", {}, (0, 5), "n_contexts is 0"),
        ("scout", {}, (5, 1), "n_levels is 1"),
        ("scout", {}, (5, 128), "n_levels is 128"),
        ("fixed", {"level": 5}, (5, 5), "level 5 is not on a ladder of 5 levels"),
        ("reverse", {"progress": (0.0, 0.5)}, (5, 5), "progress has 2 entries, the ladder 5"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(key, constants, shape, message):
    with pytest.raises(ValueError, match=message):
        rules.make(key, **constants).init(*shape)


def test_group_frontier_needs_its_labels():
    with pytest.raises(ValueError, match="needs oracle_group"):
        rules.GroupFrontier().init(4, 5)
    with pytest.raises(ValueError, match=r"shape \(3,\), but must be \(4,\)"):
        rules.GroupFrontier().init(4, 5, [0, 1, 0])
