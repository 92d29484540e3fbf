"""Rules on a bank that is not ours: twelve FrozenLake maps, tabular Q-learning, nothing shared by contexts.

    python -m benchmarks.frozen_lake                          # seven rules, three seeds: about a minute
    python -m benchmarks.frozen_lake --windows 20 --seeds 1   # seconds

Training rollouts explore (3 of 10 actions are random, and holes end an episode), so a mastered map still fails in about
half of its rollouts. It prints the share of maps that the greedy policy solves from the map's own start, ten times.
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

from scout_rl import Curriculum, rules

MAPS, SIZE, LEVELS, EXPLORE = 12, 8, 5, 0.3
RULES = ("ability", "scout", "mixture", "random", "rfcl", "learnability", "adaback")


def shortest_way(lake):
    """The states of a shortest way from the start to the goal, by breadth-first search from the goal."""
    goal = SIZE * SIZE - 1

    def neighbours(state):
        row, column = divmod(state, SIZE)
        for r, c in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            if 0 <= r < SIZE and 0 <= c < SIZE and lake[r][c] != "H":
                yield r * SIZE + c

    distance, queue = {goal: 0}, [goal]
    for state in queue:
        for other in neighbours(state):
            if other not in distance:
                distance[other] = distance[state] + 1
                queue.append(other)
    way = [0]
    while way[-1] != goal:
        way.append(min((s for s in neighbours(way[-1]) if s in distance), key=distance.__getitem__))
    return way


def curve(key, seed, windows):
    """The share of maps that are solved, at ten moments of the training."""
    lakes = [generate_random_map(SIZE, seed=i) for i in range(MAPS)]
    envs = [gymnasium.make("FrozenLake-v1", desc=m, is_slippery=False, max_episode_steps=60) for m in lakes]
    ladder = [[way[k * (len(way) - 2) // (LEVELS - 1)] for k in range(LEVELS)] for way in map(shortest_way, lakes)]
    curriculum, rng = Curriculum(rules.make(key), MAPS, LEVELS, seed=seed), np.random.default_rng(seed)
    Q = np.zeros((MAPS, SIZE * SIZE, 4))

    def succeeds(x, level, explore):
        env = envs[x].unwrapped
        envs[x].reset(seed=0)
        state = env.s = ladder[x][level]
        while True:
            best = np.flatnonzero(Q[x, state] == Q[x, state].max())
            action = int(rng.integers(4)) if rng.random() < explore else int(rng.choice(best))
            after, reward, ended, late, _ = envs[x].step(action)
            if explore:
                Q[x, state, action] += 0.5 * (reward + 0.97 * (not ended) * Q[x, after].max() - Q[x, state, action])
            state = after
            if ended or late:
                return reward > 0

    solved = []
    for window in range(1, windows + 1):
        cells = curriculum.assign(16)
        curriculum.report(cells, [succeeds(x, k, EXPLORE) for x, k in zip(*cells, strict=True)])
        if window % max(1, windows // 10) == 0:
            solved.append(np.mean([succeeds(x, 0, 0.0) for x in range(MAPS)]))
    return solved


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--windows", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    for key in RULES:
        mean = np.mean([curve(key, seed, arguments.windows) for seed in range(1, arguments.seeds + 1)], axis=0)
        print(f"{key:>13}  " + "  ".join(f"{value:.2f}" for value in mean))


if __name__ == "__main__":
    main()
