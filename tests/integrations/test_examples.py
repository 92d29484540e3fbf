"""The examples run (in a fast mode), and SAC with HerReplayBuffer solves with SCOUT what it cannot solve without.

The same for PPO is shown by tests/docs/test_start_page.py, on the page that newcomers read first.
"""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from scout_rl import rules  # noqa: E402
from scout_rl.codecs import codec_for  # noqa: E402
from scout_rl.integrations.sb3 import assignments_of  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sb3_ppo_runs(tmp_path):
    model, curriculum, success = example("sb3_ppo").train(2048, rules.Scout(), str(tmp_path))
    assert model._n_updates > 0
    assert curriculum.windows == assignments_of(model.get_env()).finished // 16 > 20
    assert len(success) == 4
    assert (tmp_path / "windows.jsonl").exists()


def test_own_loop_learns(tmp_path):
    curriculum, _ = example("own_loop").train(120, rules.Scout(), str(tmp_path))
    assert curriculum.windows == 120
    assert curriculum.frontier.mean() < 3, "frontiers move towards the target"


def test_a_batch_of_torch_environments_learns(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # all of its episodes count
        records, _ = example("device_torch").train(30, seed=40, log_dir=tmp_path)
    assert records.windows > 10
    assert records.frontier.mean() < 3.5, "frontiers move towards the target"


@pytest.mark.slow
def test_a_batch_of_torch_environments_is_solved_and_from_the_target_start_alone_is_not():
    train = example("device_torch").train
    for seed in (40, 41):
        _, success = train(300, seed=seed)
        assert success.mean() > 0.95
        assert success.min() > 0.6
        _, plain = train(300, plain=True, seed=seed)
        assert plain.mean() < 0.3, "chance finds the end of few ridges"
        assert plain.median() == 0


def success_rate_at_target(model, enough: int) -> float:
    """Share of successes among the training episodes from level 0, of which there must be enough."""
    assignments = assignments_of(model.get_env())
    assert assignments.outcomes[:, 0].sum() >= enough
    return assignments.successes[:, 0].sum() / assignments.outcomes[:, 0].sum()


def test_sb3_sac_her_runs():
    model, curriculum, success = example("sb3_sac_her").train(600, rules.Scout())
    assert model._n_updates > 100
    assert curriculum.windows == assignments_of(model.get_env()).finished // 4 > 2
    assert len(success) == 2


@pytest.mark.slow
def test_sac_with_her_solves_with_scout_what_it_cannot_solve_from_the_target_start():
    carry = example("sb3_sac_her")
    steps = 9_000
    model, _, plain = carry.train(steps, rules.Target())
    assert success_rate_at_target(model, enough=300) < 0.02
    assert not any(plain.values())
    model, curriculum, success = carry.train(steps, rules.Scout())
    assert success_rate_at_target(model, enough=20) > 0.5
    assert all(success.values())
    assert curriculum.frontier.max() <= 1
    assert model._n_updates > 1000


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1_000, 3_500])
def test_one_trajectory_a_context_becomes_a_ladder_that_sb3_trains_from(tmp_path, steps):
    """Meta-World's drawer-open: recorded, validated, restored exactly, and in the longer run frontiers move."""
    pytest.importorskip("metaworld")
    drawer = example("trajectory_ladder")
    trajectories, ladder, report, model, curriculum = drawer.run(steps, tmp_path)
    assert report.n_cells == 15
    assert report.invalid_rate == 0, str(report)

    env = drawer.make()
    env.reset(seed=1)
    codec = codec_for(env)
    for trajectory, levels in zip(trajectories, ladder.cells, strict=True):
        for (state,) in levels:
            assert state in trajectory.states[: trajectory.first_success]
            codec.set_state(env, state)
            assert codec.get_state(env) == state

    assert {path.name for path in tmp_path.iterdir()} == {"ladder.npz", "rungs.png", "frontier.png", "log"}
    assert model._n_updates > steps - 600  # all but what comes before learning starts
    advances = [event for event in curriculum.events if event.kind == "advance"]
    assert all(event.evidence >= 15 and event.success_average >= 0.8 for event in advances), "moved by success"
    if steps == 3_500:
        assert advances
        assert curriculum.frontier.min() < 4


def test_every_example_is_tested():
    """Here, or in the environment of its own that its trainer needs."""
    here = Path(__file__).read_text() + Path(__file__).with_name("test_trl.py").read_text()
    elsewhere = "".join(path.read_text() for path in Path(__file__).parent.glob("with_*.py"))
    for path in EXAMPLES.glob("*.py"):
        assert f'example("{path.stem}")' in here or f'"examples/{path.name}"' in elsewhere, path.name
