"""A rule made for a failure group is about the failure or the type of the group, not about one customer."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from reprocessing.domain.message.envelope import Attribute
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.pipeline.parking_lot import group_failures
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, failure_group, parked, person

pytestmark = pytest.mark.django_db
ADD = "/admin/reprocessing/rule/add/"
MAKES = ("add_rule", "view_letter", "view_failuregroup")
KEYED = {"account": Attribute("String", "account-0051")}
PAID = KEYED | {"event_type": Attribute("String", "order.paid")}


def made_for(group: int, *permissions: str) -> tuple[list[str], str]:
    """The conditions that the form of a new rule has for this group, and the sentence that says so."""
    page = person(f"ann{len(permissions)}", *permissions).get(f"{ADD}?group={group}")
    text = re.search(r"<p>(The rule is made .*?)</p>", page.content.decode())
    found: list[str] = json.loads(page.context["form"]["conditions"].value())
    return found, text[1] if text else ""


def grouped(body: bytes = b"{}", attributes: dict[str, Attribute] | None = None, **dlq_fields: Any) -> Letter:  # noqa: ANN401
    letter = parked(dlq(), key="account-0051", body=body, attributes=attributes or KEYED)
    DeadLetterQueue.objects.update(ordering_key="attribute:account", **dlq_fields)
    group_failures.assign_groups(batches=1)
    letter.refresh_from_db()
    assert letter.group is not None
    return letter


TASK = json.dumps({
    "body": "W1tdLCB7fSwge31d", "content-type": "application/json", "content-encoding": "utf-8",
    "headers": {"task": "shop.tasks.ship", "id": "1"}, "properties": {"body_encoding": "base64", "delivery_info": {}},
}).encode()  # fmt: skip
FAILED = KEYED | {"exception_type": Attribute("String", "shop.CardDeclined: card 4111")}


@pytest.mark.parametrize(
    ("body", "attributes", "fields", "conditions", "said"),
    [
        (b"{}", PAID, {}, ["attribute:event_type equals order.paid"], "the message type (attribute:event_type)"),
        (b'{"kind": "a.b"}', PAID, {"message_type": "body:kind"}, ["type equals a.b"], "the message type (type)"),
        (b'{"event-type": "order.paid"}', None, {}, ['body:"event-type" equals order.paid'],
         "the message type (body:&quot;event-type&quot;)"),
        (b'{"headers": {"X-GitHub-Event": "push"}}', None, {}, ['body:headers."X-GitHub-Event" equals push'],
         "the message type (body:headers.&quot;X-GitHub-Event&quot;)"),
        (b'{"event": {"name": "order.paid"}}', None, {}, ["body:event.name equals order.paid"],
         "the message type (body:event.name)"),
        (b'{"detail-type": "order.paid", "source": "shop", "detail": {}}', None, {},
         ['body:"detail-type" equals order.paid', "body:source equals shop"],
         "the event type (body:&quot;detail-type&quot;) and the event source (body:source)"),
        (TASK, None, {}, ["task equals shop.tasks.ship"], "the task (task)"),
        (b"{}", FAILED, {}, ["attribute:exception_type prefix shop.CardDeclined"],
         "the error (attribute:exception_type)"),
    ],
)  # fmt: skip
def test_a_rule_for_a_group_is_filled_with_what_the_group_is_about(
    body: bytes, attributes: dict[str, Attribute] | None, fields: dict[str, str], conditions: list[str], said: str
) -> None:
    letter = grouped(body, attributes, **fields)
    found, sentence = made_for(letter.group_id or 0, *MAKES)
    title = f'The rule is made for the failure group "{letter.group}".'
    assert (found, sentence) == (conditions, f"{title} Filled in from its message {letter.message_id}: {said}.")


def test_a_group_of_an_error_that_no_condition_reads_says_so() -> None:
    letter = parked(dlq(), key="account-0051", attributes=PAID)
    assert letter.source
    group = failure_group(letter.source, "shop.CardDeclined", cause="reported")
    Letter.objects.update(group=group)
    found, sentence = made_for(group.pk, *MAKES)
    assert found == ["attribute:event_type equals order.paid"]
    assert "No condition can compare the error of the group. Filled in from its message" in sentence


def test_a_group_without_a_type_gets_no_condition_and_the_warning() -> None:
    found, sentence = made_for(grouped(b'{"n": 1}').group_id or 0, *MAKES)
    assert (found, "a rule without conditions decides about every message of the DLQ." in sentence) == ([], True)


def test_the_newest_parked_message_of_the_group_is_read() -> None:
    letter = grouped(b"{}", PAID)
    assert letter.source
    newer = parked(letter.source, attributes={"event_type": Attribute("String", "order.sent")})
    Letter.objects.filter(pk=newer.pk).update(group=letter.group, state="delivered", reason="")
    assert letter.message_id in made_for(letter.group_id or 0, *MAKES)[1]


def test_a_group_that_the_person_may_not_see_fills_in_nothing() -> None:
    group = grouped(b"{}", PAID).group_id or 0
    assert made_for(group, "add_rule", "view_letter") == ([], "")
    assert made_for(group, "view_failuregroup", "add_rule", "view_rule", "change_rule") == ([], "")
    assert made_for(10**20, *MAKES) == ([], "")
