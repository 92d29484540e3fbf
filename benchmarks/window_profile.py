"""Where the time of a training window goes, and the floor beside it: physics alone plus the update alone.

    python -m benchmarks.window_profile
    python -m benchmarks.window_profile fetch-conflict:tuned --windows 20 --clock wall

A run is trained as `scout train` does it, in a process with one thread on one core. Each part is charged for the time
in which no other part runs. Physics is the time inside ``mj_step``. The floor of the update is its floating-point
operations (XLA's count) at the speed of this core, or this accelerator, on float32 matrix products of the network's
size; Adam and all that is no matrix product lies above it. MiniGrid's window is one compiled call: rollouts and update
are also compiled and timed one by one, and the floor is that of the network's operations. Evaluations and checkpoints
are charged at the rate of a full run. The clock is the processor time of the process, which other work on the machine
does not lengthen; with an accelerator it is the wall clock. Time on the disk (``fsync``) is in wall time, per
checkpoint, and not in the sum. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

SUBJECTS = (
    "fetch-conflict:tuned", "fetch-conflict:paper-fast", "metaworld-conflict:tuned", "pointmaze-medium:tuned",
    "multiroom:tuned", "doorkey:tuned",
)  # fmt: skip
WARM = 3
"""Windows before the clock starts: afterwards all is compiled, and every window takes gradient steps."""
PHYSICS, UPDATE, CHECKPOINT = "physics (mj_step)", "update", "checkpoint"
EVALUATION, EVALUATED = "evaluation, the rest", "evaluation, physics"
FORWARD, FAMILY, ACT, RECORDS = "mj_forward, Jacobians", "family's Python", "actions", "rule and records"
IN_WINDOW = (PHYSICS, FORWARD, FAMILY, ACT, UPDATE, RECORDS, "rest")


class Stopwatch:
    """Charges time to the innermost part that runs; what runs inside an evaluation is the evaluation's."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.parts = ["rest"]
        self.reset()

    def reset(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self.since = self.clock()

    def turn(self) -> None:
        now = self.clock()
        self.spent[self.parts[-1]] += now - self.since
        self.since = now

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function, updated=())
        def call(*args: Any, **options: Any) -> Any:
            self.turn()
            inside = self.parts[-1] == EVALUATION
            self.parts.append((EVALUATED if part == PHYSICS else EVALUATION) if inside else part)
            self.calls[part] += 1
            try:
                return function(*args, **options)
            finally:
                self.turn()
                self.parts.pop()

        return call

    def watch(self, owner: Any, name: str, part: str) -> None:
        setattr(owner, name, self.timed(part, getattr(owner, name)))


