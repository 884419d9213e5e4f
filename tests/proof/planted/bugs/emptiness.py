"""What a target that is seen empty proves, and what it does not (docs/adr/0029)."""

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

@reprocessing/store/outcomes/evidence.py
one-look-is-enough: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
-PAUSE: Final[LiteralString] = "make_interval(secs => %(count_lag)b::float8)"
+PAUSE: Final[LiteralString] = "make_interval(secs => 0 * %(count_lag)b::float8)"
the-pause-begins-with-the-first-question: test_the_pause_begins_when_the_first_look_was_answered
-               AND {FROM} + {PAUSE} <= again.seen_at
+               AND s.seen_at + {PAUSE} <= again.seen_at
empty-before-sqs-counts: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
-a.taken_at + make_interval(secs => %(count_lag)b::float8) <= quiet.seen_at
+a.taken_at <= quiet.seen_at
a-capture-before-the-second-look-is-enough: test_the_capture_begins_after_the_second_look_was_answered
-AND s.seen_at <= d.drained_through AND {TOLD} <= d.drained_through
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
-s.target_id = t.id AND s.idle_since + {PAUSE} <= s.seen_at
+s.target_id = t.id
a-first-look-that-finds-messages: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
-s.empty AND s.seen_at <= again.seen_at
+s.seen_at <= again.seen_at
a-second-look-that-finds-messages: test_two_empty_looks_or_a_window_without_visible_messages_prove_absence
-s.empty AND s.seen_at <= d.drained_through
+s.seen_at <= d.drained_through
""")
