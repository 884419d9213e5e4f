from __future__ import annotations

import html
import re

import pytest
from django.db import DatabaseError
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from reprocessing import conf
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.ordering.placement import sort_key
from reprocessing.models import AuditAct, AuditEntry, DeadLetterQueue, Lane, Letter, Payload, Rule, Run, Target
from reprocessing.models.target import Report
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.ordering import lane_neighbours
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.routing import rule_changes
from tests import envelopes
from tests.reprocessing.admin.parking_lot.parked_messages import (
    DECIDES,
    LOOKS,
    dlq,
    failure_group,
    held_copy,
    parked,
    person,
    revealed,
    token,
    tried_again,
)

pytestmark = pytest.mark.django_db
SCRIPT = "<script>alert(1)</script>"
DESKS = ("parkedletter", "letter")
SHOWING = ("reveal", "body", "compare")


def pages(client: Client, letter: int) -> list[str]:
    return [client.get(f"/admin/reprocessing/{desk}/{letter}/change/").content.decode() for desk in DESKS]


def opens(client: Client, address: str) -> str:
    return client.get(address).content.decode()


@pytest.mark.soak
def test_a_payload_is_covered_until_somebody_who_may_see_it_asks_for_it() -> None:
    letter = parked(
        dlq(), body=b'{"card": "4111-canary"}', attributes={"trace": Attribute("String", "attribute-canary")}
    )
    canaries = ("4111-canary", "attribute-canary", "AIDA-shop")
    ben = person("ben", *LOOKS, "view_payload")
    covered = [[canary in page for canary in canaries] for page in pages(ben, letter.pk)]
    asked = [revealed(ben, letter, desk) for desk in DESKS]
    assert covered == [[False] * 3] * 2
    assert [[canary in page for canary in canaries] for page in asked] == [[True] * 3] * 2
    assert [one.act for one in AuditEntry.objects.filter(letter=letter, by="ben")] == ["revealed"] * 2


@pytest.mark.soak
def test_who_may_not_see_payloads_is_told_so_and_refused() -> None:
    letter = parked(dlq(), body=b'{"card": "4111-canary"}')
    ann = person("ann", *DECIDES)
    seen = pages(ann, letter.pk)
    values = {"csrfmiddlewaretoken": token(ann, "/admin/password_change/")}
    refused = [
        ann.post(f"/admin/reprocessing/{desk}/{letter.pk}/{action}", values) for desk in DESKS for action in SHOWING
    ]
    assert ["4111-canary" in page for page in seen] == [False] * 2
    assert ["You may not see payloads" in page for page in seen] == [True] * 2
    assert [answer.status_code for answer in refused] == [403] * 6
    assert AuditEntry.objects.count() == 0


def test_unsent_message_has_a_page() -> None:
    letter = parked(dlq())
    other = Letter.objects.create(
        dlq=letter.dlq, message_id="new", body_hash=b"n", size=0, first_sent_at=database_now(), state="captured"
    )
    page = opens(person("ann", *LOOKS), f"/admin/reprocessing/letter/{other.pk}/change/")
    assert "No attempts yet." in page
    assert "Not queued yet: its ordering key is not known." in page


def titled(client: Client, letter: Letter) -> set[str]:
    """The title of the browser, the heading, and the breadcrumb of a message's page."""
    page = opens(client, f"/admin/reprocessing/letter/{letter.pk}/change/")
    title, heading = re.search(r"<title>(.*?) \| ", page), re.search(r'<h1 translate="no">(.*?)</h1>', page)
    assert title
    assert heading
    crumb = page[page.index('<div class="breadcrumbs">') :].partition("</div>")[0].rpartition("&rsaquo; ")[2]
    return {html.unescape(text) for text in (title[1], heading[1], crumb)}


def test_the_title_is_type_and_ordering_key() -> None:
    letter = parked(dlq(), key="customer-7", body=b'{"type": "order.paid"}')
    assert titled(person("ann", *LOOKS), letter) == {"order.paid · customer-7"}


