"""A rule is removed without a change of its letters, which then say that a removed rule decided about them."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import Letter, Rule
from reprocessing.store.routing import rule_changes
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

LETTERS: Final = 3_000
#: Buffers that a statement may read: one that writes an audit log entry writes its nine index entries.
MOST: Final = 60

_LETTERS: Final[LiteralString] = """
INSERT INTO redrive_letter (public_id, dlq_id, message_id, state, body_hash, size, first_sent_at, finished_at, rule_id)
SELECT gen_random_uuid(), %s, 'old-' || n, 'delivered', 'hash', 9, redrive_now(), redrive_now(), %s
  FROM generate_series(1, %s::int) n
"""


@pytest.mark.soak
def test_a_removal_neither_reads_nor_changes_the_rule_s_letters() -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        change = rule_changes.save_rule("old", {"action": "hold", "conditions": []}, by="ann", reason="why")
        with connection.cursor() as cursor:
            cursor.execute(_LETTERS, [stock.dlq.pk, change.id, LETTERS])
        with_statistics()
        with explained() as found:
            rule_changes.remove(change.id, by="ann", reason="over")
            rule_changes.erase(change.id)
    assert (Rule.objects.count(), Letter.objects.filter(rule=change.id).count()) == (0, LETTERS)
    assert {one.text: one.buffers for one in found if one.buffers > MOST} == {}
