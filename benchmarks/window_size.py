"""How many outcomes per window? The learner model, equal rollouts, windows of several sizes.

The learner updates after every ``--update`` rollouts, whatever the window is. The curriculum chooses anew after every
window. Printed: thousands of rollouts until the worst group is solved, geometric mean over seeds; a seed that did not
solve counts as the budget, ``never``: no seed did. Rules keep their defaults.

    python -m benchmarks.window_size                          # ten minutes on two busy cores
    python -m benchmarks.window_size --size 16 --seeds 1      # seconds
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from scout_rl import Curriculum, rules
from scout_rl.rules.cells import Cells
from scout_rl.simulate import SCENARIOS, init_skill, practise, success_chance
from scout_rl.simulate.view import windows_to_solve

EVERY = 160
"""Rollouts between evaluations, at least."""


def rollouts_to_solve(bank: str, rule: str, window: int, update: int, seed: int) -> tuple[int | None, int]:
    """Rollouts until the worst group is solved, or None; and the budget."""
    scenario = SCENARIOS[bank]()
    budget = scenario.windows * scenario.rollouts
    curriculum = Curriculum(rules.make(rule), scenario.n_contexts, scenario.n_levels, seed=seed, window=window)
    rng = np.random.default_rng([seed, 2])
    skill = init_skill(scenario.learner, 1)
    groups = [scenario.evaluation_group == g for g in range(len(scenario.group_names))]
    at, worst = [], []
    for played in range(0, budget, update):
        chance = success_chance(skill, scenario.learner.cap)[0]
        if not at or played - at[-1] >= EVERY:
            at.append(played)
            worst.append(min(chance[group, 0].mean() for group in groups))
        cells, success = np.zeros((2, 1, update), np.int64), np.zeros((1, update), bool)
        for i in range(update):
            context, level = curriculum.assign_one()
            cells[:, 0, i] = context, level
            success[0, i] = rng.random() < chance[context, level]
            curriculum.record(context, level, success[0, i])
        skill = practise(scenario.learner, skill, Cells(*cells), success)
    return windows_to_solve(np.array(at), np.array(worst)), budget


def text(results: list[tuple[int | None, int]]) -> str:
    if all(solved is None for solved, _ in results):
        return "never"
    rollouts = [budget if solved is None else solved for solved, budget in results]
    return f"{np.exp(np.log(rollouts).mean()) / 1000:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bank", nargs="+", choices=list(SCENARIOS), default=["homogeneous", "conflict"])
    parser.add_argument("--rule", nargs="+", choices=list(rules.RULES), default=["ability", "scout"])
    parser.add_argument("--size", nargs="+", type=int, default=[1, 4, 16, 64, 256, 1024], help="outcomes per window")
    parser.add_argument("--update", nargs="+", type=int, default=[16, 256], help="rollouts per update of the learner")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    columns = [(bank, rule, update) for update in args.update for bank in args.bank for rule in args.rule]
    jobs = [(*column, size, seed) for size in args.size for column in columns for seed in range(args.seeds)]
    print("|".join(["", " outcomes per window ", *(f" `{r}`, {b}, updates of {u} " for b, r, u in columns), ""]))
    print("|" + " ---: |" * (len(columns) + 1))
    with ProcessPoolExecutor(args.workers) as pool:
        results = pool.map(_job, jobs)
        for size in args.size:
            row = [text([next(results) for _ in range(args.seeds)]) for _ in columns]
            print(f"| {size:,} | {' | '.join(row)} |", flush=True)


def _job(job: tuple[str, str, int, int, int]) -> tuple[int | None, int]:
    bank, rule, update, size, seed = job
    return rollouts_to_solve(bank, rule, size, update, seed)


if __name__ == "__main__":
    main()