@pytest.mark.parametrize(
    ("key", "body", "title"),
    [
        ("customer-7", b"{}", "Message of shop-dlq · customer-7"), (None, b'{"type": "order.paid"}', "order.paid"),
        (None, b"\xff", "Message of shop-dlq"), ("a\u202eb", b"", "Message of shop-dlq · a<U+202E>b"),
        ("k" * 99, b"", f"Message of shop-dlq · {'k' * 60}…"),
    ],
    ids=range(5),
)  # fmt: skip
def test_a_message_without_type_or_key_has_a_title(key: str | None, body: bytes, title: str) -> None:
    assert titled(person("ann", *LOOKS), parked(dlq(), key=key, body=body)) == {title}


def test_a_title_shows_nothing_that_is_masked() -> None:
    letter = parked(dlq(), body=b'{"type": "order.canary", "event": "paid"}')
    DeadLetterQueue.objects.update(masked_fields=["type"])
    assert titled(person("ann", *LOOKS, "view_payload", "reveal_payload"), letter) == {"paid"}


@pytest.mark.soak
def test_a_key_with_html_is_text_everywhere() -> None:
    letter = parked(dlq(), key=SCRIPT, body=SCRIPT.encode())
    Letter.objects.update(single=False, key_hash=b"key")
    page = revealed(person("ben", *LOOKS, "view_payload"), letter)
    assert ("<script>alert" in page, page.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 4) == (False, True)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, r"Parked \(.* UTC\): Failed 1 attempt\."),
        ({"attempts": 3}, r"Parked \(.* UTC\): Failed 3 of 3 attempts\."),
        ({"attempts": 4, "spared": 1},
         r"Parked \(.* UTC\): Failed 3 of 3 attempts; 1 more was not counted: circuit breaker open\."),
        ({"state": "captured", "reason": "", "finished_at": None}, "Captured: it is in no run\\."),
        ({"state": "waiting", "reason": "", "finished_at": None}, "Queued: nothing is queued\\."),
        ({"state": "delivered", "reason": "", "presumed": True}, r"It is presumed delivered: .* \(.* UTC\)"),
        ({"state": "discarded", "reason": ""}, r"Discarded\. \(.* UTC\)"),
    ],
    ids=range(7),
)  # fmt: skip
def test_the_newest_state_is_a_sentence(fields: dict[str, object], sentence: str) -> None:
    letter = parked(dlq())
    Letter.objects.filter(pk=letter.pk).update(**fields)
    page = opens(person("ann", *LOOKS), f"/admin/reprocessing/letter/{letter.pk}/change/")
    assert re.search(f'<p class="why"><strong>{sentence}</strong>', page)


def test_a_discarded_message_says_who_and_why() -> None:
    letter = parked(dlq())
    act_on_parked.discard([letter.pk], by="zoe", reason="a test order.")
    page = opens(person("ann", *LOOKS), f"/admin/reprocessing/letter/{letter.pk}/change/")
    assert "<strong>Discarded by zoe: a test order." in page


@pytest.mark.soak
def test_the_next_action_is_the_first_button() -> None:
    source = dlq()
    letter = parked(source)
    ann = person("ann", *DECIDES, "operate_run", "view_lane")
    address = f"/admin/reprocessing/letter/{letter.pk}/change/"
    lot = opens(ann, f"/admin/reprocessing/parkedletter/{letter.pk}/change/")
    assert re.search(r'<button type="submit" class="button default">Release…', lot)
    Letter.objects.update(state="captured", reason="", finished_at=None)
    assert (
        f'<a class="button default" href="/admin/reprocessing/run/add/?dlq={source.dlq_id}">Plan a run…</a>'
        in opens(ann, address)
    )
    Letter.objects.update(state="waiting")
    assert letter.lane
    Lane.objects.update(stopped_at=database_now(), stopped_by="zoe", stop_reason="why")
    stopped = f'href="/admin/reprocessing/lane/{letter.lane_id}/change/">Open the stopped key queue</a>'
    assert f'<a class="button default" {stopped}' in opens(ann, address)


