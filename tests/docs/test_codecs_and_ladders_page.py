"""The example of docs/codecs-and-ladders.md runs, and shows what the page says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "codecs-and-ladders.md"


def test_the_example_runs(tmp_path, monkeypatch):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(example, str(PAGE), "exec"), names)
    assert names["verdict"].ok
    assert names["report"].ok, str(names["report"])
    assert (names["ladder"].n_contexts, names["ladder"].n_levels) == (3, 5)
    assert (tmp_path / "ladder.npz").exists()
    assert names["env"].unwrapped.goal.tolist() == names["observation"]["desired_goal"].tolist()


def test_every_codec_has_a_row():
    from scout_rl.codecs import REGISTRY

    for _, name, _ in REGISTRY:
        assert f"| `{name}` |" in PAGE.read_text()
