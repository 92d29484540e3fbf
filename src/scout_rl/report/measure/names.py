"""What blocks and conditions are called: titles that can be told apart, and a file name of its own for each."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from scout_rl.records.stored import SOURCES

KIN = ("setting", "preset", "algorithm", "ladder")
USUAL = {"ladder": "manual", "levels": 5}
"""Not worth a word in a label."""
LONGEST = 80
"""Characters of a file name."""


def block_labels(blocks: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[str]:
    """Setting, whatever is unusual, and whatever else tells blocks apart that share setting, learner and ladder.

    What a preset changes is said by its name. Where a policy ladder comes from is said only if nothing else tells two
    blocks apart. ``keys`` are the blocks as text, no two the same.
    """
    short = [_block_label(fields, blocks, silent=SOURCES) for fields in blocks]
    often = Counter(short)
    pairs = zip(short, blocks, strict=True)
    return told_apart([_block_label(fields, blocks) if often[name] > 1 else name for name, fields in pairs], keys)


def _block_label(fields: dict[str, Any], blocks: Sequence[dict[str, Any]], silent: Sequence[str] = ()) -> str:
    twins = [_flat(other) for other in blocks if all(other.get(k) == fields.get(k) for k in KIN)]
    told = {k: v for k, v in differing(_flat(fields), twins).items() if k not in USUAL and k not in silent}
    return f"{fields.get('setting') or 'log_dir'}{bracket({**unusual(fields), **told})}"


def told_apart(labels: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The labels, with a short hash of its key behind each one that is there twice."""
    often = Counter(labels)
    pairs = zip(labels, keys, strict=True)
    return [
        f"{name} #{hashlib.sha256(key.encode()).hexdigest()[:8]}" if often[name] > 1 else name for name, key in pairs
    ]


def unusual(fields: dict[str, Any]) -> dict[str, Any]:
    """What a label says of any protocol: ladder and levels, where they are not the usual ones, preset and algorithm."""
    named = {k: v for k, v in fields.items() if k in ("preset", "algorithm")}
    return {k: fields[k] for k, usual in USUAL.items() if fields.get(k, usual) != usual} | named


def _flat(fields: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in fields.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def differing(fields: dict[str, Any], among: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Those that are not the same in all the others."""
    return {k: v for k, v in fields.items() if any(other.get(k) != v for other in among)}


def bracket(told: dict[str, Any]) -> str:
    """The words of a label, in brackets."""
    words = []
    for key, value in told.items():
        name = key.rsplit(".", 1)[-1]
        if name == "ladder":
            words.append(f"{value} ladder")
        elif name == "levels":
            words.append(f"{value} levels")
        elif name in ("preset", "algorithm"):
            words.append(str(value))
        else:
            words.append(f"{name} {str(value)[:12] if name == 'bank' else value}")
    return f" ({', '.join(words)})" if words else ""


def file_names(labels: Sequence[str]) -> list[str]:
    """A file name for each label, in order; equal ones are numbered from the second on."""
    names: list[str] = []
    for label in labels:
        name, number = slug(label), 1
        while name in names:
            number += 1
            name = f"{slug(label)}-{number}"
        names.append(name)
    return names


def slug(label: str) -> str:
    """A label as a file name, which another label may share."""
    return re.sub(r"[^a-z0-9.]+", "-", label.lower())[:LONGEST].strip("-.") or "unnamed"
