from __future__ import annotations

import html

import pytest
from django.test import Client

from reprocessing.models import DeadLetterQueue, Lane, Letter
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.routing.routing_decisions import BY_HAND
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person

pytestmark = pytest.mark.django_db
RUN_PAUSES = (
    "After 24 h without a success at the target, the run pauses. If no other message waits for the target, this "
    "message is parked instead. Both happen only if all open messages of the run have this target. To shorten the time:"
)
OFF = "The DLQ's setting give-up-after is off, so no time ends these attempts. To set a time:"


def queued(**fields: object) -> Letter:
    letter = parked(dlq(), key="account-7")
    Letter.objects.update(state="waiting", reason="", finished_at=None, **fields)
    return Letter.objects.get(pk=letter.pk)


def page(client: Client, letter: Letter) -> str:
    return html.unescape(client.get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode())


@pytest.mark.parametrize(("after", "ends"), [(86_400.0, RUN_PAUSES), (None, OFF)], ids=["24 h", "off"])
def test_queued_message_says_what_to_do_about_uncounted_attempts(after: float | None, ends: str) -> None:
    letter, client = queued(attempts=4, spared=0), person("ann", *LOOKS)
    DeadLetterQueue.objects.update(give_up_after=after, max_attempts=3)
    assert "not count" not in page(client, letter)
    Letter.objects.update(spared=3)
    told = page(client, letter)
    assert (
        "<p>3 attempts failed and do not count, because the circuit breaker opened and no other message succeeded. "
        "If this message is invalid, stop its key queue: then it is not sent any more. Or add a rule that quarantines "
        "it: the rule parks it, and you can edit or discard it. If the target is down, repair it.</p>"
    ) in told
    assert f"then the message is parked after 3 counted attempts. {ends} manage.py add_dlq shop-dlq" in told


def test_rules_are_not_advised_if_no_rule_decides_about_the_message() -> None:
    letter = queued(attempts=4, spared=1, rulebook_version=BY_HAND)
    told = page(person("ann", *LOOKS), letter)
    assert ("1 attempt failed and does not count" in told, "Or add a rule" in told) == (True, False)


@pytest.mark.parametrize("state", ["waiting", "sending", "awaiting"])
def test_unfinished_message_opens_the_stop_of_its_key_queue(state: str) -> None:
    letter = queued()
    Letter.objects.update(state=state)
    ann, stop = person("ann", *LOOKS, "stop_lane"), f"/admin/reprocessing/lane/{letter.lane_id}/stop"
    assert f'<a class="button" href="{stop}">Stop key queue…</a>' in page(ann, letter)
    assert "account-7 of shop-dlq" in ann.get(stop).content.decode()
    closed = page(person("ben", *LOOKS), letter)
    assert (stop in closed, "You may not stop key queues" in closed) == (False, True)
    Lane.objects.update(stopped_at=database_now(), stopped_by="zoe", stop_reason="a test")
    assert "Stop key queue…" not in page(ann, letter)


def test_finished_and_captured_messages_do_not_stop_a_key_queue() -> None:
    letter, ann = parked(dlq(), key="account-7"), person("ann", *LOOKS, "stop_lane")
    assert "Stop key queue…" not in page(ann, letter)
    Letter.objects.update(state="captured", reason="", finished_at=None, lane=None)
    assert "Stop key queue…" not in page(ann, letter)
