"""Notifications: whom they tell, when, and of what."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/domain/notifications/dlq_growth.py
@tests/reprocessing/pipeline/notifications/test_conditions.py
growth-is-over-because-nobody-took-notes: test_growth_is_over_when_notes_say_so_and_not_when_nobody_took_any
-        return GrowthUnknown()
-    first
+        return NotGrowing()
+    first

@reprocessing/domain/notifications/event.py
@tests/reprocessing/domain/notifications/test_event.py
facts-of-anything: test_a_fact_that_no_text_knows_is_refused
-if unknown := self.facts.keys() - needed - useful:
+if unknown := set[str]():
@tests/reprocessing/store/notifications/test_outbox.py
a-run-that-stops-again-is-told-to-nobody: test_a_condition_that_cannot_flap_and_recurs_is_a_new_incident
-self not in _MOMENTS | _ENDED_BY_A_PERSON
+self not in _MOMENTS

@reprocessing/domain/notifications/heartbeat.py
@tests/reprocessing/domain/notifications/test_heartbeat.py
a-suspended-machine-cries: test_a_machine_that_was_suspended_has_watched_nothing_meanwhile
-    step = min(elapsed, longest)
+    step = elapsed

@reprocessing/domain/notifications/text.py
@tests/reprocessing/domain/notifications/test_text.py
a-breaker-is-told-under-another-title: test_what_is_urgent_and_new_is_the_title_before_what_is_urgent_and_what_can_wait
-_TONES.index(_tone(section)), _STAGES.index(section.stage)
+_TONES.index(_tone(section)), -_STAGES.index(section.stage)

@reprocessing/pipeline/notifications/checkup.py
@tests/reprocessing/pipeline/notifications/test_checkup.py
an-error-of-an-old-name-stays-for-ever: test_an_error_of_a_part_that_there_is_no_more_is_over
-if of_dlq == dlq and subject not in looked]
+if subject is None]
what-the-doctor-cannot-see-is-well: test_an_error_is_told_once_without_what_aws_answered_and_concluded_when_it_is_gone
-        elif FindingSeverity.UNKNOWN not in severities:
+        else:

@reprocessing/store/outcomes/pending_outcomes.py
@tests/reprocessing/pipeline/notifications/test_conditions.py
a-capture-that-is-due-tomorrow-is-overdue: test_a_run_whose_outcomes_no_capture_proves_is_told_of
-    return None if next_at is not None and next_at > pending.now + _LONG else needed
+    return needed

@reprocessing/store/dlqs/dlq_status.py
@tests/reprocessing/pipeline/notifications/test_conditions.py
messages-of-a-stopped-automatic-dlq-expire-unseen:
    test_messages_that_nobody_captures_are_told_of_a_day_before_sqs_deletes_them
-    return watch.mode == Mode.AUTOMATIC and watch.stopped_at is None
+    return watch.mode == Mode.AUTOMATIC

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
-    return watch.captured_until is not None
+    return False

@reprocessing/pipeline/notifications/send.py
@tests/reprocessing/pipeline/notifications/test_deliver.py
library-tells-its-url: test_what_a_library_says_when_it_fails_is_not_told
-return Failed(f"sending failed: {type(error).__name__}")
+return Failed(f"sending failed: {error}")

@reprocessing/pipeline/notifications/silence.py
@tests/reprocessing/test_watchdog.py
workers-of-an-old-queue-name-are-silent-for-ever:
    test_workers_that_are_back_under_another_name_of_the_queue_end_the_incident_of_the_old_name
-        over |= open_incidents((EventKind.WORKERS_SILENT,))
+        pass

@reprocessing/store/notifications/group_events.py
@tests/reprocessing/store/notifications/test_group_events.py
a-group-has-the-messages-that-it-had: test_the_text_about_a_group_has_its_title_and_current_count
-        if counted.state in _UNFINISHED:
+        if counted.state:

@reprocessing/store/notifications/notification_writer.py
@tests/reprocessing/pipeline/notifications/test_deliver.py
events-without-their-dlqs: test_events_go_where_their_route_says
-WHERE m.notificationroute_id = r.id AND m.deadletterqueue_id = d.dlq_id
+WHERE m.notificationroute_id = r.id

@reprocessing/store/notifications/outbox.py
@tests/reprocessing/store/notifications/test_outbox.py
an-incident-ends-before-its-beginning: test_an_incident_does_not_end_before_its_beginning_when_the_clock_is_set_back
-ended_at = greatest(k.now, i.opened_at)
+ended_at = k.now
a-flapping-breaker-is-told-to-nobody: test_a_condition_that_flaps_for_over_10_seconds_is_notified_once_and_its_end_once
-    if new:
+    if not new:
long-enough-and-over-is-told-to-nobody: test_a_condition_that_outlasted_its_settling_time_is_notified_though_it_ended
-                     WHEN i.due_at <= k.now THEN i.due_at END
+                     END
a-flapping-breaker-is-told-as-closed: test_a_condition_that_flaps_for_over_10_seconds_is_notified_once_and_its_end_once
-THEN k.now + make_interval(secs => %(resumes)b::float8) ELSE k.now END
+THEN k.now ELSE k.now END

@reprocessing/store/notifications/routes.py
@tests/reprocessing/commands/notifications/test_notifications.py
no-event-is-every-event: test_what_cannot_be_set_is_refused
-    if not wanted:
+    if not wanted:
+        return ()
+    if not wanted:
all-and-some-events-are-some: test_what_cannot_be_set_is_refused
-    if "all" in wanted:
+    wanted -= {"all"}
+    if "all" in wanted:

@reprocessing/store/notifications/run_events.py
@tests/reprocessing/store/notifications/test_run_events.py
a-run-takes-less-than-no-time: test_a_finished_run_took_no_time_when_the_clock_is_set_back
-max(round(run.seconds), 0)
+round(run.seconds)

@reprocessing/store/notifications/sending.py
@tests/reprocessing/pipeline/notifications/test_deliver.py
destination-without-lease: test_two_senders_at_the_same_time_never_take_the_same_destination
- AND (r.leased_until IS NULL OR r.leased_until <= redrive_now())
+
destination-without-fence: test_two_senders_at_the_same_time_never_take_the_same_destination
- WHERE id = %(route)b AND fence = %(fence)b
+ WHERE id = %(route)b AND fence >= %(fence)b
a-text-marks-what-it-does-not-tell: test_a_text_marks_what_it_tells_and_not_what_was_filed_before_it_and_committed_after
-id = ANY(%(ids)b::bigint[])
+id <= (SELECT max(told) FROM unnest(%(ids)b::bigint[]) told)
a-pager-waits-for-a-minute: test_an_urgent_event_goes_ten_seconds_after_a_text_and_others_wait_for_a_minute
-AND i.ended_at IS NULL AND i.kind = ANY(%(urgent)b::text[])
+AND i.ended_at IS NULL AND false AND i.kind = ANY(%(urgent)b::text[])
nothing-can-wait: test_an_urgent_event_goes_ten_seconds_after_a_text_and_others_wait_for_a_minute
-if kind.is_urgent],
+if kind],

@reprocessing/store/notifications/stalled_runs.py
@tests/reprocessing/pipeline/notifications/test_conditions.py
a-run-behind-an-open-breaker-stalls: test_a_run_that_somebody_stopped_or_that_rests_does_not_stand_still
-     WHERE h.obstacle IN ('', '{_UNHEALTHY}')
+
""")
