"""Labels of blocks and conditions, all different, and a file name for each."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from scout_rl.records.stored import SOURCES

KIN = ("setting", "preset", "algorithm", "ladder")
"""Blocks that are equal in these fields need more words in their labels."""
USUAL = {"ladder": "manual", "levels": 5}
"""Not mentioned in a label."""
WORDS = {
    "ladder": "{} ladder",
    "levels": "{} levels",
    "preset": "{}",
    "algorithm": "{}",
    "held_out": "held out: {}",
}
"""How a label names these fields; others by their name and value."""
LONGEST = 80
"""Most characters of a file name."""


def block_labels(names: Sequence[str], blocks: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[str]:
    """Per block: its name, what is unusual, and what differs from blocks with the same `KIN` fields.

    The name of a preset stands for what it changes. The source of a policy ladder is named only if nothing else
    distinguishes two blocks. ``keys`` are the blocks as text, all different.
    """
    named = list(zip(names, blocks, strict=True))
    short = [name + _what_differs(fields, blocks, silent=SOURCES) for name, fields in named]
    often = Counter(short)
    pairs = zip(short, named, strict=True)
    return distinct_labels(
        [name + _what_differs(fields, blocks) if often[label] > 1 else label for label, (name, fields) in pairs], keys
    )


def _what_differs(fields: dict[str, Any], blocks: Sequence[dict[str, Any]], silent: Sequence[str] = ()) -> str:
    twins = [_flat(other) for other in blocks if all(other.get(k) == fields.get(k) for k in KIN)]
    differences = {k: v for k, v in differing(_flat(fields), twins).items() if k not in USUAL and k not in silent}
    return bracket({**unusual(fields), **differences})


def distinct_labels(labels: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The labels; those that occur twice get a short hash of their key."""
    often = Counter(labels)
    pairs = zip(labels, keys, strict=True)
    return [
        f"{name} #{hashlib.sha256(key.encode()).hexdigest()[:8]}" if often[name] > 1 else name for name, key in pairs
    ]


def unusual(fields: dict[str, Any]) -> dict[str, Any]:
    """What every label mentions: unusual ladder and levels, preset and algorithm."""
    named = {k: v for k, v in fields.items() if k in ("preset", "algorithm")}
    return {k: fields[k] for k, usual in USUAL.items() if fields.get(k, usual) != usual} | named


def _flat(fields: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in fields.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def differing(fields: dict[str, Any], among: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The fields that are not the same in all of ``among``."""
    return {k: v for k, v in fields.items() if any(other.get(k) != v for other in among)}


def bracket(fields: dict[str, Any]) -> str:
    """Fields as the words of a label, in brackets."""
    words = [_words(key.rsplit(".", 1)[-1], value) for key, value in fields.items()]
    return f" ({', '.join(words)})" if words else ""


def _words(name: str, value: Any) -> str:
    if name == "bank":
        return str(value) if str(value).endswith(" contexts") else f"bank {str(value)[:12]}"
    return WORDS[name].format(value) if name in WORDS else f"{name} {value}"


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
    """A label as a file name; two labels may have the same."""
    return re.sub(r"[^a-z0-9.]+", "-", label.lower())[:LONGEST].strip("-.") or "unnamed"
