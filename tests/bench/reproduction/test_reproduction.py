"""The committed records alone give the committed page: no simulator, no learner, nothing typed in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scout_rl.bench.families import load_bank
from scout_rl.bench.reproduction import glance, marks
from scout_rl.bench.reproduction.judging import LOSES, NOT_BEHIND, SIDES
from scout_rl.bench.reproduction.reproduction import write
from scout_rl.bench.reproduction.verdicts import answer, rows
from scout_rl.bench.settings.bank import pinned_hashes
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.cli import main
from scout_rl.records.compact import unpack
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.read.runs import load
from scout_rl.rules import RULES
from tests.bench.reproduction.marked import between
from tests.report.planted import config, curve, write_compact

ROOT = Path(__file__).parents[3]
BLOCK = """
import sys
REFUSED = "jax jaxlib equinox optax mujoco gymnasium gymnasium_robotics minigrid metaworld torch scipy".split()
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"{name} is not installed")
sys.meta_path.insert(0, Refuse())
"""


def without_simulators(code, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_committed_page_is_what_the_records_give(tmp_path):
    """`make results` after a change of results/ keeps it so."""
    imports = "from pathlib import Path\nfrom scout_rl.bench.reproduction.reproduction import write"
    code = f"{imports}\nwrite(*map(Path, sys.argv[1:]))"
    summary = tmp_path / "results.md"
    summary.write_text((ROOT / "docs/results.md").read_text().replace("1.00", "0.00"))
    without_simulators(code, ROOT / "results", tmp_path, summary)
    assert table_of(summary) == table_of(ROOT / "docs/results.md"), "run make results"
    assert "1.00" in table_of(summary)
    assert (tmp_path / "reproduction.md").read_text() == (ROOT / "docs/reproduction.md").read_text(), "run make results"
    for picture in (tmp_path / "images").iterdir():
        assert (ROOT / "docs/images" / picture.name).exists(), "run make results"
        assert picture.stat().st_size < 200_000


def table_of(page):
    return between(page, glance.MARK)


def test_a_page_without_a_place_for_the_table_is_refused(tmp_path):
    (tmp_path / "results.md").write_text("# nothing\n")
    with pytest.raises(ValueError, match=r"results.md has no place for the table"):
        marks.put_into(tmp_path / "results.md", glance.MARK, glance.glance_table([], []))


def test_the_commands_without_simulators(tmp_path):
    code = "from scout_rl.cli import main\nsys.exit(main(sys.argv[1:]))"
    few = ROOT / "results/multiroom"
    without_simulators(code, "report", few, "-o", tmp_path)
    table = (tmp_path / "tables/multiroom-success.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table] == ["rule", "scout", "anneal", "random", "target"]
    assert "contexts are stuck" not in without_simulators(code, "diagnose", few / "scout")


def test_every_row_asks_about_something_that_exists():
    asked = rows()
    for row in asked:
        assert row.setting in SETTINGS
        assert row.rule in RULES
        names = {group.name for group in SETTINGS[row.setting].groups}
        assert not row.metric.startswith("final:") or row.metric.removeprefix("final:") in names
        assert row.expect in ("", *SIDES, NOT_BEHIND, LOSES)
    assert {row.setting for row in asked} >= {"fetch-conflict", "fetch-withingroup", "fetch-air", "metaworld-conflict"}
    assert len({(r.setting, r.rule, r.metric, r.ladder, r.levels, r.preset) for r in asked}) == len(asked)


def test_committed_records_hold_their_banks_labels():
    """As the settings table gives them; `test_labels_of_a_bank` has it of the banks themselves."""
    hashes = pinned_hashes()
    for path in [*sorted((ROOT / "results").rglob("*.npz")), *sorted((ROOT / "results-development").rglob("*.npz"))]:
        about = unpack(path).about
        own = SETTINGS[about["config"]["setting"]]
        assert about["bank_sha256"] == hashes[own.key]
        assert about["groups"] == labels_in_shares(own), path


@pytest.mark.parametrize("key", [key for key in SETTINGS if key.endswith("-small") and "doorkey-16" not in key])
def test_labels_of_a_bank(key):
    """A bank lists its contexts group by group, in the setting's shares."""
    own = SETTINGS[key]
    assert load_bank(own).labels([group.name for group in own.groups]) == labels_in_shares(own)


