"""Streams of outcomes that make frontiers move both ways, for any rule."""

import numpy as np

from scout_rl.rules.cells import Outcomes


def outcomes(context, level, success, signal=None, valid=None):
    n = len(context)
    return Outcomes(
        np.asarray(context, np.int64),
        np.asarray(level, np.int64),
        np.asarray(success, bool),
        np.zeros(n) if signal is None else np.asarray(signal, float),
        np.ones(n, bool) if valid is None else np.asarray(valid, bool),
    )


class Stream:
    """A crude learner: success falls with the distance to a competence that drifts up, down and up again.

    Most cells are drawn from the rule's distribution; some are late (drawn windows ago) and some arbitrary.
    """

    def __init__(self, n_contexts, n_levels, batch, seed, odd=0.2):
        self.rng = np.random.default_rng(seed)
        self.shape = n_contexts, n_levels
        self.batch, self.odd = batch, odd
        self.speed = self.rng.uniform(0.3, 3.0, n_contexts)
        self.late = []
        self.window = 0

    def next(self, p):
        n, levels = self.shape
        flat = np.asarray(p, float).reshape(-1)
        cells = self.rng.choice(n * levels, self.batch, p=flat / flat.sum())
        self.late = [*self.late[-5:], cells]
        swap = self.rng.random(self.batch)
        old = self.late[0][self.rng.integers(len(self.late[0]), size=self.batch)]
        cells = np.where(swap < self.odd / 2, old, cells)
        cells = np.where(swap > 1 - self.odd / 2, self.rng.integers(n * levels, size=self.batch), cells)
        context, level = np.divmod(cells, levels)
        phase = 1.2 * np.sin(self.window * self.speed[context] / 60) + 0.3
        chance = 1 / (1 + np.exp(-4 * (level / (levels - 1) - 0.7 + phase)))
        success = self.rng.random(self.batch) < chance
        self.window += 1
        return outcomes(context, level, success, self.rng.random(self.batch))
