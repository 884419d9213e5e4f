"""Sorting: from what a letter's history, its consumers and its bytes say to the group of its cause."""

from __future__ import annotations

import json

import pytest

from reprocessing.models import DeadLetterQueue, FailureGroup, Letter, Reporter
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.parking_lot import group_failures
from tests.reprocessing.pipeline.bench import Workbench, redriven
from tests.reprocessing.pipeline.benches import captured

pytestmark = pytest.mark.django_db(transaction=True)


def told(bench: Workbench) -> dict[str, tuple[str, str]]:
    """What each letter died of, by its body."""
    group_failures.assign_groups(batches=9)
    found = Letter.objects.filter(dlq=bench.dlq).values_list("payload__body", "group__cause", "group__title")
    return {bytes(body).decode(): (cause, title) for body, cause, title in found}


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
        '{"a": 1}': ("type", "order.paid: JSON with a"),
        '{"a": 2}': ("type", "order.paid: JSON with a"),
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
