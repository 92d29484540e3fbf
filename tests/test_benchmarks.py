"""The scripts behind the printed numbers: each can be started as its own text and the docs say."""

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.report.planted import played_folder

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py"))
SCRIPTS = [name for name in MODULES if "__main__" in (FOLDER / f"{name}.py").read_text()]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(FOLDER.glob("*.py"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_name_scripts_in_the_one_way_that_works(page):
    text = page.read_text()
    assert not re.findall(r"python3? benchmarks/\w+\.py", text), "python -m benchmarks.NAME, from the project's root"
    for name in re.findall(r"-m benchmarks\.(\w+)", text):
        assert name in SCRIPTS, f"{page.name} names benchmarks.{name}"


def test_no_script_hides_a_package():
    """Started by its path, a script's folder comes first: a minigrid.py there would be found before the package."""
    for name in MODULES:
        assert importlib.util.find_spec(name) is None, f"benchmarks/{name}.py has the name of an installed module"


def test_every_script_has_help_and_knows_the_options_it_shows():
    for name in SCRIPTS:
        source = (FOLDER / f"{name}.py").read_text()
        assert "ArgumentParser(" in source, f"benchmarks/{name}.py measures when asked for --help"
        shown = {o for line in _doc(source).splitlines() if f"benchmarks.{name}" in line for o in _options(line)}
        for option in shown:
            assert f'"{option}"' in source, f"benchmarks/{name}.py shows {option} and does not take it"


RECORD = "results/doorkey-limited/random/100.npz"
SHORT = {
    "brax_curves": ["--seeds", "40", "--steps", "1", "--envs", "16", "--curves", "{out}/c", "--picture", "{out}/c.png"],
    "brax_overhead": ["--envs", "16", "--contexts", "4", "--iterations", "1", "--rounds", "1"],
    "calibration": [RECORD, "--windows", "20"],
    "campaign_time": ["campaigns/annealing-small.toml", "--windows", "6"],
    "conflict_geometry": ["--windows", "1", "--updates", "1"],
    "controller": ["--rounds", "1"],
    "demo_bank": ["--seeds", "40", "--windows", "2", "--evaluate-every", "2", "--out", "{out}"],
    "device_closing": ["--contexts", "20", "--sizes", "16", "--rounds", "1"],
    "device_overhead": ["--environments", "32", "--contexts", "20", "--calls", "20", "--rounds", "1"],
    "device_draw": ["--draws", "16", "--contexts", "20", "--rounds", "1"],
    "doorkey_limit": ["--limit", "100", "--windows", "1"],
    "environments": ["--families", "pointmaze", "--rounds", "1"],
    "frozen_lake": ["--windows", "2", "--seeds", "1"],
    "learners": ["--updates", "1", "--rounds", "1"],
    "made_again": ["results", "results"],
    "minigrid_speed": ["--rounds", "1"],
    "one_thing": ["doorkey-small", "-", "--windows", "2", "--out", "{out}"],
    "pictures": ["--only", "solved", "--out", "{out}"],
    "scenarios": ["--scenario", "homogeneous", "--rule", "target", "--seeds", "1", "--workers", "1"],
    "table_time": ["--campaign", "campaigns/annealing-small.toml", "--windows", "2"],
    "training": ["--rounds", "1", "--updates", "1"],
    "trl_rules": ["{out}", "--rules", "ability", "--seeds", "40", "--taught", "2", "--steps", "20"],
    "watch": [
        *("--runs", "3", "--windows", "40", "--contexts", "10", "--large", "30"),
        *("--blocks", "1", "--block", "3", "--rounds", "2"),
    ],
    "window_length": ["results/doorkey-limited", "scout", "random"],
    "window_profile": ["doorkey-small:tuned", "pointmaze-medium-small:tuned", "--windows", "2"],
    "window_size": [
        "--bank",
        "homogeneous",
        "--rule",
        "ability",
        "--size",
        "16",
        "--update",
        "16",
        "--seeds",
        "1",
        "--workers",
        "1",
    ],
    "withingroup": ["--windows", "1"],
    "wrapper": ["--seconds", "0.01", "--rounds", "1", "--builds", "1", "--skip-fetch", "--skip-async"],
}
"""A short mode of every script."""


def test_every_script_has_a_short_mode():
    assert sorted(SHORT) == SCRIPTS


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_runs_in_short(name, tmp_path):
    """As the docs start it, with a smaller budget; peers that are not installed are skipped by the script itself."""
    arguments = [argument.format(out=tmp_path) for argument in SHORT[name]]
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("update", [16, 256])
def test_the_largest_windows_of_the_page_are_what_the_rule_does(update):
    """The last row of docs/trainer-own-loop.md's tables, where the blocks of `ability` are largest."""
    from benchmarks.window_size import rollouts_to_solve, text

    table = (ROOT / "docs/trainer-own-loop.md").read_text().split(f"after {update} rollouts:")[1]
    cells = re.search(r"\| 1,024 \| (\S+) \| \S+ \| (\S+) \|", table).groups()
    for bank, cell in zip(("homogeneous", "conflict"), cells, strict=True):
        assert text([rollouts_to_solve(bank, "ability", 1024, update, seed) for seed in range(6)]) == cell, bank


def test_every_development_script_says_what_it_takes():
    """Those that train on development seeds need nothing beyond the package."""
    pytest.importorskip("jax")
    pytest.importorskip("minigrid")
    names = [n for n in SCRIPTS if "benchmarks.development" in (FOLDER / f"{n}.py").read_text()]
    assert len(names) >= 3
    code = f"""
import importlib, io, sys, contextlib
for name in {names!r}:
    sys.argv = [name, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as told, contextlib.suppress(SystemExit):
        importlib.import_module("benchmarks." + name).main()
    assert "--seed" in told.getvalue(), name
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "candidate"), [pytest.param("learners", "torch_loop", marks=pytest.mark.slow), ("training", "sbx")]
)
def test_workers_start_from_anywhere(tmp_path, monkeypatch, name, candidate):
    """With the command that the script makes; a peer that is not installed says so itself."""
    pytest.importorskip("jax")
    pytest.importorskip("torch")
    from benchmarks import rounds

    commands = {}
    monkeypatch.setattr(rounds, "measure", lambda given, n: commands.update(given) or {name: [1.0] for name in given})
    monkeypatch.setattr(sys, "argv", [name, "--updates", "1", "--rounds", "1"])
    importlib.import_module(f"benchmarks.{name}").main()
    monkeypatch.chdir(tmp_path)
    worker = rounds.Worker(candidate, commands[candidate])
    try:
        assert worker.skipped or worker.round() > 0
        assert candidate == "sbx" or worker.skipped is None
    finally:
        worker.close()


def _doc(source):
    return ast.get_docstring(ast.parse(source)) or ""


def _options(line):
    return re.findall(r"--[a-z-]+", line)


def test_one_thing_varied():
    """A variation is the run as asked but for the one thing; what is nobody's field is refused by its name."""
    pytest.importorskip("jax")
    from benchmarks.one_thing import varied

    from scout_rl.bench.run.config import RunConfig

    common = {"setting": "fetch-conflict", "windows": 700}
    same, gate, rates = (varied(v, **common) for v in ("-", "constants.n_min=5", "rule=anneal,learner.tau=0.02"))
    assert same == RunConfig(setting="fetch-conflict", windows=700)
    assert gate.constants == {**same.constants, "n_min": 5}
    assert gate.learner == same.learner
    assert (rates.rule, rates.learner) == ("anneal", {**same.learner, "tau": 0.02})
    with pytest.raises(ValueError, match="rule 'scout' has no constant 'n_max'"):
        varied("constants.n_max=5", **common)
    for wrong in ("ladder.n=5", "constants=5", "nonsense", "constants.n_min", "setting=doorkey"):
        with pytest.raises(ValueError, match="is no NAME=VALUE of constants"):
            varied(wrong, **common)


def test_the_table_of_one_thing_by_hand(tmp_path):
    """Over the windows that all have, 0 to 20. AUC is the smaller of two areas, not that under the lower curve: easy
    0, 1, 0 and hard 1, 0, 1 cross, and both areas are a half."""
    pytest.importorskip("jax")
    from benchmarks.one_thing import table

    def run(easy, hard):
        return 10 * np.arange(len(easy)), {"easy": np.array(easy), "hard": np.array(hard)}

    longer = run([1] * 5, [1, 0.9, 0.8, 0, 0])
    told = table({"-": run([0, 1, 1], [0, 0.5, 1]), "x=1": longer, "y=1": run([0, 1, 0], [1, 0, 1])})
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in told.splitlines()]
    assert rows[0][:2] == ["variation", "AUC to 20"]
    assert rows[2] == ["`-`", "0.50", "0.67 / 1.00 / 10", "0.50 / 1.00 / 20", "never"]
    assert rows[3] == ["`x=1`", "0.90", "1.00 / 1.00 / 0", "0.90 / 1.00 / 0", "0"]
    assert rows[4] == ["`y=1`", "0.50", "0.33 / 1.00 / 10", "0.67 / 1.00 / 0", "never"]


def test_the_table_of_one_thing_is_of_whole_records(tmp_path):
    """Curves of a run folder; one that is not there or has nothing to tell is named, and what train would do said."""
    pytest.importorskip("jax")
    from benchmarks.one_thing import curves

    at, by_group = curves(played_folder(tmp_path / "run", 60, reach=40))
    assert at.tolist() == [0, 20, 40, 60]
    assert by_group["all"].tolist() == [0, 0.5, 1, 1]
    with pytest.raises(ValueError, match="nowhere is not there: leave out --tell"):
        curves(tmp_path / "nowhere")
    text = (tmp_path / "run/evaluations.jsonl").read_text()
    (tmp_path / "run/evaluations.jsonl").write_text(text.replace('"success": 0.5', '"success": 0.9'))
    with pytest.raises(ValueError, match="evaluations"):
        curves(tmp_path / "run")


def test_calibration_of_recorded_outcomes(tmp_path, monkeypatch, capsys):
    """A short mode of the command that the docs print: the model predicts better than counts per cell."""
    pytest.importorskip("matplotlib")
    from benchmarks import calibration

    record = ROOT / "results/doorkey-limited/random/100.npz"
    figure = tmp_path / "reliability.png"
    monkeypatch.setattr(sys, "argv", ["calibration", str(record), "--windows", "60", "--figure", str(figure)])
    calibration.main()
    row = capsys.readouterr().out.splitlines()[-1]
    _, setting, runs, outcomes, ability, beta, *_ = [cell.strip() for cell in row.split("|")]
    assert (setting, runs, outcomes) == ("doorkey-limited", "1", "960")
    assert float(ability) < float(beta)
    assert figure.stat().st_size > 10_000


def test_log_loss_by_hand():
    """Two outcomes at 0.8: a success costs -log 0.8 = 0.2231, a failure -log 0.2 = 1.6094; their mean is 0.9163."""
    from benchmarks.calibration import log_loss

    assert abs(log_loss(np.array([1, 0]), np.array([0.8, 0.8])) - 0.9163) < 1e-4


def test_frozen_lake_in_short(monkeypatch, capsys):
    pytest.importorskip("gymnasium")
    from benchmarks import frozen_lake

    monkeypatch.setattr(sys, "argv", ["frozen_lake", "--windows", "10", "--seeds", "1"])
    frozen_lake.main()
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == list(frozen_lake.RULES)
    assert all(len(row.split()) == 11 for row in rows)


@pytest.mark.usefixtures("shared_parts")
@pytest.mark.slow
def test_the_demos_bank_in_short(tmp_path, monkeypatch, capsys):
    """Six windows of every run; a second call reads them and says the same."""
    pytest.importorskip("jax")
    pytest.importorskip("minigrid")
    from benchmarks import demo_bank

    short = ["--seeds", "40", "--windows", "6", "--evaluate-every", "2", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["demo_bank", *short])
    demo_bank.main()
    told = capsys.readouterr().out
    assert told.splitlines()[0] == "doorkey-limited-small, 6 windows"
    row = [cell.strip() for cell in told.splitlines()[-1].strip("|").split("|")]
    assert row == ["40", "0.00", "never", "never", "never", "yes", "yes"]
    assert not list(tmp_path.rglob("ability*"))
    demo_bank.main()
    assert capsys.readouterr().out == told


def test_the_criteria_of_the_demos_bank_by_hand():
    """Of 60 windows: 0.9 at 20 is not held (0.7 at 30), at 40 it is; the half is 30. The best length decides."""
    pytest.importorskip("jax")
    from benchmarks.demo_bank import verdict

    def run(*success):
        return 10 * np.arange(len(success)), {"all": np.array(success)}

    late = run(0, 0.1, 0.9, 0.7, 0.9, 0.8, 0.8)
    runs = {"target": run(0, 0.5, 0.1), "anneal 10": run(0, 0, 0, 0, 0, 0.9, 1), "anneal 20": late}
    assert verdict(runs, 60) == ["0.10", "never", "40", "yes", "yes"]
    early = run(0, 0, 0.9, 0.8, 0.8, 0, 0)
    assert verdict({"target": run(0, 0.2), "anneal 10": early, "anneal 20": late}, 60) == [
        "0.20",
        "20",
        "40",
        "no",
        "no",
    ]


def test_the_picture_of_starts_is_what_the_records_give():
    """The heat maps of the committed picture, redrawn; the colours go from the easiest start to the real one."""
    pytest.importorskip("matplotlib")
    from benchmarks import pictures
    from PIL import Image

    from scout_rl.report.read.runs import load

    runs = {rule: load(pictures.RECORDS / path) for rule, path in pictures.RUNS.items()}
    moving = pictures.Moving(runs, [pictures.Layout(np.full((5, 5), 2), (1, 1))] * 5)
    before, after = moving.frame(0), moving.frame(pictures.SHOWN)
    still = np.asarray(Image.open(pictures.IMAGES / "starts.png").convert("RGB"))
    yellow, dark = [253, 231, 36], [68, 1, 84]
    for image in moving.images.values():
        box = image.axes.get_window_extent()
        rows = slice(len(after) - int(box.y1) + 3, len(after) - int(box.y0) - 3)
        columns = slice(int(box.x0) + 3, int(box.x1) - 3)
        assert (before[rows, columns] == 255).all()
        assert (after[rows, columns] == still[rows, columns]).mean() > 0.999, "run make pictures"
        early, late = after[rows, columns][:, 10:30].astype(int), after[rows, columns][:, -20:].astype(int)
        assert (np.abs(early - yellow) < 2).all(2).mean() > 0.25 > 0.01 > (np.abs(late - yellow) < 2).all(2).mean()
        assert (np.abs(late - dark) < 2).all(2).mean() > 0.8


def test_the_moving_picture_is_small_and_loops():
    pytest.importorskip("PIL")
    from PIL import Image

    path = ROOT / "docs/images/starts.gif"
    assert path.stat().st_size < 500_000
    with Image.open(path) as moving:
        assert moving.info["loop"] == 0
        assert moving.width == 800
        times = []
        for frame in range(moving.n_frames):
            moving.seek(frame)
            times.append(moving.info["duration"])
    assert 6_000 <= sum(times) <= 8_500
    assert len(times) > 30


def test_the_picture_of_starts_shows_an_average_seed():
    """Of the evaluation seeds, the one whose ratio of windows to solve is closest to the geometric mean."""
    from benchmarks import pictures

    from scout_rl.report.measure.metrics import summarise
    from scout_rl.report.read.runs import load

    def solved(rule, seed):
        folder, name = (pictures.RECORDS / pictures.RUNS[rule]).parent, Path(pictures.RUNS[rule]).name
        return summarise(load(folder / f"{seed}-{name.partition('-')[2]}")).solved_window

    ratios = np.log([solved("ability", seed) / solved("anneal", seed) for seed in range(100, 106)])
    nearest = 100 + int(np.abs(ratios - ratios.mean()).argmin())
    assert all(Path(path).name.startswith(f"{nearest}-") for path in pictures.RUNS.values())


def test_latest_starts_by_hand():
    """Two contexts, four windows: context 0 starts at level 2 and later at 0, context 1 once, in window 1."""
    from types import SimpleNamespace

    from benchmarks.pictures import latest_starts

    rollouts = SimpleNamespace(window=np.array([0, 1, 3]), context=np.array([0, 1, 0]), level=np.array([2, 1, 0]))
    levels = latest_starts(SimpleNamespace(about=SimpleNamespace(windows=4, n_contexts=2), rollouts=rollouts))
    np.testing.assert_array_equal(levels, [[2, np.nan], [2, 1], [2, 1], [0, 1]])


def test_the_figure_of_results_by_hand(monkeypatch):
    """200, 400 and 800 windows beside 100 each: 4 times. A row with other constants than the paper's is not shown."""
    from benchmarks import pictures

    from scout_rl.bench.reproduction.one_rule import Row

    def row(rule, *scores, label=None):
        return Row(rule, label or f"`{rule}`", 1000, dict(zip((100, 101, 102), map(float, scores), strict=True)))

    monkeypatch.setattr(pictures, "RIVALS", ("scout", "rfcl"))
    rows = [row("ability", 100, 100, 100), row("scout", 200, 400, 800), row("rfcl", 50, 50, 50)]
    rows += [row("scout", 1, 1, 1, label="`scout` (n_min 5)")]
    first, second = pictures.rivals({"multiroom": rows, "doorkey": rows})
    assert (first.rule, second.rule) == ("rfcl", "scout")
    assert first.pooled == pytest.approx((0.5, 0.5, 0.5))
    assert second.by_setting["doorkey"][0] == pytest.approx(4)
    assert second.pooled[0] == pytest.approx(4)
    assert 2 < second.pooled[1] < 4 < second.pooled[2] < 8


def test_the_readmes_ratios_are_those_of_the_page():
    """How many times as many windows: one over the ratio that docs/one-rule.md has."""
    page, readme = (ROOT / "docs/one-rule.md").read_text(), (ROOT / "README.md").read_text()
    for rule, sentence in {
        "`anneal` (best length)": r"shared schedule needs (\d\.\d) times",
        "`rfcl`": r"`rfcl` (\d\.\d) times",
        "`scout`": r"rule `scout` (\d\.\d) times",
    }.items():
        (ratio,) = re.findall(rf"^\| {re.escape(rule)} \| 30 \| ([\d.]+) \|", page, flags=re.M)
        (times,) = re.findall(sentence, readme)
        assert abs(float(times) - 1 / float(ratio)) < 0.1
    assert "`multiroom` (1,000) | `rfcl` | 6 | 368 |" in page
    assert "`multiroom` (1,000) | `ability` | 6 | 411 |" in page
