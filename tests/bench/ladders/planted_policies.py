"""Policies with a known answer for the batch simulators: they play solver actions, or do nothing."""

import numpy as np

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.settings.settings import SETTINGS


class Case:
    """Some training contexts of a setting, with what the solver does in each."""

    def __init__(self, key, n_contexts):
        self.setting = SETTINGS[key]
        self.family = family(self.setting.family)
        every = load_bank(self.setting).train.contexts
        self.n = n_contexts
        rows = np.linspace(0, len(next(iter(every.values()))) - 1, n_contexts).astype(int)  # of every group
        self.contexts = {name: array[rows] for name, array in every.items()}
        self.targets = self.family.target_starts(self.contexts)
        one = [{name: a[i] for name, a in self.targets.items()} for i in range(self.n)]
        self.solutions = [self.family.trajectory(state).actions for state in one]
        self.max_steps = self.family.batch_simulator(self.setting).max_steps
        self.still = np.full_like(self.solutions[0][0], 6 if self.setting.family == "minigrid" else 0)

    def plays(self, solved, delays=(0, 0, 0, 0, 0)):
        """The solver's actions in the contexts of ``solved``, after so many idle steps in each attempt (None: never).

        As some context always fails, an attempt lasts to the time limit, and calls count steps and attempts.
        """
        assert len(solved) < self.n
        calls = 0

        def policy(observation, key):
            nonlocal calls
            attempt, t = divmod(calls, self.max_steps)
            calls += 1
            delay = delays[attempt]
            actions = np.repeat(self.still[None], self.n, axis=0)
            for x in solved:
                if delay is not None and delay <= t < delay + len(self.solutions[x]):
                    actions[x] = self.solutions[x][t - delay]
            return actions

        return policy
