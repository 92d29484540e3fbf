"""One run of every kind that the campaigns have (simulator, ladder source, learner), end to end, cut to two windows."""

import os
import re

import pytest

from scout_rl.bench.campaign.conduct import conduct, missing, survey
from scout_rl.bench.campaign.engine import Pool
from scout_rl.bench.campaign.file import load
from scout_rl.bench.campaign.state import Phase
from scout_rl.bench.run.store import open_store
from scout_rl.bench.settings.settings import setting
from scout_rl.records.compact import unpack
from tests.bench.campaign.test_files import FILES, lacking

SMALL = [file for file in FILES if file.stem.endswith("-small")]


def kind(config):
    learner = getattr(config, "algorithm", "") or setting(config.setting).learner
    return setting(config.setting).family, config.ladder, learner, config.rule == "rfcl-demo"


def cut(file, folder):
    """The file with two windows a run and few updates."""
    text = re.sub(r"windows = \d+", "windows = 2", file.read_text()).replace("-windows40", "-windows2")
    text = re.sub(r"updates = \d+", "updates = 2", text)
    text = re.sub(r"overrides = \[.*windows.*\]\n", "windows = 2\n", text)  # would all be one run
    (folder / file.name).write_text(text)
    return folder / file.name


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_one_run_of_every_kind(tmp_path):
    out, chosen = str(tmp_path / "runs"), {}
    for file in SMALL:
        if not lacking(file):
            runs = {run.name: run for run in load(cut(file, tmp_path), out).runs}
            for run in runs.values():
                if kind(run.config) not in {kind(other.config) for other in chosen.values()}:
                    chosen |= {name: runs[name] for name in (*run.needs, run.name)}
    runs, store = list(chosen.values()), open_store(out)
    assert {("minigrid", "solver", "ppo", False), ("minigrid", "manual", "ppo", False)} <= {
        kind(r.config) for r in runs
    }
    before = survey(runs, store, tmp_path / "results")
    pool = Pool(out, len(os.sched_getaffinity(0)), 1)
    after = conduct(runs, missing(runs, before), before, store, pool, results=tmp_path / "results")
    assert {name: status.note for name, status in after.items() if status.phase is not Phase.FINISHED} == {}
    for run in runs:
        record = unpack(tmp_path / "results" / f"{run.name}.npz")
        assert record.about["config"] == run.config.as_dict()
        assert len(record.context) == 2
        assert record.environment_steps[-1] > record.environment_steps[0] > 0
