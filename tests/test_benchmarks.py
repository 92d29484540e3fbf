"""The scripts behind the printed numbers: each can be started as its own text and the docs say."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py"))
SCRIPTS = [name for name in MODULES if "__main__" in (FOLDER / f"{name}.py").read_text()]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(FOLDER.glob("*.py"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_name_scripts_in_the_one_way_that_works(page):
    text = page.read_text()
    assert not re.findall(r"python3? benchmarks/\w+\.py", text), "python -m benchmarks.NAME, from the project's root"
    for name in re.findall(r"-m benchmarks\.(\w+)", text):
        assert name in SCRIPTS, f"{page.name} names benchmarks.{name}"


def test_no_script_hides_a_package():
    """Started by its path, a script's folder comes first: a minigrid.py there would be found before the package."""
    for name in MODULES:
        assert importlib.util.find_spec(name) is None, f"benchmarks/{name}.py has the name of an installed module"


def test_every_script_has_help_and_knows_the_options_it_shows():
    for name in SCRIPTS:
        source = (FOLDER / f"{name}.py").read_text()
        assert "ArgumentParser(" in source, f"benchmarks/{name}.py measures when asked for --help"
        shown = {o for line in _doc(source).splitlines() if f"benchmarks.{name}" in line for o in _options(line)}
        for option in shown:
            assert f'"{option}"' in source, f"benchmarks/{name}.py shows {option} and does not take it"


def test_every_development_script_says_what_it_takes():
    """Those whose runs stand in docs/disagreements.md need nothing beyond the package."""
    pytest.importorskip("jax")
    pytest.importorskip("minigrid")
    names = [n for n in SCRIPTS if "benchmarks.development" in (FOLDER / f"{n}.py").read_text()]
    assert len(names) >= 3
    code = f"""
import importlib, io, sys, contextlib
for name in {names!r}:
    sys.argv = [name, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as told, contextlib.suppress(SystemExit):
        importlib.import_module("benchmarks." + name).main()
    assert "--seed" in told.getvalue(), name
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _doc(source):
    return ast.get_docstring(ast.parse(source)) or ""


def _options(line):
    return re.findall(r"--[a-z-]+", line)
