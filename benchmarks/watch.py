"""What the watch page costs: to open many runs, to follow them, in memory; and what it costs the training it watches.

    python -m benchmarks.watch [--runs 100] [--windows 2400] [--contexts 200] [--large 10000] [--blocks 40]

The runs are played by `ability` on a toy learner; one is played, the others are copies with another seed. The server is
`scout watch` in a process of its own, asked over HTTP as the page asks. An update is one new window in every tenth run:
the server's time is its own processor time, from before the look at the files until all parts of an open run are
answered. The last table is of training windows with a watcher beside them and without, in turn, block after block: the
processor time of the training process per window. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
from tests.watch.planted import GrowingRun

from scout_rl.watch.watcher import Watcher

PARTS = ("", "/heat", "/curves", "/shares", "/events", "/stuck", "/time", "/contexts/3")


def many(folder, runs, windows, contexts):
    """Run folders of one size. The first is alive: it can play on."""
    first = GrowingRun(folder / "run-000", n_contexts=contexts, budget=windows + 1000, every=windows // 8, held_out=100)
    first.play(windows)
    for i in range(1, runs):
        copy = folder / f"run-{i:03}"
        shutil.copytree(first.folder, copy)
        for name in ("run.json", "config.json"):
            about = json.loads((copy / name).read_text())
            about.get("config", about)["seed"] = 40 + i
            (copy / name).write_text(json.dumps(about))
    return first


class Server:
    """`scout watch` in a process of its own."""

    def __init__(self, folder):
        command = [sys.executable, "-m", "scout_rl", "watch", str(folder), "--no-open", "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.url = line.split(" at ")[1].split()[0].rstrip("/")

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as answer:
            return json.load(answer)

    @property
    def processor_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def megabytes(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def close(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)


def opening(folder, runs):
    """Seconds from the command to the overview, and to one run with all its parts; memory with every run opened."""
    begun = time.perf_counter()
    server = Server(folder)
    try:
        rows = server.get("/api/overview")["runs"]
        assert len(rows) == runs, len(rows)
        overview, used = time.perf_counter() - begun, server.processor_seconds
        key = rows[0]["id"]
        asked = time.perf_counter()
        for part in PARTS:
            server.get(f"/api/runs/{key}{part}")
        one, one_used = time.perf_counter() - asked, server.processor_seconds - used
        answers = 1
        while not server.get(f"/api/runs/{key}/shares")["teaching"]["complete"]:
            answers += 1
        whole = time.perf_counter() - asked
        for row in rows:
            server.get(f"/api/runs/{row['id']}/heat")
            server.get(f"/api/runs/{row['id']}/curves")
        return {
            "command_to_overview_s": overview,
            "of_which_processor_s": used,
            "one_run_processor_s": one_used,
            "one_run_all_parts_s": one,
            "its_replay_s": whole,
            "answers_for_the_replay": answers,
            "server_mb": server.megabytes,
        }
    finally:
        server.close()


def updates(folder, live, rounds, *, every=10):
    """Processor milliseconds of the watcher per update: the look, and every part of the open run."""
    watcher = Watcher([folder])
    watcher.look(spare=0.0)
    key = next(key for key, row in watcher.rows.items() if row.place.path == live.folder.resolve())
    asked = {"since": 0}
    while not watcher.shares(key, 240)["teaching"]["complete"]:
        pass
    watcher.look(spare=float("inf"))
    others = [path for i, path in enumerate(sorted(folder.iterdir())) if i % every == 0 and path != live.folder]
    looks, parts = [], []
    for _ in range(rounds):
        live.play(1)
        for path in others:  # a window's rows of the live run: the same numbers follow there
            for name in ("windows.jsonl", "timing.jsonl", "metrics.jsonl"):
                last = (live.folder / name).read_bytes().splitlines(keepends=True)[-1]
                with (path / name).open("ab") as file:
                    file.write(last)
            size = live.curriculum.n_contexts
            with (path / "frontier.int8").open("ab") as file:
                file.write((live.folder / "frontier.int8").read_bytes()[-size:])
        begun = time.process_time()
        watcher.look()
        looks.append(time.process_time() - begun)
        begun = time.process_time()
        heat = watcher.heat(key, 240, asked["since"])
        asked["since"] = heat["windows"] - heat["width"]
        answers = [watcher.about(key), heat, watcher.curves(key, 240), watcher.shares(key, 240)]
        answers += [watcher.events(key, 200, 0, None), watcher.stuck(key, 200), watcher.time_spent(key, 240)]
        json.dumps(answers, allow_nan=False)
        parts.append(time.process_time() - begun)
    both = [a + b for a, b in zip(looks, parts, strict=True)]
    milliseconds = {"look": looks, "parts": parts, "update": both}
    return {
        **{f"{name}_ms": 1000 * statistics.median(values) for name, values in milliseconds.items()},
        "worst_update_ms": 1000 * max(both),
        "runs_that_grew": 1 + len(others),
        "records_mb": watcher.memory / 2**20,
    }


def training(folder, blocks, windows):
    """Processor milliseconds of the training process per window, without and with a watcher that has a page open."""
    run = GrowingRun(folder / "training", n_contexts=200, budget=10**6)
    weights = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32)

    def window():  # stands for a learner: about five milliseconds on one core
        x = weights
        for _ in range(12):
            x = np.tanh(x @ weights)
        run.play(1)

    for _ in range(20):
        window()
    spent = {False: [], True: []}
    server = Server(folder)
    stream = None
    try:
        for block in range(2 * blocks):
            watched = bool(block % 2) ^ bool(block // 2 % 2)  # without, with, with, without
            if watched:
                server.process.send_signal(signal.SIGCONT)
                stream = stream or subprocess.Popen(
                    [sys.executable, "-c", PAGE, server.url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            else:
                server.process.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            begun = time.process_time()
            for _ in range(windows):
                window()
            spent[watched].append((time.process_time() - begun) / windows)
    finally:
        server.process.send_signal(signal.SIGCONT)
        if stream is not None:
            stream.kill()
            stream.wait()
        server.close()
    ratios = np.array(spent[True]) / np.array(spent[False])
    rng = np.random.default_rng(0)
    resampled = np.median(rng.choice(ratios, (2000, len(ratios))), axis=1)
    return {
        "without_ms": 1000 * statistics.median(spent[False]),
        "with_ms": 1000 * statistics.median(spent[True]),
        "ratio": float(np.median(ratios)),
        "ratio_95": np.quantile(resampled, [0.025, 0.975]).tolist(),
    }


PAGE = """
import json, sys, urllib.request
url = sys.argv[1]
key = json.load(urllib.request.urlopen(url + "/api/overview"))["runs"][0]["id"]
since = 0
for line in urllib.request.urlopen(url + "/api/updates"):
    if line.startswith(b"event: rows"):
        for part in (f"heat?since={since}", "curves", "shares", "events", "stuck", "time"):
            answer = json.load(urllib.request.urlopen(f"{url}/api/runs/{key}/{part}"))
            since = answer.get("windows", since) if part.startswith("heat") else since
