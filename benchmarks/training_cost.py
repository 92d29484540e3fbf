"""The memory of a training run, and the time and disk of its checkpoints.

Each measurement has its own process, so that its resident set is that of one run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SETTINGS = ("fetch-conflict", "pointmaze-large", "metaworld-pickplace")
MIB = 2**20


def cost(settings: list[str], windows: int) -> dict[str, Any]:
    """Per setting: a real short run, and one with random episodes that fills its replay twice."""
    by_run: dict[str, Any] = {}
    for name in settings:
        for kind, n in (("run", windows), ("full", 0)):
            code = f"from benchmarks import training_cost as t; t.{kind}({name!r}, {n})"
            root = str(Path(__file__).resolve().parents[1])
            done = subprocess.run([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True, check=True)
            by_run[f"{name}/{kind}"] = numbers = json.loads(done.stdout.splitlines()[-1])
            print(f"{name:22}{kind:6}" + "  ".join(f"{key} {value}" for key, value in numbers.items()), flush=True)
    worst = {key: max(numbers[key] for numbers in by_run.values()) for key in ("disk_mib", "resident_mib")}
    share = max(numbers["checkpoint_share"] for key, numbers in by_run.items() if key.endswith("/run"))
    return {"checkpoint_share": share, **worst, "by_run": by_run}


def run(name: str, windows: int) -> None:
    """Train ``windows`` windows. The checkpoints' share of time counts from the second window on."""
    from scout_rl.bench.run import checkpoint, learner_state, train
    from scout_rl.bench.run.config import RunConfig

    spent = 0.0

    def timed(function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal spent
            begin = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                spent += time.perf_counter() - begin

        return call

    checkpoint.write = timed(checkpoint.write)
    learner_state.Saved.next = timed(learner_state.Saved.next)  # type: ignore[method-assign]
    clock: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        config = RunConfig(setting=name, windows=windows)
        train.train(config, path, watch=lambda _: clock.append(time.perf_counter()), say=lambda line: None)
        disk = _disk(path / "checkpoints")
    whole = clock[-1] - clock[0]
    _report(
        seconds_a_window=round(whole / (windows - 1), 3),
        checkpoint_share=round(spent / whole, 4),
        disk_mib=disk,
        resident_mib=resident("VmHWM"),
    )


def full(name: str, _: int) -> None:
    """A setting's tuned learner with its replay filled beyond capacity, saved as often as in a run."""
    import jax

    from scout_rl.bench.families import family, load_bank
    from scout_rl.bench.learners import make_learner
    from scout_rl.bench.run import checkpoint
    from scout_rl.bench.run.config import RunConfig
    from scout_rl.bench.run.learner_state import Saved
    from scout_rl.bench.run.parts import goal_space
    from scout_rl.bench.settings.settings import setting as find_setting

    config, setting = RunConfig(setting=name), find_setting(name)
    setting_family = family(setting.family)
    contexts = {key: array[:1] for key, array in load_bank(setting).train.contexts.items()}
    space = goal_space(setting_family.batch_simulator(setting), setting_family.target_starts(contexts))
    learner = make_learner(config.algorithm, {**config.learner, "updates": 1})
    state = jax.jit(lambda key: learner.init(key, space, config.episodes))(jax.random.key(0))
    learn = jax.jit(learner.update, donate_argnums=0)
    windows = 2 * -(-state.replay.capacity // config.episodes) + config.checkpoint_every
    rng, saved, spent, writes = np.random.default_rng(0), Saved(), 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for window in range(1, windows + 1):
            episodes = jax.tree.map(
                lambda ring: rng.random((config.episodes, *ring.shape[1:]), np.float32).astype(ring.dtype),
                state.replay.episodes,
            )
            state = learn(state, episodes, jax.random.key(window)).state
            if window % config.checkpoint_every == 0:
                jax.block_until_ready(state)
                begin = time.perf_counter()
                learned, new, saved = saved.next(state)
                kept = checkpoint.write(Path(folder), window, "", {"learner": learned}, {}, new=new, kept=saved.hashes)
                saved = saved.written(kept)
                spent, writes = spent + time.perf_counter() - begin, writes + 1
        disk = _disk(Path(folder))
    _report(windows=windows, checkpoint_seconds=round(spent / writes, 3), disk_mib=disk, resident_mib=resident("VmHWM"))


class _LineStep(NamedTuple):
    observation: dict[str, Any]
    success: Any


class Line:
    """A point on a line: a minimal goal-conditioned simulator."""

    max_steps, n_actions = 5, 1

    def reset_to(self, states: Any) -> Any:
        return dict(states)

    def observe(self, state: Any) -> dict[str, Any]:
        return {"observation": state["x"], "achieved_goal": state["x"], "desired_goal": state["goal"]}

    def step(self, state: Any, action: Any) -> tuple[Any, _LineStep]:
        state = {**state, "x": state["x"] + 0.1 * action}
        return state, _LineStep(self.observe(state), abs(state["x"] - state["goal"])[:, 0] < 0.1)

    def goal_radius(self, state: Any) -> Any:
        return np.full(len(state["x"]), 0.1)


def memory(windows: int, parts: int = 20) -> dict[str, Any]:
    """Windows of a small learner with a full replay and checkpoints; the resident set must not grow."""
    import jax

    from scout_rl.bench.learners.episodes import GoalSpace
    from scout_rl.bench.learners.sac import SAC
    from scout_rl.bench.run import checkpoint
    from scout_rl.bench.run.learner_state import Saved
    from scout_rl.bench.run.window import host_window

    simulator, n = Line(), 16
    learner = SAC(hidden=(32, 32), batch=32, updates=2, capacity=8_000, warmup=100)
    play = host_window(simulator, learner, 1, with_signal=True)  # type: ignore[arg-type]
    state = jax.jit(lambda key: learner.init(key, GoalSpace(1, 1, 1, simulator.max_steps), n))(jax.random.key(0))
    rng, group, saved, sizes = np.random.default_rng(0), np.zeros(n, np.int32), Saved(), []
    with tempfile.TemporaryDirectory() as folder:
        for window in range(1, windows + 1):
            starts = {"x": rng.normal(size=(n, 1)), "goal": rng.normal(size=(n, 1))}
            state = play(state, starts, group, jax.random.key(window)).state
            if window % 50 == 0:
                learned, new, saved = saved.next(state)
                kept = checkpoint.write(Path(folder), window, "", {"learner": learned}, {}, new=new, kept=saved.hashes)
                saved = saved.written(kept)
            if window % max(1, windows // parts) == 0:
                sizes.append(resident("VmRSS"))
                print(f"window {window:6}  resident {sizes[-1]:8.1f} MiB", flush=True)
    settled = len(sizes) // 4
    return {"windows": windows, "resident_mib": sizes[-1], "growth_mib": round(sizes[-1] - sizes[settled], 1)}


def resident(field: str) -> float:
    """Memory of this process in MiB: ``VmRSS`` is now, ``VmHWM`` the highest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024, 1)


def _disk(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / MIB, 1)


def _report(**numbers: float) -> None:
    print(json.dumps(numbers))
