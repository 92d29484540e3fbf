"""Campaign files: every one expands and dry-runs; what is wrong with one is a sentence with the file and the key."""

import dataclasses
import tomllib
from pathlib import Path

import pytest

from scout_rl import rules
from scout_rl.bench.campaign.file import AXES, load
from scout_rl.bench.ladders import SOURCES
from scout_rl.bench.learners import LEARNERS
from scout_rl.bench.run.config import RunConfig
from scout_rl.bench.settings.settings import setting
from scout_rl.cli import main

FILES = sorted((Path(__file__).parents[3] / "campaigns").glob("*.toml"))
QUEUES = {"evidence", "reasons", "one-rule", "one-rule-banks", "one-rule-development", "one-rule-mujoco"}
"""Files that are taken run by run; they have no small version."""
FULL = [file for file in FILES if not file.stem.endswith("-small") and file.stem not in QUEUES]
LISTED = {
    "six-settings", "conflict", "metaworld-conflict", "within-group", "trajectory-derived", "policy-derived",
    "horizon-and-resolution", "doorkey-levels", "antistall", "annealing", "fixed-level", "transition-rules",
    "contrastive", "rfcl-protocol",
}  # fmt: skip
"""The paper's tables and figures."""


def lacking(file):
    """What a file asks for that this version cannot run yet; the test of the file turns by itself once it can."""
    fields = {field.name for field in dataclasses.fields(RunConfig)}
    found = set()
    for block in tomllib.loads(file.read_text())["runs"]:
        given = set(block).union(*block.get("overrides", [])) - {*AXES, "overrides"}
        found |= given - fields
        found |= set(block.get("ladders", [])) - set(SOURCES)
        found |= {setting(key).learner for key in block["settings"]} - set(LEARNERS)
    return found


def rows(file):
    return tomllib.loads(file.read_text())["runs"]


def test_every_table_of_the_paper_has_its_two_files():
    assert {file.stem for file in FULL} == LISTED
    assert {file.stem for file in FILES} == LISTED | {f"{name}-small" for name in LISTED} | QUEUES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_expands_and_dry_runs(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if missing := lacking(file):
        with pytest.raises(ValueError, match=f"{file.stem}.toml: runs"):
            load(file)
        assert missing
        return
    found = load(file)
    product = 0
    for block in rows(file):
        lists = [*AXES, "overrides"]
        size = 1
        for key in lists:
            size *= len(block.get(key, [None]))
        product += size
    assert len(found.runs) == product
    assert len({run.name for run in found.runs}) == len({run.config.identity for run in found.runs}) == product
    for run in found.runs:
        assert bool(run.needs) == (run.config.ladder == "policy")  # a policy comes from a run of the same file
        position = {other.name: i for i, other in enumerate(found.runs)}
        assert all(position[name] < position[run.name] for name in run.needs)
    assert main(["campaign", str(file), "--dry-run"]) == 0
    assert f"{product} of {product} runs to do" in capsys.readouterr().out.replace("\n", " ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("full", FULL, ids=lambda file: file.stem)
def test_a_small_file_is_the_full_one_in_small(full):
    small = full.with_name(f"{full.stem}-small.toml")
    settings = {key for block in rows(small) for key in block["settings"]}
    assert settings
    assert settings <= {f"{key}-small" for block in rows(full) for key in block["settings"]}
    assert {rule for b in rows(small) for rule in b["rules"]} == {rule for b in rows(full) for rule in b["rules"]}
    assert {x for b in rows(small) for x in b.get("ladders", [])} == {
        x for b in rows(full) for x in b.get("ladders", [])
    }
    assert {seed for block in rows(small) for seed in block["seeds"]} <= set(range(40, 60))  # development seeds


def test_screens_leave_the_evaluation_seeds_alone():
    for name in ("antistall", "annealing", "fixed-level"):
        (file,) = [file for file in FILES if file.stem == name]
        assert {seed for block in rows(file) for seed in block["seeds"]} <= set(range(40, 60))


def test_the_evidence_is_in_order_of_worth(tmp_path):
    """Row by row of the table for seed 100, then for 101, and so on, whatever learners there are by now."""
    (file,) = [file for file in FILES if file.stem == "evidence"]
    blocks = [b for b in rows(file) if set(b) <= {*AXES, "overrides"} and b.get("ladders") != ["policy"]]
    grids = [b for b in blocks if setting(b["settings"][0]).family == "minigrid"]
    text = "\n".join("[[runs]]\n" + "\n".join(f"{k} = {toml(v)}" for k, v in b.items()) for b in grids)
    (tmp_path / "grids.toml").write_text(text)
    seeds = [run.config.seed for run in load(tmp_path / "grids.toml").runs]
    assert seeds == sorted(seeds)
    assert set(seeds) == {100, 101, 102, 103, 104, 105}
    first = [run.name for run in load(tmp_path / "grids.toml").runs if run.config.seed == 100]
    assert first[:4] == [f"multiroom/{rule}/100" for rule in ("scout", "target", "anneal", "random")]
    assert "doorkey/scout/100-solver5" in first
    assert "doorkey-16/mixture/100-solver13" in first


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


BLOCK = 'settings = ["doorkey-small"]\nrules = ["scout"]\nseeds = [40]\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("title = 3 =", "bad.toml is no TOML"),
        ("titel = 'a'", "bad.toml: unknown key 'titel'; a campaign file has title, pack, defaults, runs"),
        ("title = 'a'", r"bad.toml: 'runs' must be blocks"),
        ("[runs]\nseeds = [1]", r"bad.toml: 'runs' must be blocks"),
        ("defaults = 1\n[[runs]]\n" + BLOCK, "bad.toml: 'defaults' must be a table"),
        ("pack = 1\n[[runs]]\n" + BLOCK, "bad.toml: 'pack' is 1"),
        ("[defaults]\nwindow = 3\n[[runs]]\n" + BLOCK, r"bad.toml: \[defaults\]: unknown key 'window'; a run has"),
        ("[defaults]\nseed = 3\n[[runs]]\n" + BLOCK, r"\[defaults\]: 'seed' is not set here; list it under 'seeds'"),
        ("[[runs]]\n" + BLOCK + "seads = [1]", r"bad.toml: runs\[0\]: unknown key 'seads'"),
        ("[[runs]]\n" + BLOCK + "rule = 'scout'", r"runs\[0\]: 'rule' is not set here; list it under 'rules'"),
        ("[[runs]]\nrules = ['scout']\nseeds = [1]", r"bad.toml: runs\[0\]: 'settings' is missing"),
        ("[[runs]]\n" + BLOCK.replace("[40]", "40"), r"runs\[0\]: 'seeds' must be a list of at least one"),
        ("[[runs]]\n" + BLOCK.replace("[40]", "[]"), r"runs\[0\]: 'seeds' must be a list of at least one"),
        ("[[runs]]\n" + BLOCK.replace("[40]", "['40']"), r"runs\[0\]: .* 'seed' is '40', but must be a whole number"),
        ("[[runs]]\n" + BLOCK.replace("[40]", "[true]"), r"'seed' is True, but must be a whole number"),
        ("[[runs]]\n" + BLOCK.replace("40", "-1"), r"runs\[0\]: doorkey-small scout -1: seed is -1"),
        ("[[runs]]\n" + BLOCK.replace("doorkey-small", "dorkey"), r"runs\[0\]: dorkey scout 40: no setting 'dorkey'"),
        ("[[runs]]\n" + BLOCK.replace("scout", "scuot"), r"runs\[0\]: .* there is no rule 'scuot'"),
        ("[[runs]]\n" + BLOCK + "ladders = ['hand']", r"no ladder 'hand'; the ladders are manual, solver, policy"),
        ("[[runs]]\n" + BLOCK + "overrides = {}", r"runs\[0\]: 'overrides' must be a list of tables"),
        ("[[runs]]\n" + BLOCK + "overrides = [{leveles = 9}]", r"runs\[0\]: overrides\[0\]: unknown key 'leveles'"),
        ("[[runs]]\n" + BLOCK + "overrides = [{seed = 9}]", r"overrides\[0\]: 'seed' is not set here"),
        ("[[runs]]\n" + BLOCK + "constants = {nmin = 9}", r"runs\[0\]: .* rule 'scout' has no constant 'nmin'"),
        ("[[runs]]\n" + BLOCK + "constants = 9", r"'constants' is 9, but must be a table"),
        ("[[runs]]\n" + BLOCK.replace("[40]", "[40, 40]"), r"runs\[0\] repeats the run doorkey-small/scout/40 of runs"),
        ("[[runs]]\n" + BLOCK + "[[runs]]\n" + BLOCK, r"runs\[1\] repeats the run doorkey-small/scout/40 of runs\[0\]"),
    ],
)
def test_a_bad_file_is_one_sentence_with_file_and_key(text, sentence, tmp_path, capsys):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=sentence) as refused:
        load(file)
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert main(["campaign", str(file), "--dry-run"]) == 2  # and no traceback
    assert capsys.readouterr().err.startswith(f"scout: {file}")


