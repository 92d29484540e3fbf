"""Environments that end at different times, and the reference: `Curriculum.record`, fed in the order of start."""

from __future__ import annotations

import numpy as np

from scout_rl import Curriculum
from scout_rl.integrations.device.episodes import Episodes

CONTEXTS, LEVELS, ENVIRONMENTS, LONGEST = 12, 4, 24, 9


class Simulator:
    """Successes are short, failures long; easy levels succeed more often as time goes on. One episode in 50 hangs."""

    def __init__(self, environments=ENVIRONMENTS, longest=LONGEST, seed=0):
        self.generator = np.random.default_rng(seed)
        self.environments, self.longest, self.calls = environments, longest, 0
        self.left = np.zeros(environments, int)
        self.success = np.zeros(environments, bool)

    def reset(self, done, level):
        """Start episodes where ``done``."""
        chance = 1 / (1 + np.exp(-3 * (level / (LEVELS - 1) - 0.7 + 0.8 * np.sin(self.calls / 150))))
        success = self.generator.random(self.environments) < chance
        short = self.generator.integers(1, 4, self.environments)
        hangs = self.generator.random(self.environments) < 0.02
        length = np.where(hangs, 2 * self.longest, np.where(success, short, self.longest))
        self.success, self.left = np.where(done, success, self.success), np.where(done, length, self.left)

    def step(self):
        """Which environments are done, their success, and a signal."""
        self.calls += 1
        self.left -= 1
        done = self.left == 0
        return done, self.success & done, self.generator.random(self.environments)


class Numbers:
    """Random numbers that the test hands over, in place of a generator."""

    def __init__(self):
        self.next = None

    def random(self, n):
        assert len(self.next) == n
        return self.next


class Reference:
    """What the device does, written as a list of episodes and a host curriculum."""

    def __init__(self, episodes: Episodes, uniform, close_every=1):
        """``uniform(deck, call)``: the random numbers of that deck, drawn in that call."""
        self.close_every = close_every
        self.e, self.uniform, self.decks, self.deck = episodes, uniform, 0, []
        self.curriculum = Curriculum(
            episodes.rule,
            episodes.n_contexts,
            episodes.n_levels,
            window=episodes.window,
            oracle_group=episodes.oracle_group,
        )
        self.curriculum.generator = Numbers()
        self.started = []  # episodes that count, in the order of their start: [cell, outcome or None]
        self.current = [None] * episodes.environments  # of every environment: [cell, calls, its entry or None]
        self.uncounted = 0
        self.calls = 0
        self._deal(np.ones(episodes.environments, bool))

    def _deal(self, done):
        count = int(done.sum())
        if count > len(self.deck):
            self.curriculum.generator.next = self.uniform(self.decks, self.calls)
            cells = self.curriculum.assign(self.e.environments)
            self.deck, self.decks = list(zip(cells.context.tolist(), cells.level.tolist(), strict=True)), self.decks + 1
        for i in np.flatnonzero(done):
            cell, entry = self.deck.pop(0), None
            if len(self.started) < self.e.queue:
                entry = [cell, None]
                self.started.append(entry)
            else:
                self.uncounted += 1
            self.current[i] = [cell, 0, entry]

    def step(self, done, success, signal):
        for i, episode in enumerate(self.current):
            episode[1] += 1
            if (done[i] or episode[1] >= self.e.longest) and episode[2] is not None:
                episode[2][1] = bool(done[i] and success[i]), float(signal[i])
                episode[2] = None
        self.calls += 1
        window = self.started[: self.e.window] if self.calls % self.close_every == 0 else []
        if len(window) == self.e.window and all(outcome for _, outcome in window):
            for cell, (won, signal_then) in window:
                self.curriculum.record(*cell, won, signal_then if self.e.rule.needs_signal else None)
            self.started, self.deck = self.started[self.e.window :], []
        self._deal(np.asarray(done))

    @property
    def cells(self):
        context, level = zip(*(cell for cell, _, _ in self.current), strict=True)
        return np.array(context), np.array(level)


BIASED = {
    "environments": 4096,
    "failure": 200,
    "chance": 0.3,
    "contexts": 100,
    "levels": 5,
    "calls": 128,
    "window": 256,
}
"""All start together; every start succeeds with the same chance, after 1 to 40 steps, or fails after 200."""


def biased_lengths(generator, n):
    success = generator.random(n) < BIASED["chance"]
    return success, np.where(success, generator.integers(1, 41, n), BIASED["failure"])


def naive_advances(rule, seed):
    """The loop that counts outcomes as they come in: advances by call 128."""
    generator, b = np.random.default_rng(seed), BIASED
    curriculum = Curriculum(rule, b["contexts"], b["levels"], seed=seed, window=b["window"])
    cells = curriculum.assign(b["environments"])
    context, level = cells.context.copy(), cells.level.copy()
    success, left = biased_lengths(generator, b["environments"])
    for _ in range(b["calls"]):
        left -= 1
        for i in np.flatnonzero(left == 0):
            curriculum.record(int(context[i]), int(level[i]), bool(success[i]))
            context[i], level[i] = curriculum.assign_one()
            success[i], left[i] = (part[0] for part in biased_lengths(generator, 1))
    return sum(event.kind == "advance" for event in curriculum.events)


def unbiased_advances(rule, windows, seed):
    """The same true chance without any lengths: advances in as many windows."""
    generator, b = np.random.default_rng(seed), BIASED
    curriculum = Curriculum(rule, b["contexts"], b["levels"], seed=seed)
    for _ in range(windows):
        curriculum.report(curriculum.assign(b["window"]), generator.random(b["window"]) < b["chance"])
    return sum(event.kind == "advance" for event in curriculum.events)
