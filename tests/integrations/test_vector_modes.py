"""Autoreset modes x sync/async x plain/goal: what is reported is what happened, told by the environment's own state."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from scout_rl.integrations.gymnasium import CONTEXT, LEVEL, SUCCESS, Assignments
from scout_rl.integrations.vector import CurriculumVectorEnv
from tests.integrations.probes import GoalProbe, MakeProbe, Probe, Spy, truth

N = 3
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


def vector(asynchronous: bool, env_fns, mode: AutoresetMode):
    return (AsyncVectorEnv if asynchronous else SyncVectorEnv)(env_fns, autoreset_mode=mode)


def run(envs, mode: AutoresetMode, steps: int, seed: int | None = 0) -> list[tuple[int, int, bool]]:
    """Step with no knowledge of the curriculum; return the episodes that ended, read from observations."""
    ended = []
    envs.reset(seed=seed)
    for _ in range(steps):
        observations, _, terminated, truncated, infos = envs.step(np.zeros(envs.num_envs, int))
        done = terminated | truncated
        tags = infos.get("final_info", infos)
        for i in np.flatnonzero(done):
            episode = truth(infos["final_obs"][i]) if mode is AutoresetMode.SAME_STEP else truth(observations, i)
            assert (tags[CONTEXT][i], tags[LEVEL][i], tags[SUCCESS][i]) == episode
            ended.append(episode)
        if mode is AutoresetMode.DISABLED and done.any():
            envs.reset(options={"reset_mask": done})
    return ended


@pytest.mark.parametrize("kind", [Probe, GoalProbe])
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_every_episode_is_reported_once_with_the_cell_it_started_from(mode, asynchronous, kind):
    curriculum = Spy()
    assignments = Assignments(curriculum)
    envs = CurriculumVectorEnv(vector(asynchronous, [MakeProbe(assignments, kind)] * N, mode), assignments)
    ended = run(envs, mode, steps=120)

    assert len(ended) > 60
    assert curriculum.recorded == ended
    assert assignments.finished == len(ended)
    assert curriculum.windows == len(ended) // curriculum.window
    assert len({(x, level) for x, level, _ in ended}) > 6, "the frontier moved, so several cells were visited"
    # nothing was drawn that is not finished or held: one running an environment, and one prefetched at most
    assert len(curriculum.assigned) == len(ended) + len(assignments.in_flight)
    assert len(assignments.in_flight) <= (2 * N if asynchronous and mode is AutoresetMode.SAME_STEP else N)
    assert assignments.dropped == 0
    envs.close()
    assert assignments.in_flight == []
    assert assignments.finished == len(ended), "closing counts nothing"


def test_only_prefetched_cells_are_stale_and_it_is_reported():
    for mode in MODES:
        assignments = Assignments(Spy(window=2))
        envs = CurriculumVectorEnv(vector(True, [MakeProbe(assignments)] * N, mode), assignments)
        ended = run(envs, mode, steps=60)
        envs.close()
        staleness = assignments.staleness
        assert staleness.starts >= len(ended)
        if mode is AutoresetMode.SAME_STEP:
            assert staleness.mean > 0
            assert staleness.largest >= 1
        else:
            assert staleness.mean == staleness.largest == 0


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_resets_in_the_middle_drop_partial_episodes(mode, asynchronous):
    """The peers' trap of partial first episodes: they are neither counted nor leaked."""
    curriculum = Spy()
    assignments = Assignments(curriculum)
    envs = CurriculumVectorEnv(vector(asynchronous, [MakeProbe(assignments)] * N, mode), assignments)
    envs.reset()
    ended = []
    for _ in range(5):
        ended += run(envs, mode, steps=7, seed=None)
    assert curriculum.recorded == ended
    assert assignments.dropped > 0
    assert assignments.issued == assignments.finished + assignments.dropped + len(assignments.in_flight)
    envs.close()
    assert assignments.in_flight == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_crashed_environment_counts_and_leaks_nothing(asynchronous):
    curriculum = Spy()
    assignments = Assignments(curriculum)
    mode = AutoresetMode.SAME_STEP
    env_fns = [MakeProbe(assignments), MakeProbe(assignments, crash_at=20), MakeProbe(assignments)]
    envs = CurriculumVectorEnv(vector(asynchronous, env_fns, mode), assignments)
    with pytest.raises(ArithmeticError, match="diverged"):
        run(envs, mode, steps=50)
    before = list(curriculum.recorded)
    envs.close()
    assert assignments.in_flight == []

    envs = CurriculumVectorEnv(vector(asynchronous, [MakeProbe(assignments)] * N, mode), assignments)
    ended = run(envs, mode, steps=50)
    assert curriculum.recorded == before + ended
    envs.close()


