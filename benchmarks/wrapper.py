"""Environment steps per second with and without the wrapper, in one process and across processes, beside Syllabus's.

    python -m benchmarks.wrapper [--seconds 0.1] [--rounds 30] [--builds 5] [--skip-fetch] [--skip-async]

All variants run the same environments with the same actions and resets, so the same physics (checked at the end), and
the same number of steps per round, in turns: on a shared machine single runs mean nothing. Overhead is the median over
all rounds of the time ratio to the plain vector environment in the same round, with its quartiles and the 95% interval
of the median. Sync is measured in CPU seconds of the process, which others on the machine disturb less (overhead_wall
is the same in wall time); async in wall seconds. The place of objects in memory favours one variant or another by some
tenths of a per cent, so everything is built anew several times. ``control`` is the plain vector environment a second
time; its distance from 0 is the resolution of the figures. The last line is one JSON object.
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
            queue.cancel_join_thread()  # else the process hangs at its end on tasks left in the queue
        curriculum.components._task_time_queue.cancel_join_thread()
        curriculum.stop()

    return vector(fns, autoreset_mode=MODE), stop


def seconds_for(envs, actions, repeats):
    """CPU seconds of this process and seconds on the wall, and the last observation."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(repeats):
        for action in actions:
            last = envs.step(action)
    return (time.process_time() - cpu, time.perf_counter() - wall), last[0]


def first_reset(label, envs):
    """Wrappers reset with the seed, then to their task. The plain environment does the same, for equal draws."""
    envs.reset(seed=0)
    if label in ("plain", "control"):
        envs.reset()


def compare(name, vector, variants, seconds, rounds, builds):
    """Steps per second of every variant, and its overhead over the plain one, from the rounds of all builds."""
    times = {label: [] for label in variants}
    same_physics = dict.fromkeys(variants, True)
    for build in range(builds):
        steps, measured, agrees = _one_build(name, vector, _rotated(variants, build), seconds, rounds)
        for label in variants:
            times[label] += [(cpu / steps, wall / steps) for cpu, wall in measured[label]]
            same_physics[label] &= agrees[label]
    clock = 0 if vector is SyncVectorEnv else 1
    return {label: _numbers(times["plain"], times[label], clock, same_physics[label]) for label in variants}


def _one_build(name, vector, variants, seconds, rounds):
    """Make every variant and time them in turns: steps per round, (CPU, wall) seconds, whether the physics agree."""
    make, success_key = ENVS[name], "is_success" if name == "fetch" else success
    built = {label: variant(make, success_key, vector) for label, variant in variants.items()}
    sample = built["plain"][0]
    sample.action_space.seed(0)
    actions = [sample.action_space.sample() for _ in range(10 if name == "fetch" else 100)]
    for label, (envs, _) in built.items():
        first_reset(label, envs)
        seconds_for(envs, actions, 1)  # warms up
    once = seconds_for(sample, actions, 1)[0][1]
    for label in built:
        if label != "plain":
            seconds_for(built[label][0], actions, 1)
    repeats = max(1, round(seconds / once))
    times, observations = {label: [] for label in built}, {}
    for turn in range(rounds):
        for label in _rotated(built, turn):
            passed, observations[label] = seconds_for(built[label][0], actions, repeats)
            times[label].append(passed)
    same = {
        label: np.array_equal(_flat(observations["plain"]), _flat(observation))
        for label, observation in observations.items()
    }
    for envs, stop in built.values():
        envs.close()
        stop()
    return repeats * len(actions) * N, times, same


def _rotated(labelled, turn):
    """The same dict in a rotated order, so that no variant is always first."""
    items = [*labelled.items()]
    return dict(items[turn % len(items) :] + items[: turn % len(items)])


def _flat(observation):
    parts = observation.values() if isinstance(observation, dict) else [observation]
    return np.concatenate([np.ravel(part) for part in parts])


def _numbers(plain_times, times, clock, same):
    ratios = np.sort([t[clock] / p[clock] - 1 for p, t in zip(plain_times, times, strict=True)])
    low, median, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    n = len(ratios)
    far = round(0.98 * n**0.5)  # ranks of the median's 95% interval (normal approximation of the binomial)
    between = ratios[max(0, n // 2 - far)], ratios[min(n - 1, n // 2 + far)]
    walls = [t[1] / p[1] - 1 for p, t in zip(plain_times, times, strict=True)]
    return {
        "steps_per_second": round(1 / statistics.median(t[clock] for t in times)),
        "overhead": round(float(median), 4),
        "overhead_quartiles": [round(float(low), 4), round(float(high), 4)],
        "overhead_interval": [round(float(bound), 4) for bound in between],
        "overhead_wall": round(statistics.median(walls), 4),
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
    parser.add_argument("--seconds", type=float, default=0.1, help="of a round, about")
    parser.add_argument("--rounds", type=int, default=30, help="in turns, of every build")
    parser.add_argument("--builds", type=int, default=5, help="times that all environments are made anew")
    parser.add_argument("--skip-fetch", action="store_true")
    parser.add_argument("--skip-async", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    variants = {"plain": plain, "control": plain, "scout": scout, **peers()}
    results = {}
    for name in ENVS:
        if name == "fetch" and args.skip_fetch:
            continue
        for mode, vector in (("sync", SyncVectorEnv), ("async", AsyncVectorEnv))[: 1 if args.skip_async else 2]:
            result = compare(name, vector, variants, args.seconds, args.rounds, args.builds)
            results[f"{name}, {mode}"] = result
            for label, numbers in result.items():
                rate, median, (low, high), (least, most), wall, same = numbers.values()
                spread = f"(95% {least:+.2%} to {most:+.2%}; quartiles {low:+.2%} to {high:+.2%}; wall {wall:+.2%})"
                note = "" if same else "; NOT the same physics"
                print(f"{name}, {mode}: {label:9} {rate:>8} steps/s  {median:+.2%} {spread}{note}", flush=True)
    print(json.dumps({"envs": N, "load": os.getloadavg()[0], "numpy": np.__version__, "results": results}))


if __name__ == "__main__":
    main()
