"""SECURITY.md: reading our files executes nothing."""

import ast
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from scout_rl import Curriculum, Ladder, State, Trajectory, rules
from scout_rl.bench.settings.bank import ContextBank
from scout_rl.records import compact

SOURCE = Path(__file__).parents[2] / "src"


class Bomb:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def planted(path, mark, names):
    """An npz file in which every array of these names is a pickle."""
    member = io.BytesIO()
    np.lib.format.write_array(member, np.array([Bomb(mark)], object), allow_pickle=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(f"{name}.npy", member.getvalue())
    return path


def curriculum(path):
    Curriculum(rules.Ability(), n_contexts=2, n_levels=2).load(path)


@pytest.mark.parametrize(
    "read",
    [curriculum, Ladder.load, State.load, Trajectory.load, ContextBank.load, compact.unpack],
    ids=lambda f: f.__qualname__,
)
def test_a_pickle_in_a_file_is_refused(read, tmp_path):
    names = ["arrays", "json", "meta", "about", "sha256", "state", "entry", "__meta__"]
    with pytest.raises(ValueError):
        read(planted(tmp_path / "bomb.npz", tmp_path / "executed", names))
    assert not (tmp_path / "executed").exists()
    np.load(tmp_path / "bomb.npz", allow_pickle=True)["json"]
    assert (tmp_path / "executed").exists()  # the file is what it should be


def test_no_module_of_ours_unpickles_or_evaluates():
    """Every array is read with ``allow_pickle=False``; `pickle`, `eval` and `exec` do not occur."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}, path
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {"eval", "exec"}, path
                if called in {"np.load", "np.lib.format.read_array"}:
                    allowed = {word.arg: ast.unparse(word.value) for word in node.keywords}.get("allow_pickle")
                    assert allowed == "False", f"{path}:{node.lineno}"
