"""Who is told of what: set, listed, tried and removed by a named person; no URL is ever shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from reprocessing.conf import read_settings
from reprocessing.domain.maintenance.findings import FindingSeverity
from reprocessing.domain.notifications.event import EventKind
from reprocessing.models import AuditEntry, NotificationRoute
from reprocessing.pipeline.maintenance.doctor import notifications
from tests.reprocessing.pipeline.notifications.receivers import posts, said
from tests.reprocessing.store.stock import Stock
from tests.reprocessing.web_servers import Server, serving, silent

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "a-key-of-more-than-24-bytes-for-tests"
PERSON = {"by": "anna", "reason": "on call"}


@pytest.fixture
def hooks(settings: Settings) -> Iterator[Server]:
    """The destinations ops, which takes texts, bad, which answers 500, and slow, which does not answer."""
    with serving(posts()) as server, serving(posts(b"500 Oh no")) as bad, serving(silent) as slow:
        urls = {
            name: f"webhook+http://127.0.0.1:{one.port}/hunter2#secret=hooks"
            for name, one in (("ops", server), ("bad", bad), ("slow", slow))
        }
        settings.REDRIVE = {"SECRETS": {"hooks": KEY}, "DESTINATIONS": urls}
        yield server


def run(command: str, *args: str, **options: Any) -> str:  # noqa: ANN401
    out = StringIO()
    call_command(command, *args, stdout=out, **options)
    assert "hunter2" not in out.getvalue()
    return out.getvalue()


def test_a_dry_run_sets_nothing_and_what_is_set_already_is_not_set_again(hooks: Server) -> None:
    assert run("set_notification", "ops") == (
        "ops: all events, for all DLQs and the service itself\n"
        "This was a dry run. To save it, add --confirm.\n"
    )  # fmt: skip
    assert not NotificationRoute.objects.exists()
    run("set_notification", "ops", **PERSON, confirm=True)
    assert run("set_notification", "ops", **PERSON, confirm=True).endswith("nothing to change.\n")
    assert AuditEntry.objects.count() == 1


def test_what_is_set_is_written_with_who_and_why(hooks: Server) -> None:
    dlq = Stock().dlq.name
    run("set_notification", "ops", **PERSON, confirm=True)
    told = run("set_notification", "ops", events=["run_stopped,breaker_open"], dlq=[dlq], **PERSON, confirm=True)
    assert told == (
        f"ops: breaker_open, run_stopped, for DLQ {dlq}\n"
        "Before: ops: all events, for all DLQs and the service itself\n"
        "Saved. Test it: manage.py test_notification ops\n"
    )
    first, second = AuditEntry.objects.order_by("id")
    assert (first.act, first.by, first.reason, first.before) == ("added", "anna", "on call", {})
    assert (second.act, second.before, second.after) == (
        "changed",
        {"notifications": "ops", "events": "all", "dlqs": "all"},
        {"notifications": "ops", "events": ["breaker_open", "run_stopped"], "dlqs": [dlq]},
    )


@pytest.mark.parametrize(
    ("args", "options", "why"),
    [
        (("Ops",), {}, 'No destination can be named "Ops"'),
        (("ops",), {"dlq": ["nope"]}, 'No DLQ is named "nope"'),
        *[(("ops",), {"events": [said]}, "No event is named. Type --events all ") for said in ("", " ", ",", " , ")],
        (("ops",), {"events": ["all,run_stopped"]}, "Type --events all, or --events run_stopped"),
        (("ops",), {"events": ["run_stopped", "all", "breaker_open"]}, "or --events breaker_open run_stopped"),
        (("ops",), {"events": ["nope"]}, "There is no event nope. There are: all, breaker_open, "),
    ],
)
def test_what_cannot_be_set_is_refused(hooks: Server, args: tuple[str], options: dict[str, Any], why: str) -> None:
    NotificationRoute.objects.create(destination="ops", kinds=["run_stopped"])
    with pytest.raises(CommandError) as refused:
        run("set_notification", *args, **options, confirm=True)
    assert why in str(refused.value)
    assert NotificationRoute.objects.get().kinds == ["run_stopped"]


def test_a_destination_without_a_url_is_told_by_the_commands_and_the_doctor(hooks: Server) -> None:
    lacks = (
        "This process has no URL for team-a, so nothing can be sent there. It has: bad, ops, slow. "
        "Set REDRIVE_NOTIFY_TEAM_A for workers and commands."
    )
    assert lacks in run("set_notification", "team-a", confirm=True)
    assert lacks in run("list_notifications")
    (finding,) = notifications.findings(read_settings({}))
    assert (finding.severity, finding.where) == (FindingSeverity.ERROR, "team-a")
    assert finding.cure == "Set REDRIVE_NOTIFY_TEAM_A for workers and commands."
    with pytest.raises(CommandError, match="Nothing was sent"):
        run("test_notification", "team-a")


def test_the_list_says_who_is_told_of_what_and_what_went_wrong(hooks: Server) -> None:
    run("set_notification", "ops", events=["beat_silent"], confirm=True)
    NotificationRoute.objects.update(failures=3, last_error="it answered 500")
    told = run("list_notifications")
    assert "ops          a signed webhook  beat_silent  all, and the service  never\n" in told
    assert "ops: failed attempts in a row: 3. Reason: it answered 500. Next attempt: " in told
    assert "bad: has a URL, but gets no events. To add them: manage.py set_notification bad --confirm\n" in told
    assert "No destination gets these events for all DLQs: breaker_open, " in told
    (found,) = json.loads(run("list_notifications", json=True))["destinations"]
    assert (found["destination"], found["events"], found["failures"]) == ("ops", ["beat_silent"], 3)


def test_what_is_removed_is_told_nothing_more(hooks: Server) -> None:
    run("set_notification", "ops", **PERSON, confirm=True)
    assert run("remove_notification", "ops", **PERSON).endswith("This was a dry run. To remove it, add --confirm.\n")
    assert run("remove_notification", "ops", **PERSON, confirm=True) == "Nothing more is sent to ops.\n"
    assert not NotificationRoute.objects.exists()
    assert AuditEntry.objects.order_by("-id")[0].after == {"notifications": "ops", "removed": True}
    with pytest.raises(CommandError, match="Nothing is sent to any destination yet"):
        run("remove_notification", "ops", **PERSON)


def test_a_test_sends_one_text_and_says_that_it_was_taken(hooks: Server) -> None:
    told = run("test_notification", "ops")
    assert told.endswith("ops accepted it. Check that it has arrived.\n")
    assert said(hooks.asked[0])["title"] == "Test notification"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "why"), [("bad", "it answered 500"), ("slow", "it did not answer, or broke the connection")]
)
def test_a_test_says_why_a_destination_was_not_told(hooks: Server, name: str, why: str) -> None:
    with pytest.raises(CommandError) as refused:
        run("test_notification", name, timeout=1)
    assert str(refused.value).startswith(f"The test could not be sent to {name}: {why}.")


@pytest.mark.soak
def test_a_url_that_apprise_cannot_read_is_told_by_the_doctor(settings: Settings) -> None:
    NotificationRoute.objects.create(destination="chat")
    (finding,) = notifications.findings(read_settings({"DESTINATIONS": {"chat": "slack://hunter2"}}))
    assert (finding.severity, finding.what) == (FindingSeverity.ERROR, "Apprise cannot read its URL.")


def test_the_doctor_says_that_nobody_is_told_what_fails_and_what_reaches_nobody() -> None:
    (nobody,) = notifications.findings(read_settings({}))
    assert nobody.what == "No destination gets notifications."
    NotificationRoute.objects.create(
        destination="topic", failures=2, last_error="SNS did not answer", kinds=[EventKind.BEAT_SILENT.value]
    )
    failing, unheard = notifications.findings(
        read_settings({"DESTINATIONS": {"topic": "sns:arn:aws:sns:eu-west-1:000000000000:t"}})
    )
    assert (failing.severity, failing.what) == (
        FindingSeverity.WARN,
        "Failed attempts in a row: 2. Reason: SNS did not answer.",
    )
    assert unheard.what.startswith("No destination gets these events for all DLQs: breaker_open, ")


def test_the_policy_allows_to_publish_to_the_topics_that_people_are_told_by(settings: Settings) -> None:
    topic = "arn:aws:sns:eu-west-1:000000000000:alerts"
    settings.REDRIVE = {"DESTINATIONS": {"topic": f"sns:{topic}"}}
    (statement,) = json.loads(run("iam_policy", "--mode", "manual"))["Statement"]
    assert (statement["Action"], statement["Resource"]) == (["sns:Publish"], [topic])