class Profile:
    """One run's first windows, watched."""

    def __init__(self, subject: str, windows: int, clock: Callable[[], float]) -> None:
        from scout_rl.bench.run.config import RunConfig
        from scout_rl.bench.settings.settings import setting as find_setting

        key, _, preset = subject.partition(":")
        self.setting, self.windows, self.clock = find_setting(key), windows, clock
        every = max(1, (windows + WARM) // 2)
        self.config = RunConfig(
            setting=key, rule="ability", seed=40, preset=preset or "tuned", evaluate_every=every, checkpoint_every=every
        )
        self.watch = Stopwatch(clock)
        self.spent: dict[str, float] = {}
        self.disk = 0.0
        self.last_call: tuple[Any, ...] = ()
        self.steps = 0.0

    def run(self) -> dict[str, Any]:
        from scout_rl.bench.run import train as training

        self._watch_everything(training)

        def closed(progress: Any) -> None:
            if progress.window == WARM:
                self.disk = 0.0
                self.watch.reset()
            elif progress.window == WARM + self.windows:
                self.watch.turn()
                self.spent = dict(self.watch.spent)

        with tempfile.TemporaryDirectory() as folder:
            training.train(
                self.config, Path(folder) / "run", watch=closed, say=lambda text: None, until=WARM + self.windows
            )
            metrics = (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()
        counts = [json.loads(row)["environment_steps"] for row in metrics]
        self.steps = (counts[-1] - counts[WARM - 1]) / self.windows
        return self._table()

    def _watch_everything(self, training: Any) -> None:
        from scout_rl.bench.run import window
        from scout_rl.bench.run.opened import OpenRun

        watch, make_parts, collect = self.watch, training.make_parts, window.collect
        for name in ("assign", "starts", "close", "record_time", "record_evaluation"):
            watch.watch(OpenRun, name, RECORDS)
        watch.watch(OpenRun, "save", CHECKPOINT)
        window.collect = lambda simulator, act, *rest: watch.timed(FAMILY, collect)(
            simulator, watch.timed(ACT, act), *rest
        )
        self._watch_physics()
        fsync = os.fsync

        def timed_fsync(file: Any) -> None:
            begin = time.perf_counter()
            fsync(file)
            self.disk += time.perf_counter() - begin

        os.fsync = timed_fsync

        def watched_parts(*args: Any) -> Any:
            parts = make_parts(*args)

            def play(*call: Any) -> Any:
                self.last_call = call if self.config.make_learner().plays == "steps" else ()
                return parts.play(*call)

            return parts._replace(play=watch.timed(UPDATE, play), evaluate=watch.timed(EVALUATION, parts.evaluate))

        training.make_parts = watched_parts

    def _watch_physics(self) -> None:
        if self.setting.family == "minigrid":
            return
        import mujoco

        metaworld, pointmaze = (
            importlib.import_module(f"scout_rl.bench.families.{name}.simulator") for name in ("metaworld", "pointmaze")
        )
        for owner in (mujoco, metaworld, pointmaze):
            self.watch.watch(owner, "mj_step", PHYSICS)
        for owner, name in ((mujoco, "mj_jacSite"), (metaworld, "mj_forward"), (pointmaze, "mj_forward")):
            self.watch.watch(owner, name, FORWARD)
        for owner in (metaworld, pointmaze):  # their substeps that use what mj_forward computed
            for name in ("mj_kinematics", "mj_makeConstraint", "mj_projectConstraint", "mj_forwardSkip", "mj_Euler"):
                if hasattr(owner, name):
                    self.watch.watch(owner, name, PHYSICS)

    def _table(self) -> dict[str, Any]:
        spent, calls = defaultdict(float, self.spent), self.watch.calls
        seconds = {part: spent[part] / self.windows for part in IN_WINDOW}
        for part in (EVALUATED, EVALUATION):
            seconds[part] = spent[part] / max(1, calls[EVALUATION]) / self.setting.evaluate_every
        seconds[CHECKPOINT] = spent[CHECKPOINT] / max(1, calls[CHECKPOINT]) / type(self.config).checkpoint_every
        learner = self.config.make_learner()
        speed = matrix_speed(self.clock)
        if learner.plays == "goals":
            operations = learner.updates * gradient_step_operations(self.setting, self.config)
            floors = {PHYSICS: seconds[PHYSICS], UPDATE: operations / speed, EVALUATED: seconds[EVALUATED]}
        else:
            alone = self._alone(learner)
            operations = self.steps * network_operations(learner) * (1 + 3 * learner.epochs)
            seconds = {"rollouts alone": alone[0], "update alone": alone[1], "one call": seconds[UPDATE]} | {
                part: value for part, value in seconds.items() if value and part != UPDATE
            }
            floors = {"one call": operations / speed}
        counted = {part: value for part, value in seconds.items() if not part.endswith("alone")}
        return {
            "seconds": {part: round(value, 5) for part, value in seconds.items()},
            "floors": {part: round(value, 5) for part, value in floors.items()},
            "window": round(sum(counted.values()), 4),
            "floor": round(sum(floors.values()), 4),
            "environment_steps": round(self.steps),
            "operations": operations,
            "matrix_gflops": round(speed / 1e9, 1),
            "disk_per_checkpoint": round(self.disk / max(1, calls[CHECKPOINT]), 4),
        }

    def _alone(self, learner: Any) -> tuple[float, float]:
        """The rollouts and the update of the last window, each compiled and timed alone."""
        import jax

        from scout_rl.bench.families import family
        from scout_rl.bench.rollouts.device import rollout

        state, starts, _, key = self.last_call
        home = family(self.setting.family)
        simulator, starts = home.simulator(self.setting), home.batch_simulator(self.setting).reset_to(starts)
        act = functools.partial(learner.act, learner.policy(state))
        play = jax.jit(lambda starts: rollout(simulator, act, starts, key))
        learn = jax.jit(lambda state, episodes: learner.update(state, episodes, key))
        episodes = play(starts)
        return best(lambda: play(starts), self.clock), best(lambda: learn(state, episodes), self.clock)


def best(call: Callable[[], Any], clock: Callable[[], float], times: int = 5) -> float:
    """The least seconds of a compiled call."""
    import jax

    jax.block_until_ready(call())
    taken = []
    for _ in range(times):
        begin = clock()
        jax.block_until_ready(call())
        taken.append(clock() - begin)
    return min(taken)


def matrix_speed(clock: Callable[[], float], size: int = 256, n: int = 256) -> float:
    """Operations per second of float32 products of size x size matrices, as many as a window's update has."""
    import jax
    import jax.numpy as jnp

    a = jnp.eye(size) + 0.01
    chain = jax.jit(lambda a: jax.lax.fori_loop(0, n, lambda _, b: a @ b, a))
    return 2.0 * size**3 * n / best(lambda: chain(a), clock)


def gradient_step_operations(setting: Any, config: Any) -> float:
    """XLA's count of one gradient step."""
    import jax

    from scout_rl.bench.families import load_bank
    from scout_rl.bench.learners import replay
    from scout_rl.bench.run.parts import make_parts

    learner = config.make_learner()
    state = jax.eval_shape(make_parts(config, setting, load_bank(setting)).init, jax.random.key(0))

    def step(learned: Any, ring: Any, key: Any) -> Any:
        return learner.gradient_step(learned, replay.sample(ring, key, learner.batch, learner.her), key)

    return operations_of(step, state.learned, state.replay, jax.eval_shape(lambda: jax.random.key(0)))


def network_operations(learner: Any, rows: int = 1024) -> float:
    """Of one row through PPO's network."""
    import jax
    import jax.numpy as jnp

    state = jax.eval_shape(learner.init, jax.random.key(0))
    view = jax.ShapeDtypeStruct((rows, 7, 7, 3), jnp.uint8)
    return operations_of(lambda network, view: network(view), learner.policy(state), view) / rows


def operations_of(function: Callable[..., Any], *shapes: Any) -> float:
    import jax

    count = jax.jit(function).lower(*shapes).cost_analysis()
    return float((count[0] if isinstance(count, list) else count)["flops"])


def worker(subject: str, windows: int, clock: str) -> None:
    from scout_rl.bench.run.threads import lease_cores

    leases = lease_cores(1)
    import jax

    from scout_rl.files.cache import use_compilation_cache

    use_compilation_cache()
    if clock == "auto":
        clock = "cpu" if jax.default_backend() == "cpu" else "wall"
    result = Profile(subject, windows, time.process_time if clock == "cpu" else time.perf_counter).run()
    print(json.dumps({**result, "clock": clock, "device": jax.devices()[0].device_kind}))
    del leases


def show(subject: str, result: dict[str, Any]) -> None:
    floors = result["floors"]
    print(f"\n{subject}, seconds a window ({result['clock']} clock, {result['device']})")
    for part, value in result["seconds"].items():
        print(f"  {part:24}{value:10.4f}" + (f"   floor {floors[part]:8.4f}" if part in floors else ""))
    above = result["window"] / result["floor"]
    print(f"  {'window':24}{result['window']:10.4f}   floor {result['floor']:8.4f}   {above:.2f} times", flush=True)


def main() -> None:
    from scout_rl.bench.run.threads import environment

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", nargs="*", default=list(SUBJECTS), help="SETTING:PRESET")
    parser.add_argument("--windows", type=int, default=20, help="measured, after three others")
    parser.add_argument("--clock", choices=("auto", "cpu", "wall"), default="auto")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args.subjects[0], args.windows, args.clock)
    results = {}
    for subject in args.subjects:
        command = [sys.executable, "-m", "benchmarks.window_profile", subject, "--worker"]
        command += ["--windows", str(args.windows), "--clock", args.clock]
        done = subprocess.run(command, env=environment(1), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{subject}: {done.stderr}")
        results[subject] = json.loads(done.stdout.splitlines()[-1])
        show(subject, results[subject])
    print(json.dumps(results))


if __name__ == "__main__":
    main()