def test_a_killed_worker_counts_and_leaks_nothing():
    curriculum = Spy()
    assignments = Assignments(curriculum)
    mode = AutoresetMode.NEXT_STEP
    env_fns = [MakeProbe(assignments), MakeProbe(assignments, crash_at=20, die=True)]
    envs = CurriculumVectorEnv(vector(True, env_fns, mode), assignments)
    with pytest.raises((EOFError, ConnectionError)):
        run(envs, mode, steps=50)
    before = list(curriculum.recorded)
    envs.close(terminate=True)
    assert assignments.in_flight == []

    envs = CurriculumVectorEnv(vector(True, [MakeProbe(assignments)] * N, mode), assignments)
    assert curriculum.recorded == before + run(envs, mode, steps=50)
    envs.close()


def test_environments_that_were_forgotten_hold_nothing():
    assignments = Assignments(Spy())
    envs = SyncVectorEnv([MakeProbe(assignments)] * N)
    envs.reset()
    assert len(assignments.in_flight) == N
    del envs
    assert assignments.in_flight == []


@pytest.mark.parametrize("mode", MODES)
def test_async_without_shared_memory_may_reset_twice(mode):
    """AsyncVectorEnv(shared_memory=False) resets a finished environment again after reset(): the same start again."""
    curriculum = Spy()
    assignments = Assignments(curriculum)
    inner = AsyncVectorEnv([MakeProbe(assignments, end=0.9)] * N, shared_memory=False, autoreset_mode=mode)
    envs = CurriculumVectorEnv(inner, assignments)
    ended = []
    for _ in range(5):
        ended += run(envs, mode, steps=1)
    assert curriculum.recorded == ended
    envs.close()


def test_spawned_workers_get_no_copy_of_the_curriculum():
    curriculum = Spy()
    assignments = Assignments(curriculum)
    inner = AsyncVectorEnv([MakeProbe(assignments)] * 2, context="spawn", autoreset_mode=AutoresetMode.SAME_STEP)
    envs = CurriculumVectorEnv(inner, assignments)
    ended = run(envs, AutoresetMode.SAME_STEP, steps=15)
    assert len(ended) > 3
    assert curriculum.recorded == ended
    envs.close()


def test_async_without_the_vector_wrapper_is_an_error_that_says_what_to_do():
    assignments = Assignments(Spy())
    envs = AsyncVectorEnv([MakeProbe(assignments)] * 2)
    with pytest.raises(RuntimeError, match="CurriculumVectorEnv"):
        envs.reset()
    envs.close()


class MakeWithItsOwnAssignments(MakeProbe):
    """The mistake: every worker makes its own Assignments, around its copy of the curriculum or around a new one."""

    def __init__(self, curriculum: Spy | None) -> None:
        self.curriculum = curriculum

    def __call__(self):
        return MakeProbe(Assignments(self.curriculum or Spy()))()


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_assignments_made_in_a_worker_around_a_copied_curriculum_are_refused(context):
    envs = AsyncVectorEnv([MakeWithItsOwnAssignments(Spy())] * 2, context=context)
    with pytest.raises(RuntimeError, match="a copy of the curriculum in a worker process: make Assignments once"):
        envs.reset()
    envs.close()


def test_a_worker_with_a_curriculum_of_its_own_is_refused():
    envs = AsyncVectorEnv([MakeWithItsOwnAssignments(None)] * 2)
    with pytest.raises(ValueError, match="environment 0 has a curriculum of its own"):
        CurriculumVectorEnv(envs, Assignments(Spy()))
    envs.close()


def test_plain_environments_are_refused():
    with pytest.raises(ValueError, match="CurriculumEnv"):
        CurriculumVectorEnv(SyncVectorEnv([Probe]), Assignments(Spy()))


def test_one_stream_in_one_process_and_across_processes():
    """In NEXT_STEP mode cells are drawn after the outcome in both, so with one environment the streams agree."""
    streams = []
    for asynchronous in (False, True):
        curriculum = Spy(window=3)
        assignments = Assignments(curriculum)
        inner = vector(asynchronous, [MakeProbe(assignments)], AutoresetMode.NEXT_STEP)
        envs = CurriculumVectorEnv(inner, assignments)
        run(envs, AutoresetMode.NEXT_STEP, steps=100)
        streams.append(curriculum.assigned[: len(curriculum.recorded)])
        envs.close()
    assert streams[0] == streams[1]


def test_a_wrapper_around_environments_of_this_process_steps_them_and_nothing_else():
    """Also where a subclass steps in its own way."""

    class Counting(CurriculumVectorEnv):
        steps = 0

        def step(self, actions):
            self.steps += 1
            return super().step(actions)

    for cls in (CurriculumVectorEnv, Counting):
        assignments = Assignments(Spy())
        envs = cls(SyncVectorEnv([MakeProbe(assignments)] * N), assignments)
        ended = run(envs, AutoresetMode.NEXT_STEP, 50)
        assert len(ended) == assignments.finished > 0
        assert envs.steps == 50 if cls is Counting else envs.step == envs.env.step
