from __future__ import annotations

from datetime import timedelta
from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import DlqCopy, Letter
from reprocessing.pipeline.maintenance import recover
from reprocessing.store.capture import expiry_rescue
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics

pytestmark = pytest.mark.django_db(transaction=True)

#: Letters, and buffers that a statement may read. Each table and index has more pages, so that a scan fails the test.
LETTERS: Final = 3_000
MOST: Final = 50

_INSERT: Final[LiteralString] = """
WITH lane AS (
    INSERT INTO redrive_lane (dlq_id, source_id, key_hash) VALUES (%(dlq)s, %(source)s, 'key') RETURNING id
), letter AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, lane_id, state, planned, sequence,
                                body_hash, size, first_sent_at, expires_at)
    SELECT gen_random_uuid(), d.id, n::text, %(source)s, %(target)s, lane.id, %(state)s, true, n::text, 'hash', 9,
           e.at - make_interval(secs => d.retention), e.at
      FROM lane JOIN redrive_dlq d ON d.id = %(dlq)s CROSS JOIN generate_series(1, %(letters)s::int) n
     CROSS JOIN LATERAL (
           SELECT redrive_now() + CASE n WHEN 1 THEN 0.5 ELSE n END * interval '1 hour' AS at OFFSET 0) e
    RETURNING id, dlq_id, message_id, expires_at
)
INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, state, handle, visible_until, expires_at)
SELECT dlq_id, message_id, id, 'held', 'handle', redrive_now() + interval '1 hour', expires_at FROM letter
"""


def aged(bench: Workbench, **minutes_left: float) -> None:
    """Capture letters, each with so many minutes until its copy expires."""
    for body in minutes_left:
        bench.bury(body)
    bench.ready()
    for body, minutes in minutes_left.items():
        (one,) = Letter.objects.filter(dlq=bench.dlq, payload__body=body.encode())
        one.expires_at = lanes.database_now() + timedelta(minutes=minutes)
        one.save(update_fields=["expires_at"])
        DlqCopy.objects.filter(letter=one).update(expires_at=one.expires_at)


def custody(bench: Workbench) -> dict[str, str]:
    found = DlqCopy.objects.filter(dlq=bench.dlq).values_list("letter__payload__body", "state")
    return {bytes(body).decode(): state for body, state in found}


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


def test_a_letter_half_an_hour_from_its_expiry_is_rescued_before_younger_ones(clock: Clock, bench: Workbench) -> None:
    aged(bench, young=600, urgent=30, soon=50)
    assert expiry_rescue.mark_expiring_copies(bench.dlq.pk, limit=1) == 1
    assert custody(bench) == {"young": "held", "urgent": "delete", "soon": "held"}
    assert expiry_rescue.mark_expiring_copies(bench.dlq.pk, limit=10) == 1
    assert custody(bench) == {"young": "held", "urgent": "delete", "soon": "delete"}


def test_a_sweep_deletes_what_expires_and_the_letter_goes_on(clock: Clock, bench: Workbench) -> None:
    aged(bench, urgent=30, young=600)
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert (custody(bench), bench.left()) == ({"urgent": "gone", "young": "held"}, 1)
    bench.replay()
    assert bench.states() == {"urgent": "delivered", "young": "delivered"}
    assert {one["attributes"]["RedriveId"].partition(":")[2] for one in bench.arrivals()} == {"1"}


def test_copies_of_finished_letters_are_not_rescued(clock: Clock, bench: Workbench) -> None:
    aged(bench, done=30)
    bench.replay()
    assert expiry_rescue.mark_expiring_copies(bench.dlq.pk, limit=10) == 0


def test_a_copy_moved_back_by_aws_is_rescued_by_its_own_expiry(clock: Clock, bench: Workbench) -> None:
    aged(bench, moved=30, other=120)
    moved = Letter.objects.get(payload__body=b"moved")
    moved.first_sent_at -= timedelta(days=3)
    moved.expires_at = lanes.database_now() + timedelta(hours=9)  # the copy is a new message
    moved.save(update_fields=["first_sent_at", "expires_at"])
    DlqCopy.objects.filter(letter=moved).update(expires_at=moved.expires_at)
    assert expiry_rescue.mark_expiring_copies(bench.dlq.pk, limit=10) == 0
    other = Letter.objects.get(payload__body=b"other")
    assert dlq_status.expiries(bench.dlq.pk) == {bench.dlq.pk: other.expires_at}