def labels_in_shares(own):
    def of(n):
        counts = [round(group.share * n) for group in own.groups[:-1]]
        return np.repeat(range(len(own.groups)), [*counts, n - sum(counts)])

    names = np.array([group.name for group in own.groups])
    train, held_out = of(own.n_train), of(own.n_held_out)
    oracle = train if own.oracle_sees_groups else np.zeros_like(train)
    return {"train": names[train].tolist(), "held_out": names[held_out].tolist(), "oracle": oracle.tolist()}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "results").rglob("*.npz")), ids=lambda p: "-".join(p.with_suffix("").parts[-3:])
)
def test_a_committed_record_by_plain_numpy(path):
    """Areas, finals and time to solve of every committed run, computed here from the file's arrays alone."""
    with np.load(path) as file:
        at, groups, outcomes, steps = (file[n] for n in ("evaluated_at", "groups", "outcomes", "environment_steps"))
        held_out = json.loads(file["about.json"].tobytes())["held_out"]
    success = np.unpackbits(outcomes, axis=1, count=held_out).mean(axis=1)
    summary, window = summarise(load(path)), (int(at[0]), int(at[-1]))
    width = np.diff(at) / at[-1]
    assert summary.auc(window) == pytest.approx(((success[1:] + success[:-1]) / 2 * width).sum())
    assert summary.worst_auc(window) == pytest.approx(
        ((groups[1:] + groups[:-1]) / 2 * width[:, None]).sum(axis=0).min()
    )
    assert summary.worst_final == pytest.approx(groups[-1].min())
    solved = [i for i in range(len(at) - 2) if groups[i].min() >= 0.9 and groups[i + 1 : i + 3].min() >= 0.8]
    assert summary.solved_window == (at[solved[0]] if solved else None)
    assert summary.solved_steps == (steps[at[solved[0]] - 1] if solved else None)


def test_records_that_do_not_say_what_they_ran_on_are_counted(tmp_path):
    at = np.arange(0, 121, 20)
    gpu = {"backend": "gpu", "device": "Loom 2", "processor": "Abacus 3", "cores": 2, "threads": 1}
    for seed, about in ((100, {}), (101, {"ran_on": gpu}), (102, {"ran_on": {**gpu, "backend": "cpu"}})):
        path = tmp_path / f"results/fetch-air/scout/{seed}.npz"
        write_compact(path, config("fetch-air", seed=seed), {"all": curve(60, at=at)}, **about)
    page = write(tmp_path / "results", tmp_path / "docs").read_text()
    assert "3 records. 1 do not say what they ran on (machine: unknown; `fetch-air` 1)" in page
    assert "| Abacus 3, Loom 2, unknown |" in page
    (tmp_path / "results/fetch-air/scout/100.npz").unlink()
    assert "2 records. All say what they ran on." in write(tmp_path / "results", tmp_path / "docs").read_text()


def planted_page(tmp_path, *runs):
    """The page of records (setting, rule, seed, final, what else): curves that reach ``final`` at window 60."""
    for setting, rule, seed, final, others in runs:
        about = {key: others.pop(key) for key in ("ran_on", "ladder_note") if key in others}
        run_config = config(setting, rule=rule, seed=seed, **others)
        path = tmp_path / f"results/{setting}/{rule}-{run_config['ladder']}/{seed}.npz"
        curves = {"all": curve(60, final=final, at=np.arange(0, 121, 20))}
        write_compact(path, run_config, curves, ladder=about.pop("ladder_note", None), **about)
    return write(tmp_path / "results", tmp_path / "docs").read_text()


