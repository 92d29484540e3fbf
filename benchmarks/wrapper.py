"""Environment steps a second with and without the wrapper, in one process and across processes, beside Syllabus's.

    python benchmarks/wrapper.py [--seconds 0.5] [--rounds 15] [--skip-fetch] [--skip-async]

All variants run the same environments with the same actions and resets, so the same physics (checked at the end), and
the same number of steps a round, interleaved: on a shared machine single runs mean nothing. Sync is measured in CPU
seconds of the process, for the same reason; async in seconds. Overhead is the median over rounds of the time ratio to
the plain vector environment in the same round, with its quartiles; overhead_best compares the best rounds, which others
on the machine disturb least. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from importlib import import_module

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from scout_rl import Curriculum, rules
from scout_rl.integrations.gymnasium import Assignments, CurriculumEnv
from scout_rl.integrations.vector import CurriculumVectorEnv

CONTEXTS, LEVELS, N = 20, 5, 8
MODE = AutoresetMode.SAME_STEP


class Balanced(gym.Wrapper):
    """CartPole under a policy that balances it, so that episodes run to their 500 steps as in late training."""

    def step(self, action):
        x, v, angle, speed = self.env.unwrapped.state
        return self.env.step(int(angle + 0.3 * speed + 0.03 * x + 0.05 * v > 0))


def cartpole_balanced():
    return Balanced(gym.make("CartPole-v1"))


def cartpole_random():
    return gym.make("CartPole-v1")


def fetch():
    import gymnasium_robotics

    gym.register_envs(gymnasium_robotics)
    return gym.make("FetchPickAndPlace-v4")


ENVS = {"cartpole, 500-step episodes": cartpole_balanced, "cartpole, random policy": cartpole_random, "fetch": fetch}


def reset_to(env, context, level):
    """The same reset as the plain environment's, so that what is measured is the wrapper."""
    return env.reset()


def success(observation, reward, terminated, truncated, info):
    return truncated and not terminated


def scout_fns(make, assignments, key):
    return [lambda: CurriculumEnv(make(), assignments, reset_to, key)] * N


def plain(make, key, vector):
    return vector([make] * N, autoreset_mode=MODE), lambda: None


def scout(make, key, vector):
    assignments = Assignments(Curriculum(rules.Scout(), CONTEXTS, LEVELS))
    envs = vector(scout_fns(make, assignments, key), autoreset_mode=MODE)
    return CurriculumVectorEnv(envs, assignments), lambda: None


def syllabus(make, key, vector):
    from syllabus.core import GymnasiumSyncWrapper, TaskWrapper, make_multiprocessing_curriculum
    from syllabus.curricula import DomainRandomization
    from syllabus.task_space import DiscreteTaskSpace

    class Task(TaskWrapper):
        def reset(self, new_task=None, seed=None, **kwargs):
            self.task = new_task
            if seed is not None:  # as our wrapper does, so that both draw the same
                self.env.reset(seed=seed)
            return self.env.reset(**kwargs)

    space = DiscreteTaskSpace(CONTEXTS * LEVELS)
    curriculum = make_multiprocessing_curriculum(DomainRandomization(space))
    fns = [lambda: GymnasiumSyncWrapper(Task(make()), space, curriculum.components)] * N

    def stop():
        for queue in (curriculum.components.task_queue, curriculum.components.update_queue):
            queue.cancel_join_thread()  # else the process hangs at its end on tasks that nobody took
        curriculum.components._task_time_queue.cancel_join_thread()
        curriculum.stop()

    return vector(fns, autoreset_mode=MODE), stop


def seconds_for(envs, actions, repeats, clock):
    start = clock()
    for _ in range(repeats):
        for action in actions:
            last = envs.step(action)
    return clock() - start, last[0]


def first_reset(label, envs):
    """Wrappers reset with the seed, then to their task; the plain environment does both as well, to draw the same."""
    envs.reset(seed=0)
    if label == "plain":
        envs.reset()


def compare(name, vector, variants, seconds, rounds):
    """Return the median steps a second of every variant, and its overhead over the plain vector environment."""
    make, key = ENVS[name], "is_success" if name == "fetch" else success
    made = {label: variant(make, key, vector) for label, variant in variants.items()}
    clock = time.process_time if vector is SyncVectorEnv else time.perf_counter
    sample = made["plain"][0]
    sample.action_space.seed(0)
    actions = [sample.action_space.sample() for _ in range(10 if name == "fetch" else 100)]
    repeats = 1
    for label, (envs, _) in made.items():
        first_reset(label, envs)
        once, _ = seconds_for(envs, actions, 2, clock)  # warms up
        repeats = max(repeats, round(2 * seconds / once)) if label == "plain" else repeats
    times, seen = {label: [] for label in made}, {}
    for turn in range(rounds):
        for label in [*made][turn % len(made) :] + [*made][: turn % len(made)]:
            passed, seen[label] = seconds_for(made[label][0], actions, repeats, clock)
            times[label].append(passed)
    same = {label: np.array_equal(_flat(seen["plain"]), _flat(observation)) for label, observation in seen.items()}
    for envs, stop in made.values():
        envs.close()
        stop()
    steps = repeats * len(actions) * N
    return {label: _numbers(steps, times["plain"], measured, same[label]) for label, measured in times.items()}


def _flat(observation):
    parts = observation.values() if isinstance(observation, dict) else [observation]
    return np.concatenate([np.ravel(part) for part in parts])


def _numbers(steps, plain_times, times, same):
    ratios = [t / p - 1 for p, t in zip(plain_times, times, strict=True)]
    low, median, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return {
        "steps_per_second": round(steps / statistics.median(times)),
        "overhead": round(median, 4),
        "overhead_quartiles": [round(low, 4), round(high, 4)],
        "overhead_best": round(min(times) / min(plain_times) - 1, 4),
        "same_physics": same,
    }


def peers():
    """Syllabus's wrapper if it is importable here, else a printed reason."""
    try:
        import_module("syllabus.core")
    except ImportError as error:
        print(f"skipped: Syllabus's wrapper ({error})")
        return {}
    return {"syllabus": syllabus}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--skip-fetch", action="store_true")
    parser.add_argument("--skip-async", action="store_true")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    variants = {"plain": plain, "scout": scout, **peers()}
    results = {}
    for name in ENVS:
        if name == "fetch" and arguments.skip_fetch:
            continue
        for mode, vector in (("sync", SyncVectorEnv), ("async", AsyncVectorEnv))[: 1 if arguments.skip_async else 2]:
            result = compare(name, vector, variants, arguments.seconds, arguments.rounds)
            results[f"{name}, {mode}"] = result
            for label, numbers in result.items():
                rate, median, (low, high), best, same = numbers.values()
                spread = f"(quartiles {low:+.2%} to {high:+.2%}; best rounds {best:+.2%})"
                note = "" if same else "; NOT the same physics"
                print(f"{name}, {mode}: {label:9} {rate:>8} steps/s  {median:+.2%} {spread}{note}", flush=True)
    print(json.dumps({"envs": N, "load": os.getloadavg()[0], "numpy": np.__version__, "results": results}))


if __name__ == "__main__":
    main()
