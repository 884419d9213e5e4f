from __future__ import annotations

import re
from html import unescape

import pytest
from pytest_django import DjangoAssertNumQueries

from reprocessing.admin.parking_lot.decision import MOST, pack_messages
from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import AuditAct, AuditEntry, DeadLetterQueue, Letter
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.admin.parking_lot.parked_messages import (
    DECIDES,
    LOOKS,
    dlq,
    held_copy,
    parked,
    person,
    post,
    token,
)

pytestmark = pytest.mark.django_db
LOT = "/admin/reprocessing/parkedletter/"


def states(*letters: Letter) -> list[str]:
    now = dict(Letter.objects.values_list("pk", "state"))
    return [now[letter.pk] for letter in letters]


def reviews() -> list[tuple[str, int | None, str, str]]:
    return list(AuditEntry.objects.exclude(letter=None).order_by("id").values_list("act", "letter_id", "by", "reason"))


def carried(page: str) -> str:
    found = re.search(r'name="letters" value="([^"]*)"', page)
    assert found
    return found[1]


def messages(page: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'<li class="(?:success|warning|info|error)">(.*?)</li>', page)]


def test_list_shows_reason_key_age_attempts_and_time_left() -> None:
    letter = parked(dlq(), key="account-7")
    held_copy(letter)
    page = person("ann", *LOOKS).get(LOT).content.decode()
    cells = dict(re.findall(r'<td data-label="([^"]+)">([^<]*)</td>', page))
    why = re.search(r'class="lot-why">([^<]*)<', page)
    assert why
    named = ("Dead-letter queue", "Ordering key", "Age", "Attempts", "Time left in SQS")
    assert (why[1], {name: cells[name] for name in named}) == (
        "All attempts failed",
        {
            "Dead-letter queue": "shop-dlq", "Ordering key": "account-7", "Age": "1 h 0 min", "Attempts": "1 of 3",
            "Time left in SQS": "2 h 59 min",
        },
    )  # fmt: skip


def test_deleted_copy_has_no_time_left() -> None:
    letter = parked(dlq())
    held_copy(letter, state="gone", gone_at=database_now())
    ann = person("ann", *LOOKS)
    assert '<td data-label="Time left in SQS">not in SQS</td>' in ann.get(LOT).content.decode()
    page = ann.get(f"{LOT}{letter.pk}/change/").content.decode()
    assert "<dt>Time left in SQS</dt><dd>not in SQS</dd>" in page


def test_lists_and_pages_say_how_many_attempts_do_not_count() -> None:
    letter = parked(dlq())
    Letter.objects.update(attempts=4, spared=1)
    ann, told = person("ann", *LOOKS), "3 of 3 (4 in all)"
    assert f'<td data-label="Attempts">{told}</td>' in ann.get(LOT).content.decode()
    assert f'<td class="field-tries">{told}</td>' in ann.get("/admin/reprocessing/letter/").content.decode()
    page = ann.get(f"{LOT}{letter.pk}/change/").content.decode()
    assert "<dt>Attempts</dt><dd>4 attempts, of which 1 does not count (limit 3)</dd>" in page
    Letter.objects.update(attempts=9, attempts_before_release=4, spared=0)
    assert '<td data-label="Attempts">5 (9 in all)</td>' in ann.get(LOT).content.decode()


def test_only_parked_letters_are_in_it() -> None:
    letter = parked(dlq())
    act_on_parked.discard([letter.pk], by="ann", reason="test data")
    assert "The parking lot is empty." in person("ben", *LOOKS).get(LOT).content.decode()


def test_no_list_shows_a_body() -> None:
    parked(dlq(), body=b'{"card": "4111-canary"}')
    client = person("ann", *DECIDES, "view_payload")
    lists = [client.get(LOT), client.get("/admin/reprocessing/letter/")]
    assert [b"4111-canary" in page.content for page in lists] == [False, False]


