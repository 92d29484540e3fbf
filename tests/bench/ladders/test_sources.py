"""The table of ladder sources: a new source is tested the moment it has its line."""

import importlib

import pytest

from scout_rl.bench.families import FAMILIES, load_bank
from scout_rl.bench.ladders import SOURCES
from scout_rl.bench.ladders.build import Wanted, build_ladder
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.settings.settings import SETTINGS

ONE_EACH = ("doorkey-small", "fetch-conflict-small", "pointmaze-medium-small", "metaworld-conflict-small")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("key", ONE_EACH)
def test_every_source_starts_every_family_at_the_target(source, key):
    """From no run a policy ladder is the solver's."""
    contexts = {name: array[[0, -1]] for name, array in load_bank(SETTINGS[key]).train.contexts.items()}
    wanted = Wanted(SETTINGS[key], contexts, 5)
    ladder, _ = build_ladder(wanted, source, lambda sentence: None)
    for name, array in wanted.family.target_starts(contexts).items():
        assert ladder[name].shape[:2] == (2, 5)
        assert (ladder[name][:, 0] == array).all()
    assert wanted.family.check_ladder(contexts, ladder, by_hand=SOURCES[source].by_hand).ok
    file = importlib.import_module(f"scout_rl.bench.ladders.{source}")
    assert file.made_of(wanted) == file.made_of(wanted)


def test_every_family_is_among_them():
    assert {SETTINGS[key].family for key in ONE_EACH} == set(FAMILIES)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ladder": "rope"}, "no ladder 'rope'; the ladders are manual, solver, policy"),
        ({"ladder": "policy"}, "--ladder policy and --from RUN .* belong together"),
        ({"ladder_from": "runs/x"}, "belong together"),
        ({"ladder": "solver", "ladder_fallback": "runs/x"}, "--fallback RUN is for them alone"),
    ],
)
def test_a_config_names_a_line_of_the_table(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        RunConfig(setting="doorkey-small", **changes)
