from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django_celery_beat.models import CrontabSchedule, IntervalSchedule

from reprocessing import models
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db

HASH = b"h" * 32


def _payload_key(**fields: object) -> models.PayloadKey:
    return models.PayloadKey.objects.create(**{"wrapped": b"w", "wrapped_by": "key", **fields})


def _erasure(**fields: object) -> models.Erasure:
    return models.Erasure.objects.create(**{"digest": b"d", "by": "ann", "reason": "why", **fields})


def _run(stock: Stock, **fields: object) -> models.Run:
    return models.Run.objects.create(**{"name": "drain", "dlq": stock.dlq, **fields})


def _approval(**fields: object) -> models.Approval:
    values = {"action": "discard", "title": "x", "stamp": b"1", "digest": b"1", "by": "ann", "by_key": "ann"}
    return models.Approval.objects.create(**{**values, "reason": "obsolete", "expires_at": NOW, **fields})


def _copy(stock: Stock, **fields: object) -> models.DlqCopy:
    values = {"message_id": "copy", "state": "held", "handle": "h", "visible_until": NOW, **fields}
    return models.DlqCopy.objects.create(dlq=stock.dlq, letter=stock.letter, **values)


def _incident(**fields: object) -> models.Incident:
    return models.Incident.objects.create(**{"kind": "run_finished", "subject": "run:1", "facts": {}, **fields})


def _mark(**fields: object) -> models.ManagedObject:
    its = {"kind": "dlqs", "name": "orders", "written": {}, "applied_by": "anna"}
    return models.ManagedObject.objects.create(**{**its, **fields})


def _api_token(**fields: object) -> models.ApiToken:
    its = {"name": "deploy", "token_hash": b"1", "scopes": ["runs:read"], "added_by": "anna"}
    return models.ApiToken.objects.create(**{**its, **fields})


def _api_calls(many: int, **fields: object) -> list[models.ApiCall]:
    token = _api_token()
    its = {"token": token, "key": "k", "request_hash": b"1", "made_at": NOW, "leased_until": NOW}
    return [models.ApiCall.objects.create(**{**its, **fields}) for _ in range(many)]


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
    models.Letter.objects.filter(pk=stock.letter.pk).update(**fields)


def _target(stock: Stock, **fields: object) -> None:
    models.Target.objects.filter(pk=stock.target.pk).update(**fields)


def _breaker(stock: Stock, **fields: object) -> None:
    models.Breaker.objects.filter(target=stock.target).update(**fields)


def _class(**fields: object) -> models.RateClass:
    return models.RateClass.objects.create(**{"name": "vip", **fields})


def _rule(**fields: object) -> models.Rule:
    return models.Rule.objects.create(**{"name": "rule", "action": "replay", "created_by": "anna", **fields})


def _check(stock: Stock, **fields: object) -> models.HealthCheck:
    return models.HealthCheck.objects.create(**{"target": stock.target, "kind": "depth", "ceiling": 1, **fields})


def _report(**fields: object) -> models.Report:
    values = {"message_id": "m", "verdict": "failed", "happened_at": NOW, "received_at": NOW, "digest": HASH}
    return models.Report.objects.create(**{**values, **fields})


def _wave(stock: Stock, **fields: object) -> models.Wave:
    return models.Wave.objects.create(**{"run": stock.run, "no": 1, "size": 1, **fields})


def _group(stock: Stock, **fields: object) -> models.FailureGroup:
    values = {"dlq": stock.dlq, "fingerprint": HASH, "cause": "shape", "title": "t", "first_at": NOW, "last_at": NOW}
    return models.FailureGroup.objects.create(**{**values, **fields})


def _operation(**fields: object) -> models.BulkAction:
    values = {"act": "release", "filter": {}, "by": "anna", "reason": "why", "max_letter_id": 1, "asked": 1}
    return models.BulkAction.objects.create(**{**values, **fields})


def _revision(stock: Stock, **fields: object) -> models.Revision:
    values = {"letter": stock.letter, "no": 1, "body": b"{}", "attributes": b"", "body_hash": HASH, "size": 2}
    told = {"previous_body_hash": HASH, "by": "anna", "reason": "why"}
    return models.Revision.objects.create(**{**values, **told, **fields})


