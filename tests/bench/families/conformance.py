"""Checks that a family fulfils its contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from scout_rl.bench.families.family import Family, States
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.bench.settings.settings import Setting

TOGETHER = 12
"""Contexts that are played in one batch."""


def check_family(family: Family, setting: Setting, n_contexts: int = 8, seed: int = 0) -> list[str]:
    """What the family breaks of the contract, one sentence each; an empty list when it conforms.

    ``n_contexts`` train contexts are taken, each at every level of both ladders.
    """
    bank = family.sample_bank(setting)
    contexts = {name: array[:n_contexts] for name, array in bank.train.contexts.items()}
    ladders = {
        "hand-built ladder": family.starts(contexts, setting.n_levels),
        "solver ladder": family.solver_ladder(contexts, setting.n_levels),
    }
    faults = _bank_faults(family, setting, bank)
    target = family.target_starts(contexts)
    for name, ladder in ladders.items():
        shape_faults = _ladder_faults(name, ladder, target, setting.n_levels)
        faults += shape_faults
        if not shape_faults:
            faults += [fault for part in _parts(ladder) for fault in _solver_faults(name, family, setting, *part)]
    faults += _start_faults(family, target, setting.n_levels)
    for _, part in _parts(ladders["hand-built ladder"]):
        faults += _simulator_faults(family, setting, part, seed)
    return faults


def _parts(ladder: States) -> Iterator[tuple[int, States]]:
    """A few contexts at a time, after the number of the first: a batch of all cells takes a gigabyte of MuJoCo data."""
    for first in range(0, len(next(iter(ladder.values()))), TOGETHER):
        yield first, {name: array[first : first + TOGETHER] for name, array in ladder.items()}


def _bank_faults(family: Family, setting: Setting, bank: ContextBank) -> list[str]:
    faults = []
    if family.sample_bank(setting).sha256 != bank.sha256:
        faults.append("bank: two samplings differ")
    if (len(bank.train), len(bank.held_out)) != (setting.n_train, setting.n_held_out):
        faults.append(f"bank: {len(bank.train)} train and {len(bank.held_out)} held-out contexts")
    for part in (bank.train, bank.held_out):
        counts = np.bincount(part.evaluation_group, minlength=len(setting.groups))
        if len(counts) != len(setting.groups) or (counts == 0).any():
            faults.append(f"bank: contexts by evaluation group are {counts.tolist()}")
    return faults


def _ladder_faults(name: str, ladder: States, target: States, n_levels: int) -> list[str]:
    faults = []
    if set(ladder) != set(target):
        return [f"{name}: arrays {sorted(ladder)}, but a state has {sorted(target)}"]
    for array_name, array in ladder.items():
        if array.shape[:2] != (len(target[array_name]), n_levels):
            faults.append(f"{name}: {array_name} has shape {array.shape}")
        elif not _same(array[:, 0], target[array_name]):
            faults.append(f"{name}: {array_name} at level 0 is not the target start")
    return faults


def _start_faults(family: Family, target: States, n_levels: int) -> list[str]:
    """Rungs rise from 0 and end before the success; a start is its own start."""
    faults = []
    for n_steps in (1, 2, n_levels, 10 * n_levels):
        rungs = family.rungs(n_steps, n_levels)
        if len(rungs) != n_levels or rungs[0] != 0 or (np.diff(rungs) < 0).any() or rungs[-1] >= n_steps:
            faults.append(f"rungs: those of {n_steps} steps are {list(map(int, rungs))}")
    if not _equal(family.as_starts(target), target):
        faults.append("as_starts: changes a target start")
    return faults


def _solver_faults(name: str, family: Family, setting: Setting, first: int, ladder: States) -> list[str]:
    """Every start is solved in time, and the remaining steps never rise with the level."""
    faults = []
    flat = {key: array.reshape(-1, *array.shape[2:]) for key, array in ladder.items()}
    n_starts, before = len(next(iter(flat.values()))), first * setting.n_levels
    solutions = [family.trajectory({key: array[i] for key, array in flat.items()}).actions for i in range(n_starts)]
    remaining = np.array([len(actions) for actions in solutions])
    simulator = family.batch_simulator(setting)
    if (remaining < 1).any() or (remaining > simulator.max_steps).any():
        faults.append(f"{name}: a start is already a success, or too far for the time limit of {simulator.max_steps}")
    rises = np.diff(remaining.reshape(-1, setting.n_levels), axis=1) > 0
    if rises.any():
        context, level = np.argwhere(rises)[0]
        faults.append(
            f"{name}: context {first + context} has more steps left at level {level + 1} than at level {level}"
        )
    state, success = simulator.reset_to(flat), np.zeros(n_starts, dtype=bool)
    for t in range(int(remaining.max())):
        action = np.stack([actions[min(t, len(actions) - 1)] for actions in solutions])
        state, result = simulator.step(state, action)
        due = remaining == t + 1
        early = np.asarray(result.success) & (remaining > t + 1)
        success |= np.asarray(result.success) & due
        if early.any():
            faults.append(f"{name}: start {before + int(np.argmax(early))} succeeds before its solution ends")
            break
    if not faults and not success.all():
        faults.append(f"{name}: the solution of start {before + int(np.argmin(success))} does not succeed")
    return faults


def _simulator_faults(family: Family, setting: Setting, ladder: States, seed: int) -> list[str]:
    """Restoring is exact, stepping is deterministic, and an episode can be cut and continued anywhere."""
    faults = []
    flat = {key: array.reshape(-1, *array.shape[2:]) for key, array in ladder.items()}
    n_starts = len(next(iter(flat.values())))
    simulator = family.batch_simulator(setting)
    if not _equal(simulator.get_states(simulator.reset_to(flat)), flat):
        faults.append("codec: restoring a state and reading it back changes it")
    pool = family.trajectory({key: array[0] for key, array in flat.items()}).actions
    actions = np.random.default_rng(seed).choice(pool, size=(12, n_starts))
    whole, cut = simulator.reset_to(flat), simulator.reset_to(flat)
    for t, action in enumerate(actions):
        if t == len(actions) // 2:
            cut = simulator.reset_to(simulator.get_states(cut))
        whole, expected = simulator.step(whole, action)
        cut, result = simulator.step(cut, action)
        for field in ("observation", "reward", "success", "terminated", "truncated"):
            if not _same(getattr(expected, field), getattr(result, field)):
                return [*faults, f"simulator: {field} differs at step {t} of an equal or restored episode"]
    return faults


def _equal(a: States, b: States) -> bool:
    return set(a) == set(b) and all(_same(a[name], b[name]) for name in a)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and set(a) == set(b) and all(_same(a[name], b[name]) for name in a)
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and np.array_equal(a, b)
