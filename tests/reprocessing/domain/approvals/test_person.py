"""Two names of one person are equal, and a history's author is found by the name of each person in it."""

from __future__ import annotations

import re

import pytest

from reprocessing.domain.approvals.person import history_pattern, is_one_name, person_key, signed_alone, signed_by_both


@pytest.mark.parametrize(
    "variant",
    [
        "ANN MÜLLER",
        " ann  müller ",
        "Ann Mu\u0308ller",
        "ann m\u00adüller",
        "\uff21nn Müller",
        "Ann Müller, API token ci",
    ],
    ids=["case", "spaces", "decomposed", "invisible", "wide", "token"],
)
def test_a_person_s_key_does_not_depend_on_case_spaces_or_unicode_forms(variant: str) -> None:
    assert person_key(variant) == "ann müller"


def test_a_letter_whose_lower_case_has_another_form_has_the_key_of_that_form() -> None:
    assert person_key("\u03d4") == person_key("\u03ab") == "\u03cb"
    assert person_key("\u0345") == person_key("\u03b9")


def test_other_people_have_other_keys() -> None:
    assert len({person_key(name) for name in ("ann", "anna", "a nn", "bob", "ann, approved by bob")}) == 5


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("ann", True), ("ann, API token ci", True), ("ann, API token ci, approved by bob", False),
        ("Approved  by bob", False), ("ann, API token ci, Without\u200b approval", False), ("without approval", False),
    ],
    ids=range(6),
)  # fmt: skip
def test_a_name_that_tells_of_an_approval_is_no_name_of_a_person_or_of_a_token(name: str, *, is_one: bool) -> None:
    assert is_one_name(name) is is_one


@pytest.mark.parametrize("name", ["b.b", "a|b", "ann, approved by b.b"])
def test_an_author_of_a_history_is_found_by_the_name_of_each_person_in_it(name: str) -> None:
    authors = [
        name,
        f"{name}, API token deploy",
        signed_alone(name),
        signed_by_both("x", name),
        signed_by_both(name, "x"),
    ]
    assert [bool(re.search(history_pattern(name), author)) for author in authors] == [True] * 5


def test_an_author_is_not_found_by_a_part_of_a_name_or_by_another() -> None:
    others = ["bxb", "b.bob", "ab.b", "ann, API token b.b", signed_by_both("ann", "b.bo"), "b.b, approved"]
    assert [other for other in others if re.search(history_pattern("b.b"), other)] == []
