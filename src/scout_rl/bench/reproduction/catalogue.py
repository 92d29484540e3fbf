"""The catalogue for reports: each setting's learner, budget, bank and presets, and the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scout_rl.bench.reproduction import paper
from scout_rl.bench.settings.bank import pinned_hashes
from scout_rl.bench.settings.presets import PRESETS, preset_constants
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.report.measure.metrics import Summary, summarise
from scout_rl.report.read.catalogue import Catalogue, KnownSetting, Printed
from scout_rl.report.read.runs import find, load

ALGORITHMS = ("ppo", "sac", "contrastive")
BY_MEAN = ("metaworld-conflict",)
"""Settings whose worst-group AUC the paper averages over seeds by the mean; elsewhere by the median."""


def catalogue() -> Catalogue:
    """An entry per setting."""
    hashes = pinned_hashes()
    return {
        key: KnownSetting(
            learner=setting.learner,
            windows=setting.windows,
            episodes=setting.episodes,
            schedule_share=setting.schedule_share,
            bank_sha256=hashes.get(key, ""),
            presets={(a, p): preset_constants(setting, a, p) for a in ALGORITHMS for p in PRESETS},
            by_mean=key in BY_MEAN,
            printed={
                (n.rule, n.metric, n.ladder, n.levels): Printed(str(n), n.source)
                for n in paper.numbers()
                if n.setting == paper.PAPER_SETTING.get(key, key)
            },
        )
        for key, setting in SETTINGS.items()
    }


def summaries(paths: Sequence[Path]) -> list[Summary]:
    """Of every record at or below the paths."""
    known = catalogue()
    return [summarise(load(path, catalogue=known)) for path in find(paths)]
