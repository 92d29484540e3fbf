"""From one successful trajectory per context to training: record, make a ladder, validate, draw, train.

    MUJOCO_GL=osmesa python examples/trajectory_ladder.py          # or egl; without offscreen GL the rungs are sketched
    python examples/trajectory_ladder.py --timesteps 3000          # about the shortest run in which frontiers move

The task is Meta-World's drawer-open with a sparse reward; the package has no code for it. A context is a place of the
drawer. Meta-World's scripted policy opens the drawer once per context. Needs `pip install metaworld`.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import gymnasium as gym
import metaworld  # noqa: F401  (registers its environments)
import numpy as np
import torch
from metaworld.policies import ENV_POLICY_MAP
from stable_baselines3 import SAC

from scout_rl import Curriculum, rules
from scout_rl.curriculum.picture import picture
from scout_rl.integrations.sb3 import CurriculumCallback, with_curriculum
from scout_rl.ladders.ladder import Ladder
from scout_rl.ladders.picture import draw_rungs
from scout_rl.ladders.recorder import Recorder
from scout_rl.ladders.validate import validate

TASK, CONTEXTS, HORIZON = "drawer-open-v3", 3, 100


class Sparse(gym.Wrapper):
    """Reward is success - 1 instead of the task's shaped reward."""

    def step(self, action):
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, info["success"] - 1.0, terminated, truncated, info


def make(**kwargs):
    # Meta-World takes its seed here and ignores that of reset(). Seed 4 draws drawers on the right, in the middle, left
    kwargs = {"seed": 4, "terminate_on_success": True, "max_episode_steps": HORIZON} | kwargs
    return Sparse(gym.make("Meta-World/MT1", env_name=TASK, disable_env_checker=True, **kwargs))


def record():
    """Return one successful trajectory per context; every reset draws another place of the drawer."""
    policy, env = ENV_POLICY_MAP[TASK](), Recorder(make(), only_successes=True)
    while len(env.trajectories) < CONTEXTS:
        observation, _ = env.reset()
        done = False
        while not done:
            action = np.clip(policy.get_action(observation), -1, 1).astype(np.float32)
            observation, _, terminated, truncated, _ = env.step(action)
            done = terminated or truncated
    return env.trajectories


def train(ladder: Ladder, timesteps: int, log_dir: str | Path | None = None, seed: int = 0):
    """Return the model and the curriculum."""
    # Few contexts and small windows, so that a short run shows moves; the rule's constants are the published ones.
    curriculum = Curriculum(rules.Scout(), ladder.n_contexts, ladder.n_levels, window=8, seed=seed, log_dir=log_dir)
    env = with_curriculum([make] * 4, curriculum, ladder, success="success")
    model = SAC(
        "MlpPolicy",
        env,
        learning_starts=500,
        learning_rate=1e-3,
        batch_size=128,
        gamma=0.97,
        tau=0.01,
        ent_coef="auto_0.1",
        gradient_steps=4,  # one per environment step
        policy_kwargs={"net_arch": [64, 64]},
        seed=seed,
        device="cpu",
    )
    model.learn(timesteps, callback=CurriculumCallback())
    return model, curriculum


def run(timesteps: int, out: Path):
    """From nothing to a moving frontier; pictures, the ladder and the records are written to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    trajectories = record()
    print("steps to success:", [len(trajectory) for trajectory in trajectories])
    ladder = Ladder.from_trajectories(trajectories)  # five levels at 0, .25, .5, .75, .9 of the time
    ladder.save(out / "ladder.npz")
    report = validate(ladder, make)
    print(report)
    camera = {"render_mode": "rgb_array", "camera_name": "topview", "width": 240, "height": 240}
    draw_rungs(ladder, make(**camera), out / "rungs.png")

    model, curriculum = train(ladder, timesteps, out / "log")
    print(f"frontier: {[ladder.n_levels - 1] * CONTEXTS} before, {curriculum.frontier.tolist()} after")
    for event in curriculum.events:
        print(f"  window {event.window}: context {event.context}, {event.kind} {event.from_level} -> {event.to_level}")
    picture(out / "log", out / "frontier.png")
    return trajectories, ladder, report, model, curriculum


if __name__ == "__main__":
    warnings.filterwarnings("ignore", module="metaworld")
    torch.set_num_threads(1)  # networks this small are slower on more threads
    parser = argparse.ArgumentParser()
    parser.add_argument("--timesteps", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("runs/trajectory_ladder"))
    args = parser.parse_args()
    run(args.timesteps, args.out)
