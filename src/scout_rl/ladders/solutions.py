"""A ladder from worked solutions: a level is how much of a prompt's solution a language model is shown.

    ladder = SolutionLadder(rows, by="step")      # rows: a list of dicts or a datasets.Dataset
    ladder.row(context=3, level=2)["prompt"]      # the prompt, continued by half of its solution

Level 0 is the bare prompt. At level l, the share ``shares[l]`` of the solution stands at the beginning of the
assistant's turn, and the model continues it. Only the lengths of these prefixes are kept: four bytes per cell.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scout_rl.files.refusal import Refusal

CONTEXT, LEVEL, PREFIX = "scout_context", "scout_level", "scout_prefix"
"""The columns that a cell's row has beside those of its prompt's row."""
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9)
Split = Callable[[str], Sequence[str]]
"""Cuts a solution into pieces, which joined are the solution again."""
APART = r"(?!\w|[.,]\d)"
"""A pattern for where no word or number goes on."""


def steps(solution: str) -> list[str]:
    """Lines, each with its line end; empty lines belong to the line before them."""
    return re.findall(r"[^\n]*\n+|[^\n]+", solution)


def sentences(solution: str) -> list[str]:
    """Sentences. The space between two belongs to the second, as in the tokens of most models."""
    return re.split(r"(?<=[.!?])(?=\s+\S)", solution)


def tokens(tokenizer: Any) -> Split:
    """Tokens of a fast tokenizer of ``transformers``."""

    def split(solution: str) -> list[str]:
        offsets = tokenizer(solution, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        cuts = [0, *(start for start, _ in offsets[1:]), len(solution)]
        return [solution[a:b] for a, b in itertools.pairwise(cuts)]

    return split


class SolutionLadder:
    """The cells of a bank of prompts with worked solutions.

    ``rows`` has one row per context: a list of dicts, or a ``datasets.Dataset``. ``prompt`` and ``solution`` name its
    columns; a prompt is a text, or a list of messages that ends before the assistant's turn. ``by`` is ``"step"`` (a
    line), ``"sentence"``, ``tokens(tokenizer)`` or a function of your own that cuts a solution into pieces; ``shares``
    says how much of them each level shows.

    No prefix may give the final answer away. ``answer`` names the column that holds it, and a prefix in which it
    stands as a word of its own is refused, also in other case, or as 1,538 or 1538.0 for 1538. An answer of one letter
    matches case: the choice A is not the article a. With ``leaks="cut"`` prefixes end before the piece with the answer.
    ``answer=None`` leaves this check out.
    """

    def __init__(
        self,
        rows: Any,
        *,
        by: str | Split = "step",
        shares: Sequence[float] = SHARES,
        prompt: str = "prompt",
        solution: str = "solution",
        answer: str | None = "answer",
        leaks: str = "refuse",
    ) -> None:
        self.rows, self._prompt, self._solution = rows, prompt, solution
        self.shares = np.asarray(shares, float)
        _check_arguments(rows, self.shares, by, leaks)
        self._check_columns(answer)
        self.n_contexts, self.n_levels = len(rows), len(self.shares)
        split = {"step": steps, "sentence": sentences}[by] if isinstance(by, str) else by
        answers = itertools.repeat(None) if answer is None else map(_stripped, _column(rows, answer))
        self._length: NDArray[np.int32] = np.zeros((self.n_contexts, self.n_levels), np.int32)
        for context, (text, final) in enumerate(zip(_column(rows, solution), answers, strict=False)):
            self._length[context] = self._lengths(context, text, final, split, leaks)
        if not self._length.any():
            raise Refusal("no level shows anything: every solution is one piece, so cut it finer with by=")

    def row(self, context: int, level: int) -> dict[str, Any]:
        """The row of a cell: that of its prompt, with the prompt continued and three columns more."""
        row = dict(self.rows[context])
        prefix = row[self._solution][: self._length[context, level]]
        prompt = _continued(row[self._prompt], prefix)
        row.update({"prompt": prompt, CONTEXT: context, LEVEL: level, PREFIX: prefix})
        return row

    def solution(self, context: int) -> str:
        """The worked solution of a context."""
        return str(self.rows[context][self._solution])

    def _check_columns(self, answer: str | None) -> None:
        columns = getattr(self.rows, "column_names", None) or list(self.rows[0])
        for name in filter(None, (self._prompt, self._solution, answer)):
            if name not in columns:
                way_out = "" if name != answer else ", or say answer=None to let answers leak unseen"
                raise Refusal(
                    f"the rows have no column {name!r}, only {', '.join(columns)}: name the right one{way_out}"
                )
        for context, prompt in enumerate(_column(self.rows, self._prompt)):
            if prompt is None:
                raise Refusal(f"row {context} has no prompt (column {self._prompt!r}): leave it out")
            if isinstance(prompt, list) and (not prompt or prompt[-1].get("role") == "assistant"):
                raise Refusal(
                    f"prompts must end before the assistant's turn, but that of row {context} is empty or has one"
                )

    def _lengths(self, context: int, text: Any, final: str | None, split: Split, leaks: str) -> NDArray[np.int64]:
        """How many characters of the solution each level shows."""
        if not isinstance(text, str) or not text.strip():
            raise Refusal(
                f"row {context} has no solution (column {self._solution!r} holds {text!r}): a level shows a part of "
                "the worked solution, so leave that prompt out"
            )
        if final == "":
            raise Refusal(f"row {context} has no answer: leave it out, or say answer=None to let answers leak unseen")
        pieces = split(text)
        if "".join(pieces) != text:
            raise Refusal(f"by= cuts the solution of row {context} into pieces that joined are another text")
        ends = np.cumsum([0, *map(len, pieces)])
        shown: NDArray[np.int64] = ends[np.floor(self.shares * len(pieces) + 1e-9).astype(int)]
        answer = None if final is None else _place(final, text)
        if answer is None or shown[-1] < answer.end():
            return shown
        if leaks == "cut":
            return np.minimum(shown, int(ends[ends <= answer.start()][-1]))
        level = int(np.argmax(shown >= answer.end()))
        raise Refusal(
            f"level {level} of row {context} shows the answer {final!r}, in {text[: answer.end()][-30:]!r}: show "
            "less with shares=, or end prefixes before the answer with leaks='cut'"
        )


def _check_arguments(rows: Any, shares: NDArray[np.float64], by: Any, leaks: str) -> None:
    if not (hasattr(rows, "__len__") and hasattr(rows, "__getitem__") and len(rows)):
        raise Refusal("rows must be a list of dicts or a datasets.Dataset with at least one row, not a stream")
    rising = shares.ndim == 1 and len(shares) > 1 and shares[0] == 0 and (np.diff(shares) > 0).all() and shares[-1] < 1
    if not rising:
        raise Refusal(f"shares are {shares.tolist()}, but must begin with 0 and rise to less than 1")
    if not callable(by) and by not in ("step", "sentence"):
        raise Refusal(f"by is {by!r}, but must be 'step', 'sentence', tokens(tokenizer) or a function")
    if leaks not in ("refuse", "cut"):
        raise Refusal(f"leaks is {leaks!r}, but must be 'refuse' or 'cut'")


def _column(rows: Any, name: str) -> Iterator[Any]:
    """One column, row by row."""
    return iter(rows[name]) if hasattr(rows, "column_names") else (row.get(name) for row in rows)


def _stripped(answer: Any) -> str:
    return "" if answer is None else str(answer).strip()


def _place(answer: str, text: str) -> re.Match[str] | None:
    """Where the answer first stands as a word or number of its own: not 12 in 3.12, 12.5 or 112."""
    number = _number(answer)
    before = r"(?<!\w)(?<!\d[.,])" if answer[:1].isalnum() or (number and answer[0] == ".") else ""
    after = APART if answer[-1:].isalnum() and not number else ""
    case = re.IGNORECASE if len(answer) > 1 else re.NOFLAG
    return re.search(before + (number or re.escape(answer)) + after, text, case)


def _number(answer: str) -> str:
    """A pattern for a number however it is written: 1538 as 1,538, 0.5 as .5, 3 as 3.0; empty if it is none.

    A match ends where the value does, before a full stop or zeros that add nothing.
    """
    parts = re.fullmatch(r"([+-]?)(\d{1,3}(?:,\d{3})+|\d+)?(?:\.(\d+))?", answer)
    if not parts or not (parts[2] or parts[3]):
        return ""
    whole, fraction = (parts[2] or "").replace(",", "").lstrip("0"), (parts[3] or "").rstrip("0")
    zeros = "0*" if whole or fraction else "0+"
    grouped = zeros + re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",?", whole)
    return re.escape(parts[1]) + grouped + (rf"\.{fraction}(?=0*" if fraction else r"(?=(?:\.0*)?") + f"{APART})"


def _continued(prompt: Any, prefix: str) -> Any:
    """The prompt with the beginning of the assistant's turn."""
    if isinstance(prompt, str):
        return prompt + prefix
    return [*prompt, {"role": "assistant", "content": prefix}] if prefix else prompt


def shown_part(prompt: Any) -> str:
    """The beginning of the assistant's turn in a conversation; empty for a plain text, where it is in the prompt."""
    return prompt[-1]["content"] if isinstance(prompt, list) and prompt[-1]["role"] == "assistant" else ""


def bare(prompt: Any, prefix: str) -> Any:
    """The prompt of a row without what it shows."""
    return prompt if not prefix else prompt.removesuffix(prefix) if isinstance(prompt, str) else prompt[:-1]


def whole_turn(prefix: str, completion: Any) -> Any:
    """What is shown and what the model wrote after it: a text, or a list of messages."""
    if isinstance(completion, str):
        return prefix + completion
    return [{**completion[0], "content": prefix + (completion[0].get("content") or "")}, *completion[1:]]
