"""A kept ladder is read only as long as the source text that made it is the same."""

import ast
import shutil
from pathlib import Path

import pytest

import scout_rl
from scout_rl.bench.families import FAMILIES, load_bank
from scout_rl.bench.ladders import build
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.files import cache

ROOT = Path(scout_rl.__file__).parent
SETTING = SETTINGS["pointmaze-medium-small"]
NO_NUMBERS = ("files/", "bench/hardware.py", "bench/settings/settings.py")
"""What ladders are kept with, how many threads build them, and settings: of those, contexts and levels are hashed."""


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A copy of the package whose text is hashed, and a loaded ladder."""
    monkeypatch.setenv("SCOUT_CACHE", str(tmp_path / "cache"))
    copy = shutil.copytree(ROOT, tmp_path / "scout_rl", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cache, "__file__", str(copy / "files" / "cache.py"))
    wanted = build.Wanted(SETTING, load_bank(SETTING).train.contexts, 5)
    build.load_ladder(wanted)
    return copy, wanted


@pytest.mark.parametrize(
    ("file", "stale"),
    [
        ("ladders/progress.py", True),
        ("ladders/trajectory.py", True),
        ("ladders/validate.py", True),
        ("codecs/codec.py", True),
        ("bench/families/start_checks.py", True),
        ("bench/families/pointmaze/maze.py", True),
        ("bench/ladders/manual.py", True),
        ("bench/families/fetch/solver.py", False),
        ("bench/learners/sac.py", False),
        ("report/diagnose.py", False),
    ],
)
def test_an_edit_of_what_makes_it_builds_it_again(kept, monkeypatch, file, stale):
    copy, wanted = kept
    with (copy / file).open("a") as text:
        text.write("# an edit\n")
    built = []
    whole = build.build_ladder
    monkeypatch.setattr(build, "build_ladder", lambda *given: built.append(given) or whole(*given))
    build.load_ladder(wanted)
    assert bool(built) == stale


def imported(path):
    """Our own files that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("scout_rl"):
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                file = ROOT.joinpath(*name.split(".")[1:])
                yield from (p for p in (file.with_suffix(".py"), file / "__init__.py") if p.is_file())


@pytest.mark.parametrize("key", FAMILIES)
def test_everything_that_a_family_and_its_sources_import_is_hashed(key):
    hashed = {path for pattern in (f"bench/families/{key}/*.py", *build.CODE) for path in ROOT.glob(pattern)}
    files = [*ROOT.glob(f"bench/families/{key}/*.py"), *ROOT.glob("bench/ladders/*.py")]
    reached = set()
    while files:
        path = files.pop()
        if path not in reached and not path.relative_to(ROOT).as_posix().startswith(NO_NUMBERS):
            reached.add(path)
            files += imported(path)
    missing = {path.relative_to(ROOT).as_posix() for path in reached - hashed} - {"__init__.py", "bench/__init__.py"}
    assert not missing