def _scope(**fields: object) -> models.DiscoveryScope:
    return models.DiscoveryScope.objects.create(**{"region": "eu-west-1", **fields})


def _found(**fields: object) -> models.DiscoveredQueue:
    values = {"arn": "arn:aws:sqs:eu-west-1:1:q", "scope": _scope(), "retention": 60, "visible": 0, "in_flight": 0}
    return models.DiscoveredQueue.objects.create(**{**values, **fields})


def _source_of_failures(scope: models.DiscoveryScope, **fields: object) -> models.DiscoveredSource:
    values = {"dlq_arn": "arn:dlq", "source_arn": "arn:source", "kind": "queue", "scope": scope}
    return models.DiscoveredSource.objects.create(**{**values, **fields})


def _same_source_twice(_: Stock) -> None:
    scope = _scope()
    for _number in range(2):
        _source_of_failures(scope)


def _person(_: Stock, name: str = "ann", **fields: object) -> object:
    user = User.objects.create_user(f"{name}-{User.objects.count()}")
    values = {"user": user, "issuer": "https://login", "subject": "1", **fields}
    return models.ProviderIdentity.objects.create(**values)


def _entry(stock: Stock, **fields: object) -> object:
    values = {"letter": stock.letter, "dlq_id": stock.dlq.pk, "name": "order_id", "masked": False, **fields}
    return models.SearchEntry.objects.create(**values)


def _team() -> Group:
    return Group.objects.get_or_create(name="shop")[0]


def _saved(_: Stock, **fields: object) -> object:
    owner, _new = User.objects.get_or_create(username="ann")
    return models.SavedFilter.objects.create(**{"name": "stale", "filter": {}, "owner": owner, **fields})


def _schedule() -> IntervalSchedule:
    return IntervalSchedule.objects.create(every=1, period="minutes")


def _twice(create: Callable[[Stock], object]) -> Callable[[Stock], object]:
    return lambda stock: [create(stock), create(stock)]


