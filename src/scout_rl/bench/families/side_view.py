"""A sketch of a hand and an object from the side, for machines that cannot render."""

from __future__ import annotations

from typing import Any

from scout_rl.bench.families.family import GoalSimulator, States


def draw_side(axis: Any, simulator: GoalSimulator, state: States, *, table: float, shelf: bool = False) -> None:
    """Draw y against z: the table at that height, hand, object, goal, and the shelf's board below the goal."""
    view = simulator.observe(simulator.reset_to({name: array[None] for name, array in state.items()}))
    hand, thing, goal = view["observation"][0, :3], view["achieved_goal"][0], state["goal"]
    axis.axhline(table, color="grey", linewidth=1)
    if shelf:
        axis.plot([goal[1] - 0.11, goal[1] + 0.08], [0.24, 0.24], color="peru", linewidth=2)
    axis.plot([hand[1], hand[1]], [hand[2], hand[2] + 0.1], color="black", linewidth=2)
    axis.plot(thing[1], thing[2], "s", color="tab:blue", markersize=5)
    axis.plot(goal[1], goal[2], "o", color="tab:red", markersize=4)
    axis.set_xlim(0.4, 1.0)
    axis.set_ylim(table - 0.05, table + 0.6)
