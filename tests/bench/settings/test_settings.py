import pytest

from scout_rl.bench.families import FAMILIES, family
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.settings.settings import SETTINGS, setting


def test_every_setting_has_a_small_variant():
    full = {key for key in SETTINGS if not key.endswith("-small")}
    assert {f"{key}-small" for key in full} == set(SETTINGS) - full
    assert all(SETTINGS[f"{key}-small"].windows < SETTINGS[key].windows for key in full)


def test_every_family_is_registered():
    assert {row.family for row in SETTINGS.values()} <= set(FAMILIES)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no setting 'dorkey'; the settings are .*doorkey"):
        setting("dorkey")
    with pytest.raises(ValueError, match="no family 'atari'; the families are minigrid"):
        family("atari")


@pytest.mark.parametrize("key", ["fetch-conflict", "fetch-air", "pointmaze-large", "metaworld-pickplace"])
def test_paper_fast_is_paper_with_two_rates_of_tuned(key):
    constants = {p: RunConfig(setting=key, preset=p).learner for p in ("paper", "paper-fast", "tuned")}
    changed = {k for k, v in constants["paper"].items() if constants["paper-fast"][k] != v}
    assert changed == {"learning_rate", "tau"}
    assert all(constants["paper-fast"][k] == constants["tuned"][k] for k in changed)


def test_paper_fast_leaves_ppo_as_the_paper_has_it():
    paper, fast = (RunConfig(setting="doorkey", preset=p).learner for p in ("paper", "paper-fast"))
    assert paper == fast
