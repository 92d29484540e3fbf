"""The torch device curriculum against `Curriculum.record`, its transfers, its saves and its records."""

import contextlib

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


def test_wrong_calls_are_refused():
    one = torch.ones(ENVIRONMENTS)
    with pytest.raises(ValueError, match="plr needs the learner's signal"):
        made("plr").step(one, one)
    with pytest.raises(ValueError, match=r"success has shape \(3,\), but must be \(24,\)"):
        made().step(one, one[:3])
    with pytest.raises(ValueError, match="close_every is -1"):
        made(close_every=-1)