def _first_button(page: str) -> str:
    found = re.findall(r'<a class="button default" href="([^"]*)">([^<]*)</a>', page)
    return " ".join(found[0]) if found else ""


def test_a_captured_message_of_a_dlq_that_is_not_manual_is_not_led_to_a_plan() -> None:
    source = dlq()
    letter = parked(source)
    Letter.objects.update(state="captured", reason="", finished_at=None)
    sees = ("view_run", "operate_run", "change_deadletterqueue", "view_deadletterqueue")
    ann, address = person("ann", *LOOKS, *sees), f"/admin/reprocessing/letter/{letter.pk}/change/"
    DeadLetterQueue.objects.update(mode="observe")
    assert _first_button(opens(ann, address)) == (
        f"/admin/reprocessing/deadletterqueue/{source.dlq_id}/examine Change the mode…"
    )
    DeadLetterQueue.objects.update(mode="automatic")
    page = opens(ann, address)
    assert (_first_button(page), "Plan a run" in page) == ("", False)
    assert "<strong>Captured: the automatic run of the DLQ will take it.</strong>" in page
    run = Run.objects.create(dlq=source.dlq, name="automatic:1", kind="automatic", state="running", asked_by="beat")
    assert _first_button(opens(ann, address)) == f"/admin/reprocessing/run/{run.pk}/change/ Open the automatic run"
    Run.objects.update(state="paused", stopped_by="zoe", why="why")
    assert _first_button(opens(ann, address)).endswith("Open the paused automatic run")
    DeadLetterQueue.objects.update(stopped_at=database_now(), stopped_by="zoe", stop_reason="why")
    assert _first_button(opens(ann, address)).endswith("/change/ Open the stopped DLQ")


def test_the_history_has_all_events_newest_first() -> None:
    source = dlq()
    letter = parked(source)
    Letter.objects.update(finished_at=database_now())
    Letter.objects.update(group=failure_group(source), grouped_at=database_now())
    act_on_parked.note([letter.pk], by="zoe", reason="asked the shop")
    act_on_parked.release([letter.pk], by="ben", reason="it is mended")
    page = opens(person("ann", *LOOKS), f"/admin/reprocessing/letter/{letter.pk}/change/")
    found = re.findall(r'<p class="try-head"><strong>(.*?)</strong>', page)
    assert found == [
        "Released", "Noted", "Assigned to a failure group", "Parked", "Attempt 1", "Captured from shop-dlq",
        "Sent to shop-dlq; SQS named no source queue",
    ]  # fmt: skip
    assert [
        text in page for text in ("by ben", "it is mended", "All attempts that the DLQ allows", "asked the shop")
    ] == [True] * 4


def test_the_history_names_the_source_queue_only_if_sqs_named_it() -> None:
    letter = parked(dlq(), system={"DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:0:orders"})
    ann, address = person("ann", *LOOKS), f"/admin/reprocessing/letter/{letter.pk}/change/"
    assert "<strong>Sent to orders, where it failed</strong>" in opens(ann, address)
    Payload.objects.all().delete()
    assert "<strong>Sent</strong>" in opens(ann, address)


def test_a_sentence_about_the_delivery_stands_once() -> None:
    letter = parked(dlq())
    Letter.objects.update(state="delivered", reason="", presumed=True)
    page = opens(person("ann", *LOOKS), f"/admin/reprocessing/letter/{letter.pk}/change/")
    assert page.count("It is presumed delivered: ") == 1
    assert '<p class="answer">Outcome: presumed, since ' in page


def test_the_row_of_an_attempt_still_says_that_the_message_was_parked_after_a_release() -> None:
    letter = parked(dlq())
    ann, address = person("ann", *LOOKS), f"/admin/reprocessing/letter/{letter.pk}/change/"
    before = _followed(opens(ann, address))
    act_on_parked.release([letter.pk], by="ben", reason="it is mended")
    released = _followed(opens(ann, address))
    tried_again(letter)
    assert (before, released, _followed(opens(ann, address))) == (
        ["the message was parked"], ["the message was parked"], ["in progress", "the message was parked"],
    )  # fmt: skip


