"""The doctor finds what is broken, says how it is cured, and says nothing ill of what is sound; it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from typing import Any, TypeAlias

import boto3
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from pytest_django.fixtures import Settings

from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.gateways import aws
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models import DeadLetterQueue, DlqCopy, Heartbeat, Lane, Rule, Run, Target, TaskHints
from reprocessing.pipeline.maintenance.doctor.redis import findings as look_at_rates
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering.lanes import database_now as clock_of_postgres
from reprocessing.store.ordering.stalled_lanes import TICK_TASK
from reprocessing.store.safety import stops
from reprocessing.tasks import CONTROL
from tests.contract.endpoints import Sandbox, control, moto_endpoint
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.commands.stock import add_lane, add_letter, ago
from tests.reprocessing.gateways.aws_endpoint import MakeQueue
from tests.reprocessing.pipeline.bench import Clock

pytestmark = pytest.mark.django_db(transaction=True)

Told: TypeAlias = dict[str, Any]


def doctor(*names: str) -> tuple[list[Told], bool]:
    out = StringIO()
    try:
        call_command("redrive_doctor", *names, "--json", stdout=out)
    except CommandError:
        return list(json.loads(out.getvalue())["findings"]), True
    return list(json.loads(out.getvalue())["findings"]), False


def found(severity: str, *names: str) -> list[tuple[str, str]]:
    return [(one["where"], one["what"]) for one in doctor(*names)[0] if one["severity"] == severity]


def the(severity: str, part: str) -> Told:
    """The one finding of this severity that says so; every one of them has a cure."""
    findings, failed = doctor()
    assert failed == any(one["severity"] == "error" for one in findings)
    (one,) = [one for one in findings if one["severity"] == severity and part in one["what"]]
    assert one["cure"]
    return dict(one)


class Shop:
    """A sound set-up: `orders` is watched, beat and a worker are alive, the service has its own queues."""

    def __init__(self, make_queue: MakeQueue, ask: Ask, settings: Settings) -> None:
        self.dlq = make_queue(MessageRetentionPeriod="1209600")
        self.source = make_queue(RedrivePolicy=redrive_policy(self.dlq, 3))
        ask("add_dlq", "orders", "--url", self.dlq.url, "--mode", "automatic", "--every", "60", "--confirm")
        self.spent = make_queue()
        self.own = make_queue(VisibilityTimeout="900", RedrivePolicy=redrive_policy(self.spent, 5))
        settings.REDRIVE = {**settings.REDRIVE, "OWN_QUEUES": (self.own.url,)}
        PeriodicTask.objects.create(
            name="tick", task=TICK_TASK, last_run_at=ago(seconds=1), interval=IntervalSchedule.objects.create(every=2)
        )
        Heartbeat.record(CONTROL)

    @property
    def row(self) -> DeadLetterQueue:
        return DeadLetterQueue.objects.get(name="orders")

    @property
    def target(self) -> Target:
        return Target.objects.get(arn=self.source.arn)

    def running(self) -> Run:
        return Run.objects.create(
            name="run-1", dlq=self.row, state="running", asked_by="a test", started_at=ago(hours=1)
        )

    def lane(self, phase: LanePhase, **values: object) -> Lane:
        (source,) = self.row.sources.all()
        return add_lane(source, phase, run=self.running(), **values)


def all_silent(**time: float) -> None:
    """Beat has been dead for so long; so no worker took a tick since."""
    PeriodicTask.objects.update(last_run_at=ago(**time))
    Heartbeat.objects.update(consumed_at=ago(**time))


@pytest.fixture
def shop(make_queue: MakeQueue, ask: Ask, settings: Settings) -> Shop:
    return Shop(make_queue, ask, settings)


def refusing(action: str, queue: Queue) -> dict[str, object]:
    denied = {"status": 403, "code": "AccessDenied", "message": "not allowed"}
    return {"kind": "error", "action": action, "queue": queue.name, **denied}


@pytest.mark.soak
def test_a_sound_set_up_is_well_and_nothing_of_it_is_touched(shop: Shop, sandbox: Sandbox) -> None:
    shop.dlq.send()
    before = (DeadLetterQueue.objects.values().get(), Target.objects.values().get())
    control(sandbox.url, "DELETE", "calls")
    findings, failed = doctor()
    warned = [one["what"] for one in findings if one["severity"] in {"error", "warn"}]
    assert (warned, failed) == (["No destination gets notifications."], False)
    calls = control(sandbox.url, "GET", "calls?since=0")["calls"]
    assert [one for one in calls if one["sent"] or one["received"] or one["deleted"]] == []
    assert (DeadLetterQueue.objects.values().get(), Target.objects.values().get()) == before
    assert shop.dlq.receive_one()["Attributes"]["ApproximateReceiveCount"] == "1"


def test_a_person_reads_what_is_well_and_what_is_ill(shop: Shop, ask: Ask) -> None:
    said = ask("redrive_doctor", "orders")
    assert "  ok      its queues, permissions, policies and schedule are correct." in said
    all_silent(hours=1)
    out = StringIO()
    with pytest.raises(CommandError, match=r"^1 error, "):
        call_command("redrive_doctor", "orders", stdout=out)
    assert (
        "  ERROR   beat: It sent its last tick about 60 minutes ago: it does not run, or no beat leads."
        in out.getvalue()
    )


@pytest.mark.parametrize("action", ["ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"])
def test_a_missing_right_on_the_dlq_is_found(shop: Shop, sandbox: Sandbox, action: str) -> None:
    sandbox.plan(refusing(action, shop.dlq))
    right = f"sqs:{action.removesuffix('Batch')}"
    said = the("error", f"SQS refuses {right}: AccessDenied.")
    cure = f"Allow {right} on {shop.dlq.arn} to the role of this process."
    assert (said["where"], said["cure"]) == (shop.dlq.name, cure)


def worker_of_hints_died(shop: Shop) -> None:
    shop.lane(LanePhase.READY, hinted_until=ago(seconds=1))
    TaskHints.objects.create(width=1, lifetime=40)


def nobody_needs_beat(_: Shop) -> None:
    DeadLetterQueue.objects.update(mode="manual")
    PeriodicTask.objects.all().delete()


COUNTS = "SQS counts from the first send,"


#: What is done to a sound set-up; what is said of it: the severity, a part, where, and a part of the cure.
ILLNESSES: dict[str, tuple[Callable[[Shop], object], str, str, str, str]] = {
    "a retention shorter than the source's": (
        lambda shop: shop.dlq.set(MessageRetentionPeriod="86400"), "warn", COUNTS, "orders",
        "Give the DLQ the longest retention, 14 days.",
    ),
    "a source that keeps messages as long as a dlq can": (
        lambda shop: shop.source.set(MessageRetentionPeriod="1209600"), "warn", COUNTS, "orders",
        "shorten the retention of {source}, to 4 days for example; older messages there are deleted at once.",
    ),
    "a window shorter than the way back": (
        lambda shop: shop.source.set(VisibilityTimeout="600"), "error",
        "The window (in seconds) of {source} is stored as 120, but is 2400 now.", "orders",
        "manage.py add_dlq orders",
    ),
    "another region": (
        lambda _: DeadLetterQueue.objects.update(region="eu-west-1"), "error",
        "It is in us-east-1, but stored as in eu-west-1.", "{dlq}", "manage.py add_dlq orders --confirm",
    ),
    "a beat that nobody needs": (
        nobody_needs_beat, "warn", "It has never sent a tick: it does not run, or no beat leads.", "beat", "",
    ),
    "a worker that consumes nothing": (
        lambda _: Heartbeat.objects.update(consumed_at=ago(minutes=3)), "error",
        "No worker has taken a task of redrive-control for about 3 minutes.", "workers", "Restart the workers",
    ),
    "hints that outlived their time": (
        worker_of_hints_died, "error", "but workers did not take the tasks for them in time: 1.",
        "workers of redrive-replay", "",
    ),
    "turns that nobody takes": (
        lambda _: DeadLetterQueue.objects.update(next_poll_at=ago(seconds=1), depth_at=ago(minutes=30)), "error",
        "It should be polled every about 60 seconds, but was not polled for about 30 minutes.", "orders",
        "redrive-capture",
    ),
    "messages that nobody captures while it is stopped": (
        lambda _: DeadLetterQueue.objects.update(stopped_at=ago(hours=1), stopped_by="ann", stop_reason="a test",
                                                 depth_visible=3, depth_at=ago(seconds=1)),
        "warn", "3 of its messages are not captured, because it is stopped.", "orders",
        "manage.py resume_redrive orders --reason WHY --confirm",
    ),
    "a turn that is long past": (
        lambda _: DeadLetterQueue.objects.update(next_poll_at=ago(hours=3)), "error",
        "Its poll was due about 3 hours ago, but no worker did it.", "orders", "",
    ),
    "a lane whose worker died": (
        lambda shop: shop.lane(LanePhase.LEASED, due_at=ago(minutes=5)), "error", "and nobody took over: 1.", "orders",
        "",
    ),
    "a lane that is held by no letter": (
        lambda shop: shop.lane(LanePhase.HELD), "error",
        "Key queues are held, although none of their messages is parked or held by a rule: 1.", "orders", "",
    ),
    "tasks that died": (lambda shop: shop.spent.send(), "error", "Tasks of {own} failed: 1.", "{spent}", ""),
    "the error of the last capture": (
        lambda _: DeadLetterQueue.objects.update(last_error="its queue is gone"), "error",
        "Its last capture failed: its queue is gone", "orders", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("illness", ILLNESSES)
def test_what_is_ill_is_found_and_its_cure_is_told(shop: Shop, illness: str) -> None:
    change, severity, what, where, cure = ILLNESSES[illness]
    names = {name: getattr(shop, name).name for name in ("dlq", "source", "own", "spent")}
    change(shop)
    said = the(severity, what.format(**names))
    assert (said["where"], cure.format(**names) in said["cure"]) == (where.format(**names), True)


GONE, DENIED = "GetQueueAttributes failed: NonExistentQueue", "SQS refuses sqs:SendMessage: AccessDenied."


def parked_in(shop: Shop, queue: Queue) -> None:
    DeadLetterQueue.objects.update(parking_url=queue.url)


def ruled_to(shop: Shop, queue: Queue, *, of: DeadLetterQueue | None = None, **values: object) -> Rule:
    target = Target.objects.create(arn=queue.arn, url=queue.url, region="us-east-1")
    row = {"name": "large", "enabled": True, "action": "divert", "target": target, "dlq": of, "created_by": "ann"}
    return Rule.objects.create(**row | values)


def told_of(queue: Queue) -> list[tuple[str, str]]:
    """What is said of the queue: the severity, and what is the matter as far as SQS names it."""
    findings, failed = doctor()
    its = [one for one in findings if one["where"] == queue.name]
    assert failed == any(one["severity"] == "error" for one in its)
    said = (
        (one["severity"], next((part for part in (GONE, DENIED) if part in one["what"]), one["what"])) for one in its
    )
    return list(said)


@pytest.mark.parametrize("leads", [parked_in, ruled_to])
def test_a_missing_right_to_send_where_letters_go_is_found(
    shop: Shop, make_queue: MakeQueue, sandbox: Sandbox, leads: Callable[[Shop, Queue], object]
) -> None:
    queue = make_queue()
    leads(shop, queue)
    sandbox.plan(refusing("SendMessageBatch", queue), refusing("SendMessageBatch", shop.source))
    assert told_of(queue) == [("error", DENIED)]
    assert ("error", DENIED) in told_of(shop.source)


@pytest.mark.parametrize(
    ("leads", "why", "cure"),
    [
        (
            parked_in,
            "Notices about parked messages",
            'Name another queue, or "off": manage.py add_dlq orders --parking-url URL --confirm',
        ),
        (
            ruled_to,
            "The rule large sends messages there, and they cannot be sent.",
            "manage.py add_rule large --to QUEUE",
        ),
    ],
)
def test_a_queue_that_letters_go_to_and_that_is_gone_is_found(
    shop: Shop, make_queue: MakeQueue, leads: Callable[[Shop, Queue], object], why: str, cure: str
) -> None:
    queue = make_queue()
    leads(shop, queue)
    assert told_of(queue) == []
    queue.client.delete_queue(QueueUrl=queue.url)
    assert told_of(queue) == [("error", GONE)]
    said = the("error", queue.name)
    assert (said["why"].startswith(why), cure in said["cure"]) == (True, True)
    Rule.objects.update(enabled=False)
    DeadLetterQueue.objects.update(parking_url="")
    assert told_of(queue) == []


def test_rules_of_other_dlqs_and_rules_that_have_ended_lead_nowhere(shop: Shop, make_queue: MakeQueue) -> None:
    others, bulk = make_queue(), make_queue()
    stranger = DeadLetterQueue.objects.create(name="others", arn=others.arn, url=others.url, region="us-east-1")
    rule = ruled_to(shop, bulk, of=stranger)
    bulk.client.delete_queue(QueueUrl=bulk.url)
    assert [one for one in doctor("orders")[0] if one["where"] == bulk.name] == []
    Rule.objects.filter(pk=rule.pk).update(dlq=None, valid_until=ago(seconds=1))
    assert [one for one in doctor("orders")[0] if one["where"] == bulk.name] == []


def test_a_parking_queue_that_nobody_may_look_at_is_not_known_to_be_there(
    shop: Shop, make_queue: MakeQueue, sandbox: Sandbox
) -> None:
    lot = make_queue()
    parked_in(shop, lot)
    sandbox.plan(refusing("GetQueueAttributes", lot))
    ((severity, what),) = told_of(lot)
    assert (severity, "GetQueueAttributes failed: AccessDenied" in what) == ("unknown", True)


def test_a_missing_right_to_look_is_found_and_the_other_looks_go_on(shop: Shop, sandbox: Sandbox) -> None:
    sandbox.plan(refusing("GetQueueAttributes", shop.dlq))
    said = the("error", "GetQueueAttributes failed: AccessDenied")
    assert (said["where"], "Allow sqs:GetQueueAttributes" in said["what"]) == ("orders", True)
    assert ("beat", "well") in {(one["where"], one["severity"]) for one in doctor()[0]}


def test_a_source_whose_policy_names_another_dlq_is_found(shop: Shop, make_queue: MakeQueue) -> None:
    another = make_queue()
    shop.source.set(RedrivePolicy=redrive_policy(another, 3))
    assert the(
        "error", f"The outcome absence cannot be proved: no watched DLQ gets failed messages of {shop.source.name}."
    )
    assert the("warn", f"Messages that fail again in {shop.source.name} come to {another.arn}, which is not watched.")


def test_of_a_source_that_is_not_known_yet_one_thing_alone_is_said(shop: Shop, make_queue: MakeQueue) -> None:
    before = {(one["where"], one["what"]) for one in doctor()[0] if one["severity"] in {"error", "warn"}}
    other = make_queue(RedrivePolicy=redrive_policy(shop.dlq, 3))
    findings, failed = doctor()
    after = {(one["where"], one["what"]) for one in findings if one["severity"] in {"error", "warn"}}
    assert after - before == {("orders", f"Messages of {other.arn} fail into it, but that source is not stored.")}
    assert not failed


def test_a_dlq_that_has_got_a_redrive_policy_of_its_own_is_found(shop: Shop, make_queue: MakeQueue) -> None:
    shop.dlq.set(RedrivePolicy=redrive_policy(make_queue(), 4))
    assert the("error", "Copies cannot stay in the DLQ: it has a redrive policy of its own")["where"] == "orders"


def test_a_dead_beat_is_found_and_of_workers_nothing_is_said_to_be_well(shop: Shop) -> None:
    all_silent(minutes=10)
    said = the("error", "It sent its last tick about 10 minutes ago: it does not run, or no beat leads.")
    assert (said["where"], "celery -A redrive_service beat" in said["cure"]) == ("beat", True)
    assert found("unknown")[-2:-1] == [("workers", "Whether they consume is unknown while beat sends nothing.")]


@pytest.mark.parametrize(("ahead", "warned"), [(4, []), (28, ["the clock of beat's host against PostgreSQL's"])])
def test_a_beat_whose_clock_is_a_little_ahead_is_alive(shop: Shop, ahead: float, warned: list[str]) -> None:
    PeriodicTask.objects.update(last_run_at=ago(seconds=-ahead))
    told = [one for one in doctor()[0] if one["check"] == "beat and workers"]
    assert [one["where"] for one in told if one["severity"] == "warn"] == warned
    assert [one["where"] for one in told if one["severity"] == "well"] == ["beat", "workers"]


CLOCK = ("error", "the clock of beat's host against PostgreSQL's")


def test_a_tick_of_the_far_future_proves_no_beat(shop: Shop) -> None:
    PeriodicTask.objects.update(last_run_at=ago(hours=-1))
    told = [(one["severity"], one["where"]) for one in doctor()[0] if one["check"] == "beat and workers"]
    assert told == [CLOCK, ("unknown", "beat"), ("well", "workers")]


def test_a_tick_of_the_far_future_hides_no_silence(shop: Shop) -> None:
    PeriodicTask.objects.update(last_run_at=ago(hours=-1))
    Heartbeat.objects.update(consumed_at=ago(minutes=10))
    said = the("error", "No worker has taken a task of redrive-control for about 10 minutes.")
    assert (said["where"], said["why"]) == (
        "workers", "Nothing is sent. Either beat sends no tasks, or no worker takes them.",
    )  # fmt: skip
    assert said["cure"].startswith("Check that a beat leads (log: redrive.beat).")


def test_a_beat_whose_clock_is_behind_is_not_said_to_be_dead_while_workers_take_its_ticks(shop: Shop) -> None:
    PeriodicTask.objects.update(last_run_at=ago(minutes=20))
    assert ("error", the("error", " s behind.")["where"]) == CLOCK
    told = [(one["severity"], one["where"]) for one in doctor()[0] if one["check"] == "beat and workers"]
    assert told == [CLOCK, ("unknown", "beat"), ("well", "workers")]


def test_a_lane_that_is_due_for_long_is_found_and_one_that_is_held_back_is_not(shop: Shop) -> None:
    shop.lane(LanePhase.READY, due_at=ago(hours=2))
    said = the("error", "and nothing was sent meanwhile. At least: 1.")
    assert (said["where"], "manage.py redrive_status orders" in said["cure"]) == ("orders", True)
    DeadLetterQueue.objects.update(stopped_at=ago(hours=1), stopped_by="ann", stop_reason="an incident")
    assert found("error") == []
    assert the("warn", 'It is stopped by ann: "an incident".')


def test_a_clock_that_moved_is_found(shop: Shop, clock: Clock) -> None:
    clock.advance(600)
    assert the("error", "redrive_now() is +600.0 s from the server's clock.")["where"] == "PostgreSQL"
    assert the("error", " s ahead.")["where"] == "PostgreSQL's clock against this machine's"


def test_own_queues_that_are_not_as_they_have_to_be_are_found(shop: Shop, settings: Settings) -> None:
    shop.own.set(VisibilityTimeout="30", RedrivePolicy="")
    settings.REDRIVE = {**settings.REDRIVE, "OWN_QUEUES": (shop.own.url, f"{shop.own.url}-gone")}
    assert "provision_queues --own" in the("error", "It hides a task for 30 s, not for 900 s.")["cure"]
    assert the("error", "It has no redrive policy.")["where"] == shop.own.name
    assert "provision_queues --own" in the("error", "NonExistentQueue")["cure"]


def test_how_many_tasks_died_is_unknown_where_nobody_may_ask(shop: Shop, sandbox: Sandbox) -> None:
    sandbox.plan(refusing("GetQueueAttributes", shop.spent))
    assert the("unknown", f"{shop.spent.name}: GetQueueAttributes failed: AccessDenied")["where"] == shop.spent.name
    assert found("error") == []


def test_stops_and_holds_are_told_with_what_ends_them(shop: Shop) -> None:
    stops.stop(None, by="ann", reason="an incident")
    assert "resume_redrive --all" in the("warn", "Everything is stopped by ann since")["cure"]
    restore_hold.begin_hold(ago(hours=1), by="bob", reason="a disk died")
    assert "after_restore report" in the("warn", 'Everything is held by bob since a restore: "a disk died".')["cure"]


@pytest.mark.parametrize(("left", "severity"), [(timedelta(minutes=30), "error"), (timedelta(hours=5), "warn")])
def test_a_letter_that_sqs_is_about_to_drop_is_told(shop: Shop, left: timedelta, severity: str) -> None:
    (source,) = shop.row.sources.all()
    at = clock_of_postgres() + left + timedelta(seconds=5)
    letter = add_letter(source, LetterState.CAPTURED, expires_at=at)
    DlqCopy.objects.create(
        dlq=shop.row, message_id=letter.message_id, letter=letter, handle="h", visible_until=at, state="held",
        expires_at=at,
    )  # fmt: skip
    said = the(severity, "SQS deletes its first copy of an unfinished message in")
    assert (said["where"], "manage.py drain_dlq orders --confirm" in said["cure"]) == ("orders", True)


def move_by_aws(shop: Shop) -> None:
    for _ in range(30):  # at one a second: it is under way for as long
        shop.dlq.send()


def test_aws_s_own_move_that_is_under_way_is_told(shop: Shop) -> None:
    move_by_aws(shop)
    shop.dlq.client.start_message_move_task(SourceArn=shop.dlq.arn, MaxNumberOfMessagesPerSecond=1)
    assert the("error", "AWS's own redrive is moving messages out of the DLQ")["where"] == "orders"


def test_aws_s_own_move_that_we_began_is_told_once_with_whole_commands(shop: Shop, ask: Ask) -> None:
    DeadLetterQueue.objects.update(mode="manual")
    move_by_aws(shop)
    ask("native_redrive", "start", "orders", "--per-second", "1", "--reason", "a bulk", "--confirm")
    (said,) = [one for one in doctor()[0] if "AWS" in one["what"] and one["severity"] in {"error", "warn"}]
    assert said["what"].startswith("A redrive by AWS has run since ")
    assert said["cure"].endswith("manage.py native_redrive cancel orders --reason WHY --confirm")


class Saying(Rates):
    def __init__(self, policy: str | None) -> None:
        self.policy = policy

    def eviction_policy(self) -> str | None:
        return self.policy


@pytest.mark.parametrize(("policy", "severity"), [("", "well"), ("allkeys-lru", "warn"), (None, "unknown")])
def test_a_redis_that_drops_what_it_was_given_is_told(policy: str | None, severity: str) -> None:
    assert [one.severity.value for one in look_at_rates(Saying(policy))] == [severity]


def test_what_cloudwatch_does_not_tell_is_unknown_and_never_well(shop: Shop) -> None:
    findings = [one for one in doctor()[0] if one["check"] == "consumers"]
    assert [(one["severity"], one["where"]) for one in findings] == [("unknown", shop.source.name)]


@pytest.mark.soak
def test_consumers_that_fail_are_found_by_what_cloudwatch_has(shop: Shop) -> None:
    counts = {"NumberOfMessagesSent": 10, "NumberOfMessagesReceived": 10, "NumberOfMessagesDeleted": 2}
    of = {
        "Dimensions": [{"Name": "QueueName", "Value": shop.source.name}],
        "Timestamp": clock_of_postgres() - timedelta(minutes=30),
    }
    data: list[Any] = [{"MetricName": name, "Value": value, **of} for name, value in counts.items()]
    with moto_endpoint() as moto, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", moto.url)
        aws.forget_clients()
        boto3.client("cloudwatch", region_name="us-east-1").put_metric_data(Namespace="AWS/SQS", MetricData=data)
        said = the("error", "In the last hour 10 were sent, 10 received, 2 deleted.")
    aws.forget_clients()
    assert (said["where"], said["why"]) == (
        shop.source.name,
        "Its consumers fail: messages that are redriven now fail again.",
    )


@pytest.fixture
def no_postgres() -> Iterator[Callable[[], None]]:
    """Call it, and PostgreSQL is out of reach until the test ends."""
    port = connection.settings_dict["PORT"]

    def cut() -> None:
        connection.close()
        connection.settings_dict["PORT"] = 1

    yield cut
    connection.settings_dict["PORT"] = port
    connection.close()


def test_without_postgresql_the_others_are_looked_at(shop: Shop, no_postgres: Callable[[], None]) -> None:
    no_postgres()
    findings, failed = doctor("orders")
    severities = {one["where"]: one["severity"] for one in findings}
    assert (failed, severities["PostgreSQL"], severities["Redis"], severities[shop.own.name]) == (
        True,
        "error",
        "well",
        "well",
    )
    assert {severities["beat and workers"], severities["key queues"]} == {"unknown"}


def test_without_redis_the_others_are_looked_at(shop: Shop, settings: Settings) -> None:
    from reprocessing.gateways.redis import shared_clients  # noqa: PLC0415  its cache is emptied for this test alone

    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    shared_clients.send_rates.cache_clear()
    try:
        findings, failed = doctor()
    finally:
        shared_clients.send_rates.cache_clear()
    severities = {one["where"]: one["severity"] for one in findings}
    assert (failed, severities["Redis"], severities["beat"], severities["orders"]) == (True, "error", "well", "well")


def test_a_name_that_no_dlq_has_is_refused_in_a_sentence(shop: Shop) -> None:
    with pytest.raises(CommandError, match=r'^No DLQ is named "order"\. There are: orders\.$'):
        call_command("redrive_doctor", "order")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("AWS_PROFILE", "nobody"), ("AWS_ENDPOINT_URL_SQS", "nonsense"), ("AWS_CONFIG_FILE", __file__)],
)
def test_an_aws_configuration_that_cannot_be_used_is_an_illness_with_its_cure(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    aws.forget_clients()
    try:
        findings, failed = doctor()
    finally:
        monkeypatch.undo()
        aws.forget_clients()
    told = {
        one["check"]
        for one in findings
        if one["severity"] == "error" and "No client of AWS can be made: " in one["what"]
    }
    assert (failed, told) == (True, {"the service's own queues", "orders"})
    assert [one["what"] for one in findings if "The check itself failed" in one["what"]] == []


def test_a_look_that_fails_by_itself_is_an_illness(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> Iterator[object]:
        raise LookupError

    monkeypatch.setattr("reprocessing.pipeline.maintenance.doctor.stalled_lanes.findings", failing)
    assert the("error", "The check itself failed: LookupError.")["where"] == "key queues"
