"""Recovery, retention, restores of PostgreSQL, doctor."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/pipeline/maintenance/detect_restore.py
@tests/reprocessing/pipeline/maintenance/test_after_restore.py
a-restore-goes-unnoticed: test_a_restore_that_nobody_tells_of_is_held
-    if known is None or known <= ticks:
+    if known is None or known <= ticks or ticks > 0:
a-flushed-redis-holds-everything: test_a_redis_that_knows_nothing_holds_nothing
-    if known is None or known <= ticks:
+    if known is not None and known <= ticks:
-    return now is None or known <= now.ticks or _hold(
+    return bool(known is not None and now and known <= now.ticks) or _hold(
-        if not restore_detection.raise_ticks(known) and not alone:
-            return None
+
-known=known, t
+known=known or 0, t
a-restore-that-was-held-is-held-again: test_a_worker_that_froze_with_the_proof_of_a_restore_does_not_hold_it_again
-        if not restore_detection.raise_ticks(known) and not alone:
+        if not restore_detection.raise_ticks(known) and known < 0:

@reprocessing/worker_signals.py
@tests/reprocessing/test_worker_signals.py
a-task-that-succeeds-counts-as-failing: test_the_third_failure_of_a_task_is_an_error_until_the_task_succeeds
-            _record(task_failures.record_success, sender.name)
+
a-success-soon-after-a-failure-is-not-recorded:
    test_a_success_between_failures_begins_the_count_again
-            self._recorded.pop(sender.name, None)
+            self._recorded.setdefault(sender.name, self._clock())

@reprocessing/tasks.py
@tests/reprocessing/test_tasks.py
a-tick-that-fails-notifies-nobody: test_a_tick_that_fails_has_enqueued_the_tasks_that_notify_people
-    _enqueue_checks()  # before the other steps, so that people are notified if these fail
+
a-poll-that-fails-unexpectedly-is-only-in-the-log:
    test_a_look_that_fails_is_the_dlq_s_error_and_given_again_a_minute_later_and_keeps_no_other_dlq_from_its_turn
-        capture_lease.note_error(dlq.pk, capture_lease.unexpected_error(error))
+        capture_lease.unexpected_error(error)

@reprocessing/gateways/sqs/received_handles.py
@tests/reprocessing/gateways/sqs/test_received_handles.py
a-silent-sqs-is-asked-again-and-again: test_after_a_request_without_an_answer_no_other_is_sent
-                is_silent.set()
+                is_silent.clear()

@reprocessing/pipeline/maintenance/recover.py
@tests/reprocessing/pipeline/maintenance/test_recover.py
many-workers-sweep: test_one_worker_sweeps_at_a_time_and_a_killed_one_is_replaced_after_a_minute
-    if not metrics.claim_if_due(_SWEEP, every=_SWEEP_LEASE):
+    if not metrics.claim_if_due(_SWEEP, every=0.0):
a-long-sweep-loses-its-turn: test_a_sweep_that_takes_long_keeps_its_turn
-before_step=partial(metrics.claim_if_due, _SWEEP, every=0.0))
+before_step=int)
a-sweep-hides-that-a-step-failed:
    test_a_step_that_fails_keeps_no_dlq_from_its_sweep_and_the_sweep_says_so_at_its_end
-        return name, False
+        return name, True
nobody-looks-at-failures: test_failures_that_a_dead_worker_recorded_and_did_not_look_at_open_the_breaker
-    circuit_breakers.move_all_breakers()
+    circuit_breakers.move_breakers([])
the-parking-queue-is-told-while-all-is-stopped: test_the_parking_queue_is_told_nothing_while_its_dlq_is_stopped
-    if stops.stop_of(dlq.pk) is not None or stops.stop_of(None) is not None:
+    if stops.stop_of(dlq.pk) is not None:
nothing-is-extended: test_copies_of_letters_under_way_stay_out_of_sight_for_longer_once
-    while found := capture_lease.copies_to_extend(dlq.pk, within=within, limit=_GROUP):
+    while found := capture_lease.copies_to_extend(dlq.pk, within=within, limit=0):
@tests/reprocessing/pipeline/parking_lot/test_parking_queue.py
what-was-read-long-ago-is-told: test_what_a_sweep_read_before_it_froze_is_not_told_after_what_came_later
-may_start=lambda: clock() < until)
+may_start=lambda: until > 0)
@tests/reprocessing/pipeline/safety/test_automatic_redrive_heals.py
targets-are-never-given-up: test_a_target_that_stays_down_pauses_the_run
-    delete_copies.delete_from_dlqs(failing_targets.give_up_on_failing_targets().deletable)
+    delete_copies.delete_from_dlqs(())
loops-go-round: test_a_redrive_loop_pauses_the_run
-    redrive_loops.pause_looping_runs()
+    pass

@reprocessing/store/maintenance/restore_hold.py
@tests/reprocessing/pipeline/maintenance/test_after_restore.py
a-hold-ends-before-all-is-in-sight: test_a_capture_that_ran_dry_before_all_is_in_sight_ends_no_hold
-coalesce(d.drained_through < h.since + %(hidden)b::interval, true)
+coalesce(d.drained_through < h.since, true)
what-died-since-the-hold-is-doubted:
    test_what_died_between_the_backup_and_the_hold_is_in_doubt_and_what_died_since_is_not
-AND l.first_sent_at < h.since
+
@tests/reprocessing/store/notifications/test_restore_events.py
a-second-restore-is-taken-for-the-first: test_a_second_restore_is_a_new_incident
-        conclude([_INCIDENT])  # an earlier restore's incident, which the backup may contain
+

@reprocessing/store/maintenance/retention.py
@tests/reprocessing/store/maintenance/test_retention.py
forgotten-while-a-copy-may-turn-up: test_a_copy_is_known_for_the_retention_and_a_day_after_its_deletion
-                        > redrive_now() - make_interval(secs => d.retention) - interval '1 day')
+                        > redrive_now())
forgotten-while-its-lane-waits-for-it: test_a_letter_is_not_deleted_while_its_lane_waits_for_it_to_come_back
-WHERE a.letter_id = l.id AND a.closed_at IS NULL)
+WHERE a.letter_id = l.id AND false)
a-purge-frees-a-held-key: test_a_letter_is_not_deleted_while_its_target_may_hold_a_copy
-   AND {COPY_UNTIL} IS NULL
+

@reprocessing/pipeline/maintenance/purge.py
@tests/reprocessing/pipeline/maintenance/test_purge.py
a-dlq-with-many-old-letters-holds-up-the-others: test_a_purge_ends_in_time_and_each_dlq_has_its_turn
-            waiting.append(step)
+            waiting.appendleft(step)
a-purge-that-ran-out-of-time-waits-an-hour: test_what_a_purge_left_is_purged_soon
-    task_hints.make_purge_due(within=seconds if left or failed else PURGE_EVERY, every=PURGE_EVERY)
+    task_hints.make_purge_due(within=PURGE_EVERY, every=PURGE_EVERY)
a-purge-hides-that-it-failed: test_rows_that_cannot_be_deleted_do_not_keep_other_rows_and_are_tried_again_soon
-    if failed:
+    if failed and left:
a-purge-that-was-killed-waits-an-hour: test_after_a_purge_that_did_not_end_the_next_begins_soon
-    task_hints.make_purge_due(within=2 * seconds, every=PURGE_EVERY)
+
a-purge-that-ends-early-forgets-which-bodies-are-deleted:
    test_a_purge_that_ends_early_records_how_far_bodies_are_deleted
-    body_retention.store_deleted_through(dlq)
+

@reprocessing/store/maintenance/schema.py
@tests/reprocessing/store/maintenance/test_schema.py
a-guard-that-was-switched-off-is-well: test_dropped_and_disabled_parts_are_named
- WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND
+ WHERE NOT t.tgisinternal AND

@reprocessing/store/maintenance/body_retention.py
@tests/reprocessing/store/maintenance/test_body_retention.py
a-letter-whose-attempt-is-open-loses-its-body:
    test_a_letter_with_an_open_attempt_keeps_its_body_until_the_attempt_is_closed
-   AND NOT EXISTS (SELECT FROM redrive_attempt a WHERE a.letter_id = l.id AND a.closed_at IS NULL)
+
""")
