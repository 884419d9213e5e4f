"""What is read for a failure group and for a page of groups does not grow with the parts and hours of groups."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import FailureGroup
from reprocessing.store.maintenance import counters
from reprocessing.store.parking_lot import failure_group_pages
from tests.reprocessing.store.explained import Explained, explained
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

#: Parts of one group; letters of each part.
PARTS, EACH = 100, 110

_GROUPS: Final[LiteralString] = """
INSERT INTO redrive_failure_group (dlq_id, fingerprint, cause, title, keys, first_at, last_at)
SELECT %(dlq)s, convert_to(n::text, 'UTF8'), 'body', n, ARRAY['k' || n], redrive_now(), redrive_now()
  FROM generate_series(0, %(parts)s::int) n ORDER BY n;
UPDATE redrive_failure_group SET merged_into_id = (SELECT min(id) FROM redrive_failure_group) WHERE title <> '0'
"""
# The letters of a part are far from each other, as they are when they arrive.
_LETTERS: Final[LiteralString] = """
INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, state, planned, body_hash, size,
                            first_sent_at, captured_at, grouped_at, group_id)
SELECT gen_random_uuid(), %(dlq)s, 'm' || n, %(source)s, %(target)s, 'captured', true, 'x', 1, redrive_now(),
       redrive_now(), redrive_now(), (SELECT min(id) FROM redrive_failure_group) + 1 + n %% %(parts)s
  FROM generate_series(1, %(letters)s::int) n
"""
_HOURS: Final[LiteralString] = """
INSERT INTO redrive_group_hour (group_id, hour, n)
SELECT g.id, redrive_now() - make_interval(hours => h), 1 FROM redrive_failure_group g, generate_series(1, 300) h
"""


def _run(statement: str, **values: int | str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)


def _most(found: list[Explained]) -> int:
    return max(one.buffers for one in found)


@pytest.mark.soak
def test_a_group_of_many_parts_is_read_in_bounded_steps() -> None:
    stock = Stock()
    values = {"dlq": stock.dlq.pk, "source": stock.source.pk, "target": stock.target.pk}
    _run(_GROUPS.replace("%(dlq)s", str(stock.dlq.pk)).replace("%(parts)s", str(PARTS)))
    _run(_LETTERS, **values, parts=PARTS, letters=PARTS * EACH)
    _run("VACUUM (ANALYZE) redrive_letter")
    [root] = FailureGroup.objects.filter(title="0").values_list("pk", flat=True)
    with explained() as newest:
        failure_group_pages.newest_letters([root])
    with explained() as page:
        assert len(failure_group_pages.letter_ids(root, below=None, limit=51)) == 51
    with explained() as waiting:
        failure_group_pages.letters_behind(root)
    assert _most(newest) < 1_000  # index entries of 20 parts, and a hundred letters
    assert _most(page) < 5 * PARTS  # some index entries of each part
    assert _most(waiting) < 20 * EACH * 2  # letters of 20 parts


def test_a_purge_and_a_sparkline_read_only_the_hours_that_they_need() -> None:
    stock = Stock()
    _run(_GROUPS.replace("%(dlq)s", str(stock.dlq.pk)).replace("%(parts)s", str(PARTS)))
    _run(_HOURS)
    _run("VACUUM (ANALYZE) redrive_group_hour")
    [some] = FailureGroup.objects.filter(title="7").values_list("pk", flat=True)
    with explained() as found:
        counters.delete_old_group_hours(limit=1_000)
        failure_group_pages.letters_by_hour([some], days=False)
    assert [one.buffers < 40 for one in found] == [True, True]
