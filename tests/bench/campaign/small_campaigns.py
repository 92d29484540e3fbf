"""A campaign of real runs, small in everything, and what its runs leave behind."""

import os
import subprocess
import sys
from pathlib import Path

FREE = {"timing.jsonl"}
"""What may differ between equal runs."""
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


def campaign(file, out, *flags):
    """`scout campaign`, started."""
    command = [sys.executable, "-m", "scout_rl.cli", "campaign", str(file), "--out", str(out), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    """Its exit code and what it printed."""
    printed = process.communicate(timeout=240)[0]
    return process.returncode, printed


def records(folder):
    """Every record file of a run but for timings, and the arrays of its last checkpoint."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name not in FREE}
    last = max((folder / "checkpoints").iterdir())
    return files | {f"checkpoint/{path.name}": path.read_bytes() for path in last.glob("*.npz")}


def run_folders(out):
    """Run folders below ``out`` by their name."""
    found = sorted(path.parent for path in Path(out).rglob("run.json"))
    return {str(folder.relative_to(out)): folder for folder in found}


def windows(folder):
    """Windows that a run has closed."""
    path = folder / "timing.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def children(pid):
    """Worker processes of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                command = (entry / "cmdline").read_text()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == pid and "scout_rl.bench.campaign.worker" in command:
                found.append(int(entry.name))
    return found


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def share_cache(tmp_path_factory):
    """One compilation for all tests and workers."""
    os.environ.setdefault("SCOUT_CACHE", str(tmp_path_factory.getbasetemp().parent / "scout-cache"))
