"""One way to write a file: whole or not at all, by any number of processes."""

import os
import subprocess
import sys

import numpy as np
import pytest

from scout_rl.files import atomic
from scout_rl.files.archive import pack, unpack
from scout_rl.files.atomic import sync, write_bytes


def test_the_folder_is_made_and_nothing_else_is_left(tmp_path):
    write_bytes(tmp_path / "a" / "b.json", b"one")
    write_bytes(tmp_path / "a" / "b.json", b"two", durable=True)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.json"]
    assert (tmp_path / "a" / "b.json").read_bytes() == b"two"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_what_fails_leaves_the_old_file(tmp_path, monkeypatch, call):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    write_bytes(tmp_path / "x", b"old")
    monkeypatch.setattr(atomic.os, call, full)
    with pytest.raises(OSError, match="No space"):
        write_bytes(tmp_path / "x", b"new", durable=True)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"old")]


def test_two_processes_that_write_the_same_file(tmp_path):
    code = f"""
from scout_rl.files.atomic import write_bytes
for i in range(300):
    write_bytes({str(tmp_path / "x")!r}, bytes([i % 7]) * 100_000)
"""
    both = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(300) for process in both] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert len(set((tmp_path / "x").read_bytes())) == 1


def test_syncing_passes_over_what_does_not_exist(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    (tmp_path / "x").write_bytes(b"x")
    sync([tmp_path / "x", tmp_path / "gone", tmp_path])
    assert synced == [str(tmp_path / "x"), str(tmp_path)]


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_come_back_as_they_were(compressed):
    """Under any name: `np.savez` has none called `file`."""
    arrays = {
        "file": np.arange(6, dtype=np.int16).reshape(2, 3),
        "a.b/c": np.array([np.nan, -0.0]),
        "text": np.array("é"),
    }
    value = {"b": [1, None, "ü"], "a": 0.1}
    back, restored = unpack(pack(arrays, "about.json", value, compressed=compressed), "about.json")
    assert list(back) == list(arrays)
    assert all(back[name].tobytes() == arrays[name].tobytes() for name in arrays)
    assert (restored, list(restored)) == (value, ["b", "a"])
    with pytest.raises(ValueError, match="array 'x' holds Python objects"):
        pack({"x": np.array([object()])})


@pytest.mark.parametrize("compressed", [False, True])
def test_the_bytes_are_numpys(tmp_path, compressed):
    arrays = {"b": np.arange(1000), "a": np.ones((2, 3), np.float32)}
    (np.savez_compressed if compressed else np.savez)(tmp_path / "x.npz", **arrays)
    assert pack(arrays, compressed=compressed) == (tmp_path / "x.npz").read_bytes()
