"""People release, discard, restore, assign and note parked letters; each act is recorded with its effect."""

from __future__ import annotations

from datetime import datetime, timedelta
from unittest.mock import Mock

import pytest
from django.db import DatabaseError

from reprocessing.models import AuditEntry, Breaker, Claim, DeadLetterQueue, Letter, Rule, Run, Source, Target
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.routing import route
from reprocessing.store.ordering import lanes, placement
from reprocessing.store.parking_lot import decisions
from reprocessing.store.routing import rule_changes
from reprocessing.store.runs import run_transitions
from tests.reprocessing.pipeline.bench import Clock, Workbench, enqueued
from tests.reprocessing.pipeline.benches import parked

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bench() -> Workbench:
    return parked("letter")


@pytest.mark.soak
def test_a_released_letter_has_as_many_attempts_anew_as_its_dlq_allows() -> None:
    bench = parked("letter", fields={"max_attempts": 2})
    assert act_on_parked.release([bench.letter().pk], by="anna", reason="mended").done == (bench.letter().pk,)
    with bench.refusing("letter"):
        bench.replay()
    assert (bench.letter().state, bench.letter().attempts) == ("parked", 4)
    act_on_parked.release([bench.letter().pk], by="anna", reason="mended")
    bench.replay()
    assert (bench.letter().state, [no for no, _, _ in bench.history()]) == ("delivered", [1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("action", "act", "after"),
    [(act_on_parked.release, "released", "waiting"), (act_on_parked.discard, "discarded", "discarded")],
)
def test_who_decided_and_why_is_recorded_with_the_action(
    bench: Workbench, action: object, act: str, after: str
) -> None:
    parked_at = bench.letter().finished_at
    action([bench.letter().pk], by="anna", reason="because")  # type: ignore[operator]
    review = AuditEntry.objects.exclude(letter=None).get()
    assert (review.act, review.letter_id, review.dlq_id) == (act, bench.letter().pk, bench.dlq.pk)
    assert datetime.fromisoformat(review.before.pop("parked_at")) == parked_at
    assert (review.by, review.reason, review.before, review.after) == (
        "anna", "because", {"state": "parked", "reason": "attempts_spent"}, {"state": after},
    )  # fmt: skip
    assert bench.letter().released_by == ("anna" if act == "released" else None)


@pytest.mark.parametrize("action", [act_on_parked.release, act_on_parked.discard])
def test_what_cannot_be_recorded_is_not_done(bench: Workbench, action: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "record_decisions", Mock(side_effect=DatabaseError("gone")))
    with pytest.raises(DatabaseError):
        action([bench.letter().pk], by="anna", reason="because")  # type: ignore[operator]
    assert bench.letter().state == "parked"


@pytest.mark.parametrize(("by", "reason"), [("", "because"), ("anna", " ")])
def test_nobody_decides_without_a_name_and_a_reason(bench: Workbench, by: str, reason: str) -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        act_on_parked.discard([bench.letter().pk], by=by, reason=reason)
    assert bench.letter().state == "parked"


def test_what_is_no_longer_parked_is_left_alone_and_said_so(bench: Workbench) -> None:
    letter = bench.letter().pk
    act_on_parked.discard([letter], by="anna", reason="of no use")
    again = act_on_parked.release([letter, 0], by="ben", reason="no, it is")
    assert again.done == ()
    assert again.refused == {letter: "it is no longer parked: it is discarded", 0: "there is no such letter"}
    assert (bench.letter().state, AuditEntry.objects.count()) == ("discarded", 1)


def test_a_letter_released_after_its_run_has_ended_gets_a_run(bench: Workbench) -> None:
    Run.objects.update(state="finished")
    act_on_parked.release([bench.letter().pk], by="anna", reason="mended")
    assert bench.replay().taken == 1
    assert Run.objects.get(letters=bench.letter()).asked_by == "anna"


def _of_unknown_source() -> Workbench:
    bench = Workbench()
    bench.source.delete()
    bench.enqueue("letter")
    assert (bench.letter().state, bench.letter().reason) == ("parked", "unknown_source")
    return bench


def _name(bench: Workbench) -> Source:
    return Source.objects.create(dlq=bench.dlq, arn=bench.target.arn, target=bench.target)


def _elsewhere(bench: Workbench) -> Source:
    target = bench.another_target()
    return Source.objects.create(dlq=bench.dlq, arn=target.arn, target=target)


def test_a_letter_of_unknown_source_is_released_to_the_one_queue_that_was_named_since() -> None:
    bench = _of_unknown_source()
    letter = bench.letter().pk
    assert act_on_parked.release([letter], by="anna", reason="go").refused == {
        letter: f"its source queue is not known; add the queue to {bench.name}, on its page in the "
        f"admin or with manage.py add_dlq {bench.name} --source URL --confirm"
    }
    _name(bench)
    assert act_on_parked.release([letter], by="anna", reason="named").done == (letter,)
    bench.replay()
    assert (bench.states(), bench.delivered_bodies()) == ({"letter": "delivered"}, ["letter"])


def test_of_several_queues_named_since_it_goes_to_the_default_and_is_never_guessed() -> None:
    bench = _of_unknown_source()
    letter, here = bench.letter().pk, _name(bench)
    _elsewhere(bench)
    assert list(act_on_parked.release([letter], by="anna", reason="named").refused) == [letter]
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(default_source=here)
    assert act_on_parked.release([letter], by="anna", reason="named").done == (letter,)
    assert (bench.letter().source, bench.letter().target) == (here, bench.target)


@pytest.mark.soak
def test_letters_parked_before_they_had_a_place_get_it_in_portions_of_bounded_bytes() -> None:
    bench = enqueued(*"abc", fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    Letter.objects.update(size=9 << 20)
    letters = list(Letter.objects.order_by("id").values_list("id", flat=True))
    portions = [[one.id for one in some] for some in placement.unplaced_parked_letters(letters)]
    assert portions == [letters[:2], letters[2:]]  # the second begins within 16 MiB
    bench.dlq.missing_key = "lane"
    bench.dlq.save()
    act_on_parked.release(letters, by="anna", reason="they need no order")
    bench.replay()
    assert bench.states() == dict.fromkeys("abc", "delivered")


def test_a_letter_of_unknown_source_can_be_discarded() -> None:
    bench = _of_unknown_source()
    assert act_on_parked.discard([bench.letter().pk], by="anna", reason="no use").done == (bench.letter().pk,)


def test_a_letter_released_into_a_paused_run_waits_for_that_one_to_go_on() -> None:
    bench = Workbench()
    run = bench.enqueue("letter")
    Letter.objects.update(state="parked", reason="refused", finished_at=lanes.database_now())
    run_transitions.pause(run.pk, by="anna", reason="the consumer is broken")
    assert act_on_parked.release([bench.letter().pk], by="ben", reason="mended").done
    assert (bench.letter().run_id, Run.objects.count(), bench.replay().taken) == (run.pk, 1, 0)
    run_transitions.resume(run.pk, by="anna", reason="mended")
    assert bench.replay().taken == 1


def test_a_discarded_letter_is_restored_with_the_reason_it_had_and_can_be_released(bench: Workbench) -> None:
    letter = bench.letter().pk
    assert act_on_parked.restore([letter], by="ben", reason="no").refused == {
        letter: "it is no longer discarded: it is parked"
    }
    act_on_parked.discard([letter], by="anna", reason="of no use")
    assert act_on_parked.restore([letter], by="ben", reason="it is").done == (letter,)
    assert (bench.letter().state, bench.letter().reason) == ("parked", "attempts_spent")
    review = AuditEntry.objects.latest("id")
    assert (review.act, review.by, review.before) == ("restored", "ben", {"state": "discarded"})
    assert review.after == {"state": "parked", "reason": "attempts_spent"}
    act_on_parked.release([letter], by="ben", reason="mended")
    assert (bench.replay().taken, bench.letter().state) == (1, "delivered")


def test_what_a_rule_discarded_is_restored_as_quarantined(bench: Workbench) -> None:
    Letter.objects.update(state="discarded", reason="")
    act_on_parked.restore([bench.letter().pk], by="ben", reason="the rule was wrong")
    assert bench.letter().reason == "quarantined"


@pytest.mark.soak
def test_a_restored_letter_frees_its_key_and_leaves_equal_letters_parked() -> None:
    bench, first, second = _equal_letters()
    act_on_parked.discard([first], by="anna", reason="of no use")
    bench.replay()
    assert (bench.letter(pk=second).reason, Claim.objects.get().state) == ("equal_discarded", "discarded")
    act_on_parked.restore([first], by="anna", reason="it is of use")
    assert (bench.letter(pk=second).reason, Claim.objects.get().state) == ("equal_discarded", "free")


def _equal_letters() -> tuple[Workbench, int, int]:
    """Park the first of two letters with one idempotency key, which is free again; the second waits."""
    bench = Workbench(fields={"idempotency_key": "attribute:order"})
    bench.enqueue("first", order="7")
    with bench.refusing("first", poison=True):
        bench.replay()
    bench.enqueue("second", order="7")
    first, second = (bench.letter(payload__body=body).pk for body in (b"first", b"second"))
    return bench, first, second


def test_a_discarded_letter_leaves_the_key_to_its_equal_that_is_under_way() -> None:
    bench, first, second = _equal_letters()
    bench.replay_and_die(sent=True)
    act_on_parked.discard([first], by="anna", reason="of no use")
    assert Claim.objects.values_list("letter", "state").get() == (second, "held")


def test_a_restored_letter_leaves_a_key_that_says_something_else_than_its_discard() -> None:
    _, first, _ = _equal_letters()
    act_on_parked.discard([first], by="anna", reason="of no use")
    Claim.objects.update(state="delivered")
    act_on_parked.restore([first], by="anna", reason="it is of use")
    assert Claim.objects.values_list("letter", "state").get() == (first, "delivered")


@pytest.mark.soak
def test_a_letter_released_at_a_time_waits_for_it(bench: Workbench, clock: Clock) -> None:
    due = lanes.database_now() + timedelta(minutes=10)
    act_on_parked.release([bench.letter().pk], by="anna", reason="after the deployment", due=due)
    assert (bench.replay(1).taken, bench.letter().due_at) == (0, due)
    assert AuditEntry.objects.exclude(letter=None).get().after["due"].startswith(due.strftime("%Y-%m-%dT%H:%M:%S"))
    clock.advance(601)
    assert (bench.replay().taken, bench.letter().state) == (1, "delivered")


def test_the_time_that_a_person_said_is_not_ended_by_a_rule_that_delayed_before(bench: Workbench) -> None:
    due = lanes.database_now() + timedelta(hours=1)
    slow = {"action": "delay", "delay": 10_800.0, "enabled": True, "conditions": []}
    rule = rule_changes.save_rule("slow", slow, by="ben", reason="a test").id
    Letter.objects.update(route="delay", rule=rule)
    act_on_parked.release([bench.letter().pk], by="anna", reason="later", due=due)
    rule_changes.set_enabled(rule, enabled=False, by="ben", reason="a test")
    route.refresh_rules(lanes.database_now())
    assert (bench.replay(1).taken, bench.letter().due_at) == (0, due)


def test_a_letter_goes_where_a_person_said_whatever_rules_say_and_back_home_without_that_word(bench: Workbench) -> None:
    rule_changes.save_rule("hold", {"action": "hold", "enabled": True, "conditions": []}, by="ben", reason="a test")
    other = bench.another_target()
    url = other.url
    Breaker.objects.filter(target=other).update(ramp_from=1, ramp=1)
    act_on_parked.release([bench.letter().pk], by="anna", reason="they take it now", target=other.pk)
    assert AuditEntry.objects.exclude(letter=None).get(act="released").after["target"] == other.arn
    bench.replay()
    assert (bench.delivered_bodies(url), bench.delivered()) == (["letter"], [])

    Letter.objects.update(state="parked", reason="refused", finished_at=lanes.database_now())
    Rule.objects.update(enabled=False)
    act_on_parked.release([bench.letter().pk], by="anna", reason="home again")
    assert (bench.letter().target, bench.letter().rulebook_version) == (bench.target, 0)


def test_a_target_that_cannot_take_a_letter_is_refused_for_it(bench: Workbench) -> None:
    letter = bench.letter().pk
    fifo = Target.objects.create(arn="arn:aws:sqs:eu-west-1:0:x.fifo", url="http://127.0.0.1:9", region="x", fifo=True)
    tasks = Target.objects.create(arn="arn:aws:sqs:eu-west-1:0:t", url="http://127.0.0.1:9", region="x", kind="celery")
    refused = [
        act_on_parked.release([letter], by="a", reason="b", target=one.pk).refused[letter] for one in (fifo, tasks)
    ]
    assert refused == [
        "the other target is FIFO, and the message has no message group",
        "the other target accepts only tasks, and the message was sent to something else",
    ]
    assert (bench.letter().state, AuditEntry.objects.count()) == ("parked", 0)


def test_who_sees_to_a_letter_and_what_was_noted_is_recorded_and_changes_nothing_else(bench: Workbench) -> None:
    letter, before = bench.letter().pk, bench.letter().finished_at
    assert act_on_parked.assign([letter], to="ben", by="anna", reason="he knows").done == (letter,)
    assert act_on_parked.note([letter, 0], by="ben", reason="the supplier was asked").refused == {
        0: "there is no such letter"
    }
    spent = {"state": "parked", "reason": "attempts_spent"}
    assert [(review.act, review.by, review.before, review.after) for review in AuditEntry.objects.order_by("id")] == [
        ("assigned", "anna", {"assigned_to": ""}, {"assigned_to": "ben"}),
        ("noted", "ben", spent, spent),
    ]
    assert (bench.letter().assigned_to, bench.letter().finished_at, bench.letter().state) == ("ben", before, "parked")
