"""The terms of Isaac-style managers, on a stand-in with the parts of the interface that both libraries have.

With mjlab itself: `test_mjlab_itself` (slow, in the environment that ``make mjlab`` makes).
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from scout_rl import rules  # noqa: E402
from scout_rl.curriculum import snapshot  # noqa: E402
from scout_rl.files.refusal import Refusal  # noqa: E402
from scout_rl.integrations.device import TorchCurriculum  # noqa: E402
from scout_rl.integrations.isaac import IsaacCurriculum, of, scout_curriculum, scout_reset, target_reset  # noqa: E402

ROOT = Path(__file__).parents[2]
CONTEXTS, LEVELS, ENVS, LIMIT = 3, 4, 6, 5


class Cart:
    is_fixed_base = False

    def __init__(self):
        self.joint, self.root = torch.zeros(ENVS, 2), torch.zeros(ENVS, 13)

    def write_joint_state_to_sim(self, position, velocity, joint_ids=None, env_ids=None):
        self.joint[env_ids] = torch.cat([position, velocity], -1)

    def write_root_state_to_sim(self, root_state, env_ids=None):
        self.root[env_ids] = root_state


class Scene(dict):
    env_origins = 100.0 * torch.arange(3 * ENVS).reshape(ENVS, 3)


class IsaacScene(Scene):
    """Isaac Lab's way to restore; it is given what `get_state` returns."""

    def reset_to(self, state, env_ids, is_relative=False):
        assert is_relative
        parts = state["articulation"]["cart"]
        pose = parts["root_pose"].clone()
        pose[:, :3] += self.env_origins[env_ids]
        self["cart"].root[env_ids] = torch.cat([pose, parts["root_velocity"]], -1)
        self["cart"].joint[env_ids] = torch.cat([parts["joint_position"], parts["joint_velocity"]], -1)


class Terminations:
    def __init__(self):
        self.dones, self.success = torch.zeros(ENVS, dtype=bool), torch.zeros(ENVS, dtype=bool)

    def get_term(self, name):
        return getattr(self, name)


class Env:
    """Walk to 10. `_reset_idx` is what both libraries do, in their order; configurations are copied, as mjlab does."""

    num_envs, device, max_episode_length = ENVS, "cpu", LIMIT

    def __init__(self, make, scene=Scene, target=False):
        self.unwrapped = self
        self.cfg = SimpleNamespace(terminations={"time_out": None, "success": None})
        self.scene = scene(cart=Cart())
        self.termination_manager = Terminations()
        self.episode_length_buf, self.common_step_counter = torch.zeros(ENVS, dtype=torch.long), 0
        term = None if target else (scout_curriculum, {"make": make})
        self.terms = copy.deepcopy((term, (target_reset if target else scout_reset, {"make": make})))
        self.log = None

    def reset(self):
        self._reset_idx(torch.arange(ENVS))

    def step(self, action):
        cart = self.scene["cart"]
        cart.joint[:, 0] += action
        self.episode_length_buf += 1
        self.common_step_counter += 1
        manager = self.termination_manager
        manager.success = cart.joint[:, 0] >= 10
        manager.dones = manager.success | (self.episode_length_buf >= self.max_episode_length)
        ids = manager.dones.nonzero().flatten()
        if len(ids):
            self._reset_idx(ids)

    def _reset_idx(self, ids):
        curriculum, event = self.terms
        if curriculum is not None:
            self.log = curriculum[0](self, ids, **curriculum[1])
        self.scene["cart"].joint[ids] = -1.0
        event[0](self, ids, **event[1])
        self.episode_length_buf[ids] = 0


def ladder():
    position = 2.5 * torch.arange(LEVELS).repeat(CONTEXTS, 1)[..., None]
    pose = torch.zeros(CONTEXTS, LEVELS, 7)
    pose[..., 0] = torch.arange(CONTEXTS)[:, None]
    parts = {
        "joint_position": position,
        "joint_velocity": 0 * position,
        "root_pose": pose,
        "root_velocity": pose[..., :6],
    }
    return {"articulation": {"cart": parts}}


def make(env, success="success", rungs=None, rule=None, **options):
    options = {"window": 4, "close_every": 1, **options}
    return IsaacCurriculum(env, rule or rules.Ability(), rungs or ladder(), success, **options)


