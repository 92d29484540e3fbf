"""The torch device curriculum against `Curriculum.record`, its transfers, its saves and its records."""

import contextlib
import warnings

import numpy as np
import pytest

from scout_rl import Curriculum, rules
from scout_rl.curriculum import snapshot
from scout_rl.records.tables import read_records
from tests.integrations.device.simulators import CONTEXTS, ENVIRONMENTS, LEVELS, LONGEST, Reference, Simulator
from tests.rules.test_contract import groups, small

torch = pytest.importorskip("torch")

from scout_rl.integrations.device import TorchCurriculum  # noqa: E402
from tests.rules.test_torch import DEVICES, NO_CUDA, NoTransfer, leaves, no_wait  # noqa: E402

DEFAULT = ("ability", "plr", "group-frontier")
"""Over all cells, with a signal, and one cell per context with labels. The rest is slow."""


def made(key="ability", **options):
    options = {"environments": ENVIRONMENTS, "longest": LONGEST, "window": 10, "device": "cpu", **options}
    return TorchCurriculum(small(key), CONTEXTS, LEVELS, oracle_group=groups(CONTEXTS), **options)


def play(curriculum, simulator, calls):
    """The cells of every call."""
    cells = []
    for _ in range(calls):
        now = [torch.as_tensor(column) for column in simulator.step()]
        drawn = curriculum.step(*(now if curriculum.rule.needs_signal else now[:2]))
        simulator.reset(now[0].numpy(), drawn.level.numpy())
        cells.append(np.stack(drawn))
    return np.stack(cells)


def started(curriculum, seed=0):
    simulator = Simulator(seed=seed)
    simulator.reset(np.ones(ENVIRONMENTS, bool), curriculum.cells.level.cpu().numpy())
    return simulator


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("close_every", [1, 3])
@pytest.mark.parametrize("key", [pytest.param(k, marks=() if k in DEFAULT else pytest.mark.slow) for k in rules.RULES])
def test_assignments_are_those_of_record_in_the_order_of_start(key, close_every, device):
    """Every cell of every call, also where the queue is full and where an environment hangs."""
    curriculum = made(key, queue=40, close_every=close_every, window=10 * close_every, seed=5, device=device)
    numbers = torch.Generator(device).manual_seed(5)
    drawn = []  # the device draws in every call, and uses it where it needs a deck

    def uniform(deck, call):
        while len(drawn) <= call:
            row = torch.rand(ENVIRONMENTS, generator=numbers, dtype=torch.float64, device=device)
            drawn.append(row.cpu().numpy())
        return drawn[call]

    reference, simulator = Reference(curriculum.episodes, uniform, close_every), started(curriculum)
    for call in range(120):
        done, success, signal = simulator.step()
        cells = [
            c.cpu() for c in curriculum.step(*(torch.as_tensor(c, device=device) for c in (done, success, signal)))
        ]
        reference.step(done, success, signal)
        np.testing.assert_array_equal(np.stack(reference.cells), np.stack(cells), str(call))
        simulator.reset(done, cells[1].numpy())
    assert int(curriculum.state.rule.statistics.window) == reference.curriculum.windows > 10 / close_every
    assert int(curriculum.state.uncounted) == reference.uncounted > 0


def test_no_call_reads_the_device_on_the_host():
    curriculum = made("ability", close_every=2)
    simulator = started(curriculum)
    with NoTransfer():
        for _ in range(30):
            done, success, _ = (torch.as_tensor(column) for column in simulator.step())
            curriculum.step(done, success)
            simulator.reset(done.numpy(), 2)
    assert int(curriculum.state.rule.statistics.window) > 3


@NO_CUDA
@pytest.mark.parametrize("key", ["ability", "scout", "plr"])
def test_on_the_gpu_no_call_waits(key):
    curriculum = made(key, device="cuda")
    flags = torch.rand(40, ENVIRONMENTS, device="cuda") < 0.3
    for call in range(40):
        with contextlib.nullcontext() if call < 5 else no_wait("cuda"):
            curriculum.step(flags[call], flags[call], flags[call].double())
    assert int(curriculum.state.rule.statistics.window) > 3