def test_a_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"none.toml cannot be read: No such file"):
        load(tmp_path / "none.toml")


def test_what_varies_is_in_the_name(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("""
    [defaults]
    constants = { n_min = 5 }
    [[runs]]
    settings = ["doorkey-small"]
    rules = ["scout"]
    seeds = [40, 41]
    ladders = ["manual", "solver"]
    overrides = [{}, { windows = 7, levels = 9, constants.tau_high = 0.9, learner.gamma = 0.5 }]
    """)
    names = [run.name.removeprefix("doorkey-small/scout/") for run in load(file).runs]
    changed = "windows7-tau_high0.9-n_min5-gamma0.5"  # in the order of the fields and the constants
    one = ["40-n_min5", f"40-manual9-{changed}", "40-solver5-n_min5", f"40-solver9-{changed}"]
    assert names == one + [name.replace("40-", "41-", 1) for name in one]
    config = load(file).runs[1].config
    assert (config.windows, config.constants["n_min"], config.constants["tau_high"]) == (7, 5, 0.9)


def test_schedules_follow_the_budget_and_are_not_in_the_name(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('[[runs]]\nsettings = ["doorkey"]\nrules = ["anneal"]\nseeds = [40]\nwindows = 10')
    (run,) = load(file).runs
    assert run.name == "doorkey/anneal/40-windows10"
    assert run.config.constants["T_anneal"] == 5


def test_committed_records_have_the_names_that_campaigns_look_for():
    """The first rows of the queue that were run before there were campaigns."""
    from scout_rl.bench.run.path import run_name

    assert run_name(RunConfig(setting="doorkey", seed=100)) == "doorkey/scout/100"
    assert run_name(RunConfig(setting="doorkey", seed=100, ladder="solver")) == "doorkey/scout/100-solver5"
    assert run_name(RunConfig(setting="doorkey", seed=1, checkpoint_every=7)) == "doorkey/scout/1"
    assert set(rules.RULES) >= {rule for file in FILES for block in rows(file) for rule in block["rules"]}


def test_the_page_shows_a_file_that_works_and_every_campaign(tmp_path):
    page = (FILES[0].parents[1] / "docs" / "campaigns.md").read_text()
    (tmp_path / "a.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    assert len(load(tmp_path / "a.toml").runs) == 12
    assert {name for name in LISTED | {"evidence"} if f"`{name}`" not in page} == set()