@pytest.mark.parametrize("scene", [Scene, IsaacScene])
def test_cells_are_those_of_the_device_class_and_their_states_are_restored(scene, tmp_path):
    env = Env(lambda env: make(env, seed=5, log_dir=tmp_path), scene)
    env.reset()
    expected = TorchCurriculum(
        rules.Ability(),
        CONTEXTS,
        LEVELS,
        environments=ENVS,
        longest=LIMIT,
        device="cpu",
        seed=5,
        window=4,
        close_every=1,
    )
    nobody = torch.zeros(ENVS, dtype=bool)
    expected.step(nobody, nobody, steps=0)  # the first reset ends no episode
    generator, cart, ended, since = torch.Generator().manual_seed(0), env.scene["cart"], 0, 0
    for _ in range(60):
        before = cart.joint[:, 0].clone()
        action = 4 * torch.rand(ENVS, generator=generator)
        env.step(action)
        done, success = env.termination_manager.dones, env.termination_manager.success
        since += 1
        if done.any():
            expected.step(done, success, steps=since)
            since = 0
        cells = of(env).device.cells
        assert torch.equal(cells.context, expected.cells.context)
        assert torch.equal(cells.level, expected.cells.level)
        assert torch.equal(cart.joint[done, 0], 2.5 * cells.level[done])
        assert torch.equal(cart.root[done, 0], cells.context[done] + Scene.env_origins[done, 0])
        assert torch.equal(cart.joint[~done, 0], (before + action)[~done]), "who goes on is left alone"
        ended += int(done.sum())
    records = of(env).drain()
    assert ended // 4 - 3 <= records.windows == int(of(env).device.state.rule.statistics.window) <= ended // 4
    assert len((tmp_path / "windows.jsonl").read_text().splitlines()) == records.windows
    assert set(env.log) == {"level", "frontier"}
    assert torch.equal(of(env).context, cells.context)


def test_resets_by_hand_count_for_nothing():
    env = Env(make)
    for _ in range(3):
        env.reset()
        cells = [part.clone() for part in of(env).device.cells]
        env.step(torch.zeros(ENVS))
    env.reset()
    assert all(torch.equal(a, b) for a, b in zip(cells, of(env).device.cells, strict=True)), "the same cells again"
    assert not of(env).device.state.queue.code.any()


def test_an_episode_that_was_cut_has_its_whole_time_again():
    """Environment 0 is cut after four of its five steps, plays its cell again, and succeeds at the fourth."""
    env = Env(lambda env: make(env, rule=rules.Random(), window=1000))
    others = torch.arange(ENVS) > 0  # they succeed at every step, so the term is called at every step

    def steps(n):
        for _ in range(n):
            env.scene["cart"].joint[:, 0] = torch.where(others, 10.0, -1.0)
            env.step(torch.zeros(ENVS))

    env.reset()
    steps(4)
    env.reset()
    steps(3)
    env.scene["cart"].joint[:, 0] = 10.0
    env.step(torch.zeros(ENVS))
    first = int(of(env).device.state.queue.code[0])
    assert first > 0, "it had the first place"
    assert (first - 1) % 2 == 1, "its success counts"


def test_by_default_windows_keep_up_though_all_environments_end_at_once():
    """As at the beginning of a sparse task, where all of them fail at the time limit: one call per 200 steps."""
    env = Env(lambda env: make(env, rule=rules.Random(), window=2, close_every=0))
    env.max_episode_length = 200
    env.reset()
    for _ in range(20 * 200):
        env.scene["cart"].joint[:, 0] = -1.0
        env.step(torch.zeros(ENVS))
    device = of(env).device
    assert int(device.state.uncounted) == 0
    assert int(device.state.rule.statistics.window) == 20 * ENVS // 2


