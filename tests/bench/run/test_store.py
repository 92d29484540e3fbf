"""Runs kept behind a URL: what is copied, in which order; a death between any two copies leaves a whole run."""

import importlib.util
import inspect

import numpy as np
import pytest

from scout_rl.bench.run import checkpoint
from scout_rl.bench.run.store import MANIFEST, Store, UrlStore, open_store

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'scout-rl[ray]'")
NAME = "setting/rule/40"


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path, monkeypatch):
    monkeypatch.setenv("SCOUT_CACHE", str(tmp_path / "cache"))
    return open_store(f"{request.param}://{tmp_path}/kept")


def train_to(store, windows):
    """What a run's home holds after a checkpoint at ``windows``."""
    home = store.local_folder(NAME)
    home.mkdir(parents=True, exist_ok=True)
    (home / "windows.jsonl").write_text("".join(f'{{"window":{i}}}\n' for i in range(windows)))
    (home / "run.json").write_text("{}")
    segment = {f"replay-{windows}": {"episodes": np.arange(windows)}}  # what later checkpoints may name again
    learner = {"learner": {"w": np.arange(windows)}}
    if "new" in inspect.signature(checkpoint.write).parameters:
        checkpoint.write(home / "checkpoints", windows, "id", learner, {}, new=segment)
        return
    shared = home / "checkpoints" / "shared"
    shared.mkdir(parents=True, exist_ok=True)
    (shared / f"replay-{windows}.npz").write_bytes(bytes(windows))
    (shared / f"replay-{windows - 4}.npz").unlink(missing_ok=True)
    checkpoint.write(home / "checkpoints", windows, "id", learner, {})


def test_a_folder_is_trained_in_and_a_url_is_not(tmp_path):
    assert type(open_store(str(tmp_path))) is Store
    assert open_store(str(tmp_path)).local_folder(NAME) == tmp_path / NAME
    store = open_store(f"file://{tmp_path}/kept")
    assert isinstance(store, UrlStore)
    assert tmp_path / "kept" not in store.local_folder(NAME).parents


@pytest.mark.parametrize("url", ["nonsense://a/b", "s3://bucket/runs"])
def test_a_url_that_cannot_be_opened_is_a_sentence(url):
    if url.startswith("s3") and importlib.util.find_spec("s3fs"):
        url = "nonsense://a"
    with pytest.raises(ValueError, match=f"fsspec cannot open {url}: "):
        open_store(url)


def test_small_files(store, tmp_path):
    for one in (store, Store(str(tmp_path / "folder"))):
        assert one.read("a/b.json") is None
        one.write("a/b.json", b"0123456789")
        assert one.read("a/b.json") == b"0123456789"
        assert one.read("a/b.json", last=3) == b"789"
        assert one.read("a/b.json", last=30) == b"0123456789"
        one.delete("a/b.json")
        one.delete("a/b.json")
        assert one.read("a/b.json") is None


def test_pushed_and_pulled_a_run_is_the_same(store, tmp_path, monkeypatch):
    for windows in (2, 4, 6):
        train_to(store, windows)
        store.push(NAME)
    home = store.local_folder(NAME)
    before = {path.relative_to(home): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert {path.parts[1] for path in before if len(path.parts) == 3} == {"00000004", "00000006", "shared"}
    assert store.checkpoints(NAME) == [4, 6]
    assert store.checkpoints("setting/rule/41") == []
    (home / "left-over").write_text("of an earlier attempt")
    store.pull(NAME)
    assert {path.relative_to(home): path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    with store.reading(NAME) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["run.json", "windows.jsonl"]


def test_a_death_between_any_two_copies_leaves_a_whole_run(store, monkeypatch):
    """Die at every single write to the storage; what is there then has a checkpoint and at least its rows."""
    train_to(store, 2)
    store.push(NAME)
    train_to(store, 4)
    store.push(NAME)
    writes, fs = 0, store._fs
    plain = {name: getattr(fs, name) for name in ("pipe_file", "mv", "rm_file", "rm")}

    class DeadError(Exception):
        pass

    def dying(call):
        def one(*arguments, **named):
            nonlocal left
            left -= 1
            if left == 0:
                raise DeadError
            return call(*arguments, **named)

        return one

    for death in range(1, 30):
        left = death
        train_to(store, 6)
        for name, call in plain.items():
            monkeypatch.setattr(fs, name, dying(call))
        try:
            store.push(NAME)
            finished = True
        except DeadError:
            finished = False
        for name, call in plain.items():
            monkeypatch.setattr(fs, name, call)
        if finished:
            break
        writes += 1
        store.pull(NAME)
        newest = checkpoint.newest(store.local_folder(NAME) / "checkpoints", "id", lambda sentence: None)
        rows = (store.local_folder(NAME) / "windows.jsonl").read_text().count("\n")
        assert newest is not None
        assert newest.window in (4, 6)
        assert rows >= newest.window
        assert (store.local_folder(NAME) / "checkpoints/shared" / f"replay-{newest.window}.npz").exists()
    assert writes >= 4
    assert store.read(f"{NAME}/checkpoints/00000006/{MANIFEST}") is not None
    assert store.read(f"{NAME}/checkpoints/00000002/{MANIFEST}") is None
