"""mjlab's cart-pole with a sparse reward: one curriculum term, one reset event. `make mjlab` installs what it needs.

    .venv-mjlab/bin/python examples/mjlab_cartpole.py            # with SCOUT
    .venv-mjlab/bin/python examples/mjlab_cartpole.py --plain    # the same PPO from the target start

The pole hangs, and the cart is too weak to lift it at once. The reward comes where it stands, and ends the episode. A
context is where the cart starts, a level is how far up the pole is released.
"""

from __future__ import annotations

import argparse
import functools
import os
from dataclasses import asdict

import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.managers.curriculum_manager import CurriculumTermCfg
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.reward_manager import RewardTermCfg
from mjlab.managers.termination_manager import TerminationTermCfg
from mjlab.rl import MjlabOnPolicyRunner, RslRlVecEnvWrapper
from mjlab.tasks.cartpole.cartpole_env_cfg import cartpole_ppo_runner_cfg, cartpole_swingup_env_cfg

from scout_rl import rules
from scout_rl.integrations.isaac import IsaacCurriculum, of, scout_curriculum, scout_reset, target_reset

CARTS = torch.linspace(-0.6, 0.6, 4)  # metres, by context
POLES = torch.tensor([3.14, 2.2, 1.6, 1.0, 0.5])  # radians from standing, by level; level 0 hangs


def standing(env):
    return torch.cos(env.scene["cartpole"].data.joint_pos[:, 1]) > 0.95


def sparse(env):
    return env.termination_manager.get_term("success").float()


def make(env, rule=None, seed=0, log_dir=None):
    """The curriculum of these environments, and its ladder."""
    position = torch.stack(torch.meshgrid(CARTS, POLES, indexing="ij"), -1)  # [contexts, levels, joints]
    ladder = {"articulation": {"cartpole": {"joint_position": position, "joint_velocity": 0 * position}}}
    return IsaacCurriculum(env, rule or rules.Ability(), ladder, "success", seed=seed, log_dir=log_dir, close_every=2)


def make_env(envs, maker=make, target=False):
    cfg = cartpole_swingup_env_cfg()
    cfg.scene.num_envs, cfg.episode_length_s, cfg.scale_rewards_by_dt = envs, 5.0, False
    cfg.actions["effort"].scale = 0.3
    cfg.terminations["success"] = TerminationTermCfg(func=standing)
    cfg.rewards = {"sparse": RewardTermCfg(func=sparse, weight=1.0)}
    params = {"make": maker}
    cfg.events = {"scout": EventTermCfg(func=target_reset if target else scout_reset, mode="reset", params=params)}
    if not target:
        cfg.curriculum = {"scout": CurriculumTermCfg(func=scout_curriculum, params=params)}
    return ManagerBasedRlEnv(cfg, device=os.environ.get("DEVICE", "cpu"))


@torch.no_grad()
def evaluate(policy, env):
    """The share of first episodes from the target start that succeed."""
    observation, _ = env.reset()
    running, success = torch.ones(env.num_envs, dtype=bool), torch.zeros(env.num_envs, dtype=bool)
    for _ in range(env.unwrapped.max_episode_length):
        observation, _, done, _ = env.step(policy(observation))
        success |= running & env.unwrapped.termination_manager.get_term("success").cpu()
        running &= done.cpu() == 0
    return success.float().mean().item()


def train(iterations, rule, seed=0, envs=256, every=10, log_dir=None, progress=lambda iteration, success: None):
    """Return the curriculum and its success from the target start, every so many iterations."""
    torch.manual_seed(seed)
    env = RslRlVecEnvWrapper(make_env(envs, functools.partial(make, rule=rule, seed=seed, log_dir=log_dir)))
    target = RslRlVecEnvWrapper(make_env(64, target=True))
    runner = MjlabOnPolicyRunner(env, asdict(cartpole_ppo_runner_cfg()), log_dir=None, device=str(env.device))
    curve = []
    for iteration in range(0, iterations, every):
        runner.learn(every, init_at_random_ep_len=False)
        curve.append((iteration + every, evaluate(runner.get_inference_policy(), target)))
        progress(*curve[-1])
    return of(env), curve


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--envs", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="train from the target start alone")
    parser.add_argument("--log-dir")
    args = parser.parse_args()
    curriculum, _ = train(
        args.iterations,
        rules.Target() if args.plain else rules.Ability(),
        args.seed,
        args.envs,
        log_dir=args.log_dir,
        progress=lambda iteration, success: print(f"after {iteration}: success from the target start {success:.2f}"),
    )
    if args.log_dir:
        curriculum.drain()
    print(f"frontier: {None if curriculum.frontier is None else curriculum.frontier.tolist()}")
