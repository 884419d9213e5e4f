"""Gate, send, settlement, backoff."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/domain/replay/backoff.py
@tests/reprocessing/domain/replay/test_backoff.py
rests-without-a-cap: test_without_jitter_it_doubles_up_to_the_cap
-        whole = min(self.cap / self.base, 2.0 ** min(failures, _DOUBLINGS)) if self.base else 0.0
-        return min(self.cap, self.base * whole) *
+        whole = 2.0 ** min(failures, 20) if self.base else 0.0
+        return self.base * whole *

@reprocessing/pipeline/replay/copy_deletion.py
@tests/reprocessing/pipeline/replay/test_copy_deletion.py
a-deletion-in-progress-is-forgotten: test_copies_wait_until_no_other_deletion_is_in_progress
-            if self._in_progress.done():
-                self._record()
-        if len(self._waiting) >= self.size and not self._in_progress:
+            if self._in_progress.done():
+                self._record()
+        if self._waiting:
deleted-copies-are-recorded-at-the-end: test_the_next_deletion_begins_when_the_last_one_has_ended
-            if self._in_progress.done():
+            if False:
leases-end-while-sqs-deletes: test_leases_are_renewed_while_too_many_copies_wait_for_sqs
-                self.renew()
+                break
copies-are-deleted-before-more-is-sent: test_letters_are_sent_while_copies_are_deleted
-            self._in_progress = run_beside(
-                lambda: [gone
+            self._in_progress = Future()
+            self._in_progress.set_result(
+                [gone

@reprocessing/pipeline/replay/gate.py
@tests/reprocessing/pipeline/aws/test_moved_meanwhile.py
parked-before-a-capture-has-looked: test_what_aws_moved_while_a_run_was_interrupted_is_parked_when_a_capture_has_looked
-return Park(ParkedReason.MOVED_BY_AWS) if lane.gone else Wait(UNTIL_CAPTURED, MAYBE_MOVED)
+return Park(ParkedReason.MOVED_BY_AWS)
@tests/reprocessing/pipeline/replay/test_gate.py
discarded-equals-go: test_an_equal_letter_of_a_discarded_letter_is_parked
-            return _copy_of_equal(lane) if lane.released else Park(ParkedReason.EQUAL_DISCARDED)
+            return Park(ParkedReason.EQUAL_DISCARDED) if lane.released else None
conflicts-are-duplicates: test_an_equal_key_with_another_body_is_a_conflict
-        case ClaimState.DELIVERED if lane.claim_same_body:
+        case ClaimState.DELIVERED:
a-spent-message-is-no-canary: test_a_spent_head_is_parked_or_opens_its_breaker
-            return None if on_trial else OpenBreaker(
+            return OpenBreaker(
canaries-do-not-rotate: test_the_head_with_the_fewest_tries_is_the_canary
-sorted(some, key=lambda lane: lane.tries or 0)
+list(some)
what-used-up-its-attempts-goes-on: test_a_spent_head_is_parked_or_opens_its_breaker
-            return Park(ParkedReason.ATTEMPTS_SPENT)
+            return None
spent-attempts-are-not-asked-for: test_the_verdict_over_a_head
-    return (lane.attempts or 0) >= (lane.max_attempts or 1)
+    return (lane.attempts or 0) > (lane.max_attempts or 1)
@tests/reprocessing/pipeline/runs/test_plan.py
stale-letters-go: test_a_stale_letter_is_parked_and_a_person_s_release_sends_it_once
-    if lane.stale and lane.never_sent and not lane.released and lane.stale_policy == "
+    if lane.stale is None and lane.stale_policy == "

@reprocessing/pipeline/replay/lease_keeper.py
@tests/reprocessing/pipeline/replay/test_lease_keeper.py
a-lost-lane-renews-the-others: test_after_a_lost_lane_the_first_lease_is_the_limit
-            if len(mine) == len(self._lanes):
+            if mine is not None:
a-lease-counts-from-the-wire: test_a_turn_that_froze_after_its_intent_sends_nothing
-        self.until = began + min([lease, *(attempt.lease_left for attempt in intended)]) - SEND_MARGIN
+        self.until = time.monotonic() + lease - SEND_MARGIN

@reprocessing/pipeline/replay/lease_lanes.py
@tests/race/ordering/test_a_wake_up.py
next-is-asked-before-the-lock: test_a_letter_released_while_its_lane_s_head_is_gone_goes
-        lanes.lock(ids, fences)
-        return lane_state.advance(ids, fences, keep=True
+        return lane_state.advance(ids, fences, keep=True
@tests/reprocessing/pipeline/replay/test_replay_slice.py
a-dead-owner-s-attempt-stays-open: test_a_repeated_letter_has_the_same_identity
-    if inherited := [lane for lane in leased if lane.inherited]:
+    if inherited := []:

@reprocessing/pipeline/replay/outgoing_message.py
@tests/reprocessing/pipeline/replay/test_send_batches.py
bodies-written-anew: test_body_and_attributes_of_every_type_arrive_unchanged
-    return _Content(body, own)
-
-
-def _unsupported
+    import json
+
+    try:
+        body = json.dumps(json.loads(body)).encode()
+    except ValueError:
+        pass
+    return _Content(body, own)
+
+
+def _unsupported
@tests/reprocessing/pipeline/targets/test_every_target.py
a-redrive-id-for-each-attempt: test_the_key_and_the_redrive_id_are_the_same_on_every_attempt_and_its_number_is_told
-        conf.marks, redrive_attributes.Mark(letter.public_id, letter.no),
+        conf.marks, redrive_attributes.Mark(__import__("uuid").uuid4(), letter.no),

@reprocessing/pipeline/replay/replay_slice.py
@tests/reprocessing/pipeline/dlqs/test_workers_come_back.py
nobody-asks-before-lanes-are-leased: test_what_aws_did_not_move_goes_at_once
-            follow_redrives.check_before_leasing(self.runs)
+
@tests/reprocessing/pipeline/replay/test_replay_slice.py
a-breaker-that-is-new-is-not-looked-at: test_a_new_breaker_delays_no_letter
-        return breakers <= limits.keys() and targets <= {
+        return breakers is not None and targets <= {

@reprocessing/pipeline/replay/send.py
the-lease-s-end-is-not-asked-for: test_no_request_begins_after_the_end_of_the_lease
-            return clock() < min(owned.until, until.get(target_id, math.inf))
+            return clock() < until.get(target_id, math.inf)
a-token-s-end-is-not-asked-for: test_an_expired_token_sends_nothing_and_counts_nothing
-            return clock() < min(owned.until, until.get(target_id, math.inf))
+            return clock() < owned.until

@reprocessing/pipeline/replay/settle.py
@tests/race/ordering/test_lanes.py
letters-moved-before-their-lanes-are-locked: test_lanes_are_locked_before_their_letters_are_moved
-mine = lanes.lock([attempt.lane_id for attempt in ordered], [attempt.fence for attempt in ordered])
+mine = {attempt.lane_id for attempt in ordered}
heads-closed-without-fence: test_an_owner_without_its_fence_closes_no_head
-ours = {lane: closing for lane, closing in closings.items() if lane[0] in mine}
+ours = dict(closings)
@tests/race/outcomes/test_swallowed.py
swallowed-resends-are-awaited: test_a_resend_deduplicated_against_a_copy_that_returned_has_failed
-    back = returned_attempts(taken) if taken else set()
+    back = returned_attempts({}) if taken else set()
@tests/reprocessing/pipeline/capture/test_capture.py
copies-of-closed-heads-deleted-before-their-commit: test_a_settlement_that_is_rolled_back_deletes_nothing
-        deletable = close_letters(closed)
+        from reprocessing.pipeline.capture import delete_copies
+
+        deletable = close_letters(closed)
+        delete_copies.delete_from_dlqs(deletable)
@tests/reprocessing/pipeline/replay/test_last_attempts.py
a-refusal-makes-the-unknown-known: test_a_known_failure_after_an_unknown_one_does_not_free_the_lane
-    known = isinstance(failure, Refused) and not attempt.unsure
+    known = isinstance(failure, Refused)
what-is-to-end-leaves-its-copy-behind: test_a_letter_that_is_to_end_keeps_lane_and_key_while_a_copy_may_come_back
-        later = put_off_letters([closing.letter_id for closing in ours.values()])
+        later = set[int]()
@tests/reprocessing/pipeline/replay/test_replay_slice.py
settled-is-accepted: test_a_lane_sends_one_letter_at_a_time
-frees_lane = target.advance == Advance.ACCEPTED or attempt.waits_for_outcomes is False
+frees_lane = True
settled-without-fence: test_a_worker_that_lost_its_lane_moves_no_letter
-        ours = [attempt for attempt in ordered if attempt.lane_id in mine]
+        ours = list(ordered)
evidence-of-a-lost-owner-is-dropped: test_a_worker_that_lost_its_lane_writes_only_its_evidence
-        if lost:
+        if lost and not ordered:
@tests/reprocessing/pipeline/replay/test_settle.py
copies-of-settled-letters-deleted-before-their-commit: test_an_outcome_that_is_rolled_back_deletes_nothing
-        deletable = settle_attempts(final)
+        from reprocessing.pipeline.capture import delete_copies
+
+        deletable = settle_attempts(final)
+        delete_copies.delete_from_dlqs(deletable)
what-was-not-sent-counts: test_an_attempt_that_was_not_sent_does_not_count
-due=max(unsent_wait(attempt.not_sent), _asked(outcome.after)), detail=outcome.why, counted=False,
+due=max(unsent_wait(attempt.not_sent), _asked(outcome.after)), detail=outcome.why,
nothing-reported-is-taken: test_a_failed_attempt_counts_and_the_letter_waits
-    unknown = Unknown("no outcome was recorded")
+    unknown = Taken(None)
@tests/reprocessing/pipeline/replay/test_equal_letters_of_an_unknown_copy.py
a-last-attempt-of-unknown-end-frees-its-key: test_an_equal_letter_is_not_sent_while_a_copy_may_be_in_the_target
-LetterState.PARKED, "free" if known else "held",
-            deadline=target.copy_window if
+LetterState.PARKED, "free",
+            deadline=None and target.copy_window if
@tests/reprocessing/pipeline/safety/test_automatic_redrive_heals.py
spent-in-an-outage-is-parked: test_a_limit_of_one_attempt_outlasts_an_outage
-attempt.attempts >= dlq.max_attempts and not attempt.is_automatic:
+attempt.attempts >= dlq.max_attempts:
@tests/reprocessing/pipeline/targets/test_every_target.py
an-epoch-after-an-unknown-outcome: test_a_fifo_queue_is_told_another_letter_only_when_the_first_is_known_to_have_failed
-        due=max(due, asked), detail=detail, known=known, counts_as_failure=counts_as_failure,
+        due=max(due, asked), detail=detail, known=True, counts_as_failure=counts_as_failure,
a-claim-that-a-lost-answer-frees:
    test_after_an_answer_that_is_lost_the_claim_is_held_and_the_next_attempt_is_the_same_letter
-LetterState.WAITING, "free" if known else "held",
+LetterState.WAITING, "free",

@reprocessing/pipeline/replay/take_tokens.py
@tests/reprocessing/pipeline/replay/test_replay_slice.py
an-unknown-rate-is-none: test_nothing_is_sent_while_redis_does_not_answer
-            return [], until
-        if not token.count:
+            return some, until
+        if not token.count:
more-letters-than-tokens: test_no_more_letters_are_sent_than_tokens_were_granted
-        return some[: token.count], token.until if
+        return some, token.until if

@reprocessing/store/replay/settlement.py
@tests/race/outcomes/test_outcomes.py
settled-twice: test_a_letter_that_returns_before_its_send_is_settled_is_settled_once
-      FROM fate f WHERE a.id = f.attempt_id AND num_nonnulls(a.closed_at, a.taken_at) = 0
+      FROM fate f WHERE a.id = f.attempt_id
promoted-over-a-return: test_a_promotion_that_waited_for_a_return_promotes_nothing
-     WHERE a.id = ANY(%(attempts)b::bigint[]) AND num_nonnulls(a.closed_at) = 0 AND a.taken_at IS NOT NULL
+     WHERE a.id = ANY(%(attempts)b::bigint[]) AND a.taken_at IS NOT NULL
@tests/reprocessing/pipeline/maintenance/test_after_restore.py
a-forgotten-return-is-presumed-delivered: test_a_promotion_that_had_begun_before_the_hold_presumes_nothing
-       AND NOT EXISTS (SELECT FROM redrive_global_stop WHERE id = 2)
+
@tests/reprocessing/store/replay/test_settlement.py
finished-letters-are-closed-again: test_a_letter_in_another_state_is_not_closed
-      FROM fate f WHERE l.id = f.letter_id AND l.state = ANY(%(from)b::text[])
+      FROM fate f WHERE l.id = f.letter_id AND num_nulls(%(from)b::text[]) = 0
a-failure-frees-nothing: test_the_key_of_a_closed_letter_is_free_or_discarded
-              CASE l.state WHEN 'discarded' THEN 'discarded' WHEN 'parked' THEN 'free' END AS claim,
+              NULL AS claim,

@reprocessing/store/replay/settlement_effects.py
@tests/reprocessing/pipeline/replay/test_an_earlier_attempt_of_unknown_end.py
a-lane-passes-backwards-when-it-is-told: test_a_late_released_letter_leaves_the_order_as_it_was
- AND coalesce(n.highest_sent_sequence < f.sequence, f.sequence IS NOT NULL)
+ AND f.sequence IS NOT NULL
a-return-frees-the-key-of-a-copy-nobody-heard-of: test_a_later_failure_keeps_the_key
-               AND a.outcome = 'unknown' AND a.returned_at IS NULL AND {COPY_ENDS} > redrive_now()) u
+               AND a.outcome = 'unknown' AND false AND {COPY_ENDS} > redrive_now()) u
a-parked-letter-forgets-its-other-copy: test_if_one_of_two_unknown_attempts_fails_the_next_letter_waits
-c.was_open AND coalesce(u.outlasts, false) AS reopens
+false AS reopens
a-last-return-ends-a-letter-of-which-a-copy-may-be-about:
    test_after_the_last_attempt_the_next_letter_waits_for_both_copies
-c.spent AND NOT coalesce(u.outlasts, false) AS ends
+c.spent AS ends
what-is-told-of-has-not-passed: test_a_letter_sent_by_a_dead_worker_makes_an_earlier_letter_stale
-went="(SELECT letter_id FROM closed WHERE was_open)"
+went="(SELECT letter_id FROM closed WHERE false)"
a-key-lapses-while-a-copy-may-come-back: test_an_earlier_equal_letter_gets_the_key_when_no_copy_can_come_back
- AND {COPY_ENDS} > redrive_now()))))
+ AND a.deadline > redrive_now()))))
a-key-lapses-while-its-letter-is-a-head: test_a_letter_at_the_head_of_its_own_lane_keeps_its_key
- AND c.letter_id IS DISTINCT FROM (
+ AND 0 IS DISTINCT FROM (
@tests/reprocessing/pipeline/replay/test_last_attempts.py
a-key-that-is-left-behind-stays-held: test_an_equal_letter_goes_when_the_copy_of_a_changed_letter_is_back
-     WHERE c.letter_id = x.letter_id AND c.state = 'held'
+     WHERE false AND c.letter_id = x.letter_id AND c.state = 'held'
@tests/reprocessing/pipeline/replay/test_settle.py
copies-of-awaiting-letters-deleted: test_with_outcome_absence_the_attempt_stays_open
-m.state IN ('delivered', 'parked', 'duplicate', 'discarded') AND c.dlq_id
+m.state IN ('awaiting', 'delivered', 'parked', 'duplicate', 'discarded') AND c.dlq_id
@tests/reprocessing/pipeline/replay/test_equal_letters_of_an_unknown_copy.py
whatever-leaves-frees-its-key: test_an_equal_letter_is_not_sent_while_a_copy_may_be_in_the_target
-       SET state = CASE WHEN m.claim = 'free' AND m.until IS NOT NULL THEN 'held' ELSE m.claim END,
+       SET state = m.claim,
a-target-without-a-window-keeps-no-copy: test_an_equal_letter_is_not_sent_while_a_copy_may_be_in_the_target
-      ELSE greatest(300, t.visibility, t.timeout) END)
+      ELSE 0 END)
a-key-waits-for-a-letter-that-goes-elsewhere: test_a_divert_frees_no_key_while_a_copy_may_be_in_the_target
-    SELECT CASE WHEN e.target_id = c.target_id
+    SELECT CASE WHEN true OR e.target_id = c.target_id
""")
