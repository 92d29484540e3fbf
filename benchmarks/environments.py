"""How fast the MuJoCo families step here, beside the stock vector environments, EnvPool and bare physics.

    make peers && .venv-peers/bin/python -m benchmarks.environments [--families fetch pointmaze metaworld] [--rounds 8]

16 environments, float32 actions drawn before the clock starts; episodes end at the stock horizon and start again (ours
from restored starts, and that is in the time). Every candidate is measured once per round, in turn, and its best round
counts, so that a busy machine does not slow one candidate alone. Bare physics is ``mj_step`` alone, in threads,
with the controls of our own run: on our model, which compares boxes of meshes first, and on the stock model. EnvPool
runs in a process of its own; where it is not installed it is skipped, with the reason. The last line printed is one
JSON object.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.metaworld_physics import MetaWorldPhysics, stock_metaworld

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.families.mujoco_batch import MujocoBatch
from scout_rl.bench.hardware import n_usable_cores
from scout_rl.bench.settings.settings import SETTINGS

N_ENVS = 16
CONTROLS = ("ctrl", "mocap_pos", "mocap_quat")


@dataclass(frozen=True)
class Subject:
    """One family's row: a setting, the physics steps of one environment step, and the steps of one round."""

    setting: str
    n_substeps: int
    n_actions: int
    n_steps: int
    stock: Callable[[str], Any] | None = None
    """Makes one stock environment of the setting's task; by default ``gymnasium.make``."""
    physics: Callable[[Any], Any] | None = None
    """Makes the bare physics of our own run where the family's batch is not a ``MujocoBatch``."""
    envpool: str | None = None
    """EnvPool's name of the task, where it is another."""


SUBJECTS = {
    "fetch": Subject("fetch-air", n_substeps=20, n_actions=4, n_steps=50),
    "pointmaze": Subject("pointmaze-medium", n_substeps=1, n_actions=2, n_steps=600),
    "metaworld": Subject(
        "metaworld-pickplace",
        n_substeps=5,
        n_actions=4,
        n_steps=150,
        stock=stock_metaworld,
        physics=MetaWorldPhysics,
        envpool="MetaWorld/PickPlace-v3",
    ),
}
"""A family joins the benchmark with a row here."""


def actions_of(subject: Subject) -> np.ndarray:
    shape = (subject.n_steps, N_ENVS, subject.n_actions)
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


class Ours:
    """The batch simulator, over whole episodes from restored starts."""

    def __init__(self, subject: Subject) -> None:
        setting = SETTINGS[subject.setting]
        setting_family = family(setting.family)
        self.simulator, self.actions = setting_family.batch_simulator(setting), actions_of(subject)
        contexts = load_bank(setting).train.contexts
        self.starts = setting_family.target_starts({name: array[:N_ENVS] for name, array in contexts.items()})

    def run(self, watch: Callable[[Any], None] = lambda state: None) -> float:
        begin = time.perf_counter()
        for t, action in enumerate(self.actions):
            if t % self.simulator.max_steps == 0:
                state = self.simulator.reset_to(self.starts)
            state, _ = self.simulator.step(state, action)
            watch(state)
        return self.actions.shape[0] * N_ENVS / (time.perf_counter() - begin)

    def restore_in_steps(self) -> float:
        """The time of a restore over the time of a step, each the best of many."""
        restores, steps = [], []
        for action in np.tile(self.actions[:50], (4, 1, 1)):
            begin = time.perf_counter()
            state = self.simulator.reset_to(self.starts)
            middle = time.perf_counter()
            self.simulator.step(state, action)
            restores.append(middle - begin)
            steps.append(time.perf_counter() - middle)
        return min(restores) / min(steps)


class Physics:
    """``mj_step`` alone under the controls of our own run; the faster of one thread and all."""

    def __init__(self, subject: Subject, ours: Ours, model: Any) -> None:
        self.n_substeps = subject.n_substeps
        self.controls: list[dict[str, Any]] = []
        ours.run(lambda state: self.controls.append(self._controls(ours.simulator.get_states(state))))
        self.starts, self.horizon = ours.starts, ours.simulator.max_steps
        pool = ours.simulator.pool
        derived = tuple(pool.layout.derived)
        self.batches = [MujocoBatch(model, N_ENVS, derived=derived, n_threads=n) for n in sorted({1, n_usable_cores()})]

    @staticmethod
    def _controls(states: dict[str, Any]) -> dict[str, Any]:
        return {name: states[name] for name in CONTROLS if name in states}

    def run(self) -> float:
        return max(self._run(batch) for batch in self.batches)

    def _run(self, batch: MujocoBatch) -> float:
        spent = 0.0
        for t, controls in enumerate(self.controls):
            if t % self.horizon == 0:
                batch.set_states(self.starts)
            for name, rows in controls.items():
                batch.write(name, rows)
            begin = time.perf_counter()
            batch.step(self.n_substeps)
            spent += time.perf_counter() - begin
        return len(self.controls) * N_ENVS / spent


