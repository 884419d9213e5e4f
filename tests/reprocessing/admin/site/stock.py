"""Rows of everything that the admin shows."""

from __future__ import annotations

from uuid import uuid4

from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule

from reprocessing.domain.parking_lot.message_filter import Sieve
from reprocessing.models import (
    Act,
    Halt,
    HealthCheck,
    LetterGroup,
    Notice,
    Operation,
    OperationAct,
    Pulse,
    RateClass,
    Report,
    Reporter,
    Review,
    Run,
    Sighting,
    Wave,
)
from reprocessing.models.notification import Incident, Notification, NotificationRoute
from reprocessing.store.ordering.lanes import clock
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.routing import rule_changes
from tests.reprocessing.admin.parking_lot.lot import dlq, parked


def rows_of_everything() -> None:
    """Three rows of whatever there is."""
    for number in range(3):
        letter = parked(dlq(f"dlq-{number}"), key=f"key-{number}")
        run = Run.objects.create(name=f"run-{number}", dlq=letter.dlq)
        Wave.objects.create(run=run, no=1, size=1)
        Notice.objects.create(letter=letter, news="parked")
        Pulse.beat(f"queue-{number}")
        operated()
        LetterGroup.objects.create(
            dlq=letter.dlq, fingerprint=b"%d" % number, cause="reported", title=f"KeyError-{number}", first_at=clock(),
            last_at=clock(),
        )  # fmt: skip
        Review.objects.create(act=Act.RELEASED, letter=letter, dlq=letter.dlq, by="ann", reason="mended")
        assert letter.target
        Sighting.objects.create(target=letter.target, seen_at=clock())
        HealthCheck.objects.create(target=letter.target, kind="alarm", subject="shop")
        reporter = Reporter.objects.create(name=f"shop-{number}", token_hash=b"%d" % number, added_by="ann")
        Report.objects.create(
            reporter=reporter, public_id=letter.public_id, verdict="failed", type="KeyError", message="'card'",
            happened_at=clock(), received_at=clock(), digest=b"%d" % number,
        )  # fmt: skip
        kind = ("breaker_open", "run_stopped", "run_stalled")[number]
        incident = Incident.objects.create(kind=kind, subject=f"run:{number}", facts={})
        route = NotificationRoute.objects.create(destination=f"team-{number}")
        Notification.objects.create(incident=incident, route=route, phase="opened")
    Halt.objects.create(by="ann", reason="a test")
    RateClass.objects.create(name="slow")
    rule_changes.put("bad", {"action": "hold", "conditions": []}, by="ann", reason="a test")


def operated() -> Operation:
    """What somebody asked for of all parked letters."""
    bulk_actions.begin(uuid4(), OperationAct.NOTE, Sieve(), {}, by="ann", reason="a note")
    return Operation.objects.latest("pk")


def schedules() -> None:
    """A row of everything that beat's own pages show."""
    for schedule in (
        IntervalSchedule(every=1, period="days"), CrontabSchedule(), ClockedSchedule(clocked_time=clock()),
        SolarSchedule(event="sunset", latitude=1, longitude=1),
    ):  # fmt: skip
        schedule.save()
    PeriodicTask.objects.create(name="a task", task="reprocessing.tick", interval=IntervalSchedule.objects.get())
