"""What is believed of a sent message."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/pipeline/outcomes/resolve_outcomes.py
@tests/reprocessing/pipeline/outcomes/test_empty_target.py
delayed-messages-are-not-there: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
-            empty = found.visible == 0 and found.delayed == 0
+            empty = found.visible == 0
messages-in-flight-are-not-there: test_a_message_in_flight_for_longer_than_the_window_is_awaited
-quiet=empty and found.in_flight == 0))
+quiet=empty))
@tests/reprocessing/pipeline/outcomes/test_resolve_outcomes.py
copies-of-promoted-letters-deleted-before-their-commit: test_a_promotion_that_is_rolled_back_deletes_nothing
-        deletable = close([attempt.attempt_id for attempt in found])
+        deletable = close([attempt.attempt_id for attempt in found])
+        delete_copies.delete_from_dlqs(deletable)
a-target-that-holds-letters-is-consumed: test_a_target_with_messages_is_no_evidence
-            empty = found.visible == 0 and found.delayed == 0
+            empty = found.delayed == 0
@tests/reprocessing/pipeline/replay/test_last_attempts.py
a-lane-waits-for-ever-for-a-last-attempt: test_the_next_letter_waits_while_the_copy_may_come_back
-        *evidence.outlasted_attempts(count_lag=lag, limit=_GROUP),
-        *acknowledgements.outlasted_unwatched_attempts(limit=_GROUP),
+        *acknowledgements.outlasted_unwatched_attempts(limit=0),

@reprocessing/store/outcomes/evidence.py
@tests/reprocessing/pipeline/outcomes/test_empty_target.py
one-look-is-enough: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
-COUNT_PAUSE: Final[LiteralString] = "make_interval(secs => %(count_lag)b::float8)"
+COUNT_PAUSE: Final[LiteralString] = "make_interval(secs => 0 * %(count_lag)b::float8)"
the-pause-begins-with-the-first-question: test_the_pause_begins_when_the_first_look_was_answered
-               AND {PAUSE_BEGINS} + {COUNT_PAUSE} <= again.seen_at
+               AND s.seen_at + {COUNT_PAUSE} <= again.seen_at
empty-before-sqs-counts: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
-a.taken_at + make_interval(secs => %(count_lag)b::float8) <= quiet.seen_at
+a.taken_at <= quiet.seen_at
a-capture-before-the-second-look-is-enough: test_the_capture_begins_after_the_second_look_was_answered
-AND s.seen_at <= d.drained_through AND {LOOK_ANSWERED_AT} <= d.drained_through
+AND d.drained_through IS NOT NULL
looks-in-between-do-not-matter: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
- WHERE q.empty OR latest.empty
+ WHERE q.empty
every-look-that-finds-messages-is-kept: test_only_the_first_look_that_finds_messages_is_noted
- WHERE q.empty OR latest.empty
+ WHERE true
empty-in-front-of-a-dlq-that-is-observed: test_an_empty_target_of_an_observed_dlq_proves_nothing
-ON d.id = t.watched_by_id AND d.mode <> 'observe'
+ON d.id = t.watched_by_id
an-empty-target-acknowledges: test_a_consumer_has_its_window_to_acknowledge
-   AND (t.proof <> 'acknowledged' OR a.deadline <= quiet.drained_through)
+
a-look-of-before-messages-were-found: test_a_look_before_messages_were_found_does_not_count
-s.idle_since >= again.idle_since
+s.idle_since IS NOT NULL
a-later-look-takes-a-proof-back: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
-s.target_id = t.id AND s.idle_since + {COUNT_PAUSE} <= s.seen_at
+s.target_id = t.id
a-first-look-that-finds-messages: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
-s.empty AND s.seen_at <= again.seen_at
+s.seen_at <= again.seen_at
a-second-look-that-finds-messages: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
-s.empty AND s.seen_at <= d.drained_through
+s.seen_at <= d.drained_through
@tests/reprocessing/pipeline/outcomes/test_resolve_outcomes.py
promoted-without-a-drained-dlq: test_a_letter_is_not_presumed_delivered_before_its_deadline
-AND a.deadline <= seen.drained_through
+AND a.deadline <= redrive_now()
promoted-without-a-capture-after-the-sighting: test_the_evidence_of_absence
-AND s.seen_at <= again.seen_at - {WINDOW_PAUSE}
-               AND {PAUSE_BEGINS} + {WINDOW_PAUSE} <= again.seen_at
+AND {PAUSE_BEGINS} <= again.seen_at
promoted-though-it-is-not-counted-as-visible-yet: test_looks_are_at_least_a_visibility_timeout_and_a_count_lag_apart
-greatest(t.window, t.visibility + %(count_lag)b::float8)
+greatest(t.window, 0 * %(count_lag)b::float8)
a-look-is-over-with-its-question: test_a_look_may_be_as_late_as_its_answer
-LOOK_ANSWERED_AT: Final[LiteralString] = "s.seen_at + make_interval(secs => s.took)"
+LOOK_ANSWERED_AT: Final[LiteralString] = "s.seen_at"
promoted-by-a-capture-before-the-second-sighting: test_a_letter_that_fails_after_the_capture_is_not_presumed_delivered
-s.empty AND s.seen_at <= d.drained_through
-                            AND {LOOK_ANSWERED_AT} <= d.drained_through
+s.empty
promoted-on-one-sighting: test_a_letter_that_is_visible_in_its_target_is_not_presumed_delivered
-AND s.seen_at <= again.seen_at - {WINDOW_PAUSE}
-               AND {PAUSE_BEGINS} + {WINDOW_PAUSE} <= again.seen_at
+AND {PAUSE_BEGINS} + {WINDOW_PAUSE} <= d.drained_through
promoted-before-sqs-counts: test_the_evidence_of_absence
-   AND a.taken_at + make_interval(secs => %(count_lag)b::float8) <= seen.seen_at
-) by_window
+   AND a.taken_at - make_interval(secs => %(count_lag)b::float8) <= seen.seen_at
+) by_window
promoted-by-a-dlq-that-is-observed: test_an_observed_dlq_proves_nothing
-     WHERE d.mode <> 'observe'
+     WHERE d.mode <> ''
@tests/reprocessing/store/test_hot_path.py
every-look-is-read-to-forget-the-old-ones (alone): test_the_reads_of_a_statement_do_not_grow_with_the_run
-             WHERE s.target_id = t.id
-               AND
+             WHERE s.target_id + 0 = t.id
+               AND

@reprocessing/store/outcomes/acknowledgements.py
@tests/reprocessing/pipeline/capture/test_returned_copies.py
a-report-makes-a-letter-without-a-body-wait:
    test_a_late_report_of_failure_waits_for_the_message_itself_where_the_body_was_deleted
- AND (NOT said.failed OR l.body_deleted_at IS NULL)
+
@tests/reprocessing/pipeline/replay/test_last_attempts.py
an-acknowledged-last-attempt-is-a-reported-failure:
    test_a_last_attempt_that_fails_after_its_acknowledgement_parks_its_letter
- WHEN a.counts_as_failure THEN 'unknown'
+
an-acknowledgement-rewrites-what-the-breaker-counted: test_a_consumer_may_acknowledge_a_last_attempt_without_a_reply
-CASE WHEN a.outcome = 'unknown' OR a.counts_as_failure THEN
+CASE WHEN a.outcome = 'unknown' THEN

@reprocessing/store/outcomes/evidence.py
@tests/reprocessing/pipeline/outcomes/test_empty_target.py
two-looks-that-may-both-miss-a-message-are-enough: test_four_looks_in_a_row_must_find_the_target_empty
-               AND {ENOUGH_LOOKS}
+
""")
