"""Sorting: from what a letter's history, its consumers and its bytes say to the group of its cause."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from reprocessing.domain.message.envelope import Attribute, pack_attributes
from reprocessing.models import DeadLetterQueue, FailureGroup, Letter, Payload, Reporter
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.parking_lot import group_failures
from reprocessing.store.parking_lot import failure_groups
from tests.reprocessing.pipeline.bench import Workbench, redriven
from tests.reprocessing.pipeline.benches import captured
from tests.reprocessing.pipeline.parking_lot.webhooks import TYPES, Webhook, webhooks
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)


def told(bench: Workbench) -> dict[str, tuple[str, str]]:
    """What each letter died of, by its body."""
    group_failures.assign_groups(batches=9)
    found = Letter.objects.filter(dlq=bench.dlq).values_list("payload__body", "group__cause", "group__title")
    return {bytes(body).decode(): (cause, title) for body, cause, title in found}


def stored(found: Iterable[Webhook], stock: Stock) -> None:
    """Store messages as a capture would, in one statement a table."""
    hooks = list(found)
    letters = [
        Letter(
            dlq=stock.dlq, message_id=f"webhook-{no}", state="captured", planned=True, body_hash=b"%d" % no, size=9,
            first_sent_at=NOW,
        )
        for no in range(len(hooks))
    ]  # fmt: skip
    Letter.objects.bulk_create(letters)
    Payload.objects.bulk_create(
        [
            Payload(letter=letter, body=hook.body.encode(), attributes=pack_attributes(hook.attributes), system={})
            for letter, hook in zip(letters, hooks, strict=True)
        ]
    )


def grouped(found: Iterable[Webhook], *, batch: int, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The bodies of each group of a new DLQ."""
    stock = Stock()
    Letter.objects.filter(dlq=stock.dlq).update(state="sending")
    stored(found, stock)
    monkeypatch.setattr(group_failures, "BATCH", batch)
    group_failures.assign_groups(batches=1_000)
    groups: dict[int, set[str]] = {}
    its = Letter.objects.filter(dlq=stock.dlq, message_id__startswith="webhook-").select_related("group")
    for letter in its.select_related("payload"):
        assert letter.group
        root = letter.group.merged_into_id or letter.group.pk
        groups.setdefault(root, set()).add(bytes(letter.payload.body).decode())
    return sorted(groups.values(), key=sorted)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_800_webhooks_of_60_types_are_60_groups_though_no_message_says_its_type(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list(webhooks(800, seed=seed))
    assert len(TYPES) == 60
    groups = grouped(found, batch=1_000, monkeypatch=monkeypatch)
    of = {hook.body: hook.type for hook in found}
    assert len(groups) == 60
    assert {len({of[body] for body in group}) for group in groups} == {1}
    backwards = grouped(reversed(found), batch=1_000, monkeypatch=monkeypatch)
    assert backwards == groups


@pytest.mark.soak
def test_webhooks_that_arrive_in_small_batches_are_still_few_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(grouped(webhooks(800, seed=4), batch=50, monkeypatch=monkeypatch)) <= 75


@pytest.mark.soak
def test_webhooks_with_a_type_are_grouped_by_it_and_real_errors_by_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(webhooks(300, seed=5, typed=True))
    failed = [
        Webhook(kind, json.dumps({"n": no}), {"exception_type": Attribute("String", kind)})
        for no, kind in enumerate(["KeyError", "ValueError", "KeyError"])
    ]
    assert len(grouped([*found, *failed], batch=1_000, monkeypatch=monkeypatch)) == 60 + 2
    titles = set(FailureGroup.objects.values_list("title", flat=True))
    assert titles == {hook.type for hook in found} | {"exception_type: KeyError", "exception_type: ValueError"}


def test_a_new_shape_that_joins_a_group_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    stock = Stock()
    Letter.objects.filter(dlq=stock.dlq).update(state="sending")
    told = list[int]()
    monkeypatch.setattr(failure_groups, "announce_groups", lambda groups: told.append(len(groups)))
    bodies = [{"a": 1, "b": 1, "c": 1, "d": 1}, {"a": 1, "b": 1, "c": 1}, {"x": 1, "y": 1, "z": 1}]
    for no, body in enumerate(bodies):
        letter = stock.another_letter(state="captured")
        Payload.objects.filter(letter=letter).delete()
        Payload.objects.create(letter=letter, body=json.dumps(body).encode(), attributes=b"{}", system={})
        assert group_failures.assign_groups(batches=1) == 1, no
    assert told == [1, 0, 1]


def report(**said: str) -> None:
    heard = record_reports.record_json([{"verdict": "failed", **said}], reporter=None, dice=lambda: 0.0)
    assert heard.refused == {}


def test_what_was_captured_is_sorted_by_what_it_is_once_it_has_its_place() -> None:
    bench = Workbench(fields={"message_type": "attribute:kind"})
    bench.bury('{"a": 1}', kind="order.paid")
    bench.bury('{"a": 2}', kind="order.paid")
    bench.bury("{}", exception_type="KeyError")
    assert bench.capture().captured.letters == 3
    assert told(bench) == {
        '{"a": 1}': ("type", "order.paid"),
        '{"a": 2}': ("type", "order.paid"),
        "{}": ("left", "exception_type: KeyError"),
    }
    assert FailureGroup.objects.count() == 2


def test_what_its_target_refused_is_sorted_by_its_answer_once_it_is_parked() -> None:
    bench = captured('{"a": 1}', fields={"max_attempts": 1})
    assert told(bench) == {'{"a": 1}': ("body", "JSON with a")}
    bench.enlist()
    with bench.refusing('{"a": 1}'):
        bench.replay()
    assert told(bench) == {'{"a": 1}': ("answered", "The target refused it: Busy not now")}


def test_what_came_back_without_a_word_keeps_the_cause_it_died_of() -> None:
    bench = Workbench(fields={"max_attempts": 1})
    bench.judge_by_absence(window=0)
    bench.enqueue("{}", error_type="KeyError")
    before = told(bench)
    bench.replay()
    bench.take_back(bench.delivered()[0])
    assert bench.letter().reason == "attempts_spent"
    assert told(bench) == before == {"{}": ("left", "error_type: KeyError")}


def test_what_is_parked_for_want_of_a_key_keeps_the_cause_it_died_of() -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key"})
    bench.bury("{}", ErrorMessage="division by zero")
    bench.capture()
    before = told(bench)
    bench.enlist()
    assert bench.letter().reason == "no_ordering_key"
    assert told(bench) == before == {"{}": ("left", "ErrorMessage: division by zero")}


def test_a_failure_that_is_reported_has_its_letter_sorted_anew() -> None:
    bench = Workbench()
    message = bench.bury("{}")
    bench.capture()
    assert told(bench) == {"{}": ("body", "An empty JSON object")}
    report(message_id=message, type="shop.CardDeclined", message="card 4111", fingerprint="0a1b2c3d")
    assert told(bench) == {"{}": ("reported", "shop.CardDeclined (0a1b2c3d)")}
    report(redrive_id=str(bench.letter().public_id), verdict="retrying", type="KeyError")
    assert told(bench) == {"{}": ("reported", "KeyError")}
    report(message_id=message, verdict="delivered", type="Nothing")
    assert group_failures.assign_groups(batches=1) == 0


def test_a_report_that_was_there_before_the_letter_is_its_cause() -> None:
    bench = Workbench()
    report(message_id=bench.bury("{}"), type="KeyError")
    bench.capture()
    assert told(bench) == {"{}": ("reported", "KeyError")}


def test_what_a_consumer_says_of_an_attempt_is_its_letters_cause() -> None:
    bench = redriven("{}", target_fields={"proof": "acknowledged", "advance": "settled"})
    sent = bench.letter().history.get().sent_message_id
    assert sent
    report(message_id=sent, type="KeyError")
    assert bench.letter().state == "waiting"
    assert told(bench) == {"{}": ("reported", "KeyError")}


def test_what_a_reporter_says_of_other_targets_is_nobodys_cause() -> None:
    bench = Workbench()
    stranger = Reporter.objects.create(name="stranger", token_hash=b"s", added_by="ann")
    said = {"message_id": "a-message", "verdict": "failed", "type": "Lie"}
    assert record_reports.record_json([said], reporter=stranger.pk, dice=lambda: 0.0).accepted == 1
    bench.bury("{}")
    bench.capture()
    Letter.objects.update(message_id="a-message")
    assert told(bench) == {"{}": ("body", "An empty JSON object")}


def test_the_sweep_sorts_what_nobody_else_has() -> None:
    bench = captured(json.dumps({"a": 1}))
    recover.sweep_all(conf=bench.conf)
    assert bench.letter().group == FailureGroup.objects.get(title="JSON with a")


def test_bodies_are_read_by_bounded_bytes_and_every_letter_is_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    for number in range(6):
        bench.bury(json.dumps({f"k{'abcdef'[number]}": "x" * 1000}))
    bench.capture()
    monkeypatch.setattr(group_failures, "BATCH", 4)
    assert group_failures.assign_groups(batches=1) == 4
    assert group_failures.assign_groups(batches=9) == 2
    assert FailureGroup.objects.count() == 6


def test_a_dlq_whose_selector_of_types_cannot_be_read_keeps_no_other_from_being_sorted() -> None:
    counts_as_failure, sound = Workbench(fields={"message_type": "attribute:kind"}), Workbench()
    for bench in (counts_as_failure, sound):
        bench.bury('{"a": 1}', kind="order.paid")
        bench.capture()
    DeadLetterQueue.objects.filter(pk=counts_as_failure.dlq.pk).update(message_type="nonsense:x")
    assert told(counts_as_failure) == {'{"a": 1}': ("body", "JSON with a")}
    assert told(sound) == {'{"a": 1}': ("body", "JSON with a")}
