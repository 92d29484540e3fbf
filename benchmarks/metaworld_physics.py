"""Meta-World's stock environment and bare physics, for `benchmarks.environments`."""

from __future__ import annotations

import time
from typing import Any

import mujoco

from scout_rl.bench.families.metaworld.contexts import FRAME_SKIP
from scout_rl.bench.families.metaworld.tasks import stock, stock_env, task_index
from scout_rl.bench.families.worker_threads import WorkerThreads
from scout_rl.bench.hardware import n_usable_cores

CONTROLS = ("ctrl", "mocap_pos", "mocap_quat")


def stock_metaworld(task: str) -> Any:
    """A stock environment whose resets draw the middle of the task's ranges."""
    env = stock_env(task)
    facts = stock(task_index(task))
    env._last_rand_vec = (facts.context_low + facts.context_high) / 2
    return env


class MetaWorldPhysics:
    """``mj_step`` alone under the controls of our own run (no shelf); the faster of one thread and all."""

    def __init__(self, ours: Any) -> None:
        self.simulator, self.starts = ours.simulator, ours.starts
        self.controls: list[list[Any]] = []
        ours.run(lambda state: self.controls.append(self._controls(state)))

    def _controls(self, state: Any) -> list[Any]:
        states = self.simulator.get_states(state)
        return list(zip(*(states[name] for name in CONTROLS), strict=True))

    def run(self) -> float:
        return max(self._run(n) for n in sorted({1, n_usable_cores()}))

    def _run(self, n_threads: int) -> float:
        spent, threads = 0.0, WorkerThreads(n_threads)
        for t, controls in enumerate(self.controls):
            if t % self.simulator.max_steps == 0:
                environments = (handle := self.simulator.reset_to(self.starts)).environments
            for environment, (ctrl, mocap_pos, mocap_quat) in zip(environments, controls, strict=True):
                environment.ctrl[:], environment.mocap_pos[:], environment.mocap_quat[:] = ctrl, mocap_pos, mocap_quat
            begin = time.perf_counter()
            threads.each(
                lambda i: mujoco.mj_step(environments[i].facts.model, environments[i].data, FRAME_SKIP),  # noqa: B023
                handle.n,
            )
            spent += time.perf_counter() - begin
        return len(self.controls) * handle.n / spent