"""
"""A page: told of a change, it asks for every part, and for the new columns of the map."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--windows", type=int, default=2400)
    parser.add_argument("--contexts", type=int, default=200)
    parser.add_argument("--large", type=int, default=10_000, help="contexts of the one large run")
    parser.add_argument("--blocks", type=int, default=40, help="blocks of training with and without a watcher")
    parser.add_argument("--block", type=int, default=100, help="windows in a block")
    parser.add_argument("--rounds", type=int, default=20, help="updates that are timed")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        live = many(folder / "many", options.runs, options.windows, options.contexts)
        size = f"{options.runs} runs x {options.windows} windows x {options.contexts} contexts"
        result = {size: {**opening(folder / "many", options.runs), **updates(folder / "many", live, options.rounds)}}
        large = many(folder / "large", 1, options.windows, options.large)
        size = f"1 run x {options.windows} windows x {options.large} contexts"
        result[size] = {**opening(folder / "large", 1), **updates(folder / "large", large, options.rounds)}
        (folder / "cost").mkdir()
        result["training"] = training(folder / "cost", options.blocks, options.block)
    for title, numbers in result.items():
        print(title)
        for name, value in numbers.items():
            text = " to ".join(f"{part:.4f}" for part in value) if isinstance(value, list) else f"{value:.4g}"
            print(f"  {name:<26}{text}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
