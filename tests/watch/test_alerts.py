"""Each alert on planted records that call for it, and on records that do not."""

import numpy as np
import pytest

from scout_rl.report.read.run import About, Moves, Rollouts, RunRecord
from scout_rl.watch.alerts import alerts, alike, falling, hopeless, lost_groups


def record(window, context, level, success, *, windows, contexts=20, levels=5, held_out=None, every=10):
    """A run with these rollouts and held-out curves by group."""
    curves = {name: np.array(curve, float) for name, curve in (held_out or {}).items()}
    n = len(next(iter(curves.values()))) if curves else 0
    about = About("run", "log_dir", "", "random", 40, {}, {}, "", contexts, levels, windows, windows, {})
    empty = np.zeros(0, np.int32)
    return RunRecord(
        about,
        Rollouts(
            np.asarray(window, np.int32),
            np.asarray(context, np.int32),
            np.asarray(level, np.int8),
            np.asarray(success, bool),
        ),
        None,
        Moves(empty, empty, empty.astype(np.int8), empty.astype(np.int8)),
        tuple(curves),
        None,
        evaluated_at=np.arange(n) * every,
        held_out=np.mean(list(curves.values()), axis=0) if curves else np.zeros(0),
        held_out_groups=curves,
    )


def played(chance, *, windows=400, contexts=20, levels=5, rollouts=16, level=None, context=None, seed=0):
    """Uniform rollouts, unless ``context(rng, window)`` or ``level(rng, window)`` says otherwise."""
    rng = np.random.default_rng(seed)
    window = np.repeat(np.arange(windows), rollouts)
    x = rng.integers(contexts, size=len(window)) if context is None else context(rng, window)
    at = rng.integers(levels, size=len(window)) if level is None else level(rng, window)
    success = rng.random(len(window)) < chance(x, at, window)
    return record(window, x, at, success, windows=windows, contexts=contexts, levels=levels)


def steps(context, level, window):
    """An ordinary ladder: every level is clearly easier than the one below."""
    return 0.1 + 0.2 * level


class TestGroupLost:
    def test_it_fires(self):
        """Medians of three of the second: 0.3, 0.6, 0.8 (at 40 windows), 0.8, 0.7, 0.2, 0.1."""
        easy, hard = [0, 0.4, 0.8, 0.8, 0.8, 0.8, 0.8, 0.9, 0.9], [0, 0.3, 0.6, 0.8, 0.8, 0.7, 0.2, 0.1, 0.1]
        lost = record([], [], [], [], windows=90, held_out={"easy": easy, "hard": hard})
        (alert,) = lost_groups(lost)
        assert alert.group == "hard"
        assert alert.text == "Group hard is lost: held-out success was 0.80 after 40 windows and is 0.10 now."

    @pytest.mark.parametrize(
        "curve",
        [
            [0, 0.3, 0.6, 0.8, 0.8, 0.7, 0.8, 0.8, 0.1],  # one bad evaluation
            [0, 0.1, 0.3, 0.3, 0.2, 0.1, 0.0, 0.0, 0.0],  # it was never good
            [0.0, 0.5, 0.7, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6],  # it fell, and is not lost
            [0.9, 0.9, 0.1, 0.1],  # too few evaluations
        ],
    )
    def test_it_does_not(self, curve):
        assert not lost_groups(record([], [], [], [], windows=90, held_out={"hard": curve}))


class TestHopeless:
    def test_it_fires_for_the_contexts_that_never_succeed(self):
        run = played(lambda x, level, w: np.where(np.isin(x, (3, 7)), 0.0, steps(x, level, w)))
        (alert,) = hopeless(run)
        assert alert.contexts == [3, 7]
        assert alert.text.startswith("Contexts 3, 7 are hopeless at the easiest level: no success in the last ")

    def test_one_that_succeeded_lately_anywhere_is_not_hopeless(self):
        assert not hopeless(played(lambda x, level, w: np.where(level == 4, 0.0, 0.4)))

    def test_one_that_fails_for_a_while_at_the_start_is_not_hopeless(self):
        assert not hopeless(played(lambda x, level, w: np.where(w < 150, 0.0, 0.6)))

    def test_all_of_them(self):
        (alert,) = hopeless(played(lambda x, level, w: 0.0))
        assert alert.text.startswith("Every context is hopeless")


class TestLevelZeroFalling:
    def test_it_fires(self):
        (alert,) = falling(played(lambda x, level, w: np.where(w < 320, 0.8, 0.3)))
        assert alert.text.startswith("Success from the target start is falling: 0.")
        assert "in windows 200 to 299" in alert.text

    def test_it_does_not_for_steady_or_rising_success(self):
        assert not falling(played(lambda x, level, w: 0.5))
        assert not falling(played(lambda x, level, w: w / 400))

    def test_nor_where_only_the_drawn_contexts_get_harder(self):
        """A rule goes over to hard contexts: the mean over rollouts falls from 0.9 to 0.2, no context does."""

        def context(rng, window):
            hard = rng.random(len(window)) < np.where(window < 300, 0.05, 0.95)
            return np.where(hard, rng.integers(10, 20, len(window)), rng.integers(10, size=len(window)))

        run = played(lambda x, level, w: np.where(x < 10, 0.9, 0.2), context=context)
        late = run.rollouts.window >= 300
        assert run.rollouts.success[~late].mean() - run.rollouts.success[late].mean() > 0.5
        assert not falling(run)

    def test_nor_by_chance(self):
        assert not any(falling(played(lambda x, level, w: 0.5, windows=200, seed=seed)) for seed in range(60))


class TestLevelsAlike:
    def test_it_fires(self):
        run = played(lambda x, level, w: np.array([0.1, 0.3, 0.5, 0.5, 0.9])[level], windows=2000)
        (alert,) = alike(run)
        assert alert.text.startswith("Levels 2 and 3 look alike: success 0.")

    def test_it_does_not_on_an_ordinary_ladder(self):
        assert not alike(played(steps, windows=2000))

    def test_nor_where_both_fail_or_both_succeed(self):
        assert not alike(played(lambda x, level, w: np.array([0.0, 0.02, 0.02, 0.97, 0.98])[level], windows=2000))

    def test_nor_with_few_rollouts(self):
        assert not alike(played(lambda x, level, w: 0.5, windows=40))

    def test_nor_because_easy_contexts_train_at_the_harder_level(self):
        """Over all rollouts levels 1 and 2 succeed equally often; within a context they differ."""

        rng = np.random.default_rng(1)
        x = rng.integers(20, size=32_000)
        at = np.where(rng.random(len(x)) < np.where(x < 10, 0.9, 0.1), 1, 2)
        run = played(
            lambda x, at, w: np.where(x < 10, 0.5, 0.2) + 0.25 * (at == 2),
            level=lambda rng, window: at,
            context=lambda rng, window: x,
            windows=2000,
        )
        by_level = [run.rollouts.success[at == level].mean() for level in (1, 2)]
        assert abs(by_level[0] - by_level[1]) < 0.03
        assert not alike(run)


def test_a_run_without_windows_has_no_alerts():
    assert alerts(record([], [], [], [], windows=0)) == []