VIOLATIONS: list[tuple[str, Callable[[Stock], object]]] = [
    (
        "one_lane_per_key",
        lambda s: models.Lane.objects.create(dlq=s.dlq, source=s.source, key_hash=bytes(s.lane.key_hash)),
    ),
    ("ready_or_leased_lane_has_due_time", lambda s: models.Lane.objects.filter(pk=s.lane.pk).update(phase="ready")),
    ("one_letter_per_message", lambda s: s.another_letter(message_id=s.letter.message_id)),
    ("queued_letter_has_lane_target_and_sequence", lambda s: _letter(s, lane=None)),
    ("only_parked_letter_has_reason", lambda s: _letter(s, state="parked", finished_at=NOW)),
    ("only_duplicate_names_delivered_letter", lambda s: _letter(s, state="duplicate", finished_at=NOW)),
    ("only_finished_letter_has_end_time", lambda s: _letter(s, state="delivered")),
    ("only_awaiting_letter_frees_lane", lambda s: _letter(s, frees_lane=True)),
    ("attempt_counts_not_negative", lambda s: _letter(s, attempts=-1)),
    (
        "unique_attempt_number_per_letter",
        lambda s: [s.attempt(outcome="unknown", closed_at=NOW), s.attempt()],
    ),
    (
        "one_lane_holding_attempt_per_lane",
        lambda s: [s.attempt(letter, holds_lane=True) for letter in (None, s.another_letter())],
    ),
    ("closed_attempt_has_outcome", lambda s: s.attempt(closed_at=NOW)),
    ("closed_attempt_holds_no_lane", lambda s: s.attempt(outcome="unknown", closed_at=NOW, holds_lane=True)),
    ("held_claim_has_end", lambda s: _claim(s, state="held")),
    ("gone_copy_has_time", lambda s: _copy(s, state="gone")),
    ("one_automatic_run_per_dlq", lambda s: [_run(s, name=name, kind="automatic") for name in ("one", "two")]),
    ("automatic_run_never_ends", lambda s: _run(s, kind="automatic", state="finished")),
    ("stopped_run_has_person_and_reason", lambda s: _run(s, state="paused", stopped_by="anna")),
    ("wave_success_between_0_and_1", lambda s: _dlq(s, wave_success=1.1)),
    ("give_up_after_between_1_second_and_14_days", lambda s: _dlq(s, give_up_after=0)),
    ("one_user_of_a_provider_identity", _twice(_person)),
    ("provider_identity_has_issuer_and_subject", lambda s: _person(s, subject="")),
    ("keep_bodies_at_most_10_years", lambda s: _dlq(s, keep_bodies=3_651)),
    ("only_ended_letter_has_no_body", lambda s: _letter(s, body_deleted_at=NOW)),
    ("only_dlq_with_policy_has_own_settings", lambda s: _dlq(s, own_settings=["mode"])),
    ("api_token_has_author", lambda _: _api_token(added_by="")),
    ("api_token_has_scopes", lambda _: _api_token(scopes=[])),
    ("one_api_call_per_idempotency_key", lambda _: _api_calls(2)),
    ("api_call_is_answered_or_leased", lambda _: _api_calls(1, status=200)),
    ("one_mark_per_managed_object", lambda _: [_mark(), _mark()]),
    ("unlock_has_person_and_reason", lambda _: _mark(unlocked_by="anna")),
    ("closed_breaker_is_not_failing", lambda s: _breaker(s, failing_since=NOW)),
    (
        "outage_attempts_are_since_the_last_release",
        lambda s: _letter(s, attempts=2, attempts_before_release=1, spared=2),
    ),
    ("unique_wave_number_per_run", lambda s: [_wave(s, settled_at=NOW, sent=1, failed=0), _wave(s)]),
    ("one_open_wave_per_run", lambda s: [_wave(s, no=number) for number in (1, 2)]),
    ("wave_size_at_least_1", lambda s: _wave(s, size=0)),
    ("only_settled_wave_has_result", lambda s: _wave(s, settled_at=NOW, sent=1, failed=2)),
    ("one_breaker_per_target_and_class", lambda s: models.Breaker.objects.create(target=s.target)),
    ("breaker_limits_are_reachable", lambda s: _breaker(s, threshold=0)),
    ("breaker_cooldown_at_most_cap_at_most_14_days", lambda s: _breaker(s, cooldown=601)),
    ("ramp_between_0_and_1", lambda s: _breaker(s, ramp=1.1)),
    ("only_open_breaker_has_retry_time", lambda s: _breaker(s, state="open")),
    ("only_open_breaker_has_retry_time", lambda s: _breaker(s, retry_at=NOW)),
    ("only_open_breaker_has_retry_time", lambda s: _breaker(s, state="half_open", retry_at=NOW)),
    ("only_half_open_breaker_has_canary", lambda s: _breaker(s, canary_until=NOW)),
    ("class_rate_between_0_001_and_1000000", lambda _: _class(rate=0)),
    ("class_burst_between_1_and_1000000", lambda _: _class(burst=0.5)),
    ("class_backoff_complete_or_absent", lambda _: _class(backoff_base=1)),
    ("only_delay_rule_has_delay", lambda _: _rule(action="delay", delay=0)),
    ("divert_rule_has_target", lambda _: _rule(action="divert")),
    ("only_replay_and_divert_have_a_target", lambda s: _rule(action="hold", target=s.target)),
    ("rule_ends_after_it_begins", lambda _: _rule(valid_from=NOW, valid_until=NOW)),
    ("rule_backoff_complete_or_absent", lambda _: _rule(backoff_cap=1)),
    ("rule_has_author", lambda _: _rule(created_by="")),
    ("one_rulebook_row", lambda _: models.Rulebook.objects.create(id=2)),
    ("one_check_per_target_kind_and_subject", lambda s: [_check(s), _check(s, ceiling=2)]),
    ("check_has_fields_of_its_kind", lambda s: _check(s, kind="http")),
    ("check_repeats_before_max_age", lambda s: _check(s, every=31)),
    ("healthy_check_has_time", lambda s: _check(s, verdict="healthy")),
    ("target_rate_between_0_001_and_1000000", lambda s: _target(s, rate=0)),
    ("run_rate_between_0_001_and_1000000", lambda s: models.Run.objects.create(name="r", dlq=s.dlq, rate=0)),
    ("target_burst_between_1_and_1000000", lambda s: _target(s, burst=0.5)),
    ("return_window_at_most_14_days", lambda s: _target(s, window=-1)),
    ("target_timeout_at_most_15_minutes", lambda s: _target(s, timeout=901)),
    ("topic_and_bus_have_confirmed_fanout", lambda s: _target(s, kind="topic", confirmed_fanout=-1)),
    ("report_names_a_message", lambda _: _report(message_id=None)),
    ("report_with_attempt_names_a_letter", lambda _: _report(attempt_no=1)),
    ("proof_by_absence_needs_dlq", lambda s: _target(s, proof="absence")),
    ("dlq_choices_are_known", lambda s: _dlq(s, stale="[]")),
    ("target_choices_are_known", lambda s: _target(s, advance="[]")),
    ("dlq_allows_at_least_one_attempt", lambda s: _dlq(s, max_attempts=0)),
    ("dlq_backoff_at_most_14_days", lambda s: _dlq(s, backoff_cap=-1)),
    ("new_key_delay_at_most_14_days", lambda s: _dlq(s, new_key_delay=-1)),
    ("dlq_has_interval_or_crontab", lambda s: _dlq(s, interval=_schedule(), crontab=CrontabSchedule.objects.create())),
    ("fifo_dlq_deletes_when_captured", lambda s: _dlq(s, fifo=True, delete_when="terminal")),
    ("dlq_stop_has_person_and_reason", lambda s: _dlq(s, stopped_at=NOW, stopped_by="anna")),
    ("aws_redrive_has_person_and_reason", lambda s: _dlq(s, aws_redrive_since=NOW, aws_redrive_by="anna")),
    (
        "no_capture_during_aws_redrive",
        lambda s: _dlq(s, aws_redrive_since=NOW, aws_redrive_by="anna", aws_redrive_reason="why", leased_until=NOW),
    ),
    (
        "one_source_per_dlq_and_arn",
        lambda s: models.Source.objects.create(dlq=s.dlq, arn=s.source.arn, target=s.target),
    ),
    (
        "audit_entry_has_person_and_reason",
        lambda s: models.AuditEntry.objects.create(act="released", letter=s.letter, by="anna", reason=""),
    ),
    ("one_stop_by_hand_one_by_restore", lambda s: models.GlobalStop.objects.create(id=2, by="anna", reason="why")),
    ("restore_decision_has_time", lambda s: models.RestoreDoubt.objects.create(letter=s.letter, word="replay")),
    ("one_tick_count_row", lambda _: models.TickCount.objects.create(id=2)),
    ("global_stop_has_person_and_reason", lambda s: models.GlobalStop.objects.create(by="", reason="why")),
    ("heartbeat_has_queue", lambda _: models.Heartbeat.objects.create(queue="", consumed_at=NOW)),
    ("one_group_per_fingerprint_and_dlq", _twice(_group)),
    ("group_status_has_time_and_person", lambda s: _group(s, status="resolved", settled_at=NOW)),
    ("group_first_not_after_last", lambda s: _group(s, first_at=NOW + timedelta(seconds=1))),
    ("group_is_not_merged_into_itself", lambda s: _group(s, pk=1, merged_into_id=1)),
    ("bulk_action_has_person_and_reason", lambda _: _operation(by="")),
    ("only_ended_bulk_action_has_end_time", lambda _: _operation(state="done")),
    (
        "aborted_bulk_action_has_person_and_reason",
        lambda _: _operation(state="aborted", finished_at=NOW, aborted_by="anna"),
    ),
    ("unique_revision_number_per_letter", _twice(_revision)),
    ("revision_number_at_least_1", lambda s: _revision(s, no=0)),
    ("revision_has_person_and_reason", lambda s: _revision(s, reason="")),
    (
        "one_letter_count_per_kind",
        _twice(
            lambda _: models.LetterCount.objects.create(
                dlq_id=1, group_id=0, state="parked", reason="stale", presumed=False, n=1
            )
        ),
    ),
    (
        "one_count_per_hour_and_event",
        _twice(lambda _: models.HourlyCount.objects.create(dlq_id=1, hour=NOW, what="parked", n=1)),
    ),
    (
        "one_count_per_group_and_hour",
        _twice(lambda _: models.GroupHour.objects.create(group_id=1, hour=NOW, n=1)),
    ),
    (
        "one_count_per_run_and_minute",
        _twice(lambda _: models.RunMinute.objects.create(run_id=1, minute=NOW, sent=1)),
    ),
    (
        "one_metric_per_name_and_label",
        _twice(lambda _: models.Metric.objects.create(name="n", place=0, part="", value=1)),
    ),
    ("metric_value_not_negative", lambda _: models.Metric.objects.create(name="n", place=0, part="", value=-1)),
    ("stopped_lane_has_person_and_reason", lambda s: models.Lane.objects.filter(pk=s.lane.pk).update(stopped_at=NOW)),
    ("one_open_incident_per_kind_and_subject", _twice(lambda _: _incident())),
    ("incident_has_kind_and_subject", lambda _: _incident(subject="")),
    ("incident_announced_at_least_once", lambda _: _incident(times=0)),
    ("incident_ends_after_it_opens", lambda _: _incident(opened_at=NOW, ended_at=NOW - timedelta(seconds=1))),
    ("route_has_destination", lambda _: _route(destination="")),
    ("route_events_are_known", lambda _: _route(kinds=["weather"])),
    ("failing_destination_has_error", lambda _: _route(failures=1)),
    ("one_notification_per_incident_route_and_phase", _same_part_twice),
    (
        "sent_notification_is_not_given_up",
        lambda _: models.Notification.objects.create(
            incident=_incident(), route=_route(), phase="opened", sent_at=NOW, given_up_at=NOW
        ),
    ),
    (
        "dlq_sample_not_negative",
        lambda s: models.DlqSample.objects.create(dlq=s.dlq, uncaptured=-1, captured=0, unfinished=0),
    ),
    ("one_task_hints_row", lambda s: models.TaskHints.objects.create(id=2, width=1, lifetime=1)),
    ("topic_and_bus_have_confirmed_fanout", lambda s: _target(s, kind="bus")),
    ("only_settled_wave_has_result", lambda s: _wave(s, settled_at=NOW)),
    ("only_delay_rule_has_delay", lambda _: _rule(action="delay")),
    ("check_has_fields_of_its_kind", lambda s: _check(s, ceiling=None)),
    ("check_repeats_before_max_age", lambda s: _check(s, max_age=float("nan"))),
    ("rule_backoff_complete_or_absent", lambda _: _rule(backoff_base=1, backoff_jitter="full")),
    ("class_backoff_complete_or_absent", lambda _: _class(backoff_base=1, backoff_jitter="full")),
    ("one_discovery_per_role_region_and_filter", _twice(lambda _: _scope(tags={"team": "a"}))),
    ("discovery_has_region", lambda _: _scope(region="")),
    ("open_scan_has_stage_and_start", lambda _: _scope(stage="queues")),
    ("discovered_queue_has_arn", lambda _: _found(arn="https://queue")),
    ("discovered_queue_was_read_or_has_error", lambda _: _found(visible=None)),
    ("ignored_queue_has_person_and_reason", lambda _: _found(ignored_at=NOW, ignored_by="anna")),
    ("one_row_per_dlq_source_and_rule", _same_source_twice),
    ("discovered_source_kind_is_known", lambda _: _source_of_failures(_scope(), kind="topic")),
    ("approval_has_person_and_reason", lambda _: _approval(by_key="")),
    ("approval_decision_has_person_and_reason", lambda _: _approval(state="declined", ended_at=NOW)),
    (
        "approver_is_not_the_requester",
        lambda _: _approval(state="approved", ended_at=NOW, decided_key="ann", decision_reason="me"),
    ),
    ("only_ended_approval_has_end_time", lambda _: _approval(ended_at=NOW)),
    ("only_open_approval_keeps_message", lambda _: _approval(state="void", ended_at=NOW, body=b"x")),
    ("only_approved_action_is_done", lambda _: _approval(state="void", ended_at=NOW, used_at=NOW)),
    ("one_approval_default", lambda _: models.ApprovalDefault.objects.create(name="orders", above=1)),
    (
        "unapproved_action_has_messages",
        lambda s: models.UnapprovedAction.objects.create(dlq=s.dlq, by_key="ann", messages=0),
    ),
    ("one_payload_key_per_dlq_and_day", _twice(lambda s: _payload_key(dlq=s.dlq, day=NOW.date()))),
    ("one_payload_key_per_dlq_and_day", _twice(lambda _: _payload_key())),
    ("only_installation_key_has_no_dlq", lambda _: _payload_key(day=NOW.date())),
    ("dlq_has_at_most_10_search_fields", lambda s: _dlq(s, search_fields=[f"f{n}=body:f{n}" for n in range(11)])),
    ("search_entry_has_1_to_200_characters", lambda s: _entry(s, value="")),
    ("search_entry_has_1_to_200_characters", lambda s: _entry(s, value=201 * "x")),
    ("saved_filter_has_name", lambda s: _saved(s, name="")),
    ("one_saved_filter_per_owner_and_name", _twice(_saved)),
    ("one_saved_filter_per_team_and_name", lambda s: [_saved(s, team=team) for team in [_team()] for _ in range(2)]),
    (
        "destroyed_payload_key_has_person_and_reason",
        lambda s: _payload_key(dlq=s.dlq, day=NOW.date(), wrapped=None, destroyed_at=NOW, destroyed_by="ann"),
    ),
    ("one_open_erasure_per_value", _twice(lambda _: _erasure())),
    ("erasure_has_person_and_reason", lambda _: _erasure(reason="")),
    ("only_rules_have_targets", lambda _: _source_of_failures(_scope(), through="arn:rule")),
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


BOUNDS = (
    r"dlq_backoff_at_most_14_days|new_key_delay_at_most_14_days|target_rate_between|target_burst_between|"
    r"return_window_at_most|breaker_limits_are_reachable|breaker_cooldown_at_most|ramp_between_0_and_1"
)
NAN = float("nan")
DURATION = ((MORE_THAN_14_DAYS, 1e300, NAN, -1.0), (MORE_THAN_14_DAYS - 1,))
RATE = ((0.0009, 1e-300, 1e6 + 1, 1e300, NAN), (0.001, 1e6))


@pytest.mark.parametrize(
    ("update", "field", "refused", "allowed"),
    [
        (_dlq, "backoff_base", *DURATION),
        (_dlq, "backoff_cap", *DURATION),
        (_dlq, "new_key_delay", *DURATION),
        (_target, "window", *DURATION),
        (_target, "rate", *RATE),
        (_target, "burst", (0.9999, 1e-300, 1e6 + 1, 1e300, NAN), (1, 1e6)),
        (_breaker, "threshold", (0, -1), (1,)),
        (_breaker, "at_least", (0,), (1,)),
        (_breaker, "canaries_to_close", (0,), (1,)),
        (_breaker, "ratio", (0.0, 1.01, NAN), (1,)),
        (_breaker, "cooldown", (0.0, -1.0, 601.0, NAN), (600.0,)),
        (_breaker, "cooldown_cap", (29.0, MORE_THAN_14_DAYS, 1e300, NAN), (30.0, MORE_THAN_14_DAYS - 1)),
        (_breaker, "ramp_from", (0.0, 1.01, NAN), (1,)),
        (_breaker, "ramp", (0.0, 1.01, NAN), (1,)),
        (_breaker, "ramp_every", (0.0,), (0.1,)),
    ],
)
def test_a_number_outside_its_bounds_is_refused(
    update: Callable[..., None], field: str, refused: Sequence[float], allowed: Sequence[float], stock: Stock
) -> None:
    for value in refused:
        with pytest.raises(IntegrityError, match=BOUNDS), transaction.atomic():
            update(stock, **{field: value})
    for value in allowed:
        update(stock, **{field: value})


def test_a_message_of_a_dlq_has_one_copy_row(stock: Stock) -> None:
    with pytest.raises(IntegrityError, match="redrive_dlq_copy_pkey"), transaction.atomic():
        _twice(_copy)(stock)


def test_a_key_has_one_claim_at_a_target(stock: Stock) -> None:
    _claim(stock, state="free")
    with pytest.raises(IntegrityError, match="redrive_claim_pkey"), transaction.atomic():
        _claim(stock, state="delivered")
