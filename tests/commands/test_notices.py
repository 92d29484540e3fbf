"""Notices of other libraries are silenced, errors and our own warnings are not."""

import subprocess
import sys

import pytest

PLANTED = """
import logging, sys, warnings
from scout_rl.commands.notices import silence_notices
silence_notices()
warnings.warn_explicit("theirs", UserWarning, "gymnasium/x.py", 1, module="gymnasium.utils.x")
warnings.warn_explicit("ours", UserWarning, "scout_rl/x.py", 1, module="scout_rl.x")
warnings.warn_explicit("a user's", UserWarning, "my_gymnasium.py", 1, module="my_gymnasium")
bridge = logging.getLogger("jax._src.xla_bridge")
bridge.warning("An NVIDIA GPU may be present, but ... Falling back to cpu.")
bridge.warning("another sentence")
"""


def test_only_notices_are_silenced():
    done = subprocess.run([sys.executable, "-c", PLANTED], capture_output=True, text=True, check=True)
    assert "theirs" not in done.stderr
    assert "Falling back" not in done.stderr
    for kept in ("ours", "a user's", "another sentence"):
        assert kept in done.stderr


@pytest.mark.parametrize("env", ["FetchPush-v4", "MiniGrid-DoorKey-5x5-v0"])
def test_a_command_that_imports_simulators_is_quiet_and_plain(env):
    pytest.importorskip("gymnasium_robotics")
    words = [sys.executable, "-m", "scout_rl", "verify-codec", env]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith(f"{env} (")
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("next: ")
