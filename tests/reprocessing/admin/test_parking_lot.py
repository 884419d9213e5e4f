"""The parking lot: what is seen of it, what is done about it, and that no page acts on what has changed."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from pytest_django import DjangoAssertNumQueries

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import Act, DeadLetter, Review
from reprocessing.models.lanes import clock
from reprocessing.pipeline import park
from tests.reprocessing.admin.lot import DECIDES, LOOKS, dlq, parked, person, post, token

pytestmark = pytest.mark.django_db
LOT = "/admin/reprocessing/parkedletter/"


def states(*letters: DeadLetter) -> list[str]:
    now = dict(DeadLetter.objects.values_list("pk", "state"))
    return [now[letter.pk] for letter in letters]


def reviews() -> list[tuple[str, int | None, str, str]]:
    return list(Review.objects.order_by("id").values_list("act", "letter_id", "by", "reason"))


def carried(page: str) -> str:
    """The letters that a page carries to the deed."""
    found = re.search(r'name="letters" value="([^"]*)"', page)
    assert found
    return found[1]


def messages(page: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'<li class="(?:success|warning|info|error)">(.*?)</li>', page)]


def test_the_list_tells_dlq_reason_key_age_attempts_and_time_left() -> None:
    parked(dlq(), key="account-7")
    page = person("ann", *LOOKS).get(LOT).content.decode()
    cells = {name: unescape(text) for name, text in re.findall(r'class="field-(\w+)[^"]*">(?:<a[^>]*>)?([^<]*)', page)}

    assert {name: cells[name] for name in ("dlq", "why", "key", "age", "attempts", "time_left")} == {
        "dlq": "shop-dlq",
        "why": "Every attempt the dlq allows has failed.",
        "key": "account-7",
        "age": "1 h 0 min",
        "attempts": "1",
        "time_left": "2 h 59 min",
    }


def test_only_parked_letters_are_in_it() -> None:
    letter = parked(dlq())
    park.discard([letter.pk], by="ann", reason="test data")

    assert "0 parked letters" in person("ben", *LOOKS).get(LOT).content.decode()


def test_no_list_shows_a_body_even_to_those_who_may_see_payloads() -> None:
    parked(dlq(), body=b'{"card": "4111-canary"}')
    client = person("ann", *DECIDES, "view_payload")

    lists = [client.get(LOT), client.get("/admin/reprocessing/deadletter/")]
    assert [b"4111-canary" in page.content for page in lists] == [False, False]


@pytest.mark.parametrize("query", ["", "?q=account-7", "?reason__exact=attempts_spent"])
def test_a_list_takes_as_many_queries_for_many_letters_as_for_one(
    query: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    origin = dlq()
    for _ in range(30):
        parked(origin, key="account-7")
    client = person("ann", *DECIDES)

    with django_assert_max_num_queries(10):
        page = client.get(LOT + query).content.decode()
    assert page.count('class="action-select"') == 30


@pytest.mark.parametrize("by", ["message", "redrive id", "key"])
@pytest.mark.parametrize("desk", ["parkedletter", "deadletter"])
def test_a_letter_is_found_by_its_message_id_its_redrive_id_and_its_key(desk: str, by: str) -> None:
    origin = dlq()
    letter, other = parked(origin, key="account-7"), parked(origin, key="account-8")
    text = {"message": letter.message_id, "redrive id": str(letter.public_id), "key": "account-7"}[by]
    page = person("ann", *LOOKS).get(f"/admin/reprocessing/{desk}/", {"q": text}).content.decode()

    assert [letter.message_id in page, other.message_id in page] == [True, False]


def test_filters_are_the_dlq_and_the_reason() -> None:
    here, there = dlq("here"), dlq("there")
    letter, other = parked(here, reason="stale"), parked(there, reason="refused")
    client = person("ann", *LOOKS)

    for query in ({"dlq__id__exact": here.dlq_id}, {"reason__exact": "stale"}):
        page = client.get(LOT, query).content.decode()
        assert [letter.message_id in page, other.message_id in page] == [True, False]


@pytest.mark.parametrize(
    ("deed", "act", "state"),
    [("release", Act.RELEASED, LetterState.WAITING), ("discard", Act.DISCARDED, LetterState.DISCARDED)],
)
def test_selected_letters_are_decided_about_with_who_and_why(deed: str, act: Act, state: LetterState) -> None:
    origin = dlq()
    chosen, left = [parked(origin), parked(origin)], parked(origin)
    client = person("ann", *DECIDES)
    page = post(client, LOT, action=f"{deed}_selected", **{ACTION_CHECKBOX_NAME: [one.pk for one in chosen]})
    before = states(*chosen)
    done = post(client, LOT + deed, letters=carried(page), reason="the consumer is mended")

    assert before == [LetterState.PARKED, LetterState.PARKED]
    assert states(*chosen, left) == [state, state, LetterState.PARKED]
    assert reviews() == [(act, one.pk, "ann", "the consumer is mended") for one in chosen]
    assert messages(done)[0].startswith("2 ")


def test_without_a_reason_nothing_is_done_and_it_is_asked_for_again() -> None:
    letter = parked(dlq())
    client = person("ann", *DECIDES)
    page = client.get(f"{LOT}{letter.pk}/change/").content.decode()
    for reason in ("", "   "):
        answer = post(client, LOT + "discard", letters=carried(page), reason=reason)
        assert "This field is required." in answer
        assert carried(answer) == carried(page)

    assert [states(letter), reviews()] == [[LetterState.PARKED], []]


def test_a_page_that_two_people_saw_acts_once_and_says_what_had_become_of_the_letter() -> None:
    letter = parked(dlq())
    ann, ben = person("ann", *DECIDES), person("ben", *DECIDES)
    seen = carried(ann.get(f"{LOT}{letter.pk}/change/").content.decode())
    post(ann, LOT + "release", letters=seen, reason="mended")
    answer = post(ben, LOT + "discard", letters=seen, reason="test data")

    assert messages(answer) == [f"Letter {letter.message_id} was left alone: it is no longer parked: it is waiting."]
    assert [states(letter), [by for _, _, by, _ in reviews()]] == [[LetterState.WAITING], ["ann"]]


def test_a_letter_that_was_parked_anew_is_not_what_the_page_showed() -> None:
    letter = parked(dlq())
    client = person("ben", *DECIDES)
    seen = carried(client.get(f"{LOT}{letter.pk}/change/").content.decode())
    park.release([letter.pk], by="ann", reason="mended")
    DeadLetter.objects.filter(pk=letter.pk).update(state=LetterState.PARKED, reason="refused", finished_at=clock())
    answer = post(client, LOT + "discard", letters=seen, reason="test data")

    assert messages(answer) == [
        f"Letter {letter.message_id} was left alone: it was parked anew since you looked; look again."
    ]
    assert states(letter) == [LetterState.PARKED]


def test_the_others_of_a_page_are_decided_about_when_one_has_changed() -> None:
    origin = dlq()
    gone, there = parked(origin), parked(origin)
    client = person("ann", *DECIDES)
    page = post(client, LOT, action="discard_selected", **{ACTION_CHECKBOX_NAME: [gone.pk, there.pk]})
    park.release([gone.pk], by="ben", reason="mended")
    answer = post(client, LOT + "discard", letters=carried(page), reason="test data")

    assert states(gone, there) == [LetterState.WAITING, LetterState.DISCARDED]
    assert [one.split(":")[0] for one in messages(answer)] == [
        "1 discarded",
        f"Letter {gone.message_id} was left alone",
    ]


@pytest.mark.parametrize("deed", ["release", "discard"])
def test_a_deed_takes_its_own_permission_a_post_and_a_token(deed: str) -> None:
    letter = parked(dlq())
    other = {"release": "discard_parkedletter", "discard": "release_parkedletter"}[deed]
    able, unable = person("ann", *DECIDES), person("ben", *LOOKS, other)
    values = {"letters": carried(able.get(f"{LOT}{letter.pk}/change/").content.decode()), "reason": "because"}

    answers = [
        able.get(LOT + deed, values),
        able.post(LOT + deed, values),
        unable.post(LOT + deed, values | {"csrfmiddlewaretoken": token(unable, "/admin/password_change/")}),
    ]
    assert [answer.status_code for answer in answers] == [405, 403, 403]
    assert states(letter) == [LetterState.PARKED]


def test_nobody_is_offered_what_they_may_not_do() -> None:
    letter = parked(dlq())
    client = person("ann", *LOOKS, "release_parkedletter")
    pages = [client.get(LOT).content.decode(), client.get(f"{LOT}{letter.pk}/change/").content.decode()]

    assert ["release_selected" in pages[0], "discard_selected" in pages[0]] == [True, False]
    assert [LOT + "release" in pages[1], LOT + "discard" in pages[1]] == [True, False]


@pytest.mark.parametrize("letters", ["", "x", "1", "1@", "1@2;3@4", "1@2,", "9" * 30 + "@1"])
def test_letters_that_no_page_of_ours_wrote_are_refused_in_a_sentence(letters: str) -> None:
    answer = post(person("ann", *DECIDES), LOT + "discard", letters=letters, reason="because")

    assert "errorlist" in answer


def test_more_letters_than_a_page_can_bear_are_refused_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprocessing.admin.parking_lot.MOST", 2)
    origin = dlq()
    letters = [parked(origin) for _ in range(3)]
    client = person("ann", *DECIDES)
    page = post(client, LOT, action="discard_selected", select_across="1", **{ACTION_CHECKBOX_NAME: [letters[0].pk]})

    assert [one.split(":")[0] for one in messages(page)] == ["Nothing was done"]
    assert "manage.py discard_parked" in page


def test_the_page_of_a_letter_that_left_the_lot_leads_to_where_it_is_now() -> None:
    letter = parked(dlq())
    park.discard([letter.pk], by="ann", reason="test data")
    answer = person("ben", *LOOKS).get(f"{LOT}{letter.pk}/change/", follow=True)

    assert answer.redirect_chain == [(f"/admin/reprocessing/deadletter/{letter.pk}/change/", 302)]
    assert messages(answer.content.decode()) == ["This letter is no longer parked: it is discarded."]