def test_a_saved_state_continues_bit_for_bit(tmp_path):
    curriculum = made("scout", seed=3)
    simulator = started(curriculum)
    play(curriculum, simulator, 50)
    snapshot.save(curriculum.state_dict(), tmp_path / "saved.npz")
    again = made("scout", seed=99)
    again.load_state_dict(snapshot.load(tmp_path / "saved.npz"))
    other = Simulator()
    other.__dict__ = {**simulator.__dict__, "generator": np.random.default_rng(8)}
    other.left, simulator.generator = simulator.left.copy(), np.random.default_rng(8)
    np.testing.assert_array_equal(play(curriculum, simulator, 80), play(again, other, 80))
    for one, two in zip(leaves(curriculum.state), leaves(again.state), strict=True):
        assert torch.equal(one, two)
        assert one.dtype == two.dtype
    stored = curriculum.state_dict()
    for altered, sentence in (
        ({**stored, "close_every": 7}, "the state has close_every 7, this curriculum 1"),
        ({**stored, "calls": None}, "has no calls or no generator"),
        ({**stored, "hash": ""}, "altered"),
    ):
        with pytest.raises(ValueError, match=sentence):
            again.load_state_dict(altered)


def test_drained_windows_are_records(tmp_path):
    curriculum = made("scout")
    simulator = started(curriculum)
    records = Curriculum(small("scout"), CONTEXTS, LEVELS, window=10, log_dir=tmp_path)
    for calls in (50, 30):
        play(curriculum, simulator, calls)
        curriculum.drain(records)
    read = read_records(tmp_path)
    assert len(read.windows) == int(curriculum.state.rule.statistics.window) > 8
    np.testing.assert_array_equal(read.frontier[-1], curriculum.frontier.numpy())


@pytest.mark.parametrize(
    ("environments", "longest", "window"),
    [(256, 200, 0), (16, 1000, 0), (64, 400, 64), (64, 40, 500), (256, 16, 0), (100, 20, 0), (65, 24, 0), (40, 3, 0)],
)
def test_by_default_windows_keep_up_where_episodes_last_an_eighth_of_the_limit(environments, longest, window):
    curriculum = TorchCurriculum(
        rules.Random(), 5, 3, environments=environments, longest=longest, window=window, device="cpu"
    )
    length, window = -(-longest // 8), curriculum.episodes.window
    age, ended = torch.arange(environments) % length, 0
    for _ in range(20 * length):
        age = age + 1
        done = age >= length
        ended += int(done.sum())
        curriculum.step(done, done)
        age[done] = 0
    counted = int(curriculum.state.rule.statistics.window) * window
    assert int(curriculum.state.uncounted) == 0
    assert ended - counted < 2 * max(window, environments), "no backlog"


@pytest.mark.parametrize(("environments", "window"), [(4, 16), (30, 30), (4096, 4096)])
def test_the_default_window_has_one_outcome_per_environment(environments, window):
    made = TorchCurriculum(rules.Random(), 5, 3, environments=environments, longest=80, device="cpu")
    assert made.episodes.window == window
    assert made.close_every == 10


def test_episodes_that_did_not_count_are_named_once():
    """One warning per drain in which the count grew, also where the log overflowed."""
    curriculum = made("scout", queue=10, log=1)
    records = Curriculum(small("scout"), CONTEXTS, LEVELS, window=10, oracle_group=groups(CONTEXTS))
    simulator, before = started(curriculum), 0
    for _ in range(2):
        play(curriculum, simulator, 6)
        missing = int(curriculum.state.uncounted) - before
        before += missing
        assert missing > 0
        sentence = f"^{missing} episodes were played but not counted.* close_every="
        with pytest.warns(UserWarning, match=sentence) as warned:
            curriculum.drain(records)
        assert {warning.filename for warning in warned} == {__file__}
    again = made("scout", queue=10, log=1)
    again.load_state_dict(curriculum.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curriculum.drain(records)
        again.drain(records)


def test_records_with_other_labels_are_refused():
    curriculum = made("group-frontier")
    other = Curriculum(small("group-frontier"), CONTEXTS, LEVELS, window=10, oracle_group=groups(CONTEXTS)[::-1])
    with pytest.raises(ValueError, match="records has other groups than this curriculum: give both one oracle_group"):
        curriculum.drain(other)


def test_wrong_calls_are_refused():
    one = torch.ones(ENVIRONMENTS)
    with pytest.raises(ValueError, match="plr needs the learner's signal"):
        made("plr").step(one, one)
    with pytest.raises(ValueError, match=r"success has shape \(3,\), but must be \(24,\)"):
        made().step(one, one[:3])
    with pytest.raises(ValueError, match="close_every is -1"):
        made(close_every=-1)
