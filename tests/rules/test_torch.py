"""The same source on torch tensors, against NumPy over 1,000 windows, and without a transfer to the host."""

import contextlib

import numpy as np
import pytest

from scout_rl import rules
from scout_rl.rules.cells import Outcomes
from tests.rules.streams import Stream
from tests.rules.test_contract import groups, small
from tests.rules.traces import CONTEXTS, LEVELS, clear_trace

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

DEFAULT = ("ability",)
"""Over 1,000 windows by default; the others are slow. All rules have the shorter tests below."""
NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
DEVICES = ["cpu", pytest.param("cuda", marks=NO_CUDA)]
READS = ("_local_scalar_dense", "item", "nonzero", "is_nonzero", "masked_select", "equal", "_linalg_check_errors")


def tensors(value, device="cpu"):
    """Every leaf of a named tuple as a tensor."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return type(value)(*(tensors(part, device) for part in value))
    return torch.as_tensor(value, device=device)


class NoTransfer(TorchDispatchMode):
    """Fails on every operation that would wait for a device: a number read, a mask as index, a copy between devices."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        assert name not in READS, f"{name} reads from the device"
        if name in ("index", "index_put", "index_put_"):
            assert not any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1]), "a mask as index"
        if name == "repeat_interleave":
            assert not isinstance(args[0], torch.Tensor) or len(args) > 1, "repeats in a tensor"
        if name == "_to_copy" and (kwargs or {}).get("device") is not None:
            assert kwargs["device"] == args[0].device, "a copy between devices"
        return function(*args, **(kwargs or {}))


def views(rule, state):
    """All that a rule says about a state."""
    answers = [rule.distribution(state), rule.frontier(state), rule.context_probabilities(state)]
    answers += [rule.status(state), rule.moved(state), *(rule.chance(state) or ())]
    return [answer for answer in answers if answer is not None]


@contextlib.contextmanager
def no_wait(device):
    """On CUDA an operation that waits for the device raises."""
    if device == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        if device == "cuda":
            torch.cuda.set_sync_debug_mode("default")


def replay(rule, state, outcomes, windows):
    """Probabilities before each window, frontiers after it, and the last state."""
    p, frontiers = [], []
    for window in range(windows):
        p.append(rule.distribution(state))
        state = rule.update(state, Outcomes(*(column[window] for column in outcomes)))
        f = rule.frontier(state)
        frontiers += [] if f is None else [f]
    return p, frontiers, state


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("key", [pytest.param(k, marks=() if k in DEFAULT else pytest.mark.slow) for k in rules.RULES])
def test_numpy_and_torch_agree_over_a_thousand_windows(key, device):
    """On CUDA also without waiting, which it may do only where a constant is uploaded: in the two windows before."""
    rule = small(key)
    p, frontier, outcomes = clear_trace(rule)
    start, seen = tensors(rule.init(CONTEXTS, LEVELS, groups(CONTEXTS)), device), tensors(outcomes, device)
    replay(rule, start, seen, 2)
    with no_wait(device):
        drawn, frontiers, state = replay(rule, start, seen, len(p))
        drawn, frontiers = torch.stack(drawn), torch.stack(frontiers) if frontiers else None
    assert drawn.dtype == torch.float64
    np.testing.assert_allclose(drawn.cpu().numpy(), p, rtol=0, atol=1e-10)
    if frontiers is not None:
        np.testing.assert_array_equal(frontiers.cpu().numpy(), frontier)
    assert [leaf.dtype for leaf in leaves(state)] == [leaf.dtype for leaf in leaves(start)]


def leaves(state):
    for value in state:
        if isinstance(value, tuple):
            yield from leaves(value)
        elif value is not None:
            yield value


def short_run(rule, device="cpu", windows=6):
    """States and answers of a few windows, of which some have invalid outcomes; also 40 outcomes: several blocks."""
    for batch in (16, 40):
        state, stream = rule.init(CONTEXTS, LEVELS, groups(CONTEXTS)), Stream(CONTEXTS, LEVELS, batch, 0)
        on_device = tensors(state, device)
        for _ in range(windows):
            seen = stream.next(rule.distribution(state))._replace(valid=np.arange(batch) % 5 > 0)
            state = rule.update(state, seen)
            yield state, on_device, tensors(seen, device)
            on_device = tensors(state, device)


@pytest.mark.parametrize("key", rules.RULES)
def test_every_answer_is_numpys_also_with_invalid_outcomes(key):
    rule = small(key)
    for state, before, seen in short_run(rule):
        with NoTransfer():
            after = rule.update(before, seen)
            answers = views(rule, after)
        for ours, theirs in zip(answers, views(rule, state), strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("key", rules.RULES)
def test_nothing_is_read_and_nothing_is_made_elsewhere(key):
    """On the device "meta", which holds no numbers: whatever reads one, or mixes in a tensor of the host, raises."""
    rule = small(key)
    for state, before, seen in short_run(rule, "meta", windows=1):
        after = rule.update(before, seen)
        assert {leaf.device.type for leaf in leaves(after)} == {"meta"}
        shapes = [tuple(answer.shape) for answer in views(rule, after)]
        assert shapes == [answer.shape for answer in views(rule, state)]


@NO_CUDA
@pytest.mark.parametrize("key", rules.RULES)
def test_on_the_gpu_no_call_waits(key):
    rule = small(key)
    for warm_up in (True, False):
        for state, before, seen in short_run(rule, "cuda", windows=3):
            with contextlib.nullcontext() if warm_up else no_wait("cuda"):
                answers = views(rule, rule.update(before, seen))
            for ours, theirs in zip(answers, views(rule, state), strict=True):
                np.testing.assert_allclose(ours.cpu().numpy(), theirs, rtol=0, atol=1e-10)


def test_the_watch_of_these_tests_catches_a_transfer():
    x = torch.ones(3)
    for wrong in (lambda: x.sum().item(), lambda: bool(x.any()), lambda: x[x > 0], lambda: x.nonzero()):
        with NoTransfer(), pytest.raises(AssertionError):
            wrong()
