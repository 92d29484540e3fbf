"""The example of docs/environment.md runs, and shows what the page says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "environment.md"


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(first, str(PAGE), "exec"), names)
    assert names["verdict"].ok
    assert names["report"].ok, str(names["report"])
    assert not names["report"].warnings, str(names["report"])
    assert (names["ladder"].n_contexts, names["ladder"].n_levels) == (3, 5)
    assert (tmp_path / "ladder.npz").exists()
    assert names["env"].unwrapped.goal.tolist() == names["observation"]["desired_goal"].tolist()
    capsys.readouterr()
    exec(compile(second, str(PAGE), "exec"), names)  # builds on the first
    printed = capsys.readouterr().out.strip()
    assert printed.startswith(re.search(r"print\(own\.sources\)  # (.*) \.\.\.", second)[1])
    assert names["own"].cells[0][3] != names["ladder"].cells[0][3]


def test_every_codec_has_a_row():
    from scout_rl.codecs import REGISTRY

    for _, name, _ in REGISTRY:
        assert f"| `{name}` |" in PAGE.read_text()
