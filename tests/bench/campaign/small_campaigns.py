"""A campaign of real runs, small in everything, and what its runs leave behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

from scout_rl.files.lock import LOCK

PATIENCE = 200
"""Seconds for anything that happens sooner or later: other processes may take every core."""
FREE = {"timing.jsonl", LOCK}
"""What may differ between equal runs: times, and a file that holds nothing."""
FIELDS = """
[defaults]
windows = {windows}
episodes = 4
evaluate_every = 4
checkpoint_every = 2
learner = {{ epochs = 1, row_fractions = [1.0], minibatch = 640 }}
"""
BLOCK = """
[[runs]]
settings = ["doorkey-split-small"]
rules = {rules}
seeds = {seeds}
"""


def write_file(path, rules, seeds, windows=16):
    path.write_text(FIELDS.format(windows=windows) + BLOCK.format(rules=list(rules), seeds=list(seeds)))
    return path


def campaign(file, out, *flags, env=None):
    """`scout campaign`, started."""
    command = [sys.executable, "-m", "scout_rl.cli", "campaign", str(file), "--out", str(out), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


def finish(process):
    """Its exit code and what it printed."""
    printed = process.communicate(timeout=2 * PATIENCE)[0]
    return process.returncode, printed


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


HOLDING = """
import os, pathlib, sys, time
folder = pathlib.Path({folder!r})

def wanted():
    try:
        return (folder / "wanted").read_text()
    except FileNotFoundError:
        return None

def hold(event, given):
    if event == "open" and given[2] & os.O_APPEND and str(given[0]).endswith("timing.jsonl"):
        path, mark = pathlib.Path(given[0]), folder / f"{{os.getpid()}}.held"
        closed = path.read_bytes().count(b"\\n") if path.exists() else 0
        while wanted() in (f"{{path.parts[-3]}} {{closed}}", f"any {{closed}}"):
            mark.touch()
            time.sleep(0.05)
        mark.unlink(missing_ok=True)

sys.addaudithook(hold)
"""


class Hold:
    """Holds runs of a rule, or of any, in the middle, however busy the machine is: no window is closed after that.

    It reaches a process, and those that it starts, through `env`. A held process sleeps; its other threads go on.
    """

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(HOLDING.format(folder=str(folder)))
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

    def at(self, rule, windows):
        """From now on there; whoever is held elsewhere goes on."""
        (self.folder / "wanted.partial").write_text(f"{rule} {windows}")
        os.replace(self.folder / "wanted.partial", self.folder / "wanted")

    def nowhere(self):
        (self.folder / "wanted").unlink()

    def held(self):
        """The processes that are held, and live."""
        return [pid for path in self.folder.glob("*.held") if alive(pid := int(path.stem))]


def records(folder):
    """Every record file of a run but for timings, and the arrays of its last checkpoint."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name not in FREE}
    last = max(path for path in (folder / "checkpoints").iterdir() if path.name.isdigit())
    return files | {f"checkpoint/{path.name}": path.read_bytes() for path in last.glob("*.npz")}


def run_folders(out):
    """Run folders below ``out`` by their name."""
    found = sorted(path.parent for path in Path(out).rglob("run.json"))
    return {str(folder.relative_to(out)): folder for folder in found}


def windows(folder):
    """Windows that a run has closed."""
    path = folder / "timing.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def children(pid, command="scout_rl.bench.run.worker"):
    """Processes that a process started and whose command line holds that: its workers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                words = (entry / "cmdline").read_text()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == pid and command in words:
                found.append(int(entry.name))
    return found


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
