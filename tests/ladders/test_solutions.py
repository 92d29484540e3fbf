"""Ladders from worked solutions: what each level shows, and what is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout_rl.files.refusal import Refusal
from scout_rl.ladders.solutions import SolutionLadder, _place, sentences, steps

ROW = {"prompt": "2+3+4=", "solution": "2+3=5\n5+4=9\nso 9", "answer": "9"}


def shown(ladder, context=0):
    return [ladder.row(context, level)["scout_prefix"] for level in range(ladder.n_levels)]


def test_levels_show_whole_steps():
    ladder = SolutionLadder([ROW], shares=(0, 0.4, 0.67), leaks="cut")
    assert shown(ladder) == ["", "2+3=5\n", "2+3=5\n"], "the second step holds the answer"
    assert ladder.row(0, 1)["prompt"] == "2+3+4=2+3=5\n"
    assert ladder.row(0, 0)["prompt"] == ROW["prompt"]
    assert SolutionLadder([ROW], shares=(0, 0.4, 0.67), answer=None).row(0, 2)["scout_prefix"] == "2+3=5\n5+4=9\n"


def test_the_prefix_of_a_conversation_is_the_beginning_of_the_assistant_s_turn():
    question = [{"role": "user", "content": "2+3+4?"}]
    ladder = SolutionLadder([ROW | {"prompt": question}], shares=(0, 0.4))
    assert ladder.row(0, 0)["prompt"] == question
    assert ladder.row(0, 1)["prompt"] == [*question, {"role": "assistant", "content": "2+3=5\n"}]


@pytest.mark.parametrize("text", ["One. Two is 2.5! Three?", "a\n\nb\nc", "no end", "\n\nx", "A. \n B."])
def test_pieces_joined_are_the_solution(text):
    for split in (steps, sentences):
        assert "".join(split(text)) == text
    assert sentences("One. Two is 2.5! Three?") == ["One.", " Two is 2.5!", " Three?"]
    assert steps("a\n\nb\nc") == ["a\n\n", "b\n", "c"]


@pytest.mark.parametrize(
    ("answer", "leaks"), [("9", True), ("5", True), ("2", True), ("3+4", False), ("45", False), ("+3", True)]
)
def test_an_answer_leaks_as_a_word_of_its_own(answer, leaks):
    row = ROW | {"solution": "2+3=5\n5+4=9\nx 3.9 459 so", "answer": answer}
    if not leaks:
        SolutionLadder([row], shares=(0, 0.99))
        return
    with pytest.raises(Refusal, match=f"level 1 of row 0 shows the answer '.?{answer[-1]}'"):
        SolutionLadder([row], shares=(0, 0.99))


@pytest.mark.parametrize(
    ("answer", "text", "leaks"),
    [
        ("1538", "so 1,538", True),
        ("1,538", "so 1538.", True),
        ("1234567", "1,234,567", True),
        ("1538", "so 15,38", False),
        ("1538", "so 11,538", False),
        ("1538", "so 1,538,000", False),
        ("0.5", "p = .5", True),
        ("0.5", "p = 10.5", False),
        (".5", "p is 0.50", True),
        (".5", "p is 3.5", False),
        ("3.0", "is 3", True),
        ("3.0", "is 3.", True),
        ("3", "is 3.00 now", True),
        ("3", "is 3.01 now", False),
        ("0", "is 10 or 20", False),
        ("0", "is 0.", True),
        ("7", "agent 007", True),
        ("-4", "x is -4", True),
        ("Yes", "yes, so", True),
        ("yes", "eyes", False),
        ("A", "a train", False),
        ("A", "so (A).", True),
        ("x^2", "or X^2 ?", True),
        ("1,2", "(1, 2)", False),
        ("1,2", "is (1,2)", True),
        ("3,4", "is 3,4.", True),
        ("3,4", "is 34", False),
        ("12,345", "is 12345", True),
    ],
)
def test_an_answer_leaks_however_it_is_written(answer, text, leaks):
    row = ROW | {"solution": f"{text}\nthe end", "answer": answer}
    if not leaks:
        assert SolutionLadder([row], shares=(0, 0.5)).row(0, 1)["scout_prefix"] == f"{text}\n"
        return
    with pytest.raises(Refusal, match="level 1 of row 0 shows the answer"):
        SolutionLadder([row], shares=(0, 0.5))
    assert SolutionLadder([ROW, row], shares=(0, 0.5), leaks="cut").row(1, 1)["scout_prefix"] == ""


@pytest.mark.parametrize(
    ("answer", "end"),
    [("1538", "1538."), ("1538", "1538.00"), ("1538", "1,538."), ("0.5", "0.500"), (".5", ".5."), ("0", "0.0")],
)
def test_an_answer_leaks_where_its_value_ends(answer, end):
    """With tokens as pieces, only a full stop or zeros may be left to write."""
    value = re.match(r"[\d,]*(\.5)?", end)[0]
    pieces = [*"so it is", " ", value, end.removeprefix(value)]
    row = ROW | {"solution": "".join(pieces), "answer": answer}
    shares = (0, (len(pieces) - 1) / len(pieces))
    with pytest.raises(Refusal, match="level 1 of row 0 shows the answer"):
        SolutionLadder([row], by=lambda _: pieces, shares=shares)
    assert shown(SolutionLadder([row], by=lambda _: pieces, shares=shares, leaks="cut")) == ["", "so it is "]


@given(st.integers(0, 10**12), st.integers(0, 6))
def test_a_number_is_met_in_every_way_to_write_it(number, decimals):
    for text in (f"{number}", f"{number:,}", f"{number:.{decimals}f}", f"{number:,.{decimals}f}"):
        value = text.partition(".")[0]
        assert _place(str(number), f"so {text}.").group() == value
        assert _place(f"{number:,}", f"so {text} it is").group() == value
        assert _place(str(number + 1), f"so {text}.") is None


@pytest.mark.parametrize(
    ("rows", "options", "sentence"),
    [
        ([{"prompt": "a", "answer": "b"}], {}, "no column 'solution', only prompt, answer"),
        ([{"prompt": "a", "solution": "b\nc"}], {}, "no column 'answer'.*answer=None"),
        ([ROW, ROW | {"solution": " "}], {"answer": None}, "row 1 has no solution"),
        ([ROW, ROW | {"solution": None}], {"answer": None}, "row 1 has no solution"),
        ([ROW], {"shares": (0, 0.5, 1)}, "rise to less than 1"),
        ([ROW], {"by": "word"}, "by is 'word'"),
        ([ROW], {"by": str.split}, "joined are another text"),
        ([ROW], {"leaks": "ignore"}, "leaks is 'ignore'"),
        ([ROW | {"solution": "one piece 9"}], {}, "cut it finer"),
        ([ROW | {"prompt": []}], {}, "before the assistant's turn"),
        ([ROW, ROW | {"prompt": [{"role": "assistant", "content": "Hm"}]}], {"answer": None}, "that of row 1"),
        ([ROW | {"answer": "x"}, {"solution": "b\nc", "answer": "x"}], {}, "row 1 has no prompt"),
        ([ROW | {"answer": "x"}, ROW | {"answer": None}], {}, "row 1 has no answer: .*answer=None"),
        ([ROW | {"answer": "x"}, ROW | {"answer": ""}], {}, "row 1 has no answer: .*answer=None"),
        ([ROW | {"answer": "x"}, ROW | {"answer": " \n"}], {}, "row 1 has no answer: .*answer=None"),
        ([], {}, "at least one row"),
        (iter([ROW]), {}, "not a stream"),
    ],
)
def test_refusals(rows, options, sentence):
    with pytest.raises(Refusal, match=sentence):
        SolutionLadder(rows, **options)
