from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.models import DlqCopy, Letter
from reprocessing.pipeline.maintenance import recover
from reprocessing.store.capture import expiry_rescue
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def aged(bench: Workbench, **minutes_left: float) -> None:
    """Capture letters, each with so many minutes until its copy expires."""
    for body in minutes_left:
        bench.bury(body)
    bench.ready()
    for body, minutes in minutes_left.items():
        (one,) = Letter.objects.filter(dlq=bench.dlq, payload__body=body.encode())
        one.expires_at = lanes.database_now() + timedelta(minutes=minutes)
        one.save(update_fields=["expires_at"])


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


def test_dlqs_whose_copies_expire_first_are_swept_first(clock: Clock) -> None:
    calm, urgent, soon = Workbench(), Workbench(), Workbench()
    aged(soon, letter=50)
    aged(urgent, letter=30)
    order = expiry_rescue.most_urgent_first([calm.dlq, soon.dlq, urgent.dlq])
    assert [one.pk for one in order] == [urgent.dlq.pk, soon.dlq.pk, calm.dlq.pk]
    assert set(dlq_status.expiries()) == {urgent.dlq.pk, soon.dlq.pk}
