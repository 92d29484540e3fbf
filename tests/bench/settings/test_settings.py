from dataclasses import replace

import pytest

from scout_rl.bench.families import FAMILIES, family, load_bank
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


@pytest.mark.parametrize("key", ["doorkey-limited", "fetch-conflict-small"])
def test_another_bank_of_a_setting_differs_in_its_contexts_alone(key):
    plain, other = setting(key), setting(f"{key}@1")
    assert replace(other, key=key, bank_seed=0) == plain
    banks = [load_bank(s) for s in (plain, other, setting(f"{key}@2"))]
    assert len({bank.sha256 for bank in banks}) == 3
    for preset in ("paper", "tuned"):
        learners = [RunConfig(setting=k, preset=preset).learner for k in (key, f"{key}@1")]
        assert learners[0] == learners[1]


@pytest.mark.parametrize("number", ["", "0", "-1", "01", "x", "1.0", "1@1"])
def test_a_bank_seed_is_a_positive_number(number):
    with pytest.raises(ValueError, match="after the @ stands the bank's seed, 1 or more"):
        setting(f"doorkey@{number}")
