"""All scenarios of the learner model by rules: windows to solve / worst AUC / final success of the worst group.

    python -m benchmarks.scenarios                                              # nine minutes on two busy cores
    python -m benchmarks.scenarios --scenario gap --rule ability scout --seeds 2     # seconds

Windows to solve are a geometric mean over seeds; a seed that did not solve counts as the budget, and ``never`` is where
no seed did. On lost-skill they count from the loss. The fastest rule of a row is bold. Schedules take 5/6 of the
budget. ``huge-bank`` is played with its own two seeds at most. Rules are those that see no labels; a name may go on
with constants.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from scout_rl.rules.rule import Rule
from scout_rl.simulate import SCENARIOS, Scenario, play, rule_for
from scout_rl.simulate.run import SimulatedRun
from scout_rl.simulate.scenarios import capped_contexts, capped_level
from scout_rl.simulate.view import summarise, windows_to_solve

CAPPED: dict[str, Callable[[float], Scenario]] = {"capped-contexts": capped_contexts, "capped-level": capped_level}
BANKS: dict[str, Callable[[], Scenario]] = {
    **SCENARIOS,
    **{f"{name} {cap:g}": partial(make, cap) for name, make in CAPPED.items() for cap in (0.8, 1.0)},
}
"""The scenarios; those with a cap (0.5) also with a weak one and with none, to compare with."""
RULES = (
    *("ability", "mixture", "random", "scout", "scout n_min=5", "learnability", "thompson", "adaback", "anneal"),
    "rfcl",
)


class Cell(NamedTuple):
    """One rule on one scenario."""

    windows: float | None
    """Mean windows to solve; None: no seed solved."""
    auc: float
    final: float

    def text(self, best: bool) -> str:
        windows = "never" if self.windows is None else f"{self.windows:.0f}"
        return f"{f'**{windows}**' if best else windows} / {self.auc:.2f} / {self.final:.2f}"


def named(name: str, scenario: Scenario) -> Rule:
    """The rule of a name such as ``scout n_min=5``, for the scenario's budget."""
    key, *constants = name.split()
    values = {word: ast.literal_eval(value) for word, value in (constant.split("=") for constant in constants)}
    return dataclasses.replace(rule_for(key, scenario), **values)


def mean_windows_to_solve(scenario: Scenario, run: SimulatedRun) -> float | None:
    """Geometric mean over seeds; a seed that did not solve counts as the budget. None: no seed did.

    Where the learner loses a stage, windows and budget count from there.
    """
    start = 0 if scenario.lose is None else scenario.lose[0]
    after = run.windows >= start
    solved = [windows_to_solve(run.windows[after], worst[after]) for worst in run.success.min(axis=-1)]
    if all(window is None for window in solved):
        return None
    lengths = [(scenario.windows if window is None else window) - start for window in solved]
    return float(np.exp(np.log(np.maximum(lengths, 1)).mean()))


def measure(bank: str, name: str, seeds: int) -> Cell:
    scenario = BANKS[bank]()
    run = play(named(name, scenario), scenario, seeds=min(seeds, scenario.seeds))
    row = summarise(run)
    return Cell(mean_windows_to_solve(scenario, run), row.worst_auc, row.worst_final[0])


def table(cells: dict[tuple[str, str], Cell], banks: list[str], names: list[str]) -> str:
    """Markdown, a row per scenario and a column per rule."""
    lines = [["scenario", *(f"`{name}`" for name in names)], ["---"] * (len(names) + 1)]
    for bank in banks:
        row = [cells[bank, name] for name in names]
        best = min((cell.windows for cell in row if cell.windows is not None), default=None)
        lines.append([bank, *(cell.text(best is not None and cell.windows == best) for cell in row)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scenario", nargs="+", choices=list(BANKS), default=sorted(BANKS, key=_order))
    parser.add_argument("--rule", nargs="+", default=list(RULES), help="'scout n_min=5' is a rule with a constant")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    pairs = [(bank, name) for bank in args.scenario for name in args.rule]
    with ProcessPoolExecutor(args.workers) as pool:
        cells = pool.map(measure, *zip(*pairs, strict=True), [args.seeds] * len(pairs))
        print(table(dict(zip(pairs, cells, strict=True)), args.scenario, args.rule))


def _order(bank: str) -> int:
    """A weak cap beside the scenario that it varies."""
    return list(SCENARIOS).index(bank.split()[0])


if __name__ == "__main__":
    main()
