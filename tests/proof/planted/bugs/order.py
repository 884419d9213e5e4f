"""In order, and one at a time: heads, sequences, stale letters, whole lanes."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/domain/ordering/placement.py
@tests/reprocessing/domain/ordering/test_placement.py
numbers-sorted-as-texts: test_numbers_stand_in_the_order_of_their_values
-    key = _number_key(number) if number else _TEXT + text
+    key = _TEXT + text

@reprocessing/gateways/sqs/batch_requests.py
@tests/reprocessing/gateways/sqs/test_sending_kinds.py
a-group-goes-on-behind-its-failure: test_after_a_failure_no_later_request_carries_the_groups_next_letter
-            if self._way.fifo and not isinstance(outcome, Taken):
+            if self._way.fifo and outcome is None:

@reprocessing/models/target.py
@tests/reprocessing/pipeline/replay/test_last_attempts.py
a-last-attempt-of-unknown-end-holds-nothing: test_the_next_letter_waits_while_the_copy_may_come_back
-        return self.proof != Proof.ACCEPTED and self.advance == Advance.SETTLED
+        return False

@reprocessing/pipeline/outcomes/resolve_outcomes.py
a-lane-waits-for-ever-for-a-last-attempt: test_the_next_letter_waits_while_the_copy_may_come_back
-        *evidence.outlasted_attempts(count_lag=lag, limit=_GROUP),
-        *acknowledgements.outlasted_unwatched_attempts(limit=_GROUP),
+        *acknowledgements.outlasted_unwatched_attempts(limit=0),

@reprocessing/pipeline/replay/gate.py
@tests/reprocessing/pipeline/runs/test_plan.py
stale-letters-go: test_a_stale_letter_is_parked_and_a_person_s_release_sends_it_once
-    if standing.stale and standing.never_sent and not standing.released and standing.stale_policy == "
+    if standing.stale is None and standing.stale_policy == "

@reprocessing/pipeline/replay/lease_lanes.py
@tests/race/test_a_wake_up.py
next-is-asked-before-the-lock: test_a_letter_released_while_its_lane_s_head_is_gone_goes
-        lanes.lock(ids, fences)
-        return lanes.advance(ids, fences, keep=True
+        return lanes.advance(ids, fences, keep=True

@reprocessing/pipeline/replay/settle.py
@tests/race/test_lanes.py
letters-moved-before-their-lanes-are-locked: test_lanes_are_locked_before_their_letters_are_moved
-mine = lanes.lock([attempt.lane_id for attempt in ordered], [attempt.fence for attempt in ordered])
+mine = {attempt.lane_id for attempt in ordered}

@reprocessing/pipeline/runs/feed_run.py
@tests/race/test_captures.py
what-is-being-captured-goes: test_letters_of_an_unfinished_capture_are_enlisted_when_it_has_run_dry
-        return plan.enlist(dlq, run, through=through, s
+        del through
+        return plan.enlist(dlq, run, s
@tests/reprocessing/pipeline/runs/test_feed_run.py
enlisted-before-the-dlq-ran-dry: test_nothing_is_enlisted_before_the_dlq_has_run_dry
-        if dlq.mode == Mode.AUTOMATIC and gathered.captured.drained:
+        if dlq.mode == Mode.AUTOMATIC:

@reprocessing/pipeline/runs/plan.py
@tests/reprocessing/pipeline/runs/test_plan.py
enlisted-in-parts: test_enlisting_is_all_or_nothing
-        return enlistment.enlist_letters(dlq.pk, run.pk)
-
-    return rows.in_transaction(work)
+        return enlistment.enlist_letters(dlq.pk, run.pk)
+
+    return work()

@reprocessing/store/ordering/lanes.py
@tests/race/test_heads.py
a-head-that-comes-again-waits-for-nobody: test_a_letter_released_before_one_that_was_sent_waits_for_its_outcome
-                 WHERE a.lane_id = m.lane_id AND a.holds_lane) IS NOT NULL AS awaits
+                 WHERE false) IS NOT NULL AS awaits
@tests/reprocessing/pipeline/replay/test_replay_slice.py
lanes-wait-for-no-outcome: test_a_lane_sends_one_letter_at_a_time
-           h.state = 'awaiting' OR (
-                SELECT a.deadline FROM redrive_attempt a
-                 WHERE a.lane_id = m.lane_id AND a.holds_lane) IS NOT NULL AS awaits
+           false AS awaits
@tests/reprocessing/pipeline/replay/test_settle.py
a-held-head-goes: test_a_parked_head_holds_its_lane_if_the_dlq_says_so
-           (d.when_parked = 'hold' AND (
+           (false AND (
@tests/reprocessing/pipeline/runs/test_plan.py
heads-by-arrival: test_what_arrived_in_the_wrong_order_goes_in_the_right_one
-ORDER BY l.sequence, l.message_id LIMIT 1) h ON true
+ORDER BY l.captured_at, l.id LIMIT 1) h ON true
delivered-sequences-are-not-remembered: test_a_stale_letter_is_parked_and_a_person_s_release_sends_it_once
-SET highest_sent_sequence = greatest(n.highest_sent_sequence, head.passed), run_id = head.run_id
+SET highest_sent_sequence = n.highest_sent_sequence, run_id = head.run_id
a-lane-passes-backwards: test_what_is_sent_late_by_a_person_s_release_makes_no_later_letter_fresh_again
-SET highest_sent_sequence = greatest(n.highest_sent_sequence, head.passed), run_id = head.run_id
+SET highest_sent_sequence = coalesce(head.passed, n.highest_sent_sequence), run_id = head.run_id
what-earlier-tools-tried-is-never-stale: test_a_stale_letter_that_earlier_tools_have_tried_is_parked_all_the_same
-l.attempts + l.not_sent = l.earlier AS never_sent
+l.attempts + l.not_sent = 0 AS never_sent

@reprocessing/store/ordering/orphaned_lanes.py
@tests/reprocessing/pipeline/replay/test_last_attempts.py
a-dead-worker-s-last-attempt-holds-nothing: test_the_next_letter_waits_while_the_copy_may_come_back
->= d.max_attempts AND {OUTLASTS} AS lasts
+>= d.max_attempts AND false AS lasts
@tests/reprocessing/pipeline/runs/test_plan.py
sequences-of-unknown-fate-are-not-remembered: test_what_perhaps_went_out_makes_an_earlier_letter_stale
-SET highest_sent_sequence = greatest(n.highest_sent_sequence, f.sequence)
+SET highest_sent_sequence = n.highest_sent_sequence

@reprocessing/store/parking_lot/decisions.py
@tests/reprocessing/pipeline/replay/test_last_attempts.py
a-discard-leaves-the-key-of-what-is-on-its-way: test_a_discard_keeps_its_key_while_a_copy_may_come_back
-     WHERE c.state = 'free' OR (c.state = 'held' AND c.letter_id = excluded.letter_id)
+     WHERE c.state = 'free'

@reprocessing/store/parking_lot/restore_discarded.py
a-restore-frees-the-key-of-what-is-on-its-way: test_a_restored_letter_keeps_its_key_while_a_copy_may_come_back
-CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END
+'free'

@reprocessing/store/replay/intent.py
@tests/race/test_heads.py
a-head-that-is-one-no-longer-goes: test_an_earlier_letter_that_returned_meanwhile_goes_first
-       AND l.id = (SELECT h.id FROM redrive_letter h
+       AND l.id >= (SELECT h.id FROM redrive_letter h
@tests/reprocessing/pipeline/replay/test_replay_slice.py
intent-beside-an-attempt-that-holds-the-lane:
    test_no_letter_is_intended_while_an_attempt_of_a_former_head_holds_the_lane
-       AND (SELECT a.id FROM redrive_attempt a WHERE a.lane_id = m.lane_id AND a.holds_lane) IS NULL
+

@reprocessing/store/replay/settlement_effects.py
@tests/reprocessing/pipeline/replay/test_an_earlier_attempt_of_unknown_end.py
a-lane-passes-backwards-when-it-is-told: test_a_late_released_letter_leaves_the_order_as_it_was
- AND coalesce(n.highest_sent_sequence < f.sequence, f.sequence IS NOT NULL)
+ AND f.sequence IS NOT NULL
@tests/reprocessing/pipeline/replay/test_last_attempts.py
a-key-that-is-left-behind-stays-held: test_a_twin_goes_when_the_copy_of_a_changed_letter_is_back
-     WHERE c.letter_id = x.letter_id AND c.state = 'held'
+     WHERE false AND c.letter_id = x.letter_id AND c.state = 'held'

@reprocessing/store/runs/enlistment.py
@tests/race/test_enlistment.py
enlisted-beside-whoever-moves-the-lanes:
    test_lanes_are_locked_in_the_order_of_their_ids_whatever_order_their_letters_failed_in
-    rows.execute(_LOCK_LANES, values)
+
@tests/reprocessing/pipeline/replay/test_precedence.py
an-earlier-letter-waits-for-the-later-one: test_an_earlier_letter_does_not_wait_for_a_paused_run_of_a_later_one
-    new_heads.move_to_new_heads(found.ahead)
+
@tests/reprocessing/pipeline/runs/test_plan.py
fresh-lanes-keep-no-quiet: test_a_fresh_lane_of_a_key_keeps_quiet_and_a_single_one_does_not
-       CASE WHEN bool_and(l.single) THEN redrive_now()
+       CASE WHEN true THEN redrive_now()
@tests/reprocessing/store/runs/test_run_transitions.py
a-plan-that-died-keeps-its-lanes: test_the_next_run_adopts_what_a_plan_adopted_whose_start_crashed
-(SELECT h.state FROM redrive_run h WHERE h.id = %(run)b) = 'running'
+false

@reprocessing/store/runs/selection.py
@tests/race/test_enlistment.py
plans-take-no-turns: test_of_two_plans_at_once_neither_has_letters_behind_those_of_the_other
-    lock_selection(dlq)
-    return rows.fetch(SelectedCount
+    return rows.fetch(SelectedCount
@tests/reprocessing/store/runs/test_selection.py
a-selection-waits-for-another-source-s-key: test_equal_keys_of_two_sources_are_two_lanes
-PARTITION BY source_id, lane ORDER BY sequence, message_id) AS leads,
+PARTITION BY lane ORDER BY sequence, message_id) AS leads,
a-selection-dates-lanes-by-another-source-s-key: test_equal_keys_of_two_sources_are_two_lanes
-min(first_sent_at) OVER (PARTITION BY source_id, lane) AS first
+min(first_sent_at) OVER (PARTITION BY lane) AS first
an-instalment-waits-for-another-source-s-key: test_equal_keys_of_two_sources_are_two_lanes
-PARTITION BY source_id, lane ORDER BY sequence, message_id) AS leads
-      F
+PARTITION BY lane ORDER BY sequence, message_id) AS leads
+      F

@reprocessing/store/safety/send_limits.py
@tests/race/test_heads.py
an-intent-sees-its-lane-as-it-was: test_an_earlier_letter_that_returns_at_the_same_moment_goes_first
-     ORDER BY n.id FOR UPDATE OF n
-)
-SELECT count(*) AS n FROM ours
+     ORDER BY n.id
+)
+SELECT count(*) AS n FROM ours
""")
