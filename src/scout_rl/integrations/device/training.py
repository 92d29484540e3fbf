"""`Training`: what a device curriculum inside of a trainer has on the host: records, and saves to continue from."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from scout_rl.curriculum import Curriculum, snapshot
from scout_rl.integrations.device.state import State
from scout_rl.rules.rule import Rule, require

DEVICE, RECORDS = "device.npz", "records.npz"
"""The files of a save."""


class Training(ABC):
    """The curriculum of one training. A subclass calls `_begin` when the training begins."""

    def __init__(
        self,
        rule: Rule,
        n_contexts: int,
        n_levels: int,
        *,
        seed: int = 0,
        log_dir: str | os.PathLike[str] | None = None,
        name: str | None = None,
        oracle_group: ArrayLike | None = None,
    ) -> None:
        self.rule, self.n_contexts, self.n_levels = rule, n_contexts, n_levels
        self._seed, self._log_dir, self._name, self._oracle_group = seed, log_dir, name, oracle_group
        self._records: Curriculum | None = None
        self._loaded: Path | None = None
        self._begun = False

    @property
    @abstractmethod
    def state(self) -> State:
        """The device's state."""

    @property
    def frontier(self) -> Any:
        """The frontier of every context; None for rules without one."""
        return self.rule.frontier(self.state.rule)

    def drain(self) -> Curriculum:
        """Write the closed windows into ``log_dir``; return the host's curriculum, which has counted them."""
        require(self._log_dir is not None, "there are no records to drain: this curriculum has no log_dir")
        require(self._begun, "there are no records before the training has begun")
        assert self._records is not None
        self._hand_over(self._records)
        return self._records

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Drain, and write to ``folder`` what `load` takes."""
        require(self._begun, "there is nothing to save before the training has begun")
        Path(folder).mkdir(parents=True, exist_ok=True)
        if self._log_dir is not None:
            self.drain().save(Path(folder) / RECORDS)
        snapshot.save(self._state_dict(), Path(folder) / DEVICE)

    def load(self, folder: str | os.PathLike[str]) -> None:
        """Go on where another training was saved. Call it before the training, which needs as many environments."""
        require(not self._begun, "the training has begun: load comes before it")
        needed = (DEVICE,) if self._log_dir is None else (DEVICE, RECORDS)
        for file in needed:
            advice = "name the folder that was given to save" if file == DEVICE else "that training had no log_dir"
            require((Path(folder) / file).exists(), f"{folder} has no {file}: {advice}")
        self._loaded = Path(folder)

    def _begin(self, window: int) -> None:
        """Open the records. A folder that holds another run is refused here, before any time is spent."""
        if self._log_dir is not None:
            about: dict[str, Any] = {"window": window, "log_dir": self._log_dir, "name": self._name, "seed": self._seed}
            records = Curriculum(self.rule, self.n_contexts, self.n_levels, oracle_group=self._oracle_group, **about)
            if self._loaded is not None:
                records.load(self._loaded / RECORDS)
            records.assign(0)
            self._records = records
        self._begun = True

    @abstractmethod
    def _hand_over(self, records: Curriculum) -> None:
        """Report the windows that have closed."""

    @abstractmethod
    def _state_dict(self) -> dict[str, Any]:
        """What `load` continues from."""
