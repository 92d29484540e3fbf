"""Values and lists in sentences, cut to a length that can be read."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 100
"""Characters of a value; a simulator's world can print itself as thousands."""
MOST_NAMES = 6


def brief(value: object, longest: int = LONGEST) -> str:
    """The text of a value on one line, cut after ``longest`` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest:,} more characters)"


def listed(names: Iterable[object], most: int = MOST_NAMES) -> str:
    """The first names, each brief, and how many more there are."""
    every = [brief(name) for name in names]
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")
