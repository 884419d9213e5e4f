"""Two teams with rows of everything. Each text of a team's rows has the team's canary, which shows where it leaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import DatabaseError, connection, models, transaction
from django.test import Client

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import (
    Approval,
    AuditEntry,
    Breaker,
    BulkAction,
    BulkActionKind,
    DeadLetterQueue,
    HealthCheck,
    Incident,
    Letter,
    Notification,
    NotificationRoute,
    ParkingQueueMessage,
    RateClass,
    Report,
    Reporter,
    Revision,
    Rule,
    Run,
    TargetCheck,
    Wave,
)
from reprocessing.models.letter import ParkedLetter
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.rights import roles
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, failure_group, parked
from tests.reprocessing.admin.site.attacks.hostile import _EXAMINED
from tests.reprocessing.admin.site.sample_rows import requested, saved_filter, schedules

OURS, THEIRS = "alphazulu", "bravozulu"
#: What a program reads and people never see, or what it reads again: a canary would break the row, not leak.
_READ = {"DeadLetterQueue": {"depth"}, "BulkAction": {"filter", "arguments"}, "Letter": {"sequence"}}


@dataclass(frozen=True, slots=True)
class Team:
    """A team with one row of each model; `rows` has their ids."""

    group: Group
    canary: str
    dlq: DeadLetterQueue
    letter: Letter
    rows: dict[type[models.Model], Any]

    def examples(self) -> dict[str, Any]:
        """Return a value of this team for each parameter of an address."""
        pk = self.rows
        return {
            "letter": self.letter.pk, "dlq": self.dlq.pk, "lane": self.letter.lane_id, "target": self.letter.target_id,
            "run": pk[Run], "operation": pk[BulkAction], "rule": pk[Rule], "breaker": pk[Breaker],
            "route": pk[NotificationRoute], "mark": 1, "api_token": 1,
            "approval": pk[Approval], "action": "pause", "move": "open", "content_type_id": 1,
            "group": self.letter.group_id,
        }  # fmt: skip


def two_teams() -> tuple[Team, Team]:
    """Return our team and theirs. What both share is there, too: schedules, and rows that belong to no DLQ."""
    schedules()
    found = team(OURS), team(THEIRS)
    roles.update_groups()
    return found


def team(canary: str) -> Team:
    """Return a team whose DLQ has one row of every model of the admin."""
    group = Group.objects.create(name=f"team-{canary}")
    source = dlq(f"dlq-{canary}")
    source.dlq.teams.add(group)
    letter = parked(
        source, key=f"key-{canary}", body=json.dumps({"card": canary}).encode(),
        attributes={canary: Attribute("String", canary)},
    )  # fmt: skip
    letter.group = failure_group(source, f"KeyError-{canary}")
    letter.save()
    rows = dict(_rows(letter, canary))
    for row in rows.values():
        write_canaries(row, canary)
    letter.refresh_from_db()
    return Team(group, canary, letter.dlq, letter, {type(row): row.pk for row in rows.values()})


def _rows(letter: Letter, canary: str) -> Iterator[tuple[str, models.Model]]:
    target, now = letter.target, database_now()
    assert target
    assert letter.source
    rate_class = RateClass.objects.create(name=f"class-{canary}")
    run = Run.objects.create(name=f"run-{canary}", dlq=letter.dlq, state="running", asked_by=canary, reason=canary)
    reporter = Reporter.objects.create(name=f"reporter-{canary}", token_hash=canary.encode(), added_by=canary)
    reporter.targets.add(target)
    incident = Incident.objects.create(kind="run_stopped", subject=f"run:{canary}", dlq=letter.dlq, facts={})
    route = NotificationRoute.objects.create(destination=canary)
    route.dlqs.add(letter.dlq)
    bulk_actions.create(
        uuid4(), BulkActionKind.NOTE, MessageFilter(dlq=letter.dlq_id, key=letter.ordering_key), {}, by=canary,
        reason=canary,
    )  # fmt: skip
    made = (
        letter.dlq, target, letter.source, letter.lane, letter, ParkedLetter.objects.get(pk=letter.pk), letter.group,
        letter.history.get(), rate_class, run, Wave.objects.create(run=run, no=1, size=1),
        ParkingQueueMessage.objects.create(letter=letter, dlq=letter.dlq, parking_event="parked"),
        Breaker.objects.create(target=target, rate_class=rate_class),
        TargetCheck.objects.create(target=target, seen_at=now),
        HealthCheck.objects.create(target=target, kind="alarm", subject=canary), reporter,
        Report.objects.create(
            reporter=reporter, public_id=letter.public_id, verdict="failed", type=canary, message=canary,
            happened_at=now, received_at=now, digest=canary.encode(),
        ), incident, route, Notification.objects.create(incident=incident, route=route, phase="opened"),
        Rule.objects.create(
            name=f"rule-{canary}", dlq=letter.dlq, action="divert", target=target, rate_class=rate_class,
            conditions=[f"tenant equals {canary}"], created_by=canary,
        ), BulkAction.objects.latest("pk"),
        AuditEntry.objects.create(
            act="released", letter=letter, dlq=letter.dlq, by=canary, reason=canary, after={"why": canary}
        ),
        requested(letter, by=canary, title=canary),
        saved_filter(f"filter-{canary}", canary, team=Group.objects.get(name=f"team-{canary}")),
        Revision.objects.create(
            letter=letter, no=1, body=canary.encode(), attributes=b"{}", body_hash=b"1", previous_body_hash=b"2",
            size=9, by=canary, reason=canary,
        ),
    )  # fmt: skip
    yield from ((type(row).__name__, row) for row in made if row is not None)


def write_canaries(row: models.Model, canary: str) -> None:
    """Write the canary into every text of the row that people can read, whatever wrote it."""
    model = type(row)
    examined = _EXAMINED.get(model.__name__, set()) | _READ.get(model.__name__, set())
    for field in () if model._meta.proxy else model._meta.concrete_fields:
        is_text = isinstance(field, models.CharField | models.TextField) and not field.choices
        if is_text and field.name not in examined and canary not in str(getattr(row, field.name) or ""):
            _write(row, field, f"{canary}-{field.name}".replace("_", "-"))


def _write(row: models.Model, field: models.Field[Any, Any], text: str) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")  # no trigger forbids it
            table = row._meta.db_table
            cursor.execute(f'UPDATE "{table}" SET "{field.column}" = %s WHERE id = %s', [text, row.pk])
            cursor.execute("SET LOCAL session_replication_role = DEFAULT")
    except DatabaseError:  # a constraint forbids it: the reason of a stop without a stop, for example
        return


def member(role: str, *teams: Group) -> Client:
    """Somebody with this role in these teams, logged in; errors are answers."""
    user = User.objects.create_user(f"{role} of {len(teams)} teams".replace(" ", "-"), is_staff=True)
    user.groups.set([Group.objects.get(name=role), *teams])
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def scoped_models() -> list[type[models.Model]]:
    """Return our models that have pages."""
    return [model for model in admin.site._registry if model._meta.app_label == "reprocessing"]
