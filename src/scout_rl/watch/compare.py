"""Several runs side by side, paired by seed; and the table of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Any

from scout_rl.files.refusal import Refusal
from scout_rl.report.measure.metrics import auc, common_window
from scout_rl.report.read.run import RunRecord
from scout_rl.watch.find import CHANCES, failures
from scout_rl.watch.rows import Place
from scout_rl.watch.views import held_out


def compare(runs: Sequence[tuple[dict[str, Any], RunRecord]]) -> dict[str, Any]:
    """Held-out curves of (row, run), and the worst group's area over the windows that all share, seed by seed."""
    evaluated = [run for _, run in runs if len(run.evaluated_at) > 1]
    try:
        common = common_window([run.evaluated_at for run in evaluated]) if evaluated else None
    except Refusal:
        common = None
    labels = _labels([row for row, _ in runs])
    entries: dict[int, list[dict[str, Any]]] = {}
    for (row, run), label in zip(runs, labels, strict=True):
        curves = list(run.held_out_groups.values())
        known = common is not None and len(run.evaluated_at) > 1
        area = min(auc(run.evaluated_at, curve, common) for curve in curves) if known and common else None
        final = min(float(curve[-1]) for curve in curves) if curves and len(curves[0]) else None
        entry = {"id": row["id"], "label": label, "worst_auc": _rounded(area), "final_worst": _rounded(final)}
        entries.setdefault(row["seed"], []).append(entry)
    return {
        "runs": [
            {name: row[name] for name in ("id", "name", "setting", "seed")}
            | {"label": label, "held_out": held_out(run)}
            for (row, run), label in zip(runs, labels, strict=True)
        ],
        "common": None if common is None else list(common),
        "pairs": [{"seed": seed, "runs": entries[seed]} for seed in sorted(entries)],
        "differences": _differences(entries),
    }


def _labels(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The rule (or the curriculum's name), with the setting where there are several; unique within a seed."""
    several = len({row["setting"] for row in rows}) > 1
    labels = [f"{row['setting']} {row['label']}".strip() if several else row["label"] for row in rows]
    doubled = {key for key, n in Counter(zip(labels, (row["seed"] for row in rows), strict=True)).items() if n > 1}
    return [
        f"{label} ({row['name']})" if (label, row["seed"]) in doubled else label
        for label, row in zip(labels, rows, strict=True)
    ]


def _differences(entries: dict[int, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Of every two labels, over the seeds that have both: the first's area less the second's."""
    areas = {
        (entry["label"], seed): entry["worst_auc"]
        for seed, runs in entries.items()
        for entry in runs
        if entry["worst_auc"] is not None
    }
    differences = []
    for a, b in combinations(dict.fromkeys(label for label, _ in areas), 2):
        seeds = [seed for seed in sorted(entries) if (a, seed) in areas and (b, seed) in areas]
        if seeds:
            values = [round(areas[a, seed] - areas[b, seed], 4) for seed in seeds]
            differences.append(
                {"a": a, "b": b, "seeds": seeds, "worst_auc": values, "median": round(median(values), 4)}
            )
    return differences


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def campaign_table(place: Place, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The runs below a campaign's folder, with their failures. ``rows`` are those of the runs below it."""
    failed, troubles = failures(place.path)
    cells = []
    below = f"{place.path}/"
    by_name = {row["folder"].removeprefix(below): row for row in rows}
    for name in sorted(by_name.keys() | failed.keys()):
        row, errors = by_name.get(name), failed.get(name, [])
        setting, rule, seed = ["", "", *name.split("/")][-3:]
        state = "waiting" if row is None else row["state"]
        if errors and state != "finished":
            state = "failed" if len(errors) >= CHANCES else "training" if state == "training" else "waiting"
        worst = None if row is None or row["worst"] is None else row["worst"]["success"]
        cells.append(
            {
                "setting": setting,
                "rule": rule,
                "seed": seed,
                "id": None if row is None else row["id"],
                "state": state,
                "windows": row["windows"] if row is not None else 0,
                "budget": None if row is None else row["budget"],
                "worst": worst,
                "times": len(errors),
                "error": errors[-1] if errors else "" if row is None else row["trouble"],
            }
        )
    return {
        "id": place.id,
        "name": place.name,
        "folder": str(place.path),
        "counts": dict(Counter(cell["state"] for cell in cells)),
        "cells": cells,
        "seeds": sorted({cell["seed"] for cell in cells}),
        "troubles": troubles,
    }
