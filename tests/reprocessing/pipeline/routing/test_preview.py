"""A preview counts the letters that a rule would get, and changes nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.models import Letter, Payload, Rule
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.routing import preview
from reprocessing.pipeline.routing.preview import RulePreview
from reprocessing.pipeline.runs import plan
from reprocessing.store.ordering import lanes
from reprocessing.store.routing import routable_letters, rule_changes, rules
from reprocessing.store.routing.rules import BoundRule
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.rulings import BY_KEY, rule

pytestmark = pytest.mark.django_db(transaction=True)


def _as_if(row: Rule) -> list[BoundRule]:
    return [*(bound for bound in rules.in_force().rules if bound.rule.id != row.pk), rules.bind(row)]


def _look(row: Rule, *, days: int = 7, dlq: int | None = None) -> RulePreview:
    found = preview.letters(_as_if(row), since=lanes.database_now() - timedelta(days=days), dlq=dlq, focus=row.pk)
    return found.shares[0]


def test_only_letters_sent_before_the_rule_was_enabled_escape_it() -> None:
    bench = Workbench(fields={"tenant": "attribute:tenant"})
    ids = {bench.bury(f"bad-{number}", tenant="acme") for number in range(4)}
    run = bench.ready()
    bad = rule("bad", "quarantine", "tenant equals acme", enabled=False)
    seen = _look(bad)
    first = lanes.lease("somebody", limit=1, lease=0.0)
    bench.replay(only=[first[0].lane_id], strictly=True)
    rule_changes.set_enabled(bad.pk, enabled=True, by="anna", reason="a bad tenant")
    bench.replay()
    sent = set(Letter.objects.filter(run=run, state="delivered").values_list("message_id", flat=True))
    parked = set(Letter.objects.filter(run=run, state="parked").values_list("message_id", flat=True))
    assert (len(sent), sent | parked, set(seen.shown)) == (1, ids, ids)


def test_a_preview_counts_errors_and_letters_that_another_rule_takes() -> None:
    bench = Workbench()
    rule("before", "replay", "body:kind equals a", position=1)
    mine = rule("mine", "discard", "body:length(text) exists", position=2, enabled=False)
    texts = ('{"kind": "a", "text": "x"}', '{"kind": "b", "text": "x"}', '{"kind": "b", "text": 5}', '{"kind": "b"}')
    bench.bury_all(*texts)
    bench.capture()
    seen = _look(mine)
    assert (dict(seen.would_act_on), dict(seen.taken_first), seen.error_count) == ({"captured": 1}, {"before": 1}, 1)
    assert seen.last_error == "body:length(text): length() was given a value of the wrong type"
    assert seen.shown == [bench.letter(payload__body=b'{"kind": "b", "text": "x"}').message_id]


def test_a_preview_counts_waiting_sent_and_finished_letters() -> None:
    bench = Workbench()
    mine = rule("mine", "discard", enabled=False)
    bench.enqueue("a", "b", "c")
    bench.replay(only=[bench.lane(letters__payload__body=b"a").pk], strictly=True)
    Letter.objects.filter(payload__body=b"b").update(state="awaiting")
    seen = _look(mine)
    assert (dict(seen.would_act_on), seen.under_way, dict(seen.matched_before)) == ({"waiting": 1}, 1, {"delivered": 1})


def test_a_preview_counts_released_and_unplaced_letters() -> None:
    bench = Workbench(fields={**BY_KEY, "missing_key": "park"})
    mine = rule("mine", "quarantine")
    bench.redrive("meant", key="a")
    act_on_parked.release([bench.letter().pk], by="anna", reason="it is meant")
    bench.bury("no key")
    bench.capture()
    plan.place_captured(bench.dlq)
    seen = _look(mine)
    assert (seen.acts, seen.shown, seen.released, seen.objected) == (0, [], 1, 1)
    bench.enlist()
    bench.replay()
    assert bench.states() == {"meant": "delivered", "no key": "parked"}
    assert bench.letter(state="parked").reason == "no_ordering_key"


def test_a_preview_looks_at_the_given_days_and_dlq(clock: Clock) -> None:
    one, other = Workbench(), Workbench()
    for bench in (one, other):
        bench.bury("old")
        bench.capture()
    Letter.objects.update(captured_at=lanes.database_now() - timedelta(days=9))
    for bench in (one, other):
        bench.bury("new")
        bench.capture()
    mine = rule("mine", "discard", enabled=False)
    assert (_look(mine).acts, _look(mine, days=10).acts, _look(mine, dlq=one.dlq.pk).acts) == (2, 4, 1)
    last = [lanes.database_now() - timedelta(days=days) for days in (7, 10)]
    assert [preview.letters([], since=since).older for since in last] == [2, 0]
    assert preview.letters([], since=last[0], dlq=one.dlq.pk).older == 1
    Letter.objects.update(state="discarded", finished_at=lanes.database_now())
    assert preview.letters([], since=last[0]).older == 0


def test_a_preview_loads_chunks_and_reports_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    for number in range(5):
        bench.bury(f'{{"n": {number}}}')
    bench.capture()
    monkeypatch.setattr(routable_letters, "CHUNK", 8)
    mine = rule("mine", "discard", "body:n exists", enabled=False)
    told: list[int] = []
    found = preview.letters(_as_if(mine), since=lanes.database_now() - timedelta(days=1), on_progress=told.append)
    assert (found.letters, found.shares[0].acts) == (5, 5)
    assert told == [1, 2, 3, 4, 5]


def test_a_preview_reads_past_messages_without_a_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    mine = rule("mine", "discard", enabled=False)
    for text in ("a", "bb", "ccc"):
        bench.bury(text)
        bench.capture()
    newer = Letter.objects.order_by("pk").values_list("pk", flat=True)[1:]
    Payload.objects.filter(letter__in=list(newer)).delete()
    one_letter = routable_letters._CAPTURED.replace("LIMIT 1000", "LIMIT 1")
    monkeypatch.setattr(routable_letters, "_CAPTURED", one_letter)
    lowest = routable_letters._LOWEST_CAPTURED.replace("LIMIT 1000", "LIMIT 1")
    monkeypatch.setattr(routable_letters, "_LOWEST_CAPTURED", lowest)
    assert dict(_look(mine).would_act_on) == {"captured": 1}
