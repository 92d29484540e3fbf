"""Pages of trainers that have environments of their own: slow tests of tests/integrations run these there."""

from __future__ import annotations

import pytest

from scout_rl import Curriculum
from tests.docs.pages import in_order, run


def test_brax(tmp_path, monkeypatch, capsys):
    pytest.importorskip("brax", reason="Brax has an environment of its own: make brax")
    monkeypatch.chdir(tmp_path)
    names, printed = run("trainer-brax.md", capsys)
    in_order("trainer-brax.md", printed)
    assert printed.count(": success 0.0") == 3, "too short a training to learn anything"
    assert isinstance(names["records"], Curriculum)
    assert names["records"].windows > 5
    assert len((tmp_path / "runs/brax/windows.jsonl").read_text().splitlines()) == names["records"].windows
    assert (tmp_path / "runs/brax.npz").is_file()


def test_isaac(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mjlab", reason="mjlab has an environment of its own: make mjlab")
    monkeypatch.chdir(tmp_path)
    names, printed = run("trainer-isaac.md", capsys)
    in_order("trainer-isaac.md", printed)
    assert names["records"].windows > 0
    assert (tmp_path / "runs/isaac/windows.jsonl").exists()
    assert (tmp_path / "runs/isaac.npz").is_file()
