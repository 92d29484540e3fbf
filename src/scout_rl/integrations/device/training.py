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

RECORDS = "records"
"""The entry of a save that holds the host's curriculum; the names of its arrays begin with it and a dot."""


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
        self._loaded: dict[str, Any] | None = None
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Drain, and write what `load` takes to one npz file, atomically: device and records never disagree."""
        require(self._begun, "there is nothing to save before the training has begun")
        records = None if self._log_dir is None else self.drain()
        stored = self._state_dict()
        if records is not None:
            records.sync()
            stored[RECORDS] = records.state_dict()
            arrays = stored[RECORDS].pop("arrays")
            stored["arrays"] |= {f"{RECORDS}.{name}": array for name, array in arrays.items()}
        snapshot.save(stored, path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on where another training was saved. Call it before the training, which needs as many environments."""
        require(not self._begun, "the training has begun: load comes before it")
        require(Path(path).is_file(), f"there is no file {path}: name the one that was given to save")
        self._loaded = snapshot.load(path)
        has_records = isinstance(self._loaded.get(RECORDS), dict)
        require(self._log_dir is None or has_records, f"{path} has no records: that training had no log_dir")

    def _begin(self, window: int) -> None:
        """Open the records. A folder that holds another run is refused here, before any time is spent."""
        if self._log_dir is not None:
            about: dict[str, Any] = {"window": window, "log_dir": self._log_dir, "name": self._name, "seed": self._seed}
            records = Curriculum(self.rule, self.n_contexts, self.n_levels, oracle_group=self._oracle_group, **about)
            if self._loaded is not None:
                start = f"{RECORDS}."
                arrays = {k.removeprefix(start): v for k, v in self._loaded["arrays"].items() if k.startswith(start)}
                records.load_state_dict({**self._loaded[RECORDS], "arrays": arrays})
            records.assign(0)
            self._records = records
        self._begun = True

    @abstractmethod
    def _hand_over(self, records: Curriculum) -> None:
        """Report the windows that have closed."""

    @abstractmethod
    def _state_dict(self) -> dict[str, Any]:
        """What `load` continues from."""