@pytest.mark.parametrize("length", [200, 25])
def test_by_default_windows_keep_up_though_few_environments_call_the_term_seldom(length):
    """Out of step, one episode or two end in a call; the limit is 200 steps, and an eighth of it is promised."""
    env = Env(lambda env: make(env, rule=rules.Random(), window=0, close_every=0))
    env.max_episode_length, ended, generator = 200, 0, torch.Generator().manual_seed(0)
    env.reset()
    left = torch.randint(1, length, (ENVS,), generator=generator)
    for _ in range(30 * 200):
        left -= 1
        env.scene["cart"].joint[:, 0] = torch.where(left <= 0, 10.0, -1.0)
        env.step(torch.zeros(ENVS))
        done = env.termination_manager.dones
        ended += int(done.sum())
        left[done] = torch.randint(length - length // 4, length + length // 4, (ENVS,), generator=generator)[done]
    device = of(env).device
    assert device.close_every > 8, "no more often than it takes"
    assert int(device.state.uncounted) == 0
    assert ended - 16 * int(device.state.rule.statistics.window) < 40, "no backlog"


def test_a_training_s_function_makes_the_environment_of_evaluation_too(tmp_path):
    """Only a training opens its log_dir."""
    maker = functools.partial(make, log_dir=tmp_path)
    train(Env(maker), 40)
    target = Env(maker, target=True)
    target.reset()
    assert target.scene["cart"].joint[:, 0].tolist() == [0.0] * ENVS
    with pytest.raises(Refusal, match="no records before the training has begun"):
        of(target).drain()
    with pytest.raises(Refusal, match="already holds windows"):
        Env(maker).reset()


def train(env, steps, seed=0):
    """Some steps with random actions; the windows so far."""
    env.reset()
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        env.step(4 * torch.rand(ENVS, generator=generator))
    return of(env).drain().windows


def test_a_saved_training_goes_on_in_another(tmp_path):
    def resumed(env):
        curriculum = make(env, log_dir=tmp_path / "log")
        curriculum.load(tmp_path / "saved")
        return curriculum

    one = Env(lambda env: make(env, log_dir=tmp_path / "log"))
    windows = train(one, 40)
    of(one).save(tmp_path / "saved")
    train(one, 10)  # lost with the process: not in the save
    other = Env(resumed)
    other.reset()
    saved = TorchCurriculum(
        rules.Ability(), CONTEXTS, LEVELS, environments=ENVS, longest=LIMIT, window=4, close_every=1, device="cpu"
    )
    saved.load_state_dict(snapshot.load(tmp_path / "saved"))
    assert torch.equal(of(other).context, saved.cells.context)
    assert torch.equal(other.scene["cart"].joint[:, 0], 2.5 * saved.cells.level)
    assert of(other).drain().windows == windows > 3
    more = train(other, 40, seed=1)
    assert more > windows + 3
    assert len((tmp_path / "log/windows.jsonl").read_text().splitlines()) == more
    with pytest.raises(Refusal, match="load comes before"):
        of(other).load(tmp_path / "saved")


@pytest.mark.parametrize("writes", [0, 1])
def test_a_save_that_is_cut_leaves_one_to_go_on_from(writes, tmp_path, monkeypatch):
    """The process ends while it writes, before or after a first file is in its place."""

    def resumed(env):
        curriculum = make(env, log_dir=tmp_path / "log")
        curriculum.load(tmp_path / "saved")
        return curriculum

    def replace(*paths):
        if len(done) == writes:
            raise KeyboardInterrupt
        done.append(os_replace(*paths))

    one = Env(lambda env: make(env, log_dir=tmp_path / "log"))
    windows = train(one, 40)
    of(one).save(tmp_path / "saved")
    train(one, 40, seed=1)
    done, os_replace = [], os.replace
    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        patched.setattr(os, "replace", replace)
        of(one).save(tmp_path / "saved")
    other = Env(resumed)
    other.reset()
    begun = of(other).drain().windows
    assert begun == int(of(other).state.rule.statistics.window)
    assert begun == windows if not done else begun > windows
    assert train(other, 40, seed=2) > begun + 3


def test_a_save_without_records_is_refused_where_records_are_kept(tmp_path):
    def resumed(env, **options):
        curriculum = make(env, **options)
        curriculum.load(tmp_path / "saved")
        return curriculum

    one = Env(lambda env: make(env, log_dir=tmp_path / "log"))
    train(one, 40)
    of(one).save(tmp_path / "saved")
    two = Env(resumed)
    two.reset()
    of(two).save(tmp_path / "saved")
    with pytest.raises(Refusal, match="saved has no records: that training had no log_dir"):
        Env(functools.partial(resumed, log_dir=tmp_path / "log")).reset()


def test_labels_reach_the_device_and_the_records(tmp_path):
    env = Env(lambda env: make(env, rule=rules.GroupFrontier(), oracle_group=[0, 1, 0], log_dir=tmp_path))
    assert train(env, 40) > 3
    assert of(env).state.rule.group.tolist() == of(env).drain().state.group.tolist() == [0, 1, 0]


def test_evaluation_plays_the_contexts_in_turn_from_the_target_start():
    env = Env(make, target=True)
    env.reset()
    assert env.scene["cart"].joint[:, 0].tolist() == [0.0] * ENVS
    assert (env.scene["cart"].root[:, 0] - Scene.env_origins[:, 0]).tolist() == [0, 1, 2, 0, 1, 2]
    for _ in range(LIMIT):
        env.step(torch.ones(ENVS))
    assert env.scene["cart"].joint[:, 0].tolist() == [0.0] * ENVS
    assert int(of(env).device.state.queue.code.count_nonzero()) == 0


def test_refusals():
    wrong = ladder()
    wrong["articulation"]["cart"]["root_pose"] = torch.zeros(CONTEXTS, 7)
    for options, sentence in (
        ({"success": "sucess"}, r"called 'sucess'; there are \['time_out', 'success'\]"),
        ({"rungs": wrong}, r"all begin with \[contexts, levels\]"),
        (
            {"rungs": {"articulation": {"kart": ladder()["articulation"]["cart"]}}},
            r"'kart', and the scene has \['cart'\]",
        ),
        ({"rungs": {"robots": ladder()["articulation"]}}, "articulation or rigid_object"),
    ):
        with pytest.raises(Refusal, match=sentence):
            Env(lambda env, options=options: make(env, **options)).reset()
    env = Env(make)
    with pytest.raises(Refusal, match="no curriculum yet"):
        of(env)
    env.reset()
    with pytest.raises(Refusal, match="no log_dir"):
        of(env).drain()


@pytest.mark.slow
def test_mjlab_itself():
    """tests/integrations/with_mjlab.py: the states of Warp's simulator, and a training; and the page's blocks."""
    python = ROOT / ".venv-mjlab/bin/python"
    if not python.exists():
        pytest.skip("mjlab has an environment of its own, which is not here: make mjlab")
    command = [python, "-m", "pytest", "-o", "addopts=", "-q"]
    command += ["tests/integrations/with_mjlab.py", "tests/docs/test_other_pages.py::test_isaac"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
