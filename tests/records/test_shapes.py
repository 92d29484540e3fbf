"""JSON of another shape than ours is a sentence that names the file, wherever it stands; a mistake of ours is none."""

import copy
import json
import shutil

import numpy as np
import pytest

from scout_rl.bench.run import repeat
from scout_rl.files.archive import pack, unpack
from scout_rl.files.damage import reading
from scout_rl.files.refusal import Refusal
from scout_rl.files.shape import require_shape
from scout_rl.records import compact
from scout_rl.report.read.runs import load
from tests.report.planted import played_folder

WRONG = [None, True, -1, 7, 2.5, "x", [], {}, [[1]], [None], {"a": None}, ["x"], 10**30]
FILES = ["run.json", "config.json", *(f"{t}.jsonl" for t in ("windows", "events", "evaluations", "metrics", "timing"))]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run folder of 40 windows, and its compact record beside it."""
    folder = played_folder(tmp_path_factory.mktemp("whole") / "run", 40, reach=20)
    compact.pack(folder, folder.with_suffix(".npz"))
    return folder


def places(value, at=()):
    """The way to every value inside a JSON value."""
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield from places(inner, (*at, name))


def put(value, at, wrong):
    """A copy with another value at one place."""
    if not at:
        return wrong
    whole = copy.deepcopy(value)
    inner = whole
    for name in at[:-1]:
        inner = inner[name]
    inner[at[-1]] = wrong
    return whole


def read_everywhere(path):
    """Whatever reads records; a refusal has to name the path."""
    for read in (load, lambda path: repeat.config_of(repeat.read(path, 5)), lambda path: packed(path)):
        said = ""
        try:
            read(path)
        except ValueError as refusal:
            said = str(refusal)
        assert not said or str(path) in said
        assert "\n" not in said


def packed(path):
    if path.is_dir():
        compact.pack(path, path.with_name("again.npz"))


@pytest.mark.parametrize("name", FILES)
def test_any_value_may_be_anything(whole, tmp_path, name):
    """Fifty wrong values in each file, at places that a seed draws: in one row of a table."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    text = (whole / name).read_text()
    lines = text.splitlines() if name.endswith("l") else [text]
    rng = np.random.default_rng(len(name))
    for _ in range(50):
        i = int(rng.integers(len(lines)))
        value = json.loads(lines[i])
        ways = list(places(value))
        wrong = put(value, ways[rng.integers(len(ways))], WRONG[rng.integers(len(WRONG))])
        (folder / name).write_text("\n".join([*lines[:i], json.dumps(wrong), *lines[i + 1 :]]) + "\n")
        read_everywhere(folder)


def test_any_value_of_a_compact_record_may_be_anything(whole, tmp_path):
    arrays, note = unpack(whole.with_suffix(".npz").read_bytes(), "about.json")
    rng, record, ways = np.random.default_rng(0), tmp_path / "x.npz", list(places(note))
    for _ in range(150):
        wrong = put(note, ways[rng.integers(len(ways))], WRONG[rng.integers(len(WRONG))])
        record.write_bytes(pack(arrays, "about.json", wrong))
        read_everywhere(record)
    for name, array in arrays.items():
        for other in (array.astype(float), array.astype(np.int64), array[..., None], array.reshape(-1), array[:0]):
            record.write_bytes(pack({**arrays, name: other}, "about.json", note))
            read_everywhere(record)
        record.write_bytes(pack({n: a for n, a in arrays.items() if n != name}, "about.json", note))
        read_everywhere(record)


@pytest.mark.parametrize("bug", [TypeError, AttributeError, NotImplementedError, RuntimeError, AssertionError])
def test_a_mistake_of_ours_is_no_damage(tmp_path, bug):
    with pytest.raises(bug, match="ours"), reading(tmp_path):
        raise bug("ours")


@pytest.mark.parametrize("wrong", [ValueError("x"), KeyError("x"), IndexError("x"), OSError(5, "x"), Refusal("x")])
def test_what_wrong_bytes_raise_is_a_refusal(tmp_path, wrong):
    with pytest.raises(Refusal, match="is damaged: "), reading(tmp_path):
        raise wrong


def test_shapes_by_hand():
    shape = {"a": int, "b": [float], "c": {...: str}, "d": {"e": bool}}
    require_shape({}, shape)
    require_shape({"a": 1, "b": [1, 2.5], "c": {"x": "y"}, "d": {"e": True}, "else": None}, shape)
    for wrong, sentence in [
        ([], r"it is '\[\]', but must be a JSON object"),
        ({"a": 1.0}, "'a' of it is '1.0', but must be a whole number"),
        ({"b": [1, None]}, "an entry of 'b' of it is 'None', but must be a number"),
        ({"c": {"x": 1}}, "'x' of 'c' of it is '1', but must be a text"),
        ({"d": {"e": 1}}, "'e' of 'd' of it is '1', but must be true or false"),
    ]:
        with pytest.raises(Refusal, match=sentence):
            require_shape(wrong, shape)