def test_of_more_copies_than_the_limit_those_that_expire_first_are_rescued(clock: Clock, bench: Workbench) -> None:
    aged(bench, third=30, first=10, second=20)
    Letter.objects.filter(payload__body=b"first").update(state="waiting")
    assert expiry_rescue.mark_expiring_copies(bench.dlq.pk, limit=2) == 2
    assert custody(bench) == {"first": "delete", "second": "delete", "third": "held"}


@pytest.mark.soak
@pytest.mark.parametrize("state", ["captured", "waiting", "sending", "awaiting"])
def test_expiring_letters_are_found_without_reading_other_letters(state: str) -> None:
    with nothing_is_vacuumed():
        bench = Workbench()
        _write(bench, LETTERS, state)
        with_statistics()
        with explained() as found:
            assert expiry_rescue.mark_expiring_copies(bench.dlq.pk, limit=1_000) == 1
            first = dlq_status.expiries(bench.dlq.pk)
    left = first[bench.dlq.pk] - lanes.database_now()
    assert timedelta(minutes=110) < left < timedelta(minutes=121)  # of the second letter: the first was rescued
    assert {each.name: each.buffers for each in found if each.buffers > MOST or each.scanned} == {}


@pytest.mark.soak
def test_letters_whose_copies_were_rescued_are_not_read_again() -> None:
    with nothing_is_vacuumed():
        bench = Workbench()
        _write(bench, LETTERS, "captured")
        now = lanes.database_now()
        Letter.objects.exclude(message_id="2").update(expires_at=now)
        DlqCopy.objects.exclude(message_id="2").update(expires_at=now)
        DlqCopy.objects.exclude(message_id__in=["1", "2"]).update(state="gone", gone_at=now)
        with_statistics()
        with explained() as found:
            assert expiry_rescue.mark_expiring_copies(bench.dlq.pk, limit=1_000) == 1
            assert dlq_status.expiries(bench.dlq.pk) == {bench.dlq.pk: Letter.objects.get(message_id="2").expires_at}
    statements = {each.name: each.buffers for each in found if each.name.startswith("store.")}
    assert len(statements) == 2
    assert {name: buffers for name, buffers in statements.items() if buffers > MOST} == {}


def test_a_letter_captured_after_a_rescue_is_rescued_although_it_expires_earlier(
    clock: Clock, bench: Workbench
) -> None:
    aged(bench, first=30)
    assert expiry_rescue.mark_expiring_copies(bench.dlq.pk, limit=10) == 1
    aged(bench, late=10)
    assert expiry_rescue.mark_expiring_copies(bench.dlq.pk, limit=10) == 1
    assert custody(bench) == {"first": "delete", "late": "delete"}


def test_a_captured_copy_expires_when_its_letter_says(bench: Workbench) -> None:
    bench.bury("letter")
    bench.capture()
    assert DlqCopy.objects.get().expires_at == Letter.objects.get().expires_at


def test_one_sweep_rescues_all_copies_that_expire_at_the_same_time(bench: Workbench) -> None:
    _write(bench, 1_200, "captured")
    DlqCopy.objects.update(expires_at=lanes.database_now() + timedelta(minutes=30))
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert DlqCopy.objects.filter(state="held").count() == 0


def _write(bench: Workbench, letters: int, state: str) -> None:
    """Write letters of one key whose copies are held. The first expires in half an hour, letter n in n hours."""
    of_bench = {"dlq": bench.dlq.pk, "source": bench.source.pk, "target": bench.target.pk}
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, {**of_bench, "letters": letters, "state": state})


def test_dlqs_whose_copies_expire_first_are_swept_first(clock: Clock) -> None:
    calm, urgent, soon = Workbench(), Workbench(), Workbench()
    aged(soon, letter=50)
    aged(urgent, letter=30)
    order = expiry_rescue.most_urgent_first([calm.dlq, soon.dlq, urgent.dlq])
    assert [one.pk for one in order] == [urgent.dlq.pk, soon.dlq.pk, calm.dlq.pk]
    assert set(dlq_status.expiries()) == {urgent.dlq.pk, soon.dlq.pk}
