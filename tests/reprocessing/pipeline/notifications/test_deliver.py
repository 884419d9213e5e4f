"""Notifications are received by real servers: grouped, limited, sent once, and without delaying messages."""

from __future__ import annotations

import base64
import logging
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
from django.db import transaction

from reprocessing import conf
from reprocessing.conf import Conf
from reprocessing.domain.notifications.delivery import Failed, Sent
from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.targets import webhook_signature
from reprocessing.models import Incident, Notification, NotificationRoute
from reprocessing.pipeline import notifications
from reprocessing.store.notifications import incident_retention, notification_writer, sending
from reprocessing.store.notifications.outbox import RESUME_WITHIN, SETTLING_SECONDS, announce, conclude
from reprocessing.store.notifications.sending import LeasedDestination, PendingText
from reprocessing.store.ordering import lanes
from tests.conditions import eventually
from tests.race.abreast import elsewhere
from tests.reprocessing.domain.notifications.events import event
from tests.reprocessing.gateways.aws_stand_in import amazon
from tests.reprocessing.pipeline.bench import Clock, redriven
from tests.reprocessing.pipeline.notifications.receivers import body, headers, mail, posts, said
from tests.reprocessing.store.stock import Stock
from tests.reprocessing.web_servers import Script, Server, serving, silent

pytestmark = pytest.mark.django_db(transaction=True)

KEY = b"a-key-of-more-than-24-bytes-for-tests"
SECRETS = {"hooks": f"whsec_{base64.b64encode(KEY).decode()}"}
NEW_GROUP, BREAKER, STOPPED = EventKind.FAILURE_GROUP_NEW, EventKind.BREAKER_OPEN, EventKind.RUN_STOPPED
HOUR, DAY = 3_600, 86_400


def view(**urls: str) -> Conf:
    return conf.read_settings({
        "SECRETS": SECRETS, "DESTINATIONS": urls, "PLACE": "production", "PUBLIC_URL": "https://redrive.example.com",
    })  # fmt: skip


def hook(server: Server) -> str:
    return f"webhook+http://127.0.0.1:{server.port}/redrive#secret=hooks"


def route(name: str = "ops", *kinds: EventKind) -> NotificationRoute:
    return NotificationRoute.objects.create(destination=name, kinds=[kind.value for kind in kinds])


def happen(clock: Clock, *events: Event) -> None:
    """Announce events, and let the time pass after which they are sent."""
    announce(list(events))
    clock.advance(SETTLING_SECONDS)


def stages(webhook: Server) -> list[str]:
    return [said(post)["events"][0]["stage"] for post in webhook.asked]


@pytest.fixture
def webhook() -> Iterator[Server]:
    with serving(posts()) as server:
        yield server


@pytest.fixture
def ops(webhook: Server) -> Conf:
    """All events go to the destination "ops", which is the webhook."""
    route()
    return view(ops=hook(webhook))


def nobody() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_a_webhook_is_sent_signed_json(clock: Clock, webhook: Server, ops: Conf) -> None:
    happen(clock, event(BREAKER, "breaker:7", breaker_id=7, target="orders"))
    assert notifications.deliver(ops) == 1
    (post,) = webhook.asked
    head, found = headers(post), said(post)
    signed = webhook_signature.headers(
        KEY, message_id=head["webhook-id"], body=body(post),
        now=datetime.fromtimestamp(int(head["webhook-timestamp"]), UTC),
    )  # fmt: skip
    assert dict(signed)["webhook-signature"] == head["webhook-signature"]
    assert found["title"] == "[production] Circuit breaker open: orders"
    assert found["link"] == "https://redrive.example.com/admin/reprocessing/breaker/7/change/"
    (told,) = found["events"]
    assert (told["kind"], told["stage"], told["count"]) == ("breaker_open", "opened", 1)
    assert told["incidents"][0]["subject"] == "breaker:7"


@pytest.mark.soak
def test_mail_arrives_at_an_smtp_server_and_a_topic_is_published_to(clock: Clock) -> None:
    with serving(mail) as server, amazon() as aws:
        topic, queue = aws.topic(), aws.queue()
        aws.subscribe(topic, queue, raw=False)
        route("mail")
        route("topic")
        happen(clock, event(STOPPED, "run:7", run="nightly"))
        to = f"mailto://user:hunter2@127.0.0.1:{server.port}/?from=redrive@example.com&to=ops@example.com"
        assert notifications.deliver(view(mail=to, topic=f"sns:{topic}")) == 2
        (sent,) = server.asked
        assert b"Subject: [production] Run paused: nightly, DLQ the-dlq" in sent
        assert b"resume_run nightly --reason WHY --confirm" in sent.replace(b"=\r\n", b"")
        (message,) = aws.heard(queue)
        assert "[production] Run paused: nightly" in message["Body"]
        assert "resume_run nightly --reason WHY --confirm" in message["Body"]


