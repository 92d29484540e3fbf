"""A whole training window on Fetch here, beside SB3's and SBX's SAC+HER and beside the floor; and what a run costs.

    make peers && .venv-peers/bin/python -m benchmarks.training [--rounds 15] [--updates 16]
    python -m benchmarks.training --cost [--windows 200]     checkpoint share, disk and memory of three settings
    python -m benchmarks.training --memory [--windows 10000] resident set over many windows of a tiny simulator

A window is 16 rollouts of 50 steps and 16 gradient steps (batch 256, MLP 256x256, HER with k=4). The peers step 16
FetchPickAndPlace-v4 in processes of their own, as is usual with them. The floor is bare physics (``mj_step`` alone
under the controls of our own run, in threads) plus the compiled update alone. Candidates have a process each and are
measured in turn; a ratio is the median over the rounds. Peers that are not installed are left out. The last line is one
JSON object: ``window_vs_sb3`` and ``window_vs_sbx`` say how many times as fast ours is, ``window_vs_floor`` how many
times as long as the floor, ``minutes_2400_windows`` includes the evaluations.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks import rounds, sac_peers, training_cost
from benchmarks.sac_peers import HORIZON, N_ENVS

from scout_rl.bench.families import family, load_bank
from scout_rl.bench.hardware import n_usable_cores
from scout_rl.bench.settings.settings import setting as find_setting

SETTING = "fetch-air"
"""Target starts of its contexts are stock resets."""
WARM = 3
"""Windows before the clock starts: afterwards all is compiled, and every window takes gradient steps."""


class Scout:
    """Our windows, as in a training run."""

    def __init__(self, updates: int) -> None:
        import jax

        from scout_rl.bench.run.config import RunConfig
        from scout_rl.bench.run.parts import make_parts

        setting = find_setting(SETTING)
        bank = load_bank(setting)
        config = RunConfig(setting=SETTING, rule="target", preset="paper", learner={"updates": updates})
        self.parts = make_parts(config, setting, bank)
        self.keys = iter(jax.random.split(jax.random.key(0), 10_000))
        self.state = self.parts.init(next(self.keys))
        self.starts = family(setting.family).target_starts(
            {name: array[:N_ENVS] for name, array in bank.train.contexts.items()}
        )
        self.group = bank.train.oracle_group[:N_ENVS]
        for _ in range(WARM):
            self.window()

    def window(self) -> None:
        self.state = self.parts.play(self.state, self.starts, self.group, next(self.keys)).state

    def evaluation(self) -> None:
        self.parts.evaluate(self.state)


def scout(updates: int) -> Callable[[], None]:
    return Scout(updates).window


def evaluation(updates: int) -> Callable[[], None]:
    return Scout(updates).evaluation


def peer(library: str, updates: int) -> Callable[[], None]:
    model = sac_peers.peer(library, sac_peers.fetch, subprocesses=True, updates=updates)
    sac_peers.play(model, WARM)
    if library == "sb3":
        sac_peers.choose_threads(lambda: model.train(gradient_steps=4, batch_size=sac_peers.BATCH))
    return lambda: sac_peers.play(model, 1)


def floor(updates: int) -> Callable[[], float]:
    """Makes a candidate that returns the seconds of a window's bare physics plus the update."""
    from benchmarks import learners
    from benchmarks.environments import SUBJECTS, Ours, Physics

    subject = SUBJECTS["fetch"]
    assert subject.n_steps == HORIZON
    ours = Ours(subject)
    physics, update = Physics(subject, ours, ours.simulator.pool.model), learners.scout(updates)

    def once() -> float:
        stepping = N_ENVS * HORIZON / physics.run()
        begin = time.perf_counter()
        update()
        return stepping + time.perf_counter() - begin

    return once


CANDIDATES: dict[str, Callable[[int], Callable[[], Any]]] = {
    "scout_rl": scout,
    "sb3": lambda updates: peer("sb3", updates),
    "sbx": lambda updates: peer("sbx", updates),
    "floor": floor,
    "evaluation": evaluation,
}


def compare(updates: int, n_rounds: int) -> dict[str, Any]:
    print(f"{n_usable_cores()} cores, load {os.getloadavg()[0]:.1f}; {updates} gradient steps a window", flush=True)
    command = ["benchmarks.training", "--updates", str(updates), "--worker"]
    seconds = rounds.measure({name: [*command, name] for name in CANDIDATES}, n_rounds)
    middle = {name: statistics.median(taken) for name, taken in seconds.items()}
    for name, taken in middle.items():
        print(f"{name:12}{taken:9.3f} s")
    setting = find_setting(SETTING)
    whole = setting.windows * (middle["scout_rl"] + middle["evaluation"] / setting.evaluate_every)
    return {
        "window_vs_sb3": rounds.ratio(seconds, "sb3", "scout_rl"),
        "window_vs_sbx": rounds.ratio(seconds, "sbx", "scout_rl"),
        "window_vs_floor": rounds.ratio(seconds, "scout_rl", "floor"),
        "minutes_2400_windows": round(whole / 60, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--updates", type=int, default=16, help="gradient steps per window")
    parser.add_argument("--windows", type=int, default=0, help="of --cost (200) and --memory (10,000)")
    parser.add_argument("--cost", action="store_true", help="checkpoints and memory of short runs and of full replays")
    parser.add_argument("--memory", action="store_true", help="resident set over many windows")
    parser.add_argument("--worker", choices=list(CANDIDATES), help=argparse.SUPPRESS)
    parser.add_argument("--settings", nargs="*", default=list(training_cost.SETTINGS), help="of --cost")
    args = parser.parse_args()
    if args.worker:
        rounds.serve(lambda: CANDIDATES[args.worker](args.updates))
    elif args.cost:
        print(json.dumps(training_cost.cost(args.settings, args.windows or 200)))
    elif args.memory:
        print(json.dumps(training_cost.memory(args.windows or 10_000)))
    else:
        print(json.dumps(compare(args.updates, args.rounds)))


if __name__ == "__main__":
    main()
