"""The command line: what a newcomer types, what it prints, what it leaves behind."""

import csv
import errno
import importlib
import io
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import scout_rl
from scout_rl import commands, rules
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.cli import READER_LEFT, main
from scout_rl.files.refusal import Refusal
from scout_rl.simulate import SCENARIOS, SimulatedRun
from tests import golden

QUEUE = Path(__file__).parents[2] / "campaigns/evidence.toml"


def test_simulate_prints_and_writes(tmp_path, capsys):
    code = main(
        ["simulate", "conflict", "--rule", "scout", "anneal", "--seeds", "2", "--no-sweep", "--out", str(tmp_path)]
    )
    assert code == 0
    printed = capsys.readouterr().out
    assert "scout" in printed
    assert "worst group" in printed
    with (tmp_path / "conflict.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["rule"] for row in rows] == ["scout", "anneal"]
    with np.load(tmp_path / "conflict.npz") as data:
        assert data["level.scout"].shape == (161, 40)
        assert data["success.anneal"].shape == (2, 161, 2)
    assert (tmp_path / "conflict.png").read_bytes()[:4] == b"\x89PNG"


def test_simulate_plays_the_huge_bank_only_by_name(tmp_path, monkeypatch):
    """And with few seeds, unless asked for others."""
    module = importlib.import_module("scout_rl.commands.simulate")
    calls = []

    def play_all(played, keys, seeds, *others):
        calls.append(([scenario.key for scenario in played], [seeds or scenario.seeds for scenario in played]))
        raise Refusal("not now")

    monkeypatch.setattr(module, "_play_all", play_all)
    for words in ([], ["huge-bank"], ["huge-bank", "--seeds", "5"]):
        assert main(["simulate", *words, "--out", str(tmp_path)]) == 2
    everything, by_name, asked = calls
    assert everything == ([key for key in SCENARIOS if key != "huge-bank"], [20] * (len(SCENARIOS) - 1))
    assert by_name == (["huge-bank"], [2])
    assert asked == (["huge-bank"], [5])


def test_proposition_alone(tmp_path, capsys):
    assert main(["simulate", "proposition", "--K", "3", "--out", str(tmp_path)]) == 0
    assert "16" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["simulate", "conflikt"], "scout: there is no scenario 'conflikt'; there are homogeneous, conflict"),
        (["simulate", "--rule", "scoot"], "scout: there is no rule 'scoot'; there are scout, target"),
        (["simulate", "--seeds", "0"], "scout: seeds=0 and workers=2 must be at least 1"),
    ],
)
def test_a_wrong_word_is_one_sentence(arguments, sentence, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err.startswith(sentence)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_the_overview_has_one_line_per_command(words, capsys):
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    files = {path.stem for path in Path(commands.__file__).parent.glob("*.py")}
    for name, command in commands.COMMANDS.items():
        assert sum(line.startswith(f"  {name} ") for line in lines) == 1
        assert command.function.partition(":")[0] in files
    assert set(golden.COMMANDS) == set(commands.COMMANDS)
    assert "docs/" in lines[-1]


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"scout-rl {scout_rl.__version__}\n"


def test_a_command_that_does_not_exist_is_one_sentence(capsys):
    assert main(["tain"]) == 2
    assert capsys.readouterr().err == (
        "scout: there is no command 'tain'; did you mean train? scout --help lists the commands\n"
    )


@pytest.mark.parametrize("command", [*commands.COMMANDS, "campaign status"])
def test_every_help_fits_80_columns_and_every_option_has_a_text(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80, out
    assert "\x1b" not in out
    assert "None" not in out
    assert not options_without_a_text(out)


def options_without_a_text(out):
    """Options whose box holds a default alone."""
    boxed = [line.strip("│╭╰─╮╯ ") for line in out.splitlines()]
    starts = [i for i, line in enumerate(boxed) if line.startswith("--")] + [len(boxed)]
    entries = [" ".join(boxed[a:b]) for a, b in itertools.pairwise(starts)]
    return [
        entry for entry in entries if re.fullmatch(r"(--\S+,?\s+)+([A-Z\[{]\S*(\s\[.*\]\])?\s+)?\(default.*", entry)
    ]


def test_an_option_without_a_text_is_found():
    assert options_without_a_text("│ --learner.gamma FLOAT  (default: 0.99)  │")
    assert options_without_a_text("│ --a INT  Text. (default: 1) │\n│ --learner.minibatch INT │\n│  (default: 1) │")
    assert not options_without_a_text("│ --learner.gamma FLOAT  Discount. (default: 0.99)  │")


def test_bare_train_says_what_is_missing_and_trains_nothing(trained, capsys):
    pytest.importorskip("jax")
    assert main(["train"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("scout: which setting? For example: scout train ")
    assert max(map(len, said.splitlines())) <= 80
    for key in [*SETTINGS, *rules.RULES]:
        assert re.search(rf"[ ,]{key.removesuffix('-small')}(,|$)", said, flags=re.M), key
    assert f"Rules ({len(rules.RULES)};" in said
    assert trained == []


def test_the_help_of_train_lists_settings_and_rules(capsys):
    pytest.importorskip("jax")
    for words in ([], ["fetch-air", "--rule", "anneal"]):
        with pytest.raises(SystemExit):
            main(["train", *words, "--help"])
        out = capsys.readouterr().out
        assert "metaworld-pickplace" in out
        assert "group-frontier" in out
    assert "--constants.T-anneal" in out
    assert "--learner.her" in out


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_tables_of_a_simulation_fit_80_columns(name):
    """No name and no number is cut or folded."""
    from scout_rl.commands.grid import narrow_grid
    from scout_rl.simulate.view import table

    scenario = SCENARIOS[name]()
    success = np.full((20, 5, len(scenario.group_names)), 0.951)
    level, unevaluated = np.zeros((5, 1), np.int8), np.full(20, 0.469)
    runs = [SimulatedRun(key, np.arange(5) * 500, success, level, unevaluated) for key in rules.RULES]
    header, rows = table(scenario, runs)
    console = Console(file=io.StringIO(), width=80)
    console.print(narrow_grid(header, rows))
    printed = console.file.getvalue()
    assert max(map(len, printed.splitlines())) <= 80
    assert "…" not in printed
    for row in rows:
        assert re.search(r"\s+".join(map(re.escape, row)), printed), row


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["campaign", "status", str(QUEUE)]])
def test_a_reader_that_leaves_gets_no_traceback(words):
    """``scout ... | head -0``: with the pipe's other end closed before the first word, however much is buffered."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as closed:
        left = subprocess.run(
            [sys.executable, "-m", "scout_rl", *words], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert left.returncode in (1, READER_LEFT)  # 1: rich caught it first
    assert left.stderr == ""


@pytest.mark.parametrize(("preset", "updates"), [("tuned", 128), ("paper", 16), ("paper-fast", 16)])
def test_train_takes_the_presets_constants(monkeypatch, preset, updates):
    """The flags' defaults are the preset's, and what is given stands over them."""
    pytest.importorskip("jax")
    from scout_rl.bench.run.config import RunConfig
    from scout_rl.commands import train

    seen = []
    monkeypatch.setattr(train, "run", lambda config, path, track: seen.append((config, path)) or 0)
    words = ["train", "fetch-conflict", "--preset", preset, "--learner.batch", "64"]
    assert main(words) == 0
    ((config, path),) = seen
    assert config == RunConfig(setting="fetch-conflict", preset=preset, learner={"batch": 64})
    assert config.learner["updates"] == updates
    assert path.name == {"tuned": "40", "paper": "40-paper", "paper-fast": "40-paper_fast"}[preset] + "-batch64"


@pytest.fixture
def trained(monkeypatch):
    """The configs that `scout train` would have trained."""
    pytest.importorskip("jax")
    from scout_rl.commands import train

    seen = []
    monkeypatch.setattr(train, "run", lambda config, path, track: seen.append(config) or 0)
    return seen


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("--seed 41 doorkey-small --windows 4", {"seed": 41, "windows": 4}),
        ("--seed=41 doorkey-small", {"seed": 41}),
        ("--evaluate_every 2 doorkey-small", {"evaluate_every": 2}),
        ("--out fetch-air doorkey-small", {}),  # a folder with the name of another setting
        ("--rule anneal --constants.T-anneal 3 doorkey-small", {"rule": "anneal", "constants": {"T_anneal": 3}}),
        ("--learner.gamma 0.9 doorkey-small --seed 7", {"seed": 7, "learner": {"gamma": 0.9}}),
        ("--constants.beta=0.1 doorkey-small", {"constants": {"beta": 0.1}}),
        ("doorkey-small --seed 41", {"seed": 41}),
    ],
)
def test_train_takes_its_setting_anywhere(trained, words, fields):
    """The usage line shows options before SETTING; the setting decides which options there are."""
    from scout_rl.bench.run.config import RunConfig

    assert main(["train", *words.split()]) == 0
    assert trained == [RunConfig(setting="doorkey-small", **fields)]


@pytest.mark.parametrize("words", ["dorkey", "--seed 41 dorkey", "--learner.gamma 0.9 dorkey", "dorkey --seed 41"])
def test_a_wrong_setting_is_named(trained, capsys, words):
    assert main(["train", *words.split()]) == 2
    said = capsys.readouterr().err
    assert said.startswith("scout: no setting 'dorkey'; the settings are ")
    assert said.count("\n") == 1
    assert trained == []


def test_every_flag_of_train_with_one_value_is_known():
    """Those that stand before a setting; a new one must be listed, or its value would be taken for the setting."""
    pytest.importorskip("jax")
    import inspect

    from scout_rl.commands import train

    names = {"ladder_from": "from", "ladder_fallback": "fallback"}
    arguments = inspect.signature(train.train_command(["train", "--help"])).parameters
    flags = {f"--{names.get(name, name).replace('_', '-')}" for name in arguments} - {"--setting"}
    assert flags - {"--constants", "--learner", "--watch"} == train.ONE_VALUE


@pytest.mark.parametrize(("code", "refused"), [(errno.ENOSPC, True), (errno.EROFS, True), (errno.ENOENT, False)])
def test_only_what_the_disk_refuses_cannot_be_written(tmp_path, monkeypatch, code, refused):
    """Any other error of the system in a training is a mistake of ours, and stays what it is."""
    pytest.importorskip("jax")
    from scout_rl.bench.run import train
    from scout_rl.bench.run.config import RunConfig
    from scout_rl.commands.train import run

    def fail(*arguments, **named):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(train, "train", fail)
    with pytest.raises(Refusal if refused else FileNotFoundError, match=os.strerror(code)):
        run(RunConfig(setting="doorkey-small"), tmp_path / "run")
