"""The tree is the architecture: a folder imports only the folders that stand before it."""

import ast
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "scout_rl"

FLOW = {
    # the ground floor: a library for anyone's training
    "files": set(),
    "rules": set(),
    "records": {"rules"},
    "curriculum": {"rules", "records"},
    "simulate": {"rules", "curriculum"},
    "codecs": set(),
    "ladders": {"codecs"},
    "integrations": {"rules", "curriculum", "codecs", "ladders"},
    "report": {"rules", "records"},
    "watch": {"rules", "records", "report"},
    # the upper floor: the paper's benchmark
    "bench.hardware": set(),
    "bench.settings": set(),
    "bench.learners": {"rules"},
    "bench.families": {"codecs", "ladders", "bench.hardware", "bench.settings"},
    "bench.rollouts": {"bench.settings", "bench.learners", "bench.families"},
    "bench.ladders": {"ladders", "bench.settings", "bench.families"},
    "bench.run": {"rules", "records", "curriculum", "codecs", "ladders"}
    | {"bench.hardware", "bench.settings", "bench.learners", "bench.families", "bench.rollouts", "bench.ladders"},
    "bench.environments": {"curriculum", "bench.settings", "bench.families", "bench.ladders"},
    "bench.campaign": {"rules", "records", "bench.hardware", "bench.run"},
    "bench.reproduction": {"records", "report", "bench.settings"},
    # what puts them together
    "commands": None,
    "cli": {"commands"},
    "__main__": {"cli"},
    "__init__": None,
}
"""Each folder with the folders it may import, beside `files`, which is under all of them; None: all."""
ROOT_FILES = {"__init__.py", "__main__.py", "cli.py", "py.typed"}


def folder(parts):
    """The row of a module, from the parts of its path or dotted name below the package."""
    return ".".join(parts[:2]) if parts[0] == "bench" and len(parts) > 1 else parts[0]


def imports(path):
    """The row of every import of our own, wherever it stands in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "scout_rl":
            parts = node.module.split(".")[1:]
            if parts and parts != ["bench"]:
                yield folder(parts)
            else:
                yield from (folder([*parts, alias.name]) for alias in node.names if alias.name != "__version__")
        elif isinstance(node, ast.Import):
            yield from (folder(a.name.split(".")[1:]) for a in node.names if a.name.startswith("scout_rl."))


def test_no_import_runs_against_the_flow():
    wrong = set()
    for path in SRC.rglob("*.py"):
        parts = path.relative_to(SRC).with_suffix("").parts
        row = folder(parts)
        if row == "bench.__init__":
            continue
        assert row in FLOW, f"{path.name} is in no folder of the plan: add a row here and in docs/architecture.md"
        allowed = FLOW[row]
        if allowed is not None:
            wrong |= {(row, name) for name in imports(path) if name not in {row, "files", *allowed}}
    assert not wrong


def test_every_folder_of_the_plan_is_on_the_page():
    page = (SRC.parents[1] / "docs" / "architecture.md").read_text()
    for row in FLOW:
        if row not in ("__init__", "__main__"):
            assert f"`{row.replace('.', '/')}" in page, f"docs/architecture.md does not name {row}"


def test_the_root_holds_the_entrances_alone():
    assert {path.name for path in SRC.iterdir() if path.is_file()} == ROOT_FILES


def test_one_file_of_the_rules_knows_which_kind_of_array_it_has():
    """And torch's own functions. In all others nothing is compared with ``np``, and nobody asks whether it is JAX."""
    for path in (SRC / "rules").glob("*.py"):
        if path.name in ("arrays.py", "torch_arrays.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            asks = isinstance(node, ast.Compare) and "np" in map(ast.unparse, node.comparators)
            asks |= isinstance(node, ast.alias) and node.name in ("is_jax", "TorchArrays", "jax", "torch")
            assert not asks, f"{path.name}: {ast.unparse(node)}"


def test_no_global_random_state():
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np.random":
                assert node.attr in {"default_rng", "Generator", "PCG64"}, f"{path.name}: {ast.unparse(node)}"
