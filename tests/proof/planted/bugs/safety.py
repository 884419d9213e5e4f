"""Circuit breakers: when they open and close, and what a canary decides."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/domain/safety/circuit_breaker.py
@tests/reprocessing/domain/safety/test_circuit_breaker.py
rests-of-a-breaker-without-a-cap: test_the_rest_grows_to_its_cap_and_never_beyond
-    return min(max(last_cooldown * 2, policy.cooldown), policy.cooldown_cap)
+    return max(last_cooldown * 2, policy.cooldown)

@reprocessing/domain/safety/failure_cause.py
@tests/reprocessing/domain/safety/test_failure_cause.py
nobody-waits-for-what-others-tell: test_a_message_is_at_fault_when_others_went_well_beside_it
-    if failures.seconds_ago < OUTCOMES_AWAITED:
+    if failures.seconds_ago < 0:

@reprocessing/domain/safety/give_up.py
@tests/reprocessing/domain/safety/test_give_up.py
a-message-that-hardly-failed-is-parked: test_a_message_is_not_parked_before_it_has_failed_as_often_as_the_dlq_allows
-    if target.of_message < target.max_attempts:
+    if target.attempts < target.max_attempts:
two-failures-of-a-day-give-nothing-up: test_two_failures_are_enough_however_few_they_are
-FEWEST: Final = 2
+FEWEST: Final = 3

@reprocessing/store/safety/breaker_resets.py
@tests/reprocessing/store/safety/test_circuit_breakers.py
a-person-s-reset-keeps-the-epoch: test_the_late_failure_of_a_canary_moves_no_breaker_that_was_reset_by_hand
-SET state = %(state)b::text, epoch = b.epoch + 1, since = k.now
+SET state = %(state)b::text, since = k.now
who-opens-a-breaker-says-that-it-is-well: test_only_closing_a_breaker_by_hand_ends_failing_since
-CASE WHEN NOT k.closes THEN b.failing_since END,
+CASE WHEN NOT k.closes THEN NULL::timestamptz END,

@reprocessing/store/safety/breaker_window.py
another-epoch-s-outcomes-decide: test_only_the_canary_of_this_epoch_decides
-     WHERE breaker_epoch = a.epoch
- ) e
+     WHERE true
+ ) e

@reprocessing/store/safety/circuit_breakers.py
@tests/reprocessing/pipeline/safety/test_automatic_redrive_heals.py
the-run-up-to-an-opening-counts: test_spent_messages_open_the_breaker_if_nothing_succeeds
-    spare_epochs({(move.row.id, move.row.epoch) for move in opened})
+    spare_epochs(())
@tests/reprocessing/store/notifications/test_breaker_events.py
a-breaker-opens-in-silence: test_many_failures_open_one_incident
-    announce_opened([OpenedBreaker(
+    list([OpenedBreaker(
an-opening-is-committed-before-it-is-announced: test_an_opening_and_its_announcement_are_committed_together
-rows.in_transaction(move_all) if any(move.state != move.row.state for move in wanted) else move_all()
+move_all()
a-closed-breaker-stays-an-incident: test_closing_a_breaker_ends_the_incident_and_reopening_continues_it
-    conclude_closed([move.row.id for move in moved if move.state == BreakerState.CLOSED])
+
@tests/reprocessing/store/safety/test_circuit_breakers.py
a-breaker-moved-whatever-it-is-by-now: test_a_breaker_that_is_reset_meanwhile_is_not_opened
- WHERE b.id = m.id AND b.state = m.was AND b.epoch = m.epoch
+ WHERE b.id = m.id AND b.state = m.was
a-canary-s-failure-outweighs-a-person: test_a_failed_canary_moves_no_breaker_that_is_reset_meanwhile[open]
- WHERE b.id = m.id AND b.state = m.was AND b.epoch = m.epoch
+ WHERE b.id = m.id
a-wave-of-before-opens-a-breaker: test_a_failed_wave_opens_a_breaker_only_in_the_epoch_of_its_failures
-        if (row.id, row.epoch) in failures
+        if row.id in dict(failures)
an-outage-is-anew-with-each-rest: test_failing_since_lasts_from_the_first_opening_to_a_successful_canary
-THEN coalesce(b.failing_since, k.now)
+THEN k.now
a-canary-that-says-nothing-ends-an-outage: test_failing_since_lasts_from_the_first_opening_to_a_successful_canary
-THEN CASE WHEN m.successes = 0 THEN b.failing_since END END,
+THEN NULL::timestamptz END,

@reprocessing/store/safety/failed_answers.py
@tests/reprocessing/commands/runs/test_why_attempts_fail.py
every-attempt-is-read-to-say-why-some-fail: test_no_more_attempts_are_read_than_the_newest_of_each_breaker
-    return _most_common(rows.fetch(_Failed, _FAILED, {"dlq": dlq, "run": run, "depth": DEPTH})).get(dlq)
+    return _most_common(rows.fetch(_Failed, _FAILED, {"dlq": dlq, "run": run, "depth": 2**31 - 1})).get(dlq)
""")