def test_an_incident_is_sent_once_and_its_end_once(clock: Clock, webhook: Server, ops: Conf) -> None:
    happen(clock, event(BREAKER, "breaker:7"))
    assert [notifications.deliver(ops), notifications.deliver(ops)] == [1, 0]
    conclude([(BREAKER, "breaker:7")])
    clock.advance(HOUR)
    assert [notifications.deliver(ops), notifications.deliver(ops)] == [1, 0]
    assert stages(webhook) == ["opened", "ended"]
    assert not notifications.is_due(ops)


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "gap"), [(NEW_GROUP, 61), (BREAKER, 11)], ids=["ordinary", "urgent"])
def test_twenty_texts_an_hour_and_the_rest_in_one(
    clock: Clock, webhook: Server, ops: Conf, kind: EventKind, gap: int
) -> None:
    for number in range(40):
        announce([event(kind, f"subject:{number}")])
        clock.advance(gap)
        notifications.deliver(ops)
    assert len(webhook.asked) == 20
    clock.advance(HOUR)
    notifications.deliver(ops)
    counts = [said(post)["events"][0]["count"] for post in webhook.asked]
    assert counts == [1] * 20 + [20]


def test_an_urgent_event_goes_ten_seconds_after_a_text_and_others_wait_for_a_minute(
    clock: Clock, webhook: Server, ops: Conf
) -> None:
    def after(seconds: float) -> int:
        clock.advance(seconds)
        return notifications.deliver(ops)

    announce([event(NEW_GROUP, "group:1")])
    assert after(SETTLING_SECONDS) == 1
    announce([event(NEW_GROUP, "group:2"), event(EventKind.DLQ_GROWING, "dlq:1")])
    assert [after(SETTLING_SECONDS), after(20)] == [0, 0]
    announce([event(BREAKER, "breaker:7")])
    assert (notifications.is_due(ops), after(SETTLING_SECONDS)) == (False, 1)
    kinds = [told["kind"] for told in said(webhook.asked[-1])["events"]]
    assert kinds == ["breaker_open", "dlq_growing", "failure_group_new"]
    announce([event(STOPPED, "run:7")])
    Incident.objects.filter(kind=STOPPED).update(due_at=lanes.database_now())
    assert [after(8), after(3)] == [0, 1]
    conclude([(STOPPED, "run:7")])
    assert [after(30), after(31)] == [0, 1]  # an end can wait


def test_a_condition_that_lasts_is_sent_again_once_a_day(clock: Clock, webhook: Server, ops: Conf) -> None:
    happen(clock, event(STOPPED, "run:7"))
    for _ in range(50):  # two days
        notifications.deliver(ops)
        clock.advance(HOUR)
    assert stages(webhook) == ["opened", "reminded", "reminded"]


def test_events_go_where_their_route_says(clock: Clock, webhook: Server) -> None:
    ours, theirs = Stock(), Stock()
    route("none", EventKind.BEAT_SILENT)
    route("ops").dlqs.add(ours.dlq)
    announce([
        event(NEW_GROUP, "group:1", dlq_id=ours.dlq.pk), event(NEW_GROUP, "group:2", dlq_id=theirs.dlq.pk),
        event(BREAKER, "breaker:7"),
    ])  # fmt: skip
    clock.advance(SETTLING_SECONDS)
    notifications.deliver(view(ops=hook(webhook)))
    found = Notification.objects.values_list("route__destination", "incident__subject")
    assert list(found) == [("ops", "group:1")]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (silent, "it did not answer, or broke the connection"),
        (posts(b"500 Oh no"), "it answered 500"),
        (None, "it could not be reached: no connection, no address, or an invalid certificate"),
    ],
    ids=["hangs", "answers 500", "is gone"],
)
def test_a_destination_that_fails_is_retried_and_does_not_delay_the_others(
    clock: Clock, webhook: Server, caplog: pytest.LogCaptureFixture, script: Script | None, why: str
) -> None:
    with serving(script or silent) as bad:
        bad.port = bad.port if script else nobody()
        route("bad")
        route("good")
        happen(clock, event(BREAKER, "breaker:7"))
        to = view(bad=hook(bad), good=hook(webhook))
        with caplog.at_level(logging.WARNING):
            assert notifications.deliver(to, seconds=0.5) == 1
    row = NotificationRoute.objects.get(destination="bad")
    assert (row.failures, row.last_error, row.leased_until) == (1, why, None)
    assert len(webhook.asked) == 1
    assert f"Sending to the destination bad failed: {why}. It is retried." in caplog.text
    assert "redrive#" not in caplog.text
    clock.advance(31)
    assert sending.is_due(["bad"])


