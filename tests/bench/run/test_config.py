"""What a run's config fills in, and what it leaves to a stored one."""

import dataclasses

import numpy as np
import pytest

from scout_rl import Curriculum
from scout_rl.bench.learners import learner_constants
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.cli import main
from scout_rl.commands import train
from scout_rl.ladders.ladder import level_fractions


def test_rollouts_per_window_are_the_settings(monkeypatch):
    doorkey = dataclasses.replace(SETTINGS["doorkey-small"], episodes=6)
    monkeypatch.setitem(SETTINGS, "doorkey-small", doorkey)
    assert RunConfig(setting="doorkey-small").episodes == 6
    assert RunConfig(setting="doorkey-small", episodes=9).episodes == 9


def test_the_learner_is_built_once():
    config = RunConfig(setting="doorkey-small")
    assert config.make_learner() is config.make_learner()
    assert learner_constants(config.make_learner()) == config.learner


def reverse(**changes):
    return RunConfig(setting="doorkey-small", rule="reverse", ladder="solver", **changes)


@pytest.mark.parametrize("levels", [2, 9, 13])
def test_reverse_goes_down_the_ladder_by_its_own_progress(levels):
    config = reverse(levels=levels, constants={"T": 40})
    fractions = level_fractions(levels)
    assert config.constants["progress"] == list(fractions)
    curriculum = Curriculum(config.make_rule(), 3, levels, window=4)
    for t in range(41):
        cells = curriculum.assign(4)
        nearest = np.argmin(np.abs(np.array(fractions) - 0.9 * (1 - t / 40)).round(6))
        assert (cells.level == nearest).all(), t
        curriculum.report(cells, np.ones(4, bool))


def test_of_five_levels_nothing_is_filled_in():
    assert reverse().constants["progress"] is None
    assert reverse().make_rule().fractions(5) == level_fractions(5)


def test_a_stored_config_keeps_its_meaning():
    """Before, `progress` was stored as None and meant evenly spread levels."""
    stored = reverse(levels=9, constants={"T": 40, "progress": None})
    assert stored.constants["progress"] is None
    assert RunConfig(**stored.as_dict()).identity == stored.identity
    np.testing.assert_allclose(stored.make_rule().fractions(9), np.linspace(0, 0.9, 9))
    filled = reverse(levels=9)
    assert RunConfig(**filled.as_dict()).identity == filled.identity


@pytest.mark.parametrize(
    ("words", "progress"),
    [
        (["--levels", "9"], list(level_fractions(9))),
        ([], None),
        (["--levels", "3", "--constants.progress", "0", "0.3", "0.8"], [0.0, 0.3, 0.8]),
    ],
)
def test_the_command_leaves_it_to_the_config(words, progress, monkeypatch):
    configs = []
    monkeypatch.setattr(train, "run", lambda config, path, track: configs.append(config) or 0)
    assert main(["train", "doorkey-small", "--rule", "reverse", "--ladder", "solver", *words]) == 0
    assert configs[0].constants["progress"] == progress
