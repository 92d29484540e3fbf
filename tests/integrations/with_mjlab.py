"""The terms with mjlab itself: `make mjlab`, and `test_isaac.py::test_mjlab_itself` runs this."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from scout_rl import rules
from scout_rl.integrations.device import TorchCurriculum
from scout_rl.integrations.isaac import of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cartpole():
    spec = importlib.util.spec_from_file_location("mjlab_cartpole", ROOT / "examples/mjlab_cartpole.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_states_are_restored_success_is_read_and_cells_are_those_of_the_device_class(cartpole):
    env = cartpole.make_env(16, lambda env: cartpole.make(env, seed=5))
    env.reset()
    expected = TorchCurriculum(
        rules.Ability(), 4, 5, environments=16, longest=env.max_episode_length, device="cpu", seed=5, close_every=2
    )
    nobody = torch.zeros(16, dtype=bool)
    expected.step(nobody, nobody, steps=0)
    generator, joints, ended, successes = torch.Generator().manual_seed(0), env.scene["cartpole"].data, 0, 0
    since = 0
    for _ in range(120):
        env.step(3 * torch.randn(16, 1, generator=generator))
        done, success = env.termination_manager.dones.clone(), env.termination_manager.get_term("success").clone()
        since += 1
        if done.any():
            expected.step(done, success, steps=since)
            since = 0
        cells = of(env).device.cells
        assert torch.equal(cells.context, expected.cells.context)
        assert torch.equal(cells.level, expected.cells.level)
        start = torch.stack([cartpole.CARTS[cells.context.long()], cartpole.POLES[cells.level.long()]], -1)
        assert torch.equal(joints.joint_pos[done], start[done])
        assert not joints.joint_vel[done].any()
        ended, successes = ended + int(done.sum()), successes + int(success.sum())
    assert ended >= 16
    assert successes > 0
    target = cartpole.make_env(8, target=True)
    target.reset()
    position = target.scene["cartpole"].data.joint_pos
    assert torch.equal(position[:, 1], cartpole.POLES[:1].repeat(8))
    assert torch.equal(position[:, 0], cartpole.CARTS.repeat(2))


def test_ppo_learns_with_ability_what_it_cannot_learn_from_the_target_start(cartpole, tmp_path):
    curriculum, curve = cartpole.train(30, rules.Ability(), seed=40, log_dir=tmp_path)
    assert curve[-1][1] > 0.9
    records = curriculum.drain()
    assert len((tmp_path / "windows.jsonl").read_text().splitlines()) == records.windows > 5
    _, curve = cartpole.train(30, rules.Target(), seed=40)
    assert max(success for _, success in curve) < 0.05