@pytest.mark.parametrize("query", ["", "?q=account-7", "?reason__exact=attempts_spent", "?dlq={dlq}&text={{"])
def test_list_has_bounded_queries(query: str, django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    source = dlq()
    for _ in range(30):
        parked(source, key="account-7")
    client = person("ann", *DECIDES, "view_payload")
    with django_assert_max_num_queries(16):
        page = client.get(LOT + query.format(dlq=source.dlq_id)).content.decode()
    assert page.count('name="pick"') == 30


@pytest.mark.parametrize("by", ["message", "redrive id", "key"])
def test_message_is_found_by_each_id_and_key(by: str) -> None:
    source = dlq()
    letter, other = parked(source, key="account-7"), parked(source, key="account-8")
    text = {"message": letter.message_id, "redrive id": str(letter.public_id), "key": "account-7"}[by]
    page = person("ann", *LOOKS).get("/admin/reprocessing/letter/", {"q": text}).content.decode()
    assert [letter.message_id in page, other.message_id in page] == [True, False]


@pytest.mark.parametrize(
    ("action", "act", "state"),
    [("release", AuditAct.RELEASED, LetterState.WAITING), ("discard", AuditAct.DISCARDED, LetterState.DISCARDED)],
)
def test_decisions_are_recorded_with_user_and_reason(action: str, act: AuditAct, state: LetterState) -> None:
    source = dlq()
    chosen, left = [parked(source), parked(source)], parked(source)
    client = person("ann", *DECIDES)
    page = post(client, LOT + action, scope="ticked", pick=[pack_messages([one]) for one in chosen])
    before = states(*chosen)
    done = post(client, LOT + action, letters=carried(page), reason="the consumer is mended")
    assert before == [LetterState.PARKED, LetterState.PARKED]
    assert states(*chosen, left) == [state, state, LetterState.PARKED]
    assert reviews() == [(act, one.pk, "ann", "the consumer is mended") for one in chosen]
    assert messages(done)[0].startswith("2 ")


@pytest.mark.soak
def test_decision_takes_a_reason() -> None:
    letter = parked(dlq())
    client = person("ann", *DECIDES)
    page = client.get(f"{LOT}{letter.pk}/change/").content.decode()
    for reason in ("", "   "):
        answer = post(client, LOT + "discard", letters=carried(page), reason=reason)
        assert "This field is required." in answer
        assert carried(answer) == carried(page)

    assert [states(letter), reviews()] == [[LetterState.PARKED], []]


@pytest.mark.soak
def test_second_decision_is_skipped_and_explained() -> None:
    letter = parked(dlq())
    ann, ben = person("ann", *DECIDES), person("ben", *DECIDES)
    seen = carried(ann.get(f"{LOT}{letter.pk}/change/").content.decode())
    post(ann, LOT + "release", letters=seen, reason="mended")
    answer = post(ben, LOT + "discard", letters=seen, reason="test data")
    nothing, left = messages(answer)
    assert nothing == "Nothing was done."
    assert left.startswith(f"Message {letter.message_id} was skipped: it is no longer parked: it is waiting.")
    assert re.search(r" Last action: released by ann, [\d:]{8} UTC \(.+\)\.$", left)
    assert [states(letter), [by for _, _, by, _ in reviews()]] == [[LetterState.WAITING], ["ann"]]


def test_message_parked_again_is_skipped() -> None:
    letter = parked(dlq())
    client = person("ben", *DECIDES)
    seen = carried(client.get(f"{LOT}{letter.pk}/change/").content.decode())
    act_on_parked.release([letter.pk], by="ann", reason="mended")
    Letter.objects.filter(pk=letter.pk).update(state=LetterState.PARKED, reason="refused", finished_at=database_now())
    answer = post(client, LOT + "discard", letters=seen, reason="test data")
    assert messages(answer)[1].startswith(
        f"Message {letter.message_id} was skipped: it was parked again after you opened the page; check it again."
    )
    assert states(letter) == [LetterState.PARKED]


def test_unchanged_messages_are_acted_on() -> None:
    source = dlq()
    gone, there = parked(source), parked(source)
    client = person("ann", *DECIDES)
    page = post(client, LOT + "discard", scope="ticked", pick=[pack_messages([gone]), pack_messages([there])])
    act_on_parked.release([gone.pk], by="ben", reason="mended")
    answer = post(client, LOT + "discard", letters=carried(page), reason="test data")
    assert states(gone, there) == [LetterState.WAITING, LetterState.DISCARDED]
    assert [one.split(":")[0] for one in messages(answer)] == [
        "1 message discarded.",
        f"Message {gone.message_id} was skipped",
    ]


def test_closed_buttons_do_not_act() -> None:
    letter = parked(dlq())
    client = person("ann", *LOOKS, "release_parkedletter")
    pages = [client.get(LOT).content.decode(), client.get(f"{LOT}{letter.pk}/change/").content.decode()]
    assert [f'formaction="{LOT}{action}"' in pages[0] for action in ("release", "discard")] == [True, False]
    assert "discard (it needs the permission to discard parked messages)" in pages[0]
    assert [LOT + "release" in pages[1], LOT + "discard" in pages[1]] == [True, False]
    given = {"letters": carried(pages[1]), "csrfmiddlewaretoken": token(client, "/admin/password_change/")}
    assert (client.post(LOT + "discard", given | {"reason": "because"}).status_code, states(letter)) == (
        403,
        ["parked"],
    )


@pytest.mark.parametrize("letters", ["", "x", "1", "1@2", "1@2@", "1@2@0;3@4@0", "1@2@0,", "9" * 30 + "@1@0"])
def test_invalid_selection_is_refused(letters: str) -> None:
    answer = post(person("ann", *DECIDES), LOT + "discard", letters=letters, reason="because")
    assert "errorlist" in answer


def test_too_large_selection_is_refused() -> None:
    many = ",".join(f"{number}@1@0" for number in range(1, MOST + 2))
    page = post(person("ann", *DECIDES), LOT + "discard", letters=many, reason="because")
    assert "More than 1,000 messages are selected. Select fewer, or all that match the filter." in page


def test_page_of_a_moved_message_redirects() -> None:
    letter = parked(dlq())
    act_on_parked.discard([letter.pk], by="ann", reason="test data")
    answer = person("ben", *LOOKS).get(f"{LOT}{letter.pk}/change/", follow=True)
    assert answer.redirect_chain == [(f"/admin/reprocessing/letter/{letter.pk}/change/", 302)]
    assert messages(answer.content.decode()) == ["This message is no longer parked: it is discarded."]


@pytest.mark.soak
def test_discarded_message_is_restored_once() -> None:
    letter = parked(dlq())
    act_on_parked.discard([letter.pk], by="ann", reason="test data")
    client = person("ben", *DECIDES)
    page = client.get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode()
    assert f'action="{LOT}restore"' in page
    act_on_parked.restore([letter.pk], by="ann", reason="a mistake")
    answer = post(client, LOT + "restore", letters=carried(page), reason="it is needed")
    assert "Last action: restored by ann" in messages(answer)[1]
    assert [act for act, _, _, _ in reviews()] == [AuditAct.DISCARDED, AuditAct.RESTORED]
    viewer = person("cleo", *LOOKS)
    act_on_parked.discard([letter.pk], by="ann", reason="test data")
    closed = viewer.get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode()
    assert [f"{LOT}restore" in closed, "It needs the permission to discard parked messages" in closed] == [False, True]


def _missing_keys(page: str) -> str:
    found = re.search(r'<p class="card card-wary">(.*? no ordering key\. .*?)</p>', page)
    return re.sub(r"</?strong>", "", found[1]) if found else ""


@pytest.mark.parametrize("mode", ["automatic", "manual"])
def test_release_says_that_failures_in_an_outage_do_not_count(mode: str) -> None:
    letter = parked(dlq())
    DeadLetterQueue.objects.update(mode=mode)
    page = post(person("ann", *DECIDES), LOT + "release", letters=pack_messages([letter]))
    assert ("In mode automatic, a failed attempt does not count if the circuit" in page) == (mode == "automatic")


@pytest.mark.parametrize(
    ("without_lane", "others", "words"),
    [
        (1, 0, ("The message has no ordering key", "the message is sent without order.")),
        (2, 0, ("All messages have no ordering key", "these messages are sent without order.")),
        (1, 1, ("1 of the messages has no ordering key", "the message is sent without order.")),
        (2, 1, ("2 of the messages have no ordering key", "these messages are sent without order.")),
        (0, 1, ("", "")),
    ],
)
def test_release_warns_of_missing_ordering_keys(without_lane: int, others: int, words: tuple[str, str]) -> None:
    source = dlq()
    letters = [parked(source, reason="no_ordering_key") for _ in range(without_lane)]
    Letter.objects.update(lane=None)
    letters += [parked(source) for _ in range(others)]
    client = person("ann", *DECIDES)
    ticked = post(client, LOT + "release", scope="ticked", pick=[pack_messages([one]) for one in letters])
    whole = post(client, LOT + "release", scope="all", query="")
    for told in (_missing_keys(ticked), _missing_keys(whole)):
        assert (told.partition(".")[0], told.rpartition("still no key, ")[2]) == words
    assert _missing_keys(post(client, LOT + "discard", scope="all", query="")) == ""
