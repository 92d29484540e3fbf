"""Which runs answer for a rule or a setting where several could: no sweep takes their place, and doubt is named."""

import numpy as np
import pytest

from scout_rl.bench.reproduction import verdicts
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.report.measure.aggregate import aggregate_tables
from scout_rl.report.measure.comparison import scores
from scout_rl.report.measure.retention import retention, retention_table
from tests.report.planted import blocks_of, written

AT = np.arange(0, 121, 20)
SEEDS = (100, 101, 102)
SAC = {
    "updates": 128,
    "warmup": 0,
    "tau": 0.02,
    "learning_rate": 1e-3,
    "random_action": 0.1,
    "action_noise": 0.1,
    "gamma": 0.98,
}
"""What the tuned preset says for Fetch."""


def flat(folder, setting, rule, value, seeds=SEEDS, **others):
    """Runs whose held-out success is ``value`` all the time."""
    return [written(folder, setting, rule, seed, {"all": np.full(len(AT), value)}, **others) for seed in seeds]


# -- a rule's own constants -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["doorkey", "fetch-conflict", "doorkey-small"])
@pytest.mark.parametrize("rule", ["anneal", "reverse"])
def test_a_run_has_the_schedule_that_the_report_takes_for_its_own(key, rule):
    for windows in (1, 37, 120, 0):
        told = RunConfig(setting=key, rule=rule, windows=windows)
        (name,) = {"T", "T_anneal"} & set(told.constants)
        assert told.constants[name] == SETTINGS[key].schedule(told.windows)


def test_another_schedule_is_not_the_rules_own(tmp_path):
    """120 windows: its own schedule is 60. One of 10 comes first by name, and would turn the verdict around."""
    runs = flat(tmp_path, "doorkey-limited", "scout", 0.5)
    runs += flat(tmp_path, "doorkey-limited", "anneal", 0.75, constants={"T_anneal": 60})
    asked = verdicts.Row("doorkey-limited", "anneal", "auc")
    alone = verdicts.answer(asked, blocks_of(runs))
    assert alone.verdict == "reversed"
    swept = [
        *runs,
        *flat(tmp_path, "doorkey-limited", "anneal", 0.0, constants={"T_anneal": 10}, seeds=range(100, 106)),
    ]
    (block,) = blocks_of(swept)
    assert [c.label for c in block.conditions] == ["scout", "anneal (T_anneal 10)", "anneal (T_anneal 60)"]
    assert [c.has_default_constants for c in block.conditions] == [True, False, True]
    told = verdicts.answer(asked, [block])
    assert (told.verdict, told.ours, told.note) == (alone.verdict, alone.ours, "")
    (only,) = blocks_of(flat(tmp_path, "doorkey-limited", "anneal", 0.0, constants={"T_anneal": 10}))
    assert only.conditions[0].label == "anneal (T_anneal 10)"
    assert verdicts.answer(asked, [only]).verdict == "not yet run"


def test_several_that_may_be_the_rules_own_are_named(tmp_path):
    """A record that leaves constants out beside some that have them: the most runs are taken, and it is said."""
    runs = flat(tmp_path, "doorkey-limited", "anneal", 0.25, seeds=[100])
    runs += flat(tmp_path, "doorkey-limited", "anneal", 0.75, constants={"T_anneal": 60})
    (block,) = blocks_of(runs)
    assert [c.label for c in block.all_of("anneal")] == ["anneal (T_anneal 60)", "anneal"]
    told = verdicts.answer(verdicts.Row("doorkey-limited", "anneal", "auc"), [block])
    assert told.ours.point == 0.75
    assert (
        told.note == "this is of anneal (T_anneal 60), chosen by the number of runs; anneal may be the rule's own too"
    )
    assert block.doubt("scout") == ""


# -- a setting's own block --------------------------------------------------------------------------------------------


def test_a_sweep_over_the_learner_does_not_answer_for_the_setting(tmp_path):
    runs = flat(tmp_path, "fetch-air", "scout", 0.5, seeds=[100], learner=SAC)
    runs += flat(tmp_path, "fetch-air", "scout", 0.9, learner={**SAC, "gamma": 0.9})
    told = verdicts.answer(verdicts.Row("fetch-air", "scout", "auc"), blocks_of(runs))
    assert (told.ours.point, told.note) == (0.5, "")


def test_blocks_that_would_answer_as_well_are_named(tmp_path):
    """Nothing in the setting's table says which ``depth`` is its own."""
    runs = flat(tmp_path, "multiroom", "scout", 0.5, learner={"depth": 2})
    runs += flat(tmp_path, "multiroom", "scout", 0.9, learner={"depth": 1}, seeds=[100])
    told = verdicts.answer(verdicts.Row("multiroom", "scout", "auc"), blocks_of(runs))
    assert told.ours.point == 0.5
    assert told.note == (
        "this is of multiroom (depth 2), chosen by the number of runs; multiroom (depth 1) would answer as well"
    )


