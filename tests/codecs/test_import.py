"""What importing our modules brings in."""

from __future__ import annotations

import subprocess
import sys

LIGHT = (
    "scout_rl.codecs",
    "scout_rl.codecs.verify",
    "scout_rl.ladders.trajectory",
    "scout_rl.ladders.minari",
    "scout_rl.ladders.ladder",
    "scout_rl.ladders.validate",
    "scout_rl.ladders.picture",
)
HEAVY = {"gymnasium", "mujoco", "metaworld", "minigrid", "minari", "matplotlib", "jax", "torch"}


def test_modules_need_numpy_alone():
    code = f"import sys, {', '.join(LIGHT)}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
