"""Every constraint of the schema refuses a violation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.apps import apps
from django.db import IntegrityError, transaction
from django_celery_beat.models import CrontabSchedule, IntervalSchedule

from reprocessing import models
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db

HASH = b"h" * 32


def _attempt(stock: Stock, **fields: object) -> models.Attempt:
    values = {"letter": stock.letter, "lane": stock.lane, "target": stock.target, "no": 1, "epoch": 0, "fence": 1}
    return models.Attempt.objects.create(**{**values, "opened_at": NOW, "holds_lane": True, **fields})


def _incident(**fields: object) -> models.Incident:
    return models.Incident.objects.create(**{"kind": "run_finished", "subject": "run:1", "facts": {}, **fields})


def _route(**fields: object) -> models.NotificationRoute:
    return models.NotificationRoute.objects.create(**{"destination": "ops", **fields})


def _same_part_twice(_: Stock) -> None:
    incident, route = _incident(), _route()
    for _number in range(2):
        models.Notification.objects.create(incident=incident, route=route, phase="opened")


def _claim(stock: Stock, **fields: object) -> models.Claim:
    values = {"target": stock.target, "key_space": "1", "key_hash": HASH, "letter": stock.letter, "body_hash": HASH}
    return models.Claim.objects.create(**{**values, **fields})


def _dlq(stock: Stock, **fields: object) -> None:
    models.DeadLetterQueue.objects.filter(pk=stock.dlq.pk).update(**fields)


def _letter(stock: Stock, **fields: object) -> None:
    models.DeadLetter.objects.filter(pk=stock.letter.pk).update(**fields)


def _target(stock: Stock, **fields: object) -> None:
    models.Target.objects.filter(pk=stock.target.pk).update(**fields)


def _breaker(stock: Stock, **fields: object) -> None:
    models.Breaker.objects.filter(target=stock.target).update(**fields)


def _class(**fields: object) -> models.RateClass:
    return models.RateClass.objects.create(**{"name": "vip", **fields})


def _rule(**fields: object) -> models.Rule:
    return models.Rule.objects.create(**{"name": "rule", "action": "replay", "made_by": "anna", **fields})


def _check(stock: Stock, **fields: object) -> models.HealthCheck:
    return models.HealthCheck.objects.create(**{"target": stock.target, "kind": "depth", "ceiling": 1, **fields})


def _report(**fields: object) -> models.Report:
    values = {"message_id": "m", "verdict": "failed", "happened_at": NOW, "received_at": NOW, "digest": HASH}
    return models.Report.objects.create(**{**values, **fields})


def _wave(stock: Stock, **fields: object) -> models.Wave:
    return models.Wave.objects.create(**{"run": stock.run, "no": 1, "size": 1, **fields})


def _group(stock: Stock, **fields: object) -> models.LetterGroup:
    values = {"dlq": stock.dlq, "fingerprint": HASH, "cause": "shape", "title": "t", "first_at": NOW, "last_at": NOW}
    return models.LetterGroup.objects.create(**{**values, **fields})


def _operation(**fields: object) -> models.Operation:
    values = {"act": "release", "filter": {}, "by": "anna", "reason": "why", "upto": 1, "asked": 1}
    return models.Operation.objects.create(**{**values, **fields})


def _revision(stock: Stock, **fields: object) -> models.Revision:
    values = {"letter": stock.letter, "no": 1, "body": b"{}", "attributes": b"", "body_hash": HASH, "former_hash": HASH}
    return models.Revision.objects.create(**{**values, "size": 2, "by": "anna", "reason": "why", **fields})


def _schedule() -> IntervalSchedule:
    return IntervalSchedule.objects.create(every=1, period="minutes")


def _twice(create: Callable[[Stock], object]) -> Callable[[Stock], object]:
    return lambda stock: [create(stock), create(stock)]


VIOLATIONS: list[tuple[str, Callable[[Stock], object]]] = [
    (
        "a_key_has_one_lane",
        lambda s: models.Lane.objects.create(dlq=s.dlq, origin=s.origin, key_hash=bytes(s.lane.key_hash)),
    ),
    ("a_lane_is_due_when_ready_or_leased", lambda s: models.Lane.objects.filter(pk=s.lane.pk).update(phase="ready")),
    ("a_message_is_one_letter", lambda s: s.another_letter(message_id=s.letter.message_id)),
    ("a_letter_under_way_has_lane_target_and_sequence", lambda s: _letter(s, lane=None)),
    ("a_parked_letter_says_why", lambda s: _letter(s, state="parked", finished_at=NOW)),
    ("a_duplicate_names_the_letter_that_was_delivered", lambda s: _letter(s, state="duplicate", finished_at=NOW)),
    ("a_finished_letter_says_since_when", lambda s: _letter(s, state="delivered")),
    ("only_a_sent_letter_lets_pass", lambda s: _letter(s, lets_pass=True)),
    ("attempts_are_counted_upwards", lambda s: _letter(s, attempts=-1)),
    (
        "an_attempt_number_is_never_reused",
        lambda s: [_attempt(s, holds_lane=False, outcome="unknown", closed_at=NOW), _attempt(s)],
    ),
    ("one_attempt_holds_a_lane", lambda s: [_attempt(s), _attempt(s, letter=s.another_letter())]),
    ("a_closed_attempt_has_an_outcome", lambda s: _attempt(s, holds_lane=False, closed_at=NOW)),
    ("a_closed_attempt_holds_no_lane", lambda s: _attempt(s, outcome="unknown", closed_at=NOW)),
    ("a_held_claim_says_until_when", lambda s: _claim(s, state="held")),
    (
        "a_copy_that_is_gone_says_since_when",
        lambda s: models.Custody.objects.create(
            dlq=s.dlq, message_id="copy", letter=s.letter, state="gone", handle="h", visible_until=NOW
        ),
    ),
    (
        "a_dlq_has_one_standing_run",
        lambda s: [models.Run.objects.create(name=name, dlq=s.dlq, kind="standing") for name in ("one", "two")],
    ),
    (
        "a_standing_run_never_ends",
        lambda s: models.Run.objects.create(name="standing", dlq=s.dlq, kind="standing", state="finished"),
    ),
    (
        "a_run_that_stands_says_who_and_why",
        lambda s: models.Run.objects.create(name="drain", dlq=s.dlq, state="paused", stopped_by="anna"),
    ),
    ("a_wave_succeeds_by_a_share", lambda s: _dlq(s, wave_success=1.1)),
    ("automatic_redrive_gives_up_within_a_fortnight_or_never", lambda s: _dlq(s, give_up_after=0)),
    ("a_closed_breaker_is_not_failing", lambda s: _breaker(s, failing_since=NOW)),
    (
        "spared_attempts_are_attempts_since_the_last_release",
        lambda s: models.DeadLetter.objects.filter(pk=s.letter.pk).update(attempts=2, forgiven=1, spared=2),
    ),
    ("a_wave_has_one_number", lambda s: [_wave(s, settled_at=NOW, touched=1, failed=0), _wave(s)]),
    ("a_run_has_one_open_wave", lambda s: [_wave(s, no=number) for number in (1, 2)]),
    ("a_wave_has_letters", lambda s: _wave(s, size=0)),
    ("a_settled_wave_says_how_it_went", lambda s: _wave(s, settled_at=NOW, touched=1, failed=2)),
    ("a_class_has_one_breaker_a_target", lambda s: models.Breaker.objects.create(target=s.target)),
    ("a_breaker_can_open_and_close", lambda s: _breaker(s, threshold=0)),
    ("a_breaker_rests_between_its_cooldown_and_its_cap", lambda s: _breaker(s, cooldown=601)),
    ("a_ramp_is_a_share_of_the_rate", lambda s: _breaker(s, ramp=1.1)),
    ("an_open_breaker_says_until_when", lambda s: _breaker(s, state="open")),
    ("only_a_half_open_breaker_has_a_canary", lambda s: _breaker(s, canary_until=NOW)),
    ("a_class_has_a_rate_of_a_thousandth_to_a_million_or_none", lambda _: _class(rate=0)),
    ("a_class_bursts_one_to_a_million", lambda _: _class(burst=0.5)),
    ("a_class_has_a_whole_backoff_or_none", lambda _: _class(backoff_base=1)),
    ("a_delay_says_how_long", lambda _: _rule(action="delay", delay=0)),
    ("a_diversion_says_where_to", lambda _: _rule(action="divert")),
    ("only_replay_and_divert_have_a_target", lambda s: _rule(action="hold", target=s.target)),
    ("a_rule_ends_after_it_begins", lambda _: _rule(valid_from=NOW, valid_until=NOW)),
    ("a_rule_has_a_whole_backoff_or_none", lambda _: _rule(backoff_cap=1)),
    ("a_rule_says_who_made_it", lambda _: _rule(made_by="")),
    ("there_is_one_rulebook", lambda _: models.Rulebook.objects.create(id=2)),
    ("a_target_is_asked_one_thing_once", lambda s: [_check(s), _check(s, ceiling=2)]),
    ("a_check_says_what_it_asks", lambda s: _check(s, kind="http")),
    ("a_check_is_repeated_before_it_is_stale", lambda s: _check(s, every=31)),
    ("nothing_is_healthy_unseen", lambda s: _check(s, verdict="healthy")),
    ("a_rate_is_a_thousandth_to_a_million_or_none", lambda s: _target(s, rate=0)),
    ("a_burst_is_one_to_a_million", lambda s: _target(s, burst=0.5)),
    ("a_window_lasts_a_fortnight_at_most", lambda s: _target(s, window=-1)),
    ("an_answer_takes_a_quarter_of_an_hour_at_most", lambda s: _target(s, timeout=901)),
    ("publishing_again_is_agreed_to", lambda s: _target(s, kind="topic", refires=-1)),
    ("a_report_names_a_message", lambda _: _report(message_id=None)),
    ("an_attempt_is_one_of_a_letter", lambda _: _report(attempt_no=1)),
    ("absence_needs_a_watched_dlq", lambda s: _target(s, proof="absence")),
    ("a_dlq_is_set_to_what_there_is", lambda s: _dlq(s, stale="[]")),
    ("a_target_is_set_to_what_there_is", lambda s: _target(s, advance="[]")),
    ("a_dlq_allows_one_attempt", lambda s: _dlq(s, max_attempts=0)),
    ("a_backoff_lasts_a_fortnight_at_most", lambda s: _dlq(s, backoff_cap=-1)),
    ("a_fresh_lane_rests_a_fortnight_at_most", lambda s: _dlq(s, quiet_for=-1)),
    (
        "a_dlq_has_one_schedule_at_most",
        lambda s: _dlq(s, interval=_schedule(), crontab=CrontabSchedule.objects.create()),
    ),
    ("a_fifo_dlq_is_emptied_at_capture", lambda s: _dlq(s, fifo=True, delete_when="terminal")),
    ("a_stop_says_who_and_why", lambda s: _dlq(s, stopped_at=NOW, stopped_by="anna")),
    ("a_native_redrive_says_who_and_why", lambda s: _dlq(s, native_at=NOW, native_by="anna")),
    (
        "nobody_captures_what_aws_moves",
        lambda s: _dlq(s, native_at=NOW, native_by="anna", native_reason="why", leased_until=NOW),
    ),
    (
        "an_origin_is_named_once_a_dlq",
        lambda s: models.Origin.objects.create(dlq=s.dlq, arn=s.origin.arn, target=s.target),
    ),
    (
        "a_review_says_who_and_why",
        lambda s: models.Review.objects.create(act="released", letter=s.letter, by="anna", reason=""),
    ),
    ("there_is_one_halt", lambda s: models.Halt.objects.create(id=2, by="anna", reason="why")),
    ("a_word_about_a_doubt_says_when", lambda s: models.Doubt.objects.create(letter=s.letter, word="replay")),
    ("there_is_one_tide", lambda _: models.Tide.objects.create(id=2)),
    ("a_halt_says_who_and_why", lambda s: models.Halt.objects.create(by="", reason="why")),
    ("a_pulse_names_its_queue", lambda _: models.Pulse.objects.create(queue="", beaten_at=NOW)),
    ("a_cause_has_one_group_a_dlq", _twice(_group)),
    ("a_settled_group_says_since_when_and_by_whom", lambda s: _group(s, status="resolved", settled_at=NOW)),
    ("a_group_begins_before_it_ends", lambda s: _group(s, first_at=NOW + timedelta(seconds=1))),
    ("an_operation_says_who_and_why", lambda _: _operation(by="")),
    ("an_operation_ends_once", lambda _: _operation(state="done")),
    (
        "an_aborted_operation_says_by_whom_and_why",
        lambda _: _operation(state="aborted", finished_at=NOW, ended_by="anna"),
    ),
    ("a_revision_number_is_never_reused", _twice(_revision)),
    ("revisions_are_counted_from_one", lambda s: _revision(s, no=0)),
    ("a_revision_says_who_and_why", lambda s: _revision(s, reason="")),
    (
        "a_kind_of_letter_is_tallied_once",
        _twice(
            lambda _: models.Tally.objects.create(
                dlq_id=1, group_id=0, state="parked", reason="stale", presumed=False, n=1
            )
        ),
    ),
    ("an_hour_is_counted_once", _twice(lambda _: models.Flow.objects.create(dlq_id=1, hour=NOW, what="parked", n=1))),
    ("a_metric_is_summed_once", _twice(lambda _: models.Metric.objects.create(name="n", place=0, part="", value=1))),
    ("a_sum_only_grows", lambda _: models.Metric.objects.create(name="n", place=0, part="", value=-1)),
    ("a_stopped_lane_says_by_whom_and_why", lambda s: models.Lane.objects.filter(pk=s.lane.pk).update(stopped_at=NOW)),
    ("one_incident_is_open_for_each_kind_and_subject", _twice(lambda _: _incident())),
    ("an_incident_says_what_happened_to_what", lambda _: _incident(subject="")),
    ("an_incident_was_announced", lambda _: _incident(times=0)),
    ("an_incident_ends_after_its_beginning", lambda _: _incident(opened_at=NOW, ended_at=NOW - timedelta(seconds=1))),
    ("a_route_names_its_destination", lambda _: _route(destination="")),
    ("a_route_knows_its_events", lambda _: _route(kinds=["weather"])),
    ("a_destination_that_fails_says_why", lambda _: _route(failures=1)),
    ("a_part_of_an_incident_is_told_once", _same_part_twice),
    (
        "what_was_sent_is_not_given_up",
        lambda _: models.Notification.objects.create(
            incident=_incident(), route=_route(), phase="opened", sent_at=NOW, given_up_at=NOW
        ),
    ),
    (
        "a_note_of_a_dlq_counts_upwards",
        lambda s: models.DlqNote.objects.create(dlq=s.dlq, uncaptured=-1, captured=0, unfinished=0),
    ),
    ("there_is_one_dispatch", lambda s: models.Dispatch.objects.create(id=2, width=1, lifetime=1)),
    ("publishing_again_is_agreed_to", lambda s: _target(s, kind="bus")),
    ("a_settled_wave_says_how_it_went", lambda s: _wave(s, settled_at=NOW)),
    ("a_delay_says_how_long", lambda _: _rule(action="delay")),
    ("a_check_says_what_it_asks", lambda s: _check(s, ceiling=None)),
    ("a_check_is_repeated_before_it_is_stale", lambda s: _check(s, max_age=float("nan"))),
    ("a_rule_has_a_whole_backoff_or_none", lambda _: _rule(backoff_base=1, backoff_jitter="full")),
    ("a_class_has_a_whole_backoff_or_none", lambda _: _class(backoff_base=1, backoff_jitter="full")),
]


@pytest.fixture
def stock() -> Stock:
    return Stock()


@pytest.mark.parametrize(("name", "violate"), VIOLATIONS)
def test_each_constraint_refuses_its_violation(name: str, violate: Callable[[Stock], object], stock: Stock) -> None:
    with pytest.raises(IntegrityError, match=f'"{name}"'), transaction.atomic():
        violate(stock)


def test_every_constraint_is_tried() -> None:
    tables = apps.get_app_config("reprocessing").get_models()
    assert {constraint.name for model in tables for constraint in model._meta.constraints} == {
        name for name, _ in VIOLATIONS
    }


MORE_THAN_14_DAYS = 14 * 86_400 + 1.0


@pytest.mark.parametrize("value", [MORE_THAN_14_DAYS, 1e300, float("nan"), -1.0])
@pytest.mark.parametrize("field", ["backoff_base", "backoff_cap", "quiet_for"])
def test_a_dlq_refuses_durations_outside_0_to_14_days(field: str, value: float, stock: Stock) -> None:
    with pytest.raises(IntegrityError, match=r"a_backoff_lasts|a_fresh_lane_rests"), transaction.atomic():
        _dlq(stock, **{field: value})
    _dlq(stock, **{field: MORE_THAN_14_DAYS - 1})


@pytest.mark.parametrize(
    ("field", "least", "most"), [("rate", 0.001, 1e6), ("burst", 1, 1e6), ("window", 0, MORE_THAN_14_DAYS - 1)]
)
def test_a_target_refuses_numbers_outside_their_bounds(field: str, least: float, most: float, stock: Stock) -> None:
    for value in (least - 0.0001, 1e-300 if least else -1e-300, most + 1, 1e300, float("nan")):
        with pytest.raises(IntegrityError, match=r"a_rate_is|a_burst_is|a_window_lasts"), transaction.atomic():
            _target(stock, **{field: value})
    _target(stock, **{field: least})
    _target(stock, **{field: most})


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("threshold", (0, -1)),
        ("at_least", (0,)),
        ("closes_after", (0,)),
        ("ratio", (0.0, 1.01, float("nan"))),
        ("cooldown", (0.0, -1.0, 601.0, float("nan"))),
        ("cooldown_cap", (29.0, MORE_THAN_14_DAYS, 1e300, float("nan"))),
        ("ramp_from", (0.0, 1.01, float("nan"))),
        ("ramp", (0.0, 1.01, float("nan"))),
        ("ramp_every", (0.0,)),
    ],
)
def test_a_breaker_refuses_a_policy_that_could_never_open_close_or_ramp_up(
    field: str, values: tuple[float, ...], stock: Stock
) -> None:
    for value in values:
        with pytest.raises(IntegrityError, match=r"a_breaker_|a_ramp_"), transaction.atomic():
            _breaker(stock, **{field: value})


def test_only_an_open_breaker_has_a_retry_time(stock: Stock) -> None:
    _breaker(stock, state="open", retry_at=NOW)
    for state in ("closed", "half_open"):
        with pytest.raises(IntegrityError, match="an_open_breaker_says_until_when"), transaction.atomic():
            _breaker(stock, state=state)
    _breaker(stock, state="half_open", retry_at=None, canary_until=NOW)


def test_a_message_of_a_dlq_has_one_copy_row(stock: Stock) -> None:
    keep = _twice(lambda s: models.Custody.objects.create(
        dlq=s.dlq, message_id="copy", letter=s.letter, state="held", handle="h", visible_until=NOW,
    ))  # fmt: skip
    with pytest.raises(IntegrityError, match="redrive_custody_pkey"), transaction.atomic():
        keep(stock)


def test_a_key_has_one_claim_at_a_target(stock: Stock) -> None:
    _claim(stock, state="free")
    with pytest.raises(IntegrityError, match="redrive_claim_pkey"), transaction.atomic():
        _claim(stock, state="delivered")
