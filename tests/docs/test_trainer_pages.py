"""The pages of the trainers and of the concepts: their blocks run in an empty folder and print what they show."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from scout_rl import Curriculum, cli, rules
from tests.docs.pages import in_order, run


@pytest.fixture
def page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda name: run(name, capsys)


def test_concepts(page):
    in_order("concepts.md", page("concepts.md")[1])


def test_own_loop(page, tmp_path):
    _, printed = page("trainer-own-loop.md")
    assert "<Curriculum ability: 20 contexts x 5 levels, window 300, mean frontier 0" in printed
    assert printed.endswith("25\n")
    assert len((tmp_path / "runs/own/evaluations.jsonl").read_text().splitlines()) == 2


def test_device(page, tmp_path):
    pytest.importorskip("jax")
    pytest.importorskip("torch")
    names, printed = page("trainer-device.md")
    in_order("trainer-device.md", printed)
    records = names["records"]
    assert records.windows == len((tmp_path / "runs/device/windows.jsonl").read_text().splitlines()) > 50
    assert (records.frontier == 3).mean() > 0.9
    assert int(names["again"].uncounted) < 1000
    assert abs(float(names["p"].sum()) - 1) < 1e-5
    for command in (["picture", "runs/device"], ["diagnose", "runs/device"]):
        assert cli.main(command) == 0


def test_gymnasium(page):
    pytest.importorskip("gymnasium")
    names, printed = page("trainer-gymnasium.md")
    in_order("trainer-gymnasium.md", printed)
    assert "{'scout_context': 2, 'scout_level': 0}" in printed, "as the comment says"
    assert all(f"{mode} episodes: " in printed for mode in ("NEXT_STEP", "SAME_STEP", "DISABLED"))
    envs, finished = names["in_processes"](2), names["assignments"].finished
    envs.reset(seed=0)
    for _ in range(20):
        envs.step(np.zeros(2, int))
    envs.close()
    assert names["assignments"].finished > finished


def test_sb3(page, tmp_path):
    pytest.importorskip("stable_baselines3")
    names, printed = page("trainer-sb3.md")
    in_order("trainer-sb3.md", printed, skip=("steps",))
    assert "{0: True, 1: True, 2: True, 3: True}" in printed
    rows = list(csv.DictReader((tmp_path / "runs/sb3/progress.csv").open()))
    first = next(row for row in rows if row["scout/eval_success/all"])
    assert float(first["rollout/success_rate"]) > 0.2, "it mixes levels"
    assert float(first["scout/eval_success/all"]) == float(first["scout/eval_worst_group"]) == 0
    assert float([row for row in rows if row["scout/eval_success/all"]][-1]["scout/eval_success/all"]) == 1
    assert any(row["scout/success_level0/all"] for row in rows)
    assert names["her"]._n_updates > 0
    assert names["callback"].evaluations
    assert names["again"].num_timesteps == names["model"].num_timesteps + 1024
    env = names["in_processes"](curriculum := Curriculum(rules.Ability(), 4, 5), 2)
    env.reset()
    for _ in range(40):
        env.step(np.zeros(2, int))
    env.close()
    assert curriculum.windows >= 1
