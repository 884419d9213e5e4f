"""Nobody is told, or too often, or with words of a message: what announces and concludes incidents."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/domain/notifications/dlq_growth.py
@tests/reprocessing/domain/notifications/test_dlq_growth.py
growth-is-compared-with-now: test_whether_one_still_grows_is_not_known_without_a_note_of_halfway
-halfway.seconds_ago < within * _HALFWAY
+halfway.seconds_ago < 0
@tests/reprocessing/pipeline/notifications/test_conditions.py
growth-is-over-because-nobody-took-notes: test_growth_is_over_when_notes_say_so_and_not_when_nobody_took_any
-        return GrowthUnknown()
-    first
+        return NotGrowing()
+    first

@reprocessing/domain/notifications/heartbeat.py
@tests/reprocessing/domain/notifications/test_heartbeat.py
who-has-only-begun-to-watch-cries: test_who_has_only_begun_to_watch_knows_nothing_however_old_the_signs_are
-        return True if watched >= silent_for else None
+        return True
a-suspended-machine-cries: test_a_machine_that_was_suspended_has_watched_nothing_meanwhile
-    step = min(elapsed, longest)
+    step = elapsed

@reprocessing/domain/notifications/hysteresis.py
@tests/reprocessing/domain/notifications/test_hysteresis.py
a-condition-flaps: test_a_condition_opens_above_its_threshold_and_closes_below_three_quarters_of_it
-value >= threshold * BACK if is_open else value > threshold
+value > threshold
@tests/reprocessing/pipeline/notifications/test_conditions.py
as-many-as-the-threshold-are-more: test_no_more_than_the_threshold_are_none_and_the_next_dlq_is_an_incident_of_its_own
-else value > threshold
+else value >= threshold

@reprocessing/pipeline/notifications/checkup.py
@tests/reprocessing/pipeline/notifications/test_checkup.py
an-error-of-an-old-name-stays-for-ever: test_an_error_of_a_part_that_there_is_no_more_is_over
-        if of_dlq in checked and subject not in looked:
+        if subject is None:
what-the-doctor-cannot-see-is-well: test_an_error_is_told_once_without_what_aws_answered_and_concluded_when_it_is_gone
-        elif FindingSeverity.UNKNOWN not in grades:
+        else:

@reprocessing/pipeline/notifications/conditions.py
@tests/reprocessing/pipeline/notifications/test_conditions.py
an-outage-of-all-workers-stalls-every-run: test_a_run_does_not_stand_still_because_all_workers_were_away
-    if back_for < min(long, _BACK_FOR):
+    if back_for < 0:
a-stalled-run-is-over-because-nobody-looked:
    test_a_run_that_stood_still_before_all_workers_were_away_is_not_told_as_over
-(NotKnown(*place) for place in is_open if place[0] is EventKind.RUN_STALLED)
+_all_of((EventKind.RUN_STALLED,), [], is_open)
a-capture-that-began-ends-an-expiry: test_messages_still_expire_while_a_capture_has_not_said_yet_what_it_captured
- if watch.mode == Mode.AUTOMATIC or not watch.captured_until)
+)

@reprocessing/pipeline/notifications/silence.py
@tests/reprocessing/test_watchdog.py
workers-of-an-old-queue-name-are-silent-for-ever:
    test_workers_that_are_back_under_another_name_of_the_queue_end_the_incident_of_the_old_name
-        over |= open_incidents((EventKind.WORKERS_SILENT,))
+        pass

@reprocessing/store/maintenance/restore_hold.py
@tests/reprocessing/store/notifications/test_restore_events.py
a-second-restore-is-taken-for-the-first: test_a_second_restore_is_a_new_incident
-        conclude([_INCIDENT])  # of an earlier restore, which was notified before the backup
+

@reprocessing/store/notifications/stalled_runs.py
@tests/reprocessing/pipeline/notifications/test_conditions.py
a-run-behind-an-open-breaker-stalls: test_a_run_that_somebody_stopped_or_that_rests_does_not_stand_still
-     WHERE h.obstacle IN ('', '{_UNHEALTHY}')
+

@reprocessing/store/parking_lot/failure_groups.py
@tests/reprocessing/store/notifications/test_group_events.py
a-group-that-is-there-is-told-as-new: test_grouping_into_existing_groups_runs_five_statements
-announce_groups([group for group in put if group.new] + reopened)
+announce_groups(put + reopened)

@reprocessing/store/runs/progress.py
@tests/reprocessing/store/notifications/test_run_events.py
a-run-finishes-in-silence: test_a_finished_run_is_announced_once_with_its_counts
-        announce_finished(finished)
+

@reprocessing/store/runs/run_transitions.py
a-resumed-run-stays-an-incident: test_a_run_that_pauses_itself_is_announced_once_and_concluded_when_resumed
-        conclude_standstills([run])
+        pass

@reprocessing/store/safety/circuit_breakers.py
@tests/reprocessing/store/notifications/test_breaker_events.py
a-breaker-opens-in-silence: test_of_four_concurrent_checks_one_announces_the_opening
-    announce_opened([OpenedBreaker(
+    list([OpenedBreaker(
an-opening-is-committed-before-it-is-announced: test_an_opening_and_its_announcement_are_committed_together
-rows.in_transaction(move_all) if any(move.state != move.row.state for move in wanted) else move_all()
+move_all()
a-closed-breaker-stays-an-incident: test_closing_a_breaker_ends_the_incident_and_reopening_continues_it
-    conclude_closed([move.row.id for move in moved if move.state == BreakerState.CLOSED])
+

@reprocessing/store/safety/paused_runs.py
@tests/reprocessing/store/notifications/test_run_events.py
a-notification-quotes-an-answer: test_the_incident_of_a_run_that_gives_up_a_target_quotes_no_answer
-why=why if told is None else told
+why=why

@reprocessing/watchdog.py
@tests/reprocessing/test_watchdog.py
nobody-delivers-the-silence: test_workers_that_fall_silent_are_one_incident_that_the_others_deliver_and_conclude
-            start_delivery(view)
+            pass
""")
