"""``scout new``: what it writes runs as it is."""

import subprocess
import sys

import pytest

from scout_rl.cli import main


def run(file, *words):
    return subprocess.run(
        [sys.executable, file.name, *words], cwd=file.parent, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.fixture
def skeleton(tmp_path, capsys):
    pytest.importorskip("stable_baselines3")
    assert main(["new", str(tmp_path / "my_env.py")]) == 0
    return tmp_path / "my_env.py"


def test_the_skeleton_trains_evaluates_and_can_be_looked_at(skeleton, capsys):
    assert capsys.readouterr().out.splitlines()[-1] == f"next: python {skeleton}"
    assert "python my_env.py" in skeleton.read_text()
    plain, helped, further = run(skeleton, "--steps", "600")
    assert plain.startswith("plain training:    0 of 4")
    assert helped.startswith("with a curriculum: ")
    assert further == "next: scout picture runs/lock-1, then scout diagnose runs/lock-1/ability"
    runs = skeleton.parent / "runs"
    assert main(["picture", str(runs)]) == 0
    drawn = [runs / "lock-1" / name / "frontier.png" for name in ("ability", "plain")]
    assert capsys.readouterr().out.splitlines() == [*map(str, drawn), f"next: scout report {runs}"]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in drawn)
    assert main(["picture", str(runs), "--out", str(runs / "pictures")]) == 0
    assert {path.name for path in (runs / "pictures").iterdir()} == {"lock-1-ability.png", "lock-1-plain.png"}
    assert main(["diagnose", str(runs / "lock-1" / "ability")]) == 0


@pytest.mark.slow
def test_the_curriculum_opens_every_lock_and_plain_training_none(skeleton):
    plain, helped, _ = run(skeleton)
    assert plain == "plain training:    0 of 4 locks opened from the target start"
    assert helped == "with a curriculum: 4 of 4 locks opened from the target start"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("taken.py", "taken.py exists already: choose another name"),
        ("my_env", "my_env is no name of a Python file: choose one such as my_env.py"),
        ("my-env.py", "my-env.py is no name of a Python file: choose one such as my_env.py"),
        ("numpy.py", "numpy.py would hide the module 'numpy' from what it imports: choose another name"),
    ],
)
def test_a_file_that_would_do_harm_is_refused(name, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.py").write_text("mine")
    assert main(["new", name]) == 2
    assert capsys.readouterr().err == f"scout: {sentence}\n"
    assert (tmp_path / "taken.py").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["taken.py"]
