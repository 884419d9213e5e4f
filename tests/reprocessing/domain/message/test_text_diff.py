"""The lines in which two texts differ are shown, in bounded time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message import text_diff
from reprocessing.domain.message.text_diff import Diff

LINES = st.lists(st.sampled_from(["a", "b", "{", "}", "", "x" * 400, "a, b; c " * 60]), max_size=30)


def _side(found: Diff, mark: str) -> str:
    return "".join(line.text for line in found.lines if line.mark in {mark, " "})


def test_each_change_is_shown_with_the_lines_around_it() -> None:
    before = "\n".join(map(str, range(20)))
    after = before.replace("\n3\n", "\nthree\n").replace("\n15\n", "\n15\n15.5\n")
    assert [(line.mark, line.text) for line in text_diff.text_diff(before, after).lines] == [
        ("@", "line 1"), (" ", "0"), (" ", "1"), (" ", "2"), ("-", "3"), ("+", "three"), (" ", "4"), (" ", "5"),
        (" ", "6"), ("@", "line 14"), (" ", "13"), (" ", "14"), (" ", "15"), ("+", "15.5"), (" ", "16"), (" ", "17"),
        (" ", "18"),
    ]  # fmt: skip


@given(LINES)
def test_equal_texts_have_no_difference(lines: list[str]) -> None:
    assert text_diff.text_diff("\n".join(lines), "\n".join(lines)) == Diff(())


@pytest.mark.soak
@given(LINES, LINES, LINES)
def test_shown_lines_are_in_their_text_in_order(a: list[str], b: list[str], c: list[str]) -> None:
    before, after = "\n".join([*a, *b]), "\n".join([*a, *c])
    found = text_diff.text_diff(before, after)
    whole = {"-": before.replace("\n", ""), "+": after.replace("\n", "")}
    for mark, text in whole.items():
        left = iter(text)
        assert all(any(one == other for other in left) for one in _side(found, mark))
    assert bool(found.lines) is (before != after)


def test_a_change_in_a_long_line_is_shown_without_the_whole_line() -> None:
    words = [f'"field{number}":{number * 7919 % 1000},' for number in range(5_000)]
    before, after = "".join(words), "".join([*words[:2_500], '"new":1,', *words[2_500:]])
    found = text_diff.text_diff(before, after)
    assert '"new":1,' in _side(found, "+")
    assert len(found.lines) < 20


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a" * 1_000_000, "b" * 1_000_000),
        ("a\nb\n" * 200_000, "b\na\n" * 200_000),
        ("{}" * 200_000, "{} " * 100_000),
        ("\n".join(f"{n % 100}" for n in range(900)), "\n".join(f"{n % 97}" for n in range(900))),
    ],
)
@pytest.mark.timeout(60)
def test_a_megabyte_of_anything_is_compared_within_bounds(before: str, after: str) -> None:
    found = text_diff.text_diff(before, after)
    assert 1 < len(found.lines) < 2_010
