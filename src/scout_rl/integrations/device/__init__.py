"""Curricula for simulators on an accelerator, whose environments end and restart at different times.

JAX: `JaxCurriculum` is a set of pure functions on a named tuple, for use inside ``jit``, ``scan`` and ``vmap``.

    curriculum = JaxCurriculum(rules.Ability(), 1000, 5, environments=4096, longest=200)
    state = curriculum.init(jax.random.key(0))          # state.context, state.level: where every environment starts
    state = curriculum.step(state, done, success)       # where done: the outcome is taken, the next cell is drawn

torch: `TorchCurriculum` has the same arguments, and a ``device``; it holds the state.

    cells = curriculum.cells                            # Cells(context, level), tensors
    cells = curriculum.step(done, success)

Call ``step`` once per step of the simulator. ``done`` and ``success`` have one entry per environment. ``success`` is
read where ``done`` is true, and anything above 0 is a success. An environment whose episode goes on keeps its cell.
Nothing of this waits for the device.

**Which outcomes count, and when.** Episodes that succeed are often short. Counted as they come in, the first outcomes
of environments that started together are successes, whatever the true rate, and frontiers advance on nothing. So
outcomes count in the order in which their episodes *started*. Every assignment takes a place in a queue; a window is
the first ``window`` places, and closes when all of its episodes have ended. Which episodes it holds was settled before
they were played, so the mean success of a window is the true rate, however long successes and failures last.

- A window waits for its slowest episode, so an outcome is at most ``longest`` calls old when it counts. No method
  that is free of this bias can be faster without a model of how long episodes last.
- ``longest`` is the time limit of the simulator, in calls. An episode that has not ended by then counts as a failure
  at once, and what becomes of it later is ignored. So the wait is bounded even where an environment hangs.
- ``queue`` bounds the memory (the default: 8 episodes per environment). While the queue is full, new episodes are
  played but not counted (``state.uncounted``). That is decided before they start, so it biases nothing. It
  happens where most episodes are more than 8 times shorter than the longest, or windows close too seldom. `drain`
  warns of it.
- One call closes at most one window, so every call costs about the same. Windows keep up while ``window`` is at least
  the number of episodes that end per call. torch closes one window per ``close_every`` calls. The defaults of both
  keep up while episodes last an eighth of ``longest`` or more.

Cells are drawn from the newest distribution, as `Curriculum.assign` draws them: by a search in the running sum, one
deck of as many cells as there are environments. The deck is drawn anew after every window, or when it is used up.

**Records.** The device keeps the last ``log`` closed windows: by default as many as hold a million outcomes. `drain`
hands them to a host `Curriculum` with a ``log_dir``, which writes what every other training writes. If more than
``log`` windows close between two drains, the records end at the first of the two.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scout_rl.integrations.device.jax_curriculum import JaxCurriculum
    from scout_rl.integrations.device.state import State
    from scout_rl.integrations.device.torch_curriculum import TorchCurriculum

__all__ = ["JaxCurriculum", "State", "TorchCurriculum"]

_LAZY = {"JaxCurriculum": "jax_curriculum", "State": "state", "TorchCurriculum": "torch_curriculum"}
"""Loaded when asked for: JAX users have no torch, and the other way round."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
