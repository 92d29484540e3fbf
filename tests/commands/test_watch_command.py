"""``scout watch`` as a process: its page, its last words; beside a training; and in a notebook."""

import json
import re
import signal
import subprocess
import sys
import time
import types
import urllib.error
import urllib.request

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.cli import main
from scout_rl.commands.watch import beside
from tests.watch.planted import GrowingRun

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


def start(*words):
    process = subprocess.Popen(
        [sys.executable, "-m", "scout_rl", "watch", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    return process, line, re.search(r"http://\S+", line)[0] if "http" in line else ""


def get(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=200) as answer:
        return answer.read()


def test_a_page_until_it_is_stopped_and_then_the_alerts(tmp_path):
    run = GrowingRun(tmp_path / "bad", rule=rules.Scout(n_min=5)).play(120, lambda cells, w: np.zeros(16, bool))
    before = {path: path.stat().st_mtime_ns for path in [run.folder, *run.folder.rglob("*")]}
    process, line, url = start(tmp_path, "--no-open", "--port", "0")
    assert line == f"watching {tmp_path} at {url} (ctrl-C ends it)\n"
    assert url.startswith("http://127.0.0.1:")
    (row,) = json.loads(get(f"{url}api/overview"))["runs"]
    assert row["name"] == "bad"
    assert b"<html" in get(url)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(url, Host="evil.example")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert out.startswith("alert: bad: Every context is hopeless at the easiest level")
    assert (process.returncode, err) == (0, "")
    assert before == {path: path.stat().st_mtime_ns for path in [run.folder, *run.folder.rglob("*")]}


def test_another_host_prints_a_token(tmp_path):
    GrowingRun(tmp_path / "run").play(2)
    process, line, _ = start(tmp_path, "--no-open", "--port", "0", "--host", "0.0.0.0")
    port, token = re.search(r":(\d+)/\?token=(\S{20,})", line).groups()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(f"http://127.0.0.1:{port}/")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(f"http://127.0.0.1:{port}/?token={token}", timeout=200) as answer:
        assert b"<html" in answer.read()
    process.send_signal(signal.SIGINT)
    assert process.wait(200) == 0


def test_wrong_words(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["watch", "nothing"]) == 2
    assert capsys.readouterr().err == (
        "scout: nothing does not exist: name a run folder, or a folder that holds some\n"
    )
    assert main(["watch"]) == 2
    assert capsys.readouterr().err.startswith("scout: runs does not exist")
    assert main(["watch", str(tmp_path), "--no-open", "--port", "1", "--host", "203.0.113.1"]) == 2
    assert "port 1 of 203.0.113.1 cannot be taken" in capsys.readouterr().err


def test_on_a_terminal(tmp_path, capsys):
    GrowingRun(tmp_path / "run").play(3)
    assert main(["watch", str(tmp_path), "--tui"]) == 0
    assert "3/400" in capsys.readouterr().out


def test_beside_a_training(tmp_path, capsys):
    """It sees the run that the block plays, and ends with the block."""
    with beside(tmp_path / "runs" / "run"):
        url = re.search(r"http://\S+/", capsys.readouterr().out)[0]
        GrowingRun(tmp_path / "runs" / "run", rule=rules.Scout(n_min=5)).play(120, lambda cells, w: np.zeros(16, bool))
        end = time.monotonic() + 200
        while not json.loads(get(f"{url}api/overview"))["runs"]:
            assert time.monotonic() < end
            time.sleep(0.2)
    assert capsys.readouterr().out.startswith("alert: run: Every context is hopeless")
    with pytest.raises(urllib.error.URLError):
        get(url)


def test_scout_train_opens_it(tmp_path, monkeypatch):
    pytest.importorskip("jax")
    from scout_rl.commands import train

    seen = []

    class Beside:
        def __init__(self, path):
            self.path = path

        def __enter__(self):
            seen.append(("open", self.path))

        def __exit__(self, *error):
            seen.append(("closed", self.path))

    monkeypatch.setattr(train, "beside", Beside)
    monkeypatch.setattr(train, "run", lambda config, path, track: seen.append(("train", path)) or 0)
    assert main(["train", "--watch", "doorkey-small", "--out", str(tmp_path)]) == 0
    path = tmp_path / "doorkey-small" / "scout" / "40"
    assert seen == [("open", path), ("train", path), ("closed", path)]
    seen.clear()
    assert main(["train", "doorkey-small", "--out", str(tmp_path)]) == 0
    assert seen == [("train", path)]


def test_in_a_notebook(monkeypatch):
    display = types.ModuleType("IPython.display")
    display.IFrame = lambda *arguments: arguments
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    from scout_rl.watch import frame

    assert frame(8123) == ("http://localhost:8123/", "100%", 900)