def test_a_destination_that_hangs_takes_no_slot_of_a_worker_and_delays_no_letter(clock: Clock) -> None:
    with serving(silent) as bad:
        route("bad")
        happen(clock, event(BREAKER, "breaker:7"))
        assert notifications.start_delivery(view(bad=hook(bad)))
        eventually(lambda: NotificationRoute.objects.get().leased_until, within=20)
        assert not notifications.start_delivery(view(bad=hook(bad)))  # one turn at a time
        assert redriven("a").states() == {"a": "delivered"}
        assert not notifications.wait_for_delivery(0)  # it hangs still
    assert notifications.wait_for_delivery(60)


def test_what_could_not_be_sent_for_a_day_is_given_up(clock: Clock) -> None:
    route("away")
    happen(clock, event(NEW_GROUP, "group:1"))
    notifications.deliver(view())
    clock.advance(DAY)
    notifications.deliver(view())
    assert Notification.objects.get().given_up_at is not None


def test_a_text_marks_what_it_tells_and_not_what_was_filed_before_it_and_committed_after(clock: Clock) -> None:
    route()
    happen(clock, event(NEW_GROUP, "group:1"))

    def second() -> tuple[LeasedDestination, PendingText]:
        announce([event(NEW_GROUP, "group:2")])
        Incident.objects.filter(subject="group:2").update(due_at=lanes.database_now())
        notification_writer.file_notifications()
        (claimed,) = sending.lease_destinations(["ops"], limit=8)
        owed = sending.pending_text(claimed.route_id)
        assert owed is not None
        return claimed, owed

    with elsewhere() as begin, transaction.atomic():
        notification_writer.file_notifications()  # has the lower id, and commits while the other text is sent
        claimed, owed = begin(second).result(30)
    assert [told.subject for section in owed.sections for told in section.examples] == ["group:2"]
    sending.record_result(claimed, owed.ids, Sent(), lanes.database_now())
    assert list(Notification.objects.filter(sent_at=None).values_list("incident__subject", flat=True)) == ["group:1"]


def test_the_same_notifications_again_are_the_same_message_and_others_are_another(clock: Clock) -> None:
    route()
    happen(clock, event(NEW_GROUP, "group:1"))
    notification_writer.file_notifications()
    row = NotificationRoute.objects.get().pk
    keys = [owed.key for _ in range(2) if (owed := sending.pending_text(row))]
    happen(clock, event(NEW_GROUP, "group:2"))
    notification_writer.file_notifications()
    more = sending.pending_text(row)
    assert more is not None
    assert (keys[0] == keys[1], more.key in keys) == (True, False)


def test_two_senders_at_the_same_time_never_take_the_same_destination(clock: Clock, webhook: Server, ops: Conf) -> None:
    happen(clock, event(BREAKER, "breaker:7"))
    notifications.deliver(view())  # written down; nobody is there to be told
    (first,), second = sending.lease_destinations(["ops"], limit=8), sending.lease_destinations(["ops"], limit=8)
    assert second == []
    clock.advance(61)  # the first one died
    assert notifications.deliver(ops) == 1
    sending.record_result(first, (), Failed("too late"), lanes.database_now())  # or did not: what it says is stale
    assert NotificationRoute.objects.get().failures == 0


def test_an_incident_that_ended_before_it_could_be_sent_is_sent_once_as_ended(
    clock: Clock, webhook: Server, ops: Conf
) -> None:
    happen(clock, event(BREAKER, "breaker:7"))
    notifications.deliver(view())
    conclude([(BREAKER, "breaker:7")])
    clock.advance(RESUME_WITHIN)
    assert notifications.deliver(ops) == 1
    assert stages(webhook) == ["ended"]


def test_old_incidents_are_forgotten_and_open_ones_kept(clock: Clock, webhook: Server, ops: Conf) -> None:
    happen(clock, event(NEW_GROUP, "group:1"), event(BREAKER, "breaker:7"))
    notifications.deliver(ops)
    clock.advance(90 * DAY)
    assert incident_retention.delete_incidents(history=timedelta(days=89).total_seconds(), limit=10) == 1
    assert list(Incident.objects.values_list("kind", flat=True)) == [BREAKER.value]


def test_a_test_notification_is_sent_at_once_and_nothing_is_stored(webhook: Server) -> None:
    to = view(ops=hook(webhook))
    assert notifications.send_trial(to, "ops") == Sent()
    assert said(webhook.asked[0])["title"] == "[production] Test notification"
    with serving(silent) as bad:
        assert isinstance(notifications.send_trial(view(ops=hook(bad)), "ops", seconds=0.3), Failed)
    assert not Incident.objects.exists()


def test_what_a_library_says_when_it_fails_is_not_told(
    webhook: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("reprocessing.pipeline.notifications.send.Posts", Mock(side_effect=RuntimeError(hook(webhook))))
    assert notifications.send_trial(view(ops=hook(webhook)), "ops") == Failed("sending failed: RuntimeError")
    assert "secret=" not in caplog.text
