"""The golden set: what a change of the layout must leave equal, bit for bit.

    python -m tests.golden make DIR          run everything, write it into DIR (about ten minutes on two cores)
    python -m tests.golden compare DIR DIR   list what differs; exit code 1 where anything does

Make it before a change and after it, on one machine. The set holds the first 50 windows of one run per family and
learner, every generated page, every table of the report over ``results/``, the ``--help`` of every command, and
``scout repeat`` of one record per family. Times, paths and the hash of our own source are left out. Runs draw their
cells as the first records did, so that sets from before and after the curriculum's own generator can be compared.
"""

import argparse
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
WINDOWS = 50
RUNS = {
    "minigrid-ppo": {"setting": "doorkey-split", "rule": "scout"},
    "minigrid-plr": {"setting": "multiroom", "rule": "plr"},
    "pointmaze-sac": {"setting": "pointmaze-medium", "rule": "scout"},
    "pointmaze-contrastive": {"setting": "pointmaze-large", "rule": "mixture", "algorithm": "contrastive"},
    "fetch-sac": {"setting": "fetch-conflict", "rule": "group-frontier"},
    "fetch-contrastive": {"setting": "fetch-air", "rule": "random", "algorithm": "contrastive", "ladder": "solver"},
    "metaworld-sac": {"setting": "metaworld-conflict", "rule": "anneal"},
}
REPEATED = {
    "minigrid": "results/doorkey-limited/scout/100.npz",
    "pointmaze": "results/pointmaze-medium/scout/100.npz",
    "fetch": "results/fetch-air/scout/100.npz",
    "metaworld": "results/metaworld-pickplace/scout/100.npz",
}
COMMANDS = (
    "new", "demo", "simulate", "train", "ladder", "campaign", "watch", "picture", "diagnose", "report", "evaluate",
    "verify-codec", "repeat",
)  # fmt: skip
TIMES = {"timing.jsonl", ".lock"}
SOURCE = re.compile(r'("?source"?:? )"?[0-9a-f]{12}"?(?: in the record, [0-9a-f]{12} now| there, [0-9a-f]{12} here)?')


def train_run(name, out):
    """The first windows of one run, in this process."""
    from scout_rl.bench.run.config import RunConfig
    from scout_rl.bench.run.train import train

    folder = out / "runs" / name
    train(
        RunConfig(seed=40, checkpoint_every=WINDOWS, **RUNS[name]), folder, until=WINDOWS, say=print, seed_stream=True
    )
    for path in folder.iterdir():
        if path.name in TIMES:
            path.unlink()
    for path in (folder / "checkpoints").rglob("manifest.json"):
        path.unlink()  # the arrays beside it are compared; it holds hashes of files
    shutil.rmtree(folder / "checkpoints" / "shared", ignore_errors=True)  # the replay: what the learner saw
    about = json.loads((folder / "run.json").read_text())
    about = {name: value for name, value in about.items() if name not in ("source", "ran_on")}
    (folder / "run.json").write_text(json.dumps(about, indent=1, sort_keys=True))


def repeat_record(name, out):
    """What `scout repeat` says."""
    path = out / "repeat" / f"{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "scout_rl", "repeat", REPEATED[name], "--windows", "20"]
    path.write_text(_plain(subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)))


def write_help(out):
    """Every `--help` at 80 columns."""
    (out / "help").mkdir(parents=True)
    env = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    for words in [[], *([name] for name in COMMANDS), ["train", "fetch-conflict"], ["campaign", "status"]]:
        done = subprocess.run(
            [sys.executable, "-m", "scout_rl", *words, "--help"], cwd=ROOT, env=env, capture_output=True, text=True
        )
        (out / "help" / f"{'-'.join(['scout', *words])}.txt").write_text(_plain(done))


def write_pages(out):
    """The generated pages with their figures, and the report over `results/`."""
    docs = out / "docs"
    shutil.copytree(ROOT / "docs", docs)
    for words in (
        ["scout_rl.bench.reproduction.reproduction", "results", docs, docs / "results.md"],
        ["scout_rl.bench.reproduction.results", docs, docs / "results.md", "results", "results-one-rule"],
        ["scout_rl.bench.reproduction.pairs", "results-development", docs, docs / "disagreements.md"],
    ):
        subprocess.run([sys.executable, "-m", *map(str, words)], cwd=ROOT, check=True)
    for path in docs.glob("*.md"):
        if path.name not in {"results.md", "reproduction.md", "pairs.md", "disagreements.md"}:
            path.unlink()
    report = out / "report"
    subprocess.run([sys.executable, "-m", "scout_rl", "report", "results", "-o", report], cwd=ROOT, check=True)
    for name in ("scout/100", "anneal/101-paper-windows2400"):
        record = f"results/fetch-conflict/{name}.npz"
        done = subprocess.run(
            [sys.executable, "-m", "scout_rl", "diagnose", record], cwd=ROOT, capture_output=True, text=True
        )
        (report / f"diagnose-{name.replace('/', '-')}.txt").write_text(_plain(done))


def _plain(done):
    text = f"exit code {done.returncode}\n{done.stdout}{done.stderr}".replace(str(ROOT), "ROOT")
    return SOURCE.sub(r"\1SOURCE", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text))


def make(out):
    """All parts, each in a process that is pinned to one core."""
    if out.exists():
        sys.exit(f"{out} exists: choose another folder")
    parts = [f"run {name}" for name in RUNS] + [f"repeat {name}" for name in REPEATED] + ["pages", "help"]
    cores = list(os.sched_getaffinity(0))
    free = list(cores)

    def start(part):
        core = free.pop()
        words = [sys.executable, "-m", "tests.golden", "part", part, str(out)]
        env = {**os.environ, "SCOUT_CACHE": str(out.with_name(f"{out.name}-cache")), "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            ["taskset", "-c", str(core), *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        free.append(core)
        print(f"{part}: exit code {done.returncode}", done.stderr[-2000:] if done.returncode else "", flush=True)
        return done.returncode

    with ThreadPoolExecutor(len(cores)) as pool:
        codes = list(pool.map(start, parts))
    sys.exit(max(codes))


def compare(before, after):
    """Every file that is not the same on both sides."""
    names = {path.relative_to(top).as_posix() for top in (before, after) for path in top.rglob("*") if path.is_file()}
    wrong = []
    for name in sorted(names):
        pair = before / name, after / name
        if not all(path.exists() for path in pair):
            wrong.append(f"{name}: only in {pair[0].parent if pair[0].exists() else pair[1].parent}")
        elif not filecmp.cmp(*pair, shallow=False):
            wrong.append(f"{name}: differs")
    print("\n".join([*wrong, f"{len(names)} files compared, {len(wrong)} differ"]))
    sys.exit(bool(wrong))


def part(name, out):
    """One part, in this process."""
    kind, _, what = name.partition(" ")
    {"run": lambda: train_run(what, out), "repeat": lambda: repeat_record(what, out)}.get(
        kind, lambda: {"pages": write_pages, "help": write_help}[kind](out)
    )()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "compare", "part"])
    parser.add_argument("arguments", nargs="+")
    given = parser.parse_args()
    if given.what == "make":
        make(Path(given.arguments[0]).resolve())
    elif given.what == "compare":
        compare(*map(Path, given.arguments))
    else:
        part(given.arguments[0], Path(given.arguments[1]))
