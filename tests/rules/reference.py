"""Spec section 4 as plain scalar loops: slow, obvious, and written without looking at the vectorised rule."""

import math
from dataclasses import dataclass, field


@dataclass
class ReferenceScout:
    contexts: int
    levels: int
    lambda_h: float = 1.0
    lambda_p: float = 0.2
    lambda_stale: float = 0.1
    tau: float = 0.5
    eps: float = 0.1
    q_max: float = 0.5
    tau_low: float = 0.15
    tau_high: float = 0.8
    n_min: int = 15
    cooldown: int = 3
    N_stale: int = 4
    beta: float = 0.2
    hysteresis: int = 2
    window: int = 0
    events: list = field(default_factory=list)

    def __post_init__(self):
        self.L = self.levels - 1
        self.s = [[0.0] * self.levels for _ in range(self.contexts)]
        self.n = [[0] * self.levels for _ in range(self.contexts)]
        self.c = [[0] * self.levels for _ in range(self.contexts)]
        self.f = [self.L] * self.contexts
        self.cool = [0] * self.contexts
        self.d = [0] * self.contexts
        self.pending = [None] * self.contexts
        self.count = [0] * self.contexts

    def probabilities(self):
        """Step 1: probability of each context's active cell."""
        scores = []
        for x in range(self.contexts):
            f = self.f[x]
            s = self.s[x][f]
            score = self.lambda_h * s * (1 - s)
            score += self.lambda_p * (self.L - f) / self.L
            score += self.lambda_stale * math.log(1 + self.c[x][f])
            scores.append(score)
        top = max(scores)
        weights = [math.exp((score - top) / self.tau) for score in scores]
        total = math.fsum(weights)
        p = [(1 - self.eps) * w / total + self.eps / self.contexts for w in weights]
        return self.capped(p)

    def capped(self, p):
        if self.contexts * self.q_max < 1:
            return [1 / self.contexts] * self.contexts
        at_cap = [False] * self.contexts
        while any(v > self.q_max for v in p):
            excess = 0.0
            for x, v in enumerate(p):
                if v >= self.q_max:
                    at_cap[x] = True
                    excess += v - self.q_max
                    p[x] = self.q_max
            open_mass = math.fsum(v for x, v in enumerate(p) if not at_cap[x])
            for x in range(self.contexts):
                if not at_cap[x]:
                    p[x] += excess * p[x] / open_mass
        return p

    def update(self, outcomes):
        """Steps 2 to 4. `outcomes`: (context, level, success) in order."""
        sampled = set()
        for x, level, r in outcomes:
            self.s[x][level] = (1 - self.beta) * self.s[x][level] + self.beta * float(r)
            self.n[x][level] += 1
            sampled.add((x, level))
        for x in range(self.contexts):
            for level in range(self.levels):
                self.c[x][level] = 0 if (x, level) in sampled else self.c[x][level] + 1
        for x in range(self.contexts):
            self.pass_over(x)
        self.window += 1

    def pass_over(self, x):
        if self.cool[x] > 0:
            self.cool[x] -= 1
            return
        f = self.f[x]
        if self.n[x][f] < self.n_min:
            return
        self.d[x] += 1
        s = self.s[x][f]
        antistall = False
        if s >= self.tau_high:
            direction = -1
        elif s <= self.tau_low:
            direction = 1
        elif self.N_stale > 0 and self.d[x] >= self.N_stale:
            direction, antistall = -1, True
        else:
            direction = None
        if direction is not None and not 0 <= f + direction <= self.L:
            direction = None
        if direction is None:
            self.pending[x], self.count[x] = None, 0
            return
        self.count[x] = self.count[x] + 1 if self.pending[x] == direction else 1
        self.pending[x] = direction
        if self.count[x] >= self.hysteresis:
            self.f[x] = f + direction
            kind = "antistall" if antistall else ("advance" if direction < 0 else "retreat")
            self.events.append((self.window, x, kind, f, self.f[x], s, self.n[x][f]))
            self.cool[x], self.d[x], self.pending[x], self.count[x] = self.cooldown, 0, None, 0
