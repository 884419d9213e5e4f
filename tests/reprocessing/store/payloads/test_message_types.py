from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from reprocessing.domain.payloads.sealing import Part
from reprocessing.models import DeadLetterQueue, Letter, Payload, Source
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.payloads import content, message_types
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, failure_group, parked
from tests.reprocessing.payload_rings import Rings, encrypted, rings
from tests.reprocessing.store.explained import explained

__all__ = ["encrypted", "rings"]

pytestmark = pytest.mark.django_db


def typed(source: Source, kind: str, **fields: Any) -> Letter:  # noqa: ANN401
    letter = parked(source, body=json.dumps({"type": kind}).encode())
    Letter.objects.filter(pk=letter.pk).update(**fields)
    letter.refresh_from_db()
    return letter


def delivered(source: Source, kind: str) -> int:
    return typed(source, kind, state="delivered", reason="").pk


def test_the_setting_of_the_dlq_says_where_the_type_is_or_that_there_is_none() -> None:
    letter = parked(dlq(), body=b'{"type": "order.paid", "what": "refund"}')
    found = []
    for setting in ("body:what", "none"):
        DeadLetterQueue.objects.update(message_type=setting)
        letter.dlq.refresh_from_db()
        found.append(message_types.type_of(letter, opens=False))
    assert found == ["refund", ""]


def test_a_masked_field_is_no_type() -> None:
    letter = typed(dlq(), "order.paid")
    letter.dlq.masked_fields = ["type"]
    assert message_types.type_of(letter, opens=True) == ""


def _sealed(letter: Letter) -> None:
    """Seal the payload of a letter, as a capture does."""
    sealer, of = content.sealer_of(letter.dlq_id, database_now().date()), letter.message_id
    body, attributes = bytes(letter.payload.body), bytes(letter.payload.attributes)
    letter.payload.delete()
    Payload.objects.create(
        letter=letter, body=sealer.bytes(body, Part.BODY, of=of), system={},
        attributes=sealer.bytes(attributes, Part.ATTRIBUTES, of=of),
    )  # fmt: skip


def test_an_encrypted_message_is_not_opened_for_who_may_not_see_payloads(encrypted: Rings) -> None:
    source = dlq()
    letter = typed(source, "order.paid")
    _sealed(letter)
    assert [message_types.type_of(letter, opens=opens) for opens in (False, True)] == ["", "order.paid"]
    letter.group = failure_group(source, "order.paid", cause="type")
    assert message_types.type_of(letter, opens=False) == "order.paid"
    letter.group = failure_group(source, "KeyError", cause="reported")
    assert message_types.type_of(letter, opens=False) == ""


def test_without_its_key_an_encrypted_message_has_no_type(encrypted: Rings) -> None:
    letter = typed(dlq(), "order.paid")
    _sealed(letter)
    encrypted()
    assert message_types.type_of(letter, opens=True) == ""


def test_the_last_delivered_message_of_a_type_is_of_the_same_dlq() -> None:
    source, other = dlq(), dlq("other-dlq")
    mine = typed(source, "order.paid")
    delivered(source, "order.paid")
    last = delivered(source, "order.paid")
    delivered(source, "order.sent")
    delivered(other, "order.paid")
    typed(source, "order.paid", state="discarded", reason="")
    assert message_types.last_delivered_of_type(mine, "order.paid") == last
    assert message_types.last_delivered_of_type(mine, "refund") is None


_MANY = """
WITH made AS (
    INSERT INTO redrive_letter (public_id, dlq_id, source_id, target_id, message_id, state, planned, sequence,
           body_hash, size, first_sent_at, finished_at)
    SELECT gen_random_uuid(), l.dlq_id, l.source_id, l.target_id, 'old-' || n, 'delivered', true, '',
           '', 20, now(), now()
      FROM redrive_letter l, generate_series(1, 5000) n WHERE l.id = %(like)s
    RETURNING id
)
INSERT INTO redrive_payload (letter_id, body, attributes, system)
SELECT id, convert_to(json_build_object('type', 'order.sent', 'note', repeat('x', 500))::text, 'UTF8'), '{}', '{}'
  FROM made
"""


@pytest.mark.soak
def test_few_payloads_of_a_long_history_are_read() -> None:
    mine = typed(dlq(), "order.paid")
    with connection.cursor() as cursor:
        cursor.execute(_MANY, {"like": mine.pk})
        cursor.execute("ANALYZE redrive_letter, redrive_payload")
    with explained() as found:
        assert message_types.last_delivered_of_type(mine, "order.paid") is None
    assert {(one.scanned, one.buffers < 1_500) for one in found} == {(frozenset(), True)}
