"""What reports are told of our settings: their own learner, budget and bank, presets, and the paper's numbers."""

from __future__ import annotations

from scout_rl.bench.reproduction import paper
from scout_rl.bench.settings.bank import pinned_hashes
from scout_rl.bench.settings.presets import PRESETS, preset_constants
from scout_rl.bench.settings.settings import SETTINGS
from scout_rl.report.read.catalogue import Catalogue, Known, Printed

ALGORITHMS = ("ppo", "sac", "contrastive")
BY_MEAN = ("metaworld-conflict",)
"""Settings whose worst-group AUC the paper averages over seeds by the mean; elsewhere it takes the median."""


def catalogue() -> Catalogue:
    """Of every setting in the table."""
    hashes = pinned_hashes()
    return {
        key: Known(
            learner=own.learner,
            windows=own.windows,
            episodes=own.episodes,
            schedule_share=own.schedule_share,
            bank_sha256=hashes.get(key, ""),
            presets={(a, p): preset_constants(own, a, p) for a in ALGORITHMS for p in PRESETS},
            by_mean=key in BY_MEAN,
            printed={
                (n.rule, n.metric, n.ladder, n.levels): Printed(str(n), n.source)
                for n in paper.numbers()
                if n.setting == paper.THE_PAPERS.get(key, key)
            },
        )
        for key, own in SETTINGS.items()
    }