def test_numbers_of_levels_are_compared_in_like_runs(tmp_path):
    asked = verdicts.Row("doorkey-16", "scout", "auc", ladder="solver", levels=9, compare="levels 5")
    nine = flat(tmp_path, "doorkey-16", "scout", 0.75, ladder="solver", levels=9)
    unlike = flat(tmp_path, "doorkey-16", "scout", 0.9, ladder="solver", learner={"gamma": 0.9})
    assert verdicts.answer(asked, blocks_of([*nine, *unlike])).difference is None
    alike = flat(tmp_path, "doorkey-16", "scout", 0.5, seeds=[100], ladder="solver")
    told = verdicts.answer(asked, blocks_of([*nine, *unlike, *alike]))
    assert (told.difference.point, told.seeds) == (0.25, 1)


# -- shares of gain ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unlike", [{"learner": {"gamma": 0.9}}, {"algorithm": "contrastive"}, {"windows": 140}, {"episodes": 8}]
)
def test_a_share_of_gain_is_of_like_runs(tmp_path, unlike):
    """0.5 of a gain of 0.5. The other manual ladder would make it 2.5 of 0.1; alone it makes no share."""

    def sides(value, **others):
        at = np.arange(0, others.get("windows", 120) + 1, 20)
        return [
            written(tmp_path, "fetch-air", rule, seed, {"all": np.full(len(at), height)}, **others)
            for rule, height in (("scout", value), ("target", 0.25))
            for seed in SEEDS
        ]

    auto = flat(tmp_path, "fetch-air", "scout", 0.5, ladder="solver")
    alike, others = sides(0.75), sides(0.35, **unlike)
    assert retention(blocks_of([*auto, *others]), "fetch-air", "solver") is None
    for runs in ([*auto, *alike, *others], [*others, *auto, *alike]):
        found = retention(blocks_of(runs), "fetch-air", "solver")
        assert found.ratio.point == pytest.approx(0.5)
        assert found.areas == pytest.approx((0.5, 0.75, 0.25))
        told = verdicts.answer(verdicts.Row("fetch-air", "scout", "retained", ladder="solver"), blocks_of(runs))
        assert told.areas == found.areas
        assert told.ours == found.ratio
        assert told.note == ""


def test_a_share_of_gain_on_another_bank_is_none(tmp_path):
    auto = flat(tmp_path, "doorkey", "scout", 0.5, ladder="solver", about={"bank": "ef" * 32})
    others = flat(tmp_path, "doorkey", "scout", 0.75) + flat(tmp_path, "doorkey", "target", 0.25)
    assert retention(blocks_of([*auto, *others]), "doorkey", "solver") is None


def test_two_sources_of_a_policy_ladder_are_named(tmp_path):
    runs = flat(tmp_path, "doorkey", "scout", 0.75) + flat(tmp_path, "doorkey", "target", 0.25)
    runs += flat(tmp_path, "doorkey", "scout", 0.5, ladder="policy", ladder_from="out/campaign-b/target")
    runs += flat(tmp_path, "doorkey", "scout", 0.75, [100], ladder="policy", ladder_from="out/campaign-a/target")
    table = retention_table(blocks_of(runs))
    assert [row[:3] for row in table.rows] == [["doorkey", "R_self", "3"]]
    assert "doorkey, R_self: this is of doorkey (policy ladder, ladder_from out/campaign-b/target)" in table.notes[1]
    assert "doorkey (policy ladder, ladder_from out/campaign-a/target) would answer as well" in table.notes[1]


# -- over all settings ------------------------------------------------------------------------------------------------


def test_each_setting_counts_once(tmp_path):
    """Doorkey has five blocks, of which the first counts; doorkey-16 has no hand-built ladder."""
    runs = []
    for setting, ours, others in (
        ("doorkey", 0.75, {"windows": 1200, "evaluate_every": 200}),
        ("doorkey", 0.25, {"preset": "paper", "windows": 1200, "evaluate_every": 200}),
        ("doorkey", 0.25, {"ladder": "solver", "windows": 1200, "evaluate_every": 200}),
        ("doorkey", 0.25, {}),
        ("doorkey", 0.25, {"algorithm": "other", "windows": 1200, "evaluate_every": 200}),
        ("doorkey-16", 0.5, {"ladder": "solver"}),
        ("doorkey-16", 0.25, {"ladder": "solver", "levels": 9}),
    ):
        for rule, value in (("scout", ours), ("random", 0.5)):
            runs += [
                written(tmp_path, setting, rule, seed, {"all": np.full(len(AT), value)}, **others) for seed in SEEDS
            ]
    (table,) = aggregate_tables([(block, scores(block)) for block in blocks_of(runs)])
    # always better in one, always equal in the other
    assert table.rows == [["random", "2", "6", "0.62 [0.62, 0.62]", "0.50 [0.50, 0.50]", "0.75 [0.75, 0.75]"]]
    assert table.notes[1].startswith("Each setting counts once, by one block: preset tuned, ")
    assert table.notes[1].endswith(
        "Left out: doorkey (evaluate_every 20, windows 120); doorkey (other); doorkey (paper); "
        "doorkey (solver ladder); doorkey-16 (solver ladder, 9 levels)."
    )
