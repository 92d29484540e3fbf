"""``scout verify-codec``: environments and codecs by the names that one types."""

import sys
from textwrap import dedent

import pytest

from scout_rl.cli import main

MODULE = """
    import gymnasium as gym
    from tests.codecs.planted import Walk, WalkCodec

    def make(start=0): return Walk()
    codec = WalkCodec()
    answer = 42
    gym.register("OwnWalk-v0", Walk)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a module of the user's."""
    (tmp_path / "own_walk.py").write_text(dedent(MODULE))
    (tmp_path / "broken_walk.py").write_text("import no_such_package")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    yield tmp_path
    for name in ("own_walk", "broken_walk"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["own_walk:make", "own_walk.py:make", "own_walk:Walk", "own_walk:OwnWalk-v0"])
def test_an_environment_of_the_current_folder(name, folder, capsys):
    codec = "own_walk.py:codec" if name == "own_walk.py:make" else "own_walk:WalkCodec"
    assert main(["verify-codec", name, "--codec", codec]) == 0, capsys.readouterr()
    printed = capsys.readouterr().out
    assert "(WalkCodec) restores exactly" in printed
    assert "pass    new process" in printed
    assert printed.splitlines()[-1].startswith("next: ")


def test_without_its_codec_the_private_counter_is_caught_and_the_remedy_named(folder, capsys):
    assert main(["verify-codec", "own_walk:make", "--kwargs", '{"start": 1}']) == 1
    printed = capsys.readouterr().out
    assert "Walk.t is 6 after a restore: the episode is cut after 6 steps, not 12" in printed
    assert "DeepcopyCodec(counters=('t',))" in printed
    assert "next:" not in printed


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere:make"], "there is no module 'nowhere', neither installed nor in"),
        (["nowhere.py:make"], "there is no file nowhere.py"),
        (["own_walk.py:made"], "own_walk.py has no 'made': name a function or class in it"),
        (["own_walk:answer"], "own_walk:answer is int, but must be a function or class that makes an environment"),
        (["own_walk:make", "--codec", "own_walk:none"], "own_walk has no 'none'"),
        (["own_walk:make", "--codec", "own_walk:answer"], "own_walk:answer is no codec: it has no get_state"),
        (["own_walk:make", "--codec", "own_walk:make"], "own_walk:make makes no codec: what it returns"),
        (["own_walk:make", "--codec", "codec"], "--codec is 'codec', but must be module:object"),
    ],
)
def test_a_wrong_name_is_one_sentence(words, sentence, folder, capsys):
    assert main(["verify-codec", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"scout: {sentence}")
    assert said.count("\n") == 1


def test_an_id_that_a_module_does_not_register(folder, capsys):
    assert main(["verify-codec", "own_walk:NoSuchWalk-v0"]) == 1
    assert "NoSuchWalk" in capsys.readouterr().out


def test_an_error_in_the_users_module_shows_its_traceback(folder, capsys):
    assert main(["verify-codec", "broken_walk:make"]) == 2
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "import no_such_package" in said
    assert said.splitlines()[-1] == "scout: broken_walk cannot be imported: the error is above"
