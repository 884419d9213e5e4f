"""Whose a lane is, and whose a dlq: leases and fences."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/pipeline/aws/native_redrive.py
@tests/race/test_native_redrive.py
a-list-ends-what-was-claimed-since: test_an_answer_that_is_older_than_the_claim_ends_nothing
-    active = next((move for move in listed if move.is_active), None)
-    if own is None:
+    active, own = next((move for move in listed if move.is_active), None), aws_redrives.current(dlq.pk)
+    if own is None:

@reprocessing/pipeline/replay/lease_keeper.py
@tests/reprocessing/pipeline/replay/test_lease_keeper.py
a-lost-lane-renews-the-others: test_after_a_lost_lane_the_first_lease_is_the_limit
-            if len(mine) == len(self._lanes):
+            if mine is not None:
a-lease-counts-from-the-wire: test_a_turn_that_froze_after_its_intent_sends_nothing
-        self.until = began + min([lease, *(attempt.lease_left for attempt in intended)]) - SEND_MARGIN
+        self.until = time.monotonic() + lease - SEND_MARGIN

@reprocessing/pipeline/replay/lease_lanes.py
@tests/reprocessing/pipeline/replay/test_replay_slice.py
a-dead-owner-s-attempt-stays-open: test_a_repeated_letter_has_the_same_identity
-    if inherited := [lane for lane in leased if lane.inherited]:
+    if inherited := []:

@reprocessing/pipeline/replay/settle.py
@tests/race/test_lanes.py
heads-closed-without-fence: test_an_owner_without_its_fence_closes_no_head
-ours = {lane: closing for lane, closing in closings.items() if lane[0] in mine}
+ours = dict(closings)
@tests/reprocessing/pipeline/replay/test_replay_slice.py
settled-without-fence: test_a_worker_that_lost_its_lane_moves_no_letter
-        ours = [attempt for attempt in ordered if attempt.lane_id in mine]
+        ours = list(ordered)

@reprocessing/store/capture/capture_lease.py
@tests/race/test_a_capture_loses_its_dlq.py
a-capture-ends-another-s: test_a_capture_that_lost_its_dlq_during_silence_has_drained_nothing
-ELSE drained_through END
- WHERE id = %(dlq)b AND fence = %(fence)b
+ELSE drained_through END
+ WHERE id = %(dlq)b
@tests/race/test_captures.py
two-capture-a-dlq: test_of_simultaneous_captures_one_leases_the_dlq
-WHERE id = %(dlq)b AND mode <> 'observe' AND coalesce(leased_until <= redrive_now(), true)
+WHERE id = %(dlq)b AND mode <> 'observe'
@tests/reprocessing/pipeline/capture/test_capture.py
a-capture-goes-on-without-its-dlq: test_a_capture_that_lost_its_lease_writes_nothing
-orphans_hidden_until = greatest(orphans_hidden_until, redrive_now() + make_interval(secs => %(dirty)b::float8))
- WHERE id = %(dlq)b AND fence = %(fence)b
+orphans_hidden_until = greatest(orphans_hidden_until, redrive_now() + make_interval(secs => %(dirty)b::float8))
+ WHERE id = %(dlq)b

@reprocessing/store/dlqs/schedule.py
@tests/reprocessing/test_tasks.py
a-turn-that-is-given-counts-as-had: test_a_turn_that_could_not_be_handed_over_is_given_again_a_minute_later
-                then = min(then, now + RETRY_AFTER)
+

@reprocessing/store/ordering/lanes.py
@tests/race/test_lanes.py
lock-without-fence: test_an_owner_without_its_fence_intends_renews_and_hands_back_nothing
- WHERE m.fence IS NULL OR (n.fence = m.fence AND n.phase = 'leased')
+ WHERE m.fence IS NULL OR n.phase = 'leased'
next-without-fence: test_an_owner_without_its_fence_intends_renews_and_hands_back_nothing
-ELSE n.fence = head.my_fence AND n.phase = 'leased' END
+ELSE n.phase = 'leased' END
renewal-without-fence: test_an_owner_without_its_fence_intends_renews_and_hands_back_nothing
- WHERE n.id = m.lane_id AND n.fence = m.fence AND n.phase = 'leased'
-RETURNING n.id AS lane_id
+ WHERE n.id = m.lane_id AND n.phase = 'leased'
+RETURNING n.id AS lane_id
handed-back-without-fence: test_an_owner_without_its_fence_intends_renews_and_hands_back_nothing
-breaker_id)
- WHERE n.id = m.lane_id AND n.fence = m.fence AND n.phase = 'leased'
+breaker_id)
+ WHERE n.id = m.lane_id AND n.phase = 'leased'
others-move-a-leased-lane: test_only_the_owner_moves_a_leased_lane
-CASE WHEN head.my_fence IS NULL THEN n.phase <> 'leased'
+CASE WHEN head.my_fence IS NULL THEN true
leases-that-do-not-last: test_a_lane_belongs_to_its_owner_until_the_lease_ends
-false)
-           AND due_at <= (SELECT redrive_now()) AND {{wanted}}
+false)
+           AND {{wanted}}
hinted-leases-that-do-not-last: test_a_lane_belongs_to_its_owner_until_the_lease_ends
- WHERE id = ANY(%(only)b::bigint[]) AND run_id IN ({KNOWN_RUNS}) AND due_at <= redrive_now()
+ WHERE id = ANY(%(only)b::bigint[]) AND run_id IN ({KNOWN_RUNS}) AND due_at IS NOT NULL
leases-wait-for-each-other: test_a_second_worker_waits_for_nobody
-ORDER BY breaker_id, due_at LIMIT %(limit)b FOR UPDATE SKIP LOCKED) d
+ORDER BY breaker_id, due_at LIMIT %(limit)b FOR UPDATE) d

@reprocessing/store/replay/intent.py
intent-without-fence: test_an_owner_without_its_fence_intends_renews_and_hands_back_nothing
-     WHERE n.fence = a.fence AND n.phase || '' = 'leased'
+     WHERE n.phase || '' = 'leased'
intent-on-a-lease-that-ends: test_an_intent_needs_enough_of_its_lease
-       AND n.due_at > redrive_now() + make_interval(secs => %(margin)b::float8)
+
""")