def _followed(page: str) -> list[str]:
    """What followed from each attempt, newest first."""
    history = page[page.index('id="history"') :].partition("</section>")[0]
    return re.findall(r"(the message was parked|in progress|the message is \w+|tried again [^;<]* later)", history)


def test_a_long_history_is_cut() -> None:
    letter = parked(dlq())
    for number in range(70):
        AuditEntry.objects.create(act=AuditAct.NOTED, letter=letter, by="zoe", reason=f"{number}")
    page = opens(person("ann", *LOOKS), f"/admin/reprocessing/letter/{letter.pk}/change/")
    assert (page.count('class="try-head"'), "14 older events are not shown." in page) == (60, True)


@pytest.mark.soak
def test_messages_of_the_key_are_listed_with_their_states() -> None:
    source = dlq()
    letters = [parked(source, key="key-7") for _ in range(3)]
    Letter.objects.update(single=False, key_hash=b"key-7", lane=letters[0].lane)
    Letter.objects.filter(pk=letters[0].pk).update(state="delivered", reason="")
    Letter.objects.filter(pk=letters[1].pk).update(attempts=6, attempts_before_release=4, spared=1)
    Letter.objects.filter(pk=letters[2].pk).update(attempts=5, attempts_before_release=3)
    ann = person("ann", *LOOKS)
    page = opens(ann, f"/admin/reprocessing/letter/{letters[1].pk}/change/")
    part = page[page.index('id="this-key"') : page.index('id="history"')]
    assert re.findall(r"/letter/(\d+)/change/", part) == [str(letters[0].pk), str(letters[2].pk)]
    assert re.findall(r'<span class="chip[^"]*">(\w+)</span>', part) == ["delivered", "parked", "parked"]
    assert re.findall(r'data-label="Attempts">([^<]*)<', part) == [
        "1 of 3", "1 of 3 (6 in all)", "2 of 3 (5 in all)",
    ]  # fmt: skip
    told = "6 attempts: 4 before the last release; since then 2, of which 1 does not count (limit 3)"
    assert f"<dt>Attempts</dt><dd>{told}</dd>" in page
    (every,) = re.findall(r'href="([^"]*)">All messages of this key', part)
    assert all(letter.message_id in opens(ann, every) for letter in letters)
    Letter.objects.update(single=True)
    assert 'id="this-key"' not in opens(ann, f"/admin/reprocessing/letter/{letters[1].pk}/change/")


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": [' + b'{"name": "<b>&\'\\"", "n": 12345678901234567890}, ' * 5_000 + b"1]}", b'"' * 262_144,
        b"[" * 5_000 + b"]" * 5_000, b"\x00" * 262_144, b"\xff" * 262_144, b'{"' + b"k" * 262_000 + b'": 1}',
    ],
    ids=range(6),
)  # fmt: skip
def test_a_revealed_page_stays_small(body: bytes) -> None:
    attributes = {f"a{n}": Attribute("String", "<" * 20_000) for n in range(10)}
    letter = parked(dlq(), body=body, attributes=attributes)
    for number in range(70):
        AuditEntry.objects.create(act=AuditAct.NOTED, letter=letter, by="zoe", reason=f"reason {number}")
    assert len(revealed(person("ben", *LOOKS, "view_payload"), letter).encode()) < 140 * 1024


def test_a_body_is_a_tree_that_opens_without_a_script() -> None:
    page = shown(parked(dlq(), body=b'{"n": 9007199254740993, "n": 1.10, "list": [{"x": "<i>"}]}'))
    assert '<b>n</b><i class="number">9007199254740993</i>' in page
    assert '<b>n</b><em>repeated</em><i class="number">1.10</i>' in page
    assert '<details class="l"' in page