class Stock:
    """A Gymnasium vector environment of stock environments."""

    def __init__(self, subject: Subject, vector: str) -> None:
        import gymnasium
        import gymnasium_robotics

        gymnasium.register_envs(gymnasium_robotics)
        task = SETTINGS[subject.setting].task
        make = subject.stock or gymnasium.make
        self.envs = getattr(gymnasium.vector, vector)([lambda: make(task) for _ in range(N_ENVS)])
        self.envs.reset(seed=0)
        self.actions = actions_of(subject)[: max(50, subject.n_steps // 3)]

    def run(self) -> float:
        begin = time.perf_counter()
        for action in self.actions:
            self.envs.step(action)
        return len(self.actions) * N_ENVS / (time.perf_counter() - begin)


ENVPOOL = """
import sys, time, numpy as np, envpool
task, n_envs, n_steps, n_actions, n_threads = sys.argv[1], *map(int, sys.argv[2:])
envs = envpool.make(task, env_type="gymnasium", num_envs=n_envs, num_threads=n_threads)
envs.reset()
actions = np.random.default_rng(0).uniform(-1, 1, (n_steps, n_envs, n_actions))
for action in actions[:20]: envs.step(action)
best = float("inf")
for _ in range(4):
    begin = time.perf_counter()
    for action in actions: envs.step(action)
    best = min(best, time.perf_counter() - begin)
print(n_steps * n_envs / best)
"""


class EnvPool:
    """EnvPool in its own process."""

    def __init__(self, subject: Subject) -> None:
        sizes = [N_ENVS, subject.n_steps, subject.n_actions, n_usable_cores()]
        task = subject.envpool or SETTINGS[subject.setting].task
        self.command = [sys.executable, "-c", ENVPOOL, task, *map(str, sizes)]

    def run(self) -> float:
        done = subprocess.run(self.command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
        return float(done.stdout.strip().splitlines()[-1])


def measure(key: str, subject: Subject, rounds: int) -> dict[str, float | None]:
    ours = Ours(subject)
    candidates: dict[str, Any] = {
        "scout": ours,
        "physics": subject.physics(ours) if subject.physics else Physics(subject, ours, ours.simulator.pool.model),
    }
    if not subject.physics:
        candidates["stock physics"] = Physics(subject, ours, ours.simulator.pool.stock_model)
    for name, make in {
        "sync": lambda: Stock(subject, "SyncVectorEnv"),
        "async": lambda: Stock(subject, "AsyncVectorEnv"),
        "envpool": lambda: EnvPool(subject),
    }.items():
        try:
            candidates[name] = make()
            candidates[name].run()
        except RuntimeError as error:
            candidates.pop(name, None)
            print(f"{key}: {name} skipped: {error}", flush=True)
    best = dict.fromkeys(candidates, 0.0)
    for _ in range(rounds):
        for name, candidate in candidates.items():
            best[name] = max(best[name], candidate.run())
    for name, rate in best.items():
        print(f"{key:10} {name:13} {rate:12,.0f} steps/s", flush=True)
    restore = ours.restore_in_steps()
    print(f"{key:10} a restore of {N_ENVS} environments takes the time of {restore:.2f} steps", flush=True)
    for name in ("sync", "async"):
        candidates[name].envs.close()
    stock, pool = max(best["sync"], best["async"]), best.get("envpool")
    return {
        "steps_per_s": round(best["scout"]),
        "vs_best_stock": round(best["scout"] / stock, 2),
        "vs_envpool": round(best["scout"] / pool, 2) if pool else None,
        "vs_physics": round(best["scout"] / best["physics"], 2),
        "physics_vs_stock": round(best["physics"] / best["stock physics"], 2) if "stock physics" in best else None,
        "restore_in_steps": round(restore, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="*", default=list(SUBJECTS), choices=list(SUBJECTS))
    parser.add_argument("--rounds", type=int, default=8)
    args = parser.parse_args()
    print(f"{N_ENVS} environments on {n_usable_cores()} cores, Python {sys.version.split()[0]}", flush=True)
    print(json.dumps({key: measure(key, SUBJECTS[key], args.rounds) for key in args.families}))


if __name__ == "__main__":
    main()
