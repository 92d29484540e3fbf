"""Records with a known answer: played by a real curriculum on a toy learner, or written as compact records directly."""

import io
import json
from dataclasses import replace

import numpy as np

from scout_rl import Curriculum, rules
from scout_rl.bench.reproduction.catalogue import catalogue
from scout_rl.records.compact import SCHEMA
from scout_rl.records.tables import KINDS
from scout_rl.report.measure.comparison import evaluated
from scout_rl.report.measure.conditions import group
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.read.runs import load

CATALOGUE = catalogue()
SHARE = 3000
"""Held-out contexts of a group, so that thirds and hundredths are whole ones."""


def play(folder, ready, *, rule=None, n_contexts=40, n_levels=5, windows=300, rollouts=16, seed=0, oracle_group=None):
    """A log_dir: ``ready(context, level, window)`` is the success probability of each rollout."""
    curriculum = Curriculum(
        rule or rules.Scout(),
        n_contexts,
        n_levels,
        seed=seed,
        window=rollouts,
        log_dir=folder,
        oracle_group=oracle_group,
    )
    rng = np.random.default_rng(seed + 1000)
    for window in range(windows):
        cells = curriculum.assign(rollouts)
        chance = np.broadcast_to(ready(cells.context, cells.level, window), cells.context.shape)
        curriculum.report(cells, rng.random(rollouts) < chance)
    return folder


def steadily(pace, n_levels=5, every=45, high=0.93, low=0.02):
    """Contexts master one level after the other; ``pace(context)`` stretches the time that a level takes."""

    def ready(context, level, window):
        needed = (n_levels - 1 - level) * every * pace(context)
        return np.where(window >= needed, high, low)

    return ready


def load_labelled(path, labels):
    """The run at ``path`` with these (group names, group of every training context), or as it is."""
    run = load(path)
    return run if labels is None else replace(run, groups=labels[0], context_group=labels[1])


def config(setting="planted", rule="scout", seed=100, windows=120, **others):
    whole = {"setting": setting, "rule": rule, "seed": seed, "ladder": "manual", "levels": 5, "windows": windows}
    return (
        whole | {"episodes": 4, "evaluate_every": 20, "checkpoint_every": 50, "constants": {}, "learner": {}} | others
    )


def curve(reach, *, final=1.0, at):
    """A held-out curve that rises in a straight line from 0 to ``final`` at window ``reach``; its area is known."""
    return np.clip(np.asarray(at) / reach, 0, 1) * final


def write_compact(
    path,
    run_config,
    groups,
    *,
    frontier=None,
    n_contexts=10,
    held_out=0,
    bank="ab" * 32,
    seconds=60.0,
    ladder=None,
    labelled=False,
    **about,
):
    """A compact record with these held-out curves by group (equal shares) and this frontier [windows, contexts].

    Values are rounded to whole contexts, of which there are many. A window has 1000 environment steps. ``about`` is
    what run.json says beside config, bank and versions; ``labelled``: the group of every context too, in equal shares.
    """
    windows, rollouts = run_config["windows"], run_config["episodes"]
    rng = np.random.default_rng(run_config["seed"])
    at = np.arange(0, windows + 1, run_config["evaluate_every"])
    share = held_out // len(groups) or SHARE
    parts = [np.arange(share)[None, :] < np.rint(values * share)[:, None] for values in groups.values()]
    outcomes = np.concatenate(parts, axis=1)
    context = rng.integers(n_contexts, size=(windows, rollouts)).astype(np.int16)
    level = np.zeros_like(context, np.int8)
    if frontier is not None:
        before = np.concatenate([np.full((1, n_contexts), run_config["levels"] - 1), frontier[:-1]])
        level = np.take_along_axis(before, context.astype(int), axis=1).astype(np.int8)
    arrays = {
        "context": context,
        "level": level,
        "success": np.packbits(rng.random((windows, rollouts)) < 0.5, axis=1),
        "moves": moves_of(frontier, run_config["levels"]),
        "evaluated_at": at.astype(np.int32),
        "outcomes": np.packbits(outcomes, axis=1),
        "groups": np.stack([part.mean(axis=1) for part in parts], axis=1),
        "environment_steps": (np.arange(windows, dtype=np.int64) + 1) * 1000,
    }
    if frontier is not None:
        arrays["frontier"] = frontier.astype(np.int8)
    about = {
        "schema": 1,
        "kind": "run",
        "config": run_config,
        "bank_sha256": bank,
        "versions": {"python": "3.12.0", "numpy": "2.0"},
        **about,
    }
    if labelled:
        about["groups"] = labels_of(groups, n_contexts, outcomes.shape[1])
    note = {"compact_schema": SCHEMA, "run": about, "group_names": list(groups), "rollouts": rollouts}
    note |= {"held_out": outcomes.shape[1], "seconds": seconds, "ladder": ladder}
    arrays["about.json"] = np.frombuffer(json.dumps(note).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())
    return path