@pytest.mark.soak
def test_the_command_that_sends_it_is_only_with_the_payload_and_never_with_masked_values() -> None:
    letter = parked(dlq(), body=b'{"card": "4111-canary"}')
    ann = person("ann", *LOOKS, "view_payload")
    assert "aws sqs send-message" not in pages(ann, letter.pk)[1]
    assert "aws sqs send-message --queue-url http://127.0.0.1:9/0/shop-dlq-o" in html.unescape(revealed(ann, letter))
    DeadLetterQueue.objects.update(masked_fields=["card"])
    assert "aws sqs send-message" not in revealed(ann, letter)


def test_an_http_target_has_a_curl_command_without_its_signature() -> None:
    letter = parked(dlq(), body=b"{}")
    Target.objects.update(kind="http", url="https://shop.example/hook", secret="shop")
    page = shown(letter)
    assert "curl --request POST https://shop.example/hook" in page
    assert f"--header 'Idempotency-Key: {letter.message_id}'" in page
    assert ("The request has no signature" in page, "Webhook-Signature" in page) == (True, False)


def test_page_names_the_environment() -> None:
    letter = parked(dlq())
    ann = person("ann", *LOOKS)
    chips = [
        re.findall(r'class="place [^"]*">([^<]*)<', page) for page in (*pages(ann, letter.pk), opens(ann, "/admin/"))
    ]
    assert chips == [[conf.current().place]] * 3


def test_payload_is_not_shown_if_recording_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    letter = parked(dlq(), body=b"4111-canary")

    def fails(*_: object, **__: object) -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr("reprocessing.store.parking_lot.message_edits.record_action", fails)
    with pytest.raises(DatabaseError):
        revealed(person("ben", *LOOKS, "view_payload"), letter)


def test_public_fields_are_shown_to_everybody() -> None:
    letter = parked(dlq(), body=b'{"order": {"id": "o-7", "card": "4111-canary"}, "n": 7, "mark": "\\u202e"}')
    DeadLetterQueue.objects.update(public_fields=["order.id", "n", "mark", "absent"])
    page = html.unescape(pages(person("ann", *LOOKS), letter.pk)[0])
    told = [f'<dt translate="no">{name}</dt><dd translate="no">{value}</dd>' in page for name, value in (
        ("order.id", "o-7"), ("n", "7"), ("mark", "<U+202E>"), ("absent", "nothing"))]  # fmt: skip
    assert (told, "4111-canary" in page, AuditEntry.objects.count()) == ([True] * 4, False, 0)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"a=1&b=%20x", "form: 2 fields: a, b"),
        (b"<order><id>7</id></order>", "XML: its root is order"),
        (b'{"source": "shop", "detail-type": "paid", "detail": {}}', "EventBridge event: paid, from shop"),
        (b"\x1f\x8b\xff", "bytes: looks like gzip"),
    ],
)
def test_format_of_the_body_is_named(body: bytes, told: str) -> None:
    assert told in revealed(person("ben", *LOOKS, "view_payload"), parked(dlq(), body=body))


def shown(letter: Letter) -> str:
    return html.unescape(revealed(person("ben", *LOOKS, "view_payload"), letter))


@pytest.mark.soak
def test_celery_task_is_shown_with_its_failure_reason() -> None:
    body = envelopes.task("shop.charge", "4111-canary", task_id="t-1", retries=2, compression="gzip")
    letter = parked(dlq(), body=body)
    page = shown(letter)
    assert [text in page for text in (f'<dd translate="no">{one}</dd>' for one in ("shop.charge", "t-1", "2"))] == [
        True
    ] * 3
    assert '"4111-canary"' in page
    assert "It had failed and been retried 2 times before it came to the DLQ." in page
    assert "never acknowledged: perhaps its task failed" in page
    assert "4111-canary" not in pages(person("ann", *LOOKS), letter.pk)[0]


@pytest.mark.soak
def test_a_consumer_report_replaces_the_guess() -> None:
    letter = parked(dlq(), body=envelopes.task())
    assert "never acknowledged" in shown(letter)
    now = database_now()
    Report.objects.create(
        message_id=letter.message_id, verdict="retrying", happened_at=now, received_at=now, digest=b"1" * 32
    )
    page = revealed(person("zoe", *LOOKS, "view_payload"), letter)
    assert ("<h3>Celery task</h3>" in page, "never acknowledged" in page) == (True, False)


