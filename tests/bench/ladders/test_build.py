"""Ladders on disk: read back equal, rebuilt when damaged, whole after a kill."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from scout_rl.bench.families import load_bank
from scout_rl.bench.ladders import build as ladder_build
from scout_rl.bench.ladders.build import Wanted, load_ladder
from scout_rl.bench.settings.settings import SETTINGS

SETTING = SETTINGS["pointmaze-medium-small"]


@pytest.fixture
def contexts(tmp_path, monkeypatch):
    monkeypatch.setenv("SCOUT_CACHE", str(tmp_path))
    return load_bank(SETTING).train.contexts


def load(contexts, n_levels=5, source="manual", say=print):
    return load_ladder(Wanted(SETTING, contexts, n_levels), source, say)[0]


def files(tmp_path):
    return sorted((tmp_path / "ladders").iterdir())


def equal(a, b):
    return set(a) == set(b) and all(np.array_equal(a[n], b[n]) and a[n].dtype == b[n].dtype for n in a)


def test_the_second_time_it_is_read(contexts, tmp_path, monkeypatch):
    built = load(contexts)
    monkeypatch.setattr(ladder_build, "build_ladder", lambda *_: pytest.fail("built again"))
    assert equal(built, load(contexts))
    assert len(files(tmp_path)) == 1


def test_other_contexts_levels_sources_and_code_have_files_of_their_own(contexts, tmp_path, monkeypatch):
    load(contexts)
    load(contexts, 9)
    load(contexts, source="solver")
    load({name: array[:3] for name, array in contexts.items()})
    monkeypatch.setattr(ladder_build, "code_hash", lambda *patterns: "an edit")
    load(contexts)
    assert len(files(tmp_path)) == 5


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_file_is_noticed_and_built_again(contexts, tmp_path, damage):
    built = load(contexts)
    (path,) = files(tmp_path)
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        middle = len(content) // 2
        content[middle : middle + 500] = bytes(500)
    path.write_bytes({"cut": content[: len(content) // 2], "flipped": content, "empty": b""}[damage])
    messages = []
    assert equal(built, load(contexts, say=messages.append))
    assert any("damaged" in sentence and "built again" in sentence for sentence in messages)
    messages.clear()
    assert equal(built, load(contexts, say=messages.append))
    assert not messages


def test_an_invalid_ladder_is_refused_and_not_kept(contexts, tmp_path, monkeypatch):
    from scout_rl.bench.families import pointmaze

    starts = pointmaze.PointMaze.starts

    def broken(self, contexts, n_levels):
        ladder = starts(contexts, n_levels)
        ladder["qvel"][3, 2] = np.inf
        return ladder

    monkeypatch.setattr(pointmaze.PointMaze, "starts", broken)
    with pytest.raises(ValueError, match=r"the manual ladder is invalid: 1 of 80 cells invalid[\s\S]*cell \(3, 2\)"):
        load(contexts)
    assert not (tmp_path / "ladders").exists() or not files(tmp_path)


PROGRAM = """
import os, pathlib, signal, sys
from scout_rl.files import archive
from scout_rl.bench.families import load_bank
from scout_rl.bench.ladders.build import Wanted, load_ladder
from scout_rl.bench.settings.settings import SETTINGS
def killed_in_the_middle(path, content):
    path.parent.mkdir()
    pathlib.Path(f"{path}.1.partial").write_bytes(content[: len(content) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
archive.write_bytes = killed_in_the_middle
load_ladder(Wanted(SETTINGS[sys.argv[1]], load_bank(SETTINGS[sys.argv[1]]).train.contexts, 5))
"""


def test_a_kill_in_the_middle_of_writing_leaves_nothing_that_is_read(contexts, tmp_path):
    environment = {**os.environ, "SCOUT_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM, SETTING.key], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.suffix for path in files(tmp_path)] == [".partial"]
    messages = []
    ladder = load(contexts, say=messages.append)
    assert not any("damaged" in sentence for sentence in messages)
    assert equal(ladder, load(contexts))