def test_the_headline_counts_a_claim_once_and_by_seeds(tmp_path):
    """Two seeds of fetch-air, three of multiroom, one of doorkey-limited: SCOUT ends at 1, the target start at 0."""
    sides = (("scout", 1.0), ("target", 0.0))
    seeds = {"fetch-air": (100, 101), "multiroom": (100, 101, 102), "doorkey-limited": (100,)}
    runs = [(setting, rule, seed, final, {}) for setting, has in seeds.items() for seed in has for rule, final in sides]
    page = planted_page(tmp_path, *runs)
    claims = sum(a.claimed for a in (answer(row, []) for row in rows()) if not a.row.again)
    run_config = page[page.index("So far:") : page.index("| verdict |")]
    # SCOUT's final, and the target start's final and area (0.75 beside 0.838 and 0.633): three claims in each setting
    assert f"So far: {len(rows())} rows, {claims} claims of the paper." in run_config
    assert "On three seeds or more: 3 reproduced. First impressions, on one or two: 3 reproduced." in run_config
    assert f"{claims - 6} are not yet run." in run_config
    assert page.count("| **reproduced** |") == 3
    assert page.count("| reproduced (first impression) |") == 3 + 2  # doorkey-limited's two
    assert "`doorkey-limited` asks 8 a second time, on 1 seed: 2 reproduced, 2 stronger, 4 not yet run" in run_config
    assert "`fetch-withingroup-push` asks 5 a second time: 5 not yet run (claims of `fetch-withingroup`)." in run_config
    for preset in ("paper", "paper-fast"):  # those of fetch-conflict; no row twice
        assert f"Preset `{preset}` asks 5 a second time: 5 not yet run." in run_config
    assert "| reproduced | 6 | 0 | 3 | 3 |" in page
    without = [r for r in rows() if not r.again and not answer(r, []).claimed]  # not run, and no claim for all that
    assert ("fetch-conflict", "random") in {(r.setting, r.rule) for r in without}
    assert f"{len(without)} rows ask about conditions that the paper says nothing about." in run_config


def test_the_page_says_which_differences_the_paper_prints_and_which_are_secondary(tmp_path):
    page = planted_page(tmp_path, ("doorkey", "scout", 100, 1.0, {}), ("doorkey", "target", 100, 0.0, {}))
    assert "| `target` | AUC (secondary) | 0 (tab:sixtask) | 0.000 | +0.27 | +0.750 |" in page
    assert "| `target` | final | 0.46 (tab:sixtask) | 0.000 | ≈ +0.49 | +1.000 |" in page
    assert page.count("AUC is secondary here: the paper's window closes before slow seeds solve") == 2  # and -limited
    assert "| at least +0.36 |" in page  # beside a bound


def test_the_page_says_where_scout_is_behind_and_where_two_learners_are_compared(tmp_path):
    gpu = {"backend": "gpu", "device": "Loom 2", "processor": "Abacus 3", "cores": 2, "threads": 1}
    runs = [("multiroom", "scout", 100, 0.4, {}), ("multiroom", "anneal", 100, 0.8, {"ran_on": gpu})]
    page = planted_page(tmp_path, *runs, ("multiroom", "random", 100, 0.4, {}))
    assert "SCOUT is behind on AUC here: `anneal` (-0.30).  \n" in page
    assert "Two learners in one comparison: `anneal` AUC. Records of one side" in page
    page = planted_page(tmp_path, ("multiroom", "scout", 100, 0.4, {"ran_on": gpu}))
    assert "Two learners in one comparison: `random` AUC. Records of one side" in page


def test_the_papers_areas_and_bootstrap_fraction_stand_beside_ours(tmp_path):
    runs = [("doorkey", "scout", 100, 0.8, {}), ("doorkey", "target", 100, 0.4, {})]
    runs += [("doorkey", "scout", 100, 1.0, {"ladder": "solver"})]
    note = {"ladder_note": {"bootstrap_fraction": 0.25}, "ladder": "policy"}
    page = planted_page(tmp_path, *runs, ("doorkey", "scout", 100, 1.0, note))
    assert "ours 0.300 / 0.600 / 0.750, the paper's 0.259 / 0.451 / 0.541 (tab:auto)." in page
    assert "bootstrap fraction 0.25 (n = 1); the paper's 0.005 (tab:self)." in page


def test_no_records_at_all(tmp_path, capsys):
    (tmp_path / "results").mkdir()
    with pytest.raises(ValueError, match="results holds no records"):
        write(tmp_path / "results", tmp_path)
    assert main(["report", str(tmp_path / "results"), "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("scout: ")
    assert not (tmp_path / "out").exists()
