"""A dlq is examined before it is watched; adding one never acts, and changing one changes only what was said."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import pytest
from django.core.management.base import CommandError
from django_celery_beat.models import IntervalSchedule
from pytest_django.fixtures import Settings

from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.models import Attempt, AuditAct, AuditEntry, Breaker, DeadLetterQueue, Letter, RateClass, Target
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.routing import rules
from tests.contract.endpoints import Sandbox
from tests.contract.queues import Queue, bury, redrive_policy
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import findings, refusal
from tests.reprocessing.commands.refusals import refused as refused_by
from tests.reprocessing.commands.stock import add_lane, add_letter, add_sent, add_source, ago
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

Refused: TypeAlias = Callable[..., str]
Told: TypeAlias = Callable[..., str]
pytestmark = pytest.mark.django_db


class Shop:
    """A dlq, and queues whose messages die into it."""

    def __init__(self, make_queue: MakeQueue, *, fifo: bool = False, sources: int = 1, visibility: int = 30) -> None:
        self.dlq = make_queue(fifo=fifo, MessageRetentionPeriod="1209600")
        policy = redrive_policy(self.dlq, 3)
        self.sources = [
            make_queue(fifo=fifo, RedrivePolicy=policy, VisibilityTimeout=str(visibility)) for _ in range(sources)
        ]


@pytest.fixture
def shop(make_queue: MakeQueue) -> Shop:
    return Shop(make_queue)


def add(ask: Ask, queue: Queue, *arguments: str) -> DeadLetterQueue:
    ask("add_dlq", "orders", "--url", queue.url, *arguments, "--confirm")
    return DeadLetterQueue.objects.get(name="orders")


@pytest.fixture
def refused() -> Refused:
    return lambda *arguments: "\n".join(refused_by("add_dlq", "orders", *arguments))


@pytest.fixture
def told(ask_json: AskJson) -> Told:
    def run(severity: str, *arguments: str) -> str:
        return "\n".join(findings(ask_json("add_dlq", "orders", *arguments), severity))

    return run


def test_a_dry_run_tells_everything_and_writes_nothing(ask: Ask, shop: Shop) -> None:
    said = ask("add_dlq", "orders", "--url", shop.dlq.url)
    assert "This was a dry run: orders is added with --confirm." in said
    assert shop.sources[0].name in said
    assert not DeadLetterQueue.objects.exists()
    assert not Target.objects.exists()


@pytest.mark.parametrize("how", ["it is ours", "a queue of ours dies into it", "it is named as ours dies"])
def test_a_queue_of_the_service_itself_and_its_dlq_are_refused(
    refused: Refused, make_queue: MakeQueue, settings: Settings, how: str
) -> None:
    own, dlq = make_queue(), make_queue()
    if how == "a queue of ours dies into it":
        own.set(RedrivePolicy=redrive_policy(dlq, 3))
    elif how == "it is named as ours dies":
        dlq = Queue(own.client, own.client.create_queue(QueueName=f"{own.name}-dlq")["QueueUrl"])
    settings.REDRIVE = {**settings.REDRIVE, "OWN_QUEUES": (dlq.url if how == "it is ours" else own.url,)}
    assert "one of the service's own queues" in refused("--url", dlq.url)


def test_a_dlq_and_its_source_queue_of_one_name_are_told_apart_and_both_are_written_down(
    ask: Ask, make_queue: MakeQueue
) -> None:
    shop = Shop(make_queue)
    name = shop.sources[0].name
    said = ask("add_dlq", name, "--url", shop.dlq.url, "--confirm").splitlines()
    assert f"  DLQ {name}.url: {shop.dlq.url}" in said
    assert f"  source queue {name}.url: {shop.sources[0].url}" in said
    written = AuditEntry.objects.get().after
    assert (written[f"{name}.url"], written[f"source queue {name}.url"]) == (shop.dlq.url, shop.sources[0].url)


def test_adding_one_remembers_it_and_acts_on_nothing(ask: Ask, shop: Shop) -> None:
    shop.dlq.send()
    row = add(ask, shop.dlq, "--by", "ann", "--reason", "monday's incident")
    assert (row.arn, row.mode, row.retention, row.fifo, row.delete_when, row.give_up_after) == (
        shop.dlq.arn, "manual", 1_209_600, False, "terminal", 24 * 3_600,
    )  # fmt: skip
    assert (row.ordering_key, row.sequence, row.idempotency_key) == ("none", "system:SentTimestamp", "message-id")
    assert shop.dlq.receive_one()["Attributes"]["ApproximateReceiveCount"] == "1"
    assert [(one.act, one.by, one.reason, one.dlq) for one in AuditEntry.objects.all()] == [
        (AuditAct.ADDED, "ann", "monday's incident", row)
    ]
    assert row.depth_visible == 1


def test_the_queues_that_name_it_are_its_sources_and_absence_is_their_outcome(ask: Ask, make_queue: MakeQueue) -> None:
    shop = Shop(make_queue, sources=2)
    row = add(ask, shop.dlq)
    assert row.default_source is None
    targets = Target.objects.filter(sources__dlq=row)
    assert set(targets.values_list("arn", "url")) == {(one.arn, one.url) for one in shop.sources}
    fields = ("proof", "advance", "watched_by", "rate", "burst", "visibility", "window")
    assert set(targets.values_list(*fields)) == {("absence", "accepted", row.pk, 10, None, 30, 30 * (3 + 1))}


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [(("--ordering-key", "attribute:account"), "advance", "settled"), (("--mode", "observe"), "proof", "accepted")],
)
def test_a_key_waits_for_each_outcome_and_observing_proves_none(
    ask: Ask, shop: Shop, arguments: tuple[str, str], field: str, value: str
) -> None:
    add(ask, shop.dlq, *arguments)
    assert getattr(Target.objects.get(), field) == value


def test_a_fifo_dlq_is_ordered_by_its_groups_and_emptied_at_capture(ask: Ask, make_queue: MakeQueue) -> None:
    row = add(ask, Shop(make_queue, fifo=True).dlq)
    assert (row.ordering_key, row.sequence, row.delete_when) == (
        "system:MessageGroupId", "system:SequenceNumber", "captured",
    )  # fmt: skip
    assert Target.objects.values_list("proof", "advance").get() == ("absence", "accepted")


def test_a_source_that_nobody_tells_of_can_be_named(ask: Ask, ask_json: AskJson, make_queue: MakeQueue) -> None:
    dlq, source = make_queue(), make_queue()
    with pytest.raises(CommandError, match="nothing was saved"):
        add(ask, dlq)
    found = ask_json("add_dlq", "orders", "--url", dlq.url, "--source", source.url, "--confirm")
    assert any("has no redrive policy" in one for one in findings(found, "warn"))
    row = DeadLetterQueue.objects.get()
    assert row.default_source is not None
    assert row.default_source.arn == source.arn
    assert (Target.objects.get().proof, Target.objects.get().watched_by) == ("accepted", None)


def test_every_option_is_remembered(ask: Ask, shop: Shop, make_queue: MakeQueue) -> None:
    lot = make_queue()
    row = add(
        ask, shop.dlq, "--ordering-key", "body:order.account", "--sequence", "attribute:n", "--idempotency-key",
        "attribute:event", "--missing-key", "lane", "--max-attempts", "5", "--backoff-base", "1", "--backoff-cap", "9",
        "--jitter", "none", "--new-key-delay", "2.5", "--when-parked", "hold", "--stale", "deliver", "--receive-limit",
        "50", "--parking-url", lot.url, "--at-once", "--every", "7", "--mode", "automatic", "--delete-when", "captured",
        "--outcome", "absence", "--advance", "accepted", "--rate", "off", "--burst", "3", "--window", "12.5",
        "--breaker-threshold", "7", "--breaker-ratio", "0.25", "--breaker-cooldown", "1.5", "--ramp-from", "0.02",
        "--breaker-closes-after", "2", "--ramp-every", "0.5", "--no-waves", "--wave-success", "0.9",
        "--give-up-after", "7200",
    )  # fmt: skip
    of_dlq = {
        "ordering_key": "body:order.account", "sequence": "attribute:n", "idempotency_key": "attribute:event",
        "missing_key": "lane", "max_attempts": 5, "backoff_base": 1, "backoff_cap": 9, "backoff_jitter": "none",
        "new_key_delay": 2.5, "when_parked": "hold", "stale": "deliver", "receive_limit": 50, "parking_url": lot.url,
        "at_once": True, "mode": "automatic", "delete_when": "captured", "waves": False, "wave_success": 0.9,
        "give_up_after": 7_200,
    }  # fmt: skip
    assert DeadLetterQueue.objects.values(*of_dlq).get() == of_dlq
    assert row.interval is not None
    assert row.interval.schedule.run_every.total_seconds() == 7
    of_target = {"proof": "absence", "advance": "accepted", "rate": None, "burst": 3, "window": 12.5}
    assert Target.objects.values(*of_target).get() == of_target
    of_breaker = {
        "threshold": 7, "ratio": 0.25, "cooldown": 1.5, "cooldown_cap": 600, "ramp_from": 0.02, "ramp": 0.02,
        "ramp_every": 0.5, "canaries_to_close": 2,
    }  # fmt: skip
    assert Breaker.objects.values(*of_breaker).get() == of_breaker


def test_where_letters_carry_type_and_tenant_is_remembered_and_has_the_rules_asked_anew(ask: Ask, shop: Shop) -> None:
    row = add(ask, shop.dlq, "--message-type", "body:type", "--tenant", "attribute:tenant")
    assert (row.message_type, row.tenant, rules.version()) == ("body:type", "attribute:tenant", 0)
    ask("add_dlq", "orders", "--tenant", "attribute:customer", "--message-type", "off", "--confirm")
    row.refresh_from_db()
    assert (row.message_type, row.tenant, rules.version()) == ("", "attribute:customer", 1)
    ask("add_dlq", "orders", "--max-attempts", "9", "--confirm")
    assert rules.version() == 1


@pytest.mark.parametrize("selector", ["content-hash", "message-id", "none"])
def test_what_no_two_letters_share_is_no_tenant(selector: str, ask: Ask) -> None:
    with pytest.raises(CommandError, match=f"{selector} is different in every message"):
        ask("add_dlq", "orders", "--url", "http://127.0.0.1:9/0/x", "--tenant", selector)


def test_a_change_of_the_brakes_is_reviewed_and_holds_for_every_class(ask: Ask, ask_json: AskJson, shop: Shop) -> None:
    add(ask, shop.dlq)
    target = Target.objects.get()
    Breaker.objects.create(target=target, rate_class=RateClass.objects.create(name="vip"), threshold=2)
    change = ("--breaker-threshold", "3", "--breaker-cooldown", "900", "--ramp-from", "off")
    name = shop.sources[0].name
    wanted = [
        {"of": name, "field": "breaker_cooldown", "before": 30, "after": 900},
        {"of": name, "field": "breaker_threshold", "before": 5, "after": 3},
        {"of": name, "field": "ramp_from", "before": 0.1, "after": 1},
    ]
    dry = ask_json("add_dlq", "orders", *change)
    assert sorted(dry["changes"], key=lambda one: one["field"]) == wanted
    assert set(Breaker.objects.values_list("threshold", flat=True)) == {2, 5}
    ask("add_dlq", "orders", *change, "--confirm")
    found = Breaker.objects.values_list("threshold", "cooldown", "cooldown_cap", "ramp_from", "ramp", "epoch")
    assert list(found) == [(3, 900, 900, 1, 1, 0)] * 2
    assert AuditEntry.objects.get(act=AuditAct.CHANGED).before[f"{name}.breaker_threshold"] == 5
    assert "nothing to change" in ask("add_dlq", "orders", *change, "--confirm")


@pytest.mark.parametrize(("ramp", "start", "becomes"), [(0.1, "0.05", 0.05), (0.4, "0.05", 0.4), (0.4, "0.6", 0.6)])
def test_a_ramp_that_has_climbed_is_not_put_back(ask: Ask, shop: Shop, ramp: float, start: str, becomes: float) -> None:
    add(ask, shop.dlq)
    Breaker.objects.update(ramp=ramp)
    ask("add_dlq", "orders", "--ramp-from", start, "--confirm")
    assert Breaker.objects.get().ramp == becomes


@pytest.mark.soak
def test_a_change_shows_the_difference_and_changes_only_what_was_said(ask: Ask, ask_json: AskJson, shop: Shop) -> None:
    row = add(ask, shop.dlq, "--max-attempts", "5", "--rate", "2", "--every", "7")
    DeadLetterQueue.objects.update(next_poll_at=database_now())
    change = ("--rate", "3", "--crontab", "*/5 * * * *")
    dry = ask_json("add_dlq", "orders", *change)
    wanted = [
        {"of": "orders", "field": "crontab", "before": None, "after": "*/5 * * * *"},
        {"of": "orders", "field": "interval", "before": 7, "after": None},
        {"of": shop.sources[0].name, "field": "rate", "before": 2, "after": 3},
    ]
    assert sorted(dry["changes"], key=lambda one: one["field"]) == wanted
    assert Target.objects.get().rate == 2
    ask("add_dlq", "orders", *change, "--confirm", "--by", "bob")
    row.refresh_from_db()
    assert (Target.objects.get().rate, row.max_attempts, row.interval) == (3, 5, None)
    assert row.crontab is not None
    assert row.next_poll_at is None
    review = AuditEntry.objects.get(act=AuditAct.CHANGED)
    assert (review.by, review.before[f"{shop.sources[0].name}.rate"]) == ("bob", 2)
    assert "nothing to change" in ask("add_dlq", "orders", *change, "--confirm")
    assert AuditEntry.objects.count() == 2


@pytest.mark.soak
def test_what_the_queues_say_anew_is_remembered_and_a_window_that_a_person_set_stays(ask: Ask, shop: Shop) -> None:
    add(ask, shop.dlq)
    shop.sources[0].set(VisibilityTimeout="60")
    shop.dlq.set(MessageRetentionPeriod="600000")
    ask("add_dlq", "orders", "--confirm")
    assert Target.objects.values_list("visibility", "window").get() == (60, 240)
    assert DeadLetterQueue.objects.get().retention == 600_000
    for window in (1000, 7):
        for change in (("--window", f"{window}"), ("--rate", f"{window}")):
            ask("add_dlq", "orders", *change, "--confirm")
        assert Target.objects.get().window == window


# What cannot be asked.


def test_without_the_right_to_list_sources_one_names_them(
    refused: Refused, told: Told, shop: Shop, sandbox: Sandbox
) -> None:
    sandbox.plan({"kind": "error", "status": 403, "code": "AccessDenied", "action": "ListDeadLetterSourceQueues"})
    assert "without a source, messages have no target" in refused("--url", shop.dlq.url)
    url = ("--url", shop.dlq.url, "--source", shop.sources[0].url)
    assert "Allow sqs:ListDeadLetterSourceQueues" in told("warn", *url)
    assert told("refuse", *url) == ""


WHOLE, NUMBER = "is not a whole number", "is not a number"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--url", "orders-dlq"), "is not the URL of a queue"),
        (("--ordering-key", "account"), "is not a selector. Write system:NAME"),
        (("--ordering-key", "body:a[["), "is not a selector"),
        (("--sequence", "none"), "A sequence is always needed"),
        (("--max-attempts", "0"), f"{WHOLE} of at least 1"),
        (("--max-attempts", "9" * 5000), f"{WHOLE} of at least 1 and at most 2,147,483,647"),
        (("--rate", "0"), f"{NUMBER} of at least 0.001 and at most 1,000,000"),
        (("--rate", "nan"), f"{NUMBER} of at least 0.001"),
        (("--rate", "1e-300"), f"{NUMBER} of at least 0.001"),
        (("--rate", "1000001"), "at most 1,000,000"),
        (("--burst", "1e300"), "at most 1,000,000"),
        (("--burst", "0.5"), f"{NUMBER} of at least 1"),
        (("--window", "1e13"), f"{NUMBER} above 0 and at most 1,209,600"),
        *(
            ((option, value), "at most 1,209,600")
            for option, value in (
                ("--new-key-delay", "1e300"), ("--backoff-base", "inf"), ("--backoff-cap", "1209601"),
                ("--every", "2147483647"), ("--breaker-cooldown", "1209601"),
            )
        ),
        (("--every", "1.5"), WHOLE),
        *(((option, value), WHOLE) for option, value in (
            ("--breaker-threshold", "0"), ("--breaker-threshold", "2.5"), ("--breaker-closes-after", "0"),
        )),
        *(((option, value), NUMBER) for option, value in (
            ("--breaker-ratio", "0"), ("--breaker-ratio", "1.1"), ("--breaker-cooldown", "0"), ("--ramp-every", "0"),
            ("--wave-success", "1.1"), ("--ramp-from", "0"), ("--ramp-from", "2"), ("--ramp-from", "nan"),
            ("--breaker-cooldown", "on"), ("--give-up-after", "0"),
        )),
        (("--crontab", "* * * *"), "is not a schedule"),
        (("--crontab", "0 0 31 2,4 *"), "never occurs, because none of its months has that day"),
        (("--crontab", "61 * * * *"), "is not a schedule"),
        (("--every", "5", "--crontab", "* * * * *"), "not allowed with argument"),
        (("--mode", "auto"), "invalid choice"),
    ],
)  # fmt: skip
def test_what_an_option_cannot_mean_is_said(ask: Ask, shop: Shop, arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=re.escape(sentence)):
        ask("add_dlq", "orders", "--url", shop.dlq.url, *arguments)


@pytest.mark.parametrize("option", ["--url", "--parking-url"])
@pytest.mark.parametrize("nothing", ["", " "])
def test_a_url_of_a_variable_that_is_not_set_is_refused_also_of_a_known_dlq(
    ask: Ask, shop: Shop, option: str, nothing: str
) -> None:
    add(ask, shop.dlq)
    with pytest.raises(CommandError) as refusal:
        ask("add_dlq", "orders", option, nothing, "--confirm")
    assert str(refusal.value) == f"Error: argument {option}: it is empty. Is the shell variable set?"


@pytest.mark.parametrize("name", ["a b", "", "x" * 101, "dlq/1"])
def test_a_name_is_a_plain_word_and_a_new_one_needs_a_url(ask: Ask, shop: Shop, name: str) -> None:
    with pytest.raises(CommandError, match=r"is not valid|longer than 100"):
        ask("add_dlq", name, "--url", shop.dlq.url)
    assert "orders has not been added yet" in refusal("add_dlq", "orders")


# What is refused.


@pytest.mark.soak
def test_what_cannot_work_is_refused(refused: Refused, shop: Shop, make_queue: MakeQueue) -> None:
    fifo = make_queue(fifo=True)
    why = {
        "its own source": ("--source", shop.dlq.url),
        f"{fifo.name} is a FIFO queue, the DLQ is a standard queue": ("--source", fifo.url),
        "no watched DLQ gets failed messages of": ("--outcome", "absence", "--source", make_queue().url),
        "in mode observe": ("--outcome", "absence", "--mode", "observe"),
        f"{shop.dlq.name} cannot be the parking queue": ("--parking-url", shop.dlq.url),
        f"{shop.sources[0].name} cannot be the parking queue": ("--parking-url", shop.sources[0].url),
        "--backoff-cap is below": ("--backoff-base", "9", "--backoff-cap", "1"),
    }
    said = {part: refused("--url", shop.dlq.url, *arguments) for part, arguments in why.items()}
    assert [part for part, text in said.items() if part not in text] == []


def test_a_queue_is_watched_under_one_name(ask: Ask, shop: Shop) -> None:
    add(ask, shop.dlq)
    assert "nothing was saved" in refusal("add_dlq", "mails", "--url", shop.dlq.url, "--confirm")


def test_a_name_keeps_its_queue(ask: Ask, refused: Refused, shop: Shop, make_queue: MakeQueue) -> None:
    add(ask, shop.dlq)
    assert "is the name of" in refused("--url", Shop(make_queue).dlq.url)


def test_letters_that_wait_for_evidence_and_targets_of_others_keep_a_dlq_from_being_only_observed(
    ask: Ask, refused: Refused, shop: Shop, add_row: AddRow
) -> None:
    row = add(ask, shop.dlq)
    add_sent(row.sources.get(), taken_at=ago(seconds=9), deadline=ago(seconds=-9))
    why = refused("--mode", "observe", "--outcome", "accepted")
    assert "1 sent messages wait for captures of orders as evidence" in why
    other = add_source(add_row("mails"), "mail")
    Target.objects.filter(pk=other.target_id).update(watched_by=row)
    assert "cannot prove absence for mail" in refused("--mode", "observe")


@pytest.mark.soak
def test_keys_do_not_change_under_letters_on_their_way(ask: Ask, refused: Refused, shop: Shop) -> None:
    row = add(ask, shop.dlq)
    letter = add_letter(row.sources.get(), LetterState.WAITING)
    assert "ordering_key cannot change while 1 messages are in progress" in refused("--ordering-key", "attribute:a")
    Letter.objects.filter(pk=letter.pk).update(state="discarded", finished_at=database_now())
    add(ask, shop.dlq, "--ordering-key", "attribute:a")


@pytest.mark.parametrize("fifo", [True, False])
def test_copies_do_not_stay_where_they_block_or_are_moved(
    refused: Refused, told: Told, make_queue: MakeQueue, fifo: bool
) -> None:
    shop = Shop(make_queue, fifo=fifo)
    if not fifo:
        shop.dlq.set(RedrivePolicy=redrive_policy(make_queue(), 5))
    assert "Copies cannot stay in the DLQ" in refused("--url", shop.dlq.url, "--delete-when", "terminal")
    assert "Copies are deleted from the DLQ as soon as" in told("note", "--url", shop.dlq.url)


def test_a_native_move_under_way_is_seen(refused: Refused, told: Told, shop: Shop) -> None:
    for number in range(20):
        shop.sources[0].send(str(number))
    bury(shop.sources[0])
    shop.dlq.client.start_message_move_task(SourceArn=shop.dlq.arn, MaxNumberOfMessagesPerSecond=1)
    assert "AWS's own redrive is moving messages" in told("warn", "--url", shop.dlq.url)
    assert "AWS's own redrive is moving messages" in refused("--url", shop.dlq.url, "--mode", "automatic")


@pytest.mark.soak
def test_the_longest_lane_must_be_through_before_its_letters_expire(
    ask: Ask, refused: Refused, told: Told, shop: Shop
) -> None:
    row = add(ask, shop.dlq, "--ordering-key", "attribute:a")  # 120 s a letter
    for _ in range(4):
        add_letter(
            row.sources.get(), LetterState.CAPTURED, planned=True, key_hash=b"k", sequence="1", single=False,
            expires_at=ago(seconds=-470),
        )  # fmt: skip
    assert "takes up to about 8 minutes; SQS deletes the DLQ's first message in about 8 minutes" in told("warn")
    assert "The longest key queue" in refused("--mode", "automatic")
    Letter.objects.update(expires_at=ago(seconds=-490))
    assert "The longest key queue" not in told("warn", "--mode", "automatic")


@pytest.mark.parametrize("more", [(), ("--outcome", "accepted")])
def test_letters_that_wait_for_evidence_keep_the_dlq_that_shows_it(
    ask: Ask, refused: Refused, shop: Shop, more: tuple[str, ...]
) -> None:
    row = add(ask, shop.dlq)
    sent = add_sent(row.sources.get(), taken_at=ago(seconds=9), deadline=ago(seconds=-9))
    shop.sources[0].set(RedrivePolicy="")
    named = ("--source", shop.sources[0].url, *more)
    assert "1 messages sent to" in refused(*named)
    assert Target.objects.get().watched_by == row
    Attempt.objects.filter(pk=sent.pk).update(outcome="absent", closed_at=database_now(), holds_lane=False)
    ask("add_dlq", "orders", "--source", shop.sources[0].url, "--outcome", "accepted", "--confirm")
    assert Target.objects.get().watched_by is None


def test_the_longest_windows_of_queues_end_when_sqs_drops_their_letters(ask: Ask, make_queue: MakeQueue) -> None:
    shop = Shop(make_queue, visibility=43_200)
    shop.sources[0].set(RedrivePolicy=redrive_policy(shop.dlq, 1_000))
    add(ask, shop.dlq)
    assert Target.objects.get().window == 14 * 86_400


def test_a_schedule_longer_than_any_calendar_can_be_mended(ask: Ask, shop: Shop) -> None:
    row = add(ask, shop.dlq)
    DeadLetterQueue.objects.update(interval=IntervalSchedule.objects.create(every=2_147_483_647, period="days"))
    ask("add_dlq", "orders", "--every", "60", "--confirm")
    row.refresh_from_db()
    assert row.interval is not None
    assert row.interval.schedule.run_every.total_seconds() == 60


def test_lanes_held_by_the_old_policy_go_on_under_the_new_one(ask: Ask, shop: Shop) -> None:
    source = add(ask, shop.dlq, "--when-parked", "hold").sources.get()
    lane = add_lane(source, LanePhase.HELD)
    add_letter(source, LetterState.PARKED, lane=lane)
    add_letter(source, LetterState.WAITING, lane=lane)
    for change, phase in ((("--rate", "3"), "held"), (("--when-parked", "aside"), "ready")):
        ask("add_dlq", "orders", *change, "--confirm")
        lane.refresh_from_db()
        assert lane.phase == phase


# What is warned of.


def test_a_source_whose_letters_die_elsewhere_is_warned_of(told: Told, shop: Shop, make_queue: MakeQueue) -> None:
    other = Shop(make_queue)
    said = told("warn", "--url", shop.dlq.url, "--source", other.sources[0].url)
    assert f"come to {other.dlq.arn}, which is not watched" in said


KEYED = ("--ordering-key", "attribute:a")
KMS = {"KmsMasterKeyId": "alias/shop"}


@pytest.mark.parametrize(
    "doubt",  # its severity, what is set of the dlq and of its source, what is asked for, and what is said
    [
        ("warn", {}, {"MessageRetentionPeriod": "1209600"}, (), "SQS counts from the first send,"),
        ("warn", {"RedriveAllowPolicy": '{"redrivePermission": "denyAll"}'}, {}, ("--source", "{url}"),
         "redrive allow policy does not let"),
        ("warn", {}, {}, (*KEYED, "--advance", "accepted"), "is a standard queue"),
        ("warn", {}, {}, (*KEYED, "--outcome", "accepted"), "is a standard queue"),
        ("warn", {}, {}, ("--rate", "off"), "Nothing limits the rate"),
        ("warn", {}, {"VisibilityTimeout": "0"}, (), "visibility timeout of 0"),
        ("warn", {}, {}, ("--idempotency-key", "content-hash"), "even if both were intended"),
        ("note", KMS, {}, (), "{dlq} is encrypted with alias/shop"),
        ("note", {}, KMS, (), "{source} is encrypted with alias/shop"),
        ("note", {}, {"MaximumMessageSize": "2048"}, (), "{source} takes 2,048 bytes at most"),
    ],
)  # fmt: skip
def test_what_is_doubtful_is_said_and_of_what_is_sound_it_is_not(
    told: Told, shop: Shop, doubt: tuple[str, dict[str, str], dict[str, str], tuple[str, ...], str]
) -> None:
    severity, dlq, source, arguments, what = doubt
    (queue,) = shop.sources
    what = what.format(dlq=shop.dlq.name, source=queue.name)
    assert what not in told(severity, "--url", shop.dlq.url, *KEYED)
    for one, attributes in ((shop.dlq, dlq), (queue, source)):
        if attributes:
            one.set(**attributes)
    assert what in told(severity, "--url", shop.dlq.url, *(word.format(url=queue.url) for word in arguments))


def test_what_breaks_the_order_of_a_fifo_queue_is_warned_of(told: Told, make_queue: MakeQueue) -> None:
    fifo = ("--url", Shop(make_queue, fifo=True).dlq.url)
    assert "any order" in told("warn", *fifo, "--ordering-key", "none")
    assert "keeps the order of message groups" in told("warn", *fifo, *KEYED, "--advance", "accepted")


def test_an_alarm_that_capturing_silences_has_its_replacement(told: Told, shop: Shop) -> None:
    assert "no longer fires" in told("note", "--url", shop.dlq.url)
    assert "no longer fires" not in told("note", "--url", shop.dlq.url, "--mode", "observe")


def test_a_dlq_that_is_no_longer_only_observed_is_warned_of_an_outcome_that_nobody_chose(
    ask: Ask, told: Told, shop: Shop
) -> None:
    as_soon = f"A message counts as delivered as soon as {shop.sources[0].name} has accepted it"
    add(ask, shop.dlq, "--mode", "observe")
    assert as_soon not in told("warn", "--rate", "5")
    assert as_soon in told("warn", "--mode", "manual")
    assert as_soon not in told("warn", "--mode", "manual", "--outcome", "absence")
    assert as_soon not in told("warn", "--mode", "manual", "--outcome", "accepted")
    ask("add_dlq", "orders", "--mode", "manual", "--confirm")
    assert as_soon not in told("warn", "--mode", "automatic")
