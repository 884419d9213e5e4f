"""People are told, once, and of no secret."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/domain/notifications/destination.py
@tests/reprocessing/domain/notifications/test_destination.py
apprise-posts-unsigned: test_what_cannot_be_used_is_refused_without_a_word_of_it
-    if schema not in SCHEMAS:
+    if schema == "":

@reprocessing/domain/notifications/event.py
@tests/reprocessing/domain/notifications/test_event.py
facts-of-anything: test_a_fact_that_no_text_knows_is_refused
-if unknown := self.facts.keys() - needed - useful:
+if unknown := set[str]():
@tests/reprocessing/store/notifications/test_outbox.py
a-run-that-stops-again-is-told-to-nobody: test_a_condition_that_cannot_flap_and_recurs_is_a_new_incident
-self not in _MOMENTS | _ENDED_BY_A_PERSON
+self not in _MOMENTS

@reprocessing/domain/notifications/limits.py
@tests/reprocessing/pipeline/notifications/test_deliver.py
texts-without-limit: test_twenty_texts_an_hour_and_the_rest_in_one
-    if len(newest) < PER_HOUR:
+    if len(newest) <= PER_HOUR:

@reprocessing/domain/notifications/text.py
@tests/reprocessing/domain/notifications/test_text.py
a-breaker-is-told-under-another-title: test_what_is_urgent_and_new_is_the_title_before_what_is_urgent_and_what_can_wait
-_TONES.index(_tone(section)), _STAGES.index(section.stage)
+_TONES.index(_tone(section)), -_STAGES.index(section.stage)
a-command-with-a-placeholder: test_the_text_of_a_breaker_that_opened
-return wording.person if _names(wording.person) <= facts.keys() else wording.person_without
+return wording.person_without or wording.person

@reprocessing/pipeline/notifications/send.py
@tests/reprocessing/pipeline/notifications/test_deliver.py
library-tells-its-url: test_what_a_library_says_when_it_fails_is_not_told
-return Failed(f"sending failed: {type(error).__name__}")
+return Failed(f"sending failed: {error}")

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
""")
