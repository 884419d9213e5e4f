"""A letter's page: its bytes for those who may see them, its history for everybody who may see the letter."""

from __future__ import annotations

import html

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from reprocessing.domain.envelope import Attribute
from reprocessing.models import Act, Custody, DeadLetter, Review, Target
from reprocessing.models.lanes import clock
from reprocessing.models.report import Report
from tests import envelopes
from tests.reprocessing.admin.lot import DECIDES, LOOKS, dlq, parked, person

pytestmark = pytest.mark.django_db
SCRIPT = "<script>alert(1)</script>"


def pages(client: Client, letter: int) -> list[str]:
    desks = ("parkedletter", "deadletter")
    return [client.get(f"/admin/reprocessing/{desk}/{letter}/change/").content.decode() for desk in desks]


def test_a_payload_is_shown_to_those_who_may_see_it_and_to_nobody_else() -> None:
    letter = parked(
        dlq(), body=b'{"card": "4111-canary"}', attributes={"trace": Attribute("String", "attribute-canary")}
    )
    canaries = ("4111-canary", "attribute-canary", "AIDA-shop")
    seen = [[canary in page for canary in canaries] for page in pages(person("ann", *DECIDES), letter.pk)]
    shown = [
        [canary in page for canary in canaries] for page in pages(person("ben", *LOOKS, "view_payload"), letter.pk)
    ]

    assert seen == [[False] * 3] * 2
    assert shown == [[True] * 3] * 2


def shown(letter: DeadLetter) -> str:
    return html.unescape(pages(person("ben", *LOOKS, "view_payload"), letter.pk)[0])


def test_a_task_is_shown_with_its_arguments_and_why_it_probably_died() -> None:
    body = envelopes.task("shop.charge", "4111-canary", task_id="t-1", retries=2, compression="gzip")
    letter = parked(dlq(), body=body)
    page = shown(letter)
    assert [text in page for text in ("<td>shop.charge</td>", "<td>t-1</td>", "<td>2</td>")] == [True] * 3
    assert '"4111-canary"' in page
    assert "It had failed and been retried 2 times before it died." in page
    assert "never acknowledged: or its task failed" in page
    assert "4111-canary" not in pages(person("ann", *LOOKS), letter.pk)[0]


def test_where_the_consumer_reported_nothing_is_guessed() -> None:
    letter = parked(dlq(), body=envelopes.task())
    assert "never acknowledged" in shown(letter)
    Report.objects.create(
        message_id=letter.message_id, verdict="retrying", happened_at=clock(), received_at=clock(), digest=b"1" * 32
    )
    page = pages(person("zoe", *LOOKS, "view_payload"), letter.pk)[0]
    assert ("As a task message" in page, "never acknowledged" in page) == (True, False)


def test_a_closed_payload_says_why_and_shows_what_its_producer_wrote_out() -> None:
    page = shown(parked(dlq(), body=envelopes.task("shop.charge", 1, serializer="pickle")))
    assert "Not shown: its payload is pickled, which nobody here opens." in page
    assert "<td>(1,) {}</td>" in page


@pytest.mark.parametrize(("kind", "told"), [("sqs", False), ("celery", True)])
def test_of_other_bodies_something_is_said_where_workers_were_to_take_them(kind: str, told: bool) -> None:
    letter = parked(dlq(), body=b"hello")
    Target.objects.filter(origins__dlq=letter.dlq).update(kind=kind)
    assert ("Not a Celery task: it is no kombu message." in shown(letter)) is told


def test_attempts_reviews_and_copies_are_on_the_page() -> None:
    letter = parked(dlq())
    Review.objects.create(act=Act.RELEASED, letter=letter, by="zoe", reason="tried before")
    Custody.objects.create(
        dlq=letter.dlq, message_id="copy-1", letter=letter, state="held", handle="secret-handle", visible_until=clock()
    )
    for page in pages(person("ann", *LOOKS), letter.pk):
        told = [text in page for text in ("returned", "sent-", "zoe", "tried before", "copy-1", "secret-handle")]
        assert told == [True, True, True, True, True, False]


def test_what_is_in_a_letter_is_never_run_nor_taken_for_markup() -> None:
    attributes = {"a": Attribute(f"String.{SCRIPT}", SCRIPT), "b": Attribute("String", "half \ud800 a pair")}
    letter = parked(dlq(), key=SCRIPT, body=SCRIPT.encode(), attributes=attributes)
    DeadLetter.objects.filter(pk=letter.pk).update(detail=SCRIPT)
    client = person("ann", *DECIDES, "view_payload")
    seen = [*pages(client, letter.pk), client.get("/admin/reprocessing/parkedletter/").content.decode()]

    assert [SCRIPT in page for page in seen] == [False] * 3
    assert ["&lt;script&gt;" in page for page in seen] == [True] * 3


def test_the_bytes_come_as_a_file_exactly_as_they_were_captured() -> None:
    body = bytes(range(256)) * 4096
    letter = parked(dlq(), body=body)
    answer = person("ann", *LOOKS, "view_payload").get(f"/admin/reprocessing/parkedletter/{letter.pk}/body")

    assert answer.content == body
    assert [answer["Content-Type"], answer["Content-Disposition"], answer["X-Content-Type-Options"]] == [
        "application/octet-stream",
        f'attachment; filename="{letter.public_id}.body"',
        "nosniff",
    ]


@pytest.mark.parametrize("permissions", [LOOKS, ("view_payload",), ("view_deadletter",)])
def test_the_bytes_are_for_those_who_may_see_both_the_letter_and_its_payload(permissions: tuple[str, ...]) -> None:
    letter = parked(dlq())

    assert person("ann", *permissions).get(f"/admin/reprocessing/parkedletter/{letter.pk}/body").status_code == 403


def test_a_page_takes_as_many_queries_for_much_history_as_for_little(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    letter = parked(dlq())
    for number in range(30):
        Review.objects.create(act=Act.CHANGED, letter=letter, by="zoe", reason=f"{number}")
        Custody.objects.create(
            dlq=letter.dlq, message_id=f"{number}", letter=letter, state="held", handle="-", visible_until=clock(),
            attempt=letter.history.get(),
        )  # fmt: skip
    client = person("ann", *DECIDES, "view_payload")

    with django_assert_max_num_queries(20):
        client.get(f"/admin/reprocessing/parkedletter/{letter.pk}/change/")
