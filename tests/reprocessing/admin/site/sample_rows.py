"""Rows of everything that the admin shows."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from django.contrib.auth.models import Group, User
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule

from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.message.envelope import pack_attributes
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import (
    ApiToken,
    Approval,
    AuditAct,
    AuditEntry,
    BulkAction,
    BulkActionKind,
    GlobalStop,
    HealthCheck,
    Heartbeat,
    Letter,
    ManagedObject,
    ParkingQueueMessage,
    Policy,
    RateClass,
    Report,
    Reporter,
    Run,
    SavedFilter,
    TargetCheck,
    Wave,
)
from reprocessing.models.discovery import DiscoveredQueue, DiscoveredSource, DiscoveryScope
from reprocessing.models.notification import Incident, Notification, NotificationRoute
from reprocessing.store.api.tokens import TokenRequest, make_token
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.routing import rule_changes
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, failure_group, parked


def rows_of_everything() -> None:
    for number in range(3):
        letter = parked(dlq(f"dlq-{number}"), key=f"key-{number}")
        run = Run.objects.create(name=f"run-{number}", dlq=letter.dlq)
        Wave.objects.create(run=run, no=1, size=1)
        ParkingQueueMessage.objects.create(letter=letter, dlq=letter.dlq, parking_event="parked")
        Heartbeat.record(f"queue-{number}")
        operated()
        requested(letter)
        assert letter.source
        failure_group(letter.source, f"KeyError-{number}")
        AuditEntry.objects.create(act=AuditAct.RELEASED, letter=letter, dlq=letter.dlq, by="ann", reason="mended")
        assert letter.target
        TargetCheck.objects.create(target=letter.target, seen_at=database_now())
        HealthCheck.objects.create(target=letter.target, kind="alarm", subject="shop")
        reporter = Reporter.objects.create(name=f"shop-{number}", token_hash=b"%d" % number, added_by="ann")
        Report.objects.create(
            reporter=reporter, public_id=letter.public_id, verdict="failed", type="KeyError", message="'card'",
            happened_at=database_now(), received_at=database_now(), digest=b"%d" % number,
        )  # fmt: skip
        kind = ("breaker_open", "run_stopped", "run_stalled")[number]
        incident = Incident.objects.create(kind=kind, subject=f"run:{number}", facts={})
        route = NotificationRoute.objects.create(destination=f"team-{number}")
        Notification.objects.create(incident=incident, route=route, phase="opened")
        api_token(f"deploy-{number}")
        scope = DiscoveryScope.objects.create(region=f"eu-west-{number}")
        queue = DiscoveredQueue.objects.create(
            arn=f"arn:aws:sqs:eu-west-{number}:111122223333:dlq", scope=scope, last_error="SQS refused it."
        )
        DiscoveredSource.objects.create(dlq_arn=queue.arn, source_arn=f"{queue.arn}-source", kind="queue", scope=scope)
    GlobalStop.objects.create(by="ann", reason="a test")
    RateClass.objects.create(name="slow")
    Policy.objects.create(name="careful")
    ManagedObject.objects.create(kind="policies", name="careful", written={}, applied_by="ann")
    rule_changes.save_rule("bad", {"action": "hold", "conditions": []}, by="ann", reason="a test")


def api_token(name: str = "deploy") -> ApiToken:
    team, _ = Group.objects.get_or_create(name="a team of tokens")
    asked = TokenRequest(name, (Scope.DLQS_READ,), teams=(team,))
    return make_token(asked, by="ann", reason="a test").row


def saved_filter(name: str = "late", owner: str = "their owner", team: Group | None = None) -> SavedFilter:
    user, _ = User.objects.get_or_create(username=owner)
    return SavedFilter.objects.create(name=name, filter=MessageFilter().stored(), owner=user, team=team)


def operated() -> BulkAction:
    bulk_actions.create(uuid4(), BulkActionKind.NOTE, MessageFilter(), {}, by="ann", reason="a note")
    return BulkAction.objects.latest("pk")


def requested(letter: Letter, *, by: str = "ann", title: str = "Discard parked messages") -> Approval:
    """A request to discard a message. It has the bytes of an edit, too, so that every page has something to show."""
    return Approval.objects.create(
        action="discard", title=title, letters=[letter.pk], body=b"{}", attributes=pack_attributes({}), stamp=b"1",
        digest=b"1", dlq_ids=[letter.dlq_id], messages=1, preview=[["Messages", "1"]], by=by, by_key=by, reason=by,
        expires_at=database_now() + timedelta(days=1),
    )  # fmt: skip


def schedules() -> None:
    for schedule in (
        IntervalSchedule(every=1, period="days"), CrontabSchedule(), ClockedSchedule(clocked_time=database_now()),
        SolarSchedule(event="sunset", latitude=1, longitude=1),
    ):  # fmt: skip
        schedule.save()
    PeriodicTask.objects.create(name="a task", task="reprocessing.tick", interval=IntervalSchedule.objects.get())
