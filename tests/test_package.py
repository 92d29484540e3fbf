"""The package as others get it: a wheel in an empty environment, NumPy alone, a quick import."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("jax", "torch", "gymnasium", "matplotlib", "tyro", "rich", "scipy", "mujoco", "minigrid")


def python(code, executable=sys.executable, **options):
    return subprocess.run([executable, "-c", code], capture_output=True, text=True, check=True, **options).stdout


def test_importing_needs_numpy_alone():
    loaded = python("import sys, scout_rl; print('\\n'.join(sys.modules))").split()
    assert "scout_rl.curriculum" in loaded
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_importing_takes_under_a_tenth_of_a_second():
    code = "import time, numpy; t = time.process_time(); import scout_rl; print(time.process_time() - t)"
    assert min(float(python(code)) for _ in range(5)) < 0.1


def test_star_import_gives_the_public_names():
    scope = {}
    exec("from scout_rl import *", scope)
    assert {"Curriculum", "Cells", "Event", "Outcomes", "rules"} <= scope.keys()


@pytest.fixture(scope="session")
def empty_environment(tmp_path_factory):
    """A virtual environment with nothing but the wheel and what it pulls in."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("scout_rl-*.whl")
    venv.create(folder / "env", with_pip=True)
    executable = str(folder / "env" / "bin" / "python")
    pip = [executable, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    return executable


def test_the_wheel_runs_an_example_in_an_empty_environment(empty_environment, tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/which-rule.md").read_text(), flags=re.S)
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    printed = python(example, empty_environment, cwd=tmp_path, env=clean)
    assert "<Curriculum ability: 20 contexts x 5 levels, window 300" in printed
    installed = python(
        "import importlib.metadata as m; print(sorted(d.name for d in m.distributions()))", empty_environment
    )
    assert set(eval(installed)) - {"setuptools"} == {"numpy", "pip", "scout-rl"}
    assert python("import scout_rl, os; print(os.path.exists(os.path.dirname(scout_rl.__file__) + '/py.typed'))",
                  empty_environment, env=clean).strip() == "True"  # fmt: skip


def test_the_command_says_what_it_needs(empty_environment):
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    scout = str(Path(empty_environment).parent / "scout")
    out = subprocess.run([scout, "simulate"], capture_output=True, text=True, check=False, env=clean)
    assert out.returncode == 2
    assert out.stderr == "scout: the command line needs rich: pip install 'scout-rl[cli,plot]'\n"


def test_versions_are_pinned_exactly_and_name_no_host():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.!]*", line) for line in lines)
    pins = dict(line.split("==") for line in lines)
    assert pins["torch"] == "2.13.0"
    assert pins["mujoco"] == "3.3.0"
    assert pins["numpy"] == np.__version__
