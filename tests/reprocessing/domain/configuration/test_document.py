"""A configuration file is read with the line of each value, and refused whole where it could mean two things."""

from __future__ import annotations

import pytest

from reprocessing.domain.configuration import document
from reprocessing.domain.configuration.document import MAX_BYTES, Document, Problem

EMPTY = "The file is empty, or not a mapping of sections. To write one, run: manage.py export_config > redrive.yaml"


def problems(text: str | bytes) -> list[tuple[int, str, str]]:
    found = document.read(text if isinstance(text, bytes) else text.encode())
    assert isinstance(found, list)
    return [(problem.line, problem.place, problem.text) for problem in found]


def test_values_stay_texts_and_each_path_has_its_line() -> None:
    found = document.read(b"dlqs:\n  orders:\n    url: https://q\n    rate: off\n    when: [a, 'b']\n    every:\n")
    assert isinstance(found, Document)
    assert found.root == {"dlqs": {"orders": {"url": "https://q", "rate": "off", "when": ["a", "b"], "every": None}}}
    assert found.lines[("dlqs", "orders", "rate")] == 4
    assert found.lines[("dlqs", "orders", "when", "1")] == 5


def test_a_problem_without_a_line_gets_the_line_of_what_is_around_it() -> None:
    found = document.read(b"dlqs:\n  orders:\n    url: q\n")
    assert isinstance(found, Document)
    assert found.located(Problem(("dlqs", "orders", "every"), "x")).line == 2
    assert found.located(Problem(("rules", "r"), "x")).line == 0


def test_a_path_is_shown_with_quotes_around_urls() -> None:
    assert Problem(("targets", "https://x/y", "rate"), "").place == 'targets."https://x/y".rate'


@pytest.mark.parametrize(
    ("text", "line", "place", "what"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 4, "b.c", "This key was already used in line 3."),
        (
            "a: &x 1\nb: *x\n",
            1,
            "a",
            "YAML anchors and aliases are refused. To share settings of DLQs, use a policy.",
        ),
        ("a:\n  b: !!python/name:os.system x\n", 2, "a.b", "YAML tags (!…) are refused. Write a plain value."),
        ("a: 1\n---\nb: 1\n", 2, "", "A second YAML document begins here. Write all sections in one document."),
        ("a:\n\tb: 1\n", 2, "", "YAML allows only spaces before a key. Replace the tab with spaces."),
        ("a: [1\n", 2, "", "This is not YAML: did not find expected ',' or ']'."),
        ("", 1, "", EMPTY),
        ("- a\n", 1, "", EMPTY),
        ("[a]: 1\n", 1, "", "A key must be one value, not a list or mapping."),
        ("a: \x07\n", 1, "", "The file has a character that YAML does not allow. Remove it."),
        (b"a: 1\nb: \xff\n", 2, "", "Byte 8 is not UTF-8. Save the file as UTF-8."),
        ("a: " + "[" * 9 + "]" * 9, 1, "a.0.0.0.0.0.0.0", "Values are nested deeper than 8 levels."),
    ],
)
def test_what_is_refused_has_its_line_and_says_what_to_do(text: str | bytes, line: int, place: str, what: str) -> None:
    (found,) = problems(text)
    assert (found[0], found[1]) == (line, place)
    assert found[2] == what or (found[2].startswith("This is not YAML: ") and what.startswith("This is not YAML: "))


@pytest.mark.parametrize("value", ["https://u:pw@host/q", "slack://token@x", "whsec_abc", "AKIAABCDEFGHIJKLMNOP"])
def test_a_secret_is_refused_and_not_repeated(value: str) -> None:
    (found,) = problems(f"dlqs:\n  orders:\n    url: {value}\n")
    assert found[0] == 3
    assert value not in found[2]
    assert problems(f"notifications:\n  {value}: {{}}\n")[0][0] == 2


def test_a_file_is_read_up_to_its_size_limit_and_no_further() -> None:
    assert problems(b"#" * (MAX_BYTES + 1))[0][2].startswith("The file has 2,097,153 bytes, and at most 2,097,152")


def test_a_key_that_is_repeated_many_times_is_told_at_most_a_hundred_times() -> None:
    assert len(problems("a: 1\n" * 500)) == 100
