"""A faked held-out result is refused wherever it is read: means that are not their outcomes', evaluations not due."""

import json

import numpy as np
import pytest

from scout_rl.bench.settings.bank import pinned_hashes
from scout_rl.cli import main
from scout_rl.records import compact
from scout_rl.records import evaluations as held_out
from tests.report.planted import as_run_folder, labels_of, play, steadily, write_compact

KEY = "doorkey-split-small"
AT = np.arange(0, 9, 2)
CURVES = {"short": np.array([0, 0.25, 0.5, 0.5, 0.75]), "long": np.array([0, 0, 0.25, 0, 0.5])}


def config(**others):
    fields = {"setting": KEY, "rule": "scout", "seed": 40, "ladder": "manual", "levels": 5, "windows": 8}
    return fields | {"episodes": 4, "evaluate_every": 2, "constants": {}, "learner": {}} | others


@pytest.fixture
def record(tmp_path):
    bank = pinned_hashes()[KEY]
    return write_compact(tmp_path / "40.npz", config(), CURVES, n_contexts=40, held_out=40, bank=bank, labelled=True)


@pytest.fixture
def folder(tmp_path):
    made = play(tmp_path / "run", steadily(lambda c: 1.0), windows=8, rollouts=4)
    as_run_folder(made, config(), CURVES, held_out=40)
    about = json.loads((made / "run.json").read_text())
    (made / "run.json").write_text(
        json.dumps({**about, "bank_sha256": pinned_hashes()[KEY], "groups": labels_of(CURVES, 40, 40)})
    )
    return made


def changed(path, **changes):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **(arrays | {name: change(arrays[name]) for name, change in changes.items()}))


def nan_at_the_end(groups):
    groups[-1] = np.nan
    return groups


ENDS = {name: lambda a: a[[0, -1]] for name in ("evaluated_at", "outcomes", "groups")}
TWICE = {name: lambda a: a[[0, 0, 1, 2, 3, 4]] for name in ("evaluated_at", "outcomes", "groups")}
CUT = {name: lambda a: a[:-1] for name in ("evaluated_at", "outcomes", "groups")}


@pytest.mark.parametrize(
    ("fake", "sentence"),
    [
        ({"groups": np.ones_like}, "after 0 windows has success of group short 1, and the mean of its outcomes is 0"),
        ({"groups": nan_at_the_end}, "after 8 windows has success of group short nan, and the mean of its"),
        ({"groups": lambda a: a[:, ::-1]}, "after 2 windows has success of group short 0, and the mean of its"),
        ({"groups": lambda a: a[:-1]}, "its evaluations or moves are cut"),
        (ENDS, "its evaluation 2 is of after 8 windows, where the one after 2 windows was due"),
        (TWICE, "its evaluation 2 is of after 0 windows, where the one after 2 windows was due"),
        (CUT, "the evaluation after 8 windows is missing"),
    ],
)
def test_a_faked_record_is_refused_by_every_command(record, tmp_path, capsys, fake, sentence):
    compact.unpack(record)
    changed(record, **fake)
    for words in (["report", str(record), "-o", str(tmp_path / "out")], ["repeat", str(record)]):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert f"{record} is no compact record, or a damaged one: " in said
        assert sentence in said


def all_at(value):
    def change(rows):
        for row in rows:
            row["success"], row["groups"] = value, dict.fromkeys(row["groups"], value)

    return change


def success_alone(rows):
    rows[-1]["success"] = 0.99


def one_group(rows):
    rows[-1]["groups"]["long"] = 0.75


def half_an_outcome(rows):
    rows[1]["outcomes"][3] = 0.5


@pytest.mark.parametrize(
    ("fake", "sentence"),
    [
        (all_at(0.99), "the evaluation after 0 windows has success 0.99, and the mean of its outcomes is 0"),
        (success_alone, "the evaluation after 8 windows has success 0.99, and the mean of its outcomes is 0.625"),
        (
            one_group,
            "the evaluation after 8 windows has success of group long 0.75, and the mean of its outcomes is 0.5",
        ),
        (half_an_outcome, "its outcomes are not one 0 or 1 for every held-out context"),
        (lambda rows: rows.pop(2), "its evaluation 3 is of after 6 windows, where the one after 4 windows was due"),
        (lambda rows: rows.pop(), "the evaluation after 8 windows is missing"),
        (lambda rows: rows.insert(0, rows[0]), "its evaluation 2 is of after 0 windows, where the one after 2"),
    ],
)
def test_a_faked_run_folder_is_refused_by_every_command(folder, tmp_path, capsys, fake, sentence):
    path = folder / "evaluations.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert main(["report", str(folder), "-o", str(tmp_path / "before")]) == 0
    fake(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    capsys.readouterr()
    for words in (["report", str(folder), "-o", str(tmp_path / "out")], ["repeat", str(folder)]):
        assert main(words) == 2
        assert f"{path} is damaged: {sentence}" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"evaluations\.jsonl is damaged: "):
        compact.pack(folder, tmp_path / "x.npz")


def test_a_run_under_way_has_the_evaluations_so_far(folder, tmp_path):
    """Killed between the last window's row and its evaluation, or between two cuts of a restart."""
    about, rows = {"config": config(windows=12)}, (folder / "evaluations.jsonl").read_text().splitlines(keepends=True)
    for keep, closed in ((0, 0), (1, 0), (1, 1), (2, 3), (5, 3), (5, 8), (5, 9)):
        (folder / "evaluations.jsonl").write_text("".join(rows[:keep]))
        assert len(held_out.read_evaluations(folder, about, closed)) == keep
    with pytest.raises(ValueError, match="the evaluation after 10 windows is missing"):
        held_out.read_evaluations(folder, about, 10)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"held_out": ["short"] * 20 + ["long"] * 19}, "it has 40 held-out contexts, and labels for 39"),
        ({"held_out": ["short"] * 40}, "its groups are short, long, and its labels short"),
        ({"held_out": [0] * 20 + [1] * 20}, "an entry of 'held_out' of 'groups' of it is '0', but must be a text"),
        ({"oracle": [0] * 39}, "its groups are not a name for every context, and a number for every training context"),
        ({"train": ["short"] * 39, "oracle": [0] * 39}, "it has labels for 39 training contexts, and there are 40"),
    ],
)
def test_labels_that_do_not_fit_are_refused(folder, tmp_path, capsys, change, sentence):
    about = json.loads((folder / "run.json").read_text())
    about["groups"] |= change
    (folder / "run.json").write_text(json.dumps(about))
    assert main(["report", str(folder), "-o", str(tmp_path / "out")]) == 2
    assert sentence in capsys.readouterr().err


def test_without_labels_what_holds_for_any_groups(tmp_path):
    two = write_compact(tmp_path / "two.npz", config(setting="theirs"), CURVES, held_out=40)
    compact.unpack(two)
    changed(two, groups=np.ones_like)
    with pytest.raises(ValueError, match=r"after 0 windows has short 1, long 1, and 0 of all outcomes"):
        compact.unpack(two)
    one = write_compact(tmp_path / "one.npz", config(setting="theirs"), {"all": CURVES["long"]}, held_out=40)
    compact.unpack(one)
    changed(one, groups=lambda a: a + 0.25)
    with pytest.raises(ValueError, match=r"has success of group all 0\.25, and the mean of its outcomes is 0"):
        compact.unpack(one)


def test_when_evaluations_are_due():
    assert held_out.due(8, 2) == [0, 2, 4, 6, 8]
    assert held_out.due(7, 3) == [0, 3, 6, 7]
    assert held_out.due(3, 20) == [0, 3]