def test_undecodable_arguments_are_explained() -> None:
    page = shown(parked(dlq(), body=envelopes.task("shop.charge", 1, serializer="pickle")))
    assert "Not shown: its payload is pickled, and unpickling could run code." in page
    assert '<dd translate="no">(1,) {}</dd>' in page


@pytest.mark.parametrize(("kind", "told"), [("sqs", False), ("celery", True)])
def test_other_bodies_are_explained_for_celery_targets(kind: str, told: bool) -> None:
    letter = parked(dlq(), body=b"hello")
    Target.objects.filter(sources__dlq=letter.dlq).update(kind=kind)
    assert ("Not a Celery task: it is not a kombu message." in shown(letter)) is told


def test_page_shows_attempts_audit_entries_and_copies() -> None:
    letter = parked(dlq())
    AuditEntry.objects.create(act=AuditAct.RELEASED, letter=letter, by="zoe", reason="tried before")
    held_copy(letter, message_id="copy-1")
    for page in pages(person("ann", *LOOKS), letter.pk):
        told = [text in page for text in ("came back", "sent-", "zoe", "tried before", "copy-1", "secret-handle")]
        assert told == [True, True, True, True, True, False]


def test_body_download_has_the_exact_bytes() -> None:
    body = bytes(range(256)) * 4096
    letter = parked(dlq(), body=body)
    client = person("ann", *LOOKS, "view_payload")
    values = {"csrfmiddlewaretoken": token(client, "/admin/password_change/")}
    answer = client.post(f"/admin/reprocessing/parkedletter/{letter.pk}/body", values)
    assert AuditEntry.objects.values_list("act", "by", "reason").get() == ("revealed", "ann", "Downloaded the body.")
    assert answer.content == body
    assert [answer["Content-Type"], answer["Content-Disposition"], answer["X-Content-Type-Options"]] == [
        "application/octet-stream",
        f'attachment; filename="{letter.public_id}.body"',
        "nosniff",
    ]


@pytest.mark.parametrize("permissions", [LOOKS, ("view_payload",), ("view_letter",)])
def test_body_download_takes_both_permissions(permissions: tuple[str, ...]) -> None:
    letter = parked(dlq())
    client = person("ann", *permissions)
    values = {"csrfmiddlewaretoken": token(client, "/admin/password_change/")}
    assert client.post(f"/admin/reprocessing/parkedletter/{letter.pk}/body", values).status_code == 403


def test_page_has_bounded_queries(django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    letter = parked(dlq())
    for number in range(30):
        AuditEntry.objects.create(act=AuditAct.CHANGED, letter=letter, by="zoe", reason=f"{number}")
        held_copy(letter, message_id=f"{number}", attempt=letter.history.get())
    client = person("ann", *DECIDES, "view_payload")
    with django_assert_max_num_queries(20):
        client.get(f"/admin/reprocessing/parkedletter/{letter.pk}/change/")


def test_key_queue_panel_shows_first_and_next_message() -> None:
    source = dlq()
    letters = [parked(source, key=f"key-{number}") for number in range(4)]
    lane = letters[0].lane
    Letter.objects.filter(dlq=source.dlq).update(lane=lane)
    waiting = Letter.objects.exclude(pk=letters[1].pk)
    waiting.update(state="waiting", reason="", finished_at=None)
    assert lane
    Lane.objects.filter(pk=lane.pk).update(phase="ready", due_at=database_now(), why="no token")
    at = lane_neighbours.neighbours_of(letters[1].pk)
    assert at
    first, _, third, _ = (one.pk for one in letters)
    assert (at.head_id, at.before_id, at.after_id, at.behind, at.parked) == (first, first, third, 2, 0)
    page = pages(person("ann", *LOOKS), letters[1].pk)[0]
    assert "its first message waits: no token; checked again as soon as a worker is free" in page
    assert f"/admin/reprocessing/letter/{third}/change/" in page


def test_long_key_queue_is_counted_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_neighbours, "COUNTED_AT_MOST", 1)
    monkeypatch.setattr("reprocessing.admin.messages.key_queue_panel.COUNTED_AT_MOST", 1)
    source = dlq()
    letters = [parked(source) for _ in range(4)]
    Letter.objects.filter(dlq=source.dlq).update(lane=letters[0].lane)
    Letter.objects.exclude(pk=letters[0].pk).update(state="waiting", reason="", finished_at=None)
    at = lane_neighbours.neighbours_of(letters[0].pk)
    assert at
    assert at.behind == 2
    assert "<dd>more than 1</dd>" in pages(person("ann", *LOOKS), letters[0].pk)[0]


