"""Small real runs, and processes that are killed while they run them."""

import subprocess
import sys

import numpy as np

from scout_rl.bench.run.config import RunConfig

FREE = {"timing.jsonl"}
"""What may differ between equal runs."""

_GOALS = {"hidden": [32, 32], "updates": 2, "batch": 32, "warmup": 100}
KINDS = {
    "doorkey": {
        "setting": "doorkey-small",
        "windows": 8,
        "evaluate_every": 4,
        "checkpoint_every": 3,
        "learner": {"epochs": 1, "row_fractions": [1.0], "minibatch": 640},
    },
    # ten episodes fit into the replay, so the ring is overwritten more than once
    "fetch": {
        "setting": "fetch-conflict-small",
        "windows": 7,
        "evaluate_every": 4,
        "checkpoint_every": 2,
        "rule": "plr",  # asks the learner for its signal
        "learner": {**_GOALS, "capacity": 10 * 50},
    },
    "pointmaze": {
        "setting": "pointmaze-medium-small",
        "windows": 7,
        "evaluate_every": 7,
        "checkpoint_every": 2,
        "learner": {**_GOALS, "capacity": 10 * 600},
    },
}


def tiny(kind="doorkey", **changes):
    """A real run, small in everything: windows of 4 rollouts."""
    return RunConfig(**{"seed": 41, "episodes": 4, **KINDS[kind], **changes})


def everything(folder):
    """Every byte that a run leaves, but for timings: records, the last checkpoint and its replay."""
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and p.name not in FREE}
    last = max(path for path in (folder / "checkpoints").iterdir() if path.name.isdigit())
    for path in [last / "learner.npz", *sorted((folder / "checkpoints").glob("shared/*"))]:
        with np.load(path) as arrays:
            files |= {f"{path.name}/{name}": arrays[name].tobytes() for name in arrays.files}
    return files


CHILD = """
import os, signal, sys, time
from pathlib import Path
from scout_rl.bench.run import checkpoint
from scout_rl.records import tables as records
from scout_rl.bench.run.train import train
from tests.bench.run import run_helpers

kind, where, count = sys.argv[2], sys.argv[3], int(sys.argv[4])

def die(call):
    def dying(*given, **named):
        global count
        count -= 1
        if count == 0:
            if where == "append":  # half a row
                with given[0].open("ab") as file:
                    file.write(given[1][: len(given[1]) // 2])
            if where == "write":  # half a file
                given[0].parent.mkdir(parents=True, exist_ok=True)
                Path(f"{given[0]}.1.partial").write_bytes(given[1][: len(given[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)
    return dying

def hold(call):
    def holding(*given, **named):
        while Path(sys.argv[1] + ".hold").exists():
            time.sleep(0.05)
        return call(*given, **named)
    return holding

if where == "append":
    records._append = die(records._append)
elif where == "hold":
    records._append = hold(records._append)
elif where == "write":
    checkpoint.write_bytes = die(checkpoint.write_bytes)
elif where == "rename":
    checkpoint.os.rename = die(os.rename)
elif where == "clean":
    checkpoint.shutil.rmtree = die(checkpoint.shutil.rmtree)
elif where == "drop":
    checkpoint._delete_unused = die(checkpoint._delete_unused)
elif where == "play":
    from scout_rl.bench.run import parts
    for name in ("device_window", "host_window"):
        setattr(parts, name, (lambda make: lambda *given, **named: die(make(*given, **named)))(getattr(parts, name)))
train(run_helpers.tiny(kind), Path(sys.argv[1]))
"""


def child(folder, where="never", count=0, kind="doorkey"):
    """A run in a process that dies the ``count``-th time it comes there, or that waits while ``folder``.hold exists."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), kind, where, str(count)], stdout=subprocess.PIPE, text=True
    )
