"""Data flows one way: a module imports only what stands before it."""

import ast
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "scout_rl"

# Each stage with the stages it may import from. `cells` holds the value types and is open to all.
FLOW = {
    # the controller
    "cells": set(),
    "field_types": set(),
    "rules": {"cells", "field_types"},
    "records": {"cells", "damage"},
    "damage": set(),
    "made_with": set(),
    "stored": {"damage", "made_with", "records"},
    "outcome_checks": {"cells"},
    "snapshot": {"cells", "records", "outcome_checks"},
    "curriculum": {"cells", "rules", "records", "outcome_checks", "snapshot"},
    "simulate": {"cells", "rules"},
    # states and ladders
    "archive": {"damage"},
    "success": set(),
    "codecs": {"archive"},
    "trajectory": {"archive", "codecs", "success"},
    "progress": {"archive", "trajectory"},
    "recorder": {"archive", "codecs", "success", "trajectory"},
    "minari_data": {"archive", "codecs", "recorder", "success", "trajectory"},
    "ladder_sources": set(),
    "env_attempts": {"archive", "codecs", "ladder_sources", "success", "trajectory"},
    "ladder": {"archive", "codecs", "env_attempts", "ladder_sources", "progress", "success", "trajectory"},
    "ladder_validation": {"archive", "codecs", "ladder", "success"},
    "ladder_picture": {"archive", "codecs", "ladder"},
    # anyone's loop
    "integrations": {"cells", "codecs", "curriculum", "ladder", "rules", "snapshot", "success"},
    "picture": {"cells", "records", "rules"},
    # settings, families, learners
    "settings": set(),
    "bank": set(),
    "families": {
        "archive",
        "bank",
        "codecs",
        "hardware",
        "ladder",
        "ladder_picture",
        "ladder_validation",
        "progress",
        "settings",
        "trajectory",
    },
    "ladder_cache": {"archive", "cache", "families", "settings"},
    "episodes": set(),
    "rollout": {"episodes"},
    "goal_rollout": {"episodes", "families"},
    "learners": {"episodes", "field_types"},
    "presets": {"settings"},
    # the run around them
    "window": {"episodes", "families", "goal_rollout", "learners", "rollout", "settings"},
    "evaluate": {"bank", "families", "goal_rollout", "learners", "rollout", "settings"},
    "checkpoint": {"damage"},
    "learner_state": {"checkpoint", "episodes", "learners"},
    "run_config": {"rules", "learners", "presets", "settings"},
    "stage": {"bank", "evaluate", "families", "learners", "run_config", "settings", "window"},
    "hardware": set(),
    "run_folder": {
        "cache",
        "checkpoint",
        "hardware",
        "held_out",
        "made_with",
        "records",
        "run_config",
        "run_lock",
        "stored",
    },
    "run_lock": set(),
    "signals": set(),
    "resume": {"checkpoint", "damage", "held_out", "records", "run_config", "run_folder", "snapshot", "stored"},
    "train": None,  # puts stages together
    "held_out": {"bank", "damage", "settings", "stored"},
    "compact": {"damage", "held_out", "stored"},
    "run_path": {"run_config", "settings"},
    "campaign": {
        "cache",
        "compact",
        "damage",
        "field_types",
        "hardware",
        "run_config",
        "run_folder",
        "run_ladder",
        "run_lock",
        "run_path",
        "signals",
        "stored",
        "train",
    },
    # a stored run had again
    "run_trace": {"compact", "held_out", "stored"},
    "repeat": {
        "bank",
        "campaign",
        "compact",
        "damage",
        "hardware",
        "learners",
        "made_with",
        "run_config",
        "run_trace",
        "settings",
        "signals",
        "stored",
    },
    # from records to pages; no simulator, no learner
    "report": {"bank", "cells", "compact", "damage", "held_out", "presets", "records", "rules", "settings", "stored"},
    # looking at what was trained, and from where
    "trained": {
        "bank",
        "checkpoint",
        "damage",
        "evaluate",
        "families",
        "goal_rollout",
        "held_out",
        "learner_state",
        "learners",
        "run_config",
        "run_folder",
        "settings",
        "stage",
        "stored",
    },
    # ladders from what was trained
    "policy_attempts": {"families"},
    "policy_ladder": {"families", "ladder_sources", "policy_attempts", "settings"},
    "run_ladder": {
        "archive",
        "bank",
        "cache",
        "families",
        "ladder_cache",
        "ladder_sources",
        "learners",
        "policy_attempts",
        "policy_ladder",
        "run_config",
        "run_folder",
        "settings",
        "trained",
    },
    "lockstep": {"evaluate", "families"},
    "video": {"families", "lockstep"},
    "family_ladder": {"bank", "families", "settings"},
    "cell_picture": {"families", "settings"},
    "cache": set(),
    "sinks": set(),
    "commands": None,
    "cli": {"commands"},
    "__main__": {"cli"},
    "__init__": None,
}
TYPES_ONLY = {("outcome_checks", "curriculum"), ("snapshot", "curriculum")}


def stage(path):
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imports(path):
    """(stage, whether it is only for type checking) of every import of our own, wherever it stands in the file."""
    tree = ast.parse(path.read_text())
    typing_only = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            typing_only |= {id(child) for child in ast.walk(node)}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "scout_rl":
            parts = node.module.split(".")
            names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name.split(".")[1] for a in node.names if a.name.startswith("scout_rl.")]
        for name in names:
            yield name, id(node) in typing_only


def test_no_import_runs_against_the_flow():
    wrong = []
    for path in SRC.rglob("*.py"):
        here = stage(path)
        assert here in FLOW, f"{path.name} belongs to no stage: add it to FLOW and to docs/architecture.md"
        allowed = FLOW[here]
        for name, typing_only in imports(path):
            if allowed is None or name == here or name == "__version__" or name in allowed:
                continue
            if not (typing_only and (here, name) in TYPES_ONLY):
                wrong.append(f"{path.relative_to(SRC)} imports {name}")
    assert not wrong


def test_no_module_outgrows_its_idea():
    long = {str(p.relative_to(SRC)): n for p in SRC.rglob("*.py") if (n := len(p.read_text().splitlines())) > 300}
    assert not long


def test_no_global_random_state():
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np.random":
                assert node.attr in {"default_rng", "Generator", "PCG64"}, f"{path.name}: {ast.unparse(node)}"