def decided(letter: Letter) -> str:
    page = pages(person(f"reader-{letter.reason}-{letter.route}", *LOOKS), letter.pk)[1]
    found = re.search(r"<dt>Decided by</dt><dd>(.*?)</dd>", page)
    assert found
    return re.sub(r"<[^>]*>", "", found[1])


def test_routing_shows_who_released_after_a_quarantine() -> None:
    letter = parked(dlq(), reason="quarantined")
    rule_changes.save_rule("bad", {"action": "quarantine", "conditions": []}, by="ann", reason="a test")
    letter.rule, letter.route = Rule.objects.get(), "quarantine"
    letter.save()
    before = decided(letter)
    act_on_parked.release([letter.pk], by="ben", reason="it is mended")
    letter.refresh_from_db()
    after = decided(letter)
    assert before == "the rule bad: quarantine"
    assert after == "ben, who released it; before that, the rule bad quarantined it"


@pytest.mark.parametrize(
    ("values", "shown"),
    [({"after": {"revision": 1}}, "edit 1"), ({"after": {"revision": 0}}, "the captured message"), ({}, "-")],
)
def test_audit_log_says_in_words_which_edit_was_seen(values: dict[str, dict[str, int]], shown: str) -> None:
    letter = parked(dlq())
    AuditEntry.objects.create(act=AuditAct.REVEALED, letter=letter, by="zoe", reason="x", **values)
    page = pages(person("ann", *LOOKS), letter.pk)[0]
    assert (f'<td data-label="Values">{shown}</td>' in page, "before, after" in page) == (True, False)
    AuditEntry.objects.create(act=AuditAct.EDITED, letter=letter, by="zoe", reason="x", before={"a": 1}, **values)
    assert "<summary>before, after</summary>" in pages(person("ben", *LOOKS), letter.pk)[0]


def test_sequence_is_readable() -> None:
    letter = parked(dlq())
    Letter.objects.filter(pk=letter.pk).update(sequence=sort_key("1"))
    assert '<dt>Sequence</dt><dd translate="no">1</dd>' in pages(person("ann", *LOOKS), letter.pk)[1]


def test_the_page_of_a_queue_whose_name_has_a_zero_byte_is_missing() -> None:
    assert person("ann", "view_heartbeat").get("/admin/reprocessing/heartbeat/%00/change/").status_code == 404


def test_parked_message_says_which_attempts_did_not_count() -> None:
    letter = parked(dlq())
    Letter.objects.update(attempts=19, attempts_before_release=3, spared=13)
    tried_again(letter, no=19, closed_at=database_now(), outcome="refused", counts_as_failure=True, spared=True)
    page = pages(person("ann", *LOOKS), letter.pk)[0]
    told = "Failed 3 of 3 attempts; 13 more were not counted: circuit breaker open; 3 were made before the last"
    assert (told in page, ">refused, does not count<" in page) == (True, True)
    Letter.objects.update(reason="refused")
    other = "Parked after 19 attempts (13 were not counted: circuit breaker open; 3 were made before the last release) "
    assert other in pages(person("ben", *LOOKS), letter.pk)[0]
    assert "What ends these attempts" not in page
