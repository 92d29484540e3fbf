import numpy as np
import pytest

from scout_rl.bench.families import load_bank
from scout_rl.bench.settings.bank import ContextBank, pinned_hashes, require_hash
from scout_rl.bench.settings.settings import SETTINGS

SLOW = {key for key in SETTINGS if key.startswith("doorkey-16-split")}


def small_bank(**changes):
    arrays = {
        "contexts": {"goal": np.arange(12, dtype=np.float64).reshape(6, 2)},
        "is_held_out": np.array([0, 0, 0, 0, 1, 1], dtype=bool),
        "oracle_group": np.zeros(6, dtype=np.int64),
        "evaluation_group": np.array([0, 0, 1, 1, 0, 1]),
    }
    return ContextBank(**(arrays | changes))


def test_parts_are_the_two_sides_of_the_split():
    bank = small_bank()
    assert len(bank.train) == 4
    assert len(bank.held_out) == 2
    np.testing.assert_array_equal(bank.held_out.contexts["goal"], [[8, 9], [10, 11]])
    np.testing.assert_array_equal(bank.train.evaluation_group, [0, 0, 1, 1])
    np.testing.assert_array_equal(bank.train.oracle_group, 0)


def test_arrays_are_read_only_copies():
    goal = np.zeros((6, 2))
    goal[:, 0] = range(6)
    bank = small_bank(contexts={"goal": goal})
    before = bank.sha256
    goal[0] = 99
    assert bank.sha256 == before
    with pytest.raises(ValueError, match="read-only"):
        bank.contexts["goal"][0] = 1


def test_hash_covers_names_types_values_split_and_both_labels():
    goal = small_bank().contexts["goal"]
    variants = [
        small_bank(),
        small_bank(contexts={"start": goal}),
        small_bank(contexts={"goal": goal.astype(np.float32)}),
        small_bank(contexts={"goal": goal + 1}),
        small_bank(contexts={"goal": goal.reshape(6, 2, 1)}),
        small_bank(is_held_out=np.array([0, 0, 0, 1, 1, 1], dtype=bool)),
        small_bank(oracle_group=np.array([0, 0, 1, 1, 0, 1])),
        small_bank(evaluation_group=np.zeros(6, dtype=np.int64)),
    ]
    assert len({bank.sha256 for bank in variants}) == len(variants)
    big_endian = small_bank(contexts={"goal": goal.astype(">f8")})
    assert big_endian.sha256 == small_bank().sha256


def test_save_and_load_round_trip(tmp_path):
    bank = small_bank()
    bank.save(tmp_path / "bank.npz")
    loaded = ContextBank.load(tmp_path / "bank.npz", sha256=bank.sha256)
    assert loaded.sha256 == bank.sha256
    assert list(tmp_path.iterdir()) == [tmp_path / "bank.npz"]


def test_a_bank_with_another_hash_is_refused_with_one_sentence(tmp_path):
    bank, other = small_bank(), small_bank(contexts={"goal": small_bank().contexts["goal"] + 1})
    other.save(tmp_path / "bank.npz")
    with pytest.raises(ValueError, match=r"bank\.npz has content hash .* expected") as error:
        ContextBank.load(tmp_path / "bank.npz", sha256=bank.sha256)
    assert "\n" not in str(error.value)


def test_a_tampered_file_is_refused(tmp_path):
    path = tmp_path / "bank.npz"
    small_bank().save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["evaluation_group"] = 1 - arrays["evaluation_group"]
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="has content hash"):
        ContextBank.load(path)


def test_files_that_are_no_banks_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("no bank")
    with pytest.raises(ValueError, match="not a saved bank"):
        ContextBank.load(tmp_path / "text.npz")
    np.savez(tmp_path / "objects.npz", sha256=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="not a saved bank"):
        ContextBank.load(tmp_path / "objects.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a saved bank"):
        ContextBank.load(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contexts": {}}, "at least one"),
        ({"contexts": {"goal": np.zeros((5, 2))}}, "'goal' has shape"),
        ({"oracle_group": np.zeros(7, dtype=int)}, "'oracle_group' has shape"),
        ({"contexts": {"goal": np.array([{}] * 6)}}, "Python objects"),
        ({"is_held_out": np.zeros(6, dtype=bool)}, "train and held-out"),
        ({"contexts": {"goal": np.zeros((6, 2))}}, "in the train and in the held-out"),
    ],
)
def test_bad_banks_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small_bank(**changes)


def test_every_setting_has_a_pinned_hash():
    assert set(pinned_hashes()) == set(SETTINGS)


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[pytest.mark.slow] if key in SLOW else []) for key in SETTINGS]
)
def test_banks_are_the_pinned_ones(key):
    setting = SETTINGS[key]
    bank = load_bank(setting)
    assert bank.sha256 == pinned_hashes()[key]
    assert (len(bank.train), len(bank.held_out)) == (setting.n_train, setting.n_held_out)
    for part in (bank.train, bank.held_out):
        shares = np.bincount(part.evaluation_group) / len(part)
        np.testing.assert_allclose(shares, [group.share for group in setting.groups])


def test_a_setting_whose_bank_changed_is_refused(monkeypatch):
    hashes = pinned_hashes() | {"doorkey-small": "0" * 64}
    monkeypatch.setattr("scout_rl.bench.families.pinned_hashes", lambda: hashes)
    with pytest.raises(ValueError, match="setting 'doorkey-small' has content hash"):
        load_bank(SETTINGS["doorkey-small"])
    with pytest.raises(ValueError, match="expected 000000000000"):
        require_hash(small_bank(), "0" * 64, "a test")