def labels_of(groups, n_contexts, held_out):
    """What run.json says of groups that have equal shares, one after the other."""
    train, held_out = ([name for name in groups for _ in range(n // len(groups))] for n in (n_contexts, held_out))
    return {"train": train, "held_out": held_out, "oracle": [0] * n_contexts}


def moves_of(frontier, n_levels):
    """Rows (window, context, kind) of a frontier that starts at the easiest level and moves by one."""
    if frontier is None:
        return np.zeros((0, 3), np.int32)
    whole = np.concatenate([np.full((1, frontier.shape[1]), n_levels - 1), frontier])
    window, context = np.nonzero(np.diff(whole, axis=0))
    kinds = np.where(np.diff(whole, axis=0)[window, context] > 0, KINDS.index("retreat"), KINDS.index("advance"))
    return np.stack([window, context, kinds], axis=1).astype(np.int32)


def staircase(windows, n_contexts, n_levels=5, *, every):
    """Context x steps one level harder every ``every[x]`` windows."""
    steps = np.arange(1, windows + 1)[:, None] // np.broadcast_to(every, n_contexts)[None, :]
    return np.maximum(n_levels - 1 - steps, 0).astype(np.int8)


def as_run_folder(folder, run_config, groups, *, held_out=0):
    """Make a log_dir a run folder: run.json, evaluations, metrics and timing beside what the curriculum wrote."""
    windows = run_config["windows"]
    about = {
        "schema": 1,
        "kind": "run",
        "config": run_config,
        "bank_sha256": "cd" * 32,
        "versions": {"python": "3.12.0"},
    }
    (folder / "run.json").write_text(json.dumps(about))
    at = range(0, windows + 1, run_config["evaluate_every"])
    share = held_out // len(groups) or SHARE
    rows = []
    for i, window in enumerate(at):
        parts = {name: [int(k < round(values[i] * share)) for k in range(share)] for name, values in groups.items()}
        outcomes = [outcome for part in parts.values() for outcome in part]
        means = {name: float(np.mean(part)) for name, part in parts.items()}
        rows.append({"window": window, "success": float(np.mean(outcomes)), "groups": means, "outcomes": outcomes})
    tables = {
        "evaluations": rows,
        "metrics": [{"window": w, "environment_steps": 100 * (w + 1)} for w in range(windows)],
        "timing": [{"window": w, "seconds": 0.5} for w in range(windows)],
    }
    for name, lines in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def played_folder(path, windows, *, reach):
    """A run folder that SCOUT played with six contexts; its curve rises to 1 at window ``reach``."""
    play(path, steadily(lambda c: 1.0, every=15), n_contexts=6, windows=windows, rollouts=8)
    run_config = config(windows=windows, constants=rules.Scout().constants())
    return as_run_folder(path, run_config, {"all": curve(reach, at=range(0, windows + 1, 20))})


def written(folder, setting, rule, seed, groups, *, about=None, **others):
    """The summary of a compact record in ``folder`` with these held-out curves; ``about`` as in `write_compact`."""
    run_config = config(setting=setting, rule=rule, seed=seed, **others)
    path = folder / f"{setting}-{rule}-{seed}-{len(list(folder.iterdir()))}.npz"
    return summarise(load(write_compact(path, run_config, groups, **(about or {})), catalogue=CATALOGUE))


def blocks_of(runs):
    """What the tables and verdicts are made from."""
    return [evaluated(block) for block in group(runs)]
